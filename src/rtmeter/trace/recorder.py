"""Reads the pages of a tracefs instance into files, one a CPU, while something is measured.

One thread of normal priority, off the measured CPUs, some twenty times a second; the kernel keeps what comes
meanwhile.
"""

from __future__ import annotations

import contextlib
import os
import platform
import threading
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from importlib import resources
from pathlib import Path

from rtmeter.errors import RtmeterError
from rtmeter.explain.events import Trace
from rtmeter.host.root import Root
from rtmeter.host.threads import read_tasks
from rtmeter.trace.decode import Recorded, decoded
from rtmeter.trace.events import ALWAYS, EVERY, OPTIONAL
from rtmeter.trace.formats import Format, PageForm, format_of, page_form

BUFFER_KIB = 8192
"""For each CPU: some seconds, if the reader is held up."""

MOST_BYTES = 256 << 20
"""Of pages, of all CPUs together; what comes after is not recorded."""

_EVERY_S = 0.05
_AT_ONCE, _NOT_WAITING = 16, 2
"""Pages, as a pipe holds; SPLICE_F_NONBLOCK."""


@dataclass(frozen=True)
class Told:
    """What became of a recording: events, how many were lost, bytes of pages, events that the kernel has
    not got, and whether it broke off."""

    events: int
    lost: int
    bytes: int
    missing: tuple[str, ...]
    cut: bool


class Recorder:
    """A recording into ``folder`` from start() to stop(); then ``trace`` makes the table of it.

    ``instance``: the folder of the tracefs instance, as the kernel has it.
    """

    most_bytes = MOST_BYTES

    def __init__(self, instance: str, folder: Path, measured_cpus: set[int], root: Root) -> None:
        self._at, self._root, self._avoid = root.at(instance), root, measured_cpus
        self._folder = folder
        self._files: dict[int, Path] = {}
        self._bytes = 0
        self._cut_ns: int | None = None
        self._failed: OSError | None = None
        self._done = threading.Event()
        self._thread = threading.Thread(target=self._run, name="rtmeter-trace", daemon=True)

    def start(self) -> None:
        """Begins. Raises RtmeterError for what the kernel refuses."""
        missing = [event for event in ALWAYS if not (self._at / "events" / event).is_dir()]
        if missing:
            message = f"this kernel has no trace event {missing[0]}"
            raise RtmeterError(
                message, field="explain", remedy="use a kernel with CONFIG_SCHED_TRACER or FTRACE"
            )
        try:
            self._write("tracing_on", "0")
            self._write("trace_clock", "mono")
            self._write("buffer_size_kb", str(BUFFER_KIB))
            self._form = page_form((self._at / "events/header_page").read_text())
            self._formats = list(self._enabled())
            for pages in sorted((self._at / "per_cpu").glob("cpu*/trace_pipe_raw")):
                number = int(pages.parent.name.removeprefix("cpu"))
                self._files[number] = self._folder / f"trace.cpu{number}"
            self._before = _kernel_threads(self._root)
            self._write("tracing_on", "1")
        except OSError as error:
            message = f"tracefs refuses: {(error.strerror or str(error)).lower()} ({error.filename})"
            raise RtmeterError(message, field="explain", remedy="run rtmeter as root on the host") from None
        self._thread.start()

    def stop(self) -> None:
        """Ends the recording and reads the rest."""
        if self._thread.ident is None:
            return
        with contextlib.suppress(OSError):
            self._write("tracing_on", "0")
        self._done.set()
        self._thread.join()

    def trace(self) -> Trace:
        """The events. Raises RtmeterError if they could not be written."""
        if self._failed is not None:
            message = f"the trace cannot be written: {(self._failed.strerror or '').lower()}"
            raise RtmeterError(message, field="explain", remedy="free space there, or leave it out")
        offset_ns = time.clock_gettime_ns(time.CLOCK_REALTIME) - time.clock_gettime_ns(time.CLOCK_MONOTONIC)
        recorded = Recorded(
            form=self._form,
            formats=self._formats,
            cpus={number: _pages(file, self._form) for number, file in self._files.items()},
            kernel_threads=_both(self._before, _kernel_threads(self._root)),
            calls=call_names(platform.machine()),
            realtime_offset_ns=offset_ns,
            cut_ns=self._cut_ns,
        )
        return decoded(self._told_beside(recorded))

    def _told_beside(self, recorded: Recorded) -> Recorded:
        return recorded

    def tidy(self) -> None:
        """Removes the pages' files."""
        for file in self._files.values():
            file.unlink(missing_ok=True)

    def told(self, trace: Trace) -> Told:
        """What became of it, in numbers."""
        from rtmeter.explain.events import LOST

        here = {form.name for form in self._formats}
        missing = tuple(event for event in OPTIONAL if event.rpartition("/")[2] not in here)
        lost = sum(max(v, 1) for kind, v in zip(trace.event, trace.value, strict=True) if kind == LOST)
        return Told(len(trace), lost, self._bytes, missing, self._cut_ns is not None)

    def _enabled(self) -> Iterator[Format]:
        for event in EVERY:
            folder = self._at / "events" / event
            if folder.is_dir():
                self._write(f"events/{event}/enable", "1")
                yield format_of(event.rpartition("/")[2], (folder / "format").read_text())

    def _write(self, name: str, text: str) -> None:
        (self._at / name).write_text(text)

    def _run(self) -> None:
        with contextlib.suppress(OSError):  # the CPUs left over may have gone offline
            os.sched_setaffinity(0, (own := os.sched_getaffinity(0)) - self._avoid or own)
        with contextlib.ExitStack() as stack:
            pages = _Pages(stack)
            for number, file in self._files.items():
                pages.add(self._at / f"per_cpu/cpu{number}/trace_pipe_raw", file)
            last = False
            while not last and self._cut_ns is None:
                last = self._done.wait(_EVERY_S)
                try:
                    self._bytes = pages.move(self._form.size, rest=last)
                    if self._bytes > self.most_bytes:
                        self._cut_ns = time.clock_gettime_ns(time.CLOCK_MONOTONIC)
                        self._write("tracing_on", "0")
                except OSError as error:
                    self._failed = error
                    return


