"""Releases of what is being measured, as soon as they are known: a long recording keeps what some need."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from operator import attrgetter
from pathlib import Path
from typing import Any

import numpy as np

from rtmeter.errors import RtmeterError
from rtmeter.samples.follow import Follower
from rtmeter.samples.meta import LogMeta
from rtmeter.statistics import bins
from rtmeter.statistics.drift import Bools
from rtmeter.statistics.quantities import Columns, Ints
from rtmeter.statistics.served import served
from rtmeter.trace.chosen import Span, span_of


class _Lateness:
    """Which releases are late: beyond the deadline; without one, those of the latest hundredth so far."""

    def __init__(self, deadline_ns: int | None) -> None:
        self._deadline_ns = deadline_ns
        self._counts = np.zeros(bins.BINS, np.int64)

    def of(self, lateness_ns: Ints, counts: Bools | None = None) -> Bools:
        """``counts``: which of them the hundredth is of; None: all."""
        self._counts += bins.count(lateness_ns if counts is None else lateness_ns[counts])
        return lateness_ns > self._limit_ns()

    def _limit_ns(self) -> int:
        if self._deadline_ns is not None:
            return self._deadline_ns
        return bins.quantile_range_ns(self._counts, ("99", "99"))[0] if self._counts.any() else 0


class LoggedReleases:
    """Those of a cell, from its log as it grows: the first of ``logs`` that is there, for of a target's one a
    part comes before the whole."""

    def __init__(self, logs: Sequence[Path], deadline_ns: int | None, late_ns: int) -> None:
        self._logs, self._lateness, self._late_ns = logs, _Lateness(deadline_ns), late_ns
        self._log = Follower(logs[0])
        self._last: int | None = None

    def new(self) -> Iterator[Span]:
        """Since the last call. What the log has wrong is told by who reads it afterwards."""
        self._log.path = next((log for log in self._logs if log.exists()), self._logs[0])
        with suppress(RtmeterError):
            for rows in self._log.new():
                meta = LogMeta.of(self._log.header, self._log.path)
                known = {"measurement": meta.measurement, "mode": meta.mode}
                yield from self._spans({"period_ns": 0} | meta.config | known, rows)

    def _spans(self, meta: Mapping[str, Any], rows: Columns) -> Iterator[Span]:
        for one in served(meta, [rows]):
            late = self._lateness.of(one.lateness_ns, one.measured)
            columns = (one.k, one.before_ns, one.release_ns, one.stamp_ns, late, one.measured)
            for k, before, release, stamp, is_late, counts in zip(
                *(c.tolist() for c in columns), strict=True
            ):
                before_ns, self._last = self._last or before, release
                if counts:
                    yield span_of(k, before_ns, release, stamp, late=is_late, late_ns=self._late_ns)


class Teller:
    """Tells of the releases of one thread, in order of time."""

    def __init__(self, deadline_ns: int | None, late_ns: int) -> None:
        self._lateness, self._late_ns = _Lateness(deadline_ns), late_ns
        self._told: deque[tuple[int, int, int]] = deque()
        self._before: int | None = None
        self.last_ns: int | None = None
        """The release that was told last."""
        self.is_over: Callable[[], bool] = lambda: False
        """Whether nothing comes any more."""

    def tell(self, release_ns: int, stamp_ns: int, free_ns: int) -> None:
        """Its lateness is that of the stamp; its surroundings last until ``free_ns``."""
        self._told.append((release_ns, stamp_ns, free_ns))
        self.last_ns = release_ns

    def until(self, time_ns: int) -> Iterator[Span]:
        """Those that were told, up to a time. Of the threads together no k is known yet: it is their time."""
        told = []
        while self._told and self._told[0][0] <= time_ns:
            told.append(self._told.popleft())
        times = np.array(told, np.int64).reshape(-1, 3)
        late = self._lateness.of(times[:, 1] - times[:, 0]).tolist()
        for (release, _, free), is_late in zip(told, late, strict=True):
            yield span_of(release, self._before, release, free, late=is_late, late_ns=self._late_ns)
            self._before = release


class ToldReleases:
    """Those of threads whose cells have no log, as whoever measures them tells. They go on together, so that
    nothing is gone that one of them still needs: one that tells nothing holds the others up, for a while."""

    def __init__(self, deadline_ns: int | None, late_ns: int) -> None:
        self._asked = deadline_ns, late_ns
        self._tellers: list[Teller] = []
        self._nobody_tells = self._is_over = False
        self._last_ns = 0
        self.overtaken = False
        """Whether a release was told when those long after it had been gone through."""

    def teller(self) -> Teller:
        """Of one more thread: of all of them, before the first tells anything."""
        self._tellers.append(Teller(*self._asked))
        return self._tellers[-1]

    def nobody_tells(self) -> None:
        """Nothing can be told while it is measured."""
        self._nobody_tells = True

    def end(self) -> None:
        """All is told."""
        self._is_over = True

    def new(self) -> list[Span] | None:
        """Since the last call, in order of time; None if nobody tells."""
        if self._nobody_tells:
            return None
        until_ns = self._known_until_ns()
        spans = sorted((span for one in self._tellers for span in one.until(until_ns)), key=attrgetter("k"))
        if spans:
            self.overtaken |= spans[0].k < self._last_ns
            self._last_ns = max(self._last_ns, spans[-1].k)
        return spans

    def _known_until_ns(self) -> int:
        """Until when every thread has told, but for one that lags behind for _PATIENCE_NS."""
        lasts = [one.last_ns for one in self._tellers if not (self._is_over or one.is_over())]
        told = [last for last in lasts if last is not None]
        if len(told) == len(lasts):
            return max(min(told, default=_NEVER_NS), max(told, default=0) - _PATIENCE_NS)
        return max(told, default=0) - _PATIENCE_NS


_PATIENCE_NS = 60 * 10**9
"""What the others tell meanwhile is held in memory."""

_NEVER_NS = 2**62
