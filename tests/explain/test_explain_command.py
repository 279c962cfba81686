"""`rtmeter explain` of scripted traces: what it prints, and what it says of files that are wrong."""

from __future__ import annotations

import json
import shlex
from dataclasses import replace
from pathlib import Path

import pytest
from scripts import EVENTS, RELEASES, written

from rtmeter import cli
from rtmeter.cli import exit_codes
from rtmeter.judge.verdict import judge
from rtmeter.model import Doubt, Requirement
from rtmeter.results import store
from rtmeter.results.record import text_of
from traced_cells import DEADLINE_NS, TRACED, USUAL_NS, write_traced

Captured = pytest.CaptureFixture[str]
SCRIPT = """
0 0 switch 0 10 runnable 19 loop
1100 0 switch 10 77 runnable 9 \x1b[2Jhog
1900 0 switch 77 10 runnable 19
"""
HEADER = ",".join(EVENTS)


def explain(capsys: Captured, events: Path, releases: Path, *more: str) -> tuple[int, str]:
    files = ["--events", str(events), "--releases", str(releases)]
    code = cli.invoke(["explain", *files, *(more or ("--thread", "10"))])
    said = capsys.readouterr()
    return code, said.out + said.err


def test_it_says_the_cause_in_words_and_nothing_a_terminal_heeds(tmp_path: Path, capsys: Captured) -> None:
    files = written(tmp_path, SCRIPT, (4, 1000, 2000, 1), (5, 1000, 1050, 0))
    code, said = explain(capsys, *files)
    assert code == exit_codes.PASS and "\x1b" not in said
    assert "1 of 2 releases are late" in said and "release 4: 1.0 us after its time" in said
    assert r"\x1b[2Jhog ran, more urgent than it" in said and "unknown" in said
    assert "release 5" not in said
    _, said = explain(capsys, *files, "--thread", "10", "--release", "5")
    assert "release 5" in said and "release 4" not in said
    _, said = explain(capsys, *files, "--thread", "10", "--top", "0")
    assert "release 4" not in said


@pytest.mark.parametrize(
    ("events", "releases", "expected"),
    [
        ("time_ns,cpu", "", "has no column event; begin it with"),
        (f"{HEADER},time_ns\n5,0,fault,1,,,,,,6", "", "has the column time_ns twice; leave one of them out"),
        (f"{HEADER}\nx,0,fault,1,,,,,", "", "events.csv:2: --events: time_ns = 'x': is no whole number"),
        (f"{HEADER}\n5,0,fault,1,,,,,\n4,0,fault,1,,,,,", "", "4': is before that of the row above, 5; sort"),
        (f"{HEADER}\n5,0,jump,1,,,,,", "", "--events: event = 'jump': is not known; choose switch, waking"),
        (f"{HEADER}\n5,0,switch,1,2,,,,", "", "--events: state = '': is empty; say how the thread leaves"),
        (f"{HEADER}\n5,0,switch,1,,ended,,,", "", "--events: target = '': is empty"),
        (f"{HEADER}\n5,0,switch,1,1,ended,,,", "", "is the thread that leaves; name the one that runs"),
        (f"{HEADER}\n5,0,waking,1,0,,,,", "", "is the idle thread"),
        (f"{HEADER}\n5,0,fault,,,,,,", "", "--events: tid = '': is empty"),
        (f"{HEADER}\n5,0,lent,1,,,19,,120", "", "--events: target = '': is empty"),
        (f"{HEADER}\n5,0,lent,1,2,,,,120", "", "--events: priority = '': is empty"),
        (f"{HEADER}\n5,0,lent,1,2,,19,,", "", "--events: value = '': is empty"),
        (f"{HEADER}\n5,0,fault,9999999999,,,,,", "", "is not from 0 to 2147483647"),
        (f"{HEADER}\n5,0,fault,1", "", "events.csv:2: --events = "),
        (f"{HEADER}\n5,0,fault,1", "", "has 4 fields, its header 9; write a field for each column"),
        (f'{HEADER}\n5,0,"fault,1', "", "events.csv:2: --events = "),
        (f'{HEADER}\n5,0,"fault,1', "", "is no CSV: unexpected end of data; write CSV in UTF-8"),
        (f'{HEADER}\n5,0,"fault"x,1\n', "", "events.csv:2: --events = "),
        ("", "0,5,6,2", "--releases: late = '2': is not from 0 to 1; write 0 for in time or 1 for late"),
        ("", "0,5,6,1\n0,7,8,1", "releases.csv:3: --releases: k = '0': is there twice"),
        ("", "0,5,4,1", "--releases: stamp_ns = '4': is before the release, which is late"),
    ],
)
def test_a_file_that_is_wrong(
    tmp_path: Path, capsys: Captured, events: str, releases: str, expected: str
) -> None:
    files = tmp_path / "events.csv", tmp_path / "releases.csv"
    files[0].write_text(events or HEADER)
    files[1].write_text(",".join(RELEASES) + "\n" + releases)
    code, said = explain(capsys, *files)
    assert code == exit_codes.ERROR and expected in said


