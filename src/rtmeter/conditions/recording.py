"""The kernel's events of a cell, recorded while it is measured, for rtmeter explain."""

from __future__ import annotations

from pathlib import Path
from typing import Any, Self

from rtmeter.conditions.recorder_there import RecorderThere
from rtmeter.conditions.releases import LoggedReleases, ToldReleases
from rtmeter.errors import RtmeterError
from rtmeter.host.remote_root import RemoteRoot
from rtmeter.host.root import Root
from rtmeter.model import TRACE_BYTES, Doubt
from rtmeter.trace.choice import TraceChoice
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
        releases: LoggedReleases | ToldReleases | None = None,
        choice: TraceChoice = TraceChoice(),  # noqa: B008
    ) -> None:
        """``releases``: what tells of them meanwhile; where nothing does nothing can be chosen, and all is
        kept until there is no more room."""
        self._instance, self._folder, self._cpus, self._root = instance, folder, cpus, root
        self.releases, self._choice = releases, choice
        self._tally: RecordingTally | None = None
        self._failure: RtmeterError | None = None

    def __enter__(self) -> Self:
        self._recorder = self._made()
        self._recorder.start()
        return self

    def _made(self) -> Recorder:
        kind = RecorderThere if isinstance(self._root, RemoteRoot) else Recorder
        follow = self.releases.new if self.releases else None
        return kind(self._instance, self._folder, self._cpus, self._root, follow, self._choice)

    def __exit__(self, *_: object) -> None:
        self._recorder.stop()
        try:
            told = isinstance(self.releases, ToldReleases)
            write_trace(self._recorder.parts(), self._folder / FILE, self._recorder.kept, by_time=told)
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
        late = isinstance(self.releases, ToldReleases) and self.releases.overtaken
        if tally.overrun or (late and tally.kept is not None):
            message = "events went before it was told whose they are: some releases are unknown"
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
