"""The site in a real browser: nothing is complained of, asked of a network, or out of reach on a phone."""

from __future__ import annotations

from pathlib import Path
from urllib.parse import unquote

import pytest
from axe_playwright_python.sync_playwright import Axe
from playwright.sync_api import expect
from test_report_browser import HOSTILE, PHONE, Open, browser, opened  # noqa: F401 (fixtures)

from rtmeter.report import site
from stored import write_run
from synthetic import Made, usual, write_cell


@pytest.fixture(scope="module")
def pages(tmp_path_factory: pytest.TempPathFactory) -> Path:
    results = tmp_path_factory.mktemp("site") / "results"
    for number in range(1, 25):
        run = results / "robot" / "day" / f"202611{number:02}T090000Z"
        started = f"2026-11-{number:02}T09:00:00Z"
        about = {"campaign": "day", "started": started, "scale": 1, "host": None, "cells": ["a", "b"]}
        write_run(run, about, None)
        for name, late in {"a": 60 if number < 12 else 200, HOSTILE: 80}.items():
            delays = usual(number, late)
            made = Made(id=name, samples=60, delays=delays, changes={"started": started})
            write_cell(run / ("a" if name == "a" else "b"), made)
    site.write(results, results.parent / "site", None)
    return results.parent / "site"


@pytest.mark.parametrize("viewport", [{"width": 1280, "height": 800}, PHONE])
@pytest.mark.parametrize("theme", ["light", "dark"])
def test_every_page_is_whole(opened, pages, viewport, theme):  # noqa: F811
    for page_file in (
        pages / "index.html",
        pages / "cells" / "robot~day~a.html",
        pages / "side-by-side.html",
    ):
        page = opened(page_file, viewport, theme)
        assert page.evaluate("window.hacked") is None
        assert page.evaluate("document.documentElement.scrollWidth") <= viewport["width"]
        serious = [
            v for v in Axe().run(page).response["violations"] if v["impact"] in ("serious", "critical")
        ]
        assert [(v["id"], [node["target"] for node in v["nodes"]]) for v in serious] == []


def test_rows_are_found_and_sorted(opened, pages):  # noqa: F811
    page = opened(pages / "index.html")
    rows = page.locator("tbody tr:visible")
    assert rows.count() == 2
    page.get_by_role("searchbox").fill("script")
    assert rows.count() == 1
    assert page.locator("#shown").inner_text() == "1 of 2 cells"
    page.get_by_role("button", name="Show all").click()
    expect(rows).to_have_count(2)
    page.get_by_role("button", name="Max").click()
    first, second = (row.locator("td.number").nth(1).inner_text() for row in rows.all())
    assert float(first.replace(",", "")) <= float(second.replace(",", ""))


def test_two_cells_stand_side_by_side_and_the_address_says_which(opened, pages):  # noqa: F811
    page = opened(pages / "side-by-side.html")
    heads = [row.locator("th").inner_text() for row in page.locator("#facts tr").all()]
    assert "p99.9, us per release" in heads
    assert page.locator("#facts tr.differs").count() > 0
    page.locator("#b").select_option(page.locator("#a").input_value())
    assert page.locator("#facts tr.differs").count() == 0
    assert f"b={page.locator('#a').input_value()}" in unquote(page.url)


def test_the_history_shows_where_it_changed(opened, pages):  # noqa: F811
    page = opened(pages / "cells" / "robot~day~a.html")
    assert (
        "(p99.9, or the maximum of fewer than 1,000 releases) is another since 2026-11-12T09:00:00Z"
        in page.locator(".answer").inner_text()
    )
    box = page.locator(".chart svg").bounding_box()
    assert box is not None and box["width"] > 600 and box["height"] > 200
