"""Cells of a program that nobody changed: its loop, by the kernel's events (docs/attach.md)."""

from __future__ import annotations

import shlex
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path
from typing import Any

from rtmeter.attach.jobs import Job
from rtmeter.campaign.rules import ATTACHED
from rtmeter.conditions import OF_GROUPS, Standing
from rtmeter.conditions.releases import ToldReleases
from rtmeter.errors import RtmeterError
from rtmeter.host.root import Root
from rtmeter.host.threads import Task
from rtmeter.machine import findings, intent_of_thread
from rtmeter.measure.probe.supervise import OnProgress, Stop
from rtmeter.measure.programs import attaching
from rtmeter.measure.programs.attached_record import MeasuredLoop, measured_loop
from rtmeter.measure.programs.attaching import Attached
from rtmeter.measure.programs.following import Following, Written
from rtmeter.measure.programs.meeting import Meeting, Started, started_program
from rtmeter.measure.programs.program import CUT_SHORT, Program, program_of, thread_of
from rtmeter.measure.programs.started import killed_doubt, trusted_words, words_of
from rtmeter.measure.source import Ran
from rtmeter.measure.source.record import Gathered, recorded
from rtmeter.model import LOCAL, TARGET, Cell, Doubt, Outcome
from rtmeter.results.record import CellRecord
from rtmeter.samples.meta import LogMeta
from rtmeter.values import format_cpus

FOLLOWED = "attached.parquet"
"""What becomes samples.parquet."""


