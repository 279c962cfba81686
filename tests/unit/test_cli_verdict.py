"""`rtmeter verdict`: its evidence in words and numbers, and its options."""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np
import pytest

from rtmeter import cli
from rtmeter.cli import exit_codes
from rtmeter.model import SERVED, SKIPPED, Requirement
from rtmeter.statistics.bounds import miss_ratio_bounds
from rtmeter.statistics.words import about
from verdicts import Captured, as_json, verdict
from wakeups import MS, draw, late_at, write_wakeups


@pytest.fixture(autouse=True)
def _in_an_empty_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


def test_the_evidence_is_told_in_words_and_numbers(capsys: Captured) -> None:
    write_wakeups(Path("a"), late_at(5000, 5001, 5002, 15_000))
    code, said = verdict("a --deadline 1ms --miss-ratio 0.05% --confidence 95%", capsys)
    assert code == exit_codes.INCONCLUSIVE
    lines = {line[2:19].strip(): line[19:] for line in said.splitlines()[1:]}
    assert lines["misses"] == "4 in 2 clusters, longest run of consecutive misses 3"
    assert lines["late by"] == "1 ms in the median, 1 ms at most"
    found = as_json("a --deadline 1ms --miss-ratio 0.05%", capsys)["support"]
    assert lines["releases"].startswith(f"n 20,000, effective n {found['effective_n']:,.0f} (extremal index")
    lower, upper = miss_ratio_bounds(4, 20_000, 0.95, found["design_effect"])
    ratio = f"at least {100 * lower:.3g} %, at most {100 * upper:.3g} %"
    assert lines["miss ratio"] == f"{ratio}, 95 % confidence each" and f"{ratio}, and 0.05 % is" in said
    assert lines["misses an hour"] == f"at least {lower * 3.6e6:.3g}, at most {upper * 3.6e6:,.0f}"
    more = as_json("a --deadline 1ms --miss-ratio 0.05%", capsys)["more_samples"]
    assert lines["next"].startswith(f"measure {more:,} more releases (") and "more_hours" in found
    assert f"it passes; if they miss as often, {found['expected_hours'] * 3600:.3g} s more" in lines["next"]
    assert said.count("more releases") == 1
    for condition in ("wake-up of posix", "every 1ms", "fifo:80 on CPU 1", "PREEMPT_RT", "host robot-7"):
        assert condition in lines["holds for"]
    assert "unfit for absolute claims" in lines["virtual machine"]


def test_an_emulated_processor_is_called_one(capsys: Captured) -> None:
    write_wakeups(Path("a"), draw(1), changes={"machine": {"virtual_machine": "qemu-tcg"}})
    said = verdict("a --deadline 1ms --miss-ratio 0.05%", capsys)[1]
    assert "  emulated cpu     measured on a processor that is a program" in said and "fit for" not in said
    found = as_json("a --deadline 1ms --miss-ratio 0.05%", capsys)["support"]["findings"]
    assert [one["type"] for one in found] == ["emulated_cpu"]


def test_what_misses_nearly_always_fails_though_no_bound_is_stated(capsys: Captured) -> None:
    write_wakeups(Path("a"), draw(1) + 300 * np.arange(20_000))
    code, said = verdict("a --deadline 1ms --miss-ratio 1e-3", capsys)
    assert code == exit_codes.FAIL
    assert "  because          the lower bound of the miss ratio is 2.44 %, and 0.1 % is allowed\n" in said
    assert "  next             find out why the delay grows, and mend that" in said
    assert "  delay            rising, +300 us/s [300, 300], 6 ms over the run\n" in said
    assert as_json("a --deadline 1ms --miss-ratio 1e-3", capsys)["support"]["effective_n"] == 1


def test_late_is_what_missed_the_deadline_and_no_other_word_of_the_tail(capsys: Captured) -> None:
    """Of a tail that changes below the deadline nothing is late."""
    values = draw(2)
    values[5000:15_000] *= 2
    write_wakeups(Path("a"), values)
    said = verdict("a --deadline 10ms --miss-ratio 1e-3", capsys)[1]
    assert "0 of 20,000 releases missed" in said and "the tail changes" in said
    assert " late " not in said and "its releases are" in said


def test_a_verdict_is_a_line_and_points(capsys: Captured) -> None:
    write_wakeups(Path("a"), late_at(*range(1000, 19_000, 200)))
    lines = verdict("a --deadline 1ms --miss-ratio 0.1%", capsys)[1].splitlines()
    missed = "90 of 20,000 releases missed the deadline of 1,000 us on latency (90 late)"
    assert lines[0] == f"a: fail: {missed}: 0.45 %, 0.1 % allowed, worst 2,000.0 us"
    assert lines[1].startswith("  because          with 95 % confidence the miss ratio is at least")
    assert lines[2].startswith(f"{'':<19}the misses come in")


