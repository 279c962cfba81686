"""Reads the pages of a tracefs instance into files, a few a CPU, while something is measured.

One thread of normal priority, off the measured CPUs, some twenty times a second; the kernel keeps what comes
meanwhile. Of a long run only the surroundings of chosen releases stay (spool.py).
"""

from __future__ import annotations

import contextlib
import errno
import os
import platform
import shutil
import sys
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from importlib import resources
from pathlib import Path
from typing import TypeVar

import numpy as np

from rtmeter.errors import RtmeterError
from rtmeter.explain.events import LOST, NO_VALUE, Trace, joined
from rtmeter.host.affinity import keep_off
from rtmeter.host.root import Root
from rtmeter.host.threads import read_tasks
from rtmeter.trace.choice import TraceChoice
from rtmeter.trace.chosen import Chooser, Span
from rtmeter.trace.decode import MOST_ROWS, parts_of
from rtmeter.trace.events import ALWAYS, OPTIONAL
from rtmeter.trace.formats import Format, format_of, page_form
from rtmeter.trace.recorded import Recorded
from rtmeter.trace.spool import MOST_BYTES, Pages, Spool, touching

BUFFER_KIB = 8192
"""For each CPU: some seconds, if the reader is held up."""

_Got = TypeVar("_Got", int, bytes)

_EVERY_S = 0.05
_ALIKE_NS = 100_000
_READS = 20
_AT_ONCE, _NOT_WAITING = 16, 2
"""Pages, as a pipe holds; SPLICE_F_NONBLOCK."""

_MOST_BYTES_AT_ONCE = 2 * 1024 * BUFFER_KIB
"""Of a CPU: more than the kernel keeps, with the heads of its pages."""


@dataclass(frozen=True)
class RecordingTally:
    """What became of a recording: events, how many were lost, bytes of pages that came, events that the
    kernel has not got, and whether it broke off. ``kept``: the releases whose surroundings stayed, None if
    all did; ``share`` of the late ones that did; ``overrun``: pages went before their releases were known."""

    events: int
    lost: int
    bytes: int
    missing: tuple[str, ...]
    cut: bool
    kept: tuple[int, ...] | None = None
    share: float = 1.0
    overrun: bool = False