class ByAttaching:
    """The source (source.py) of a cell with ``adapter: attached``."""

    def __init__(self, cell: Cell) -> None:
        self._cell, self._root = cell, Root()
        self._asked: Mapping[str, Any] = cell.config["attach"]
        self._loop: MeasuredLoop | None = None
        self._findings: list[dict[str, Any]] | None = None

    @property
    def programs(self) -> list[str]:
        command = self._asked.get("command")
        return [shlex.join(words_of(command)) if command else f"process {self._asked['pid']}"]

    @property
    def real_time(self) -> bool:
        """A program that runs anyway is looked at beside whatever else is measured."""
        return "command" in self._asked

    def check(self) -> None:
        config = self._cell.config
        refused: dict[str, Any] = {
            name: config.get(name)
            for name in ("child_threads", "child_cpus", "overrun", "cpu_dma_latency", "timer_slack_ns")
        }
        refused |= {"lock_memory": config.get("lock_memory"), "apply": config.get("apply") == "after_init"}
        refused |= {name: config.get(f"{name}_bytes") for name in ("prefault_stack", "prefault_heap")}
        refused["options"] = config.get("options")
        if config["scheduling"]["policy"] == "deadline":
            refused["scheduling"] = "deadline"
        if "pid" in self._asked:
            settings = self._cell.conditions.get("settings", {})
            refused |= {"cpus": config.get("cpus")}
            refused |= {f"conditions.{name}": settings.get(name) for name in OF_GROUPS}
            if config["scheduling"]["policy"] != "other":
                refused["scheduling"] = config["scheduling"]["policy"]
        for field, value in refused.items():
            if value:
                message = "is not for a program that is attached to: nothing of it is changed"
                own = ", ".join(["scheduling (other, fifo, rr)", "cpus", *OF_GROUPS])
                remedy = f"leave it out; {own} are for a command"
                told = format_cpus(value) if field in ("cpus", "child_cpus") else str(value)
                raise RtmeterError(message, field=field, value=told, remedy=remedy)
        if TARGET not in self._cell.hosts:  # which is looked at when it is reached
            self._look()

    def _look(self) -> None:
        """Raises RtmeterError if the program cannot be attached to."""
        attaching.check(self._root)
        if "pid" in self._asked:
            program = program_of(self._asked["pid"], self._root)
            if "thread" in self._asked:
                thread_of(program.pid, self._asked["thread"], self._root)
        elif self._root.host == LOCAL:
            trusted_words(self._asked["command"])
        else:
            words_of(self._asked["command"])

    def prepare(self) -> None:
        self.check()

    def run(self, folder: Path, stop: Stop, on_progress: OnProgress, standing: Standing) -> Outcome:
        del on_progress  # how late it was is known afterwards
        if TARGET in self._cell.hosts:
            self._root = standing.root
            self._look()
        started: Started | None = None
        with ExitStack() as stack:
            heed = standing.check
            if "command" in self._asked:
                given = self._asked["command"], self._cell.config, folder, standing.launchers.client(None)
                started = started_program(*given, self._root)
                stack.enter_context(started)
            meeting = Meeting(
                self._asked, self._root, stop, _both(heed, started.check if started else None), started
            )
            task = meeting.thread(meeting.program())
            program = meeting.program()  # a start script may have become it meanwhile
            self.look_at(task, self._root)
            told = standing.told
            following = self.following(task.tid, folder / FOLLOWED, told)
            with Attached(
                [task.tid], folder, self._root, is_32_bit=program.is_32_bit, follow=[following], told=told
            ) as attached:
                both = _both(heed, following.check)
                beside = Meeting(self._asked, self._root, stop, both, started)
                doubts = beside.wait(program, [task], following.over)
        doubts += [killed_doubt(self._asked["command"])] if started is not None and started.was_killed else []
        return self.measured(attached, program, task, folder, doubts, stop, following.written)

    def following(self, tid: int, file: Path, told: ToldReleases | None) -> Following:
        """What writes the thread's rows as they come, and tells of each job how late it was by what is
        judged."""
        teller = None if told is None else told.teller()

        def tell(job: Job) -> None:
            if teller is not None:
                teller.tell(job.release_ns, job.wake_ns if self.until_wake else job.free_ns, job.free_ns)

        asked = self.period_ns, self.warm_up_ns, self.overdue_ns
        found = Following(tid, file, *asked, until_wake=self.until_wake, tell=tell if teller else None)
        if teller is not None:
            teller.is_over = found.over
        return found

    @property
    def period_ns(self) -> int | None:
        """As it was given."""
        period_ns: int | None = self._cell.config["period_ns"] if self._asked["period_given"] else None
        return period_ns

    @property
    def warm_up_ns(self) -> int:
        """Of a program that is started."""
        return int(self._asked["warm_up_ns"]) if "command" in self._asked else 0

    @property
    def overdue_ns(self) -> int | None:
        """The deadline of a job's end, if that is what is judged."""
        requirement = self._cell.requirement
        return requirement.deadline_ns if requirement is not None and not self.until_wake else None

    @property
    def until_wake(self) -> bool:
        """Whether what is judged is when a job woke, not when it ended."""
        return bool(self._cell.config["judge"] == "latency")

    def look_at(self, task: Task, root: Root, others: Sequence[Task] = ()) -> None:
        """What the machine has wrong for the thread as it is, and for ``others`` that do the same: policy,
        CPUs, control groups."""
        self._findings = [one.to_json() for one in findings(root, intent_of_thread(task, root, others))]

    def measured(
        self,
        attached: Attached,
        program: Program,
        task: Task,
        folder: Path,
        doubts: list[Doubt],
        stop: Stop,
        written: Written,
    ) -> Outcome:
        """What the recording of the thread comes to; record() stores it."""
        attached.trace()
        self._loop = measured_loop(attached, program, task, self._cell, folder, written, doubts)
        if error := self._loop.error:
            return Outcome("failed", error, tuple(doubts))
        return self._outcome(doubts, stop)

    def _outcome(self, doubts: list[Doubt], stop: Stop) -> Outcome:
        """Of a recording with rows: the thread may have ended while others of its program went on."""
        assert self._loop is not None
        if self._loop.cut is not None and not any(doubt.type in CUT_SHORT for doubt in doubts):
            doubts = [*doubts, self._loop.cut]
        ended = any(doubt.type in CUT_SHORT for doubt in doubts)
        return Outcome("interrupted" if stop.asked or ended else "complete", None, tuple(doubts))

    def record(self, outcome: Outcome, folder: Path, ran: Ran) -> CellRecord:
        loop = self._loop
        if self._findings is not None:
            ran = replace(ran, findings=self._findings)
        if loop is None:
            return recorded(self._cell, outcome, Gathered(LogMeta()), folder, ran)
        cell = replace(self._cell, config=loop.config)
        outcome = replace(outcome, warnings=(*outcome.warnings, *loop.doubts))
        machine = {**loop.meta.machine, "machine_id": ran.machine_id}
        meta = loop.meta.model_copy(update={"machine": machine})
        return recorded(cell, outcome, Gathered(meta, rows=loop.rows > 0), folder, ran)


def _both(heed: Callable[[], None], too: Callable[[], None] | None) -> Callable[[], None]:
    def look() -> None:
        heed()
        if too is not None:
            too()

    return look


def is_attached(cell: Cell) -> bool:
    """Whether this source measures it."""
    return cell.adapter == ATTACHED
