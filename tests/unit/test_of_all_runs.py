"""What several runs of a condition say together, without a look at their samples, and where it is shown."""

from __future__ import annotations

import html
import itertools
import json
import math
import re
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from rtmeter import cli
from rtmeter.model import Requirement
from rtmeter.plots.plots import PlotOptions, draw
from rtmeter.results import words
from rtmeter.results.overview import cell_entries
from rtmeter.results.record import Statistics
from rtmeter.results.record.summary import of_all_runs
from rtmeter.statistics.order import QUANTILES, describe
from rtmeter.statistics.ranks import fewest
from rtmeter.statistics.views import LATER
from stored import write_run
from wakeups import MS, write_wakeups


def described(values: list[int]) -> Statistics:
    return Statistics.model_validate(describe(np.array(values, dtype=np.int64), 0))


def lateness(runs: list[Statistics], name: str) -> list[float]:
    """A quantile of each, infinite where lost."""
    found = [getattr(run, name) for run in runs]
    return [math.inf if value == "lost" else value for value in found if value is not None]


VALUES = st.one_of(st.integers(0, 50), st.just(int(LATER)))


@given(st.lists(st.lists(VALUES, min_size=1, max_size=240), min_size=2, max_size=4))
def test_a_worst_quantile_is_that_of_a_run_and_never_below_that_of_all_releases(
    values: list[list[int]],
) -> None:
    runs = [described(run) for run in values]
    found, exact = of_all_runs(runs), described([*itertools.chain(*values)])
    assert found is not None
    assert (found.n, found.min_ns, found.max_ns) == (exact.n, exact.min_ns, exact.max_ns)
    assert found.mean_ns == (None if exact.mean_ns is None else pytest.approx(exact.mean_ns))
    for name, share in QUANTILES:
        if max(map(len, values)) < fewest(share):
            assert getattr(found, name) is None, "no run is long enough for it"
        else:
            (worst,), (all_together,) = lateness([found], name), lateness([exact], name)
            assert worst == max(lateness(runs, name)) >= all_together


def test_a_run_that_measured_nothing_takes_nothing_away() -> None:
    one = described([1, 2, 3])
    assert of_all_runs([]) is None
    assert of_all_runs([described([]), one, described([])]) == one


@pytest.fixture
def run(tmp_path: Path) -> Path:
    """Three repeats: the first has the largest maximum, the second the largest median and p99.9; and a cell
    without any."""
    run = tmp_path / "results" / "robot" / "c" / "20261121T050000Z"
    about = {"campaign": "c", "cells": ["loop-r1", "loop-r2", "loop-r3", "once"]}
    write_run(run, about, None)
    for repeat, (usual, rare, last) in enumerate(((10, 20, 990), (30, 700, 800), (20, 40, 60)), 1):
        us = np.full(2_000, usual)
        us[-3:] = rare, rare, last
        asked = Requirement(900_000, 1e-2)
        write_wakeups(run / f"loop-r{repeat}", us * 1_000, repeat=repeat, requirement=asked)
    write_wakeups(run / "once", np.full(2_000, 5_000), requirement=asked, period_ns=2 * MS)
    return run


def text(page: Path) -> str:
    content = re.sub(r"<(script|style).*?</\1>", " ", page.read_text(), flags=re.DOTALL)
    return " ".join(html.unescape(re.sub(r"<[^>]+>", " ", content)).split())


def test_summary_report_site_markdown_and_plot_say_the_same_of_a_condition(
    run: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Counts and mean of all 6,000 releases, the maximum of one run and p99.9 of another."""
    assert cli.invoke(["summary", str(run)]) == 0
    said = capsys.readouterr().out
    (row,) = (line.split() for line in said.splitlines() if "6,000" in line)
    assert " ".join(row[:12]) == "loop latency 3 6,000 10.0 20.5 30.0 30.0 700.0 - 990.0 1"
    assert words.OF_ALL_RUNS in said
    out = tmp_path / "out"
    for line in (f"report {run} -o {out}.html", f"export {run} --format markdown -o {out}.md"):
        assert cli.invoke(line.split()) == 0
    assert cli.invoke(["site", str(tmp_path / "results"), "-o", str(out)]) == 0
    report, site = text(tmp_path / "out.html"), text(out / "index.html")
    assert "990.0 700.0 20.53 1 6,000 3" in report and words.OF_ALL_RUNS in report
    assert "Worst p99.9 us" in report and "Worst p99.9 us" in site
    assert "990.0 700.0 1 6,000 3 1 –" in site, "runs of its campaign's last run, and how often that was"
    assert "Latest results of 2 conditions" in site and words.OF_ALL_RUNS in site
    cell = text(next((out / "cells").glob("*loop.html")))
    assert "worst p99.9 us" in cell and "30.00 700.0 990.0 1 6,000 3" in cell
    assert "; measured once, the last time 2026" in cell
    markdown = (tmp_path / "out.md").read_text()
    assert "worst p99.9, us" in markdown and "| 700.0 | 990.0 |" in markdown and words.OF_ALL_RUNS in markdown
    spec = draw("against", cell_entries(run), PlotOptions(over="rate"))
    (points,) = (rows for key, rows in spec["datasets"].items() if key.endswith("-points"))
    assert {one["line"]: one["us"] for one in points} == {"p50": 30, "p99": 30, "p99.9": 700, "max": 990}
    assert words.OF_ALL_RUNS in json.dumps(spec)
