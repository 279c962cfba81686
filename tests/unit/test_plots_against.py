"""The plot of quantiles and misses against a factor: where it breaks."""

from __future__ import annotations

import json
import re
import shutil
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import vl_convert

from rtmeter.errors import RtmeterError
from rtmeter.judge.cell import judged
from rtmeter.model import Requirement
from rtmeter.plots.plots import PlotOptions, draw
from rtmeter.results import store
from rtmeter.results.overview import cell_entries
from rtmeter.results.record import text_of
from rtmeter.statistics.counted_data import Histogram
from stored import write_counted
from synthetic import Made, write_failed_cell
from vega_lite import check_vega_lite
from wakeups import MS, write_wakeups

MISSED = {1000: (1, 0), 2000: (30, 1), 5000: (10, 3)}
"""Of how many releases how many are late, at each rate."""


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Two repeats of each rate, the second one the later."""
    made = tmp_path_factory.mktemp("against")
    for rate, (of, late) in MISSED.items():
        for repeat in (1, 2):
            on_time = 50_000 + 10_000 * repeat
            latency = np.where(np.arange(3_000) % of < late, (1 + repeat) * MS, on_time)
            axes = {"rate": rate, "repeat": repeat}
            path, period_ns = made / f"wakes-{rate}-r{repeat}", 10**9 // rate
            write_wakeups(path, latency, requirement=Requirement(MS, 1e-2), axes=axes, period_ns=period_ns)
    return made


def spec_of(path: Path, **asked: Any) -> dict[str, Any]:
    spec = draw("against", cell_entries(path), PlotOptions(**asked))
    check_vega_lite(spec)
    return spec


def rows(spec: dict[str, Any], name: str) -> list[dict[str, Any]]:
    (found,) = [rows for key, rows in spec["datasets"].items() if key.endswith(f"-{name}")]
    return list(found)


def test_misses_of_all_repeats_stand_below_the_largest_of_their_quantiles(folder: Path) -> None:
    spec = spec_of(folder)  # over the only factor that varies
    share = {rate: late / of for rate, (of, late) in MISSED.items()}
    assert {row["at"]: row["missed"] for row in rows(spec, "misses")} == share
    p50 = {row["at"]: row["us"] for row in rows(spec, "points") if row["line"] == "p50"}
    assert p50 == dict.fromkeys(MISSED, 70)
    said = json.dumps(spec)
    assert "allowed 1 %" in said, "in the unit of its axis"
    assert said.count("allowed 1 %") == 2 and said.count('"strokeWidth": 4') == 1, (
        "the line does not strike it"
    )
    assert "deadline 1,000" in said


def test_the_first_that_fails_is_marked_in_both(folder: Path, tmp_path: Path) -> None:
    said = json.dumps(spec_of(folder))
    assert "first that fails: 2,000 Hz" in said
    assert said.count('{"datum": 2000.0, "type": "quantitative"}') == 2
    shutil.copytree(folder, tmp_path, dirs_exist_ok=True)
    error = {"field": "payload", "value": "5", "message": "is too long", "remedy": "send less"}
    write_failed_cell(tmp_path / "failed", Made(id="failed", axes={"rate": 1500}), error)
    assert "first that fails: 1,500 Hz" in json.dumps(spec_of(tmp_path))


def test_of_periods_the_first_that_fails_is_the_longest(folder: Path) -> None:
    assert "first that fails: 500" in json.dumps(spec_of(folder, over="period"))


@pytest.mark.parametrize(
    ("name", "levels", "first"),
    [
        ("deadline", {"1ms": 1, "2ms": 2, "4ms": 4}, "2ms"),
        ("miss_ratio", {"10%": 0.1, "20%": 0.2, "40%": 0.4}, "0.2"),
    ],
)
def test_of_requirements_the_first_that_fails_is_the_largest(
    name: str, levels: dict[str, float], first: str, tmp_path: Path
) -> None:
    """Going down, as written in a campaign: 3 of 10 are 3 ms late."""
    latency = np.where(np.arange(3_000) * 7 % 10 < 3, 3 * MS, 50_000)
    for written, level in levels.items():
        required = Requirement(round(level * MS), 0.1) if name == "deadline" else Requirement(MS, level)
        write_wakeups(tmp_path / written, latency, requirement=required, axes={name: written})
    assert f'"first that fails: {first}"' in json.dumps(spec_of(tmp_path))


def test_deadlines_that_differ_are_a_line(tmp_path: Path) -> None:
    for rate in (100, 1000):
        asked = Requirement(10**9 // rate, 1e-2)
        latency = np.full(1_500, 50_000)
        write_wakeups(tmp_path / f"{rate}", latency, requirement=asked, axes={"rate": rate})
    spec = spec_of(tmp_path)
    assert [(row["at"], row["us"]) for row in rows(spec, "deadlines")] == [(100, 10_000), (1000, 1_000)]
    assert "first that fails" not in json.dumps(spec)


def test_of_two_factors_it_is_asked_which(tmp_path: Path) -> None:
    for load in ("none", "cpu80"):
        for rate in (100, 1000):
            axes = {"load": load, "rate": rate}
            write_wakeups(tmp_path / f"{load}-{rate}", np.full(1_500, 50_000), axes=axes)
    with pytest.raises(RtmeterError, match="is missing") as refused:
        spec_of(tmp_path)
    assert refused.value.field == "--over"
    assert "the cells differ in" in str(refused.value.remedy)
    panels = spec_of(tmp_path, over="rate", by=("load",))["datasets"]
    assert sum(key.endswith("-points") for key in panels) == 2


def test_panels_share_their_axes(tmp_path: Path) -> None:
    """One of them alone would be linear, and its misses in other units."""
    asked = Requirement(2 * MS, 1e-3)
    for name, tail in (("normal", 90 * MS), ("fifo", MS // 4)):
        for load in ("idle", "cpu80"):
            latency = np.where(np.arange(3_000) % 100 < 4, tail, 50_000)
            axes = {"variant": name, "load": load}
            write_wakeups(tmp_path / f"{name}-{load}", latency, requirement=asked, axes=axes)
    spec = spec_of(tmp_path, over="load", by=("variant",))
    for row, field in zip(spec["vconcat"], ("us", "missed"), strict=True):
        axes = [_axis_of(panel, field) for panel in row["hconcat"]]
        assert axes[0] == axes[1]
        assert axes[0]["scale"]["type"] == {"us": "log", "missed": "symlog"}[field]
        assert axes[0]["axis"]["minExtent"], "panels above each other begin at the same place"


def _axis_of(panel: dict[str, Any], field: str) -> dict[str, Any]:
    layers = (layer["encoding"]["y"] for layer in panel["layer"] if "y" in layer["encoding"])
    return next(y for y in layers if y.get("field") == field)


@pytest.mark.parametrize("late", [(1, 3_000), (30, 40), (2_999, 3_000)])
def test_every_tick_of_the_misses_has_its_label(tmp_path: Path, late: tuple[int, int]) -> None:
    for load, few in zip(("idle", "cpu80"), late, strict=True):
        latency = np.where(np.arange(3_000) < few, 3 * MS, 50_000)
        asked = Requirement(MS, 1e-4)
        write_wakeups(tmp_path / load, latency, requirement=asked, axes={"load": load})
    spec = spec_of(tmp_path)
    shared = {key: spec[key] for key in ("datasets", "config")}
    svg = vl_convert.vegalite_to_svg(json.dumps(spec["vconcat"][1] | shared))
    ticks = _axis_of(spec["vconcat"][1]["hconcat"][0], "missed")["axis"]["values"]
    assert len(ticks) > 2
    labels = re.findall(r"<text[^>]*>(0(?:\.0*1)?|1|1e-\d+|[\d.]+%)</text>", svg)
    assert len(labels) == len(ticks), "one without a label says nothing"


def test_misses_known_only_between_bounds_are_drawn_between_these(tmp_path: Path) -> None:
    """Of the bin that the deadline cuts nothing says how many of its values are beyond it."""
    asked = Requirement(10_500, 0.5)
    for rate, last in {100: (97, 10, 22), 1000: (97,)}.items():
        counts = np.array([97] * 9 + [*last])
        histogram = Histogram(1000 * np.arange(len(counts)), 1000, counts)
        folder = write_counted(tmp_path / f"{rate}", histogram)
        axes = {"rate": rate}
        record = store.read_cell(folder).changed(id=folder.name, axes=axes, requirement=asked)
        (folder / store.CELL).write_text(text_of(judged(record, folder, asked)), encoding="utf-8")
    spec = spec_of(tmp_path)
    drawn = {row["at"]: row for row in rows(spec, "misses")}
    assert (drawn[100]["least"], drawn[100]["missed"]) == (22 / 1002, 32 / 1002)
    assert (drawn[100]["share"], drawn[1000]["share"]) == ("2.2 % to 3.19 %", "0 %")
    assert drawn[1000]["least"] == drawn[1000]["missed"] == 0
    said = json.dumps(spec)
    assert "known only between bounds: at 1 of 2" in said
    assert '"y2": {"field": "least"}' in said


def test_misses_that_are_known_have_no_bounds(folder: Path) -> None:
    spec = spec_of(folder)
    assert all(row["least"] == row["missed"] for row in rows(spec, "misses"))
    assert "between bounds" not in json.dumps(spec) and "y2" not in json.dumps(spec)
