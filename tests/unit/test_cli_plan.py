"""`rtmeter plan`: the run that a requirement needs, and whether a campaign's cells can pass theirs."""

from __future__ import annotations

import json
import math
import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from rtmeter import cli
from rtmeter.cli import exit_codes
from rtmeter.errors import RtmeterError
from rtmeter.measure.probe import given_options
from rtmeter.measure.probe.probes import Probe
from rtmeter.model import Cell
from rtmeter.statistics.bounds import miss_ratio_bounds
from rtmeter.statistics.joint import RunMisses, joint
from wakeups import MS, draw, write_wakeups

Captured = pytest.CaptureFixture[str]
REQUIRED = "--deadline 1ms --miss-ratio 1e-6 --confidence 95% --period 1ms"


@pytest.fixture(autouse=True)
def _in_an_empty_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


def plan(line: str, capsys: Captured) -> tuple[int, str]:
    code = cli.invoke(["plan", *line.split()])
    said = capsys.readouterr()
    return code, said.out + said.err


def as_json(line: str, capsys: Captured) -> Any:
    cli.invoke(["plan", *line.split(), "--json"])
    return json.loads(capsys.readouterr().out)


def test_one_in_a_million_takes_fifty_minutes_at_1_khz(capsys: Captured) -> None:
    code, said = plan(REQUIRED, capsys)
    assert code == exit_codes.PASS
    assert said.startswith("deadline 1ms, firm: a miss ratio of at most 0.0001 % with 95 % confidence")
    assert re.search(r" run *\n *misses +releases +min *\n", said)
    assert re.search(r" 1 +4,743,863 +79.1 *\n", said)
    assert "releases miss independently" in said and "Clopper and Pearson" in said
    plans = as_json(REQUIRED, capsys)["plans"]
    assert plans[0]["releases"] == math.ceil(math.log(0.05) / math.log1p(-1e-6))
    for row in plans:
        misses, n = row["misses_allowed"], row["releases"]
        assert miss_ratio_bounds(misses, n, 0.95)[1] <= 1e-6 < miss_ratio_bounds(misses, n - 1, 0.95)[1]
        assert row["hours"] == pytest.approx(n / 3.6e6)


def test_clusters_make_it_longer(capsys: Captured) -> None:
    found = as_json(f"{REQUIRED} --extremal-index 0.5", capsys)
    assert found["assumed"]["design_effect"] == pytest.approx(3)
    assert found["plans"][0]["releases"] == pytest.approx(3 * 2_995_731, rel=1e-6)
    assert "n counts as n / 3.0 (extremal index 0.5)" in plan(f"{REQUIRED} --extremal-index 0.5", capsys)[1]


def clustered() -> np.ndarray:
    """Late releases in clusters of three."""
    values = draw(3, 60_000, 20_000)
    for at in np.random.default_rng(3).choice(59_000, 40, replace=False):
        values[at : at + 3] = MS + 1000
    return values


def test_the_dependence_of_a_run_like_it_is_assumed(capsys: Captured) -> None:
    write_wakeups(Path("like"), clustered())
    found = as_json("--deadline 1ms --miss-ratio 1e-2 --period 1ms --like like", capsys)
    assumed = found["assumed"]
    assert assumed["design_effect"] > 2 and (assumed["like"], assumed["n"]) == ("like", 60_000)
    assert assumed["misses"] == 120
    n = found["plans"][0]["releases"]
    assert miss_ratio_bounds(0, n, 0.95, assumed["design_effect"])[1] <= 1e-2
    expected = found["expected"]["releases"]
    misses = expected * 120 / 60_000
    assert miss_ratio_bounds(misses, expected, 0.95, assumed["design_effect"])[1] <= 1e-2
    code, said = plan("--deadline 1ms --miss-ratio 1e-2 --period 1ms --like like", capsys)
    assert code == exit_codes.PASS
    assert f"like missed 120 of 60,000 releases; if that goes on, {expected:,} releases" in said


