"""`rtmeter verdict`: one verdict of all repeats of a cell."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from rtmeter import cli
from rtmeter.cli import exit_codes
from rtmeter.model import Requirement
from rtmeter.statistics.joint import RunMisses, joint
from synthetic import Made, write_cell
from verdicts import Captured, as_json, verdict
from wakeups import MS, draw, late_at, write_wakeups


@pytest.fixture(autouse=True)
def _in_an_empty_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


def repeats(scales: dict[int, float], **changes: Any) -> None:
    for number, scale in scales.items():
        folder = Path(f"r/cell-r{number}")
        write_wakeups(folder, draw(number, scale_ns=50_000 * scale), repeat=number, **changes)


def test_repeats_of_a_cell_have_one_verdict(capsys: Captured) -> None:
    repeats({1: 1.0, 2: 1.0, 3: 1.0})
    code, said = verdict("r --deadline 1ms --miss-ratio 1e-4", capsys)
    assert code == exit_codes.PASS  # 20,000 alone would not do: 3 / n = 1.5e-4
    assert said.startswith("cell: pass: 0 of 60,000 releases missed the deadline of 1,000 us")
    of_each, of_both = (
        found.partition("design effect")[2].splitlines()[0]
        for found in (verdict("r/cell-r1 --deadline 1ms --miss-ratio 1e-4", capsys)[1], said)
    )
    assert of_both.endswith(" of the upper bound, with how far runs differ)") and "bound" not in of_each
    assert "cell-r1" not in said and verdict("r/cell-r1 --deadline 1ms --miss-ratio 1e-4", capsys)[0] == 3
    (found,) = as_json("r --deadline 1ms --miss-ratio 1e-4", capsys)["cells"]
    assert found["n"] == 60_000 and found["path"] == ["r/cell-r1", "r/cell-r2", "r/cell-r3"]
    assert [one["outcome"] for one in found["repeats"]] == ["inconclusive"] * 3
    each = verdict("r --deadline 1ms --miss-ratio 1e-4 --repeats", capsys)[1]
    assert [f"    cell-r{number}: inconclusive: 0 of 20,000" in each for number in (1, 2, 3)] == [True] * 3


def test_repeats_of_which_a_later_one_was_interrupted_are_interrupted(capsys: Captured) -> None:
    repeats({1: 1.0})
    repeats({2: 1.0}, changes={"status": "interrupted"})
    (found,) = as_json("r --deadline 1ms --miss-ratio 1e-2", capsys)["cells"]
    assert (found["id"], found["status"], found["n"]) == ("cell", "interrupted", 40_000)
    assert verdict("r --deadline 1ms --miss-ratio 1e-2", capsys)[1].startswith("cell (interrupted): pass: ")


def test_of_runs_too_short_by_themselves_it_is_said_once_what_passes(capsys: Captured) -> None:
    for number in (1, 2, 3):
        write_wakeups(Path(f"r/cell-r{number}"), draw(number, 300), repeat=number)
    said = verdict("r --deadline 1ms --miss-ratio 0.01", capsys)[1]
    more = as_json("r --deadline 1ms --miss-ratio 0.01", capsys)["cells"][0]["more_samples"]
    assert more == 3_000 and "3 of 3 runs are too short to look at" in said, "short runs stay so"
    step = "measure 3 runs of 1,000 releases each (1 s) instead of 300: if none of them misses, it passes"
    assert f"  next             {step}\n" in said and said.count("passes") == 1


def test_a_run_that_is_too_short_is_measured_anew_however_long_the_others_are(capsys: Captured) -> None:
    """An interrupted repeat: with two more runs beside it the condition would be as undecided."""
    for repeat, n in ((1, 20_000), (2, 70)):
        write_wakeups(
            Path(f"r/a-r{repeat}"), draw(repeat, n), repeat=repeat, requirement=Requirement(MS, 0.01)
        )
    code, said = verdict("r", capsys)
    step = "measure 2 runs of 1,000 releases each (1 s) instead of these: if none of them misses, it passes"
    assert code == 3 and step in said


def test_what_is_to_be_measured_of_each_run_passes(capsys: Captured) -> None:
    """Also where what is allowed asks for more than a run that is looked at."""
    for number in (1, 2):
        write_wakeups(Path(f"r/cell-r{number}"), draw(number, 800), repeat=number)
    (found,) = as_json("r --deadline 1ms --miss-ratio 2e-3", capsys)["cells"]
    each = found["more_samples"] // 2
    assert found["more_runs"] == 2 and f"2 runs of {each:,} releases each" in found["next"]
    for number, n in ((1, each), (2, each), (3, each - 1), (4, each - 1)):
        folder = f"{'enough' if n == each else 'short'}/cell-r{1 + number % 2}"
        write_wakeups(Path(folder), draw(number, n), repeat=1 + number % 2)
    assert verdict("enough --deadline 1ms --miss-ratio 2e-3", capsys)[0] == exit_codes.PASS
    assert verdict("short --deadline 1ms --miss-ratio 2e-3", capsys)[0] == exit_codes.INCONCLUSIVE


def test_without_a_miss_longer_runs_are_asked_for_where_it_takes_many(capsys: Captured) -> None:
    for number in (1, 2, 3):
        write_wakeups(Path(f"r/cell-r{number}"), draw(number, 1_000), repeat=number)
    (found,) = as_json("r --deadline 1ms --miss-ratio 1e-5", capsys)["cells"]
    each = found["more_samples"] // 3
    assert found["more_runs"] == 3 and 1_000 < each < 299_572, "each less than one run alone takes"
    assert found["next"].startswith(f"measure 3 runs of {each:,} releases each")
    runs_alike = [RunMisses(each, 0, 1.0)] * 3, [RunMisses(each - 1, 0, 1.0)] * 3
    assert [joint(runs, 0.95).upper <= 1e-5 for runs in runs_alike] == [True, False]


def test_repeats_of_which_more_missed_than_is_allowed_are_no_matter_of_more_runs(capsys: Captured) -> None:
    for number, many in enumerate((0, 0, 12), 1):
        write_wakeups(Path(f"r/cell-r{number}"), late_at(*range(500, 500 + 1500 * many, 1500)), repeat=number)
    code, said = verdict("r --deadline 1ms --miss-ratio 1.9e-4", capsys)
    assert code == exit_codes.INCONCLUSIVE and "  more missed than is allowed, which may be chance\n" in said
    assert "  next             measure again with --explain" in said and "such as these" not in said
    (found,) = as_json("r --deadline 1ms --miss-ratio 1.9e-4", capsys)["cells"]
    assert (found["more_samples"], found["more_runs"]) == (None, None)


def test_what_was_lost_in_each_run_is_told_of_all(capsys: Captured) -> None:
    """One of 2,000 in each of three; the return level is one run's."""
    for number in (1, 2, 3):
        delays = lambda k: (1000, 20_000 + k % 7, 20_000 if k < 2_099 else None)  # noqa: E731
        made = Made(id=f"a-r{number}", measurement="roundtrip", delays=delays, axes={"repeat": number})
        write_cell(Path("run") / made.id, made)
    said = verdict("run --deadline 10ms --miss-ratio 0.1", capsys)[1]
    missed = "3 of 6,000 releases missed the deadline of 10,000 us on response (3 lost)"
    assert said.startswith(f"a: pass: {missed}: 0.05 %, 10 % allowed, worst lost\n")
    assert "  lost             3 of 6,000 releases were lost" in said
    assert "  return level     once in 20 s: not stated: a-r1: 1 of 2,000 releases were lost" in said


