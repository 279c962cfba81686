"""Whatever is not told, at the start of a recording or within it: what is said to be known is true."""

from __future__ import annotations

import random
from bisect import bisect_right
from collections.abc import Callable, Iterator
from typing import NamedTuple

import numpy as np
import pytest
from programs import BLOCKED, RUNNABLE, SLEEPING, Program, T
from programs import jobs as jobs_at_once

from rtmeter.attach.jobs import Job, jobs_of
from rtmeter.attach.sleeps import MESSAGE, Reader, sleeps_of
from rtmeter.explain import events as kinds
from rtmeter.explain.events import Event, Trace

MS = 1_000_000
PART_NS = 7 * MS
CYCLES = 60


class InTruth(NamedTuple):
    """What a job is in truth; ``free_ns`` None: the program ends before."""

    wake_ns: int
    kind: str
    free_ns: int | None


class Life:
    """A thread on two CPUs that sleeps on timers, waits for messages and locks, and is pre-empted."""

    def __init__(self, seed: int) -> None:
        self.dice = random.Random(seed)
        self.events: list[Event] = []
        self.wakes: dict[int, tuple[int, str]] = {}
        self.frees_ns: list[int] = []
        self._now, self._cpu = MS, 0
        for _ in range(CYCLES):
            self._sleep(self.dice.choice(["clock_nanosleep"] * 3 + ["epoll_wait", "futex"]))
            for _ in range(self.dice.randrange(3)):
                self._is_preempted(60_000)
            self._after(150_000, kinds.SYS_IN, T, name="write")
            self._after(700, kinds.SYS_OUT, T, name="write", value=8)

    def _after(self, most_ns: int, kind: int, tid: int, target: int = -1, **fields: int | str) -> None:
        """On its own CPU, some time after the event before."""
        self._now += self.dice.randrange(most_ns // 2, most_ns)
        self._add(self._cpu, kind, tid, target, **fields)

    def _add(self, cpu: int, kind: int, tid: int, target: int = -1, **fields: int | str) -> None:
        self.events.append(Event(self._now, cpu, kind, tid, target, priority=100, **fields))  # type: ignore[arg-type]

    def _elsewhere(self, share: float) -> int:
        return self._cpu if self.dice.random() > share else 1 - self._cpu

    def _is_preempted(self, most_ns: int) -> None:
        self._after(2000, kinds.SWITCH, T, 5, state=RUNNABLE)
        self._now += self.dice.randrange(most_ns)
        self._cpu = self._elsewhere(0.3)
        self._after(2000, kinds.SWITCH, 5, T, state=RUNNABLE)

    def _sleep(self, call: str) -> None:
        by_timer = call == "clock_nanosleep"
        self._after(4000, kinds.SYS_IN, T, name=call)
        due = (self._now // MS + 1) * MS + 300_000  # later than all that comes before it sleeps
        if by_timer:
            self._after(600, kinds.TIMER_ARMED, T, name="hrtimer_wakeup", value=due)
        if self.dice.random() < 0.15:
            self._is_preempted(100_000)
        self._after(800, kinds.SWITCH, T, 0, state=SLEEPING)
        free_ns, waker_on = self._now, self._elsewhere(0.3)
        if by_timer:
            self._now = due + self.dice.randrange(50_000)
            self._add(waker_on, kinds.TIMER_FIRED, 0, T, name="hrtimer_wakeup", value=due)
        else:
            self._now += self.dice.randrange(5000, 2 * MS)
        self._add(waker_on, kinds.WAKING, 0 if by_timer else 9, T)
        release_ns = due if by_timer else self._now
        self._cpu = self._elsewhere(0.3)
        self._after(30_000, kinds.SWITCH, 0, T, state=RUNNABLE)
        self._after(600, kinds.SYS_OUT, T, name=call, value=0)
        if call != "futex":
            self.frees_ns.append(free_ns)
            self.wakes[release_ns] = self._now, call if by_timer else MESSAGE

    def job(self, release_ns: int) -> InTruth | None:
        """None: there is no such release."""
        if release_ns not in self.wakes:
            return None
        wake_ns, kind = self.wakes[release_ns]
        after = bisect_right(self.frees_ns, wake_ns)
        return InTruth(wake_ns, kind, self.frees_ns[after] if after < len(self.frees_ns) else None)

    def told(self, first: int) -> list[Event]:
        """Its events from one on, without what one CPU's ring lost from the beginning of a part on."""
        cpu, whole = self.dice.randrange(2), self.events[first:]
        at = [place for place, event in enumerate(whole) if event.cpu == cpu]
        begin_ns = whole[self.dice.choice(at)].time_ns // PART_NS * PART_NS
        room = [place for place in at if begin_ns <= whole[place].time_ns < begin_ns + PART_NS]
        kept = room[self.dice.randrange(1, len(room)) :] if len(room) > 1 else room
        if not kept:
            return whole
        gone = set(room) - set(kept)
        lost = Event(whole[kept[0]].time_ns, cpu, kinds.LOST, value=len(gone))
        before = [event for place, event in enumerate(whole[: kept[0]]) if place not in gone]
        return [*before, lost, *whole[kept[0] :]]


def jobs(events: list[Event]) -> list[Job]:
    """As they are told part by part."""

    def sleeps() -> Iterator:
        others = Event(
            events[0].time_ns, 0, kinds.SYS_OUT, 99, name="getppid"
        )  # attach is told of its own too
        reader, shared = Reader(T), Trace([others, *events])
        places, first = [event.time_ns // PART_NS for event in [others, *events]], 0
        while first < len(places):
            last = bisect_right(places, places[first])
            yield from reader.see_all(shared.taken(slice(first, last)), (places[first] + 1) * PART_NS)
            first = last

    return list(jobs_of(sleeps()))


def test_what_is_known_of_a_job_is_true_wherever_events_were_lost_or_the_recording_began(
    sized: Callable[..., int],
) -> None:
    known = 0
    for seed in range(sized("random losses", reduced=150, full=3000)):
        life = Life(seed)
        told = [job for job in jobs(life.told(life.dice.randrange(60))) if job.known]
        said = {job.release_ns: InTruth(job.wake_ns, job.kind, job.free_ns) for job in told}
        assert said == {release_ns: life.job(release_ns) for release_ns in said}, f"seed {seed}"
        assert len(said) == len(told), f"seed {seed}"
        known += len(told)
    assert known > 25 * (seed + 1), "most of some fifty are known"


def sleeping_thrice() -> Program:
    program = Program()
    program.sleep(50, 1000, 1100)
    program.sleep(1300, 2000, 2100)
    program.sleep(2300, 3000, 3100)
    return program


def said(program: Program) -> list[tuple[int, int, str, bool]]:
    """release, wake, kind, known."""
    return [(job.release_ns, job.wake_ns, job.kind, job.known) for job in jobs_at_once(program)]


@pytest.mark.parametrize("untold", [2, 3])
def test_a_recording_that_begins_between_a_call_and_its_sleep_tells_the_call_by_its_return(
    untold: int,
) -> None:
    """The switch to the thread and its call are not told; nor, maybe, the timer that was armed."""
    program = sleeping_thrice()
    del program.events[:untold]
    assert said(program) == [(1000, 1100, "clock_nanosleep", True), (2000, 2100, "clock_nanosleep", True)]
    assert jobs_at_once(program)[0].armed_ns == (60 if untold == 2 else None)


@pytest.mark.parametrize("lost_at", [1305, 1315])
def test_so_does_one_that_loses_events_there(lost_at: int) -> None:
    program = sleeping_thrice()
    program.lose(lost_at, cpu=1)
    assert said(program) == [(1000, 1100, "clock_nanosleep", False), (2000, 2100, "clock_nanosleep", True)]


def test_a_sleep_whose_beginning_was_lost_and_that_a_stop_interrupts_is_its_calls() -> None:
    program = Program()
    program.sleep(50, 1000, 1100, "nanosleep")
    program.enter(1300, "nanosleep")
    program.leave(1320)
    program.lose(1400)
    program.wake(1500, by=77, cpu=1)
    program.come(1510)
    program.back(1520, "nanosleep", -516)
    program.leave(1530, BLOCKED)
    program.wake(1600, by=77, cpu=1)
    program.come(1610)
    program.enter(1620, "restart_syscall")
    program.arm(1630, 2000)
    program.leave(1640)
    program.fire(2005, 2000)
    program.wake(2010)
    program.come(2090)
    program.back(2100, "restart_syscall")
    program.sleep(2300, 3000, 3100, "nanosleep")
    assert said(program)[1:] == [(2000, 2100, "nanosleep", True)]


@pytest.mark.parametrize("lost_at", [1205, 1225])
def test_a_lock_that_was_waited_for_while_events_were_lost_ends_no_job(lost_at: int) -> None:
    program = Program()
    program.sleep(50, 1000, 1100)
    program.wait(1200, 1250, 1280, "futex")
    program.lose(lost_at, cpu=1)
    program.sleep(1500, 2000, 2100)
    program.sleep(2300, 3000, 3100)
    found = jobs_at_once(program)
    assert [(job.release_ns, job.free_ns, job.waits, job.known) for job in found] == [
        (1000, 1520, 1, False),
        (2000, 2320, 0, True),
    ]


def test_a_call_in_which_the_recording_begins_is_one_sleep_however_often_it_wakes_in_vain() -> None:
    program = Program()
    for at in (20, 120, 220):
        program.leave(at)
        program.wake(at + 50, by=77, cpu=1)
        program.come(at + 60)
    program.back(300, "epoll_wait", 1)
    [sleep] = sleeps_of(program.trace, T).sleeps
    assert (sleep.asleep_ns, sleep.woken_ns, sleep.wake_ns, sleep.call) == (20, 270, 300, "epoll_wait")


def test_a_lock_that_was_waited_for_at_the_beginning_is_no_job() -> None:
    program = Program()
    program.wait(20, 30, 60, "futex")
    program.sleep(100, 1000, 1100)
    program.sleep(1300, 2000, 2100)
    program.sleep(2300, 3000, 3100)
    assert [(job.release_ns, job.waits) for job in jobs_at_once(program)] == [(1000, 0), (2000, 0)]


@pytest.mark.parametrize(("between", "known"), [(None, [3000]), (0, [2010, 3000]), (1, [3000])])
def test_a_waking_right_after_lost_events_may_be_a_timers(between: int | None, known: list[int]) -> None:
    """Whose firing was the last that was lost; not where another event of that CPU lies between."""
    program = sleeping_thrice()
    program.sleep(3300, 4000, 4100)
    gone = [event for event in program.events if 1200 < event.time_ns < 2010]
    program.events = [event for event in program.events if event not in gone]
    lost_at = 2010 if between is None else 2009
    if between is not None:
        program.events.append(Event(lost_at, between, kinds.SYS_OUT, 99, name="getppid"))
    program.events.insert(0, Event(lost_at, 0, kinds.LOST, value=len(gone)))
    assert [job.release_ns for job in jobs_at_once(program) if job.known] == known


def test_a_waking_long_after_lost_events_is_known_though_nothing_was_told_of_its_cpu_meanwhile() -> None:
    """Lost before the thread slept, or told in an earlier part: a firing would have come just before."""
    program = sleeping_thrice()
    program.wait(3300, 3500, 3600)
    program.sleep(3700, 4000, 4100)
    program.lose(1250, cpu=1)
    assert [(job.release_ns, job.known) for job in jobs_at_once(program)][-2:] == [(3000, True), (3500, True)]
    program = Program()
    program.wait(1300, 1500, 1600)
    program.sleep(1700, 2000, 2100)
    program.lose(1250, cpu=1)
    whole = program.trace
    parts = [
        whole.taken(np.flatnonzero((np.asarray(whole.time_ns) < 1400) == early)) for early in (True, False)
    ]
    reader = Reader(T)
    sleeps = [one for part in parts for one in reader.see_all(part, part.time_ns[-1] + 1)]
    assert [(job.release_ns, job.known) for job in jobs_of(sleeps)] == [(1500, True)]


def test_who_is_seen_not_to_sleep_after_a_loss_was_woken_on_the_way_to_it() -> None:
    program = Program()
    program.sleep(50, 1000, 1100)
    program.lose(1250)
    program.leave(1300, RUNNABLE)  # pre-empted within a call
    program.wake(1350, by=77, cpu=1)
    program.come(1400)
    program.back(1410, "poll")
    program.sleep(1500, 2000, 2100)
    program.sleep(2300, 3000, 3100)
    assert said(program) == [(1000, 1100, "clock_nanosleep", False), (2000, 2100, "clock_nanosleep", True)]
