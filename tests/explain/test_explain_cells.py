"""`rtmeter explain` of a folder of several cells, and what it advises of one."""

from __future__ import annotations

import json
import shutil
from dataclasses import replace
from functools import partial
from pathlib import Path

import pyarrow.parquet as pq
import pytest

from rtmeter import cli
from rtmeter.cli import exit_codes
from rtmeter.cli.campaigns import _to_ask_next
from rtmeter.explain.segments import Key
from rtmeter.judge.explained import explained
from rtmeter.judge.why import why
from rtmeter.judge.why_cells import causes_of, to_explain
from rtmeter.model import Campaign
from rtmeter.results.cells import find_cells
from rtmeter.results.store import SAMPLES
from rtmeter.trace.table import FILE
from synthetic import write_cell
from traced_cells import LATE_NS, THIEF, TRACED, USUAL_NS, write_called, write_traced

Captured = pytest.CaptureFixture[str]
URGENT = {
    "id": "task_at_or_above",
    "grade": "high",
    "value": "driver",
    "why": "it comes before",
    "source": "sched(7)",
    "fix": f"chrt --other --pid 0 {THIEF}",
    "at_worst": "high",
    "items": [{"name": name, "tid": THIEF} for name in ("driver", "other_driver")],
}


def _late_at(late: range, k: int) -> tuple[int]:
    return (LATE_NS if k in late else USUAL_NS,)


def run_of(folder: Path) -> Path:
    """One cell that was in time, one with 2 and one with 8 late releases, and two without a trace."""
    run = folder / "run"
    for name, each in (("a-r1", 1000), ("b-r1", 20), ("b-r2", 5)):
        late = range(each - 1, 1000, each)
        made = replace(TRACED, id=name, delays=partial(_late_at, late), axes={"repeat": int(name[-1])})
        write_traced(run / name, "driver", made)
    for name in ("c", "d"):
        write_cell(run / name, replace(TRACED, id=name))
    return run


def explain(capsys: Captured, *words: object) -> tuple[int, str]:
    code = cli.invoke(["explain", *map(str, words)])
    said = capsys.readouterr()
    return code, " ".join((said.out + said.err).split())


def test_the_cell_with_most_lateness_is_first_and_explained(tmp_path: Path, capsys: Captured) -> None:
    run = run_of(tmp_path)
    code, said = explain(capsys, run, "--top", 1)
    assert code == exit_codes.PASS
    table, _, whole = said.partition(f"rtmeter explain {run}/b-r2")
    assert table.index("│ b-r2 │ 8 │ 3,200.0") < table.index("│ b-r1 │ 2 │ 800.0") < table.index("│ a-r1 │ 0")
    assert "driver ran, more urgent than it (100 %)" in table
    assert table.count("without a record of the kernel's events: c, d; measure it with --explain") == 1
    assert "8 of 40 releases are late" in whole and "release 4: 400.0 us after its time" in whole


def test_each_job_of_a_callback_is_explained_by_the_thread_that_ran_it(
    tmp_path: Path, capsys: Captured
) -> None:
    callers = (4211, 4214, 4215)
    (cell,) = find_cells(write_called(tmp_path / "cell", callers, "driver"))
    found = explained(cell)
    late = [one for one in found.found.releases if one.release.late]
    assert [(one.release.k, one.release.tid) for one in late] == [
        (k, callers[k % 3]) for k in range(0, 40, 5)
    ]
    assert [one.cause.key for one in late if one.cause] == [Key("displaced", "driver", "above")] * 8
    assert found.found.unknown_ns == 3000, "of the first: nothing is told of its thread before"
    shown = why(cell)
    assert shown is not None and all({one.name for one in each.doings} >= {"driver"} for each in shown.worst)
    assert {each.k % 3 for each in shown.worst} > {0}, "also of the others"
    code, said = explain(capsys, tmp_path / "cell")
    assert code == exit_codes.PASS and "driver ran, more urgent than it" in said


def test_of_several_threads_that_stamp_rows_that_do_not_tell_which_are_not_explained(
    tmp_path: Path, capsys: Captured
) -> None:
    cell = write_called(tmp_path / "cell", (4211, 4214), "driver")
    table = pq.read_table(cell / SAMPLES)
    pq.write_table(table.drop_columns(["tid"]), cell / SAMPLES)
    code, said = explain(capsys, cell)
    assert code == exit_codes.ERROR and "has 2 threads that stamp, so that no one can be followed" in said


