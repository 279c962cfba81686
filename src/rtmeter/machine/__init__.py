"""A machine and what is intended on it → findings: what hurts punctuality, and what mends it.

A family of checks a file, each a pure function of the files under a root and of what is intended.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from rtmeter.host.root import Root
from rtmeter.host.threads import Task, allowed_cpus
from rtmeter.machine import (
    clocks,
    cpus,
    cpusets,
    interrupts,
    kernel,
    memory,
    middleware,
    scheduler,
    surroundings,
    tasks,
    tracing,
)
from rtmeter.machine.finding import WORST_FIRST, Finding, Grade, Kind
from rtmeter.machine.reading import Intent, Machine, Workload, parse_workload
from rtmeter.model import TWO_ENDS, Cell, Measurement
from rtmeter.values import Scheduling

_FAMILIES = (kernel, scheduler, tasks, cpus, cpusets, interrupts, memory, tracing, clocks, surroundings)

KINDS: tuple[Kind, ...] = tuple(kind for family in (*_FAMILIES, middleware) for kind in family.KINDS)
"""Everything that is looked for."""

__all__ = [
    "KINDS",
    "Finding",
    "Grade",
    "Intent",
    "Kind",
    "Root",
    "Workload",
    "findings",
    "intent_of",
    "intent_of_thread",
    "parse_workload",
    "server_intent_of",
    "with_threads",
]


def findings(root: Root, intent: Intent) -> list[Finding]:
    """What was found, the worst grade first; what cannot be read is a finding of grade ``unknown``."""
    machine = Machine(root, intent)
    found = [finding for family in _FAMILIES for finding in family.check(machine)]
    return sorted(found, key=lambda finding: WORST_FIRST.index(finding.grade))


def with_threads(
    found: Sequence[Mapping[str, Any]], measurement: Measurement, threads: Sequence[Mapping[str, Any]]
) -> list[Mapping[str, Any]]:
    """What was found before a run, as JSON has it, and what the audit of its threads (spec/probe.md) adds."""
    added = [finding.to_json() for finding in middleware.check(measurement, threads)]
    return sorted([*found, *added], key=lambda finding: WORST_FIRST.index(finding["grade"]))


def intent_of(cell: Cell) -> Intent:
    """What a cell is to measure."""
    cpus, scheduling = cell.config.get("cpus"), cell.config.get("scheduling")
    return Intent(
        cpus=tuple(cpus) if cpus else None,
        scheduling=Scheduling(**scheduling) if scheduling else Scheduling("other"),
        workload="roundtrip" if cell.config["measurement"] in TWO_ENDS else "cyclic",
    )


def intent_of_thread(task: Task, root: Root, others: Sequence[Task] = ()) -> Intent:
    """What a thread that runs already is; with ``others``, any of which does the same, what all are together:
    on the CPUs of each, with the policy of the least urgent."""
    tasks = (task, *others)
    online = Machine(root, Intent()).online
    allowed = frozenset(cpu for one in tasks for cpu in (allowed_cpus(root, one) or online) & online)
    scheduling = min((Scheduling(one.policy, one.priority) for one in tasks), key=lambda one: one.rank)
    return Intent(
        cpus=tuple(sorted(allowed)) if allowed < online else None,
        scheduling=scheduling if scheduling.rank else Scheduling("other"),
        thread=task.tid,
        others=tuple(one.tid for one in others),
    )


def server_intent_of(cell: Cell) -> Intent:
    """What a round trip's server is to do on another machine."""
    own = cell.server_cpus
    return intent_of(cell) if own is None else replace(intent_of(cell), cpus=own or None)
