"""A thread's rows, written while it is recorded: neither memory nor pages grow with the run."""

from __future__ import annotations

import queue
import threading
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any

from rtmeter.attach.follow import Followed, Part
from rtmeter.attach.jobs import Job
from rtmeter.errors import RtmeterError
from rtmeter.explain.events import Trace
from rtmeter.model import SERVED, WARM_UP_FLAG
from rtmeter.samples import ColumnsFile

_MOST_WAITING = 200
"""Parts, of a twentieth of a second each: whoever cannot keep up for so long loses events."""

PERIOD_NS = 1_000_000
"""Of a thread whose period is not told by anything."""


class Written:
    """The rows of a thread in ``file``: ``rows``, of which ``served``; ``followed`` tells of them."""

    def __init__(self, followed: Followed, file: Path) -> None:
        self.followed, self.file = followed, file
        self.rows = self.served = 0

    def write(self) -> None:
        """Reads all that comes. Raises RtmeterError or OSError if it cannot be written."""
        target: ColumnsFile | None = None
        try:
            for piece in self.followed.pieces():
                if target is None:
                    target = ColumnsFile(piece, self._about(), self.file)
                early = max(self.followed.warm_up - self.rows, 0)
                piece["status"][:early] |= WARM_UP_FLAG
                self.rows += len(piece["status"])
                self.served += int((piece["status"] & ~WARM_UP_FLAG == SERVED).sum())
                target.write(piece)
        finally:
            if target is not None:
                target.close()

    def _about(self) -> dict[str, Any]:
        period_ns = self.followed.loop.period_ns or PERIOD_NS
        about = {"measurement": "loop", "mode": None, "period_ns": period_ns}
        return about | {"warm_up": self.followed.warm_up}


class Following:
    """Writes the rows of ``tid`` into ``file`` as its events come: see() takes them, end() waits until all
    are written. ``tell``: as Followed has it."""

    def __init__(
        self,
        tid: int,
        file: Path,
        period_ns: int | None,
        warm_up_ns: int,
        overdue_ns: int | None = None,
        *,
        until_wake: bool = False,
        tell: Callable[[Job], None] | None = None,
    ) -> None:
        self._parts: queue.Queue[Part | None] = queue.Queue(_MOST_WAITING)
        asked = period_ns, warm_up_ns, None, overdue_ns
        followed = Followed(tid, self._coming(), *asked, until_wake=until_wake, tell=tell)
        self.written = Written(followed, file)
        self._error: BaseException | None = None
        self._thread = threading.Thread(target=self._run, name="rtmeter-rows", daemon=True)
        self._thread.start()

    def see(self, part: Trace, until_ns: int | None) -> None:
        """Events in order of time, and until when they are complete; None: all that there is."""
        while self._error is None:
            try:
                self._parts.put((part, until_ns), timeout=1)
                return
            except queue.Full:
                continue

    def end(self, end_ns: int | None = None, *, given_up: bool = False) -> None:
        """``written`` is whole then; ``end_ns``: when the recording ended. Raises what writing raised, unless
        it was given up."""
        self.written.followed.end_ns = end_ns
        while self._thread.is_alive():
            try:
                self._parts.put(None, timeout=1)
                break
            except queue.Full:
                continue
        self._thread.join()
        if not given_up:
            self.check()

    def over(self) -> bool:
        """Whether nothing comes of the thread any more."""
        return self.written.followed.over

    def check(self) -> None:
        """Raises what writing raised, as soon as it has."""
        if isinstance(self._error, OSError):
            said = (self._error.strerror or str(self._error)).lower()
            message = f"cannot be written: {said}"
            remedy = "free space there, then measure again"
            raise RtmeterError(message, field="out", value=str(self.written.file.parent), remedy=remedy)
        if self._error is not None:
            raise self._error

    def _coming(self) -> Iterator[Part]:
        while (part := self._parts.get()) is not None:
            yield part

    def _run(self) -> None:
        try:
            self.written.write()
        except BaseException as error:
            self._error = error


def written_of(
    trace: Trace,
    tid: int,
    file: Path,
    period_ns: int | None,
    warm_up_ns: int,
    jobs: Iterable[Job] | None = None,
    overdue_ns: int | None = None,
    *,
    until_wake: bool = False,
) -> Written:
    """The same of a whole recording; ``jobs``: of a callback that the thread calls."""
    asked = period_ns, warm_up_ns, jobs, overdue_ns
    found = Written(Followed(tid, [(trace, None)], *asked, until_wake=until_wake), file)
    found.write()
    return found
