"""The callbacks of a ROS 2 program by name: looked at, or all measured by one recording, a cell each."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Self

from rtmeter.attach.callbacks import Callback, Names, callbacks_of, names_of
from rtmeter.conditions import Standing
from rtmeter.errors import RtmeterError
from rtmeter.host.threads import Task
from rtmeter.measure.probe.supervise import OnProgress, Stop
from rtmeter.measure.programs.attached import FOLLOWED, ByAttaching
from rtmeter.measure.programs.attached_all import Together
from rtmeter.measure.programs.attached_record import measured_loop
from rtmeter.measure.programs.attaching import Attached
from rtmeter.measure.programs.following import written_of
from rtmeter.measure.programs.looking import LOOK_S
from rtmeter.measure.programs.program import meant_words, started_by, threads_of
from rtmeter.measure.programs.started import words_of
from rtmeter.model import Cell, Doubt, Outcome
from rtmeter.trace.rcl import (
    LACKING,
    NAMING,
    ProbeLines,
    environment_of,
    found_among,
    found_in,
    libraries_of,
    loaded_by,
)
from rtmeter.values import slug

FIELD = "--ros2"

_LOOKS = 10
"""For the first call of a program that is still starting."""


@dataclass(frozen=True, slots=True)
class Called:
    """A callback, and the threads that called it, who did most often first."""

    tasks: tuple[Task, ...]
    callback: Callback

    @property
    def name(self) -> str:
        """With its node's, where that is known."""
        node = self.callback.node
        return f"{node} {self.callback.name}" if node else self.callback.name

    def to_json(self) -> dict[str, Any]:
        """As ``--json`` prints it."""
        callback = self.callback
        about: dict[str, Any] = {"callback": callback.name, "topic": None, "service": None} | callback.about
        about |= {"period_ns": callback.period_ns, "calls": len(callback.jobs)}
        return about | {"threads": [{"tid": task.tid, "name": task.name} for task in self.tasks]}


