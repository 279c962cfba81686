"""What plots say of releases that were lost, or skipped and served in time, and of values not known."""

from __future__ import annotations

import json
import math
from pathlib import Path

import numpy as np
import pytest

from rtmeter.cli import invoke
from rtmeter.plots.chart_compare import _SAYS, shifts
from rtmeter.plots.picture import grid
from rtmeter.plots.plots import PlotOptions, draw
from rtmeter.results.overview import cell_entries
from rtmeter.statistics.compare import Shift
from rtmeter.statistics.counted_data import Histogram
from stored import write_counted
from synthetic import Made, write_cell
from vega_lite import check_vega_lite

MS = 1_000_000


def test_maxima_tell_lost_ones_and_a_skipped_ping_that_was_served_in_time_is_no_miss(tmp_path: Path) -> None:
    def delays(k: int) -> list[float | None]:
        return [20_000, None if k in (50, 90) else 4 * MS if k == 10 else 20_000, 20_000]

    made = Made(measurement="roundtrip", skip=True, samples=100, warm_up=0, delays=delays)
    made.deadline_ns, made.loss_timeout_ns = 8 * MS, 15 * MS
    write_cell(tmp_path / "cell", made)
    spec = draw("maxima", cell_entries(tmp_path / "cell"), PlotOptions(interval_ns=10 * MS))
    check_vega_lite(spec)
    (intervals,) = (rows for name, rows in spec["datasets"].items() if name.endswith("intervals"))
    assert [row["missed"] == "with a miss" for row in intervals] == [
        *(False, False, False, False, False),
        *(True, False, False, False, True),
    ]
    # 51 to 65 were skipped and served by the ping of 66, 58 to 65 of them within 8 ms.
    assert [row["lost"] for row in intervals] == [0, 0, 0, 0, 0, 1, 0, 0, 0, 10]
    assert intervals[-1]["max"] is None and intervals[1]["max"] > 4_000
    assert "lost 11" in json.dumps(spec)
    assert invoke(["report", str(tmp_path / "cell"), "-o", str(tmp_path / "page.html")]) == 0
    said = (
        "Largest values: response (release to reply), per release; 11 lost, later than all of them</caption>"
    )
    assert said in (tmp_path / "page.html").read_text()


@pytest.mark.parametrize("kind", ["ccdf", "histogram"])
def test_skipped_releases_that_are_misses_within_the_deadline_are_counted_in_the_corner(
    kind: str, tmp_path: Path
) -> None:
    """The thread is away from 10 to 14.9 ms: 11 to 14 are passed over, 11 by more than the deadline of 3 ms.
    Of a round trip a skipped release is served by the next ping."""
    late = 4.9 * MS
    wakeup = Made(id="wakeup", delays=lambda k: [late if k == 10 else 1_000])
    trip = Made(id="trip", measurement="roundtrip", delays=lambda k: [0, late if k == 10 else 1_000, 1_000])
    for made in (wakeup, trip):
        made.skip, made.samples, made.warm_up, made.deadline_ns = True, 100, 0, 3 * MS
        write_cell(tmp_path / made.id, made)
    told = json.dumps(draw(kind, cell_entries(tmp_path), PlotOptions()))
    assert told.count("skipped within") == 1
    assert "wakeup, wake-up latency: 3 skipped within the deadline: misses, too" in told
    alone = json.dumps(draw(kind, cell_entries(tmp_path / "wakeup"), PlotOptions()))
    assert '"3 skipped within' in alone


def test_of_a_histogram_no_mean_is_made_up_and_no_maximum_that_is_not_known(tmp_path: Path) -> None:
    edges = np.array([50_000, 100_000]), 50_000, np.array([7, 3])
    for name, over in (("known", {}), ("beyond", {"over": 2, "over_from_ns": 200_000})):
        write_counted(tmp_path / name, Histogram(*edges, **over), id=name)
    for name, said in (("known", "min 50.00 · max 100.0"), ("beyond", "min 50.00 · max not known")):
        text = json.dumps(draw("histogram", cell_entries(tmp_path / name), PlotOptions()), ensure_ascii=False)
        assert said in text and "avg" not in text
        assert ("2 beyond →" in text) == (name == "beyond")
    text = json.dumps(draw("ccdf", cell_entries(tmp_path), PlotOptions()))
    assert "known   Max: 100.0 us" in text and "beyond   Max: not known" in text


def test_a_shift_of_what_is_lost_on_both_sides_is_not_drawn() -> None:
    lost = Shift("p99.9", math.inf, math.inf, 0.0, 0.0, 0.0)
    chart = shifts([Shift("p50", 1_000.0, 2_000.0, 1_000.0, 500.0, math.inf), lost], 300)
    spec = grid([[("", chart)]], "lost", [], 900)
    check_vega_lite(spec)
    (rows,) = spec["datasets"].values()
    assert [(row["quantile"], row["low"], row["high"]) for row in rows] == [("p50", 0.5, None)]
    json.dumps(spec, allow_nan=False)


def test_a_shift_has_as_many_digits_as_say_something() -> None:
    found = [Shift("p50", 1_000.0, 1_000.0 + by, by, by - 9, by + 9) for by in (-4.0, 0.0, 40.0, 12_345.0)]
    spec = grid([[("", shifts(found, 300))]], "shift", [], 900)
    (rows,) = spec["datasets"].values()
    assert [row["text"] for row in rows] == ["-0.004", "0", "+0.040", "+12.35"]


def test_what_a_shift_says_has_a_colour_of_its_own() -> None:
    assert len({colour for _, colour in _SAYS.values()}) == len(_SAYS)


def test_a_waterfall_of_what_is_lost_is_refused(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    made = Made(samples=1_500, warm_up=0, measurement="roundtrip", deadline_ns=None, loss_timeout_ns=MS)
    made.delays = lambda k: [20_000, None if k % 30 == 7 else 20_000 + k, 20_000]
    cells = [str(write_cell(tmp_path / name, made)) for name in ("floor", "layer")]
    out = ["--kind", "waterfall", "-o", str(tmp_path / "a.svg")]
    assert invoke(["plot", *cells, *out, "--at", "p99"]) == 1
    assert "p99: is not known of floor or layer" in capsys.readouterr().err.replace("'", "").replace(" =", "")
