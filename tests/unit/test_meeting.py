"""What becomes of a program that is attached to, told by the looks at it."""

from __future__ import annotations

import pytest

from rtmeter.host.root import Root
from rtmeter.host.threads import Task
from rtmeter.measure.probe.supervise import Stop
from rtmeter.measure.programs import meeting
from rtmeter.measure.programs.program import Program


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
    loop = Task(4711, 4712, "loop", False, False, "S", "other", 120, 0, 1)
    there = meeting.Meeting(asked, Root(), Stop(), lambda: None, None)
    [doubt] = there.wait(Program(4711, 1, exe, False, False, 0), [loop])
    assert doubt.type == told
