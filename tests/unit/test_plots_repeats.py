"""Distributions of repeats: those of a condition are one line, of all their releases."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from rtmeter.plots.data import LARGEST, together
from rtmeter.plots.loaded import line, load
from rtmeter.plots.plots import PlotOptions, draw
from rtmeter.results.overview import cell_entries
from synthetic import Made, write_cell
from vega_lite import check_vega_lite
from wakeups import draw as exponential
from wakeups import write_wakeups

REPEATS = 5
LENGTHS = (3_000, 40, 3_000, LARGEST, 5_000)


@pytest.fixture(scope="module")
def values() -> dict[str, list[np.ndarray]]:
    """Of two loads; one run has few releases, one has equal ones beyond the largest of the others."""
    found = {
        load: [exponential(seed + repeat, LENGTHS[repeat], scale_ns) for repeat in range(REPEATS)]
        for load, seed, scale_ns in (("none", 1, 20_000), ("cpu80", 50, 60_000))
    }
    found["none"][2][:700] = 1_000_000
    return found


@pytest.fixture(scope="module")
def root(tmp_path_factory: pytest.TempPathFactory, values: dict[str, list[np.ndarray]]) -> Path:
    root = tmp_path_factory.mktemp("repeats") / "results"
    for load_, runs in values.items():
        for repeat, latency in enumerate(runs, 1):
            folder = root / f"wake-{load_}-r{repeat}"
            write_wakeups(folder, latency, repeat=repeat, axes={"load": load_})
    return root


def text_of(root: Path, kind: str, **asked: Any) -> str:
    """What a picture says."""
    spec = draw(kind, cell_entries(root), PlotOptions(**asked))
    check_vega_lite(spec)
    return json.dumps(spec, ensure_ascii=False)


@pytest.mark.parametrize("kind", ["ccdf", "histogram"])
def test_repeats_of_a_cell_are_one_line_beside_those_of_another(
    root: Path, values: dict[str, list[np.ndarray]], kind: str
) -> None:
    text = text_of(root, kind)
    assert set(re.findall(r'"([^"]+)   Max: ', text)) == {"load none", "cpu80"}
    for name, runs in values.items():
        assert f"{name}   Max: {max(run.max() for run in runs) / 1e3:,.1f} us" in text
    assert "all releases of the repeats of a cell together" in text
    assert "-r1" not in text and "repeat" not in text.replace("the repeats of a cell", "")


@pytest.mark.parametrize("load_", ["none", "cpu80"])
def test_the_line_is_of_all_their_releases(
    root: Path, values: dict[str, list[np.ndarray]], load_: str
) -> None:
    runs = [load(cell, None) for cell in cell_entries(root) if f"-{load_}-" in cell.id]
    grid = runs[0].subject.series.grid
    whole = line([run.on(grid) for run in runs], load_, "").view
    latency = np.concatenate(values[load_])
    x, share = whole.ccdf()
    assert (whole.n, whole.lost, whole.least_ns) == (len(latency), 0, latency.min())
    assert whole.mean_ns == pytest.approx(latency.mean())
    assert whole.largest_ns.tolist() == np.sort(latency)[::-1][:LARGEST].tolist()
    assert whole.tail_n == np.count_nonzero(latency >= whole.largest_ns[-1])
    assert share.tolist() == [np.count_nonzero(latency >= at) / len(latency) for at in x]
    edges = grid.first_ns, grid.first_ns + grid.width_ns * grid.size
    inside = (latency >= edges[0]) & (latency < edges[1])
    assert whole.steps.sum() == len(latency) and whole.steps[1:-1].sum() == inside.sum()
    assert together([whole]) is whole


def test_of_one_condition_each_repeat_is_a_line_and_so_is_each_where_it_is_asked(root: Path) -> None:
    cells = [cell for cell in cell_entries(root) if "-none-" in cell.id]
    text = json.dumps(draw("ccdf", cells, PlotOptions()), ensure_ascii=False)
    assert all(f"repeat {repeat}   Max: " in text for repeat in range(1, REPEATS + 1))
    assert "together" not in text and "together" not in text_of(root, "ccdf", by=("load", "repeat"))


def test_cells_of_one_id_are_told_apart_by_their_folders(tmp_path: Path) -> None:
    for name in ("before", "after"):
        write_wakeups(tmp_path / name, exponential(1, 2_000), changes={"id": "wakeup-posix"})
    cells = [cell for name in ("before", "after") for cell in cell_entries(tmp_path / name)]
    for kind, told in (("ccdf", "{}   Max: "), ("time", '"text": "{}"')):
        spec = json.dumps(draw(kind, cells, PlotOptions()))
        assert all(told.format(name) in spec for name in ("before", "after")) and "run 1" not in spec


def test_a_picture_of_several_quantities_says_which_is_which(tmp_path: Path) -> None:
    write_wakeups(tmp_path / "wakes", exponential(1, 2_000))
    write_cell(tmp_path / "trips", Made(id="trips", measurement="roundtrip", samples=100))
    cells = [cell for name in ("wakes", "trips") for cell in cell_entries(tmp_path / name)]
    both = ("wakes, wake-up latency", "trips, response (release to reply)")
    for kind in ("time", "maxima", "ccdf"):
        spec = draw(kind, cells, PlotOptions())
        assert spec["title"]["text"].startswith(
            "Wake-up latency and response (release to reply), per release"
        )
        assert all(name in json.dumps(spec) for name in both)