class ByName(Together):
    """As Together, of callbacks. The start of a program that rtmeter starts tells whose they are."""

    def __enter__(self) -> Self:
        self._names, self._watching = Names(), ExitStack()
        self._start: Attached | None = None
        with ExitStack() as stack:
            self._folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="rtmeter-")))
            self.reach(stack)
            if "command" in self._cell.config["attach"]:
                self._see_the_start(stack)
            else:
                super().__enter__()
                stack.push(super().__exit__)
            try:
                self.found = found_in(self.program.pid, self._root)
            except RtmeterError as error:
                error.remedy = self._meant() or error.remedy
                raise
            self._own_stack = stack.pop_all()
        return self

    def __exit__(self, *error: Any) -> None:
        self._own_stack.__exit__(*error)

    def _see_the_start(self, stack: ExitStack) -> None:
        """All that tells who belongs to whom, from before the program runs, which is why what it will load is
        known then, until callbacks were seen: whatever is called was made before, and seen to be."""
        program = words_of(self._cell.config["attach"]["command"])[0]
        files = loaded_by(program, environment_of(self._root), self._root)
        known = found_among(files, NAMING, self._root)
        start = Attached((), self._folder, self._root, probes=lambda: () if known is None else known.lines)
        self._start = stack.enter_context(self._watching).enter_context(start)
        super().__enter__()
        stack.push(super().__exit__)
        self._meeting.until(lambda: self._has_rcl(self.program.pid))
        self._meeting.settle()
        self.program = self._meeting.program()  # a start script may have become it meanwhile

    def _learn_names(self, start: Attached) -> None:
        tids = {task.tid for task in threads_of(self.program.pid, self._root)}
        self._watching.close()
        start.trace()
        self._names = names_of([mark for mark in start.marks if mark.tid in tids])

    def _has_rcl(self, pid: int) -> bool:
        return any(Path(one).name.startswith("librcl.so") for one in libraries_of(pid, self._root))

    def _meant(self) -> str:
        """Of a launcher, as ``ros2 run`` is: the nodes that it started."""
        return meant_words([o for o in started_by(self.program.pid, self._root) if self._has_rcl(o.pid)])

    @property
    def nodes(self) -> tuple[str, ...]:
        """Those that were seen to be made."""
        return self._names.nodes

    def called(self, folder: Path | None = None) -> list[Called]:
        """In some seconds; where a program that was started has called none in them, in those that follow."""
        for looks_left in reversed(range(1 if self._start is None else _LOOKS)):
            tasks = threads_of(self.program.pid, self._root)
            with self._attached(tasks, folder or self._folder) as attached:
                self._meeting.pause(LOOK_S)
            if not looks_left or self.of(attached, tasks):
                break
        attached.trace()
        # Of an executor's threads any may call what is due next.
        acting = {mark.tid for mark in attached.marks}
        self.tasks = [task for task in tasks if task.tid in acting] if len(acting) == 1 else tasks
        if self._start is not None:
            self._learn_names(self._start)
            self._start = None
        return self.of(attached, tasks)

    def of(self, attached: Attached, tasks: list[Task]) -> list[Called]:
        """What a recording tells."""
        trace, by_id = attached.trace(), {task.tid: task for task in tasks}
        told = self._names, attached.offsets_ns, attached.end_ns
        found = callbacks_of(attached.marks, trace, by_id, *told)
        return [Called(tuple(by_id[tid] for tid in one.tids), one) for one in found]

    def sources(self) -> list[tuple[Cell, ByAttaching]]:
        """The cell of each callback that is called, and what measures it."""
        self.refuse_conditions(FIELD)
        seen = self.called()
        if not seen:
            message = f"sees no callback in {LOOK_S:g} s"
            remedy = self._meant() or "is anything due, or sent, in that time?"
            raise RtmeterError(message, field=FIELD, remedy=remedy)
        names = [slug(one.name) for one in seen]
        found: list[tuple[Cell, ByAttaching]] = []
        for place, (one, name) in enumerate(zip(seen, names, strict=True)):
            name = name if names.count(name) == 1 else f"{name}-{names[: place + 1].count(name)}"
            threads = ", ".join(str(task.tid) for task in one.tasks)
            asked = self._cell.config["attach"] | {"thread": threads, "callback": one.name}
            cell = replace(
                self._cell, id=f"{self._cell.id}-{name}", config=self._cell.config | {"attach": asked}
            )
            found.append((cell, _OneCallback(cell, self, one)))
        return found

    def recorded(self, folder: Path) -> tuple[Attached, list[Doubt]]:
        """All of them, once; ``folder`` is for the pages."""
        if self._recorded is None:
            with self._explained(folder), self._attached(self.tasks, folder) as attached:
                doubts = self._meeting.wait(self.program, self.tasks)
            self.now = {(c.callback.kind, c.callback.handle): c for c in self.of(attached, self.tasks)}
            self._recorded = attached, [*doubts, *_lacking(self.found), *self._unnamed()]
        return self._recorded

    def _unnamed(self) -> Iterator[Doubt]:
        if not self._names.nodes:
            message = "the nodes' names are not known: they are told where a node is made, which was not seen"
            started = "command" in self._cell.config["attach"]
            remedy = "source its ROS 2 in this shell" if started else "let rtmeter start the program"
            yield Doubt("nodes_unknown", message, f"{remedy}: attach --ros2 -- COMMAND")

    def _attached(self, tasks: list[Task], folder: Path) -> Attached:
        if self.program.is_32_bit:
            raise RtmeterError("is not for 32-bit programs", field=FIELD, remedy="measure its threads")
        tids, told = [task.tid for task in tasks], self.recording.told if self.recording else None
        return Attached(tids, folder, self._root, probes=lambda: self.found.lines, told=told)


class _OneCallback(ByAttaching):
    def __init__(self, cell: Cell, all_of_them: ByName, seen: Called) -> None:
        super().__init__(cell)
        self._all, self._seen = all_of_them, seen

    def prepare(self) -> None:
        """It was there when all were looked at."""

    def run(self, folder: Path, stop: Stop, on_progress: OnProgress, standing: Standing) -> Outcome:
        del on_progress, standing
        first, *others = self._seen.tasks
        self.look_at(first, self._all.root, others)
        attached, doubts = self._all.recorded(folder)
        callback = self._seen.callback
        not_called = replace(self._seen, callback=replace(callback, jobs=()))
        now = self._all.now.get((callback.kind, callback.handle), not_called)
        called, tasks = now.callback, now.tasks
        period_ns = self.period_ns or called.only_period_ns
        written = written_of(
            *(attached.trace(), tasks[0].tid, folder / FOLLOWED, period_ns, self.warm_up_ns),
            jobs=called.jobs,
            overdue_ns=self.overdue_ns,
            until_wake=self.until_wake,
        )
        self._loop = measured_loop(
            *(attached, self._all.program, tasks[0], self._cell, folder, written, doubts, called),
            others=tasks[1:],
        )
        if error := self._loop.error:
            return Outcome("failed", error, tuple(doubts))
        return self._outcome(doubts, stop)


def _lacking(found: ProbeLines) -> list[Doubt]:
    return [
        Doubt("probe_missing", f"this program has no {function}: {LACKING[function]}", "")
        for function in found.lacking
    ]
