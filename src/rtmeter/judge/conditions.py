"""Under which conditions a cell's numbers were measured: as asked, in effect, and seen."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any

from rtmeter.machine.causes import Suspicion, suspicions
from rtmeter.results import words
from rtmeter.results.condition_words import carried, in_words, middleware, most_of, server
from rtmeter.results.record import CellRecord

_IN_EFFECT = {"lock_memory": "memory_locked"}
"""Settings that are read back under another name."""

_NOT_CONDITIONS = {"measurement", "mode", "quantity"}

_CAPABILITIES = {
    "measures",
    "drives",
    "receives",
    "poll",
    "background",
    "components",
    "option",
    "second_topic",
    "beside",
}
"""What an adapter could do: no condition of what it did."""


@dataclass(frozen=True, slots=True)
class Setting:
    """One condition; ``differs``: what is in effect is not what was asked."""

    name: str
    asked: str
    effective: str
    differs: bool = False


def in_one_line(record: CellRecord, *repeats: CellRecord) -> list[str]:
    """What a number of this cell must not be shown without, or one of it and its other ``repeats``."""
    machine = record.machine
    adapter = middleware(record.adapter_facts)
    kernel = " ".join(str(machine[key]) for key in ("kernel", "kernel_version") if machine.get(key))
    cpus = machine.get("cpus_online")
    policy = words.setting("scheduling", record.effective.get("scheduling"))
    pinned = record.effective.get("cpus")
    n = record.summary.counts.get("released", record.summary.counts.get("armed")) if record.summary else None
    parts = [
        f"{words.measurement(record.meta)} of {record.adapter}" + (f" ({adapter})" if adapter else ""),
        f"imported from {record.imported.file}" if record.imported else "",
        server(record),
        f"{'timeout' if record.mode == 'one_shot' else 'every'} {words.setting('_ns', record.tick_ns)}",
        f"{n:,} release{'' if n == 1 else 's'}" if n is not None else "",
        _since_its_start(record),
        *words.shape(record.meta, record.effective),
        policy + (f" on CPU {words.setting('', pinned)}" if pinned else ""),
        *carried(record.path),
        *words.crowd(record.config),
        *in_words(record.conditions, [other.conditions for other in repeats]),
        f"kernel {kernel}" if kernel else "",
        f"{machine.get('cpu_model', '')}" + (f", {cpus} CPUs" if cpus else ""),
        f"host {machine['hostname']}" if machine.get("hostname") else "",
        f"{record.started}" if record.started else "",
    ]
    return [part for part in parts if part and not part.endswith(words.NONE)]


def _since_its_start(record: CellRecord) -> str:
    """Of a program that runs for long: what the cell's releases are the last of."""
    released, missed = (record.config.get(f"{what}_since_start") for what in ("released", "missed"))
    if not isinstance(released, int) or not isinstance(missed, int):
        return ""
    return f"the last of {released:,} since its start, of which {missed:,} missed {_deadline(record)}"


def _deadline(record: CellRecord) -> str:
    asked = record.config.get("deadline_ns")
    return "the deadline" if asked is None else words.setting("_ns", asked)


def settings(record: CellRecord) -> list[Setting]:
    """Every setting that was asked or is in effect."""
    came_of = {words.label("second_topic"): _second_topic(record)}
    came_of[words.label("subscribers")] = "; ".join(words.beside(record.beside))
    came_of[words.label("publishers")] = "; ".join(words.publications(record.beside))
    came_of[words.label("background_nodes")] = words.nodes(record.beside)
    asked = _settings(record.config, record.effective)
    return [replace(one, effective=came_of.get(one.name) or one.effective) for one in asked]


def _second_topic(record: CellRecord) -> str:
    """What came of it at each end."""
    ends = []
    for end, seen in (record.second_topic or {}).items():
        if seen is not None:
            counts = {name: seen.get(name) for name in ("sent", "refused", "received")}
            ends.append(f"{end} " + ", ".join(f"{name} {count:,}" for name, count in counts.items() if count))
    return "; ".join(ends)


def _settings(asked: Mapping[str, Any], effective: Mapping[str, Any]) -> Iterator[Setting]:
    named = set()
    for name, value in asked.items():
        key = _IN_EFFECT.get(name, name)
        named.add(key)
        if name in _NOT_CONDITIONS or (value is None and effective.get(key) is None):
            continue
        left, right = words.setting(name, value), words.setting(name, effective.get(key))
        differs = value is not None and effective.get(key) is not None and left != right
        yield Setting(words.label(name), left, right, differs)
    for name, value in effective.items():
        if name not in named and value is not None:
            yield Setting(words.label(name), words.NONE, words.setting(name, value))


def suspected(record: CellRecord) -> list[Suspicion]:
    """Signs in the data that something the machine had wrong may explain."""
    support = record.verdict.support if record.verdict else None
    found = [finding.model_dump() for finding in record.findings or ()]
    return suspicions(found, support.rhythm_s if support else None, record.usage)


def meanwhile(record: CellRecord) -> dict[str, Any]:
    """What the machine did, and load and traffic came to, while the cell was measured."""
    return _meanwhile(record.conditions or {})


def meanwhile_there(record: CellRecord) -> dict[str, Any]:
    """The same of the server's machine, where that is another one."""
    found = record.conditions.get("server") if record.conditions else None
    return _meanwhile(found or {})


def _meanwhile(found: Mapping[str, Any]) -> dict[str, Any]:
    achieved: Mapping[str, Any] = found.get("achieved", {})
    parts: dict[str, Any] = {what: one for what, one in achieved.items() if one is not None}
    machine = parts.pop("machine", {})
    most = {name: most_of(who) for name, who in machine.items() if name.endswith("_most")}
    return {**machine, **most, **parts}


def facts(*sources: Mapping[str, Any] | None) -> list[tuple[str, str]]:
    """Names and values of facts in words, those without a value left out."""
    return [
        (words.label(str(name)), words.setting(str(name), value))
        for source in sources
        for name, value in (source or {}).items()
        if name not in _CAPABILITIES and value not in (None, "", [], {})
    ]
