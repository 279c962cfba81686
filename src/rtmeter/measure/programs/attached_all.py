"""A program's threads together: looked at, or all periodic ones measured by one recording, a cell each."""

from __future__ import annotations

import sys
import tempfile
from collections.abc import Callable
from contextlib import AbstractContextManager, ExitStack, nullcontext, suppress
from dataclasses import replace
from pathlib import Path
from typing import Self

from rtmeter.conditions import SharedRecording, Standing
from rtmeter.conditions.target import held, reached
from rtmeter.errors import RtmeterError
from rtmeter.host import scratch
from rtmeter.host.root import Root
from rtmeter.host.threads import Task
from rtmeter.measure.probe.supervise import OnProgress, Stop
from rtmeter.measure.programs import attaching
from rtmeter.measure.programs.attached import ByAttaching
from rtmeter.measure.programs.attaching import Attached
from rtmeter.measure.programs.following import Written
from rtmeter.measure.programs.looking import LOOK_S, ThreadSeen
from rtmeter.measure.programs.meeting import Meeting, Started, started_program
from rtmeter.measure.programs.program import meant_words, started_by
from rtmeter.model import LOCAL, TARGET, Cell, Doubt, Outcome
from rtmeter.values import slug, visible

_ONE_BY_ONE = ("settings", "load", "traffic")


class Together:
    """The program of a cell, which runs or is started, while the block runs."""

    def __init__(self, cell: Cell, stop: Stop) -> None:
        self._cell, self._stop, self._root = cell, stop, Root()
        self._recorded: tuple[Attached, list[Doubt]] | None = None
        self.recording = SharedRecording(cell) if cell.conditions.get("explain") else None
        """Of all cells together."""

    def __enter__(self) -> Self:
        asked = self._cell.config["attach"]
        started: Started | None = None
        with ExitStack() as stack:
            self.reach(stack)
            if "command" in asked:
                folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="rtmeter-")))
                started = started_program(asked["command"], self._cell.config, folder, [], self._root)
                stack.enter_context(started)
            heed: Callable[[], None] = _nothing if started is None else started.check
            self._meeting = Meeting(asked, self._root, self._stop, heed, started)
            self.program = self._meeting.program()
            self._stack = stack.pop_all()
        return self

    def __exit__(self, *_: object) -> None:
        self._stack.close()

    def reach(self, stack: ExitStack) -> None:
        """The machine of the program, if it is not reached yet, until the stack is left; and its lock, where
        the program is started and so disturbs who measures there."""
        url = self._cell.hosts.get(TARGET)
        if url is not None and self._root.host == LOCAL:
            starts = "command" in self._cell.config["attach"]
            self._root = stack.enter_context(held(url) if starts else reached(url))
            attaching.check(self._root)

    @property
    def root(self) -> Root:
        """The machine of the program."""
        return self._root

    def look(self) -> list[ThreadSeen]:
        """What its threads do."""
        seen = self._meeting.look_settled(self.program)
        self.program = self._meeting.program()  # a start script may have become it meanwhile
        return seen

    def sources(self) -> list[tuple[Cell, ByAttaching]]:
        """The cell of each periodic thread, and what measures it. Raises RtmeterError if there is none, or
        the cells ask for conditions, which hold for one at a time."""
        self.refuse_conditions("--all")
        seen = self.look()
        self.tasks = [one.task for one in seen if one.periodic]
        if not self.tasks:
            message = f"finds no periodic thread in {LOOK_S:g} s"
            meant = meant_words(started_by(self.program.pid, self._root))
            remedy = meant or "leave it out, to see what the threads do"
            raise RtmeterError(message, field="--all", remedy=remedy)
        names = [task.name for task in self.tasks]
        found: list[tuple[Cell, ByAttaching]] = []
        for task in self.tasks:
            name = task.name if names.count(task.name) == 1 else f"{task.name}-{task.tid}"
            asked = self._cell.config["attach"] | {"thread": str(task.tid)}
            config = self._cell.config | {"attach": asked}
            cell = replace(self._cell, id=f"{self._cell.id}-{slug(name)}", config=config)
            found.append((cell, _OneOfAll(cell, self, task)))
        return found

    def refuse_conditions(self, option: str) -> None:
        """Raises RtmeterError if the cells ask for conditions."""
        for name in _ONE_BY_ONE:
            if name in self._cell.conditions:
                message = f"contradicts {name}, which holds while one thread is measured"
                remedy = "leave it out, or measure the threads one by one, with --thread"
                raise RtmeterError(message, field=option, value="yes", remedy=remedy)

    def recorded(self, folder: Path) -> tuple[Attached, list[Doubt]]:
        """All of them, once; ``folder`` is for the pages."""
        if self._recorded is None:
            own = ByAttaching(self._cell)
            rows = self._beside(folder, scratch.ROWS)
            told = self.recording.told if self.recording else None
            with self._explained(folder):
                self._following = {
                    task.tid: own.following(task.tid, rows / f"{task.tid}.parquet", told)
                    for task in self.tasks
                }
                with Attached(
                    [*self._following],
                    folder,
                    self._root,
                    is_32_bit=self.program.is_32_bit,
                    follow=[*self._following.values()],
                    told=told,
                ) as attached:
                    doubts = self._meeting.wait(self.program, self.tasks, self._over)
            self._recorded = attached, doubts
        return self._recorded

    def _explained(self, folder: Path) -> AbstractContextManager[object]:
        """Records all that happens, too, if that is asked."""
        if self.recording is None:
            return nullcontext()
        return self.recording.into(self._beside(folder, scratch.TRACE), self._root)

    def _beside(self, folder: Path, prefix: str) -> Path:
        """A folder beside the cell's, until all cells are stored."""
        return self._stack.enter_context(scratch.own_beside(folder.parent, prefix, _say))

    def _over(self) -> bool:
        return all(one.over() for one in self._following.values())

    def written(self, task: Task) -> Written:
        """The rows of one of them, once they are recorded."""
        return self._following[task.tid].written


class _OneOfAll(ByAttaching):
    def __init__(self, cell: Cell, together: Together, task: Task) -> None:
        super().__init__(cell)
        self._together, self._task = together, task

    def prepare(self) -> None:
        """It was there when all were looked at."""

    def run(self, folder: Path, stop: Stop, on_progress: OnProgress, standing: Standing) -> Outcome:
        del on_progress, standing
        self.look_at(self._task, self._together.root)
        attached, doubts = self._together.recorded(folder)
        written = self._together.written(self._task)
        return self.measured(attached, self._together.program, self._task, folder, doubts, stop, written)


def _say(sentence: str) -> None:
    with suppress(OSError):  # whoever looks has gone: no reason to end a measurement
        print(visible(f"rtmeter: {sentence}"), file=sys.stderr)


def _nothing() -> None:
    """Nothing can go wrong with a program that was there before."""
