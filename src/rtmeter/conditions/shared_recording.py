"""One recording of the kernel's events for several cells that are measured at once, each of which has it."""

from __future__ import annotations

import os
import shutil
from contextlib import ExitStack, suppress
from pathlib import Path
from typing import Any, Self

from rtmeter.campaign.condition_options import SystemSettings
from rtmeter.conditions.recording import Recording, unwritable
from rtmeter.conditions.releases import ToldReleases
from rtmeter.conditions.settings import Settings
from rtmeter.conditions.strain import measured_cpus
from rtmeter.errors import RtmeterError
from rtmeter.host.root import Root
from rtmeter.model import LOCAL, Cell, Doubt
from rtmeter.trace.choice import TraceChoice
from rtmeter.trace.table import FILE


class SharedRecording:
    """Records while the block runs, as the conditions of ``cell`` ask, in a tracefs instance of its own.

    ``told``: what is to be told of the threads' releases meanwhile; where nothing can be, nothing is chosen:
    what surrounds a late release of any of them is there until there is no more room.
    """

    def __init__(self, cell: Cell) -> None:
        self._cell, self._choice = cell, TraceChoice.of(cell.conditions["explain"])
        deadline_ns = cell.requirement.deadline_ns if cell.requirement else None
        self.told = ToldReleases(deadline_ns, self._choice.late_ns)
        self._settings: Settings | None = None
        self._recording: Recording | None = None
        self._folder: Path | None = None

    def into(self, folder: Path, root: Root) -> Self:
        """``folder``: where the table is to be until all cells have it; ``root``: the machine."""
        self._folder, self._root = folder, root
        return self

    def __enter__(self) -> Self:
        assert self._folder is not None
        strict = bool(self._cell.conditions.get("strict"))
        with ExitStack() as stack:
            self._settings = stack.enter_context(
                Settings(SystemSettings(), self._root, strict=strict, traced=True)
            )
            where = self._settings.instance, self._folder, measured_cpus(self._cell), self._root
            told = self.told if self._root.host == LOCAL else None
            self._recording = stack.enter_context(Recording(*where, told, self._choice))
            self._stack = stack.pop_all()
        return self

    def __exit__(self, *error: Any) -> None:
        self._stack.__exit__(*error)

    def part(self, folder: Path) -> OfOneCell:
        """What of it is a part of the conditions of the cell in ``folder``."""
        return OfOneCell(self, folder)

    @property
    def table(self) -> Path | None:
        """None as long as there is none."""
        path = self._folder / FILE if self._folder is not None else None
        return path if path is not None and path.is_file() else None

    @property
    def parts(self) -> tuple[Settings | Recording, ...]:
        """What it consists of, as far as it was begun."""
        return tuple(part for part in (self._settings, self._recording) if part is not None)


class OfOneCell:
    """A part of what stands (conditions.ConditionPart): trace.parquet is in the cell's folder when it is
    left, if the recording is over then, with all that is to be said of it."""

    def __init__(self, shared: SharedRecording, folder: Path) -> None:
        self._shared, self._folder = shared, folder
        self._failure: RtmeterError | None = None

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        if (table := self._shared.table) is None:
            return
        try:
            shared_file(table, self._folder / FILE)
        except OSError as error:
            self._failure = unwritable(error)

    def check(self) -> None:
        """It is looked at when all is over."""

    def facts(self) -> dict[str, Any]:
        """Those of the recording, which are of all cells together."""
        facts: dict[str, Any] = {}
        for part in self._shared.parts:
            facts |= part.facts()
        return facts if self._failure is None else {}

    def doubts(self) -> list[Doubt]:
        """What will not be told of the cell."""
        if self._failure is not None:
            return [Doubt("trace_incomplete", self._failure.message, self._failure.remedy or "")]
        return [doubt for part in self._shared.parts for doubt in part.doubts()]

    def failure(self) -> RtmeterError | None:
        """The cell is whole without its trace; not, if all is to be as it was asked."""
        return next((error for part in self._shared.parts if (error := part.failure()) is not None), None)


def shared_file(source: Path, target: Path) -> None:
    """The same file under another name; a copy where the file system has no links. Nothing ever changes a
    trace in its place, so that no cell sees what is done to another's."""
    with suppress(OSError):
        os.link(source, target)
        return
    try:
        shutil.copyfile(source, target)
    except OSError:
        target.unlink(missing_ok=True)
        raise