MESSAGE = """
0 0 switch 0 10 runnable 19 ctrl
500 0 sys_in 10 - - - recvmsg
510 0 switch 10 20 sleeping 130 sender
1700 0 sys_in 20 - - - sendmsg
1701 0 waking 20 10 - 19 ctrl
1702 0 switch 20 10 runnable 19 ctrl
1703 0 sys_out 10 - - - recvmsg
"""


def test_in_the_text_what_another_did_on_a_messages_path_has_its_name(
    tmp_path: Path, capsys: Captured
) -> None:
    """Not in --json, whose keys are those of the definition."""
    files = written(tmp_path, MESSAGE, (0, 100, 200, 0), (1, 1000, 1900, 1))
    _, said = explain(capsys, *files)
    assert "cause: sender, on the message's path, ran its own code" in said
    assert "in the system call sendmsg of sender" in said
    [cause] = json.loads(explain(capsys, *files, "--thread", "10", "--json")[1])["causes"]
    assert "of" not in cause and cause["category"] == "own"


def test_what_the_trace_tells_that_mends_a_cause_is_said_without_a_cell(
    tmp_path: Path, capsys: Captured
) -> None:
    files = written(tmp_path, SCRIPT.replace("\x1b[2J", ""), (4, 1000, 2000, 1), (5, 1000, 1050, 0))
    _, said = explain(capsys, *files)
    assert "hog ran, more urgent than it (1 late release); " in said


@pytest.mark.parametrize("in_time", [True, False])
def test_where_none_was_in_time_the_share_is_of_the_lateness_alone(
    tmp_path: Path, capsys: Captured, in_time: bool
) -> None:
    files = written(tmp_path, SCRIPT, (4, 1000, 2000, 1), *[(5, 1000, 1050, 0)] * in_time)
    said = explain(capsys, *files)[1]
    assert ("% of what is more than in releases in time)" in said) == in_time
    assert ("% of it; none was in time to compare with)" in said) == (not in_time)


def test_a_file_of_a_spreadsheet_begins_with_a_mark(tmp_path: Path, capsys: Captured) -> None:
    files = written(tmp_path, SCRIPT, (4, 1000, 2000, 1))
    for file in files:
        file.write_text(file.read_text(), encoding="utf-8-sig")
    assert explain(capsys, *files)[0] == exit_codes.PASS


@pytest.mark.parametrize(
    ("given", "field"),
    [(["results"], "PATH"), (["--events", "a"], "--events"), (["--deadline", "1ms"], "--deadline")],
)
def test_a_self_test_plants_nothing_where_something_else_was_meant_too(
    capsys: Captured, given: list[str], field: str
) -> None:
    assert cli.invoke(["explain", "--self-test", *given]) == exit_codes.ERROR
    assert f"{field} = '{given[-1]}': contradicts --self-test" in capsys.readouterr().err


def test_what_is_missing_or_is_not_there(tmp_path: Path, capsys: Captured) -> None:
    files = written(tmp_path, SCRIPT, (4, 1000, 2000, 1))
    assert cli.invoke(["explain", "--events", str(files[0]), "--thread", "10"]) == exit_codes.ERROR
    assert "--releases: is missing; give --events, --releases, --thread, or a cell" in capsys.readouterr().err
    nowhere = tmp_path / "nowhere.csv"
    assert "cannot be read: No such file" in explain(capsys, nowhere, files[1])[1]
    assert "--thread = 11: occurs in no event" in explain(capsys, *files, "--thread", "11")[1]
    said = explain(capsys, *files, "--thread", "10", "--release", "5")[1]
    assert "--release = 5: is not among the releases; there are releases from 4 to 4" in said
    option = "--release"
    code, said = explain(capsys, *files, "--thread", "10", "--json", option, "5")
    assert code == exit_codes.ERROR
    assert json.loads(said[: said.rindex("}") + 1])["error"]["field"] == option


