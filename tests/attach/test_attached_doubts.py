"""What is to be said of the rows of scripted programs, beside a recording in which nothing was lost."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from programs import ENDED, Program, T

from rtmeter.attach.callbacks import Callback
from rtmeter.attach.follow import Followed
from rtmeter.campaign.matrix import cell_from
from rtmeter.campaign.rules import settle
from rtmeter.errors import RtmeterError
from rtmeter.explain.marks import Mark
from rtmeter.host.root import Root
from rtmeter.host.threads import Task
from rtmeter.measure.programs import attached_record, named
from rtmeter.measure.programs.following import Written
from rtmeter.measure.programs.program import Program as ProgramSeen
from rtmeter.measure.programs.program import ended_doubt
from rtmeter.model import Doubt
from rtmeter.trace.recorder import RecordingTally

MS = 1_000_000
LOOP = Task(4711, 4711, "loop", False, False, "S", "other", 120, 0, 1)
NOBODY = 2**30


def doubts(
    program: Program, period_ns: int | None = None, end_ns: int | None = None, *, until_wake: bool = False
) -> dict[str, str]:
    """Messages by type."""
    followed = Followed(T, [(program.trace, None)], period_ns, 0, until_wake=until_wake)
    followed.end_ns = end_ns
    for _ in followed.pieces():
        pass
    attached: Any = SimpleNamespace(root=Root(), tally=RecordingTally(1, 0, 0, (), False))
    task: Any = SimpleNamespace(tid=NOBODY)
    known: Any = SimpleNamespace(debugged=False)
    return {doubt.type: doubt.message for doubt in attached_record._doubts(attached, known, task, followed)}


def a_recording() -> Any:
    tally = RecordingTally(1, 0, 0, (), False)
    of_it: dict[str, Any] = {"marks": [], "by": "tracefs", "event_ns": None, "anchors": None}
    return SimpleNamespace(root=Root(), tally=tally, **of_it)


@pytest.mark.parametrize(
    ("how", "kind", "said"),
    [
        ("", None, ""),
        ("ends", "program_ended", "its thread loop (7) ended"),
        ("execs", "program_replaced", "/bin/loop became another by exec"),
    ],
)
def test_what_ended_a_thread_before_its_recording_is_told(how: str, kind: str | None, said: str) -> None:
    program = sleeping((0,))
    if how == "ends":
        program.leave(30 * MS, ENDED)
    elif how:
        program.enter(30 * MS, "execve")
        program.back(30 * MS + 10, "execve")
    followed = Followed(T, [(program.trace, None)], None, 0)
    for _ in followed.pieces():
        pass
    task: Any = SimpleNamespace(tid=7, name="loop")
    cut = attached_record._cut(ProgramSeen(4711, 1, "/bin/loop", False, False, 0), task, followed)
    assert (cut and cut.type, said in (cut.message if cut else "")) == (kind, True)


@pytest.mark.parametrize(
    ("does", "cut", "said"),
    [
        ("ends", None, "ended before it did a whole job"),
        ("execs", None, "became another program before it did a whole job"),
        ("", ended_doubt("the program"), "ended before it did a whole job"),
        ("", None, "never woke in that time"),
    ],
)
def test_of_a_thread_that_ended_at_once_it_is_not_said_what_it_waits_for(
    tmp_path: Path, does: str, cut: Doubt | None, said: str
) -> None:
    """Beside others of its program that go on, or with the program."""
    program = Program()
    if does == "ends":
        program.leave(10, ENDED)
    elif does == "execs":
        program.back(10, "execve")
    else:
        program.events.clear()
    written = Written(Followed(T, [(program.trace, None)], None, 0), tmp_path / "rows.parquet")
    written.write()
    options = {"measurement": "loop", "adapter": "attached", "pid": 1, "duration": "1s"}
    cell = cell_from(settle(options), "cell", {})
    given = a_recording(), ProgramSeen(4711, 1, "", False, False, 0), LOOP, cell, tmp_path, written
    loop = attached_record.measured_loop(*given, [] if cut is None else [cut])
    assert (loop.error and loop.error.message) == said


def sleeping(offsets_us: tuple[int, ...], cycles: int = 20) -> Program:
    """Until each of these times in every ms."""
    program, at = Program(), 50
    for release in (cycle * MS + one * 1000 for cycle in range(1, cycles + 1) for one in offsets_us):
        program.sleep(at, release, release + 100)
        at = release + 400
    return program


@pytest.mark.parametrize("offsets", [(0, 300), (0, 700), (0, 300, 450)])
def test_several_sleeps_in_a_cycle_at_no_one_distance_are_told(offsets: tuple[int, ...]) -> None:
    assert doubts(sleeping(offsets)).keys() == {"no_grid"}


def test_a_given_period_that_is_not_the_loops_is_told_as_that() -> None:
    message = "its timers come mostly not 2ms apart: no grid, so nothing is skipped"
    assert doubts(sleeping((0,)), 2 * MS) == {"no_grid": message}


@pytest.mark.parametrize("cycles", [1, 2, 3])
@pytest.mark.parametrize("given", [None, MS, 2 * MS])
def test_of_one_distance_or_none_it_is_not_said_that_there_is_no_grid(cycles: int, given: int | None) -> None:
    """Of so many sleeps the last job is not seen whole."""
    assert "no_grid" not in doubts(sleeping((0,), cycles), given)


def test_releases_that_it_slept_over_are_told_unless_the_period_was_given() -> None:
    found = doubts(sleeping((0, 100, 200), 3))
    assert found == {"slept_over": "14 of 14 skipped releases passed while it slept"}
    assert doubts(sleeping((0, 100, 200), 3), 100_000) == {}


def correcting(distances_ms: list[float]) -> Program:
    """Sleeps for what is left until a time of its own, which it works out in some 100 ns; its work varies."""
    program, at, due = Program(), 50, MS
    for k, distance in enumerate(distances_ms):
        release = due + 40 * (k * k % 7)
        program.sleep(at, release, release + 20_000 * (k % 4 + 1))
        at = release + 20_000 * (k % 4 + 1) + 300
        due += round(distance * MS)
    return program


GAPS = [1] * 20 + [4] + [1] * 10 + [2] + [1] * 10


@pytest.mark.parametrize("given", [None, MS])
def test_times_that_a_loop_passed_over_which_corrects_its_sleeps_are_told(given: int | None) -> None:
    found = doubts(correcting(GAPS), given)
    assert found.pop("passed_over") == (
        "it sleeps for what is left until a time of its own (clock_nanosleep): some 4 such times passed with "
        "no sleep until them; they are no releases, and in no count"
    )
    behind = "falls 0.0 us behind with each job, 0.0 ms in all"
    assert [message.partition("the loop ")[2] for message in found.values()] == [behind] * (given is not None)


def test_a_loop_that_begins_anew_after_a_stall_passed_over_nothing() -> None:
    assert doubts(correcting([1] * 20 + [3.4] + [1] * 20)) == {}


@pytest.mark.parametrize(
    ("passed", "told"), [(4, ""), (5, "; of what passed since only the first 4 releases are skipped")]
)
def test_of_a_hang_of_very_many_periods_it_is_told_how_much_is_skipped(
    monkeypatch: pytest.MonkeyPatch, passed: int, told: str
) -> None:
    monkeypatch.setattr(attached_record, "LARGEST_GAP", 5)
    [message] = doubts(sleeping((0,)), end_ns=(20 + passed) * MS + 400).values()
    assert message.partition("it is lost")[2] == told


def test_a_loop_with_one_sleep_in_a_cycle_leaves_no_doubt() -> None:
    assert doubts(sleeping((0,))) == {}


def test_a_job_that_had_not_ended_is_told_with_how_long_it_had_been_due() -> None:
    found = doubts(sleeping((0,)), end_ns=25 * MS + 400)
    assert found == {
        "job_unended": "a job that was due 5.0004ms before the recording's end had not ended then: it is lost"
    }
    [woken] = doubts(sleeping((0,)), end_ns=25 * MS + 400, until_wake=True).values()
    assert woken.endswith("had not ended then: it had woken, and is no row")


def test_of_a_callback_all_threads_that_call_it_are_recorded() -> None:
    attached, loop = a_recording(), LOOP
    more = replace(loop, tid=4712, name="more", policy="fifo", priority=7)
    followed = Followed(T, [(sleeping((0,)).trace, None)], None, 0)
    for _ in followed.pieces():
        pass
    meta = attached_record._meta(
        attached, ProgramSeen(4711, 1, "", False, False, 0), loop, followed, given=False
    )
    callback = Callback("rcl_timer", (4711, 4712), None, None, (20 * MS,), True, ())
    timer = {"timer": 1, "due": 0, "period": 20 * MS}
    does = ("call_with_info", timer), ("wait", {}), ("call", timer), ("call_with_info", timer), ("end", {})
    attached.marks = [Mark(at, 4711, what, values) for at, (what, values) in enumerate(does)]
    attached.marks.append(Mark(9, 4712, "wait"))
    attached_record._name(meta, callback, attached, [loop, more, replace(more, tid=4713)])
    assert meta.adapter["thread"] == "loop, more"
    assert meta.instrument["probes_per_job"] == 2.5, "of the first thread, by either of rcl's functions"
    assert [(one["tid"], one["policy"], one.get("priority")) for one in meta.threads] == [
        (4711, "other", None),
        (4712, "fifo", 7),
        (4713, "fifo", 7),
    ]


@pytest.mark.parametrize(
    ("periods", "given", "held_to"),
    [((20, 40), None, None), ((20,), None, 20), ((20, 40), "30ms", 30), ((), None, None)],
)
def test_a_callback_is_held_to_its_timers_period_only_if_that_never_changed(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    periods: tuple[int, ...],
    given: str | None,
    held_to: int | None,
) -> None:
    asked: list[int | None] = []

    def written_of(*given: Any, **_: Any) -> Written:
        asked.append(given[3])
        return Written(Followed(T, [(Program().trace, None)], None, 0), tmp_path / "rows.parquet")

    monkeypatch.setattr(named, "written_of", written_of)
    monkeypatch.setattr(named, "measured_loop", lambda *_, **__: SimpleNamespace(error=RtmeterError("")))
    monkeypatch.setattr(named._OneCallback, "look_at", lambda *_: None)
    every = tuple(period * MS for period in periods)
    seen = named.Called((LOOP,), Callback("rcl_timer", (LOOP.tid,), None, None, every, True, ()))
    attached: Any = SimpleNamespace(trace=lambda: Program().trace)
    recorded: Any = SimpleNamespace(root=Root(), now={}, program=None, recorded=lambda _: (attached, []))
    options = {"measurement": "loop", "adapter": "attached", "pid": 1, "duration": "1s"}
    cell = cell_from(settle(options | ({"period": given} if given else {})), "cell", {})
    nobody: Any = None
    named._OneCallback(cell, recorded, seen).run(tmp_path, nobody, nobody, nobody)
    assert asked == [None if held_to is None else held_to * MS]


@pytest.mark.parametrize("several", [False, True])
def test_that_a_thread_has_several_timers_of_one_kind_is_told(several: bool) -> None:
    """Read as they come due, each goes on by itself: the one of 1 ms, and the one of 3 ms beside it."""
    program, at = Program(), 50
    for cycle in range(1, 30):
        due = cycle * MS
        program.sleep(at, due, due + 100, "epoll_wait", "timerfd_tmrproc")
        program.enter(due + 150, "read")
        program.arm(due + 160, due + MS, "timerfd_tmrproc")
        program.back(due + 170, "read", 8)
        if several and cycle % 3 == 0:
            program.enter(due + 200, "read")
            program.arm(due + 210, due + 3 * MS, "timerfd_tmrproc")
            program.back(due + 220, "read", 8)
        at = due + 400
    assert ("several_timers" in doubts(program)) == several