def test_the_stored_verdicts_of_repeats_make_that_of_all(capsys: Captured) -> None:
    repeats({1: 1.0, 2: 1.0}, requirement=Requirement(MS, 2e-4))
    code, said = verdict("r", capsys)
    assert code == exit_codes.PASS and said == verdict("r --anew", capsys)[1]


def test_repeats_are_named_without_their_number(capsys: Captured) -> None:
    repeats({1: 1.0, 2: 1.0})
    write_wakeups(Path("r/cell-rare"), draw(9))
    assert "cell: pass: 0 of 40,000" in verdict("r/cell --deadline 1ms", capsys)[1]
    assert "is not there" in verdict("r/cel --deadline 1ms", capsys)[1]


def test_runs_that_lie_apart_widen_the_bound_and_ask_for_more_runs(capsys: Captured) -> None:
    for number, many in enumerate((0, 0, 12), 1):
        write_wakeups(Path(f"r/cell-r{number}"), late_at(*range(500, 500 + 1500 * many, 1500)), repeat=number)
    code, said = verdict("r --deadline 1ms --miss-ratio 5e-4", capsys)
    assert code == exit_codes.INCONCLUSIVE  # 12 of 60,000 that hang together no more than by chance would do
    assert "the 3 runs differ more than dependence within them explains" in said
    assert re.search(r"next +measure [0-9,]+ more runs such as these .*: if they miss as often, it", said)
    (found,) = as_json("r --deadline 1ms --miss-ratio 5e-4", capsys)["cells"]
    assert found["support"]["upper"] > 5e-4 and found["misses"] == 12 and found["more_samples"] % 20_000 == 0
    assert [one["outcome"] for one in found["repeats"]] == ["pass", "pass", "inconclusive"]


