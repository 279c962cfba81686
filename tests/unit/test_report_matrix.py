"""The matrix of verdicts over a campaign's axes, and colours that all readers can tell apart."""

from __future__ import annotations

from itertools import combinations, pairwise
from pathlib import Path

import numpy as np
import pytest

from rtmeter.plots.envelope import Stretches
from rtmeter.plots.grammar import DASHES, LINE_COLOURS
from rtmeter.plots.picture import _colours
from rtmeter.report.matrix import choices, filtered_by, matrices, searched
from rtmeter.results.overview import cell_entries
from rtmeter.statistics.views import Block
from synthetic import Made, write_cell, write_failed_cell

MS = 1_000_000


@pytest.fixture(scope="module")
def cells(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Periods by loads with two repeats of one, one that is missing, and one that failed."""
    folder = tmp_path_factory.mktemp("matrix")
    for period in (10, 1):
        for load in ("none", "cpu80", "stress10"):
            for repeat in (1, 2) if (period, load) == (1, "none") else (1,):
                late = (period, load, repeat) == (1, "none", 2)
                axes = {"period": f"{period}ms", "load": load, "repeat": repeat}
                made = Made(id=f"{load}-{period}-{repeat}", samples=1_000, period_ns=period * MS, axes=axes)
                made.delays = lambda k, late=late: (5e6 if late and k == 110 else 4e4,)
                if (period, load) == (10, "stress10"):
                    write_failed_cell(folder / made.id, made, {"message": "no stress-ng"})
                elif (period, load) != (1, "stress10"):
                    write_cell(folder / made.id, made)
    return folder


def test_each_place_has_its_worst_cell(cells):
    (found,) = matrices([(cell.id, cell) for cell in cell_entries(cells)])
    assert (found.across, found.down, found.columns) == ("load", ("period",), ("cpu80", "none", "stress10"))
    outcomes = {names: [one and one.outcome for one in squares] for names, squares in found.rows}
    assert outcomes == {("1ms",): ["pass", "fail", None], ("10ms",): ["pass", "pass", "error"]}
    assert list(outcomes) == [("1ms",), ("10ms",)]  # by what they are, not by their letters
    repeated = found.rows[0][1][1]
    assert repeated is not None
    assert (repeated.anchor, repeated.text) == ("none-1-2", "0.4 %")
    assert found.rows[0][1][0].text == "0 %"


def test_blocks_of_a_campaign_with_axes_of_their_own_have_a_matrix_each(tmp_path):
    for number in range(2):
        write_cell(tmp_path / f"a{number}", Made(id=f"wake-{number}", samples=20, axes={"load": number}))
        cycle = Made(
            id=f"cycle-x-load-{number}", measurement="cycle", samples=20, axes={"load": number, "at": "x"}
        )
        write_cell(tmp_path / f"b{number}", cycle)
    write_cell(tmp_path / "c", Made(id="alone", samples=20))
    found = matrices([(cell.id, cell) for cell in cell_entries(tmp_path)])
    assert [(one.name, one.across, one.down) for one in found] == [
        ("wake", "load", ()),
        ("cycle-x", "load", ()),
    ]
    assert all(square is not None for one in found for _, squares in one.rows for square in squares)


def test_of_cells_of_one_outcome_the_worst_stands_for_its_place(tmp_path):
    for load, late in (("none", 10), ("none", 30), ("none", 20), ("cpu80", 1)):
        name = f"{load}-{late}"
        made = Made(id=name, samples=1_000, axes={"load": load, "repeat": late})
        made.delays = lambda k, late=late: (5e6 if 110 <= k < 110 + late else 4e4,)
        write_cell(tmp_path / name, made)
    (found,) = matrices([(cell.id, cell) for cell in cell_entries(tmp_path)])
    ((_, squares),) = found.rows
    assert [(one.anchor, one.outcome) for one in squares] == [("cpu80-1", "fail"), ("none-30", "fail")]


@pytest.mark.parametrize(("values", "across"), [(8, "load"), (9, "at")])
def test_as_many_columns_as_fit_lie_across_and_as_many_values_as_fit_can_be_chosen(
    values, across, tmp_path, monkeypatch
):
    monkeypatch.setattr("rtmeter.report.matrix._MOST_CHOICES", 8)
    for load in range(values):
        for at in ("x", "y"):
            made = Made(id=f"{at}-{load}", samples=20, axes={"load": load, "at": at})
            write_cell(tmp_path / made.id, made)
    cells = cell_entries(tmp_path)
    (found,) = matrices([(cell.id, cell) for cell in cells])
    assert (found.across, len(found.columns)) == (across, values if across == "load" else 2)
    assert [axis for axis, _ in choices(cells)] == (["load", "at"] if values == 8 else ["at"])


def test_cells_that_differ_in_nothing_make_no_matrix(cells):
    one = [(cell.id, cell) for cell in cell_entries(cells) if cell.id == "none-10-1"]
    assert matrices(one) == []
    assert choices([cell for _, cell in one]) == []


def test_cells_are_found_by_their_values_and_verdicts(cells):
    found = {cell.id: cell for cell in cell_entries(cells)}
    assert choices(list(found.values())) == [
        ("period", ["1ms", "10ms"]),
        ("load", ["cpu80", "none", "stress10"]),
    ]
    assert "period=1ms" in searched(found["none-1-2"])
    assert "fail" in searched(found["none-1-2"])
    assert (
        filtered_by(found["none-1-2"])
        == '{"adapter": "posix", "period": "1ms", "load": "none", "repeat": "2"}'
    )


def test_joined_stretches_keep_extremes_and_counts():
    stretches = Stretches(0, 999, 10, 500, skips_miss=True)
    random = np.random.default_rng(1)
    values = random.integers(0, 1000, 1000)
    kept = random.random(1000) < 0.05
    stretches.see(Block(np.flatnonzero(kept), values[kept], np.ones(int(kept.sum()), np.int64)))
    joined = stretches.envelope().coarser(7)
    assert len(joined.n) == 7
    edges = [*joined.first_k.tolist(), 1000]
    for place, (first, last) in enumerate(pairwise(edges)):
        inside = values[first:last][kept[first:last]]
        assert joined.n[place] == len(inside)
        assert (joined.min_ns[place], joined.max_ns[place]) == (inside.min(), inside.max())
        assert joined.mean_ns[place] == pytest.approx(inside.mean())
        assert joined.late[place] == joined.missed[place] == np.count_nonzero(inside > 500)


BLIND = {
    "all": np.eye(3),
    "protan": [[0.152, 1.053, -0.205], [0.115, 0.786, 0.099], [-0.004, -0.048, 1.052]],
    "deutan": [[0.367, 0.861, -0.228], [0.280, 0.673, 0.047], [-0.012, 0.043, 0.969]],
    "tritan": [[1.256, -0.077, -0.179], [-0.078, 0.931, 0.148], [0.005, 0.691, 0.304]],
}
"""What readers without one kind of cone see, linear RGB (Machado and others, IEEE TVCG 15, 2009)."""


def lab(colour: str, sight: str) -> np.ndarray:
    """CIE L*a*b* (D65) of a colour as such a reader sees it."""
    srgb = np.array([int(colour[i : i + 2], 16) for i in (1, 3, 5)]) / 255
    linear = np.where(srgb <= 0.04045, srgb / 12.92, ((srgb + 0.055) / 1.055) ** 2.4)
    seen = np.clip(np.asarray(BLIND[sight]) @ linear, 0, 1)
    to_xyz = np.array([[0.4124, 0.3576, 0.1805], [0.2126, 0.7152, 0.0722], [0.0193, 0.1192, 0.9505]])
    xyz = to_xyz @ seen / [0.9505, 1, 1.089]
    x, y, z = np.where(xyz > 216 / 24389, np.cbrt(xyz), (841 / 108) * xyz + 4 / 29)
    return np.array([116 * y - 16, 500 * (x - y), 200 * (y - z)])


@pytest.mark.parametrize("sight", BLIND)
def test_lines_are_told_apart_by_every_reader(sight):
    """By a colour difference of 10 at least (2.3 is just noticeable), and in print by their dashes."""
    colours = [_colours()[name[6:-1]] for name in LINE_COLOURS]
    near = {
        (a, b): round(float(np.linalg.norm(lab(a, sight) - lab(b, sight))), 1)
        for a, b in combinations(colours, 2)
    }
    assert {pair: distance for pair, distance in near.items() if distance < 10} == {}
    assert len({tuple(dash) for dash in DASHES}) == len(LINE_COLOURS)