class Recorder:
    """A recording into ``folder`` from start() to stop(); then parts() makes the table of it.

    ``instance``: the folder of the tracefs instance, as the kernel has it. ``releases`` gives those that have
    come since it was called last, None if nobody will tell after all; without it all is kept, until there is
    no more room.
    """

    most_bytes = MOST_BYTES
    """Of pages, of all CPUs together."""

    def __init__(
        self,
        instance: str,
        folder: Path,
        measured_cpus: set[int],
        root: Root,
        releases: Callable[[], Iterable[Span] | None] | None = None,
        choice: TraceChoice = TraceChoice(),  # noqa: B008
    ) -> None:
        self._instance, self._root, self._avoid = instance, root, measured_cpus
        self._folder, self._releases = folder, releases
        self._choice, self.most_bytes = choice, choice.most_bytes or self.most_bytes
        self._chooser = Chooser(late_ns=choice.late_ns) if releases else None
        self._spool: Spool | None = None
        self._cpus: list[int] = []
        self._events = self._lost = self._bytes = 0
        self._cut_ns: int | None = None
        self._failed: OSError | None = None
        self._free_at_failure = ""
        self._on: int | None = None
        """The file that switches it on and off."""
        self._done = threading.Event()
        self._thread = threading.Thread(target=self._run, name="rtmeter-trace", daemon=True)

    def start(self) -> None:
        """Begins. Raises RtmeterError for what the kernel refuses."""
        missing = [event for event in ALWAYS if not self._root.exists(self._file(f"events/{event}"))]
        if missing:
            message = f"this kernel has no trace event {missing[0]}"
            raise RtmeterError(
                message, field="explain", remedy="use a kernel with CONFIG_SCHED_TRACER or FTRACE"
            )
        try:
            self._open_switch()
            self._switch(on=False)
            self._write("trace_clock", "mono")
            self._write("buffer_size_kb", str(BUFFER_KIB))
            self._form = page_form(self._root.read(self._file("events/header_page")) or "")
            self._formats = list(self._enabled())
            pages = self._root.glob(self._file("per_cpu/cpu*/trace_pipe_raw"))
            self._cpus = sorted(int(one.split("/")[-2].removeprefix("cpu")) for one in pages)
            self._spool = self._new_spool()
            self._before = _kernel_threads(self._root)
            self._begin()
        except OSError as error:
            self._close_switch()
            raise _refused(error) from None
        except BaseException:
            self._close_switch()
            raise

    def _new_spool(self) -> Spool:
        return Spool(self._folder, self._cpus, self._form.size, self._chooser, self.most_bytes)

    def _begin(self) -> None:
        self._switch(on=True)
        self._thread.start()

    def stop(self) -> None:
        """Ends the recording and reads the rest."""
        if self._thread.ident is None:
            return
        if self._on is not None:
            self._switch(on=False)
        self._done.set()
        self._thread.join()
        self._close_switch()

    def pause(self) -> int:
        """Records nothing until resume(); returns since when."""
        now_ns = time.monotonic_ns()
        self._switch(on=False)
        return now_ns

    def resume(self) -> int:
        """Records again; what was known of threads and timers before may be wrong. Returns since when."""
        self._switch(on=True)
        return time.monotonic_ns()

    def trace(self) -> Trace:
        """All events at once. Raises RtmeterError if they could not be written."""
        return joined(self.parts(sys.maxsize))

    def parts(
        self, most_rows: int = MOST_ROWS, spans: Sequence[tuple[int, int]] | None = None
    ) -> Iterator[Trace]:
        """The events, in parts that follow one another; with ``spans`` those of around these only. Raises
        RtmeterError as trace() does."""
        if self._failed is not None:
            raise self._why(self._failed)
        spool, offsets_ns = self._spool, self._offsets_ns()
        recorded = Recorded(
            form=self._form,
            formats=self._formats,
            cpus={number: _pages(spool, number, spans) for number in self._cpus} if spool else {},
            kernel_threads=_both(self._before, _kernel_threads(self._root)),
            calls=call_names(self._architecture()),
            realtime_offset_ns=offsets_ns[0],
            cut_ns=self._cut_ns,
            offsets_ns=clocks_apart(offsets_ns),
        )
        for part in parts_of(self._told_beside(recorded), most_rows):
            self._events += len(part)
            lost = np.asarray(part.value)[np.asarray(part.event) == LOST]
            self._lost += int(np.where(lost == NO_VALUE, 1, lost).sum())
            yield part

    def _architecture(self) -> str:
        """As the kernel calls itself."""
        return platform.machine()

    def _offsets_ns(self) -> tuple[int, ...]:
        """By how much CLOCK_REALTIME, CLOCK_BOOTTIME and CLOCK_TAI show more than CLOCK_MONOTONIC."""
        return tuple(offset_ns(clock) for clock in (time.CLOCK_REALTIME, time.CLOCK_BOOTTIME, time.CLOCK_TAI))

    def _why(self, error: OSError) -> RtmeterError:
        """Whether the disk or the kernel refused, and how much room there is."""
        said = (error.strerror or str(error)).lower()
        if str(error.filename).startswith(str(self._root.at(self._instance))):
            message = f"the kernel's events cannot be read: {said} ({error.filename})"
            return RtmeterError(message, field="explain", remedy="see dmesg, or leave it out")
        took = f"{self._free_at_failure}; the trace has {self._bytes >> 20:,} MiB"
        message = f"the trace cannot be written: {said} ({self._folder}, {took})"
        return RtmeterError(message, field="explain", remedy="free space there, or leave it out")

    def _told_beside(self, recorded: Recorded) -> Recorded:
        return recorded

    def tidy(self) -> None:
        """Removes the pages' files."""
        if self._spool is not None:
            self._spool.tidy()

    @property
    def kept(self) -> tuple[int, ...] | None:
        """The releases whose surroundings stayed; None if everything did."""
        whole = self._spool is None or self._spool.whole or self._chooser is None
        return None if whole or self._chooser is None else tuple(span.k for span in self._chooser.kept)

    def tally(self) -> RecordingTally:
        """What became of it, in numbers, once parts() has ended."""
        here = {form.name for form in self._formats}
        asked = (event for event in self._choice.events if event in OPTIONAL)
        missing = tuple(event for event in asked if event.rpartition("/")[2] not in here)
        share = self._chooser.share if self._chooser else 1.0
        overrun = bool(self._chooser and self._spool and self._spool.overrun)
        cut = self._cut_ns is not None
        return RecordingTally(self._events, self._lost, self._bytes, missing, cut, self.kept, share, overrun)

    def _enabled(self) -> Iterator[Format]:
        yield from self._enable(dict.fromkeys(self._choice.events, ""))

    def _enable(self, conditions: Mapping[str, str]) -> Iterator[Format]:
        """The events that this kernel has got, by name; those that do not meet the condition are left out."""
        names = {event: self._file(f"events/{event}/format") for event in conditions}
        texts = self._root.read_all(names.values())
        for event, name in names.items():
            if name in texts:
                if conditions[event]:
                    self._write(f"events/{event}/filter", conditions[event])
                self._write(f"events/{event}/enable", "1")
                yield format_of(event.rpartition("/")[2], texts[name])

    def _file(self, name: str) -> str:
        return f"{self._instance}/{name}"

    def _write(self, name: str, text: str) -> None:
        try:
            self._root.write(self._file(name), text)
        except OSError as error:
            error.filename = error.filename or self._file(name)
            raise

    def _open_switch(self) -> None:
        self._on = os.open(self._root.at(self._file("tracing_on")), os.O_WRONLY | os.O_CLOEXEC)

    def _close_switch(self) -> None:
        """Else nobody could remove the instance."""
        if self._on is not None:
            os.close(self._on)
        self._on = None

    def _switch(self, *, on: bool) -> None:
        """By the file as it was opened: whoever mounted tracefs may take it away meanwhile."""
        assert self._on is not None
        os.write(self._on, b"1" if on else b"0")

    def _run(self) -> None:
        with contextlib.suppress(OSError):  # the CPUs left over may have gone offline
            keep_off(self._avoid)
        if self._spool is not None:
            try:
                self._move(self._spool)
            except OSError as error:
                self._failed, self._free_at_failure = error, _free(self._folder)

    def _move(self, spool: Spool) -> None:
        with contextlib.ExitStack() as stack:
            pages = _Pages(stack, spool)
            for number in self._cpus:
                source = self._file(f"per_cpu/cpu{number}/trace_pipe_raw")
                pages.add(number, self._root.at(source))
            last = False
            while not last and self._cut_ns is None:
                last = self._done.wait(_EVERY_S)
                try:
                    pages.move(self._form.size, rest=last)
                finally:
                    self._bytes = pages.moved
                self._heed_releases(spool)
                if not spool.settle():
                    self._cut_ns = time.clock_gettime_ns(time.CLOCK_MONOTONIC)
                    self._switch(on=False)
            spool.end()

    def _heed_releases(self, spool: Spool) -> None:
        if self._chooser is None or self._releases is None:
            return
        told = self._releases()
        if told is None and spool.whole:
            self._chooser = None
            spool.keep_all()
        else:
            self._chooser.add(told or ())


