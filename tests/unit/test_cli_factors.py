"""`rtmeter compare --factor`: planted effects are found, matched and held together; none is made up."""

from __future__ import annotations

import itertools
import json
import math
import shutil
import warnings
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy.stats import t

import rtmeter
from rtmeter import cli
from rtmeter.cli import exit_codes
from rtmeter.model import Requirement
from rtmeter.results import words
from wakeups import draw, write_wakeups

Captured = pytest.CaptureFixture[str]
Scale = Callable[[str, str], float]
DEADLINE = Requirement(300_000, 0.01)
N = 4_000
LOADS = ("idle", "cpu80")


@pytest.fixture(autouse=True)
def _in_an_empty_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


def plant(
    scale: Scale, *, repeats: int = 3, spread: float = 0.05, loads: Sequence[str] = LOADS, **changes: Any
) -> None:
    """A campaign of two named cells over two loads, measured in turn: exponential latencies of 50 us times
    ``scale`` of scheduling and load, and of runs that differ by ``spread``."""
    generator = np.random.default_rng(3)
    order = itertools.count()
    for repeat in range(1, repeats + 1):
        for block, load in itertools.product(("normal", "fifo"), loads):
            policy = {"normal": "other", "fifo": "fifo:80"}[block]
            ns = 50_000 * scale(policy, load) * math.exp(generator.normal(0, spread))
            values = np.rint(generator.exponential(ns, N)).astype(np.int64)
            factors = {"block": block, "load": load, "scheduling": policy, "lock_memory": block == "fifo"}
            started = f"2026-11-21T05:00:{next(order):02d}Z"
            more = {"started": started, "factors": factors} | changes
            where, axes = Path(f"r/{block}-{load}-r{repeat}"), {"load": load}
            write_wakeups(
                where, values, repeat=repeat, axes=axes, requirement=DEADLINE, adapter="null", changes=more
            )


def compare(line: str, capsys: Captured) -> tuple[int, str]:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        code = cli.invoke(["compare", *line.split()])
    said = capsys.readouterr()
    return code, said.out + said.err


def level(line: str, capsys: Captured) -> tuple[dict[str, Any], dict[str, dict[str, Any]]]:
    """The only level of a factor, and its effects by quantity."""
    found = json.loads(compare(f"{line} --json", capsys)[1], parse_constant=pytest.fail)
    (one,) = found["levels"]
    return one, {effect["quantity"]: effect for effect in one["effects"]}


def halved(policy: str, load: str) -> float:
    return (0.5 if policy == "fifo:80" else 1.0) * (3.0 if load == "cpu80" else 1.0)


