"""The kernel's events of a cell, recorded while it is measured, for rtmeter explain."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any, Self

import numpy as np

from rtmeter.conditions.recorder_there import RecorderThere
from rtmeter.conditions.spool_there import followed
from rtmeter.errors import RtmeterError
from rtmeter.host.remote_root import RemoteRoot
from rtmeter.host.root import Root
from rtmeter.model import TRACE_BYTES, Doubt
from rtmeter.results.store import CLIENT_LOG
from rtmeter.samples.follow import Follower
from rtmeter.samples.meta import LogMeta
from rtmeter.statistics import bins
from rtmeter.statistics.quantities import Columns
from rtmeter.statistics.served import served
from rtmeter.trace.choice import TraceChoice
from rtmeter.trace.chosen import Span, span_of
from rtmeter.trace.events import GROUPS, OPTIONAL
from rtmeter.trace.recorder import Recorder, RecordingTally
from rtmeter.trace.table import FILE, write_trace


class Recording:
    """A part of what stands (conditions.Part): ``folder``/trace.parquet is there when it is left.

    ``instance``: where the tracefs instance is that was made for it.
    """

    def __init__(
        self,
        instance: str,
        folder: Path,
        cpus: set[int],
        root: Root,
        deadline_ns: int | None = None,
        choice: TraceChoice = TraceChoice(),  # noqa: B008
        *,
        has_log: bool = True,
    ) -> None:
        """``deadline_ns``: what comes later is late; without one, the latest hundredth. ``has_log``: whether
        a log tells of releases meanwhile; without one nothing can be chosen, and all is kept until there is
        no more room."""
        self._instance, self._folder, self._cpus, self._root = instance, folder, cpus, root
        logs = folder / CLIENT_LOG, followed(folder)
        self._releases, self._choice = _Releases(logs, deadline_ns, choice.late_ns), choice
        self._has_log = has_log
        self._tally: RecordingTally | None = None
        self._failure: RtmeterError | None = None

    def __enter__(self) -> Self:
        self._recorder = self._made()
        self._recorder.start()
        return self

    def _made(self) -> Recorder:
        kind = RecorderThere if isinstance(self._root, RemoteRoot) else Recorder
        follow, choice = self._releases.new if self._has_log else None, self._choice
        return kind(self._instance, self._folder, self._cpus, self._root, follow, choice)

    def __exit__(self, *_: object) -> None:
        self._recorder.stop()
        try:
            write_trace(self._recorder.parts(), self._folder / FILE, self._recorder.kept)
        except (RtmeterError, OSError) as error:
            self._failure = error if isinstance(error, RtmeterError) else unwritable(error)
            return
        finally:
            self._recorder.tidy()
        self._tally = self._recorder.tally()

    def check(self) -> None:
        """It is looked at when all is over."""

    def facts(self) -> dict[str, Any]:
        """How many events were recorded, and lost."""
        tally = self._tally
        if tally is None:
            return {}
        counts = {"events": tally.events, "lost": tally.lost, "bytes": tally.bytes}
        kept = None if tally.kept is None else {"releases": len(tally.kept), "share_of_late": tally.share}
        return {"achieved": {"trace": counts | {"missing": list(tally.missing), "kept": kept}}}

    def doubts(self) -> list[Doubt]:
        """What will not be told of the run."""
        tally, found = self._tally, []
        if self._failure is not None:
            return [Doubt("trace_incomplete", self._failure.message, self._failure.remedy or "")]
        if tally is None:
            return []
        if tally.lost:
            message = f"{tally.lost:,} events of the kernel were lost: what they would tell is unknown"
            found.append(Doubt("trace_lost", message, "leave a CPU to the front, or measure with less load"))
        if tally.cut:
            message = f"the recording broke off at {self._room}: what comes after is unknown"
            found.append(Doubt("trace_incomplete", message, _MORE_ROOM))
        if tally.share < 1:
            message = (
                f"of the late releases only {tally.share:.2%}, chosen at random, could be kept with their"
            )
            message += f" events in {self._room}: the others are unknown"
            found.append(Doubt("trace_incomplete", message, _MORE_ROOM))
        if tally.overrun:
            message = "events went before the probe's log told whose they are: some releases are unknown"
            found.append(Doubt("trace_incomplete", message, _MORE_ROOM))
        for group in self._choice.left_out:
            lost = OPTIONAL.get(GROUPS[group][0], "they are not counted")
            message = f"{group.replace('_', ' ')} were not recorded, as was asked: {lost}"
            found.append(Doubt("trace_event_left_out", message, "record them, where that is to be told"))
        for event in tally.missing:
            message = f"this kernel has no trace event {event}: {OPTIONAL[event]}"
            found.append(Doubt("trace_event_missing", message, "use a kernel that has it"))
        return found

    @property
    def _room(self) -> str:
        return f"{(self._choice.most_bytes or TRACE_BYTES) >> 20} MiB"

    def failure(self) -> RtmeterError | None:
        """The cell is whole without its trace."""
        return None


_MORE_ROOM = "give it more room (explain: {size: 1GiB}, or --explain-with size=1GiB), or measure less long"


def unwritable(error: OSError) -> RtmeterError:
    """Why there is no trace."""
    message = f"the trace cannot be written: {(error.strerror or str(error)).lower()}"
    return RtmeterError(message, field="explain", remedy="free space there, or leave it out")


class _Releases:
    """Those of a cell that is being measured, from its log as it grows: the first of ``logs`` that is there,
    for of a target's one a part comes before the whole."""

    def __init__(self, logs: Sequence[Path], deadline_ns: int | None, late_ns: int) -> None:
        self._logs, self._deadline_ns, self._late_ns = logs, deadline_ns, late_ns
        self._log = Follower(logs[0])
        self._counts = np.zeros(bins.BINS, np.int64)
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
            self._counts += bins.count(one.lateness_ns[one.measured])
            late = one.lateness_ns > self._limit_ns()
            columns = (one.k, one.before_ns, one.release_ns, one.stamp_ns, late, one.measured)
            for k, before, release, stamp, is_late, counts in zip(
                *(c.tolist() for c in columns), strict=True
            ):
                before_ns, self._last = self._last or before, release
                if counts:
                    yield span_of(k, before_ns, release, stamp, late=is_late, late_ns=self._late_ns)

    def _limit_ns(self) -> int:
        if self._deadline_ns is not None:
            return self._deadline_ns
        return bins.quantile_range_ns(self._counts, ("99", "99"))[0] if self._counts.any() else 0
