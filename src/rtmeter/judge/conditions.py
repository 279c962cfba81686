"""Under which conditions a cell's numbers were measured: as asked, in effect, and seen."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any

from rtmeter.machine.causes import Suspicion, suspicions
from rtmeter.results import words
from rtmeter.results.cell_file import CellFile
from rtmeter.results.condition_words import carried, in_words

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
}
"""What an adapter could do: no condition of what it did."""


@dataclass(frozen=True, slots=True)
class Setting:
    """One condition; ``differs``: what is in effect is not what was asked."""

    name: str
    asked: str
    effective: str
    differs: bool = False


def in_one_line(file: CellFile) -> list[str]:
    """What a number of this cell must not be shown without."""
    facts, machine = file.adapter_facts, file.machine
    adapter = " ".join(str(facts[key]) for key in ("middleware", "middleware_version") if facts.get(key))
    kernel = " ".join(str(machine[key]) for key in ("kernel", "kernel_version") if machine.get(key))
    cpus = machine.get("cpus_online")
    policy = words.setting("scheduling", file.effective.get("scheduling"))
    pinned = file.effective.get("cpus")
    n = file.summary.counts.get("released", file.summary.counts.get("armed")) if file.summary else None
    parts = [
        f"{words.measurement(file.meta)} of {file.adapter}" + (f" ({adapter})" if adapter else ""),
        f"imported from {file.imported['file']}" if "file" in file.imported else "",
        f"server {file.server_adapter}" if file.server_adapter not in (None, file.adapter) else "",
        f"{'timeout' if file.mode == 'one_shot' else 'every'} {words.setting('_ns', file.tick_ns)}",
        f"{n:,} release{'' if n == 1 else 's'}" if n is not None else "",
        *words.shape(file.meta, file.effective),
        policy + (f" on CPU {words.setting('', pinned)}" if pinned else ""),
        *carried(file.path),
        *in_words(file.conditions),
        f"kernel {kernel}" if kernel else "",
        f"{machine.get('cpu_model', '')}" + (f", {cpus} CPUs" if cpus else ""),
        f"host {machine['hostname']}" if machine.get("hostname") else "",
        f"{file.started}" if file.started else "",
    ]
    return [part for part in parts if part and not part.endswith(words.NONE)]


def settings(file: CellFile) -> list[Setting]:
    """Every setting that was asked or is in effect."""
    came_of = {words.label("second_topic"): _second_topic(file)}
    asked = _settings(file.config.model_dump(), file.effective)
    return [replace(one, effective=came_of.get(one.name) or one.effective) for one in asked]


def _second_topic(file: CellFile) -> str:
    """What came of it at each end."""
    counts = ("sent", "refused", "received")
    ends = [
        f"{end} " + ", ".join(f"{name} {told[name]:,}" for name in counts if told.get(name))
        for end, told in file.second_topic.items()
        if isinstance(told, dict)
    ]
    return "; ".join(ends)


def _settings(asked: Mapping[str, Any], effective: Mapping[str, Any]) -> Iterator[Setting]:
    told = set()
    for name, value in asked.items():
        key = _IN_EFFECT.get(name, name)
        told.add(key)
        if name in _NOT_CONDITIONS or (value is None and effective.get(key) is None):
            continue
        left, right = words.setting(name, value), words.setting(name, effective.get(key))
        differs = value is not None and effective.get(key) is not None and left != right
        yield Setting(words.label(name), left, right, differs)
    for name, value in effective.items():
        if name not in told and value is not None:
            yield Setting(words.label(name), words.NONE, words.setting(name, value))


def suspected(file: CellFile) -> list[Suspicion]:
    """Signs in the data that something the machine had wrong may explain."""
    support = file.verdict.support if file.verdict else None
    found = [finding.model_dump() for finding in file.findings]
    return suspicions(found, support.rhythm_s if support else None, file.usage)


def meanwhile(file: CellFile) -> dict[str, Any]:
    """What the machine did, and load and traffic came to, while the cell was measured."""
    return _meanwhile(file.conditions)


def meanwhile_there(file: CellFile) -> dict[str, Any]:
    """The same of the server's machine, where that is another one."""
    found = file.conditions.get("server")
    return _meanwhile(found) if isinstance(found, dict) else {}


def _meanwhile(found: Mapping[str, Any]) -> dict[str, Any]:
    achieved = found.get("achieved")
    parts = {k: v for k, v in achieved.items() if isinstance(v, dict)} if isinstance(achieved, dict) else {}
    return parts.pop("machine", {}) | parts


def facts(*sources: Mapping[str, Any]) -> list[tuple[str, str]]:
    """Names and values of facts in words, those without a value left out."""
    return [
        (words.label(str(name)), words.setting(str(name), value))
        for source in sources
        for name, value in source.items()
        if name not in _CAPABILITIES and value not in (None, "", [], {})
    ]
