"""What the threads of a program do: looked at for some seconds."""

from __future__ import annotations

import tempfile
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import Any

from rtmeter.attach.grid import AttachedLoop, loop_of
from rtmeter.attach.jobs import jobs_of
from rtmeter.attach.sleeps import sleeps_of
from rtmeter.conditions.processes import Process
from rtmeter.errors import RtmeterError
from rtmeter.host.root import Root
from rtmeter.host.threads import Task, allowed_cpus
from rtmeter.measure.programs.attaching import Attached
from rtmeter.measure.programs.program import Program, is_there, meant_words, threads_of
from rtmeter.statistics.ranks import quantile_index, share_of

LOOK_S = 3.0
FEWEST_JOBS = 5
"""Fewer are no loop."""

_EVERY_S = 0.1


@dataclass(frozen=True, slots=True)
class ThreadSeen:
    """A thread: what wakes it how often (None: it had no job), the spread of the distances of its wake-ups,
    p99 less p50 (None: too few), and how often it went to sleep."""

    task: Task
    cpus: tuple[int, ...]
    loop: AttachedLoop | None
    jobs: int
    busy_share: float
    jitter_ns: int | None
    left: int = 0

    @property
    def periodic(self) -> bool:
        """Whether timers pace it, at one distance."""
        return self.loop is not None and self.loop.by_timer and self.loop.steady and self.jobs >= FEWEST_JOBS

    def to_json(self) -> dict[str, Any]:
        """As ``--json`` prints it."""
        loop = self.loop
        return {
            "tid": self.task.tid,
            "name": self.task.name,
            "scheduling": self.task.scheduling,
            "cpus": list(self.cpus),
            "jobs": self.jobs,
            "woken_by": loop.kinds if loop else {},
            "periodic": self.periodic,
            "on_grid": loop.on_grid if loop else False,
            "period_ns": loop.period_ns if loop else None,
            "jitter_ns": self.jitter_ns,
            "busy": self.busy_share,
        }


def look(program: Program, root: Root, wait: Callable[[float], object] = time.sleep) -> list[ThreadSeen]:
    """Every thread that the program has now. Raises RtmeterError as Attached does."""
    tasks = threads_of(program.pid, root)
    with tempfile.TemporaryDirectory(prefix="rtmeter-") as folder:
        with Attached([t.tid for t in tasks], Path(folder), root, is_32_bit=program.is_32_bit) as attached:
            began_ns = time.monotonic_ns()
            wait(LOOK_S)
            took_ns = time.monotonic_ns() - began_ns
        trace = attached.trace()
    found = []
    for task in tasks:
        told = sleeps_of(trace, task.tid)
        jobs = list(jobs_of(told.sleeps))
        intervals = sorted(later.wake_ns - job.wake_ns for job, later in pairwise(jobs))
        jitter = None
        if len(intervals) >= FEWEST_JOBS:
            p50, p99 = (intervals[quantile_index(len(intervals), share_of(p))] for p in ("50", "99"))
            jitter = p99 - p50
        cpus = tuple(sorted(allowed_cpus(root, task) or ()))
        busy = sum(job.busy_ns for job in jobs) / took_ns
        loop = loop_of(jobs) if jobs else None
        found.append(ThreadSeen(task, cpus, loop, len(jobs), busy, jitter, told.left))
    return found


def only_periodic(seen: Sequence[ThreadSeen], root: Root, started: Sequence[Process] = ()) -> Task:
    """The one that is periodic. Raises RtmeterError if that is none, or more than one;
    ``started``: processes that the program did."""
    periodic = [one.task for one in seen if one.periodic and is_there(one.task, root)]
    if len(periodic) == 1:
        return periodic[0]
    threads = "; ".join(f"{one.task.name} ({one.task.tid}): {words(one)}" for one in seen[:8])
    if periodic:
        message, remedy = f"is not told, and {len(periodic)} are periodic", "give one of them, or --all"
    else:
        message = "is not told, and none is periodic"
        remedy = f"give one (name or id) if you know better; in {LOOK_S:g} s there was {threads or 'none'}"
        remedy += f"; {meant_words(started)}" if started else ""
        return _refuse(message, remedy)
    return _refuse(message, f"{remedy}: {threads}")


def _refuse(message: str, remedy: str) -> Task:
    raise RtmeterError(message, field="thread", remedy=remedy)


def words(seen: ThreadSeen) -> str:
    """What wakes it, in a few words."""
    if seen.loop is None and seen.left:
        return "did no whole job"
    if seen.loop is None:
        return "never slept" if seen.task.state == "R" else "never woke"
    return f"{seen.loop.kind}, {seen.jobs} times"
