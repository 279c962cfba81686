"""A Python program's own loop → what `rtmeter verdict` and its kind read: librtmeter for Python.

    from rtmeter.loop import Loop

    with Loop("arm", "1ms") as loop:
        for _ in loop:      # sleeps on the grid
            control()

or, around sleeps of one's own, ``loop.wake(due_ns)`` and ``loop.done()``.
"""

from __future__ import annotations

import ctypes
import os
from collections.abc import Callable, Iterator
from types import TracebackType
from typing import Any, Self

from rtmeter.errors import RtmeterError
from rtmeter.loop.library import DUE_UNKNOWN, LATE, Options, library
from rtmeter.values import parse_positive_ns

__all__ = ["Loop"]

_CATCH_UP, _TRACE_MARKER, _BREAK_TRACE = 1, 2, 4

OnLate = Callable[[int, int, int], None]
"""k, release and stamp, in nanoseconds, of a release that was late or skipped."""


class Loop:
    """A loop that is recorded, from now until close(). Not for several threads at once.

    ``name`` and ``folder``: FOLDER/NAME/<start>.loop is written. Times are text with a unit (``"1ms"``) or
    nanoseconds, above zero; ``deadline``: of the end of the work, from its release (default: the period);
    ``miss_ratio``: the share of releases that may miss it (default: none); ``warm_up``: releases that are not
    judged; ``whole``: how long the last releases are kept whole; ``late_bytes``: for late releases, kept for
    good. ``on_late`` is called after each late release; ``trace_marker`` writes one into the kernel's trace,
    ``break_trace`` stops that at the first. ``catch_up``: sleep() serves each release that has passed.

    Raises RtmeterError if it cannot be recorded.
    """

    def __init__(
        self,
        name: str,
        period: str | int,
        *,
        folder: str | os.PathLike[str] = "results",
        deadline: str | int | None = None,
        miss_ratio: float | None = None,
        warm_up: str | int = "1s",
        whole: str | int = "4h",
        late_bytes: int = 256 << 20,
        on_late: OnLate | None = None,
        trace_marker: bool = False,
        break_trace: bool = False,
        catch_up: bool = False,
    ) -> None:
        self._handle: int | None = None
        self._library: Any = library()
        self._on_late = LATE() if on_late is None else LATE(lambda _, k, release, at: on_late(k, release, at))
        flags = _CATCH_UP * catch_up | _TRACE_MARKER * trace_marker | _BREAK_TRACE * break_trace
        options = Options(
            size=ctypes.sizeof(Options),
            folder=_text("folder", folder),
            deadline_ns=0 if deadline is None else _ns("deadline", deadline),
            miss_ratio=miss_ratio or 0.0,
            warm_up_ns=_ns("warm_up", warm_up),
            whole_ns=_ns("whole", whole),
            late_bytes=_int64(late_bytes),
            flags=flags,
            on_late=self._on_late,
        )
        error = ctypes.create_string_buffer(1024)
        period_ns = _ns("period", period)
        opened = self._library.rtm_loop_open(
            _text("name", name), period_ns, ctypes.byref(options), error, len(error)
        )
        if opened is None:
            raise RtmeterError(error.value.decode(errors="replace"), field="loop", value=name)
        self._handle = opened
        self._wake, self._done = self._library.rtm_loop_wake, self._library.rtm_loop_done

    def sleep(self) -> int:
        """Sleeps until the next release on the grid, stamps the wake-up, and returns the release (ns)."""
        return int(self._library.rtm_loop_sleep(self._handle))

    def wake(self, due_ns: int | None = None) -> None:
        """Stamps a wake-up. ``due_ns``: what was slept for, ns of time.monotonic_ns(); without it the grid is
        that of the earliest wake-up."""
        self._wake(self._handle, DUE_UNKNOWN if due_ns is None else due_ns)

    def done(self) -> None:
        """Stamps the end of the work."""
        self._done(self._handle)

    def __iter__(self) -> Iterator[int]:
        """A release after the other, in ns: each is slept for, and done when the next one is asked for, or
        the iteration is left."""
        while self._handle is not None:
            release_ns = self.sleep()
            try:
                yield release_ns
            finally:
                self.done()

    def close(self) -> None:
        """Writes what is left. Raises RtmeterError if something could not be written."""
        handle, self._handle = self._handle, None
        if handle is None:
            return
        error = ctypes.create_string_buffer(1024)
        if self._library.rtm_loop_close(handle, error, len(error)) != 0:
            raise RtmeterError(error.value.decode(errors="replace"), field="loop")

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()


def _ns(field: str, value: str | int) -> int:
    """Above zero, which the library takes for what was not given."""
    try:
        if value == 0:
            raise ValueError("must be longer than zero")
        return _int64(value) if isinstance(value, int) else parse_positive_ns(value)
    except ValueError as error:
        raise RtmeterError(str(error.args[0]), field=field, value=value, remedy="give e.g. 1ms") from None


def _int64(value: int) -> int:
    """Or the nearest that is one, which the library refuses: ctypes would keep the lowest bits."""
    return min(max(value, -(2**63)), 2**63 - 1)


def _text(field: str, value: str | os.PathLike[str]) -> bytes:
    """Without a NUL, which would be its end for the library."""
    if b"\0" in (text := os.fsencode(value)):
        raise RtmeterError("has a NUL byte in it", field=field, value=repr(value), remedy="leave it out")
    return text
