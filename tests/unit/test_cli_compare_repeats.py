"""`rtmeter compare` over repeats: pairs of runs, told as `--factor` tells them."""

from __future__ import annotations

import json
import re
from dataclasses import asdict
from pathlib import Path

import numpy as np
import pytest
from compare_line import DIED, Captured, as_json, compare

from rtmeter.cli import exit_codes, invoke
from rtmeter.model import Requirement
from rtmeter.statistics.counted_data import Histogram
from stored import write_counted
from wakeups import draw, write_wakeups


@pytest.fixture(autouse=True)
def _in_an_empty_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


def interleaved(second: float = 1.0, *, started: bool = True, count: int = 6, n: int = 5000) -> None:
    """Repeats of two cells, measured in turn, on a machine that is up to six times as slow for both; those
    of ``y`` are later by the factor ``second``."""
    for number in range(1, count + 1):
        slow = np.random.default_rng(number).uniform(1, 6)
        for turn, (name, factor) in enumerate({"x": 1.0, "y": second}.items()):
            values = draw(10 * number + turn, n, 50_000 * slow * factor)
            minute = 2 * number + turn if started else 20 * turn + number
            changes = {"started": f"2026-11-21T05:{minute:02}:00Z"}
            write_wakeups(Path(f"run/{name}-r{number}"), values, repeat=number, changes=changes)


def test_interleaved_repeats_are_analysed_as_pairs(capsys: Captured) -> None:
    interleaved(1.2)
    (found,) = as_json("run/x run/y", capsys)["cells"]
    assert (found["pairs"], found["interleaved"], found["outcome"]) == (6, True, "worse")
    p50 = found["shifts"][0]
    assert p50["times_lower"] < 1.2 < p50["times_upper"] < 1.15 * p50["times_lower"]
    assert p50["times"] == pytest.approx(p50["b"] / p50["a"])
    assert found["a"] == [f"run/x-r{number}" for number in range(1, 7)]
    assert "means of 6 pairs of runs, measured in turn" in compare("run/x run/y", capsys)[1]


@pytest.mark.parametrize("second", [1.0, 1.2, 0.4])
@pytest.mark.parametrize(("count", "n"), [(2, 300), (3, 1000), (6, 5000)])
def test_two_cells_and_their_factor_are_told_alike(
    second: float, count: int, n: int, capsys: Captured
) -> None:
    """The same runs: one word, one number and one interval of each quantity, whichever way it is asked."""
    interleaved(second, count=count, n=n)
    for cell in Path("run").glob("*/cell.json"):
        about = {"factors": {"variant": cell.parent.name[0]}}
        cell.write_text(json.dumps(json.loads(cell.read_text()) | about))
    (two,) = as_json("run/x run/y --deadline 300us", capsys)["cells"]
    (one,) = as_json("run --factor variant --deadline 300us", capsys)["levels"]
    assert two["outcome"] == one["said"]
    shifts = {shift["quantity"]: shift for shift in two["shifts"] if shift["outcome"] != "not enough data"}
    same = {
        "a": "reference",
        "b": "level",
        "outcome": "said",
        "times": "times",
        "times_lower": "lower",
        "times_upper": "upper",
        "repeats_needed": "repeats_needed",
        "repeats_for_seen": "repeats_for_seen",
    }
    assert [effect["quantity"] for effect in one["effects"]] == list(shifts)
    for effect in one["effects"]:
        shift = shifts[effect["quantity"]]
        assert {key: shift[key] for key in same} == {key: effect[other] for key, other in same.items()}
        assert shift["lower"] >= -shift["a"], "no shift puts B below nothing"
    said = [compare(f"run{line} --deadline 300us", capsys) for line in ("/x run/y", " --factor variant")]
    assert said[0][0] == said[1][0]
    row = re.compile(" *(p[0-9.]+, us|miss ratio >)")
    rows = [
        [line.split() for line in text.splitlines() if row.match(line) and " x " in line] for _, text in said
    ]
    assert rows[0] == rows[1] and len(rows[0]) >= 3


