"""The report in a real browser: headless Chromium, by Playwright."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterator
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from axe_playwright_python.sync_playwright import Axe
from playwright.sync_api import Browser, Locator, Page, expect, sync_playwright

from rtmeter import report
from synthetic import T0_NS, Made, usual, write_cell, write_failed_cell
from waiting import LIMIT_S

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
LIMIT_MS = 1000 * LIMIT_S
expect.set_options(timeout=LIMIT_MS)
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
    watched = {"at_ns": [T0_NS + 1_200_000_000], "interval_ns": [200_000_000], "quota_throttles": [9]}
    pq.write_table(pa.table(watched), folder / "stalls" / "monitor.parquet")
    hostile = Made(id=HOSTILE, axes={HOSTILE: HOSTILE}, changes={"warnings": doubts, "adapter": HOSTILE})
    write_cell(folder / "hostile", hostile)
    write_failed_cell(folder / "failed", Made(id="failed"), RTPRIO)
    (folder / "running.partial").mkdir()
    (folder / "damaged").mkdir()
    (folder / "damaged" / "cell.json").write_text("{")
    return folder


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    chromium = shutil.which("chromium-headless-shell") or shutil.which("chromium")
    if chromium is None:
        pytest.skip("no chromium-headless-shell or chromium is installed (packages/test.txt)")
    with sync_playwright() as playwright:
        started = playwright.chromium.launch(executable_path=chromium, args=FLAGS, timeout=LIMIT_MS)
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
        page.set_default_timeout(LIMIT_MS)
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


def scroll_to(element: Locator) -> None:
    """At once: Playwright's own way first waits for two frames in which nothing moves, and saw none in 300 s
    on a busy machine."""
    element.evaluate("element => element.scrollIntoView({behavior: 'instant'})")


def draw_everything(page: Page) -> None:
    """Brings each plot into sight, which draws it."""
    for plot in page.locator(".plot").all():
        scroll_to(plot)
        expect(plot).to_have_attribute("data-drawn", "")


def test_every_plot_is_drawn_and_text_from_results_runs_no_script(opened, of_folder):
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
    assert page.get_by_text(HOSTILE).count() > 3
    assert page.evaluate("window.hacked") is None
    assert page.locator("img").count() == 0


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
    assert "missed the deadline of 1,000 us" in page.locator("h1").inner_text()
    box = page.locator(".key").bounding_box()
    assert box is not None
    assert box["y"] + box["height"] <= DESKTOP["height"]


@pytest.mark.parametrize(("which", "width"), [("of_folder", 390), ("of_cell", 390), ("of_campaign", 280)])
def test_a_phone_scrolls_down_only(opened, request, which, width):
    """The matrix of the campaign is too wide for 280 pixels: it scrolls in itself."""
    page = opened(request.getfixturevalue(which), PHONE | {"width": width})
    draw_everything(page)
    for details in page.locator("details").all():
        details.evaluate("details => { details.open = true; }")
    assert page.evaluate("document.documentElement.scrollWidth") <= width


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
    assert "max, us" in tip.inner_text()


def test_throttling_is_a_bar_above_the_plot_when_it_was(opened, of_cell):
    """From 0.9 s to 1.1 s, after 0.1 s of warm-up: a tenth of the axis of a run of 2 s, all of its middle
    eighth of a second, and none of what comes half a second later."""
    page = opened(of_cell)
    draw_everything(page)
    plot, said = page.locator(".plot").first, page.locator(".zoom span").first
    assert plot.get_by_text("quota 9").count() == 1
    bar = plot.locator('line[stroke-width="8"]')
    width = 10 * float(bar.get_attribute("x2"))
    assert 200 < width < DESKTOP["width"]
    for _ in range(4):
        page.get_by_role("button", name="Zoom in").click()
    expect(said).to_have_text("0.9375 to 1.0625")
    drawn = "Number(document.querySelector('line[stroke-width=\"8\"]').getAttribute('x2'))"
    page.wait_for_function(f"Math.abs({drawn} - {width}) < 1")
    for _ in range(8):
        page.get_by_role("button", name="Later").click()
    expect(said).to_have_text("1.4375 to 1.5625")
    expect(bar).to_have_count(0)


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


@pytest.fixture(scope="module")
def of_campaign(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Three loads by four periods, one of them not measured; two cells miss their deadline."""
    folder = tmp_path_factory.mktemp("campaign") / "loads"
    for load, load_us in (("none", 40), ("cpu80", 60), ("stress10", 90)):
        for period_ms in (1, 2, 10, 100):
            late = load == "stress10" and period_ms <= 2
            made = Made(
                id=f"{load}-{period_ms}ms",
                samples=1_000 + 5_000 * late,
                period_ns=period_ms * 1_000_000,
                axes={"load": load, "period": f"{period_ms}ms"},
                delays=lambda k, us=load_us, late=late: (1e3 * us + k % 90 + 3e6 * (late and k == 3_000),),
            )
            if made.id != "none-2ms":
                write_cell(folder / made.id, made)
    return report.write(folder, folder.parent / "campaign.html")


