"""What a reader of results sees first: no number that says nothing, no warning twice, nothing unnamed."""

from __future__ import annotations

from fractions import Fraction
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from report_page import page_of

from rtmeter.cli.cell_tables import _so_far, show_cells
from rtmeter.judge.answer import answer
from rtmeter.judge.entries import by_condition
from rtmeter.judge.published.beside import _published_line
from rtmeter.report.matrix import matrices
from rtmeter.results import store, words
from rtmeter.results.overview import cell_entries
from rtmeter.statistics.order import shown
from rtmeter.statistics.ranks import fewest, quantile_index, share_of
from stored import cell_json
from synthetic import Made, write_cell

STEAL = {"type": "steal", "message": "the host took 3 % of a CPU", "hint": "measure again"}
SHORT = {"type": "monitor_incomplete", "message": "rows are missing", "hint": "see to that"}


@pytest.mark.parametrize(
    ("percent", "n"), [("50", 2), ("90", 10), ("99", 100), ("99.9", 1_000), ("99.999", 100_000)]
)
def test_a_quantile_is_the_maximum_below_its_fewest_values_and_not_from_there(percent: str, n: int) -> None:
    share = share_of(percent)
    assert fewest(share) == n
    assert quantile_index(n - 1, share) == n - 2
    assert quantile_index(n, share) == n - 2


def test_shares_whose_rest_is_no_unit_fraction() -> None:
    for share in (Fraction(3, 4), Fraction(2, 3), Fraction(95, 100), Fraction(97, 100)):
        n = fewest(share)
        assert quantile_index(n, share) < n - 1
        assert quantile_index(n - 1, share) == n - 2


def test_statistics_are_shown_without_quantiles_of_too_few() -> None:
    values = {"n": 999, "min_ns": 1, "p50_ns": 2, "p99_ns": 3, "p99_9_ns": 4, "p99_999_ns": 4, "max_ns": 4}
    assert shown(values) == values | {"p99_9_ns": None, "p99_999_ns": None}
    assert shown(values | {"n": 1000}) == values | {"n": 1000, "p99_999_ns": None}
    assert values["p99_9_ns"] == 4  # what is stored stays exact


@pytest.mark.parametrize(("samples", "known"), [(8, False), (1000, True)])
def test_no_view_prints_a_quantile_of_too_few(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], samples: int, known: bool
) -> None:
    """The 95.31 us of the last release is the maximum, and p99.9 of eight releases."""
    delays = lambda k: (95_310 if k == 107 else 40_000,)  # noqa: E731
    folder = write_cell(tmp_path / "cell", Made(samples=samples, delays=delays))
    (cell,) = cell_entries(folder)
    assert cell.judged is not None and (cell.judged.p99_9_ns is not None) == known
    record = store.read_cell(folder)
    show_cells([(record, "cell")])
    out = capsys.readouterr().out
    assert out.count("95.3") == 1
    assert ("p99.9 40.00 us" in page_of(folder).text) == known
    assert cell_json(folder)["summary"]["quantities"]["latency"]["per_release"]["p99_9_ns"] is not None


def warned(folder: Path, samples: int = 10, **warnings: list[dict[str, Any]]) -> Path:
    for name, doubts in warnings.items():
        write_cell(folder / name, Made(id=name, samples=samples, changes={"warnings": doubts}))
    return folder


