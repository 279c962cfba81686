"""Which conditions of a source held when a cell was measured, told by its cell.json."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from rtmeter.model import Doubt
from rtmeter.results import condition_words
from rtmeter.results.record import CellRecord
from rtmeter.values import Scheduling, format_cpus

Held = tuple[str, bool | None]
"""How it is here, in words, and whether that is the source's; None: not known."""

_UNKNOWN = "not known"
_REMOTE = "another host"


@dataclass(frozen=True, slots=True)
class Unmet:
    """A condition of the source that did not hold in ``cells``, or of which that is not known: how it was
    there and how it is ``here``."""

    condition: str
    was: str
    here: str
    known: bool
    cells: tuple[str, ...]


def held_here(record: CellRecord, asked: Mapping[str, Any]) -> Held:
    """Whether a condition, as ``published.conditions`` has it, held in a cell that was measured."""
    return CHECKS[asked["condition"]](record, asked)


def _mapping(found: object, *keys: str) -> Mapping[str, Any]:
    """A mapping within another; empty if there is none."""
    for key in keys:
        found = found.get(key) if isinstance(found, Mapping) else None
    return found if isinstance(found, Mapping) else {}


def _hardware(record: CellRecord, asked: Mapping[str, Any]) -> Held:
    machine = record.machine
    if not machine:
        return _UNKNOWN, None
    virtual = condition_words.unfit(machine.get("virtual_machine"))
    words = [str(machine.get("cpu_model", _UNKNOWN)), f"{machine.get('cpus_online', '?')} CPUs"]
    here = ", ".join([*words, *([virtual] if virtual else [])])
    return here, _matches(here, asked) and not virtual


def _middleware(record: CellRecord, asked: Mapping[str, Any]) -> Held:
    facts = record.adapter_facts
    keys = ("middleware", "middleware_version", "rmw", "rmw_library")
    names = [facts.get(key) for key in keys] + [_mapping(facts, "environment").get("ROS_DISTRO")]
    here = " ".join(str(one) for one in names if one)
    return (here, _matches(here, asked)) if here else (_UNKNOWN, None)


def _matches(here: str, asked: Mapping[str, Any]) -> bool:
    return asked.get("matches") is not None and str(asked["matches"]) in here


def _preempt_rt(record: CellRecord, asked: Mapping[str, Any]) -> Held:
    machine = record.machine
    known = preempt_rt(record)
    if known is None:
        return _UNKNOWN, None
    return f"{machine.get('kernel', '')} {'with' if known else 'without'} PREEMPT_RT".strip(), known


def preempt_rt(record: CellRecord) -> bool | None:
    """Whether the cell was measured on a PREEMPT_RT kernel; None if its machine does not say."""
    version = record.machine.get("kernel_version")
    return None if version is None else bool(re.search(r"PREEMPT[_ ]RT", str(version)))


def _two_hosts(record: CellRecord) -> bool:
    server = _mapping(record.conditions, "server")
    return bool(server) and not server.get("same_machine")


def _second_host(record: CellRecord, asked: Mapping[str, Any]) -> Held:
    server = _mapping(record.conditions, "server")
    if _two_hosts(record):
        return f"server on {server.get('host', _REMOTE)}", True
    return ("server on another part of this machine" if server else "client and server on one host"), False


def _network(record: CellRecord, asked: Mapping[str, Any]) -> Held:
    if _two_hosts(record):
        return "between two hosts", True
    ways = ["within one host", *condition_words.carried(record.path), "without a network card"]
    return ", ".join(ways), False


def _strain(conditions: object, warnings: Sequence[Doubt], what: str) -> Held:
    """Load or traffic: what was asked for here, achieved, and not fallen short of."""
    asked, achieved = _mapping(conditions, "asked", what), _mapping(conditions, "achieved")
    if not asked:
        return "none", False
    words = condition_words.in_words({"asked": {what: asked}, "achieved": achieved})
    short = [d.type for d in warnings if d.type in (f"{what}_died", f"{what}_not_reached")]
    return ", ".join([*(word for word in words if what in word), *dict.fromkeys(short)]), not short


def _load(record: CellRecord, asked: Mapping[str, Any]) -> Held:
    return _strain(record.conditions, record.warnings, "load")


def _traffic(record: CellRecord, asked: Mapping[str, Any]) -> Held:
    here, held = _strain(record.conditions, record.warnings, "traffic")
    if held and condition_words.beside_the_network(record.path):
        return ", ".join([here, *condition_words.carried(record.path)]) + ", beside the traffic", False
    return here, held


def _server_load(record: CellRecord, asked: Mapping[str, Any]) -> Held:
    if not _two_hosts(record):
        return "no second host", False
    server = _mapping(record.conditions, "server")
    return _strain(server, record.warnings, "load")


def _scheduling(record: CellRecord, asked: Mapping[str, Any]) -> Held:
    effective = record.effective.get("scheduling")
    if not effective:
        return _UNKNOWN, None
    wanted = Scheduling.from_probe(_mapping(record.config, "scheduling"))
    here = Scheduling.from_probe(effective)
    return str(here), here == wanted and ("matches" not in asked or _matches(str(here), asked))


def _memory(record: CellRecord, asked: Mapping[str, Any]) -> Held:
    locked = record.effective.get("memory_locked")
    if locked is None:
        return _UNKNOWN, None
    return ("memory locked" if locked else "memory not locked"), bool(locked)