def test_the_latest_that_misses_by_a_nanosecond_does_not_read_as_the_deadline(capsys: Captured) -> None:
    values = draw(1)
    values[5000] = MS + 1
    write_wakeups(Path("a"), values)
    assert "worst 1,000.001 us\n" in verdict("a --deadline 1ms --miss-ratio 0.1%", capsys)[1]


def test_a_cell_that_is_shown_has_the_same_verdict(capsys: Captured) -> None:
    """As `measure` shows what it measured: a line, and points, not one long sentence."""
    asked = Requirement(MS, 0.001)
    write_wakeups(Path("a"), late_at(*range(1000, 19_000, 200)), requirement=asked)
    said = verdict("a", capsys)[1].splitlines()
    assert cli.invoke(["summary", "a"]) == exit_codes.PASS
    shown = capsys.readouterr().out.splitlines()
    at = shown.index(said[0].removeprefix("a: "))
    assert shown[at : at + 6] == [said[0].removeprefix("a: "), *said[1:6]]


def test_a_lower_bound_that_says_no_more_than_that_some_missed_is_not_told(capsys: Captured) -> None:
    """One cluster: 1.26 to 37,766 misses an hour."""
    values = draw(1)
    values[5000:5020] = 2 * MS
    write_wakeups(Path("a"), values)
    found = as_json("a --deadline 1ms", capsys)["support"]
    assert 0 < found["lower_per_hour"] < found["upper_per_hour"] / 1000
    said = verdict("a --deadline 1ms", capsys)[1]
    assert f"  misses an hour   at most {found['upper_per_hour']:,.0f}\n" in said and "at least" not in said


def test_a_slope_that_so_few_releases_do_not_tell_is_not_told(capsys: Captured) -> None:
    """A walk of 1 s that may lead anywhere."""
    values = np.random.default_rng(3).normal(0, 2 * MS, 1000).cumsum().astype(np.int64) + 50 * MS
    write_wakeups(Path("a"), values)
    slope = "  delay            bounded; its slope cannot be told\n"
    assert slope in verdict("a --deadline 1ms", capsys)[1]
    assert "  delay            bounded, " in verdict("a --deadline 1000s", capsys)[1]


def test_of_a_level_below_what_the_run_itself_reached_only_its_upper_end_is_told(capsys: Captured) -> None:
    """88 in one cluster, later than is likeliest once in ten times the run."""
    values = np.rint(np.random.default_rng(0).exponential(15_000, 5_000)).astype(np.int64)
    values[2_000:2_088] = 300_000
    write_wakeups(Path("a"), values)
    level = as_json("a --deadline 250us --miss-ratio 1e-3", capsys)["support"]["return_level"]
    assert level["level_ns"] < 300_000 < level["upper_ns"]
    said = verdict("a --deadline 250us --miss-ratio 1e-3", capsys)[1]
    assert f"once in 50 s: at most {about(level['upper_ns'])}; the run itself reached more" in said
    within = verdict("a --deadline 250us --miss-ratio 1e-3 --once-in 4s", capsys)[1]
    assert "once in 4 s: at most" not in within and "once in 4 s: " in within


def test_where_more_missed_than_is_allowed_the_step_is_a_cause_to_look_at(capsys: Captured) -> None:
    """Not more releases: those would have to make up for what missed."""
    write_wakeups(Path("a"), late_at(5000, 9000, 15_000))
    code, said = verdict("a --deadline 1ms --miss-ratio 1e-4", capsys)
    assert code == exit_codes.INCONCLUSIVE and "  more missed than is allowed, which may be chance\n" in said
    assert "  next             measure again with --explain (in a campaign" in said
    assert "more releases" not in said and "would pass" not in said
    assert said.count("  next  ") == 1


def test_a_failure_has_a_next_step_and_a_pass_has_none(capsys: Captured) -> None:
    write_wakeups(Path("a"), late_at(*range(1000, 19_000, 200)))
    code, said = verdict("a --deadline 1ms --miss-ratio 0.1%", capsys)
    assert code == exit_codes.FAIL and "\n  next             measure again with --explain" in said
    assert as_json("a --deadline 1ms --miss-ratio 0.1%", capsys)["next"].startswith("measure again with --ex")
    code, said = verdict("a --deadline 10ms --miss-ratio 0.1%", capsys)
    assert code == exit_codes.PASS and "  next  " not in said
    assert as_json("a --deadline 10ms --miss-ratio 0.1%", capsys)["next"] is None