def test_why_fewer_are_late_than_missed_is_said(tmp_path: Path, capsys: Captured) -> None:
    """Each fifth release keeps the thread over the next two, which are skipped: missed, without a stamp."""
    delays = lambda k: (2_400_000 if k % 5 == 0 else USUAL_NS,)  # noqa: E731
    asked = Requirement(DEADLINE_NS, 0.001)
    made = replace(TRACED, delays=delays, skip=True)
    cell = write_traced(tmp_path / "r" / "traced", "hog", made)
    record = store.read_cell(cell)
    verdict = judge(record.meta, store.chunks(cell), asked)
    (cell / store.CELL).write_text(text_of(record.changed(requirement=asked, verdict=verdict)))
    assert (verdict.misses, verdict.late, verdict.skipped) == (24, 8, 16)
    why = "of the 24 that missed 16 were skipped or lost and have no stamp: nothing tells why"
    assert cli.invoke(["explain", str(cell)]) == exit_codes.PASS
    said = capsys.readouterr().out
    assert f"late: beyond the deadline of 100us; compared with 16 of 16 in time; {why}\n" in said
    assert "8 of 24 releases with a stamp are late" in said
    assert cli.invoke(["verdict", str(cell)]) == exit_codes.FAIL
    assert f"; {why}\n" in capsys.readouterr().out
    write_traced(tmp_path / "r" / "other", "hog", replace(TRACED, id="other"))
    assert cli.invoke(["explain", str(tmp_path / "r")]) == exit_codes.PASS
    assert "16 more missed by the verdicts, skipped or lost: without a stamp" in capsys.readouterr().out
    assert cli.invoke(["explain", str(tmp_path / "r"), "--deadline", "300us"]) == exit_codes.PASS
    assert "more missed by the verdicts" not in capsys.readouterr().out, "those had another deadline"


def test_what_follows_a_verdict_by_another_deadline_explains_what_missed_that(
    tmp_path: Path, capsys: Captured
) -> None:
    """The cell has no miss by its own deadline; the folder's name has a space."""
    one = tmp_path / "a cell" / "one"
    write_traced(one, "hog", replace(TRACED, id="one", deadline_ns=1_000_000))
    assert cli.invoke(["verdict", str(one), "--deadline", "300us"]) == exit_codes.FAIL
    said = capsys.readouterr().out
    assert f"8 of {TRACED.samples} releases missed" in said
    command = said.partition("type rtmeter ")[2].partition(": it says why")[0]
    assert cli.invoke(shlex.split(command)) == exit_codes.PASS
    said = capsys.readouterr().out
    assert f"deadline of 300us; compared with 32 of 32 in time\n8 of {TRACED.samples}" in said
    assert cli.invoke(["explain", str(one)]) == exit_codes.PASS
    assert f"0 of {TRACED.samples} releases are late" in capsys.readouterr().out
    write_traced(tmp_path / "a cell" / "never", "hog", replace(TRACED, id="never", delays=lambda k: (k,)))
    assert cli.invoke(["explain", str(tmp_path / "a cell"), "--deadline", "300us"]) == exit_codes.PASS
    said = capsys.readouterr().out
    assert said.index("│ one") < said.index("│ never") and f"{command.split(' ', 1)[1]}\n" in said
    assert cli.invoke(["explain", str(tmp_path / "a cell"), "--deadline", "300us", "--json"]) == 0
    assert [len(cell["causes"]) for cell in json.loads(capsys.readouterr().out)["cells"]] == [1, 0]
    files = written(tmp_path, SCRIPT, (4, 1000, 2000, 1))
    said = explain(capsys, *files, "--thread", "10", "--deadline", "1ms")[1]
    assert "--deadline = '1ms': is of a cell; say in the file of the releases" in said


def test_a_verdict_says_why_by_the_cells_own_deadline_only(tmp_path: Path, capsys: Captured) -> None:
    """What is kept of the cell explains what missed that one, not what missed another."""
    cell = write_traced(tmp_path / "traced", "hog")
    for options, said in (([], True), (["--deadline", "200us"], False)):
        assert cli.invoke(["verdict", str(cell), *options]) == exit_codes.FAIL
        out = capsys.readouterr().out
        assert ("\n  why              of 8 late releases 8: " in out) is said
        assert (f"type rtmeter explain {cell}: it says why" in " ".join(out.split())) is said


def test_what_the_recording_lost_of_a_cell_is_said(tmp_path: Path, capsys: Captured) -> None:
    cell = write_traced(tmp_path / "traced", "hog")
    record = store.read_cell(cell)
    lost = Doubt("trace_lost", "7 events of the kernel were lost", "leave a CPU to the front")
    other = Doubt("load_exceeded", "the machine was busy", "free it")
    whole = record.changed(warnings=[other])
    for kept, said in ((record.changed(warnings=[other, lost]), True), (whole, False)):
        (cell / store.CELL).write_text(text_of(kept), encoding="utf-8")
        assert cli.invoke(["explain", str(cell)]) == exit_codes.PASS
        out = capsys.readouterr().out
        line = "trace_lost: 7 events of the kernel were lost (leave a CPU to the front)\n"
        assert (line in out) is said and "busy" not in out
