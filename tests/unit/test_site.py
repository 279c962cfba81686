"""`rtmeter site`: which histories there are, where they change, and what its pages hold."""

from __future__ import annotations

import html
import json
import os
import re
import shutil
from pathlib import Path

import jinja2
import pytest

from rtmeter import cli
from rtmeter.report.site import pages
from rtmeter.report.site.history import FEWEST_RUNS, histories
from stored import write_run
from synthetic import Made, write_cell

HOSTILE = "</script><script>window.hacked = 1</script>"


def a_run(results: Path, number: int, late_us: int = 50, machine: str = "robot", **cells: Made) -> Path:
    """A run of the campaign `day`, with cell `wakeup` that late and further cells."""
    run = results / machine / "day" / f"202611{number:02}T090000Z"
    started = f"2026-11-{number:02}T09:00:00Z"
    wakeup = Made(
        id="wakeup", samples=60, warm_up=5, delays=lambda k: (late_us * 1000 + k % 90,), deadline_ns=400_000
    )
    made = {"wakeup": wakeup} | cells
    about = {"campaign": "day", "started": started, "scale": 1, "host": None, "cells": list(made)}
    write_run(run, about, None)
    for name, one in made.items():
        one.changes |= {"started": started}
        write_cell(run / name, one)
    return run