def test_where_no_bound_is_stated_it_is_said_why_and_that_no_length_decides(capsys: Captured) -> None:
    values = draw(2)
    values[10_000:] *= 3
    write_wakeups(Path("a"), values)
    code, said = verdict("a --deadline 10ms --miss-ratio 0.1", capsys)
    assert code == exit_codes.INCONCLUSIVE
    assert "miss ratio       no bound" in said
    assert "the tail changes at 10 s (10,0" in said
    step = "find out what the machine did while releases were later (the plot over time), end it, and measure"
    assert f"  next             {step} anew: no length of run helps before\n" in said
    assert said.count("the tail changes at 10 s") == 1, "each reason once"
    assert "not stated: what refuses the bound refuses it too" in said


@pytest.mark.parametrize("criticality", ["firm", "soft", "hard"])
@pytest.mark.parametrize("what", ["drift", "change"])
def test_nothing_passes_where_a_gate_refuses_the_bound(what: str, criticality: str, capsys: Captured) -> None:
    values = draw(2)
    values = values + 10 * np.arange(len(values)) if what == "drift" else values
    values[10_000:] *= 1 if what == "drift" else 3
    write_wakeups(Path("a"), values)
    code, said = verdict(f"a --deadline 10ms --criticality {criticality}", capsys)
    assert code == exit_codes.INCONCLUSIVE
    assert "0 of 20,000 releases missed" in said and "no length of run helps before" in said
    assert ("the delay rises steadily" if what == "drift" else "the tail changes") in said
    code, said = verdict(f"a --deadline 400us --criticality {criticality}", capsys)
    assert code == exit_codes.FAIL


def test_a_refused_bound_is_not_stated_as_the_reason_of_a_failure(capsys: Captured) -> None:
    values = draw(2)
    values[10_000:] *= 3
    write_wakeups(Path("a"), values)
    code, said = verdict("a --deadline 200us --miss-ratio 1e-3", capsys)
    reason = said.partition("  misses  ")[0]
    assert code == exit_codes.FAIL and "confidence" not in reason
    lower = as_json("a --deadline 200us --miss-ratio 1e-3", capsys)["lower"]
    stated = re.search(r"the lower bound of the miss ratio is ([0-9.]+) %, and 0.1 % is allowed\n", reason)
    assert stated and 0.1 < float(stated[1]) <= 100 * lower and "no upper bound is stated: " in reason


def test_an_interrupted_cell_says_so(capsys: Captured) -> None:
    write_wakeups(Path("a"), draw(1), changes={"status": "interrupted"})
    code, said = verdict("a --deadline 10ms", capsys)
    assert code == exit_codes.PASS
    assert said.startswith("a (interrupted): pass: 0 of 20,000 releases")
    assert as_json("a --deadline 10ms", capsys)["status"] == "interrupted"


def test_without_a_deadline_each_cell_is_judged_by_its_own_requirement(capsys: Captured) -> None:
    write_wakeups(Path("r/a"), draw(1), requirement=Requirement(10 * MS, 1e-3))
    write_wakeups(Path("r/b"), draw(1), requirement=Requirement(20_000, 0.1, 0.99, "soft"))
    code, said = verdict("r", capsys)
    assert code == exit_codes.FAIL
    assert "a: pass: 0 of 20,000 releases missed the deadline of 10,000 us" in said
    assert "b: fail:" in said and "with 99 % confidence" in said
    write_wakeups(Path("r/c"), draw(1))
    assert "c: unjudged: it has no requirement of its own" in verdict("r", capsys)[1]
    code, said = verdict("r/c", capsys)
    assert code == exit_codes.ERROR
    assert "--deadline: is missing, and no cell of r/c has a requirement of its own" in said


