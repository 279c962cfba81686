"""`rtmeter compare`: pairs of cells, what is refused, exit codes and JSON."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from compare_line import DIED, Captured, as_json, compare

from rtmeter import cli
from rtmeter.cli import exit_codes
from rtmeter.model import SERVED, SKIPPED, Requirement
from synthetic import Made, write_cell, write_failed_cell
from wakeups import MS, draw, write_wakeups

JUDGED = Requirement(200_000, 0.5)


@pytest.fixture(autouse=True)
def _in_an_empty_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


def one(name: str, seed: int, scale: float = 1.0, **more: Any) -> None:
    write_wakeups(Path(name) / "cell", draw(seed, scale_ns=50_000 * scale), requirement=JUDGED, **more)


def test_what_is_later_is_worse_at_each_quantile(capsys: Captured) -> None:
    one("a", 1)
    one("b", 2, 1.3)
    code, said = compare("a b", capsys)
    assert code == exit_codes.FAIL
    assert said.startswith("cell: worse (latency per release, one run each; 95 % confidence for all")
    assert "differs: nothing that is recorded" in said and "one_run_each" in said
    (found,) = as_json("a b", capsys)["cells"]
    assert (found["outcome"], found["pairs"], found["deadline_ns"]) == ("worse", 1, 200_000)
    shifts = {shift["quantity"]: shift for shift in found["shifts"]}
    assert list(shifts) == ["p50", "p90", "p99", "p99.9", "p99.99", "miss_ratio"]
    p90 = shifts["p90"]
    assert p90["lower"] < p90["difference"] == p90["b"] - p90["a"] < p90["upper"]
    assert p90["lower"] < 0.3 * 50_000 * np.log(10) < p90["upper"]
    assert shifts["miss_ratio"]["outcome"] == "worse"
    assert shifts["miss_ratio"]["a"] == np.mean(draw(1) > 200_000)
    assert compare("b a", capsys)[0] == exit_codes.PASS
    assert as_json("b a", capsys)["cells"][0]["outcome"] == "better"


def test_runs_of_one_distribution_show_no_difference(capsys: Captured) -> None:
    one("a", 1)
    one("b", 2)
    code, said = compare("a b", capsys)
    assert code == exit_codes.PASS and said.startswith("cell: no difference (latency")


def pairs_of(side: str, ratios: list[float], scale: float = 1.0) -> None:
    """Repeats that miss 200 us with these ratios."""
    for number, ratio in enumerate(ratios, 1):
        values = np.full(5_000, 50_000) + np.arange(5_000) % 97
        values[: round(5_000 * ratio)] = 300_000
        folder = Path(f"{side}/cell-r{number}")
        write_wakeups(
            folder, np.random.default_rng(number).permutation(values), repeat=number, requirement=JUDGED
        )


def test_three_repeats_that_show_not_even_a_halving_are_no_pass(capsys: Captured) -> None:
    """As often late by each other's side, but so unalike that 38 % against 0.7 % is not told."""
    pairs_of("a", [0.9, 0.2, 0.04])
    pairs_of("b", [0.0001, 0.02, 0.01])
    code, said = compare("a b", capsys)
    assert code == exit_codes.INCONCLUSIVE
    assert said.startswith("cell: not told: half or twice as much is not ruled out (latency")
    (found,) = as_json("a b", capsys)["cells"]
    (ratio,) = (shift for shift in found["shifts"] if shift["quantity"] == "miss_ratio")
    assert ratio["repeats_needed"] > ratio["repeats_for_seen"] > 3 and ratio["outcome"] == "not told"
    takes = f"so few repeats do not show even a halving; it takes {ratio['repeats_needed']}"
    assert f"miss ratio: {takes}" in said and "no evidence" not in said
    seen = f"miss ratio (x {ratio['times']:.3g}): it takes {ratio['repeats_for_seen']} to tell"
    assert re.search(rf"as much as was seen of .*{re.escape(seen)}", said)


def test_the_interval_of_a_ratio_over_pairs_stays_within_0_and_1(capsys: Captured) -> None:
    pairs_of("a", [0.5, 0.9, 0.1])
    pairs_of("b", [0.0, 1.0, 0.02])
    (found,) = as_json("a b", capsys)["cells"]
    (ratio,) = (shift for shift in found["shifts"] if shift["quantity"] == "miss_ratio")
    assert -ratio["a"] <= ratio["lower"] <= ratio["difference"] <= ratio["upper"] <= 1 - ratio["a"] + 1e-9