def test_a_gate_over_pairs_agrees_with_the_shift_that_stands_above_it(capsys: Captured) -> None:
    interleaved(1.2)
    gates = "--gate p50<+0% --gate p50<+30% --gate p99<-1us --gate p50<+1h"
    (found,) = as_json(f"run/x run/y {gates}", capsys)["cells"]
    assert [gate["outcome"] for gate in found["gates"]] == ["fail", "pass", "fail", "pass"]
    p50, p99 = found["shifts"][:2]
    assert (p50["outcome"], p99["quantity"]) == ("worse", "p99")
    first, _, third, _ = (gate["excess"] for gate in found["gates"])
    assert (first["lower"], first["upper"]) == pytest.approx((p50["lower"], p50["upper"]))
    assert third["lower"] == pytest.approx(p99["lower"] + 1000)


def test_a_factor_that_is_compared_by_force_says_of_what_that_is_meaningless(capsys: Captured) -> None:
    interleaved(count=2, n=300)
    for cell in Path("run").glob("*/cell.json"):
        content = json.loads(cell.read_text()) | {"factors": {"variant": (name := cell.parent.name[0])}}
        content["machine"]["cpu_model"] = {"x": "Cortex-A53", "y": "Cortex-A76"}[name]
        cell.write_text(json.dumps(content))
    line = "run --factor variant --deadline 300us"
    code, said = compare(line, capsys)
    assert code == exit_codes.ERROR and "another machine (machine.cpu_model: Cortex-A53, Cortex-A76)" in said
    code, said = compare(f"{line} --force", capsys)
    assert code != exit_codes.ERROR and "left out: " not in said
    assert "forced: x → y: compared although they are of another machine (machine.cpu_model" in said


def test_an_interval_that_so_few_runs_do_not_bound_is_not_written_out(capsys: Captured) -> None:
    """Two pairs that agree on nothing: no x 1.87e-09 to x 1.29e+05."""
    for number, (a, b) in enumerate(((1.0, 9.0), (9.0, 1.5)), 1):
        for name, scale in (("x", a), ("y", b)):
            write_wakeups(Path(f"r/{name}-r{number}"), draw(number, 2000, 50_000 * scale), repeat=number)
    said = compare("r/x r/y", capsys)[1]
    assert re.search(r"p50, us +[\d.]+ +[\d.]+ +x 1\.\d+ +< x 0\.001\d+ +> x 1\.\d+e\+03 +not told", said)
    p50 = as_json("r/x r/y", capsys)["cells"][0]["shifts"][0]
    assert p50["upper"] is None and -p50["a"] <= p50["lower"] < 0


def test_repeats_that_were_not_measured_in_turn_say_so(capsys: Captured) -> None:
    interleaved(started=False, count=3)
    (found,) = as_json("run/x run/y", capsys)["cells"]
    assert found["interleaved"] is False
    assert {"not_interleaved", "few_pairs"} <= {doubt["type"] for doubt in found["doubts"]}


def test_two_repeats_of_one_cell_can_be_compared(capsys: Captured) -> None:
    interleaved(count=2)
    (found,) = as_json("run/x-r1 run/x-r2", capsys)["cells"]
    assert (found["id"], found["pairs"], found["a"], found["b"]) == ("x", 1, ["run/x-r1"], ["run/x-r2"])


def test_a_repeat_that_failed_is_left_out_and_named(capsys: Captured) -> None:
    interleaved(count=3)
    cell = Path("run/y-r2/cell.json")
    cell.write_text(json.dumps(json.loads(cell.read_text()) | {"status": "failed", "error": DIED}))
    (found,) = as_json("run/x run/y", capsys)["cells"]
    assert found["pairs"] == 2
    assert "run/y-r2 failed: the probe died" in [doubt["message"] for doubt in found["doubts"]]


def test_repeats_of_histograms_whose_miss_ratio_is_not_known(tmp_path: Path, capsys: Captured) -> None:
    data = Histogram(np.array([50_000, 500_000]), 1_000, np.array([9_000, 1_000]))
    for side in ("a", "b"):
        for repeat in (1, 2):
            folder = tmp_path / side / f"cell-r{repeat}"
            asked = asdict(Requirement(500_500, 0.1))
            write_counted(folder, data, id=folder.name, axes={"repeat": repeat}, requirement=asked)
    assert invoke(["compare", str(tmp_path / "a"), str(tmp_path / "b")]) == 3
    said = capsys.readouterr().out
    assert "miss ratio: not known of every run" in said and "nan" not in said