RUN_S = 6
"""Of the worst cell, whose plots come first."""


def visible(page: Page, part: str) -> int:
    return sum(found.is_visible() for found in page.locator(part).all())


def test_verdict_reason_worst_cell_and_matrix_are_on_the_first_screen(opened, of_campaign):
    page = opened(of_campaign)
    for part in (".answer .badge", "h1", ".worst", ".matrix table", ".three"):
        box = page.locator(part).bounding_box()
        assert box is not None
        assert box["y"] + box["height"] <= DESKTOP["height"]
    assert page.locator("h1").inner_text() == "Of 11 cells 2 missed the requirement."
    assert page.locator(".worst").inner_text().startswith("Worst: stress10-1ms. 3 of 6,000 releases missed")
    heads = page.locator(".matrix thead th").all_inner_texts()
    assert heads == ["load", "1ms", "2ms", "10ms", "100ms"]
    assert page.locator(".matrix .square.fail").count() == 2
    assert page.locator(".matrix .square.pass").count() == 9
    assert page.locator(".matrix .square.none").count() == 1
    page.locator(".matrix .square.fail a").first.click()
    assert page.url.endswith(f"#{page.locator('.cell').first.get_attribute('id')}")


def test_cells_are_found_and_filtered(opened, of_campaign):
    page = opened(of_campaign)
    rows, cells, shown = ".overview tbody tr", ".cell", page.locator("#shown")
    assert (visible(page, rows), shown.inner_text()) == (11, "11 of 11 cells")
    page.locator("#filter select[name=load]").select_option("cpu80")
    assert (visible(page, rows), visible(page, cells), shown.inner_text()) == (4, 4, "4 of 11 cells")
    assert page.locator(".square[data-cell]:not(.filtered)").count() == 4
    page.locator("#filter input").fill("period=10ms")
    assert (visible(page, rows), shown.inner_text()) == (1, "1 of 11 cells")
    page.locator("#filter button").click()
    page.locator("#filter select[name=outcome]").select_option("fail")
    assert (visible(page, rows), visible(page, cells)) == (2, 2)


def test_who_has_no_mouse_is_not_told_to_drag(browser, of_cell):
    page = browser.new_page(viewport=PHONE, has_touch=True, is_mobile=True)
    page.goto(of_cell.as_uri())
    scroll_to(page.locator(".plot").first)
    assert page.locator(".zoom span").first.inner_text() == "Zoom in time"
    page.close()


def axis_labels(page: Page) -> list[str]:
    """The numbers of both axes of the first plot, in no order of theirs."""
    return sorted(page.locator(".plot").first.locator(".mark-text.role-axis-label text").all_text_contents())


def test_zooming_in_time_shows_every_spike_there(opened, of_campaign):
    page = opened(of_campaign)
    scroll_to(page.locator(".plot").first)
    zoom = page.locator(".zoom").first
    zoom.wait_for()
    whole = axis_labels(page)
    assert "2,000" in whole  # of 6,000 releases one is 3 ms late
    said = zoom.locator("span")
    svg = page.locator(".plot").first.locator("svg").bounding_box()
    assert svg is not None
    y = svg["y"] + svg["height"] / 2
    page.mouse.move(svg["x"] + 0.2 * svg["width"], y)
    page.mouse.down()
    page.mouse.move(svg["x"] + 0.4 * svg["width"], y, steps=4)
    page.mouse.up()
    page.wait_for_function("() => document.querySelector('.zoom span').textContent.includes(' to ')")
    first, last = (float(text) for text in said.inner_text().split(" to "))
    assert 0 < first < last < RUN_S
    page.wait_for_function("() => !document.querySelector('.plot').textContent.includes('2,000')")
    zoom.get_by_role("button", name="Whole run").click()
    page.wait_for_function("() => document.querySelector('.plot').textContent.includes('2,000')")
    assert axis_labels(page) == whole
    for _ in range(4):  # the spike is in the middle
        zoom.get_by_role("button", name="Zoom in").click()
    page.wait_for_function("() => document.querySelector('.zoom span').textContent.includes(' to ')")
    assert "2,000" in axis_labels(page)
    first, last = (float(text) for text in said.inner_text().split(" to "))
    assert last - first == pytest.approx(RUN_S / 16, rel=0.01)


@pytest.mark.parametrize(("which", "theme"), [("of_campaign", "dark"), ("of_cell", "light")])
def test_axe_finds_no_serious_violation(opened, request, which, theme):
    """Details are open in the report of one cell. Plots are images with a text: not looked into."""
    page = opened(request.getfixturevalue(which), theme=theme)
    found = Axe().run(page, context={"exclude": [[".plot svg"]]}).response["violations"]
    serious = [
        (one["id"], one["help"], [node["html"][:200] for node in one["nodes"][:3]])
        for one in found
        if one["impact"] in ("serious", "critical")
    ]
    assert serious == []
