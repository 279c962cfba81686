"""What becomes of a program that is attached to, told by the looks at it."""

from __future__ import annotations

import os
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from rtmeter.campaign.matrix import cell_from
from rtmeter.campaign.rules import settle
from rtmeter.errors import RtmeterError
from rtmeter.host.root import Root
from rtmeter.host.threads import Task
from rtmeter.measure.probe.supervise import Stop
from rtmeter.measure.programs import attached, meeting
from rtmeter.measure.programs.program import Program, ended_doubt, exe_of, meant_words, program_of, started_by
from rtmeter.measure.programs.started import StartedProgram
from rtmeter.model import Doubt
from waiting import until

LOOP = Task(4711, 4712, "loop", False, False, "S", "other", 120, 0, 1)


@pytest.mark.parametrize(
    ("becomes", "told"),
    [("/bin/other", "program_replaced"), ("/bin/loop", "program_ended"), ("", "program_ended")],
)
def test_an_exec_at_the_moment_of_a_look_is_no_end_of_a_thread(
    monkeypatch: pytest.MonkeyPatch, becomes: str, told: str
) -> None:
    """The threads of the program go with it, just while they are looked for."""
    exe = "/bin/loop"

    def gone(_task: Task, _root: Root) -> bool:
        nonlocal exe
        exe = becomes
        return False

    monkeypatch.setattr(meeting, "is_there", gone)
    monkeypatch.setattr(meeting, "exe_of", lambda _pid, _root: exe)
    monkeypatch.setattr(meeting.time, "sleep", lambda _: pytest.fail("it looks again"))
    asked = {"duration_ns": 10**12}
    there = meeting.Meeting(asked, Root(), Stop(), lambda: None, None)
    [doubt] = there.wait(Program(4711, 1, exe, False, False, 0), [LOOP])
    assert doubt.type == told