def test_few_runs_leave_room_for_the_spread_that_they_do_not_show(capsys: Captured) -> None:
    """3 / 60,000 is 5e-5: as one long run they would pass."""
    repeats({1: 1.0, 2: 1.0, 3: 1.0})
    (found,) = as_json("r --deadline 1ms --miss-ratio 7e-5", capsys)["cells"]
    room = "3 runs do not show how far runs differ: room is made for as much as the ratio itself"
    assert found["outcome"] == "inconclusive"
    assert found["reason"].endswith(room)
    step = "measure 1 more run such as these (20 s): if none of them misses, it passes"
    assert (found["next"], found["more_samples"], found["more_runs"]) == (step, 20_000, 1)
    (found,) = as_json("r --deadline 1ms --miss-ratio 9e-5", capsys)["cells"]
    upper = joint([RunMisses(20_000, 0, 1.0)] * 3, 0.95).upper
    assert (found["outcome"], found["support"]["upper"]) == ("pass", upper) and 7e-5 < upper < 9e-5
    (spread,) = (one for one in found["support"]["findings"] if one["type"] == "spread")
    assert spread["message"] == f"{room}: n counts as n / 1.7" and spread["consequence"] == "deflate"


def test_repeats_that_miss_too_often_fail_by_their_own_lower_bound(capsys: Captured) -> None:
    for number in (1, 2, 3):
        write_wakeups(Path(f"r/cell-r{number}"), late_at(*range(500, 18_500, 900)), repeat=number)
    (found,) = as_json("r --deadline 1ms --miss-ratio 3e-4", capsys)["cells"]
    assert (found["misses"], found["outcome"]) == (60, "fail")
    effects = {one["support"]["design_effect"] for one in found["repeats"]}
    lower = joint([RunMisses(20_000, 20, effects.pop())] * 3, 0.95).lower
    assert not effects and found["support"]["lower"] == lower > 3e-4
    assert f"at least {100 * lower:.3g} %" in found["reason"]


def test_a_run_that_failed_leaves_the_condition_an_error(capsys: Captured) -> None:
    repeats({1: 1.0})
    error = {"message": "the probe died", "field": None, "value": None, "remedy": None}
    write_wakeups(Path("r/cell-r2"), draw(2), repeat=2, changes={"status": "failed", "error": error})
    code, said = verdict("r --deadline 1ms --repeats", capsys)
    assert code == exit_codes.ERROR
    assert "cell: error: one of 2 runs could not be judged: cell-r2: the run failed: the probe died" in said
    assert "cell-r1: pass" in said


def test_repeats_with_other_settings_in_effect_have_no_bound(capsys: Captured) -> None:
    repeats({1: 1.0})
    write_wakeups(Path("r/cell-r2"), draw(2), repeat=2, changes={"effective": {"timer_slack_ns": 1}})
    code, said = verdict("r --deadline 1ms", capsys)
    assert code == exit_codes.INCONCLUSIVE and "effective.timer_slack_ns differs" in said


def test_what_refuses_the_bound_of_one_run_refuses_that_of_all(capsys: Captured) -> None:
    repeats({1: 1.0})
    wandering = draw(2)
    wandering[5000:15_000] = np.rint(wandering[5000:15_000] * 1.5).astype(np.int64)
    write_wakeups(Path("r/cell-r2"), wandering, repeat=2)
    code, said = verdict("r --deadline 10ms --miss-ratio 1e-3", capsys)
    assert code == exit_codes.INCONCLUSIVE and "cell-r2: the tail changes" in said


def test_short_runs_stay_too_short_together(capsys: Captured) -> None:
    for number in (1, 2, 3):
        write_wakeups(Path(f"r/cell-r{number}"), draw(number, 600), repeat=number)
    code, said = verdict("r --deadline 1ms --miss-ratio 1e-2", capsys)
    assert code == exit_codes.INCONCLUSIVE
    assert "3 of 3 runs are too short" in said and "3 runs of 1,000 releases each" in said