@pytest.fixture(scope="module")
def results(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """24 runs on one machine, from the twelfth on slower; one on another, with a cell of a hostile name and
    one whose 60 releases, none of them late, are too few to show that at most 1 % are."""
    folder = tmp_path_factory.mktemp("site") / "results"
    for number in range(1, 25):
        a_run(folder, number, 50 + number % 5 if number < 12 else 900 + number % 5)
    short = Made(id="wakeup", samples=60, warm_up=5, deadline_ns=400_000, miss_ratio=0.01)
    hostile = Made(id=HOSTILE, samples=50, axes={HOSTILE: HOSTILE})
    a_run(folder, 3, machine="other", wakeup=short, hostile=hostile)
    return folder


def made(results: Path, out: Path, *more: str) -> Path:
    assert cli.invoke(["site", str(results), "-o", str(out), *more]) == 0
    return out


def test_a_run_that_lost_a_release_has_it_in_the_chart_where_its_maximum_has_no_point(tmp_path: Path) -> None:
    for number in (1, 2, 3):
        trip = Made(id="trip", measurement="roundtrip", samples=60, warm_up=0)
        trip.delays = lambda k, lost=number == 2: (0, None if lost and k == 30 else 20_000, 20_000)
        a_run(tmp_path / "results", number, trip=trip)
    site = made(tmp_path / "results", tmp_path / "site", "--no-reports")
    (trips, wakeups) = ((site / "cells" / f"robot~day~{of}.html").read_text() for of in ("trip", "wakeup"))
    assert trips.count(">lost</text>") == 1 and ">lost</text>" not in wakeups


def text(page: Path) -> str:
    content = re.sub(r"<(script|style).*?</\1>", " ", page.read_text(), flags=re.DOTALL)
    return " ".join(html.unescape(re.sub(r"<[^>]+>", " ", content)).split())


def test_a_history_is_a_cell_of_a_campaign_on_a_machine(results: Path) -> None:
    found = {(one.machine, one.cell): one for one in histories(results)}
    assert set(found) == {("robot", "wakeup"), ("other", "wakeup"), ("other", HOSTILE)}
    robot = found["robot", "wakeup"]
    assert [entry.run.name for entry in robot.entries] == sorted(entry.run.name for entry in robot.entries)
    assert len(robot.entries) == 24
    assert [entry.started for entry in robot.changes] == ["2026-11-12T09:00:00Z"]
    assert (
        histories(results)[0] is not None and histories(results)[0].cell == "wakeup"
    )  # the failed one first
    assert found["other", "wakeup"].changes == []


def test_repeats_of_a_cell_are_one_condition_and_each_is_one_click_below(tmp_path: Path) -> None:
    repeats = {
        f"loop-r{number}": Made(
            id=f"loop-r{number}", axes={"repeat": number}, samples=600, warm_up=5, deadline_ns=400_000
        )
        for number in (1, 2, 3)
    }
    a_run(tmp_path / "results", 1, **repeats)
    (loop,) = (one for one in histories(tmp_path / "results") if one.cell != "wakeup")
    assert (loop.cell, len(loop.entries), len(loop.entries[0].cell.repeats)) == ("loop", 1, 3)
    out = made(tmp_path / "results", tmp_path / "site")
    index = text(out / "index.html")
    assert "loop" in index and "loop-r" not in index
    shown = [page.name for page in out.rglob("*.html") if "loop-r2" in text(page)]
    assert len(shown) == 1


def test_a_single_run_has_its_date_below_its_points(tmp_path: Path) -> None:
    a_run(tmp_path / "results", 3)
    page = made(tmp_path / "results", tmp_path / "site", "--no-reports") / "cells" / "robot~day~wakeup.html"
    assert page.read_text().count(">2026-11-03 09:00</text>") == 1


def test_a_run_that_lost_all_has_its_place_in_time(tmp_path: Path) -> None:
    """The one date that would be told is of neither run."""
    a_run(tmp_path / "results", 3)
    lost = Made(id="wakeup", measurement="roundtrip", samples=60, delays=lambda _: (0, None, None))
    a_run(tmp_path / "results", 9, wakeup=lost)
    page = made(tmp_path / "results", tmp_path / "site", "--no-reports") / "cells" / "robot~day~wakeup.html"
    chart = page.read_text()
    assert ">lost</text>" in chart
    assert not re.search(">2026-11-[0-9]+ 00:00</text>", chart)


def test_few_runs_show_no_change_and_one_more_does(tmp_path: Path) -> None:
    for number in range(1, FEWEST_RUNS):
        a_run(tmp_path, number, 50 if number < 10 else 900)
    assert histories(tmp_path)[0].changes == []
    a_run(tmp_path, FEWEST_RUNS, 900)
    assert [entry.started for entry in histories(tmp_path)[0].changes] == ["2026-11-10T09:00:00Z"]


def test_the_pages_say_what_the_cells_hold(results: Path, tmp_path: Path) -> None:
    out = made(results, tmp_path / "site")
    first = text(out / "index.html")
    assert "Latest results of 3 cells" in first
    assert "Fail wakeup day robot 2026-11-24T09:00:00Z 400 904.1" in first
    assert "2026-11-12T09:00:00Z" in first  # since when the tail is another
    page = out / "cells" / "robot~day~wakeup.html"
    assert (
        "(p99.9, or the maximum of fewer than 1,000 releases) is another since 2026-11-12T09:00:00Z"
        in text(page)
    )
    assert page.read_text().count("<svg") == 1
    links = re.findall(r'href="([^"#]+)"', "".join(p.read_text() for p in (out / "index.html",)))
    assert [link for link in links if not (out / link).is_file()] == []
    for link in re.findall(r'href="([^"#]+)"', page.read_text()):
        assert (page.parent / link).resolve().is_file()
    facts = json.loads(re.findall(r'id="cells">(.*?)</script>', (out / "side-by-side.html").read_text())[0])
    assert facts["robot~day~wakeup.html"]["Verdict"] == "Fail"
    assert facts["other~day~wakeup.html"]["Verdict"] == "Inconclusive"
    assert facts["robot~day~wakeup.html"]["Misses"] == "60"


def test_names_that_read_alike_have_pages_of_their_own(tmp_path: Path) -> None:
    for machine, campaign, cell in (
        ("a-b", "c", "d"),
        ("a", "b-c", "d"),
        ("a", "b-c", "D d"),
        ("a", "b-c", "D/d"),
    ):
        run = tmp_path / "results" / machine / campaign / "20261101T090000Z"
        write_run(run, {"campaign": campaign, "started": "2026-11-01T09:00:00Z", "cells": []}, None)
        write_cell(run / f"{len(cell)}{cell[1:2] == '/'}", Made(id=cell, samples=30))
    pages = [history.page for history in histories(tmp_path / "results")]
    assert len(set(pages)) == len(pages) == 4
    out = made(tmp_path / "results", tmp_path / "site")
    assert {page.name for page in (out / "cells").iterdir()} == set(pages)
    assert len(list((out / "reports").iterdir())) == 2


def test_a_cell_of_a_long_id_has_a_page_of_its_own_also_if_it_was_never_measured(tmp_path: Path) -> None:
    long = [f"{'x' * 230}-{end}" for end in ("fifo", "other")]
    never = "y" * 260  # no folder can be called so
    run = tmp_path / "results" / ("m" * 64) / ("c" * 200) / "20261101T090000Z"
    about = {"campaign": "c" * 200, "started": "2026-11-01T09:00:00Z", "cells": [*long, never]}
    write_run(run, about, None)
    for cell in long:
        write_cell(run / cell, Made(id=cell, samples=30))
    pages = {history.cell: history.page for history in histories(tmp_path / "results")}
    assert set(pages) == {*long, never}
    out = made(tmp_path / "results", tmp_path / "site")
    assert {page.name for page in (out / "cells").iterdir()} == set(pages.values())
    for cell in long:
        assert cell in (out / "cells" / pages[cell]).read_text()
    assert len(list((out / "reports").iterdir())) == 1


def test_a_run_that_goes_on_and_a_cell_alone_are_shown_too(tmp_path: Path) -> None:
    run = tmp_path / "results" / "robot" / "day" / "20261101T090000Z"
    write_run(run, {"campaign": "day", "started": "2026-11-01T09:00:00Z", "cells": ["a"]}, None)
    (run / "a.partial").mkdir()
    write_cell(tmp_path / "results" / "alone", Made(id="alone", samples=30))
    out = made(tmp_path / "results", tmp_path / "site")
    assert "Not finished a day robot" in text(out / "index.html")
    [of_cell] = [page for page in (out / "reports").iterdir() if "alone" in page.name]
    assert "day" not in text(of_cell)  # of the cell, not of all that lies beside it


def test_pages_of_what_is_gone_are_removed_and_others_stay(tmp_path: Path) -> None:
    results = tmp_path / "results"
    a_run(results, 1)
    second = a_run(results, 2, machine="other")
    out = made(results, tmp_path / "site")
    (out / "cells" / "mine.html").write_text("mine")
    assert len(list((out / "cells").iterdir())) == 3
    shutil.rmtree(second)
    made(results, out)
    assert {page.name for page in (out / "cells").iterdir()} == {"robot~day~wakeup.html", "mine.html"}
    assert len(list((out / "reports").iterdir())) == 1


def test_no_name_is_markup(results: Path, tmp_path: Path) -> None:
    out = made(results, tmp_path / "site", "--no-reports")
    for page in out.rglob("*.html"):
        assert HOSTILE not in page.read_text(), page
    assert list((out / "reports").iterdir()) == []


def test_only_what_changed_is_reported_anew(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Also of a run that has no cell yet, and of cells whose clock is ahead or behind."""
    results, out = tmp_path / "results", tmp_path / "site"
    about = {"campaign": "begun", "started": "2026-11-01T09:00:00Z", "cells": ["first"]}
    begun = results / "robot" / "begun" / "20261101T090000Z"
    write_run(begun, about, None)
    (begun / "first.partial").mkdir()
    ahead = a_run(results, 2)
    os.utime(ahead / "wakeup" / "cell.json", (2**31 - 2**20,) * 2)

    def makes_again() -> set[str]:
        before = {page: page.stat().st_mtime_ns for page in out.rglob("*.html")}
        made(results, out)
        return {page.name for page in out.rglob("*.html") if before.get(page) != page.stat().st_mtime_ns}

    reports = {"robot~begun~20261101T090000Z.html", "robot~day~20261102T090000Z.html"}
    assert makes_again() >= reports == {page.name for page in (out / "reports").iterdir()}
    assert "report of begun" in capsys.readouterr().err
    assert makes_again() == set()
    assert capsys.readouterr().err == "", "nothing is said to be made"

    every = {"index.html", "side-by-side.html"}
    shutil.rmtree(begun / "first.partial")
    ended = write_cell(begun / "first", Made(id="first", samples=30))
    os.utime(ended / "cell.json", (0, 0))
    assert makes_again() == every | {"robot~begun~first.html", "robot~begun~20261101T090000Z.html"}
    os.utime(ended / "cell.json", (1, 1))
    assert "robot~begun~20261101T090000Z.html" in makes_again()
    (begun / "run.json").write_text((begun / "run.json").read_text().replace("first", "next"))
    assert "robot~begun~20261101T090000Z.html" in makes_again()
    (begun / "next.partial").mkdir()
    assert "robot~begun~20261101T090000Z.html" in makes_again()
    assert makes_again() == set()


@pytest.mark.parametrize(("argument", "words"), [("nowhere", "is no folder"), (".", "holds no cell")])
def test_what_has_no_cells_is_refused(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    argument: str,
    words: str,
) -> None:
    monkeypatch.chdir(tmp_path)
    assert cli.invoke(["site", argument]) == 1
    assert words in capsys.readouterr().err
    assert not (tmp_path / "site").exists()


def test_only_what_changed_is_made_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    made_of: list[str] = []
    plain = pages._render
    monkeypatch.setattr(
        pages, "_render", lambda template, **what: (made_of.append(what["title"]), plain(template, **what))[1]
    )
    pages._environment()
    monkeypatch.setattr(jinja2, "Environment", None)  # the one that is there is taken
    results, out = tmp_path / "results", tmp_path / "site"
    second = Made(id="second", samples=50)
    for number in (1, 2):
        a_run(results, number, second=second)
    made(results, out, "--no-reports")
    assert sorted(made_of) == ["All results", "Side by side", "second, day on robot", "wakeup, day on robot"]
    made_of.clear()
    made(results, out, "--no-reports")
    assert made_of == []
    page = out / "cells" / "robot~day~second.html"
    page.unlink()
    made(results, out, "--no-reports")
    assert made_of == ["second, day on robot"] and page.is_file()
    made_of.clear()
    file = next(results.rglob("second/cell.json"))
    file.write_text(file.read_text().replace('"posix"', '"other"'))
    made(results, out, "--no-reports")
    assert sorted(made_of) == ["All results", "Side by side", "second, day on robot"]
    made_of.clear()
    (out / ".rtmeter-site.json").write_text('["cells/robot~day~second.html"]')  # of an earlier rtmeter
    made(results, out, "--no-reports")
    assert len(made_of) == 4
