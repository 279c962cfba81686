"""The bound that a report states is the one the verdict rests on."""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np

from rtmeter import report
from rtmeter.judge.answer import answer
from rtmeter.model import Requirement
from rtmeter.results.overview import cell_entries
from rtmeter.results.words import share
from rtmeter.statistics.bounds import miss_ratio_bounds, releases_needed
from wakeups import MS, draw, write_wakeups

BOUND = "Miss ratio, 95 % bound"


def clustered() -> np.ndarray:
    values = draw(3, 60_000, 20_000)
    for at in np.random.default_rng(3).choice(59_000, 40, replace=False):
        values[at : at + 3] = MS
    return values


def test_a_bound_that_dependence_widens_is_stated_so(tmp_path: Path) -> None:
    write_wakeups(tmp_path / "cell", clustered(), requirement=Requirement(2 * MS, 1e-2))
    (cell,) = cell_entries(tmp_path)
    assert cell.record is not None and cell.record.verdict is not None
    effect = cell.record.verdict.design_effect
    assert effect > 1.5
    assert cell.record.verdict.bound == miss_ratio_bounds(0, 60_000, 0.95, effect)[1]
    rarer = 10.0 ** -len(str(int(1 / cell.record.verdict.bound)))
    needed = releases_needed(0, rarer, 0.95, effect)
    assert f"measure {needed:,} releases without a miss" in answer([cell]).next[0]
    stated = rf"{BOUND}</dt><dd><small>≤</small> {re.escape(share(cell.record.verdict.bound))}</dd>"
    assert re.search(stated, report.write(tmp_path, tmp_path / "r.html").read_text())


def test_a_bound_that_is_refused_is_not_stated(tmp_path: Path) -> None:
    values = draw(2)
    values[10_000:] *= 3
    write_wakeups(tmp_path / "cell", values, requirement=Requirement(10 * MS))
    (cell,) = cell_entries(tmp_path)
    assert cell.record is not None and cell.record.verdict is not None and cell.record.verdict.bound is None
    assert not any("without a miss" in step for step in answer([cell]).next)
    assert BOUND not in report.write(tmp_path, tmp_path / "r.html").read_text()
