"""Records what the kernel tells of some threads by programs of ours: a sixth of what tracefs costs them.

One thread of normal priority reads the rings some twenty times a second and hands on what is whole. All is
gone with this process, however it ends: nothing of it has a name.
"""

from __future__ import annotations

import contextlib
import os
import platform
import threading
import time
from collections.abc import Callable, Collection, Sequence

import numpy as np

from rtmeter.explain.events import Trace, joined
from rtmeter.explain.marks import Mark
from rtmeter.host.root import Root
from rtmeter.trace.ebpf.btf import Types, UnavailableError, types_of
from rtmeter.trace.ebpf.columns import RecordColumns
from rtmeter.trace.ebpf.kernel import attach, load, misses
from rtmeter.trace.ebpf.programs import (
    KIND,
    LINE_BYTES,
    LOST,
    SECOND,
    STRUCTURES,
    TIME,
    Programs,
    TracepointCode,
)
from rtmeter.trace.ebpf.rings import RECORDS, WORDS, Read, Records, Rings
from rtmeter.trace.of_threads import FUNCTIONS, call_names_32, functions_of
from rtmeter.trace.recorder import RecordingTally, call_names

_EVERY_S = 0.05
_LAST_TRIES, _LAST_S = 100, 0.001
_BUDGET = "dl_task_timer"

Sink = Callable[[Trace, int], object]
"""Takes events in order of time, and the time until which nothing is to come any more."""


class RingsRecorder:
    """The threads ``tids`` (``is_32_bit``: their system calls have other numbers) from start() to stop().

    ``also``: one more thread whose system calls are recorded until leave_out(). Raises UnavailableError where
    this kernel takes no such programs."""

    def __init__(
        self,
        root: Root,
        tids: Collection[int],
        sink: Sink | None = None,
        *,
        is_32_bit: bool = False,
        also: int | None = None,
        records: int = RECORDS,
    ) -> None:
        known = functions_of(root)
        functions = {address: name for address, name in known.items() if name in FUNCTIONS}
        ticks = known.keys() - functions.keys()
        calls = call_names_32(platform.machine()) if is_32_bit else call_names(platform.machine())
        self._columns = RecordColumns(functions, calls)
        self._parts: list[Trace] = []
        self._sink = sink or (lambda part, _: self._parts.append(part))
        self._stack = contextlib.ExitStack()
        with contextlib.ExitStack() as made:
            types = types_of(root, STRUCTURES)
            self._rings = Rings(root, records)
            made.callback(self._rings.close)
            programs = Programs(self._rings.table, types, tids)
            budget = next((address for address, name in functions.items() if name == _BUDGET), None)
            self._loaded = _loaded(made, types, programs.all(budget, ticks))
            self._for_now = [] if also is None else _loaded(made, types, programs.calls([also]))
            self._stack = made.pop_all()
        self.marks: list[Mark] = []
        self._links: list[int] = []
        self._links_for_now: list[int] = []
        self._from_ns, self._to_ns = 0, 2**63
        """While all programs ran."""
        self._untils_ns = [0] * len(self._rings.read())
        self._waiting = np.empty((0, WORDS), np.uint64), np.empty(0, np.int64)
        self._events = self._lost = self._missed = 0
        self._done = threading.Event()
        self._thread = threading.Thread(target=self._run, name="rtmeter-trace", daemon=True)
        self.failed: BaseException | None = None
        """What the sink raised; nothing is recorded any more then."""

    def start(self) -> None:
        """Begins. Raises UnavailableError if a program cannot be attached."""
        try:
            self._links_for_now = [attach(program) for program in self._for_now]
            self._links = [attach(program) for program in self._loaded]
        except UnavailableError:
            self._let_go()
            raise
        self._from_ns = _now_ns()
        self._thread.start()

    def leave_out(self) -> None:
        """From now on records of the threads alone."""
        while self._links_for_now:
            os.close(self._links_for_now.pop())

    def stop(self) -> None:
        """Ends the recording and reads the rest. Raises what the sink raised."""
        if self._thread.ident is None:
            self._let_go()
            return
        self._done.set()
        self._thread.join()
        if self.failed is not None:
            raise self.failed

    @property
    def end_ns(self) -> int | None:
        """When it ended, once it has."""
        return self._to_ns if self._done.is_set() else None

    def trace(self) -> Trace:
        """All events, if they were not handed on."""
        return joined(self._parts)

    def tidy(self) -> None:
        """Nothing is on the disk."""

    def tally(self) -> RecordingTally:
        """What became of it, in numbers."""
        return RecordingTally(self._events, self._lost, self._events * LINE_BYTES, (), False)

    def _let_go(self) -> None:
        self.leave_out()
        while self._links:
            os.close(self._links.pop())
        self._stack.close()

    def _run(self) -> None:
        try:
            while not self._done.wait(_EVERY_S):
                self._hand_on(self._rings.read())
            self._to_ns = _now_ns()
            while self._links:  # nothing begins any more; what has begun ends at once
                os.close(self._links.pop())
            for _ in range(_LAST_TRIES):
                self._hand_on(self._rings.read())
                if not len(self._waiting[0]):
                    break
                time.sleep(_LAST_S)
        except BaseException as error:
            self.failed = error
        finally:
            self._let_go()

    def _hand_on(self, reads: Sequence[Read]) -> None:
        """What is complete, in order of time."""
        found, cpus = [self._waiting[0]], [self._waiting[1]]
        for read in reads:
            self._untils_ns[read.cpu] = max(self._untils_ns[read.cpu], read.until_ns)
            records = read.records
            if read.lost:
                at_ns = int(records[0, TIME // 8]) if len(records) else self._untils_ns[read.cpu]
                records = np.vstack([self._losing(at_ns, read.lost), records])
            found.append(records)
            cpus.append(np.full(len(records), read.cpu, np.int64))
        until_ns = min(self._untils_ns)
        if missed := self._not_run():
            found.append(self._losing(max(until_ns - 1, 0), missed))
            cpus.append(np.zeros(1, np.int64))
        records, of = np.vstack(found), np.concatenate(cpus)
        order = np.argsort(records[:, TIME // 8], kind="stable")
        records, of = records[order], of[order]
        limits = np.asarray([self._from_ns, min(until_ns, self._to_ns), until_ns], np.uint64)
        first, last, whole = np.searchsorted(records[:, TIME // 8], limits).tolist()
        self._waiting = records[whole:], of[whole:]
        if last > first:
            part = self._columns.of(records[first:last], of[first:last])
            self._events += len(part)
            self._sink(part, until_ns)

    def _losing(self, time_ns: int, count: int) -> Records:
        self._lost += count
        found = np.zeros((1, WORDS), np.uint64)
        found[0, TIME // 8], found[0, KIND // 8], found[0, SECOND // 8] = time_ns, LOST, count
        return found

    def _not_run(self) -> int:
        """How often a program did not run since the last time, as it ran already on that CPU."""
        now = sum(misses(program) for program in self._loaded)
        missed, self._missed = now - self._missed, now
        return missed


def _now_ns() -> int:
    return time.clock_gettime_ns(time.CLOCK_MONOTONIC)


def _loaded(stack: contextlib.ExitStack, types: Types, programs: Sequence[TracepointCode]) -> list[int]:
    found = []
    for tracepoint, code in programs:
        found.append(load(code, types.tracepoint(tracepoint), tracepoint))
        stack.callback(os.close, found[-1])
    return found
