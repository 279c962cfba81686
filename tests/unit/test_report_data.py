"""The aggregates behind the plots, against plain counting over every release."""

from __future__ import annotations

from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rtmeter.errors import RtmeterError
from rtmeter.judge.verdict import judge
from rtmeter.model import Requirement
from rtmeter.plots.chart_distribution import _thinned
from rtmeter.plots.data import LARGEST, Detail, Series, gather
from rtmeter.samples.rows import Samples
from rtmeter.statistics import bins
from rtmeter.statistics.quantities import quantities
from synthetic import Made, columns_of, meta_of, rows_of, usual, write_samples

LATE_NS = 3_000_000


def stalling(k: int) -> tuple[float, float | None, float | None]:
    """Now and then later than a period, early, lost on the way there, or lost on the way back."""
    wake = 2_700_000 if k % 97 == 0 else -4_000 if k % 31 == 0 else 50_000 + 137 * (k % 61)
    there = None if k % 211 == 5 else 20_000 + k % 13
    back = None if k % 199 == 7 else 25_000 + 3_900_000 * (k % 89 == 3)
    return wake, there, back


def lost_shots(k: int) -> tuple[float | None]:
    return (None if k % 50 == 9 else (k * 7919) % 90_000 - 10_000,)


CASES = {
    "wakeup": Made(delays=stalling),
    "wakeup, skip": Made(delays=stalling, skip=True),
    "periodic": Made(measurement="timer", mode="periodic", delays=stalling, skip=True),
    "one shot": Made(measurement="timer", mode="one_shot", delays=lost_shots, samples=500),
    "round trip": Made(measurement="roundtrip", delays=stalling, skip=True, loss_timeout_ns=5_000_000),
    "cycle": Made(measurement="cycle", delays=stalling, skip=True, loss_timeout_ns=5_000_000),
    "like a real one": Made(delays=usual(1, 60), samples=20_000, warm_up=0),
    "far from the rest": Made(delays=lambda k: (5e4 + 100 * (k % 61) + {500: -9e5, 900: 9e5}.get(k, 0),)),
    "one sample": Made(samples=1),
    "ever the same": Made(samples=500),
    "two values": Made(delays=lambda k: (40_000 + 900_000 * (k % 3 == 0),)),
}


def releases_of(made: Made, quantity: str) -> list[tuple[int, str, float]]:
    """(k, outcome, value) of every measured release by the definitions of measurements.md."""
    rows = [row for row in rows_of(made) if row["k"] >= made.warm_up]
    end, start = {
        "latency": ("wake_ns" if made.measurement == "wakeup" else "callback_ns", "release_ns"),
        "measured": ("callback_ns", "armed_before_ns"),
        "response": ("received_ns", "release_ns"),
        "round_trip": ("received_ns", "sent_ns"),
        "completion": ("response_received_ns", "release_ns"),
        "request": ("request_received_ns", "request_sent_ns"),
    }[quantity]
    less = made.period_ns if quantity == "measured" else 0
    found = []
    for place, row in enumerate(rows):
        outcome = ("in_flight", "served", "skipped", "lost")[row["status"]]
        value = float("inf")
        if outcome == "served":
            value = row[end] - row[start] - less
        elif outcome == "skipped" and made.measurement == "roundtrip":
            ping = next((later for later in rows[place:] if later["status"] != 2), {})
            value = ping.get("received_ns", float("inf")) - row["release_ns"]
        elif outcome == "skipped":
            value = row["free_ns"] - row["release_ns"]
        found.append((row["k"], outcome, value))
    return found


@pytest.fixture
def gathered(tmp_path: Path):
    def gather_one(made: Made, quantity: str, stretches: int = 70) -> Series:
        path = tmp_path / "samples.parquet"
        write_samples(path, columns_of(made, rows_of(made)), {})
        wanted = next(q for q in quantities(meta_of(made)) if q.name == quantity)
        series = gather(Samples(path), meta_of(made), wanted, LATE_NS, Detail(stretches))
        assert series is not None
        return series

    return gather_one


JUDGED = {"wakeup": "latency", "periodic": "latency", "one_shot": "measured"}
JUDGED |= {"roundtrip": "response", "cycle": "completion"}
EVERY_CASE = pytest.mark.parametrize("name", CASES)


def judged(name: str) -> tuple[Made, str]:
    return CASES[name], JUDGED[CASES[name].kind]