def test_what_misses_more_often_than_allowed_passes_at_no_length(capsys: Captured) -> None:
    write_wakeups(Path("like"), clustered())
    for more in ("--miss-ratio 1e-3", "", "--criticality hard --miss-ratio 0.1"):
        code, said = plan(f"--deadline 1ms {more} --period 1ms --like like", capsys)
        assert code == exit_codes.INCONCLUSIVE, more
        assert "if that goes on, no length passes" in said


def test_a_run_that_is_refused_says_that_no_length_helps(capsys: Captured) -> None:
    values = draw(2)
    values[10_000:] *= 3
    write_wakeups(Path("like"), values)
    for more in ("--miss-ratio 1e-2", "", "--criticality hard"):
        code, said = plan(f"--deadline 9ms {more} --period 1ms --like like", capsys)
        assert code == exit_codes.INCONCLUSIVE, more
        assert said.count("no length helps before") == 1 and "like is refused: the" in said
        assert "the tail changes at" in said and "releases    " not in said
    found = as_json("--deadline 9ms --miss-ratio 1e-2 --like like", capsys)
    assert found["plans"] == [] and len(found["assumed"]["refusals"]) >= 1


def test_the_period_is_that_of_the_run_like_it(capsys: Captured) -> None:
    write_wakeups(Path("like"), draw(2))
    given, taken = (
        as_json(f"--deadline 9ms --miss-ratio 1e-2 {period} --like like", capsys)
        for period in ("--period 1ms", "")
    )
    assert given == taken and taken["period_ns"] == MS
    _, said = plan("--deadline 9ms --miss-ratio 1e-2 --like like", capsys)
    assert "assumes: releases miss independently, as in like\n" in said


def test_without_a_miss_ratio_the_bound_of_some_lengths_is_told(capsys: Captured) -> None:
    lengths = as_json("--deadline 1ms --period 1ms", capsys)["lengths"]
    assert [row["releases"] for row in lengths] == [60_000, 3_600_000, 86_400_000]
    assert lengths[1]["upper"] == pytest.approx(-math.log(0.05) / 3.6e6, rel=1e-5)
    said = plan("--deadline 1ms --period 1ms", capsys)[1]
    assert "any run of 1,000 releases at least without a miss passes" in said
    assert re.search(r" 60,000 .* 0\.00499 % *\n", said), said


def test_a_hard_deadline_needs_releases_for_its_extremes(capsys: Captured) -> None:
    line = "--deadline 1ms --miss-ratio 0.1 --criticality hard --period 1ms"
    assert [row["releases"] for row in as_json(line, capsys)["plans"]] == [2500]
    assert (
        "any run of 2,500 releases at least without a miss can pass"
        in plan("--deadline 1ms --criticality hard --period 1ms", capsys)[1]
    )


CAMPAIGN = """
defaults: {measurement: wakeup, adapter: posix, period: 1ms, requirement: {deadline: 1ms, miss_ratio: 1e-3}}
repeat: 2
cells:
- {name: long, duration: 10s}
- {name: short, samples: 2994}
- {name: exact, samples: 2995}
- {name: any, samples: 1000, miss_ratio: null}
- {name: few, samples: 999, miss_ratio: null}
- {name: hard, samples: 2499, miss_ratio: null, criticality: hard}
- {name: unjudged, samples: 10, requirement: null}
"""


