"""docs/why-it-grows.md: each cause of a growing delay, made by itself, is the one that rtmeter names."""

from __future__ import annotations

import json
import random
import re
from itertools import accumulate
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from null_runs import MS, run_probe
from pages import ROOT, run_page
from probe_runs import refusal

PAGE = ROOT / "docs" / "why-it-grows.md"
EXPECTED: dict[str, tuple[str, list[str]]] = {
    "bounded": ("bounded", []),
    "skips": ("skipping", []),
    "executed-cycles": ("skipping", ["executed_cycles"]),
    "two-clocks": ("drifting", ["clock_rate"]),
    "relative": ("drifting", ["relative_rearming"]),
    "long-work": ("overloaded", ["work_longer_than_period"]),
}


@pytest.fixture(scope="module")
def page(tmp_path_factory: pytest.TempPathFactory) -> tuple[str, dict[str, dict[str, Any]]]:
    """What the page's commands print, and the records of its cells."""
    folder = tmp_path_factory.mktemp("grows")
    printed = run_page(PAGE, folder, cwd=folder)
    found = {p.parent.name: json.loads(p.read_text()) for p in folder.glob("results/*/*/*/*/cell.json")}
    return printed, found


def test_every_cause_is_named(page: tuple[str, dict[str, dict[str, Any]]]) -> None:
    support = {name: cell["verdict"]["support"] for name, cell in page[1].items()}
    assert {name: (s["growth"], s["causes"]) for name, s in support.items()} == EXPECTED


def test_skips_are_a_series_of_their_own(page: tuple[str, dict[str, dict[str, Any]]]) -> None:
    """The same stalls: as skips, or as a delay that grows by a period for each of them."""
    counts = {name: page[1][name]["summary"]["counts"] for name in ("skips", "executed-cycles")}
    assert counts["skips"]["skipped"] == 110
    assert counts["executed-cycles"]["skipped"] == 0
    grown = page[1]["executed-cycles"]["verdict"]["support"]["accumulated_ns"]
    assert grown == pytest.approx(110 * MS, rel=0.05)


def test_the_page_shows_what_is_printed(page: tuple[str, dict[str, dict[str, Any]]]) -> None:
    shown = re.findall(
        r"^\| ([a-z-]+) \| ((?:bounded|skipping|drifting|overloaded), .*) \|$", PAGE.read_text(), re.M
    )
    assert [name for name, _ in shown] == list(EXPECTED)
    for _, delay in shown:
        assert f"  delay            {delay}\n" in page[0]


def delays_of(tmp_path: Path, options: dict[str, str], script: list[int]) -> list[int]:
    """callback - release of each tick of a timer that reports nothing."""
    config = {"measurement": "timer", "mode": "periodic", "samples": len(script), "period_ns": MS}
    config |= {"warm_up": 0, "options": {"report": "none"} | options}
    reader = run_probe(tmp_path, config, [{"fire_delay_ns": delay} for delay in script])
    columns = next(reader.frames())[1]
    return np.asarray(columns["callback_ns"] - columns["release_ns"]).tolist()


def test_a_relative_timer_keeps_every_lateness(tmp_path: Path) -> None:
    script = [0, *random.Random(1).choices(range(300_000), k=2_000)]
    assert delays_of(tmp_path, {"rearm": "relative"}, script) == list(accumulate(script))


@pytest.mark.parametrize("ppm", [50, -3, 1])
def test_a_timer_of_another_clock_runs_at_its_rate(tmp_path: Path, ppm: int) -> None:
    script = [0, *random.Random(2).choices(range(300_000), k=2_000)]
    expected = [delay + k * ppm for k, delay in enumerate(script)]  # a millionth of a millisecond is 1 ns
    assert delays_of(tmp_path, {"clock_rate": str(ppm)}, script) == expected


@pytest.mark.parametrize(
    ("option", "value"),
    [("clock_rate", "fast"), ("clock_rate", "600000"), ("clock_rate", ""), ("rearm", "never")],
)
def test_what_cannot_be_is_refused_by_name(tmp_path: Path, option: str, value: str) -> None:
    timer = {"adapter": "null", "measurement": "timer", "mode": "periodic", "options": {option: value}}
    error = refusal(tmp_path, timer)
    assert (error["field"], error["value"]) == (f"option {option}", value)
    assert error["remedy"]


def test_a_timer_that_is_not_periodic_has_no_such_options(tmp_path: Path) -> None:
    shot = {"adapter": "null", "measurement": "timer", "mode": "one_shot", "timeout_ns": MS}
    assert refusal(tmp_path, shot | {"options": {"rearm": "relative"}})["field"] == "option rearm"