@EVERY_CASE
def test_envelope_has_the_extremes_and_marks_of_every_stretch(gathered, name):
    made, quantity = judged(name)
    envelope = gathered(made, quantity).envelope
    releases = releases_of(made, quantity)
    ends = [*envelope.first_k[1:], made.warm_up + made.samples]
    assert len(envelope.first_k) <= 70
    assert envelope.first_k[0] == made.warm_up
    for i, (first, end) in enumerate(zip(envelope.first_k, ends, strict=True)):
        inside = [(outcome, value) for k, outcome, value in releases if first <= k < end]
        values = [value for _, value in inside if value != float("inf")]
        assert envelope.n[i] == len(values)
        if values:
            assert (envelope.min_ns[i], envelope.max_ns[i]) == (min(values), max(values))
            assert envelope.mean_ns[i] == pytest.approx(sum(values) / len(values))
        outcomes = [outcome for outcome, _ in inside]
        skips_miss = made.measurement != "roundtrip"
        never = sum(value == float("inf") for outcome, value in inside if outcome != "in_flight")
        assert envelope.lost[i] == (outcomes.count("lost") if skips_miss else never)
        assert envelope.skipped[i] == (outcomes.count("skipped") if skips_miss else 0)
        judged_late = [value for outcome, value in inside if not (skips_miss and outcome == "skipped")]
        assert envelope.late[i] == sum(LATE_NS < value < float("inf") for value in judged_late)
        assert envelope.missed[i] == envelope.late[i] + envelope.skipped[i] + envelope.lost[i]


@EVERY_CASE
def test_the_ticks_of_an_envelope_are_the_misses_of_the_verdict(gathered, name, tmp_path):
    """Of a round trip skipped ones are late, lost or in time with the ping that serves them."""
    made, quantity = judged(name)
    envelope = gathered(made, quantity).envelope
    columns, meta = columns_of(made, rows_of(made)), meta_of(made)
    found = judge(meta, lambda: [columns], Requirement(LATE_NS, 0.1))
    ticks = [int(counts.sum()) for counts in (envelope.late, envelope.skipped, envelope.lost)]
    assert ticks == [found.late, found.skipped, found.lost] and sum(ticks) == envelope.missed.sum()


def view_values(releases, view: str) -> list[float]:
    return [value for _, outcome, value in releases if view == "per_release" or outcome == "served"]


@EVERY_CASE
def test_every_view_has_the_releases_of_its_definition(gathered, name):
    made, quantity = judged(name)
    series, releases = gathered(made, quantity), releases_of(made, quantity)
    assert list(series.views) == ["per_release", "as_served"]
    for view_name, view in series.views.items():
        values = view_values(releases, view_name)
        assert view.n == len(values)
        assert view.lost == values.count(float("inf"))
        assert view.counts.sum() == view.steps.sum() == view.n - view.lost
        ks = [k for k, outcome, _ in releases if view_name == "per_release" or outcome == "served"]
        there = [(-value, k) for value, k in zip(values, ks, strict=True) if value != float("inf")]
        largest = sorted(there)[:LARGEST]
        assert list(zip(-view.largest_ns, view.largest_k, strict=True)) == largest


@EVERY_CASE
def test_steps_count_each_value_in_its_bin(gathered, name):
    made, quantity = judged(name)
    series, releases = gathered(made, quantity), releases_of(made, quantity)
    grid = series.grid
    edges = [grid.first_ns + i * grid.width_ns for i in range(grid.size + 1)]
    for view_name, view in series.views.items():
        values = np.array([v for v in view_values(releases, view_name) if v != float("inf")])
        assert view.steps[0] == np.sum(values < edges[0])
        assert view.steps[-1] == np.sum(values >= edges[-1])
        inside = [np.sum((low <= values) & (values < high)) for low, high in pairwise(edges)]
        assert list(view.steps[1:-1]) == inside


@EVERY_CASE
def test_ccdf_is_the_share_at_or_above_each_point(gathered, name):
    made, quantity = judged(name)
    series, releases = gathered(made, quantity), releases_of(made, quantity)
    for view_name, view in series.views.items():
        values = np.array(view_values(releases, view_name))
        x, share = view.ccdf()
        assert np.all(np.diff(x) > 0)
        assert list(share) == [np.mean(values >= point) for point in x]
        assert x[-1] == values[values < np.inf].max()


@pytest.mark.parametrize("points_a_decade", [12, 60])
def test_what_a_ccdf_leaves_out_is_drawn_nowhere_too_low(points_a_decade):
    """Steps go back from each point: up to it they are as high as it; at the deadline they are exact."""
    values = np.unique(np.random.default_rng(5).exponential(1e5, 3_000).astype(np.int64))
    share = 1 - np.arange(len(values)) / len(values)
    deadline = int(values[-40]) + 1
    x, shares, seen = _thinned(values, share, points_a_decade, deadline)
    drawn = shares[np.searchsorted(x, values)]
    assert np.all(drawn >= share) and np.all(drawn <= share * 10 ** (1 / points_a_decade))
    assert drawn[-39] == share[-39] == shares[np.searchsorted(x, deadline)]
    assert len(x) < 300 and np.all(np.diff(shares) <= 0)
    assert list(shares[seen]) == list(share[np.searchsorted(values, x[seen])])