class _Pages:
    """Moves pages from the kernel into files without copying them. Only whole ones: to read those that are
    being filled would be recorded itself, and never end. ``moved``: bytes, ever."""

    def __init__(self, stack: contextlib.ExitStack, spool: Spool) -> None:
        self._stack, self._spool, self.moved = stack, spool, 0
        self._sources: dict[int, int] = {}
        self._paths: dict[int, Path] = {}
        self._out, self._in = os.pipe2(os.O_CLOEXEC)
        for end in (self._out, self._in):
            stack.callback(os.close, end)

    def add(self, cpu: int, source: Path) -> None:
        self._paths[cpu] = source
        self._sources[cpu] = os.open(source, os.O_RDONLY | os.O_NONBLOCK)
        self._stack.callback(os.close, self._sources[cpu])

    def move(self, size: int, *, rest: bool) -> None:
        """What is there, no more than the kernel can have kept: it may write as fast as this reads. With
        ``rest``, when nothing is recorded any more, also what is in no whole page. Raises OSError with the
        file that refuses."""
        for cpu, source in self._sources.items():
            file, most = self._spool.files[cpu], self.moved + _MOST_BYTES_AT_ONCE
            with contextlib.suppress(BlockingIOError):
                while self.moved < most and (count := self._from(cpu, self._splice, source, _AT_ONCE * size)):
                    while count:
                        moved = os.splice(self._out, file, count)
                        self.moved, count = self.moved + moved, count - moved
            if rest:
                most = self.moved + _MOST_BYTES_AT_ONCE
                with contextlib.suppress(BlockingIOError):
                    while self.moved < most and (page := self._from(cpu, os.read, source, size)):
                        os.write(file, page.ljust(size, b"\0"))
                        self.moved += size

    def _splice(self, source: int, count: int) -> int:
        return os.splice(source, self._in, count, flags=_NOT_WAITING)

    def _from(self, cpu: int, read: Callable[[int, int], _Got], source: int, count: int) -> _Got:
        """Reads from the kernel; what it refuses has its file's name."""
        try:
            return read(source, count)
        except OSError as error:
            error.filename = str(self._paths[cpu])
            raise


