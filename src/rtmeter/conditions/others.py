"""Who else took the CPUs while a cell was measured: the processes that are not rtmeter's, by name."""

from __future__ import annotations

import os
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from rtmeter.conditions.processes import Process, everyone
from rtmeter.host.root import Root
from rtmeter.model import LOCAL
from rtmeter.values import harmless

OWN = "rtmeter"
"""How the names of the probes begin."""

_NAMED = 3
_NAMES_KEPT = 256  # a day's short-lived processes may bear any number of names


class Others:
    """Looks at all processes now and then; each look adds what they took since the one before.

    Of a process that ended between two looks, what it took after the first of them is not seen. rtmeter's own
    are this process and all below it, and those whose names begin with one of ``own``: the latter for other
    machines, where they are below somebody else's.
    """

    def __init__(self, root: Root, own: Sequence[str] = (OWN,)) -> None:
        self._root, self._own_names = root, tuple(own)
        here = root.host == LOCAL and root.path == Path("/")
        self._front = os.getpid() if here else None
        self._before: dict[tuple[int, int], float] = {}
        self._ours: set[tuple[int, int]] = set()
        self._taken_s: dict[str, float] = {}
        self._looks, self._looking_s = 0, 0.0

    def look(self) -> None:
        """Once more; the first look is what the others are compared with."""
        began_s = time.thread_time()
        found = everyone(self._root)
        ours = self._ours_among(found)
        now = {_identity(process): process.cpu_s for process in found}
        if self._looks:
            for process in found:
                identity = _identity(process)
                taken_s = process.cpu_s - self._before.get(identity, 0.0)
                if taken_s > 0 and identity not in ours:
                    name = _name(process)
                    self._taken_s[name] = self._taken_s.get(name, 0.0) + taken_s
        if len(self._taken_s) > 2 * _NAMES_KEPT:
            self._taken_s = dict(self._most(_NAMES_KEPT))
        self._before, self._ours = now, ours
        self._looks += 1
        self._looking_s += time.thread_time() - began_s

    def found(self, cpu_s: float) -> dict[str, Any]:
        """The share of ``cpu_s`` seconds of processor time that they took, and the three who took most;
        JSON-ready (spec/results.md). Nothing before there were two looks."""
        if self._looks < 2 or cpu_s <= 0:
            return {}
        most = [{"name": name, "share": round(taken_s / cpu_s, 4)} for name, taken_s in self._most(_NAMED)]
        share = round(sum(self._taken_s.values()) / cpu_s, 4)
        return {"others": share, "others_most": most, "looking_s": round(self._looking_s, 4)}

    def _most(self, count: int) -> list[tuple[str, float]]:
        return sorted(self._taken_s.items(), key=lambda item: (-item[1], item[0]))[:count]

    def _ours_among(self, found: Sequence[Process]) -> set[tuple[int, int]]:
        """Once ours, always: a process whose parent ended is given another."""
        by_pid = {process.pid: process for process in found}

        def is_ours(process: Process) -> bool:
            seen: set[int] = set()
            above: Process | None = process
            while above is not None and above.pid not in seen:
                if above.pid == self._front or _identity(above) in self._ours:
                    return True
                if above.name.startswith(self._own_names):
                    return True
                seen.add(above.pid)
                above = by_pid.get(above.parent)
            return False

        return {_identity(process) for process in found if is_ours(process)}


def _identity(process: Process) -> tuple[int, int]:
    return process.pid, process.started


def _name(process: Process) -> str:
    """As a terminal may show it; the kernel's workers change their names with their work."""
    return "kworker" if process.name.startswith("kworker/") else str(harmless(process.name))