def test_a_campaign_is_told_which_cells_can_never_pass(capsys: Captured) -> None:
    Path("c.yaml").write_text(CAMPAIGN)
    found = {cell["id"]: cell for cell in as_json("c.yaml", capsys)["cells"]}
    assert {name: found[name]["outcome"] for name in ("long", "short", "exact", "any", "few", "hard")} == {
        "long": "can pass",
        "short": "never",
        "exact": "can pass",
        "any": "can pass",
        "few": "never",
        "hard": "never",
    }
    assert found["unjudged"]["outcome"] == "no requirement"
    long = found["long"]
    assert (long["runs"], long["releases"]) == (2, 20_000), "repeats are judged together"
    most = [long["most_misses"] + more for more in (0, 1)]
    each = [joint([RunMisses(10_000, some / 2, 1.0)] * 2, 0.95).upper for some in most]
    assert each[0] <= 1e-3 < each[1], "with room for what two runs do not show of how far runs differ"
    assert (long["needed"]["releases"], found["hard"]["needed"]["releases"]) == (2 * 2995, 5000)
    code, said = plan("c.yaml", capsys)
    assert code == exit_codes.INCONCLUSIVE
    assert "3 of 7 conditions are too short to pass whatever they measure" in said
    assert "exact passes without a miss up to n / 1 (clusters of 1 on average)" in said
    assert "besides, 14 runs start and end the middleware" in said
    assert long["most_effect"] == pytest.approx(20_000 / (2 * 2995), abs=0.01)
    assert re.search(r"long +20,000 +2 x 10,000 +yes", said)
    assert plan("c.yaml --only id==long-r1", capsys)[0] == exit_codes.PASS
    for none in ("x", "9" * 5000):
        assert f"repeat = '{none}': is no whole number" in plan(f"c.yaml --only repeat=={none}", capsys)[1]
    assert plan("c.yaml --only id==long-r1 --scale 0.1", capsys)[0] == exit_codes.INCONCLUSIVE


def test_the_cells_of_a_campaign_are_matched_with_those_of_a_run_like_it(capsys: Captured) -> None:
    Path("c.yaml").write_text(CAMPAIGN)
    for repeat in (1, 2):
        write_wakeups(Path(f"run/exact-r{repeat}"), clustered(), repeat=repeat)
        write_wakeups(Path(f"run/long-r{repeat}"), draw(repeat), repeat=repeat)
    only = "--only block==exact"
    assert plan(f"c.yaml {only}", capsys)[0] == exit_codes.PASS
    code, said = plan(f"c.yaml {only} --like run", capsys)
    assert code == exit_codes.INCONCLUSIVE and "never" in said
    code, said = plan("c.yaml --only block==long --like run", capsys)
    assert code == exit_codes.PASS and "may be too low" not in said
    assert "--like = 'run': holds 2 cells, none of them short" in plan("c.yaml --like run", capsys)[1]


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("", "--deadline: is missing; give it, e.g. --deadline 1ms, or a CAMPAIGN"),
        ("--deadline 1ms", "--period: is missing"),
        ("--deadline 1ms --period 1", "--period = '1': has no unit"),
        ("--miss-ratio 1e-3 --period 1ms", "--miss-ratio = '1e-3': says nothing without a deadline"),
        (f"{REQUIRED} --extremal-index 0", "--extremal-index = 0.0: is no extremal index"),
        (f"{REQUIRED} --extremal-index 0.5 --like x", "contradicts --extremal-index"),
        (f"{REQUIRED} --like none", "path = 'none': is not there"),
        (f"{REQUIRED} --extremal-index 1e-310", "from 1e-06 to 1"),
        (
            "--deadline 1ms --period 1ms --miss-ratio 1e-310",
            "--miss-ratio = '1e-310': should be greater than or equal to 0.0",
        ),
        (
            "--deadline 1ms --period 1ms --confidence 0.9999999999999999",
            "should be less than or equal to 0.9999999999;",
        ),
        (f"--deadline 1ms --period {'9' * 5000}ms", "is not a number with a unit; write it with its unit"),
        (f"--deadline 1ms --period 1ms --miss-ratio {'9' * 400}%", "is no share; write it like 0.95 or 95%"),
        ("none.yaml", "campaign = 'none.yaml': cannot be read"),
        ("none.yaml --deadline 1ms", "--deadline = '1ms': contradicts CAMPAIGN"),
    ],
)
def test_wrong_options_are_refused(line: str, message: str, capsys: Captured) -> None:
    code, said = plan(line, capsys)
    assert code == exit_codes.ERROR and message in said


def test_the_smallest_ratio_of_the_longest_clusters_has_a_plan(capsys: Captured) -> None:
    line = "--deadline 1ms --miss-ratio 1e-15 --extremal-index 1e-6 --period 1ms"
    rows = as_json(line, capsys)["plans"]
    assert len(rows) == 6 and all(math.isfinite(row["hours"]) for row in rows)
    assert rows[0]["releases"] == pytest.approx(math.log(20) * 1e15 * 1_999_999, rel=1e-6)


