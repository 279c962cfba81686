"""Finding a program and its thread, and waiting beside it."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, TypeAlias

from rtmeter.errors import RtmeterError
from rtmeter.host.remote_root import RemoteRoot
from rtmeter.host.root import Root
from rtmeter.host.threads import Task
from rtmeter.measure.probe.supervise import Stop
from rtmeter.measure.programs.looking import ThreadSeen, look, only_periodic
from rtmeter.measure.programs.program import (
    Program,
    ended_doubt,
    exe_of,
    is_there,
    program_of,
    replaced_doubt,
    started_by,
    thread_of,
    threads_of,
)
from rtmeter.measure.programs.started import StartedProgram
from rtmeter.measure.programs.started_there import StartedThere
from rtmeter.model import LOCAL, Doubt

_LOOK_EVERY_S, _LOOK_THERE_EVERY_S = 0.1, 1.0
_APPEARS_S = 10
"""How long a thread of that name is waited for."""
_ENDS_S = 5
"""How long a program that has no memory any more may still be ending."""


Started: TypeAlias = StartedProgram | StartedThere


class Meeting:
    """``asked``: the key ``attach`` of the cell's config; ``heed`` raises RtmeterError where a condition, or
    the program's end, fails the cell."""

    def __init__(
        self,
        asked: Mapping[str, Any],
        root: Root,
        stop: Stop,
        heed: Callable[[], None],
        started: Started | None,
    ) -> None:
        self._asked, self._root, self._stop, self._heed, self._started = asked, root, stop, heed, started
        self._every_s = _LOOK_EVERY_S if root.host == LOCAL else _LOOK_THERE_EVERY_S

    def program(self) -> Program:
        """Once it is there. Raises RtmeterError if it cannot be attached to."""
        started = self._started
        if started is None:
            return program_of(self._asked["pid"], self._root)
        with self._its_own_words():
            self.until(lambda: started.is_itself)
            return program_of(started.pid, self._root)

    def thread(self, program: Program) -> Task:
        """The one that is asked for, else the only one, else the only periodic one. Raises RtmeterError."""
        with self._its_own_words():
            return self._thread(program)

    @contextmanager
    def _its_own_words(self) -> Iterator[None]:
        """Of a program that was started and is at its end, what it said last; not that it cannot be found."""
        try:
            yield
        except RtmeterError:
            if self._started is not None and not exe_of(self._started.pid, self._root):
                self._started.wait(_ENDS_S)
                self._started.check()
            raise

    def _thread(self, program: Program) -> Task:
        name = self._asked.get("thread")
        if name is not None:
            if self._started is not None:
                self.until(lambda: any(name in (t.name, str(t.tid)) for t in self._threads(program)))
            return thread_of(program.pid, name, self._root)
        self.settle()
        threads, started = self._threads(program), started_by(program.pid, self._root)
        if len(threads) == 1 and not started:  # what starts another may be a launcher, that only waits
            return threads[0]
        return only_periodic(self.look(program), self._root, started)

    def look(self, program: Program) -> list[ThreadSeen]:
        """What all threads do for some seconds."""
        return look(program, self._root, self.pause)

    def look_settled(self, program: Program) -> list[ThreadSeen]:
        """As look(), once a program that was started had its warm-up."""
        self.settle()
        return self.look(program)

    def wait(
        self, program: Program, tasks: Sequence[Task], over: Callable[[], bool] = lambda: False
    ) -> list[Doubt]:
        """Until the time is over, the threads are there no more, or the program is another one: what is to be
        said of that. ``over``: the recording itself tells that nothing comes of them any more, and why."""
        warm_up_ns = 0 if self._started is None else self._asked["warm_up_ns"]
        end = time.monotonic() + (self._asked["duration_ns"] + warm_up_ns) / 1e9
        with self._stop.being_heeded():
            while not self._stop.asked and (left := end - time.monotonic()) > 0:
                self._heed()
                is_over = over()  # before it is looked whether they are there: who ends is not
                there = any(is_there(task, self._root) for task in tasks)  # an exec ends them a moment before
                exe = exe_of(program.pid, self._root)
                if exe and exe != program.exe:
                    return [replaced_doubt(f"{program.exe} became {exe}")]
                if not there:
                    return [self._ended(program, tasks)]
                if is_over:
                    return []
                time.sleep(min(left, self._every_s))
        return []

    def _ended(self, program: Program, tasks: Sequence[Task]) -> Doubt:
        threads = ", ".join(f"{task.name} ({task.tid})" for task in tasks)
        return ended_doubt(f"its thread {threads}" if exe_of(program.pid, self._root) else "the program")

    def _threads(self, program: Program) -> list[Task]:
        return threads_of(program.pid, self._root)

    def settle(self) -> None:
        """Waits until a program that was started had its warm-up."""
        if self._started is not None:
            self.pause(self._asked["warm_up_ns"] / 1e9)

    def until(self, holds: Callable[[], bool]) -> None:
        """Waits until it holds, but not for ever: what is missing is told by who asks for it."""
        limit = time.monotonic() + _APPEARS_S
        while not holds() and time.monotonic() < limit:
            self.pause(_LOOK_EVERY_S)

    def pause(self, seconds: float) -> None:
        """Waits, and heeds what may go wrong meanwhile. Raises RtmeterError if it is to stop."""
        end = time.monotonic() + seconds
        while (left := end - time.monotonic()) > 0:
            self._heed()
            if self._stop.asked:
                raise RtmeterError("interrupted before it measured", remedy="run it again")
            time.sleep(min(left, _LOOK_EVERY_S))


def started_program(
    command: str, config: Mapping[str, Any], folder: Path, through: list[str], root: Root
) -> Started:
    """The program, to be started on the machine."""
    if isinstance(root, RemoteRoot):
        return StartedThere(command, config, folder, through, root)
    return StartedProgram(command, config, folder, through)