def _pages(spool: Spool, cpu: int, spans: Sequence[tuple[int, int]] | None) -> Pages:
    return spool.pages(cpu) if spans is None else touching(spool.pages(cpu), spans)


def _refused(error: OSError) -> RtmeterError:
    message = f"tracefs refuses: {(error.strerror or str(error)).lower()} ({error.filename})"
    denied = error.errno in (errno.EACCES, errno.EPERM, errno.EROFS, errno.ENOENT)
    remedy = "run rtmeter as root on the host" if denied else "see dmesg, or leave it out"
    return RtmeterError(message, field="explain", remedy=remedy)


def _free(folder: Path) -> str:
    try:
        return f"{shutil.disk_usage(folder).free >> 20:,} MiB free"
    except OSError as error:
        return f"how much is free is not known: {(error.strerror or '').lower()}"


def offset_ns(clock: int) -> int:
    """By how much a clock shows more than the monotonic one, read where both were read closest together."""
    read, here = time.clock_gettime_ns, time.CLOCK_MONOTONIC
    reads = [(read(here), read(clock), read(here)) for _ in range(_READS)]
    before, there, after = min(reads, key=lambda one: one[2] - one[0])
    return there - (before + after) // 2


def clocks_apart(offsets_ns: Iterable[int]) -> list[int]:
    """Without those of the monotonic clock, or of one before, but for what reading it takes."""
    apart: list[int] = []
    for offset in offsets_ns:
        if all(abs(offset - other) > _ALIKE_NS for other in (0, *apart)):
            apart.append(offset)
    return apart


def call_names(architecture: str) -> Sequence[str]:
    """Names of system calls by number; none for an architecture that is not known."""
    file = resources.files("rtmeter.trace") / "calls" / f"{architecture}.txt"
    return file.read_text().split() if file.is_file() else ()


def _kernel_threads(root: Root) -> dict[int, str]:
    return {task.tid: task.name for task in read_tasks(root) if task.is_kernel}


def _both(before: dict[int, str], after: dict[int, str]) -> dict[int, set[str]]:
    ids = before.keys() | after.keys()
    return {tid: {there[tid] for there in (before, after) if tid in there} for tid in ids}