def test_repeats_that_agree_tell_a_ratio_of_many_from_one_of_few(capsys: Captured) -> None:
    pairs_of("a", [0.38, 0.39, 0.37])
    pairs_of("b", [0.007, 0.008, 0.006])
    (found,) = as_json("a b", capsys)["cells"]
    (ratio,) = (shift for shift in found["shifts"] if shift["quantity"] == "miss_ratio")
    assert ratio["outcome"] == "better" and -0.38 < ratio["lower"] < ratio["upper"] < -0.3


def test_a_deadline_may_be_given_for_the_miss_ratio(capsys: Captured) -> None:
    one("a", 1)
    write_wakeups(Path("b/cell"), draw(2), requirement=Requirement(100_000, 0.5))
    (found,) = as_json("a b", capsys)["cells"]
    assert "no_deadline" in [doubt["type"] for doubt in found["doubts"]]
    assert "miss_ratio" not in [shift["quantity"] for shift in found["shifts"]]
    (found,) = as_json("a b --deadline 150us", capsys)["cells"]
    assert found["shifts"][-1]["a"] == np.mean(draw(1) > 150_000)


def test_a_skipped_release_is_a_miss_however_soon_it_was_free(capsys: Captured) -> None:
    one("a", 1)
    status = np.full(20_000, SERVED)
    status[::10] = SKIPPED
    values = draw(1)
    values[::10] = 1000
    write_wakeups(Path("b/cell"), values, status=status, requirement=JUDGED)
    (found,) = as_json("a b", capsys)["cells"]
    expected = np.mean((values > 200_000) | (status == SKIPPED))
    assert found["shifts"][-1]["b"] == pytest.approx(expected)
    assert found["shifts"][-1]["outcome"] == "worse"


# Which cells belong together.


def test_cells_are_paired_by_id_and_those_without_a_partner_are_named(capsys: Captured) -> None:
    for side, names in {"a": ("x", "y", "gone"), "b": ("y", "x", "new")}.items():
        for name in names:
            write_wakeups(Path(side) / name, draw(1), axes={"load": name})
    code, said = compare("a b", capsys)
    assert code == exit_codes.INCONCLUSIVE
    assert "x: no difference" in said and "y: no difference" in said
    assert "only in A: gone" in said and "only in B: new" in said
    found = as_json("a b", capsys)
    assert (found["only_in_a"], found["only_in_b"]) == (["gone"], ["new"])
    assert found["cells"][0]["confidence"] == pytest.approx(0.975)  # two cells: 95 % for both together


def test_what_only_b_has_is_named_and_leaves_nothing_open(capsys: Captured) -> None:
    for name in ("a/x", "b/x", "b/new"):
        write_wakeups(Path(name), draw(1), axes={"load": name[2:]})
    code, said = compare("a b", capsys)
    assert code == exit_codes.PASS and "only in B: new" in said
    assert compare("b a", capsys)[0] == exit_codes.INCONCLUSIVE


def test_cells_of_other_ids_are_paired_by_their_axes(capsys: Captured) -> None:
    for side, adapter in {"a": "posix", "b": "ros2"}.items():
        for policy in ("other", "fifo-80"):
            folder = Path(side) / f"wakeup-{adapter}-{policy}"
            write_wakeups(folder, draw(1), adapter=adapter, axes={"scheduling": policy})
    found = as_json("a b", capsys)
    assert [cell["id"] for cell in found["cells"]] == [
        "wakeup-posix-fifo-80 → wakeup-ros2-fifo-80",
        "wakeup-posix-other → wakeup-ros2-other",
    ]
    assert {"name": "adapter", "a": "posix", "b": "ros2"} in found["cells"][0]["differs"]


def test_folders_without_a_cell_in_common_are_refused(capsys: Captured) -> None:
    for side, names in {"a": ("x", "y"), "b": ("u", "v")}.items():
        for name in names:
            write_wakeups(Path(side) / name, draw(1, 1000), axes={"load": name})
    code, said = compare("a b", capsys)
    assert code == exit_codes.ERROR and "B = 'b': has no cell of the same id or axes" in said
    assert "x → u: no difference" in compare("a/x b/u", capsys)[1]


# What is refused, and what is only told.