def test_cells_of_several_runs_are_no_repeats(capsys: Captured) -> None:
    for number, run in enumerate(("one", "two")):
        write_wakeups(Path(f"r/{run}/cell"), draw(number))
    assert len(as_json("r --deadline 1ms", capsys)["cells"]) == 2


def test_cells_of_one_name_are_told_with_their_folder(capsys: Captured) -> None:
    for number, run in enumerate(("one", "two")):
        write_wakeups(Path(f"r/{run}/cell"), draw(number))
    said = verdict("r --deadline 1ms", capsys)[1]
    assert "cell in r/one/cell: pass: " in said and "cell in r/two/cell: pass: " in said
    assert verdict("r/one --deadline 1ms", capsys)[1].startswith("cell: pass: ")


def test_of_repeats_the_one_that_others_disturbed_most_is_told(capsys: Captured) -> None:
    for repeat, others in ((1, 0.02), (2, 0.6), (3, 0.0)):
        machine = {"others": others, "steal": 0.0, "others_most": [{"name": "make", "share": others}]}
        conditions = {"asked": {}, "effective": {}, "achieved": {"machine": machine}}
        made = Made(id=f"a-r{repeat}", axes={"repeat": repeat}, changes={"conditions": conditions})
        write_cell(Path("run") / made.id, made)
    cli.invoke(["verdict", "run"])
    out = capsys.readouterr().out
    assert out.count("meanwhile") == 1
    assert "meanwhile        at most, in a-r2: others took 60% of the CPUs (make 60%)\n" in out


def test_repeats_hold_for_all_that_the_cpus_were_busy(capsys: Captured) -> None:
    for repeat, busy in ((1, 0.02), (2, 0.69), (3, 0.3)):
        conditions = {"asked": {}, "effective": {}, "achieved": {"machine": {"busy": busy}}}
        write_wakeups(
            Path(f"r/cell-r{repeat}"), draw(repeat), repeat=repeat, changes={"conditions": conditions}
        )
    (one,) = as_json("r --deadline 1ms", capsys)["cells"]
    assert "no load (CPUs 2% to 69% busy)" in one["conditions"]
    assert "no load (CPUs 69% busy)" in one["repeats"][1]["conditions"]


def test_several_conditions_end_with_a_table_of_all(capsys: Captured) -> None:
    """The last thing on the screen: what became of each."""
    asked = Requirement(MS, 0.001)
    write_wakeups(Path("r/good"), draw(1, 5_000), requirement=asked)
    write_wakeups(Path("r/late"), late_at(*range(1000, 19_000, 200)), requirement=asked)
    rows = [line.split() for line in verdict("r", capsys)[1].splitlines()[-3:] if line.strip()]
    assert ["good", "pass", "0", "5,000", "0", "%", "0.1", "%"] in [row[:8] for row in rows]
    assert ["late", "fail", "90", "20,000", "0.45", "%", "0.1", "%", "2,000.0"] in rows
    assert "condition" not in verdict("r/good", capsys)[1], "of one there is nothing to set together"


def test_where_others_took_the_machine_they_are_to_be_ended_first(capsys: Captured) -> None:
    values = draw(2)
    values[10_000:] *= 3
    for name, others in (("quiet", 0.02), ("busy", 0.6)):
        conditions = {"asked": {}, "effective": {}, "achieved": {"machine": {"others": others, "busy": 0.7}}}
        write_wakeups(
            Path(name), values, requirement=Requirement(10 * MS, 0.1), changes={"conditions": conditions}
        )
    said = {name: verdict(name, capsys)[1] for name in ("quiet", "busy")}
    assert "  next             find out what the machine did while releases were later" in said["quiet"]
    assert "  next             free the machine of others' work, and measure anew" in said["busy"]
    assert cli.invoke(["summary", "busy"]) == exit_codes.PASS
    assert "  next             free the machine of others' work, and measure" in capsys.readouterr().out


def test_a_summary_of_one_run_does_not_name_the_run_at_each_condition(capsys: Captured) -> None:
    write_wakeups(Path("a/one/cell"), draw(1, 100))
    assert cli.invoke(["summary", "a"]) == exit_codes.PASS
    assert " cell " in capsys.readouterr().out
    write_wakeups(Path("a/two/cell"), draw(1, 100))
    assert cli.invoke(["summary", "a"]) == exit_codes.PASS
    said = capsys.readouterr().out
    assert " one/cell " in said and " two/cell " in said