def test_a_quantity_as_served_only_has_one_view(gathered):
    series = gathered(CASES["round trip"], "round_trip")
    assert list(series.views) == ["as_served"]
    served = [v for _, outcome, v in releases_of(CASES["round trip"], "round_trip") if outcome == "served"]
    assert series.views["as_served"].n == len(served)
    assert series.views["as_served"].largest_ns[0] == max(served)


def test_values_far_from_the_rest_are_counted_beside_the_bins(gathered):
    view = gathered(CASES["far from the rest"], "latency").views["per_release"]
    assert (view.steps[0], view.steps[-1]) == (1, 1)


def test_everything_lost_has_no_values_but_counts(gathered):
    made = Made(measurement="roundtrip", delays=lambda k: (0, None, None), skip=True, samples=40)
    series = gathered(made, "response")
    view = series.views["per_release"]
    assert (view.n, view.lost, series.views["as_served"].n) == (40, 40, 0)
    assert len(view.ccdf()[0]) == 0
    assert series.envelope.lost.sum() + series.envelope.skipped.sum() == 40


def test_rows_that_a_damaged_log_lost_leave_a_gap(tmp_path):
    made = Made(warm_up=0)
    columns, meta = columns_of(made, rows_of(made)), meta_of(made)
    kept = (columns["k"] < 500) | (columns["k"] >= 900)
    write_samples(tmp_path / "s.parquet", {n: c[kept] for n, c in columns.items()}, {})
    series = gather(Samples(tmp_path / "s.parquet"), meta, quantities(meta)[0], None, Detail(stretches=20))
    assert list(series.envelope.n) == [100] * 5 + [0] * 4 + [100] * 11


def test_no_rows_and_no_values_give_no_series(tmp_path):
    made = Made(measurement="timer", mode="one_shot", samples=30)
    columns = columns_of(made, rows_of(made))
    columns["reported_actual_ns"][:] = -(2**63)
    meta = meta_of(made)
    reported = next(q for q in quantities(meta) if q.name == "reported")
    write_samples(tmp_path / "s.parquet", columns, {})
    assert gather(Samples(tmp_path / "s.parquet"), meta, reported, None, Detail()) is None
    write_samples(tmp_path / "e.parquet", {n: c[:0] for n, c in columns.items()}, {})
    assert gather(Samples(tmp_path / "e.parquet"), meta, quantities(meta)[0], None, Detail()) is None


def test_a_file_at_odds_with_its_warm_up_still_counts_every_release(gathered, tmp_path):
    made = Made(warm_up=0)
    write_samples(tmp_path / "s.parquet", columns_of(made, rows_of(made)), {})
    meta = meta_of(Made(warm_up=300))
    series = gather(Samples(tmp_path / "s.parquet"), meta, quantities(meta)[0], None, Detail(stretches=20))
    assert series.envelope.n.sum() == series.views["per_release"].n == made.samples


def test_what_is_no_samples_file_is_named(tmp_path):
    (tmp_path / "s.parquet").write_bytes(b"PAR1 not really")
    with pytest.raises(RtmeterError, match=r"s\.parquet"):
        Samples(tmp_path / "s.parquet")


def test_a_column_that_is_missing_is_named(tmp_path):
    columns = columns_of(Made(), rows_of(Made()))
    del columns["wake_ns"]
    write_samples(tmp_path / "s.parquet", columns, {})
    with pytest.raises(RtmeterError, match="wake_ns"):
        gather(
            Samples(tmp_path / "s.parquet"), meta_of(Made()), quantities(meta_of(Made()))[0], None, Detail()
        )


@given(st.lists(st.integers(-(2**53), 2**53), min_size=1))
@settings(max_examples=300, deadline=None)
def test_bins_are_ordered_narrow_and_begin_at_their_first_value(values):
    array = np.array(sorted(values), dtype=np.int64)
    numbers = bins.bin_numbers(array)
    assert np.all(np.diff(numbers) >= 0)
    first = bins.FIRST_NS[numbers]
    assert np.all(first <= array)
    assert np.all(array - first <= np.abs(array) / 63)
    assert np.all((array[:-1] == array[1:]) | (numbers[:-1] < numbers[1:]) | (np.abs(array[1:]) >= 64))
    assert np.array_equal(bins.bin_numbers(first), numbers)


def test_bins_hold_one_value_each_up_to_64_ns():
    small = np.arange(-64, 65)
    assert list(bins.FIRST_NS[bins.bin_numbers(small)]) == list(small)


@given(st.integers(-(10**12), 10**12), st.integers(0, 10**12), st.integers(3, 400))
def test_grids_cover_their_range_with_few_round_bins(lowest, span, most):
    grid = bins.grid_over(lowest, lowest + span, most)
    assert grid.size <= most
    assert grid.first_ns % grid.width_ns == 0
    assert str(grid.width_ns).rstrip("0") in ("1", "2", "5")
    counts = grid.count(np.array([lowest, lowest + span]))
    assert counts[0] == counts[-1] == 0