@pytest.mark.parametrize(
    ("changes", "name"),
    [
        ({"config": {"period_ns": 2 * MS}}, "another period (config.period_ns: 1ms, 2ms)"),
        ({"machine": {"cpu_model": "Cortex-A76"}}, "another machine (machine.cpu_model"),
        ({"machine": {"cpus_online": 4}}, "another machine (machine.cpus_online: 2, 4)"),
        ({"machine": {"virtual_machine": None}}, "a virtual machine against another or none"),
    ],
)
def test_a_comparison_that_means_nothing_is_refused(
    changes: dict[str, Any], name: str, capsys: Captured
) -> None:
    one("a", 1)
    one("b", 1, changes=changes)
    code, said = compare("a b", capsys)
    assert code == exit_codes.ERROR
    assert f"cell: error: {name}" in said and "--force" in said
    code, said = compare("a b --force", capsys)
    assert code == exit_codes.PASS and "forced: compared although" in said
    assert as_json("a b", capsys)["cells"][0]["refusal"].startswith(name)


def test_another_measurement_is_refused(capsys: Captured) -> None:
    one("a", 1)
    write_cell(Path("b/cell"), Made(id="cell", measurement="cycle", samples=100))
    code, said = compare("a b", capsys)
    assert code == exit_codes.ERROR
    assert "another measurement (measurement: wakeup, cycle)" in said


def test_what_is_not_known_of_one_side_is_doubted_and_not_refused(capsys: Captured) -> None:
    one("a", 1, changes={"machine": {"cpu_model": None, "hostname": None}})
    one("b", 1)
    code, said = compare("a b", capsys)
    assert code == exit_codes.PASS
    assert "unknown_condition: machine.cpu_model of A or B is not known: it may be another machine" in said
    assert "other_host" not in said


def test_what_differs_besides_is_told(capsys: Captured) -> None:
    one("a", 1)
    changes = {
        "config": {"scheduling": {"policy": "other"}, "samples": 3},
        "effective": {"scheduling": {"policy": "other"}, "timer_slack_ns": 1},
        "machine": {"hostname": "robot-8", "kernel": "6.12.0", "boot_id": "other"},
        "adapter_facts": {"middleware_version": "2", "measures": ["wakeup"], "second_topic": ["same_node"]},
        "conditions": {"asked": {"load": "cpu80"}, "effective": {}, "achieved": {"load": {"level": 0.79}}},
        "rtmeter": "0.2.0",
    }
    one("b", 1, changes=changes)
    code, said = compare("a b", capsys)
    assert code == exit_codes.PASS
    differs = [line.removeprefix("  differs: ") for line in said.splitlines() if "differs:" in line]
    assert sorted(differs) == [
        "adapter_facts.middleware_version: – → 2",
        "conditions.asked.load: – → cpu80",
        "config.samples: 20,000 → 3",
        "config.scheduling: fifo:80 → other",
        "effective.timer_slack_ns: 50us → 1ns",
        "machine.hostname: robot-7 → robot-8",
        "machine.kernel: 6.1.0-26-rt-amd64 → 6.12.0",
        "rtmeter: 0.1.0 → 0.2.0",
    ]
    assert "other_host: hosts differ: robot-7, robot-8" in said


def test_what_only_one_machine_had_wrong_is_told(capsys: Captured) -> None:
    grave = [
        {"id": name, "grade": grade, "value": "yes"}
        for name, grade in (("rt_throttling", "high"), ("swap", "info"))
    ]
    one("a", 1, changes={"findings": grave})
    one("b", 1, changes={"findings": [{"id": "no_preempt_rt", "grade": "fatal", "value": "yes"}]})
    assert "differs: findings: rt_throttling → no_preempt_rt" in compare("a b", capsys)[1]
    one("c", 1, changes={"findings": None})
    assert "findings" not in compare("a c", capsys)[1]


def test_interrupted_and_refused_data_are_doubted(capsys: Captured) -> None:
    one("a", 1, changes={"status": "interrupted"})
    values = draw(2)
    values[10_000:] *= 3
    write_wakeups(Path("b/cell"), values, requirement=JUDGED)
    said = compare("a b", capsys)[1]
    assert "interrupted: a/cell was interrupted" in said
    assert "change_point: b/cell: the tail changes at" in said


