"""Who else took the CPUs while a cell was measured: the processes that are not rtmeter's, by name."""

from __future__ import annotations

import time
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from rtmeter.conditions.counters import Spent
from rtmeter.conditions.processes import Process, everyone
from rtmeter.host.root import Root
from rtmeter.model import LOCAL
from rtmeter.values import harmless

OWN = "rtmeter"
"""How the names of the probes begin."""

_Identity = tuple[int, int]
_Looked = Mapping[_Identity, Process]

_NAMED = 3
_NAMES_KEPT = 256  # a day's short-lived processes may bear any number of names


class Others:
    """Looks at all processes now and then; each look adds what they took since the one before.

    Of a process that ended between two looks, what it took after the first of them is in no look: what the
    CPUs spent on tasks tells it, less all that was seen and less rtmeter's own, of which what ended too is
    told by those who reaped it. Threads of the kernel and interrupts work for whoever made them, rtmeter
    too: they are nobody's.

    rtmeter's own are, on this machine, this process and all below it (probes, load, traffic, recorder);
    on another one, where the probes are below somebody else's, its shell there and those whose names begin
    with one of ``own``, with all below them.
    """

    def __init__(self, root: Root, own: Sequence[str] = (OWN,)) -> None:
        here, planted = root.host == LOCAL, root.path != Path("/")
        self._root = root
        self._own_names = (
            () if here and not planted else tuple(own)
        )  # another's rtmeter, or load, is not ours
        self._top = 0 if planted else None  # of its own process: not known yet, or none
        self._before: dict[_Identity, Process] = {}
        self._ours: set[_Identity] = set()
        self._taken_s: dict[str, float] = {}
        self._kernels_s: dict[str, float] = {}
        self._seen_s = self._own_s = self._unsure_s = 0.0
        self._looks, self._looking_s = 0, 0.0
        self._sees_all = (
            False  # in a container the kernel's threads are out of sight, and others' processes too
        )

    def look(self, spent: Spent) -> None:
        """Once more; the first look is what the others are compared with. ``spent``: since the last one."""
        began_s = time.thread_time()
        if self._top is None:
            self._top = self._root.own_pid()
        found = {_identity(process): process for process in everyone(self._root, zombies=True)}
        self._sees_all = any(process.of_kernel for process in found.values())
        ours = self._ours_among(found)
        if self._looks:
            self._add(found, ours, spent)
        self._before, self._ours = found, ours
        self._looks += 1
        self._looking_s += time.thread_time() - began_s

    def found(self, cpu_s: float, spent: Spent) -> dict[str, Any]:
        """The shares of ``cpu_s`` seconds of processor time that others and the kernel took, and the three
        who took most of each; JSON-ready (spec/results.md). ``spent``: between the first look and the last.
        Nothing before there were two."""
        if self._looks < 2 or cpu_s <= 0:
            return {}
        unnamed_s = max(spent.tasks_s - self._seen_s - self._unsure_s, 0.0)
        named_s = max(self._seen_s - self._own_s - sum(self._kernels_s.values()), 0.0)
        kernels_s = self._kernels_s | {"interrupts": spent.interrupts_s}
        return {
            "others": round((named_s + unnamed_s) / cpu_s, 4),
            "others_most": _most(self._taken_s, cpu_s),
            f"others_{'unnamed' if self._sees_all else 'unseen'}": round(unnamed_s / cpu_s, 4),
            "kernel_work": round(sum(kernels_s.values()) / cpu_s, 4),
            "kernel_work_most": _most(kernels_s, cpu_s),
            "looking_s": round(self._looking_s, 4),
        }

    def _add(self, found: _Looked, ours: set[_Identity], spent: Spent) -> None:
        seen_s = own_s = self._own_since(found, ours)
        for identity in found.keys() - ours:
            process, before = found[identity], self._before.get(identity)
            taken_s = process.cpu_s - (before.cpu_s if before else 0.0)
            if taken_s > 0:
                seen_s += taken_s
                taken = self._kernels_s if process.of_kernel else self._taken_s
                taken[_name(process)] = taken.get(_name(process), 0.0) + taken_s
        if len(self._taken_s) > 2 * _NAMES_KEPT:
            self._taken_s = dict(_first(self._taken_s, _NAMES_KEPT))
        self._own_s, self._seen_s = self._own_s + own_s, self._seen_s + seen_s
        if self._lost_one(ours):
            self._unsure_s += max(spent.tasks_s - seen_s, 0.0)

    def _own_since(self, found: _Looked, ours: set[_Identity]) -> float:
        """What rtmeter's own took since the look before: by those that live, with what they have reaped, or,
        where others reaped, at least what the living took."""
        living, before = [found[identity] for identity in ours], self._before
        known = [before[identity] for identity in ours if identity in before]
        gone = [before[identity] for identity in self._ours - ours]
        with_reaped_s = _total(living) - _total([*known, *gone])
        return max(with_reaped_s, sum(one.cpu_s for one in living) - sum(one.cpu_s for one in known))

    def _lost_one(self, ours: set[_Identity]) -> bool:
        """Whether one of rtmeter's own ended since, and nobody of them can tell what it took last."""
        living = {pid for pid, _ in ours}
        return any(self._before[identity].parent not in living for identity in self._ours - ours)

    def _ours_among(self, found: _Looked) -> set[_Identity]:
        """Once ours, always: a process whose parent ended is given another."""
        by_pid = {process.pid: process for process in found.values()}

        def is_ours(process: Process) -> bool:
            seen: set[int] = set()
            above: Process | None = process
            while above is not None and above.pid not in seen:
                if above.pid == self._top or _identity(above) in self._ours:
                    return True
                if self._own_names and above.name.startswith(self._own_names):
                    return True
                seen.add(above.pid)
                above = by_pid.get(above.parent)
            return False

        return {identity for identity, process in found.items() if is_ours(process)}


def _identity(process: Process) -> _Identity:
    return process.pid, process.started


def _total(processes: Iterable[Process]) -> float:
    return sum(process.with_children_s for process in processes)


def _first(taken_s: Mapping[str, float], count: int) -> list[tuple[str, float]]:
    return sorted(taken_s.items(), key=lambda item: (-item[1], item[0]))[:count]


def _most(taken_s: Mapping[str, float], cpu_s: float) -> list[dict[str, Any]]:
    most = _first(taken_s, _NAMED)
    return [{"name": name, "share": round(took_s / cpu_s, 4)} for name, took_s in most if took_s > 0]


def _name(process: Process) -> str:
    """As a terminal may show it; the kernel's threads, but those of interrupts, are named with their CPU or
    their work."""
    several = process.of_kernel and not process.name.startswith("irq/")
    return str(harmless(process.name.partition("/")[0] if several else process.name))