def test_short_runs_have_no_quantile_that_is_their_maximum(
    capsys: Captured, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(globals(), "N", 300)
    plant(lambda policy, _load: 0.5 if policy == "fifo:80" else 1.0)
    _, effects = level("r --factor scheduling", capsys)
    assert list(effects) == ["p50", "p99", "miss_ratio"]
    _, said = compare("r --factor scheduling", capsys)
    assert "p99.9: of 300 releases the same as the maximum: left out" in said


def test_a_planted_effect_has_its_size_and_direction_at_each_quantity(capsys: Captured) -> None:
    plant(halved)
    one, effects = level("r --factor scheduling", capsys)
    assert (one["level"], one["said"], one["matched"], one["pairs"]) == ("fifo:80", "better", 2, 6)
    assert list(effects) == ["p50", "p99", "p99.9", "miss_ratio"]
    for name in ("p50", "p99", "p99.9"):
        effect = effects[name]
        assert effect["said"] == "better" and effect["of"] == "quotient"
        assert 0 < effect["lower"] < 0.5 < effect["upper"] < 1
        assert effect["level"] < effect["reference"]
    ratio = effects["miss_ratio"]
    assert ratio["said"] == "better" and 0 < ratio["lower"] < ratio["times"] < ratio["upper"] < 1
    assert 0 <= ratio["level_interval"][0] < ratio["level_interval"][1] <= 1
    assert one["interactions"] == []
    code, said = compare("r --factor scheduling", capsys)
    assert code == exit_codes.PASS
    assert "scheduling fifo:80 against other: better" in said and "matched over load" in said
    assert "changes with it: lock_memory" in said
    assert "matched over load, means of 6 pairs of runs; 95 % confidence" in said
    before, after = (words.share(ratio[side]) for side in ("reference", "level"))
    assert f"miss ratio > 300us, odds {before} {after} x " in " ".join(said.split())
    low, high = map(words.share, ratio["level_interval"])
    assert f"  miss ratio: {low} to {high}, where it is {before} at the reference\n" in said


def test_cells_whose_events_were_recorded_are_compared_with_none_that_were_not(capsys: Captured) -> None:
    """However late they made their releases; alone they are compared with one another."""
    plant(halved)
    values = np.full(N, 1_000_000)
    for block, policy in (("normal", "other"), ("fifo", "fifo:80")):
        factors = {"block": f"{block}-why", "load": "idle", "scheduling": policy}
        more = {"factors": factors, "conditions": {"asked": {"explain": True}}}
        write_wakeups(Path(f"r/{block}-why"), values, requirement=DEADLINE, adapter="null", changes=more)
    one, effects = level("r --factor scheduling", capsys)
    assert (one["matched"], one["pairs"]) == (2, 6)
    assert effects["p50"]["times"] == pytest.approx(0.5, rel=0.1)
    _, said = compare("r --factor scheduling", capsys)
    assert "left out: fifo-why, normal-why: the kernel's events were recorded, which takes time" in said
    code, said = compare("r/normal-why r/fifo-why", capsys)
    assert "left out" not in said and code != exit_codes.ERROR


def test_two_ways_to_take_a_mean_that_differ_are_said_to(capsys: Captured) -> None:
    """At one load 40 % are missed and then 0.7 %, at the other 0.3 % and none to speak of."""
    plant(lambda policy, load: {"idle": 1.0, "cpu80": 6.0}[load] * (0.2 if policy == "fifo:80" else 1.0))
    _, effects = level("r --factor scheduling", capsys)
    ratio = effects["miss_ratio"]
    odds = [share / (1 - share) for share in (ratio["reference"], ratio["level"])]
    _, said = compare("r --factor scheduling", capsys)
    apart = f"their odds are x {odds[1] / odds[0]:.3g} apart; x {ratio['times']:.3g} is the mean over pairs"
    assert apart in said


def test_two_ways_to_take_a_mean_that_agree_are_not_mentioned(capsys: Captured) -> None:
    plant(lambda policy, _load: 6 * (0.8 if policy == "fifo:80" else 1.0), loads=("idle",))
    _, said = compare("r --factor scheduling", capsys)
    assert "odds" in said and "is the mean over pairs" not in said


def test_the_other_way_round_it_is_worse(capsys: Captured) -> None:
    plant(halved)
    one, effects = level("r --factor scheduling --reference fifo:80", capsys)
    assert (one["level"], one["said"]) == ("other", "worse")
    assert effects["p99"]["lower"] > 1 and effects["p99"]["lower"] < 2 < effects["p99"]["upper"]
    assert compare("r --factor scheduling --reference fifo:80", capsys)[0] == exit_codes.FAIL


@pytest.mark.parametrize(("factor", "intervals"), [("scheduling", 4), ("load", 8)])
def test_the_intervals_of_all_quantities_and_levels_hold_together(factor: str, intervals: int) -> None:
    """Four quantities of each level but the reference: Bonferroni, seen by how the interval widens; a fifth
    of the risk is that of interactions. Runs differ by so much that their own intervals do not matter."""
    plant(lambda policy, load: 1.0, spread=1.0, loads=(*LOADS, "stress10"))
    cells, pairs = (3, 9) if factor == "scheduling" else (2, 6)
    reaches = []
    for confidence in (0.95, 0.6):
        first = rtmeter.read("r").effects(factor, confidence=confidence).levels[0]
        assert (first.matched, first.pairs) == (cells, pairs)
        p50 = first.effects[0]
        reaches.append(math.log(p50.upper / p50.times))
    sided = [t.ppf(1 - 0.8 * (1 - confidence) / intervals / 2, pairs - cells) for confidence in (0.95, 0.6)]
    assert reaches[0] / reaches[1] == pytest.approx(sided[0] / sided[1], rel=1e-9)


def test_named_cells_axes_and_settings_are_factors_alike(capsys: Captured) -> None:
    plant(halved)
    by_setting, by_name = (level(f"r --factor {name}", capsys)[1] for name in ("scheduling", "block"))
    assert by_setting == by_name
    one, effects = level("r --factor load", capsys)
    assert (one["level"], one["said"], one["matched"]) == ("cpu80", "worse", 2)
    assert effects["p50"]["lower"] < 3 < effects["p50"]["upper"]


def test_cells_are_matched_over_all_other_factors(capsys: Captured) -> None:
    """FIFO was measured under load only: against what was idle the load would be taken for the policy."""
    plant(lambda policy, load: 5.0 if load == "cpu80" else 1.0)
    for repeat in (1, 2, 3):
        folder = Path(f"r/fifo-idle-r{repeat}")
        for file in folder.iterdir():
            file.unlink()
        folder.rmdir()
    one, effects = level("r --factor scheduling", capsys)
    assert (one["matched"], one["pairs"]) == (1, 3)
    assert effects["p50"]["lower"] < 1 < effects["p50"]["upper"] < 2
    assert "left out: normal-idle has no partner" in compare("r --factor scheduling", capsys)[1]


def test_a_reference_that_another_level_is_compared_with_is_not_left_out(capsys: Captured) -> None:
    plant(lambda policy, load: 1.0, repeats=1, loads=(*LOADS, "stress10"))
    shutil.rmtree("r/fifo-stress10-r1")  # of the last load one policy is left
    found = json.loads(compare("r --factor load --json", capsys)[1])
    assert [(one["level"], one["matched"]) for one in found["levels"]] == [("cpu80", 2), ("stress10", 1)]
    assert found["left_out"] == []
    found = json.loads(compare("r --factor load --reference stress10 --json", capsys)[1])
    assert found["left_out"] == ["fifo-idle has no partner", "fifo-cpu80 has no partner"]


def test_misses_are_compared_by_the_deadline_of_the_cells_that_are_compared(capsys: Captured) -> None:
    plant(halved, repeats=2)
    write_wakeups(Path("r/alone"), draw(1), requirement=(later := Requirement(600_000, 0.01)), adapter="null")
    said = compare("r --factor load", capsys)[1]
    assert "miss ratio > 300us, odds" in said and "no_deadline" not in said
    for load in LOADS:
        about = {"factors": {"block": "loose", "load": load, "scheduling": "other", "lock_memory": False}}
        about |= {"axes": {"load": load}}
        write_wakeups(Path(f"r/loose-{load}"), draw(1), requirement=later, adapter="null", changes=about)
    said = compare("r --factor load", capsys)[1]
    assert "miss ratio, odds" in said and "no_deadline" not in said
    assert json.loads(compare("r --factor load --json", capsys)[1])["deadline_ns"] is None
    said = compare("r --factor block", capsys)[1]
    assert "miss ratio" not in said.replace("miss ratios", "") and "no_deadline" in said
    assert "miss ratio > 1ms, odds" in compare("r --factor block --deadline 1ms", capsys)[1]


def named(scale: dict[tuple[str, str], float]) -> None:
    """Cells of named blocks, two runs each, by block and policy."""
    generator = np.random.default_rng(3)
    for number, ((block, policy), times) in enumerate(scale.items()):
        for repeat in (1, 2):
            values = np.rint(generator.exponential(50_000 * times, N)).astype(np.int64)
            started = f"2026-11-21T05:0{repeat}:{number:02d}Z"
            more = {"factors": {"block": block, "scheduling": policy}, "started": started}
            where = Path(f"r/{block}-{policy[:4]}-r{repeat}")
            write_wakeups(where, values, repeat=repeat, requirement=DEADLINE, adapter="null", changes=more)


def test_cells_of_one_level_that_nothing_else_tells_apart_are_matched_within_their_block(
    capsys: Captured,
) -> None:
    """What another block measured at the same level does not take the place of the partner."""
    named({("loop", "other"): 1.0, ("loop", "fifo:80"): 0.5, ("bare", "other"): 8.0})
    one, effects = level("r --factor scheduling", capsys)
    assert (one["matched"], one["pairs"]) == (1, 2)
    assert effects["p50"]["times"] == pytest.approx(0.5, rel=0.1)
    assert "left out: bare-othe has no partner" in compare("r --factor scheduling", capsys)[1]


def test_cells_that_no_factor_tells_apart_are_not_compared_at_random(capsys: Captured) -> None:
    named({("before", "other"): 1.0, ("tuned", "fifo:80"): 0.5, ("after", "other"): 8.0})
    code, said = compare("r --factor scheduling", capsys)
    assert code == exit_codes.ERROR
    assert "before-othe has no partner" in said and "after-othe has no partner" in said


@pytest.mark.parametrize("block", ["loop", None])
def test_where_several_of_one_level_are_alike_none_of_them_is_compared(
    block: str | None, capsys: Captured
) -> None:
    """Two cells of one level in one block, or in none: either could be the partner."""
    scale = {
        ("first", "other", "idle"): 1.0,
        ("second", "other", "idle"): 8.0,
        ("third", "fifo:80", "idle"): 0.5,
    }
    scale |= {("fourth", "other", "cpu80"): 2.0, ("fifth", "fifo:80", "cpu80"): 1.0}
    generator = np.random.default_rng(3)
    for number, ((name, policy, load), times) in enumerate(scale.items()):
        for repeat in (1, 2):
            values = np.rint(generator.exponential(50_000 * times, N)).astype(np.int64)
            factors = {"scheduling": policy, "load": load} | ({} if block is None else {"block": block})
            more = {"factors": factors, "started": f"2026-11-21T05:0{repeat}:{number:02d}Z"}
            where = Path(f"r/{name}-r{repeat}")
            write_wakeups(where, values, repeat=repeat, requirement=DEADLINE, adapter="null", changes=more)
    one, effects = level("r --factor scheduling", capsys)
    assert (one["matched"], one["pairs"]) == (1, 2)
    assert effects["p50"]["times"] == pytest.approx(0.5, rel=0.1)
    said = compare("r --factor scheduling", capsys)[1]
    assert "left out: first, second, third: no factor tells those of one level apart" in said


def test_an_interaction_larger_than_the_effect_is_named(capsys: Captured) -> None:
    """FIFO halves under load what it doubles on the idle machine."""
    plant(lambda policy, load: 1.0 if policy == "other" else (0.4 if load == "cpu80" else 2.5))
    one, _ = level("r --factor scheduling", capsys)
    found = {(each["quantity"], each["at"]): each for each in one["interactions"]}
    assert {each["factor"] for each in one["interactions"]} == {"load"}
    under_load, idle = found["p50", "cpu80"], found["p50", "idle"]
    assert under_load["upper"] < 1 < idle["lower"]
    assert under_load["lower"] < 0.4 < under_load["upper"] and idle["lower"] < 2.5 < idle["upper"]
    assert one["said"] == "worse", "what is worse anywhere is no pass"
    code, said = compare("r --factor scheduling", capsys)
    assert code == exit_codes.FAIL
    assert "against other: worse; it depends on load: worse at idle, better at cpu80 (latency" in said
    assert "depends on load: p50 x 0.4" in said


def test_no_effect_is_no_difference_and_says_above_what(capsys: Captured) -> None:
    plant(lambda policy, load: 3.0 if load == "cpu80" else 1.0)
    one, effects = level("r --factor scheduling", capsys)
    assert one["said"] == "no difference" and one["interactions"] == []
    assert {effects[name]["said"] for name in ("p50", "p99")} == {"no difference"}
    code, said = compare("r --factor scheduling", capsys)
    assert code == exit_codes.PASS and "no difference above x 1." in said


def test_runs_that_are_alike_to_the_nanosecond_differ_above_nothing(capsys: Captured) -> None:
    for repeat, load in itertools.product((1, 2), LOADS):
        about = {"factors": {"load": load}, "started": f"2026-11-21T05:00:0{repeat}Z"}
        values = np.full(N, 50_000)
        write_wakeups(Path(f"r/{load}-r{repeat}"), values, repeat=repeat, adapter="null", changes=about)
    said = compare("r --factor load", capsys)[1]
    assert " x 1   no difference" in said and "above x 1" not in said


def test_too_few_repeats_for_a_halving_are_told_and_how_many_it_takes(capsys: Captured) -> None:
    plant(lambda policy, load: 1.0, repeats=2, spread=0.6)
    one, _ = level("r --factor scheduling", capsys)
    assert one["said"] == "not told" and one["repeats_needed"] > 2
    code, said = compare("r --factor scheduling", capsys)
    assert code == exit_codes.INCONCLUSIVE
    assert f"so few repeats do not show even a halving; it takes {one['repeats_needed']}" in said
    assert "no evidence" not in said


def test_a_level_that_failed_is_left_out_and_is_no_reference(capsys: Captured) -> None:
    """The first measured one, of three, failed in every run: the others are compared all the same."""
    died = {"message": "the probe died", "field": None, "value": None, "remedy": None}
    for repeat, (place, block) in itertools.product((1, 2, 3), enumerate(("first", "normal", "fifo"))):
        values = draw(10 * repeat + place, N, 50_000 * (0.5 if block == "fifo" else 1))
        failed = {"status": "failed", "error": died} if block == "first" else {}
        about = {"started": f"2026-11-21T05:00:{10 * repeat + place}Z", "factors": {"block": block}}
        where = Path(f"r/{block}-r{repeat}")
        write_wakeups(where, values, repeat=repeat, adapter="null", changes=about | failed)
    code, said = compare("r --factor block", capsys)
    assert code == exit_codes.PASS and "block fifo against normal: better" in said
    assert "left out: r/first-r1 failed: the probe died" in said


def test_one_run_each_over_one_pair_of_cells_tells_nothing(capsys: Captured) -> None:
    plant(halved, repeats=1)
    for load in ("idle",):
        for block in ("normal", "fifo"):
            for file in Path(f"r/{block}-{load}-r1").iterdir():
                file.unlink()
            Path(f"r/{block}-{load}-r1").rmdir()
    code, said = compare("r --factor scheduling", capsys)
    assert code == exit_codes.INCONCLUSIVE and "one run each" in said


def test_lost_quantiles_are_told_in_words(capsys: Captured) -> None:
    from synthetic import Made, write_cell

    for repeat, (policy, lost) in itertools.product((1, 2), (("other", True), ("fifo:80", False))):
        delays = (lambda k: (1000, None, None)) if lost else (lambda k: (1000, 20_000 + k % 7, 20_000))
        about = {"factors": {"scheduling": policy}, "started": f"2026-11-21T05:00:0{repeat}Z"}
        axes = {"scheduling": policy, "repeat": repeat}
        made = Made(
            f"{policy[:4]}-r{repeat}", "roundtrip", delays=delays, samples=100, axes=axes, changes=about
        )
        write_cell(Path(f"r/{policy[:4]}-r{repeat}"), made)
    code, said = compare("r --factor scheduling --reference other", capsys)
    assert "p99: lost in 2 of 2 runs at the reference, in 0 of 2 here" in said
    assert not {"nan", "inf", "-lost"} & set(said.replace(",", " ").split())
    assert code == exit_codes.PASS and "better" in said


@pytest.mark.parametrize(
    ("line", "said"),
    [
        ("r --factor policy", "--factor = 'policy': is no factor of these cells; name one of block, load"),
        ("r --factor scheduling --reference rr:1", "is no level of scheduling; name one of other, fifo:80"),
        ("r --reference other", "--reference = 'other': says nothing without --factor"),
        ("r r --factor load", "B = 'r': is not for --factor; leave it out, or --factor"),
        ("r", "B: is missing"),
    ],
)
def test_what_cannot_be_meant_is_refused_by_name(line: str, said: str, capsys: Captured) -> None:
    plant(halved, repeats=1)
    code, printed = compare(line, capsys)
    assert code == exit_codes.ERROR and said in printed


def test_without_a_path_the_cells_are_those_of_results(capsys: Captured) -> None:
    plant(halved)
    said = compare("r --factor load --json", capsys)
    Path("r").rename("results")
    assert compare("--factor load --json", capsys) == said and said[0] == exit_codes.FAIL


def test_a_factor_that_some_cells_do_not_state_is_not_proposed_again(capsys: Captured) -> None:
    plant(halved, repeats=1)
    write_wakeups(Path("r/other"), draw(1), axes={"rate": "10"})
    code, printed = compare("r --factor rate", capsys)
    assert code == exit_codes.ERROR
    assert "--factor = 'rate': is 10 or not stated; name one of" in printed and "rate," not in printed


def test_the_api_has_the_same_effects(capsys: Captured) -> None:
    from rtmeter.api.factors import effects_json

    plant(halved)
    found = rtmeter.read("r").effects("scheduling")
    assert found.levels[0].said == "better"
    assert effects_json(found) == json.loads(compare("r --factor scheduling --json", capsys)[1])