def test_without_a_deadline_other_options_change_each_cells_own_requirement(capsys: Captured) -> None:
    """88 of 20,000 with 0.1 % allowed fail by the horizon of 4, not by that of 5."""
    late = late_at(*range(9_000, 9_088))
    write_wakeups(Path("r/a"), late, requirement=Requirement(MS, 0.001, horizon=4))
    write_wakeups(Path("r/b"), draw(1), requirement=Requirement(3 * MS, 0.001, 0.99))
    assert [one["outcome"] for one in as_json("r", capsys)["cells"]] == ["fail", "pass"]
    found = as_json("r --horizon 5", capsys)["cells"]
    assert [one["outcome"] for one in found] == ["inconclusive", "pass"]
    assert [one["requirement"]["deadline_ns"] for one in found] == [MS, 3 * MS]
    assert [one["requirement"]["confidence"] for one in found] == [0.95, 0.99]
    found = as_json("r --miss-ratio 1e-5", capsys)["cells"]
    assert [one["requirement"]["horizon"] for one in found] == [4, 10]
    assert [one["outcome"] for one in found] == ["fail", "inconclusive"]


def test_a_hard_deadline_cannot_be_proved(capsys: Captured) -> None:
    write_wakeups(Path("a"), draw(1))
    code, said = verdict("a --deadline 10ms --criticality hard", capsys)
    assert code == exit_codes.PASS
    assert "measurement cannot prove that a hard deadline is never missed" in said
    code, said = verdict("a --deadline 650us --criticality hard", capsys)
    assert code == exit_codes.INCONCLUSIVE
    assert "  next             look at the latest releases: their cause is rare, not absent" in said
    code, said = verdict("a --deadline 300us --criticality hard", capsys)
    assert code == exit_codes.FAIL and "a hard deadline allows none" in said
    said = verdict("a --deadline 300us --criticality hard --miss-ratio 1e-2", capsys)[1]
    assert ", none allowed, worst" in said.splitlines()[0]


def test_a_short_run_says_how_many_releases_a_hard_deadline_needs(capsys: Captured) -> None:
    write_wakeups(Path("a"), draw(1, 1500))
    code, said = verdict("a --deadline 10ms --criticality hard", capsys)
    assert code == exit_codes.INCONCLUSIVE
    assert "  next             measure 1,000 more releases at least" in said


def test_the_return_level_of_a_time_that_is_asked_for(capsys: Captured) -> None:
    write_wakeups(Path("a"), draw(1))  # 20 s
    said = verdict("a --deadline 10ms --once-in 100s", capsys)[1]
    assert "  return level     once in 1.67 min: " in said and "us [" in said
    asked, longest = (
        as_json(f"a --deadline 10ms --once-in {time}", capsys)["support"]["return_level"]
        for time in ("100s", "200s")
    )
    assert (asked["hours"], longest["hours"]) == pytest.approx((100 / 3600, 200 / 3600))
    assert asked["level_ns"] < longest["level_ns"]
    usual = as_json("a --deadline 10ms", capsys)["support"]["return_level"]
    assert usual["level_ns"] == pytest.approx(longest["level_ns"])


def test_a_return_level_beyond_ten_times_the_run_is_refused(capsys: Captured) -> None:
    write_wakeups(Path("a"), draw(1))
    code, said = verdict("a --deadline 10ms --once-in 24h", capsys)
    assert code == exit_codes.PASS  # it is no part of a firm deadline
    assert "once in 24 h: not stated: once in 24 h is beyond 10 times the run of 20 s: measure at" in said
    assert "least 2.4 h" in said
    assert verdict("a --deadline 10ms --once-in 24h --criticality hard", capsys)[0] == exit_codes.INCONCLUSIVE
    level = as_json("a --deadline 10ms --once-in 24h", capsys)["support"]["return_level"]
    assert level["level_ns"] is None and level["findings"][0]["type"] == "beyond_the_run"


def test_a_hard_deadline_is_not_judged_by_less_than_the_run(capsys: Captured) -> None:
    write_wakeups(Path("a"), draw(1))  # 20 s
    code, said = verdict("a --deadline 10ms --once-in 19s --criticality hard", capsys)
    assert code == exit_codes.INCONCLUSIVE
    assert "once in 19 s is shorter than the run of 20 s, and a hard deadline asks what lies beyond" in said
    assert "  next             ask for a longer time (--once-in)" in said
    assert verdict("a --deadline 10ms --once-in 20s --criticality hard", capsys)[0] == exit_codes.PASS
    assert "once in 19 s: not stated" not in verdict("a --deadline 10ms --once-in 19s", capsys)[1]


def test_a_hard_deadline_with_a_miss_ratio_needs_both(capsys: Captured) -> None:
    write_wakeups(Path("a"), draw(1))
    assert verdict("a --deadline 10ms --criticality hard --miss-ratio 1e-3", capsys)[0] == exit_codes.PASS
    code, said = verdict("a --deadline 10ms --criticality hard --miss-ratio 1e-6", capsys)
    assert code == exit_codes.INCONCLUSIVE
    assert "measurement cannot prove" in said and "if all are in time, it passes" in said


