"""How what this process has started ends: asked, then killed, and never waited for without a limit."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import threading
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

REAP_S = 10
"""From SIGKILL until a process is given up, which happens where the kernel itself holds it."""

_HIGHEST = 99  # priority


class Killed(BaseException):
    """The user asked twice: what is being waited for is no longer, and nothing more is begun."""


class StartedGroups:
    """The process groups that this process has started and that may still run."""

    def __init__(self) -> None:
        self._groups: set[int] = set()
        self._turn = threading.Lock()

    def add(self, group: int) -> None:
        """It runs."""
        with self._turn:
            self._groups.add(group)

    def remove(self, group: int) -> None:
        """It has ended, and its number may become somebody else's."""
        with self._turn:
            self._groups.discard(group)

    def kill(self) -> None:
        """All of them, at once. May be called from a signal handler, so it waits for no lock."""
        for group in tuple(self._groups):
            kill_group(group)


STARTED = StartedGroups()

LEFT: dict[str, None] = {}
"""Commands that take back, elsewhere, what this process would leave there if it were killed now."""


def left_words() -> str:
    """What is to be done about it: where there is nothing, no words."""
    commands = ", ".join(f"`{command}`" for command in tuple(LEFT))
    return f"; elsewhere by {commands}" if commands else ""


def kill_group(group: int) -> None:
    """SIGKILL to all of a process group; none is left where that is said of nobody."""
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.killpg(group, signal.SIGKILL)


def reap(process: subprocess.Popen[bytes] | subprocess.Popen[str]) -> bool:
    """Waits for a process that was killed; false if it is not gone within REAP_S.

    A process needs a CPU to end on: one that gets none beside others of real-time priority is put before
    them, as far as this is allowed.
    """
    for hurry in (False, True):
        if hurry:
            put_first(process.pid)
        with contextlib.suppress(subprocess.TimeoutExpired):
            process.wait(REAP_S / 2)
            return True
    return False


def run_within(
    limit_s: float, command: Sequence[str | Path], **options: Any
) -> subprocess.CompletedProcess[Any]:
    """As subprocess.run(), in a session of its own, so that a terminal's Ctrl-C is for rtmeter alone: what
    has not ended within the limit is killed with all that it has started there.

    Raises subprocess.TimeoutExpired then, and OSError if it cannot be started.
    """
    process = subprocess.Popen(command, start_new_session=True, **options)
    try:
        out, err = process.communicate(timeout=limit_s)
    except BaseException:
        kill_group(process.pid)
        reap(process)
        raise
    return subprocess.CompletedProcess(command, process.returncode, out, err)


def put_first(pid: int, priority: int = _HIGHEST) -> None:
    """Lets all threads of a process run on any CPU and before all of less priority, as far as allowed."""
    with contextlib.suppress(OSError):  # it has ended
        for tid in map(int, os.listdir(f"/proc/{pid}/task")):  # noqa: PTH208
            with contextlib.suppress(OSError):
                os.sched_setaffinity(tid, range(os.cpu_count() or 1))
            with contextlib.suppress(OSError):
                os.sched_setscheduler(tid, os.SCHED_FIFO, os.sched_param(priority))


def affinities(pid: int) -> dict[int, set[int]]:
    """Of each thread of a process the CPUs that it may run on; empty once it has ended."""
    found = {}
    with contextlib.suppress(OSError):  # it has ended
        for tid in map(int, os.listdir(f"/proc/{pid}/task")):  # noqa: PTH208
            with contextlib.suppress(OSError):
                found[tid] = os.sched_getaffinity(tid)
    return found


def put_back(pid: int, cpus: Mapping[int, set[int]]) -> None:
    """Undoes put_first() of a process of normal priority: ``cpus`` are its threads' affinities() before; a
    thread begun since gets those of the first."""
    for tid in affinities(pid):
        with contextlib.suppress(OSError):
            os.sched_setscheduler(tid, os.SCHED_OTHER, os.sched_param(0))
            os.sched_setaffinity(tid, cpus.get(tid) or cpus[pid])
