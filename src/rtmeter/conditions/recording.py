"""The kernel's events of a cell, recorded while it is measured, for rtmeter explain."""

from __future__ import annotations

from pathlib import Path
from typing import Any, Self

from rtmeter.errors import RtmeterError
from rtmeter.host.root import Root
from rtmeter.model import Doubt
from rtmeter.trace.events import OPTIONAL
from rtmeter.trace.recorder import MOST_BYTES, Recorder, Told
from rtmeter.trace.table import FILE, write_trace


class Recording:
    """A part of what stands (conditions.Part): ``folder``/trace.parquet is there when it is left.

    ``instance``: where the tracefs instance is that was made for it.
    """

    def __init__(self, instance: str, folder: Path, cpus: set[int], root: Root) -> None:
        self._instance, self._folder, self._cpus, self._root = instance, folder, cpus, root
        self._told: Told | None = None
        self._failure: RtmeterError | None = None

    def __enter__(self) -> Self:
        self._recorder = Recorder(self._instance, self._folder, self._cpus, self._root)
        self._recorder.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._recorder.stop()
        try:
            trace = self._recorder.trace()
            write_trace(trace, self._folder / FILE)
        except (RtmeterError, OSError) as error:
            self._failure = error if isinstance(error, RtmeterError) else _unwritable(error)
            return
        finally:
            self._recorder.tidy()
        self._told = self._recorder.told(trace)

    def check(self) -> None:
        """It is looked at when all is over."""

    def facts(self) -> dict[str, Any]:
        """How many events were recorded, and lost."""
        told = self._told
        if told is None:
            return {}
        counts = {"events": told.events, "lost": told.lost, "bytes": told.bytes}
        return {"achieved": {"trace": counts | {"missing": list(told.missing)}}}

    def doubts(self) -> list[Doubt]:
        """What will not be told of the run."""
        told, found = self._told, []
        if self._failure is not None:
            return [Doubt("trace_incomplete", self._failure.message, self._failure.remedy or "")]
        if told is None:
            return []
        if told.lost:
            message = f"{told.lost:,} events of the kernel were lost: what they would tell is unknown"
            found.append(Doubt("trace_lost", message, "leave a CPU to the front, or measure with less load"))
        if told.cut:
            message = f"the recording broke off at {MOST_BYTES >> 20} MiB: what comes after is unknown"
            found.append(Doubt("trace_incomplete", message, "measure for a shorter time"))
        for event in told.missing:
            message = f"this kernel has no trace event {event}: {OPTIONAL[event]}"
            found.append(Doubt("trace_event_missing", message, "use a kernel that has it"))
        return found

    def failure(self) -> RtmeterError | None:
        """The cell is whole without its trace."""
        return None


def _unwritable(error: OSError) -> RtmeterError:
    message = f"the trace cannot be written: {(error.strerror or str(error)).lower()}"
    return RtmeterError(message, field="explain", remedy="free space there, or leave it out")