def test_a_warning_of_several_cells_is_shown_once_with_their_names(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = warned(tmp_path, a=[STEAL], b=[STEAL, SHORT], c=[])
    text = page_of(folder).text
    assert text.count("steal , a, b: the host took 3 % of a CPU: measure again") == 1
    assert text.count("steal") == 1
    assert text.count("monitor_incomplete") == 1
    records = [store.read_cell(cell) for cell in store.cell_folders(folder)]
    show_cells(zip(records, ["a", "b", "c"], strict=True))
    out = capsys.readouterr().out
    assert out.count("the host took 3 % of a CPU (measure again): a, b\n") == 1
    assert out.count("steal") == 1
    assert "b:\n  monitor_incomplete: rows are missing (see to that)\n" in out


@pytest.mark.parametrize(
    ("counts", "planned", "said"),
    [
        ({"released": 1_500, "served": 1_400, "skipped": 100}, 2_000, " after 1,500 of 2,000 releases"),
        ({"armed": 7, "fired": 5, "lost": 2}, 9, " after 7 of 9 releases"),
        ({"released": 7}, None, ""),
    ],
)
def test_how_far_an_interrupted_cell_came_is_told_by_all_its_releases(
    counts: dict[str, int], planned: int | None, said: str
) -> None:
    config = {} if planned is None else {"samples": planned}
    assert _so_far(SimpleNamespace(summary=SimpleNamespace(counts=counts), config=config)) == said  # type: ignore[arg-type]


def test_what_all_conditions_have_is_not_said_of_cells(tmp_path: Path) -> None:
    for name in ("a-r1", "a-r2", "b-r1", "b-r2"):
        axes = {"repeat": int(name[-1])}
        write_cell(tmp_path / name, Made(id=name, samples=10, axes=axes, changes={"warnings": [STEAL]}))
    found = answer(by_condition(cell_entries(tmp_path)))
    assert found.headline.startswith("All 2 conditions")
    assert "All 2 conditions: the host took 3 % of a CPU." in found.limits
    assert "steal , all 2 conditions: the host took" in page_of(tmp_path).text


def test_what_to_do_next_says_what_it_refers_to(tmp_path: Path) -> None:
    """Where nothing else is to be done, as all passed."""
    several = answer(cell_entries(warned(tmp_path, 2_000, a=[STEAL], b=[STEAL])))
    assert "All 2 cells: the host took 3 % of a CPU." in several.limits
    assert several.next == ["All 2 cells: the host took 3 % of a CPU: measure again."]
    one_of_two = answer(cell_entries(warned(tmp_path / "others", 2_000, c=[], d=[SHORT])))
    assert "d: rows are missing." in one_of_two.limits
    assert one_of_two.next == ["d: rows are missing: see to that."]
    assert answer(cell_entries(tmp_path / "a")).next == ["The host took 3 % of a CPU: measure again."]
    alone = answer(cell_entries(warned(tmp_path / "short", c=[STEAL])))
    assert alone.next == ["Measure 990 more releases (0.99 s): if all are in time, it passes."]


def test_a_matrix_sets_adapters_apart_that_the_campaign_does_not_list(tmp_path: Path) -> None:
    for adapter in ("posix", "ros2"):
        for load in ("idle", "cpu80"):
            made = Made(id=f"{adapter}-{load}", adapter=adapter, samples=10, axes={"load": load})
            write_cell(tmp_path / made.id, made)
    (found,) = matrices([(cell.id, cell) for cell in cell_entries(tmp_path)])
    assert {found.across, *found.down} == {"adapter", "load"}
    assert all(square is not None for _, row in found.rows for square in row)


def test_an_adapter_that_is_no_axis_of_its_cell_is_named_beside_others(tmp_path: Path) -> None:
    write_cell(tmp_path / "a", Made(id="a", samples=10, axes={"variant": "x"}))
    for adapter in ("rcl", "rclpy"):
        axes = {"variant": "x", "adapter": adapter}
        write_cell(tmp_path / adapter, Made(id=adapter, adapter=adapter, samples=10, axes=axes))
    assert "a 1,000 50.00 – 50.00 0 10 1 complete x posix" in page_of(tmp_path).text


def test_a_range_that_a_source_states_says_of_what() -> None:
    row = {"rmw": "rmw_fastrtps_cpp", "max_us": "807", "text_range_us": "150-500"}
    assert _published_line(row, ["rmw", "text_range_us"], ("max_us",)).who == (
        "rmw_fastrtps_cpp, text range (us) 150-500"
    )


@pytest.mark.parametrize(
    ("share", "said"), [(0.002, "0.002"), (1e-4, "0.0001"), (2e-5, "2 × 10⁻⁵"), (1e-6, "10⁻⁶"), (0.0, "0")]
)
def test_a_ratio_reads_as_on_the_command_line_where_that_has_no_exponent(share: float, said: str) -> None:
    assert words.ratio(share) == said
    assert "e" in f"{share:.3g}" or f"{share:.3g}" == said