class _Pages:
    """Moves pages from the kernel into files without copying them. Only whole ones: to read those that are
    being filled would be recorded itself, and never end."""

    def __init__(self, stack: contextlib.ExitStack) -> None:
        self._stack, self._moved = stack, 0
        self._ends: list[tuple[int, int]] = []
        self._out, self._in = os.pipe2(os.O_CLOEXEC)
        for end in (self._out, self._in):
            stack.callback(os.close, end)

    def add(self, source: Path, file: Path) -> None:
        ends = (os.open(source, os.O_RDONLY | os.O_NONBLOCK), os.open(file, os.O_WRONLY | os.O_CREAT, 0o644))
        for end in ends:
            self._stack.callback(os.close, end)
        self._ends.append(ends)

    def move(self, size: int, *, rest: bool) -> int:
        """What is there; with ``rest``, when nothing is recorded any more, also what is in no whole page.
        Returns how many bytes were moved, ever."""
        for source, file in self._ends:
            with contextlib.suppress(BlockingIOError):
                while count := os.splice(source, self._in, _AT_ONCE * size, flags=_NOT_WAITING):
                    while count:
                        moved = os.splice(self._out, file, count)
                        self._moved, count = self._moved + moved, count - moved
            if rest:
                with contextlib.suppress(BlockingIOError):
                    while page := os.read(source, size):
                        os.write(file, page.ljust(size, b"\0"))
                        self._moved += size
        return self._moved


def call_names(architecture: str) -> Sequence[str]:
    """Names of system calls by number; none for an architecture that is not known."""
    file = resources.files("rtmeter.trace") / "calls" / f"{architecture}.txt"
    return file.read_text().split() if file.is_file() else ()


def _kernel_threads(root: Root) -> dict[int, str]:
    return {task.tid: task.name for task in read_tasks(root) if task.is_kernel}


def _both(before: dict[int, str], after: dict[int, str]) -> dict[int, set[str]]:
    ids = before.keys() | after.keys()
    return {tid: {there[tid] for there in (before, after) if tid in there} for tid in ids}


def _pages(file: Path, form: PageForm) -> Iterator[bytes]:
    with file.open("rb") as pages:
        while page := pages.read(form.size):
            yield page