FACTORS = """
repeat: 3
defaults: {measurement: wakeup, adapter: posix, period: 1ms, samples: 5000, requirement: {deadline: 1ms}}
cells:
- {name: normal, load: %s}
- {name: fifo, scheduling: fifo:80, load: %s}
"""


def test_repeats_that_cannot_show_a_halving_are_told_before_anything_is_run(capsys: Captured) -> None:
    Path("c.yaml").write_text(FACTORS % ("idle", "idle"))
    (few,) = as_json("c.yaml", capsys)["factors"]
    assert (few["factor"], few["together"]) == ("block", ["scheduling"])
    assert (few["levels"], few["matched"], few["repeats"], few["enough"]) == (2, 1, 3, False)
    assert few["needed"] > 3
    code, said = plan("c.yaml", capsys)
    assert code == exit_codes.PASS  # what each cell is asked can be told
    assert (
        "too_few_repeats: block with scheduling: 3 runs of each cell show not even a halving of p50" in said
    )
    assert f"it takes {few['needed']} (repeat): " in said and "if runs differ by 25 %" in said


def pilot(spread: float, folder: str = "run") -> None:
    """Three runs of each of the cells of FACTORS, that differ by ``spread``."""
    generator = np.random.default_rng(5)
    for repeat in (1, 2, 3):
        for name in ("normal", "fifo"):
            values = draw(repeat, 5_000, 200_000 * math.exp(generator.normal(0, spread)))
            changes = {"factors": {"block": name}, "started": f"2026-11-21T05:00:0{repeat}Z"}
            write_wakeups(Path(f"{folder}/{name}-r{repeat}"), values, repeat=repeat, changes=changes)


def test_a_pilot_with_repeats_says_how_runs_differ(capsys: Captured) -> None:
    Path("c.yaml").write_text(FACTORS % ("idle", "idle"))

    needed = {}
    for folder, spread in {"calm": 0.02, "wild": 0.8}.items():
        pilot(spread, folder)
        (one,) = as_json(f"c.yaml --like {folder}", capsys)["factors"]
        assert one["seen"]
        needed[folder] = {one["quantity"]: one["needed"] for one in one["quantities"]}
    assert needed["calm"]["p50"] <= 3, "runs that hardly differ need fewer than those assumed"
    for name in ("p50", "p99", "p99.9", "miss_ratio"):
        assert needed["wild"][name] > needed["calm"][name]
    said = plan("c.yaml --like wild", capsys)[1]
    assert "show not even a halving of p50, p99, p99.9, miss ratio" in said
    assert "if runs go on to differ as in --like" in said


def test_what_a_pilot_is_planned_by_is_what_comparing_it_says(capsys: Captured) -> None:
    """As many repeats as compare says of the same runs, or a few more; never fewer."""
    Path("c.yaml").write_text(FACTORS % ("idle", "idle"))
    pilot(0.8)
    (planned,) = as_json("c.yaml --like run", capsys)["factors"]
    cli.invoke(["compare", "run", "--factor", "block", "--deadline", "1ms", "--json"])
    (level,) = json.loads(capsys.readouterr().out)["levels"]
    needed = {one["quantity"]: one["needed"] for one in planned["quantities"]}
    untold = {one["quantity"]: one["repeats_needed"] for one in level["effects"] if one["repeats_needed"]}
    assert len(untold) >= 3
    for name, count in untold.items():
        assert count <= needed[name] <= count + 3


def test_repeats_of_one_cell_say_how_runs_differ_too(capsys: Captured) -> None:
    Path("c.yaml").write_text(FACTORS % ("idle", "idle"))
    pilot(0.8)
    (found,) = as_json("c.yaml --like run/normal", capsys)["factors"]
    assert found["seen"] and found["needed"] > 10
    (alone,) = as_json("c.yaml --like run/normal-r1", capsys)["factors"]
    assert not alone["seen"], "one run shows no spread"


