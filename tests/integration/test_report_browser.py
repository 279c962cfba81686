"""The report in a real browser: headless Chromium, by Playwright."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Browser, Page, sync_playwright

from rtmeter import report
from synthetic import Made, usual, write_cell, write_failed_cell

HOSTILE = "</script><script>window.hacked = 1</script><img src=x onerror='window.hacked = 1'>"
FLAGS = [
    "--headless",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
]
DESKTOP, PHONE = {"width": 1280, "height": 800}, {"width": 390, "height": 844}

RTPRIO = {"field": "scheduling", "value": "fifo:99", "message": "not allowed", "remedy": "raise rtprio"}


def round_trips(k: int) -> tuple[float, float | None, float]:
    return usual(7, 60)(k)[0], None if k == 1234 else 4e4, 7e4 + 12e6 * (k == 2000)


CELLS = [
    Made(id="wake-up", samples=10_000, delays=usual(3, 60)),
    Made(id="stalls", skip=True, delays=lambda k: (2_300_000 * (700 < k < 720) + 5e4 + k % 90,)),
    Made(id="one shot", measurement="timer", mode="one_shot", delays=lambda k: (k % 90 * 1000 - 9000,)),
    Made(id="shots lost", measurement="timer", mode="one_shot", delays=lambda k: (None if k % 500 else 9,)),
    Made(id="periodic", measurement="timer", mode="periodic", deadline_ns=None, delays=usual(5, 70)),
    Made(id="round trip", measurement="roundtrip", skip=True, period_ns=10_000_000, delays=round_trips),
    Made(id="cycle", measurement="cycle", miss_ratio=1e-6, delays=usual(9, 50)),
    Made(id="one sample", samples=1),
    Made(id="nothing back", measurement="roundtrip", skip=True, delays=lambda k: (0, None, None)),
    Made(id="always the same", delays=lambda k: (40_000,)),
]


@pytest.fixture(scope="module")
def results(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("browser") / "results"
    for made in CELLS:
        write_cell(folder / made.id, made)
    doubts = [{"type": HOSTILE, "message": HOSTILE, "hint": HOSTILE}]
    hostile = Made(id=HOSTILE, axes={HOSTILE: HOSTILE}, changes={"warnings": doubts, "adapter": HOSTILE})
    write_cell(folder / "hostile", hostile)
    write_failed_cell(folder / "failed", Made(id="failed"), RTPRIO)
    (folder / "running.partial").mkdir()
    (folder / "damaged").mkdir()
    (folder / "damaged" / "cell.json").write_text("{")
    return folder


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    chromium = shutil.which("chromium")
    assert chromium, "these tests need Debian's chromium (packages/test.txt)"
    with sync_playwright() as playwright:
        started = playwright.chromium.launch(executable_path=chromium, args=FLAGS)
        yield started
        started.close()


@pytest.fixture(scope="module")
def of_folder(results: Path) -> Path:
    return report.write(results, results.parent / "folder.html")


@pytest.fixture(scope="module")
def of_cell(results: Path) -> Path:
    return report.write(results / "stalls", results.parent / "cell.html")


Open = Callable[..., Page]


@pytest.fixture
def opened(browser: Browser) -> Iterator[Open]:
    """Opens a file; when the test ends, nothing may have been complained of or asked of a network."""
    complaints: list[str] = []
    asked: list[str] = []
    pages: list[Page] = []

    def open_file(file: Path, viewport: dict[str, int] = DESKTOP, theme: str = "light") -> Page:
        page = browser.new_page(viewport=viewport, color_scheme=theme)
        page.on("console", lambda message: complaints.append(message.text))
        page.on("pageerror", lambda error: complaints.append(str(error)))
        page.on("request", lambda request: asked.append(request.url))
        page.goto(file.as_uri())
        pages.append(page)
        return page

    yield open_file
    for page in pages:
        page.close()
    assert complaints == []
    assert [url for url in asked if not url.startswith("file://")] == []
    assert len(asked) == len(pages)


def draw_everything(page: Page) -> None:
    """Brings each plot into sight, which draws it."""
    undrawn = page.locator(".plot:not([data-drawn])")
    for _ in range(page.locator(".plot").count()):
        if undrawn.count() == 0:
            break
        undrawn.last.scroll_into_view_if_needed()
        page.wait_for_timeout(100)
    assert undrawn.count() == 0


def test_every_plot_is_drawn(opened, of_folder):
    page = opened(of_folder)
    draw_everything(page)
    plots = page.locator(".plot")
    # 3 for each quantity: 1 of wake-up, 2 of one-shot and periodic without dispatch …
    assert plots.count() >= 3 * (len(CELLS) + 1)
    for plot in plots.all():
        box = plot.locator("svg").bounding_box()
        assert box is not None
        assert box["width"] > 200
        assert box["height"] > 100
    assert page.locator(".plot svg path[d*=NaN]").count() == 0
    assert page.locator(".plot svg [transform*=NaN]").count() == 0


def test_the_answer_and_the_worst_cell_are_on_the_first_screen(opened, of_folder):
    page = opened(of_folder)
    for part in ("h1", ".answer .badge", ".three", ".overview tbody tr:nth-child(3)"):
        box = page.locator(part).first.bounding_box()
        assert box is not None
        assert box["y"] >= 0
        assert box["y"] + box["height"] <= DESKTOP["height"]
    assert page.locator("h1").inner_text().startswith("Of 14 cells 2 failed or gave invalid data")
    assert [h.inner_text() for h in page.locator(".three h2").all()] == [
        "What was asked",
        "What limits it",
        "What to do next",
    ]


def test_a_single_cell_shows_answer_and_first_plot_on_the_first_screen(opened, of_cell):
    page = opened(of_cell)
    assert "missed the deadline of 1,000 µs" in page.locator("h1").inner_text()
    box = page.locator(".key").bounding_box()
    assert box is not None
    assert box["y"] + box["height"] <= DESKTOP["height"]


@pytest.mark.parametrize("which", ["of_folder", "of_cell"])
def test_a_phone_scrolls_down_only(opened, request, which):
    page = opened(request.getfixturevalue(which), PHONE)
    draw_everything(page)
    for details in page.locator("details").all():
        details.evaluate("details => { details.open = true; }")
    assert page.evaluate("document.documentElement.scrollWidth") <= PHONE["width"]


def background(page: Page) -> str:
    return page.evaluate("getComputedStyle(document.body).backgroundColor")


def test_the_theme_follows_the_system_until_one_is_chosen(opened, of_cell):
    light, dark = opened(of_cell, theme="light"), opened(of_cell, theme="dark")
    shades = background(light), background(dark)
    assert shades[0] != shades[1]
    draw_everything(dark)
    line = dark.locator(".plot svg .mark-line path").first
    drawn = line.evaluate("path => getComputedStyle(path).stroke")
    dark.locator("#theme").click()
    assert background(dark) == shades[0]
    assert line.evaluate("path => getComputedStyle(path).stroke") != drawn
    dark.locator("#theme").click()
    assert background(dark) == shades[1]


def test_text_from_results_runs_no_script(opened, of_folder):
    page = opened(of_folder)
    draw_everything(page)
    assert page.get_by_text(HOSTILE).count() > 3
    assert page.evaluate("window.hacked") is None
    assert page.locator("img").count() == 0


def test_tables_sort_by_value(opened, of_folder):
    page = opened(of_folder)
    table = page.locator("table.overview")

    def column(number: int) -> list[str]:
        return table.locator(f"tbody tr > :nth-child({number})").all_inner_texts()

    heads = [text.split("\n")[0] for text in table.locator("thead th").all_inner_texts()]
    at = heads.index("Max") + 1
    table.locator(f"thead th:nth-child({at}) button").click()
    shown = [text for text in column(at) if text != "–"]
    numbers = [float("inf") if text == "lost" else float(text.replace(",", "")) for text in shown]
    assert len(set(numbers)) > 4
    assert numbers == sorted(numbers)
    assert column(at)[len(numbers) :] == ["–"] * (len(column(at)) - len(numbers))
    table.locator(f"thead th:nth-child({at}) button").click()
    assert table.locator("thead th[aria-sort=descending]").count() == 1
    assert column(at)[0] == "lost"


def test_pointing_at_a_plot_tells_what_is_there(opened, of_cell):
    page = opened(of_cell)
    draw_everything(page)
    page.locator(".plot").first.locator(".hover_marks path").nth(100).hover(force=True)
    tip = page.locator("#tip")
    tip.wait_for()
    assert "max, µs" in tip.inner_text()


def test_print_draws_and_unfolds_everything_in_light(opened, of_folder):
    page = opened(of_folder, theme="dark")
    page.evaluate(
        """matchMedia("print").addEventListener("change", (print) => {
             window.printed ??= [document.querySelectorAll(".plot:not([data-drawn])").length,
                                 document.querySelectorAll("details:not([open])").length,
                                 document.documentElement.dataset.theme];
           })"""
    )
    folded = page.locator("details:not([open])").count()
    assert folded > 0
    assert page.pdf(print_background=True).startswith(b"%PDF")
    assert page.evaluate("window.printed") == [0, 0, "light"]
    assert page.evaluate("document.documentElement.dataset.theme") == "dark"
    assert page.locator("details:not([open])").count() == folded