def test_doubts_tell_siblings_of_one_id_apart(capsys: Captured) -> None:
    for folder in ("a", "b"):
        write_wakeups(Path(folder), draw(1), changes={"status": "interrupted", "id": "cell"})
    said = compare("a b", capsys)[1]
    assert "interrupted: a was interrupted" in said and "interrupted: b was interrupted" in said


def test_what_changes_is_doubted_without_a_verdict_too(capsys: Captured) -> None:
    one("a", 1)
    values = draw(2)
    values[10_000:] *= 3
    write_wakeups(Path("b/cell"), values)
    assert "change_point: b/cell: the tail changes at" in compare("a b", capsys)[1]


def test_a_failed_cell_is_an_error(capsys: Captured) -> None:
    one("a", 1)
    write_failed_cell(Path("b/cell"), Made(id="cell"), DIED)
    code, said = compare("a b", capsys)
    assert code == exit_codes.ERROR and "cell: error: b/cell failed: the probe died" in said
    assert compare("a b --force", capsys)[0] == exit_codes.ERROR


# What goes wrong.


def test_constant_data_differ_or_not(capsys: Captured) -> None:
    for name, value in {"a": 50_000, "b": 50_000, "c": 60_000}.items():
        write_wakeups(Path(name) / "cell", np.full(20_000, value))
    code, said = compare("a b", capsys)
    assert code == exit_codes.PASS and "no difference above 0" not in said and "-0.0" not in said
    assert compare("a c", capsys)[0] == exit_codes.FAIL


def test_three_samples_are_not_enough(capsys: Captured) -> None:
    for side in "ab":
        write_wakeups(Path(side) / "cell", draw(1, 3))
    code, said = compare("a b", capsys)
    assert code == exit_codes.INCONCLUSIVE
    assert said.startswith("cell: not enough data") and "too short a run" in said


def test_all_lost_is_worse_than_anything_and_no_worse_than_itself(capsys: Captured) -> None:
    def trips(side: str, lost: bool) -> None:
        delays = (lambda k: (1000, None, None)) if lost else (lambda k: (1000, 20_000 + k % 7, 20_000))
        write_cell(Path(side) / "cell", Made(id="cell", measurement="roundtrip", samples=2000, delays=delays))

    trips("a", False)
    trips("lost", True)
    trips("gone", True)
    code, said = compare("a lost", capsys)
    assert code == exit_codes.FAIL and "lost" in said
    found = as_json("a lost", capsys)["cells"][0]["shifts"][0]
    assert (found["b"], found["difference"], found["outcome"]) == ("lost", "B lost", "worse")
    assert as_json("lost a", capsys)["cells"][0]["shifts"][0]["difference"] == "A lost"
    assert compare("lost gone", capsys)[0] == exit_codes.PASS


def test_one_enormous_outlier_is_no_difference(capsys: Captured) -> None:
    values = draw(2)
    values[777] = 3_600_000 * MS
    one("a", 1)
    write_wakeups(Path("b/cell"), values, requirement=JUDGED)
    assert compare("a b", capsys)[0] == exit_codes.PASS


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("a none", "path = 'none': is not there"),
        ("a", "B: is missing"),
        ("", "B: is missing"),
        ("a a --confidence 0.3", "--confidence = '0.3': should be greater than or equal to 0.5"),
        ("a a --deadline 3", "--deadline = '3': has no unit"),
    ],
)
def test_wrong_options_are_refused(line: str, message: str, capsys: Captured) -> None:
    one("a", 1)
    code, said = compare(line, capsys)
    assert code == exit_codes.ERROR and message in said


def test_what_all_cells_have_in_common_is_told_once_and_short_runs_have_no_tail(capsys: Captured) -> None:
    for name, scale in (("a", 1.0), ("b", 3.0)):
        for number in (1, 2, 3):
            values = draw(number, 300, 50_000 * scale)
            write_wakeups(Path(f"r/{name}-r{number}"), values, repeat=number, requirement=JUDGED)
    said = compare("r/a r/b", capsys)[1]
    assert said.count("300 releases are too few to look at") == 1
    assert "all 6 cells: 300 releases are too few to look at" in said
    assert re.search(r"p99\.9, us +- +- +- +- +- +too short a run", said)
    assert cli.invoke(["layers", "r", "--floor", "a"]) == exit_codes.PASS
    assert re.search(r"b +3 .* too short *\n", capsys.readouterr().out)