def test_more_repeats_or_more_matched_cells_can(capsys: Captured) -> None:
    Path("c.yaml").write_text(FACTORS % ("idle", "idle"))
    needed = as_json("c.yaml", capsys)["factors"][0]["needed"]
    for repeat, enough in ((needed, True), (needed - 1, False)):
        Path("d.yaml").write_text((FACTORS % ("idle", "idle")).replace("repeat: 3", f"repeat: {repeat}"))
        assert [one["enough"] for one in as_json("d.yaml", capsys)["factors"]] == [enough]
    loads = "[idle, cpu80, stress10]"
    Path("e.yaml").write_text(FACTORS % (loads, loads))
    found = {one["factor"]: one for one in as_json("e.yaml", capsys)["factors"]}
    assert (found["block"]["matched"], found["block"]["enough"]) == (3, True)
    said = plan("e.yaml", capsys)[1]
    assert re.search(r"block(, \w+)*: the runs of each cell show a halving, or rule it out", said)
    assert "then ask rtmeter compare --factor" in said and "block: 3 runs" not in said


def test_the_time_of_all_cells_is_told(capsys: Captured) -> None:
    Path("c.yaml").write_text(FACTORS % ("idle", "idle"))
    assert as_json("c.yaml", capsys)["planned_ns"] == 6 * (5_000 + 1_000) * MS
    assert "all releases, warm-up included: 36 s" in plan("c.yaml", capsys)[1]


RECEIVES = "this adapter receives the messages of a roundtrip by spin, poll; choose one of these"


@pytest.mark.parametrize(
    ("given", "said"),
    [
        (
            "options: {domain: 7}",
            "options.domain = '7': this adapter has no such option; choose one of mode, level",
        ),
        ("options: {mode: udb}", "options.mode = 'udb': no such choice; choose one of udp, unix"),
        ("options: {level: 64}", "options.level = '64': is no number from 0 to 63; give 0 to 63"),
        ("options: {level: 63, mode: unix}, receive: poll, server_receive: spin", ""),
        ("receive: listener", "receive = 'listener': " + RECEIVES),
        ("receive: poll, server_receive: listener", "server_receive = 'listener': " + RECEIVES),
    ],
)
def test_options_are_checked_as_the_run_does(
    given: str, said: str, capsys: Captured, monkeypatch: pytest.MonkeyPatch
) -> None:
    from rtmeter.measure import by_probes

    facts = {
        "measures": ["roundtrip"],
        "receives": {"roundtrip": ["spin", "poll"], "cycle": ["listener"]},
        "option": {"mode": "udp|unix: what carries", "level": "0 to 63: how much"},
    }
    probe = Probe("posix", Path("probe"), facts)
    monkeypatch.setattr(by_probes, "probes_for", lambda cell: (probe, probe))
    monkeypatch.setattr(by_probes.polling, "check", lambda *given: None)
    text = "repeat: 2\ndefaults: {measurement: roundtrip, adapter: posix, period: 1ms, samples: 1000, "
    text += "requirement: %s}\n"
    text += "cells:\n- {name: good}\n- {name: other, %s}\n"
    Path("c.yaml").write_text(text % ("{deadline: 1ms, miss_ratio: 1e-2}", given))
    code, printed = plan("c.yaml", capsys)
    assert code == (exit_codes.ERROR if said else exit_codes.PASS)
    assert said in printed and ("cannot run here" in printed) == bool(said)
    good, other = (line.split() for line in printed.splitlines() if line.split()[:1] in (["good"], ["other"]))
    assert good[5:] == ["yes", "≤", "2", "2,000", "2"]
    assert other[5:] == (["cannot", "run", "-", "-", "-"] if said else good[5:])


def test_an_adapter_without_options_has_none_to_be_given() -> None:
    config = {"measurement": "wakeup", "options": {"mode": "udp"}}
    with pytest.raises(RtmeterError, match="no such option; leave it out: it has none") as caught:
        given_options.check(Cell("a", "bare", None, {}, config, None), Probe("bare", Path("probe"), {}), None)
    assert caught.value.field == "options.mode"