def test_it_is_waited_no_longer_where_the_recording_tells_that_the_threads_are_another_programs(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(meeting, "is_there", lambda *_: True)
    monkeypatch.setattr(meeting, "exe_of", lambda *_: "/bin/loop")
    monkeypatch.setattr(meeting.time, "sleep", lambda _: None)
    there = meeting.Meeting({"duration_ns": 10**15}, Root(), Stop(), lambda: None, None)
    looks = iter([False, False, True])
    assert there.wait(Program(4711, 1, "/bin/loop", False, False, 0), [LOOP], lambda: next(looks)) == []


def test_a_program_that_ends_while_it_is_looked_for_is_told_by_its_own_words(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Not as one that cannot be found: between two looks at whether it has ended it may have."""
    go_on = tmp_path / "go_on"
    script = f"until [ -e {go_on} ]; do sleep 0.01; done; echo no such bus >&2; exit 7"

    def looked_for(pid: int, root: Root) -> Program:
        go_on.touch()
        until(lambda: not exe_of(pid, root))
        return program_of(pid, root)

    monkeypatch.setattr(meeting, "program_of", looked_for)
    with StartedProgram(f"sh -c '{script}'", {}, tmp_path, []) as started:
        there = meeting.Meeting({}, Root(), Stop(), started.check, started)
        with pytest.raises(RtmeterError, match="ended with exit code 7: no such bus"):
            there.program()


def test_a_program_that_is_to_run_at_other_does_not_inherit_the_fronts_priority(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(os, "sched_getscheduler", lambda _pid: os.SCHED_FIFO)
    config = {"scheduling": {"policy": "other"}}
    words = [Path(word).name for word in StartedProgram("sleep 600", config, tmp_path, [])._command]
    assert words == ["setpriv", "--pdeathsig", "KILL", "chrt", "--other", "0", "sleep", "600"]
    with StartedProgram("sleep 600", config, tmp_path, []) as program:
        until(lambda: program.is_itself)
        monkeypatch.undo()
        assert os.sched_getscheduler(program.pid) == os.SCHED_OTHER


@pytest.mark.parametrize(
    ("asked", "said"),
    [
        ({"thread": "sleep"}, "is no thread of the program, but of sleep, which it started"),
        ({"thread": "slept"}, "choose one of sh"),
        ({"warm_up_ns": 0}, "is not told, and none is periodic"),
    ],
)
def test_of_a_launcher_it_is_said_what_it_started(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, asked: dict[str, Any], said: str
) -> None:
    monkeypatch.setattr(meeting, "_APPEARS_S", 0)
    monkeypatch.setattr(meeting, "look", lambda *_: [])
    with StartedProgram("sh -c 'sleep 600 & wait'", {}, tmp_path, []) as started:
        [child] = until(lambda: [one for one in started_by(started.pid, Root()) if one.name == "sleep"])
        there = meeting.Meeting(asked, Root(), Stop(), started.check, started)
        with pytest.raises(RtmeterError) as error:
            there.thread(program_of(started.pid, Root()))
    assert said in str(error.value)
    told = (
        f"it started sleep ({child.pid}): if that is meant, start it itself, or give --pid of one that runs"
    )
    assert (told in str(error.value.remedy)) == ("slept" not in asked.values())


def test_what_a_program_started_and_what_that_did_are_told(tmp_path: Path) -> None:
    for pid, parent in ((7, 1), (9, 5), (8, 7), (5, 8), (6, 1)):
        stat = tmp_path / f"proc/{pid}/stat"
        stat.parent.mkdir(parents=True)
        stat.write_text(f"{pid} (p{pid}) S {parent} {' 0' * 40}")
    assert [one.pid for one in started_by(7, Root(tmp_path))] == [8, 5, 9]
    assert meant_words([]) == ""


@pytest.mark.parametrize(
    ("kind", "status"),
    [
        ("program_ended", "interrupted"),
        ("program_replaced", "interrupted"),
        ("command_killed", "complete"),
        ("target_clock_off", "complete"),
    ],
)
def test_a_measurement_is_cut_short_by_the_end_of_its_program_and_by_no_other_doubt(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, kind: str, status: str
) -> None:
    given = {"measurement": "loop", "adapter": "attached", "pid": 1, "duration": "1s"}
    source: Any = attached.ByAttaching(cell_from(settle(given), "cell", {}))
    monkeypatch.setattr(attached, "measured_loop", lambda *_: SimpleNamespace(error=None, cut=None))
    recording, doubt = SimpleNamespace(trace=lambda: None), Doubt(kind, "said", "")
    outcome = source.measured(recording, None, None, tmp_path, [doubt], Stop(), None)
    assert (outcome.status, outcome.warnings) == (status, (doubt,))


@pytest.mark.parametrize("doubts", [[], [Doubt("program_ended", "the program", "")]])
def test_a_thread_that_ended_while_others_went_on_was_measured_until_then(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, doubts: list[Doubt]
) -> None:
    given = {"measurement": "loop", "adapter": "attached", "pid": 1, "duration": "1s"}
    source: Any = attached.ByAttaching(cell_from(settle(given), "cell", {}))
    cut = ended_doubt("its thread")
    monkeypatch.setattr(attached, "measured_loop", lambda *_: SimpleNamespace(error=None, cut=cut))
    recording = SimpleNamespace(trace=lambda: None)
    outcome = source.measured(recording, None, None, tmp_path, doubts, Stop(), None)
    assert (outcome.status, outcome.warnings) == ("interrupted", tuple(doubts) or (cut,))


@pytest.mark.parametrize(("judge", "asked"), [("completion", (1_000_000, False)), ("latency", (None, True))])
def test_a_deadline_of_the_wake_up_is_none_of_a_jobs_end(judge: str, asked: tuple[int | None, bool]) -> None:
    given = {"measurement": "loop", "adapter": "attached", "pid": 1, "duration": "1s", "judge": judge}
    settled = settle(given | {"deadline": "1ms"})
    source = attached.ByAttaching(cell_from(settled, "cell", {}))
    assert (source.overdue_ns, source.until_wake) == asked
