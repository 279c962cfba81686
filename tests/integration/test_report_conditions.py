"""Conditions of several repeats in a report, in a real browser."""

from __future__ import annotations

import re
from itertools import product
from pathlib import Path

import pytest
from playwright.sync_api import expect
from test_report_browser import DESKTOP, browser, opened, visible

from rtmeter import report
from rtmeter.judge.run_factors import effects_of_runs
from rtmeter.results import store
from synthetic import Made, write_cell
from traced_cells import write_traced

__all__ = ["browser", "opened"]


@pytest.fixture(scope="module")
def of_repeats(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """12 conditions of 3 repeats: two named cells, two loads, three periods; three conditions fail."""
    folder = tmp_path_factory.mktemp("repeats") / "loads"
    for block, load, period, repeat in product(("normal", "fifo"), ("none", "cpu80"), (1, 2, 4), (1, 2, 3)):
        late = (block, load) == ("normal", "cpu80")
        factors = {"block": block, "load": load, "period": f"{period}ms"}
        made = Made(
            id=f"{block}-{load}-{period}ms-r{repeat}",
            samples=1_200,
            warm_up=0,
            period_ns=period * 1_000_000,
            miss_ratio=1e-3,
            axes={"load": load, "period": f"{period}ms", "repeat": repeat},
            delays=lambda k, late=late: (4e4 + k % 90 * 100 + 3e6 * (late and k % 40 == 7),),
            changes={"factors": factors},
        )
        write_cell(folder / made.id, made)
    effects = list(effects_of_runs([folder], store.chunks))
    return report.write(folder, folder.parent / "repeats.html", effects=effects)


def test_of_repeats_the_first_screen_holds_the_answer_its_limits_and_what_to_do(opened, of_repeats):
    page = opened(of_repeats)
    assert (
        page.locator("h1").inner_text() == "Of 12 conditions 3 missed the requirement, 9 need more evidence."
    )
    for part in (".answer .badge", "h1", ".worst", ".answer .points li", ".matrix table", ".three > div"):
        for found in page.locator(part).all():
            box = found.bounding_box()
            assert box is not None and box["y"] + box["height"] <= DESKTOP["height"], part
    parts = page.locator(".three > div").all_inner_texts()
    assert [text.split("\n")[0] for text in parts] == ["What was asked", "What limits it", "What to do next"]
    (block, *_) = page.locator(".answer .points li").all_inner_texts()
    assert re.match(r"block normal against fifo: worse, 2\.5 % missed, where it was 0 %", block)
    assert "--explain" in parts[2] and all(len(text.split("\n")) > 1 for text in parts)
    rows = page.locator(".matrix tbody tr").all_inner_texts()
    assert [row.split()[:2] for row in rows] == [
        [block, load] for block in ("fifo", "normal") for load in ("cpu80", "none")
    ]
    failed = page.locator(".matrix .square.fail").all_inner_texts()
    assert [text.split("\n")[-1].strip() for text in failed] == ["7.5 %", "5 %", "2.5 %"]


def test_of_one_cell_with_causes_the_first_screen_says_which(opened, tmp_path):
    page = opened(report.write(write_traced(tmp_path / "cell", "driver"), tmp_path / "cell.html"))
    for part in (".answer .badge", "h1", ".answer .points", ".three > div"):
        for found in page.locator(part).all():
            box = found.bounding_box()
            assert box is not None and box["y"] + box["height"] <= DESKTOP["height"], part
    assert page.locator("h1").inner_text() == "8 of 40 releases missed the deadline of 100 us."
    assert "waited for the CPU: driver ran" in page.locator(".three > div").nth(2).inner_text()


def test_each_repeat_is_one_click_below_its_condition(opened, of_repeats):
    page = opened(of_repeats)
    assert page.locator(".condition").count() == 12
    first = page.locator(".condition").first
    assert first.locator("> .wide tbody th").count() == 3 and visible(page, ".repeat .cell") == 0
    first.locator("> .wide tbody th a").first.click()
    expect(first.locator(".repeat .cell").first).to_be_visible()