def test_a_soft_deadline_tells_by_how_much_releases_are_late(capsys: Captured) -> None:
    write_wakeups(Path("a"), late_at(5000, 15_000))
    said = verdict("a --deadline 1ms --criticality soft --miss-ratio 1e-2", capsys)[1]
    assert "half of the late ones come within 1 ms after the deadline" in said


@pytest.mark.parametrize(
    ("line", "message"),
    [
        (
            "a --criticality safe --deadline 1ms",
            "--criticality = 'safe': is no choice; choose hard or firm or soft",
        ),
        ("a --criticality hard", "--deadline: is missing, and no cell of a has a requirement of its own"),
        ("a --deadline 1ms --confidence 101%", "--confidence = '101%': should be less than or equal to"),
        ("a --deadline 1ms --confidence x%", "--confidence = 'x%': is no share; write it like 0.95 or 95%"),
        ("a --deadline 1ms --once-in 24", "--once-in = '24': has no unit; write it with its unit"),
    ],
)
def test_wrong_options_are_refused(line: str, message: str, capsys: Captured) -> None:
    write_wakeups(Path("a"), draw(1, 100))
    code, said = verdict(line, capsys)
    assert code == exit_codes.ERROR and message in said


# What goes wrong.


def test_constant_data(capsys: Captured) -> None:
    write_wakeups(Path("a"), np.full(20_000, 50_000))
    code, said = verdict("a --deadline 1ms --miss-ratio 1e-3", capsys)
    assert code == exit_codes.PASS
    assert "all values are equal: nothing is known of how they vary" in said
    assert verdict("a --deadline 1ms --criticality hard", capsys)[0] == exit_codes.INCONCLUSIVE


def test_three_samples(capsys: Captured) -> None:
    write_wakeups(Path("a"), draw(1, 3))
    code, said = verdict("a --deadline 1ms --miss-ratio 1e-3", capsys)
    assert code == exit_codes.INCONCLUSIVE
    assert "3 releases are too few" in said and "measure 2,992 more releases (" in said
    assert "  delay            not looked at: too few releases were served" in said


def test_every_release_skipped_but_the_first(capsys: Captured) -> None:
    status = np.full(1000, SKIPPED)
    status[0] = SERVED
    write_wakeups(Path("a"), np.full(1000, 10_000), status=status)
    code, said = verdict("a --deadline 1ms --miss-ratio 0.5", capsys)
    assert code == exit_codes.FAIL
    assert "999 of 1,000 releases missed" in said and "longest run of consecutive misses 999" in said


def test_one_enormous_outlier_is_one_miss_and_is_not_extrapolated(capsys: Captured) -> None:
    values = draw(1)
    values[10_000] = 3_600_000 * MS
    write_wakeups(Path("a"), values)
    code, said = verdict("a --deadline 10ms --miss-ratio 1e-3", capsys)
    assert code == exit_codes.PASS and "1 of 20,000 releases missed" in said
    assert "the largest value is none of the rest's kind" in said


NO_OPTION = {
    "field": "option nosuch",
    "value": "1",
    "message": "this adapter has no such option",
    "where": None,
}


def test_a_run_that_failed_names_the_option_and_the_remedy(capsys: Captured) -> None:
    changes = {"status": "failed", "error": NO_OPTION | {"remedy": "choose one of script, report"}}
    write_wakeups(Path("a"), draw(1, 100), requirement=Requirement(MS), changes=changes)
    code, said = verdict("a", capsys)
    assert code == exit_codes.ERROR
    assert said.splitlines()[0] == (
        "a: error: the run failed: option nosuch = '1': this adapter has no such option"
    )
    assert said.splitlines()[1] == "  next             choose one of script, report"


def test_what_strict_made_an_error_is_told_once(capsys: Captured) -> None:
    """Not as a warning, a failure and a verdict."""
    said = "an idle machine was asked, but others took 77% of the CPUs"
    error = {"field": "load", "value": None, "message": said, "where": None, "remedy": "leave out strict"}
    doubt = {"type": "load_not_idle", "message": said, "hint": "end that work"}
    changes = {"status": "failed", "error": error, "warnings": [doubt]}
    write_wakeups(Path("a"), draw(1, 100), requirement=Requirement(MS), changes=changes)
    assert cli.invoke(["summary", "a"]) == exit_codes.PASS
    shown = capsys.readouterr().out
    assert shown.count(said) == 1 and f"failed: load: {said}; leave out strict" in shown