def test_a_cell_that_was_late_once_and_long_comes_before_one_that_was_late_more_often(tmp_path: Path) -> None:
    for name, late in (("often", {3: LATE_NS // 3, 13: LATE_NS // 3}), ("long", {3: LATE_NS})):
        made = replace(TRACED, id=name, delays=lambda k, late=late: (late.get(k, USUAL_NS),))
        write_traced(tmp_path / name, "driver", made)
    found = causes_of(find_cells(tmp_path))
    assert [(one.cell.record.id, one.late) for one in found] == [("long", 1), ("often", 2)]


def test_without_a_deadline_the_latest_hundredth_is_explained_and_nothing_where_none_missed(
    tmp_path: Path,
) -> None:
    for name, deadline_ns in (("calm", TRACED.deadline_ns), ("none", None)):
        made = replace(TRACED, id=name, delays=lambda k: (USUAL_NS,), deadline_ns=deadline_ns)
        write_traced(tmp_path / name, "driver", made)
    calm, none = find_cells(tmp_path)
    assert (calm.record.id, to_explain([calm])) == ("calm", None)
    assert to_explain([calm, none]) is none


def test_json_has_all_of_them(tmp_path: Path, capsys: Captured) -> None:
    run = run_of(tmp_path)
    assert cli.invoke(["explain", str(run), "--json"]) == exit_codes.PASS
    found = json.loads(capsys.readouterr().out)
    assert [Path(one["cell"]).name for one in found["cells"]] == ["b-r2", "b-r1", "a-r1"]
    assert [sum(row["releases"] for row in one["causes"]) for one in found["cells"]] == [8, 2, 0]
    assert found["without_trace"] == ["c", "d"]


def test_json_of_the_only_cell_with_a_trace_has_the_release_that_was_asked_for(
    tmp_path: Path, capsys: Captured
) -> None:
    run = run_of(tmp_path)
    for name in ("a-r1", "b-r1"):
        shutil.rmtree(run / name)
    assert cli.invoke(["explain", str(run), "--json", "--release", "6"]) == exit_codes.PASS
    [cell] = json.loads(capsys.readouterr().out)["cells"]
    late = [one["k"] for one in cell["releases"] if one["cause"] is not None]
    assert 6 not in late and 6 in [one["k"] for one in cell["releases"]]


def test_repeats_of_a_condition_are_its_cells(tmp_path: Path, capsys: Captured) -> None:
    code, said = explain(capsys, run_of(tmp_path) / "b")
    assert code == exit_codes.PASS, said
    assert "a-r1" not in said and "without a record" not in said
    assert said.index("│ b-r2 │ 8") < said.index("│ b-r1 │ 2")


def test_one_release_of_several_cells_is_refused(tmp_path: Path, capsys: Captured) -> None:
    run = run_of(tmp_path)
    code, said = explain(capsys, run, "--release", 4)
    assert code == exit_codes.ERROR
    assert "--release = 4: is of one cell" in said and f"rtmeter explain {run}/b-r2 --release 4" in said


def test_cells_without_a_trace_are_refused_with_the_remedy(tmp_path: Path, capsys: Captured) -> None:
    for name in ("c", "d"):
        write_cell(tmp_path / "run" / name, replace(TRACED, id=name))
    code, said = explain(capsys, tmp_path / "run")
    assert code == exit_codes.ERROR and "2 cells, none of which has a record" in said
    assert "measure it with --explain" in said


def test_a_damaged_trace_is_named_beside_the_others(tmp_path: Path, capsys: Captured) -> None:
    run = run_of(tmp_path)
    (run / "b-r2" / FILE).write_bytes(b"PAR1")
    code, said = explain(capsys, run)
    assert code == exit_codes.ERROR
    assert "b-r2: " in said and "the trace cannot be read" in said and f"rtmeter explain {run}/b-r1" in said


def test_an_advice_is_given_once_with_the_causes_it_holds_for(tmp_path: Path, capsys: Captured) -> None:
    made = replace(TRACED, changes={"findings": [URGENT]})
    cell = write_traced(tmp_path / "cell", "driver", made, other="other_driver")
    _, said = explain(capsys, cell, "--top", 0)
    assert said.count(f"chrt --other --pid 0 {THIEF}") == 1
    mended = said.partition("└")[2].partition("see task_at_or_above")[0]
    assert "other_driver ran" in mended and ": driver ran" in mended and "(8 late releases)" in mended


def test_of_how_many_releases_nothing_is_known_that_mends_them_is_said(
    tmp_path: Path, capsys: Captured
) -> None:
    cell = write_traced(tmp_path / "cell", "driver", TRACED, other="[migration/1]")
    _, said = explain(capsys, cell, "--top", 0)
    assert "driver ran, more urgent than it (4 late releases); move driver (thread 4711, " in said
    assert "of 4 other late releases neither rtmeter check nor the trace tells what mends them" in said
    only = write_traced(tmp_path / "only", "[migration/1]")
    assert "of 8 late releases neither rtmeter check" in explain(capsys, only, "--top", 0)[1]


def test_a_traced_run_that_missed_proposes_to_explain(tmp_path: Path) -> None:
    run = run_of(tmp_path)

    def proposed(*names: str) -> list[str]:
        cells = [cell for cell in find_cells(run) if cell.folder.name in names]
        return list(_to_ask_next(Campaign("run", ()), run, cells))

    assert proposed("a-r1", "b-r1", "c") == [f"rtmeter explain {run}", f"rtmeter report {run}"]
    assert proposed("b-r1")[0] == f"rtmeter explain {run / 'b-r1'}"
    assert proposed("a-r1", "c") == [f"rtmeter report {run}"], "one was in time, one was not traced"