def _prefault(record: CellRecord, asked: Mapping[str, Any]) -> Held:
    bytes_ = record.effective.get("prefault_heap_bytes") or 0
    return f"{bytes_ / 1e6:,.0f} MB of heap touched beforehand", bytes_ >= (asked.get("least") or 1)


def _one_cpu(record: CellRecord, asked: Mapping[str, Any]) -> Held:
    cpus = record.effective.get("cpus")
    if not cpus:
        return _UNKNOWN, None
    return f"CPUs {format_cpus(cpus)}", len(cpus) == 1


def _isolated(record: CellRecord, asked: Mapping[str, Any]) -> Held:
    """Whether it was taken from all others, too."""
    cpus, made = _settings(record, "isolate")
    others, moved = _settings(record, "stray_tasks")
    if not made or moved:
        return cpus, made
    return f"{cpus}, shared with others ({others})", False


def _irq_priority(record: CellRecord, asked: Mapping[str, Any]) -> Held:
    return _settings(record, "irq_priority")


def _ksoftirqd(record: CellRecord, asked: Mapping[str, Any]) -> Held:
    return _settings(record, "ksoftirqd_priority")


def _settings(record: CellRecord, name: str) -> Held:
    """A setting of the machine as it was read back, or why it was left out."""
    conditions = _mapping(record.conditions)
    parts = [conditions, *([_mapping(conditions, "server")] if _two_hosts(record) else [])]
    made, left_out = [], []
    for part in parts:
        settings = _mapping(part, "effective", "settings")
        values = {str(v) for key, of in settings.items() if _is(key, name) for v in of.values()}
        made += [", ".join(sorted(values))] if values else []
        reasons = _mapping(part, "left_out")
        left_out += [str(reason) for key, reason in reasons.items() if _is(key, name)]
    here = "; ".join([*made, *(f"left out: {reason}" for reason in left_out)])
    return here or "not set", bool(made) and not left_out and len(made) == len(parts)


def _is(key: str, name: str) -> bool:
    return key.partition(".")[0] == name


def _throttling(record: CellRecord, asked: Mapping[str, Any]) -> Held:
    """Whether nothing stops a real-time thread that never sleeps."""
    here, held = _settings(record, "rt_throttling")
    if held or record.findings is None:
        return here, held or None
    found = [f for f in record.findings if f.id in ("rt_throttling", "fair_server")]
    return "; ".join(finding.value for finding in found) or "off", not found


def _middleware_threads(record: CellRecord, asked: Mapping[str, Any]) -> Held:
    """The policies of the threads that the middleware started, at both ends."""
    threads = [t for _, process in record.threads.items() for t in process if t.get("role") == "middleware"]
    if not threads:
        return "none seen", None
    policies = [Scheduling.from_probe(thread) for thread in threads]
    tally = {str(policy): policies.count(policy) for policy in policies}
    here = ", ".join(f"{count} × {policy}" for policy, count in sorted(tally.items()))
    return here, all(policy.priority >= (asked.get("least") or 1) for policy in policies)


def _allocator(record: CellRecord, asked: Mapping[str, Any]) -> Held:
    here = str(record.adapter_facts.get("allocator") or "the default")
    return here, _matches(here, asked)


def _drive(record: CellRecord, asked: Mapping[str, Any]) -> Held:
    """What started the callbacks or cycles."""
    return _exactly(record.effective.get("drive"), asked)


def _components(record: CellRecord, asked: Mapping[str, Any]) -> Held:
    """The threads of a cycle's components."""
    return _exactly(record.effective.get("components"), asked)


def _exactly(here: object, asked: Mapping[str, Any]) -> Held:
    """A word of rtmeter's own: ``spin`` is no part of ``sleep_then_spin_some``."""
    matches = asked.get("matches")
    return (_UNKNOWN, None) if here is None else (str(here), None if matches is None else here == matches)


def _releases(record: CellRecord, asked: Mapping[str, Any]) -> Held:
    counts = record.summary.counts if record.summary else {}
    n = int(counts.get("armed", counts.get("released", 0)))
    return f"{n:,}", n >= (asked.get("least") or 0)


CHECKS: dict[str, Callable[[CellRecord, Mapping[str, Any]], Held]] = {
    "hardware": _hardware,
    "middleware": _middleware,
    "preempt_rt": _preempt_rt,
    "second_host": _second_host,
    "network": _network,
    "load": _load,
    "server_load": _server_load,
    "traffic": _traffic,
    "scheduling": _scheduling,
    "memory": _memory,
    "prefault": _prefault,
    "allocator": _allocator,
    "one_cpu": _one_cpu,
    "isolated_cpu": _isolated,
    "middleware_threads": _middleware_threads,
    "irq_priority": _irq_priority,
    "ksoftirqd_priority": _ksoftirqd,
    "drive": _drive,
    "components": _components,
    "releases": _releases,
    "rt_throttling": _throttling,
}
"""The conditions that a result can tell of, by the name that a campaign has for them."""


def unmet(cells: Mapping[str, Iterator[tuple[Mapping[str, Any], Held]]]) -> list[Unmet]:
    """Of the cells' conditions those that did not hold, alike ones as one, in the order of the campaign."""
    found: dict[tuple[str, str, str, bool], list[str]] = {}
    for cell, conditions in cells.items():
        for asked, (here, holds) in conditions:
            if not holds:
                key = (str(asked["condition"]), str(asked["was"]), here, holds is not None)
                found.setdefault(key, []).append(cell)
    return [
        Unmet(condition, was, here, known, tuple(dict.fromkeys(where)))
        for (condition, was, here, known), where in found.items()
    ]
