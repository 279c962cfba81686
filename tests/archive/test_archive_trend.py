"""`rtmeter archive trend` and `regressions`: what changed, named by what changed with it."""

from __future__ import annotations

import json
import math
import re
from dataclasses import replace
from datetime import timedelta
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from archives import FIRST, of_one_rig, rows, write_cells

from rtmeter import cli
from rtmeter.archive.add import add_rows
from rtmeter.archive.engine import answering
from rtmeter.archive.groups import GroupsAsked
from rtmeter.archive.tables import Archive, archive_at
from rtmeter.archive.trend import FleetCause, FleetTrend, SeriesChange, beside_it, trend

DAYS, RIGS = 40, 12
UPDATED, STEP = (0, 1, 2, 3), 30
NEW, OLD = "6.12.9", "6.12.8"


def kernel_of(rig: int, day: int) -> str:
    """Rigs 0 to 5 got a new kernel at day 30; it made those of UPDATED slower."""
    return NEW if rig < 6 and day >= STEP else OLD


@pytest.fixture(scope="module")
def archive(tmp_path_factory: pytest.TempPathFactory) -> Archive:
    """Of rig 7 all is better from day 20 on, and nothing recorded changed; rig 8 loses releases from 25."""
    made = archive_at(tmp_path_factory.mktemp("trend") / "archive")
    made.make()
    random = np.random.default_rng(2)
    group = {}
    for rig in range(RIGS):
        for day in range(DAYS):
            value: int | None = round(100_000 * float(np.exp(random.normal(0, 0.02))) * (1 + rig / 10))
            value = round(value * (1.12 if rig in UPDATED and day >= STEP else 1)) if value else None
            value = round(value * 0.7) if value and rig == 7 and day >= 20 else value
            at = FIRST + timedelta(days=day)
            facts = {"rig": f"rig-{rig}", "kernel": kernel_of(rig, day), "settings": '{"cpus": [1]}'}
            facts |= {"campaign": "nightly", "name": "loop", "adapter": "posix", "quantity": "latency"}
            facts |= {"measured": at, "started": at, "p99_9_ns": None if rig == 8 and day >= 25 else value}
            one = rows(rig * 1000 + day, [1, 2, 3], **facts)
            group[one.cell["cell"]] = one
    add_rows(made, group)
    return made


def test_a_regression_is_named_by_what_changed_with_it(
    archive: Archive, capsys: pytest.CaptureFixture[str]
) -> None:
    assert cli.invoke(["archive", "regressions", archive.url, "--json"]) == 2
    found = json.loads(capsys.readouterr().out)
    assert (found["series"], found["too_short"], len(found["regressions"])) == (RIGS, 0, 2)
    kernel, lost = found["regressions"]
    assert kernel["with"] == [{"condition": "kernel", "before": OLD, "after": NEW}]
    assert sorted(one["rig"] for one in kernel["changes"]) == [f"rig-{rig}" for rig in UPDATED]
    assert kernel["rigs"] == 4 and 1.08 < kernel["ratio"] < 1.16
    assert {one["when"][:10] for one in kernel["changes"]} <= {f"2026-01-{29 + d}" for d in range(3)}
    assert lost["with"] == [] and [one["rig"] for one in lost["changes"]] == ["rig-8"]
    assert cli.invoke(["archive", "regressions", archive.url]) == 2
    said = capsys.readouterr().out
    assert "p99.9 of 4 rigs rose by 1" in said and f"with kernel {NEW} (was {OLD})" in said
    assert "rose beyond what was measured with nothing that is recorded" in said


def test_exit_codes_go_by_what_is_new(archive: Archive, capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.invoke(["archive", "regressions", archive.url, "--since", "2026-03-01"]) == 0
    assert cli.invoke(["archive", "regressions", archive.url, "--where", "rig=rig-7"]) == 0
    assert cli.invoke(["archive", "regressions", archive.url, "--where", "rig=rig-1"]) == 2
    for none in ("soon", "0001-01-01T00:00:00+05:00"):
        assert cli.invoke(["archive", "regressions", archive.url, "--since", none]) == 1
    assert cli.invoke(["archive", "regressions", archive.url, "--quantile", "p42"]) == 1
    err = capsys.readouterr().err
    assert "--since" in err and "--quantile" in err


def test_a_trend_has_what_fell_too(archive: Archive, capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.invoke(["archive", "trend", archive.url]) == 0
    said = capsys.readouterr().out
    assert "p99.9 of 1 rig fell by" in said and "rig-7" in said


def test_only_the_latest_cells_are_looked_at(archive: Archive) -> None:
    with answering(archive) as backend:
        found = trend(backend, GroupsAsked(), latest=10)
    assert (found.series, found.short, found.changes) == (0, RIGS, ())


def test_the_page_of_a_fleet_has_rigs_changes_and_distributions(archive: Archive, tmp_path: Path) -> None:
    assert cli.invoke(["site", "--archive", archive.url, "-o", str(tmp_path / "site")]) == 0
    page = (tmp_path / "site/index.html").read_text()
    assert page.count('<th scope="row">rig-') == RIGS
    assert f"p99.9 of 4 rigs rose by 12 % with kernel {NEW} (was {OLD})" in page
    assert "Distributions by kernel" in page and "Distributions by middleware" in page
    assert page.count(f">{NEW}</th>") == 1
    rows, tables = page.count("<tr data-cell="), page.count('<table class="sortable overview">')
    assert page.count("<tr>") == page.count("<table") == tables, "heads; all else is found by its words"
    assert f'data-total="{rows}"' in page
    for order, shown in re.findall(r'data-order="([^"]*)">([^<]+)</td>', page):
        lower, _, upper = shown.partition("–")
        assert order == (lower or shown), "quantiles are sorted by their lower edges"
        assert not upper or float(lower.replace(",", "")) <= float(upper.replace(",", ""))
    assert page.count("<script") == 1 and 'id="filter"' in page
    chosen, of_the_system = re.findall(r'(?:="dark"\]|:not\(\[data-theme\]\)) {([^}]*)}', page)
    assert chosen == of_the_system, "dark where the system is, with no script that chooses"


def test_names_from_a_rig_are_text_in_the_page(tmp_path: Path) -> None:
    name = "<script>window.hacked = 1</script>\x1b]0;\u202e"
    made = archive_at(tmp_path / "archive")
    made.make()
    facts = {"rig": name, "kernel": name, "adapter": name, "middleware": name, "outcome": "fail"}
    add_rows(made, {"x": rows(1, [1, 2], **facts)})
    assert cli.invoke(["site", "--archive", made.url, "-o", str(tmp_path / "site")]) == 0
    page = (tmp_path / "site/index.html").read_text()
    assert page.count("<script") == 1 and page.count("&lt;script&gt;window.hacked") >= 3
    assert not {"\x1b", "\u202e"} & set(page)


def test_a_change_is_from_the_level_just_before_it(tmp_path: Path) -> None:
    made = of_one_rig(tmp_path, [100_000] * 20 + [300_000] * 20 + [200_000] * 20)
    with answering(made) as backend:
        found = trend(backend, GroupsAsked())
    rise, fall = found.changes
    assert found.changed == 1
    assert (rise.before_ns, rise.after_ns) == pytest.approx((100_000, 300_000), rel=0.02)
    assert (fall.before_ns, fall.after_ns) == pytest.approx((300_000, 200_000), rel=0.02)
    assert rise.now_ns == fall.now_ns == fall.after_ns


@pytest.mark.parametrize(("now", "told"), [(260_000, 2), (130_000, 0)])
def test_a_rise_is_a_regression_until_most_of_it_is_taken_back(
    now: int, told: int, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    made = of_one_rig(
        tmp_path,
        [100_000] * 20 + [300_000] * 20 + [now] * 20,
        lambda day: {"kernel": NEW if day >= 20 else OLD},
    )
    assert cli.invoke(["archive", "regressions", made.url, "--json"]) == told
    found = json.loads(capsys.readouterr().out)["regressions"]
    kernel = {"condition": "kernel", "before": OLD, "after": NEW}
    assert [one["with"] for one in found] == [[kernel]] * bool(told)
    assert cli.invoke(["archive", "trend", made.url]) == 0
    said = capsys.readouterr().out
    assert "; 1 changed" in said and "rig rose by 2" in said and "rig fell by" in said


def test_two_rises_are_told_each_with_its_own_condition(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    def facts(day: int) -> dict[str, Any]:
        return {"middleware_version": "11" if day >= 20 else "10", "kernel": NEW if day >= 40 else OLD}

    made = of_one_rig(tmp_path, [100_000] * 20 + [120_000] * 20 + [150_000] * 20, facts)
    for since, named in ((None, ["kernel", "middleware_version"]), ("2026-02-01", ["kernel"])):
        since_ = ["--since", since] if since else []
        assert cli.invoke(["archive", "regressions", made.url, "--json", *since_]) == 2
        found = json.loads(capsys.readouterr().out)["regressions"]
        assert [fact["condition"] for one in found for fact in one["with"]] == named


HOW = [
    (100_000, 112_000, "rose by 12 %", 1.12),
    (-8_000, -3_000, "rose by 5.0 us", None),
    (-3_000, 4_000, "rose by 7.0 us", None),
    (4_000, -3_000, "fell by 7.0 us", None),
    (0, 2_000, "rose by 2.0 us", None),
    (5_000, math.inf, "rose beyond what was measured", None),
    (math.inf, 5_000, "is no longer lost", None),
]


@pytest.mark.parametrize(("before", "after", "said", "ratio"), HOW)
def test_a_share_is_told_of_what_has_one(before: float, after: float, said: str, ratio: float | None) -> None:
    """Of timers that fire early, and of what was lost, none is."""
    series = ("rig", "nightly", "loop", "posix", "latency")
    cause = FleetCause((), after > before, (SeriesChange(series, FIRST, before, after, after, ()),))
    assert cause.in_words("p50") == f"p50 of 1 rig {said} with nothing that is recorded"
    assert cause.ratio == ratio
    with_share = SeriesChange(series, FIRST, 1_000, 2_000 if after > before else 500, 0, ())
    assert (FleetCause((), cause.rose, (*cause.changes, with_share)).ratio is None) == (ratio is None)


def test_a_change_of_early_timers_is_told(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    made = of_one_rig(tmp_path, [-8_000] * 20 + [-3_000] * 20)
    assert cli.invoke(["archive", "regressions", made.url]) == 2
    assert "p99.9 of 1 rig rose by 5.0 us with nothing that is recorded" in capsys.readouterr().out
    assert cli.invoke(["archive", "regressions", made.url, "--json"]) == 2
    (found,) = json.loads(capsys.readouterr().out)["regressions"]
    assert found["ratio"] is None and found["rose"]


def test_losses_that_ended_are_no_regression(tmp_path: Path) -> None:
    def facts(day: int) -> dict[str, Any]:
        return {"p99_9_ns": None} if 20 <= day < 50 else {}

    with answering(of_one_rig(tmp_path, [100_000] * 60, facts)) as backend:
        changes = trend(backend, GroupsAsked()).changes
    assert [(one.rose, one.lasts) for one in changes] == [(True, False), (False, True)]


@pytest.mark.parametrize("untold", [range(20), range(20, 40), range(40)])
def test_a_quantile_that_imported_data_do_not_tell_is_not_lost(
    untold: range, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Beyond the last bin of a histogram, or of intervals."""

    def facts(day: int) -> dict[str, Any]:
        none = {"p99_9_ns": None, "bins": None, "lost": (None, 0)[day % 2]}
        return none if day in untold else {}

    place = of_one_rig(tmp_path, [100_000] * 40, facts).url
    said = f"{len(untold)} cells do not tell p99.9 (imported intervals, histograms that end below it)"
    if len(untold) == 40:
        assert cli.invoke(["archive", "regressions", place]) == 1
        assert f"holds no series that is asked for: {said}" in capsys.readouterr().err
        return
    assert cli.invoke(["archive", "trend", place]) == 0
    expected = f"1 series looked at, 0 too short; 0 changed\n{said}: in no series\n"
    assert capsys.readouterr().out == expected
    assert cli.invoke(["archive", "regressions", place, "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert (found["without_quantile"], found["regressions"]) == (20, [])


@pytest.mark.parametrize(("lost", "rose"), [(1, False), (2, True)])
def test_a_quantile_is_lost_of_intervals_that_lost_so_many(lost: int, rose: bool, tmp_path: Path) -> None:
    """The p99.9 of 1,000 messages is the largest but one."""

    def facts(day: int) -> dict[str, Any]:
        return {"p99_9_ns": None, "bins": None, "n": 1000, "lost": lost} if day >= 20 else {}

    with answering(of_one_rig(tmp_path, [100_000] * 40, facts)) as backend:
        found = trend(backend, GroupsAsked())
    assert [one.after_ns for one in found.changes] == [math.inf] * rose
    assert found.untold == (0 if rose else 20)


def test_a_maximum_is_lost_of_intervals_that_lost_one(tmp_path: Path) -> None:
    def facts(day: int) -> dict[str, Any]:
        lost = {"max_ns": None, "bins": None, "n": 1000, "lost": 1}
        return lost if day >= 20 else {"max_ns": 5_000 + day % 3}

    with answering(of_one_rig(tmp_path, [100_000] * 40, facts)) as backend:
        found = trend(backend, GroupsAsked(), "max_ns")
    assert [one.after_ns for one in found.changes] == [math.inf] and found.untold == 0


def test_a_cell_that_tells_no_time_has_its_place_beside_one_that_is_in_no_series(tmp_path: Path) -> None:
    def facts(day: int) -> dict[str, Any]:
        added = FIRST + timedelta(days=day - day % 2)
        return {"measured": added, "started": None, "clock": "not told", "valid": day % 2 == 0}

    with answering(of_one_rig(tmp_path, [100_000] * 40 + [200_000] * 40, facts)) as backend:
        found = trend(backend, GroupsAsked())
    assert (found.series, len(found.changes), found.invalid, found.unordered) == (1, 1, 40, 0)


def test_what_is_in_no_series_is_told_by_why() -> None:
    whole = FleetTrend(1, 0, ())
    assert whole.left_out("p99") == []
    found = replace(whole, invalid=1, untold=1, unordered=1_200).left_out("p99")
    assert [one.partition(" (")[0] for one in found] == [
        "1 cell failed or is invalid",
        "1 cell does not tell p99",
        "1,200 cells do not tell when they were measured and were added at once",
    ]
    assert replace(whole, untold=2).left_out("max")[0].startswith("2 cells do not tell max")


def test_of_many_cells_the_latest_are_looked_at(tmp_path: Path) -> None:
    made = of_one_rig(tmp_path, [100_000] * 45 + [200_000] * 15)
    with answering(made) as backend:
        (change,) = trend(backend, GroupsAsked(), latest=30).changes
    assert change.rose


def test_settings_and_labels_are_among_what_changed(tmp_path: Path) -> None:
    def facts(day: int) -> dict[str, Any]:
        return {"settings": f'{{"cpus": [{1 + day // 20}]}}', "labels": [("site", "ns"[day // 20])]}

    with answering(of_one_rig(tmp_path, [100_000] * 20 + [200_000] * 20, facts)) as backend:
        (change,) = trend(backend, GroupsAsked()).changes
    assert change.facts == (("label site", "n", "s"), ("setting cpus", "[1]", "[2]"))


OTHER_END = ("adapter", "kernel", "firmware", "middleware", "middleware_version")


@pytest.mark.parametrize("name", ["rmw", "rmw_library", *(f"server_{one}" for one in OTHER_END)])
def test_the_rmw_and_the_other_end_are_among_what_changed(name: str, tmp_path: Path) -> None:
    def facts(day: int) -> dict[str, Any]:
        return {name: NEW if day >= 20 else OLD}

    with answering(of_one_rig(tmp_path, [100_000] * 20 + [200_000] * 20, facts)) as backend:
        (change,) = trend(backend, GroupsAsked()).changes
    assert change.facts == ((name, OLD, NEW),)


@pytest.mark.parametrize(
    ("known", "changed"), [(range(20, 40), "kernel"), (range(20), "kernel"), (range(15, 25), "rmw")]
)
def test_what_some_cells_do_not_tell_changed_only_between_those_that_do(
    known: range, changed: str, tmp_path: Path
) -> None:
    """The others were added before the archive had a column for it."""

    def facts(day: int) -> dict[str, Any]:
        rmw = NEW if day >= 20 and changed == "rmw" else OLD
        return {"kernel": NEW if day >= 21 else OLD, "rmw": rmw if day in known else None}

    with answering(of_one_rig(tmp_path, [100_000] * 20 + [200_000] * 20, facts)) as backend:
        (change,) = trend(backend, GroupsAsked()).changes
    assert change.facts == ((changed, OLD, NEW),)


def test_cells_of_a_clock_that_is_not_believed_keep_their_order_and_their_conditions(tmp_path: Path) -> None:
    """They stand at one time, that at which they were added; their identities are in no order."""

    def facts(day: int) -> dict[str, Any]:
        kernel = NEW if day >= 20 else OLD
        return {"measured": FIRST, "clock": "ahead", "cell": f"{day * 7 % 40:032x}", "kernel": kernel}

    with answering(of_one_rig(tmp_path, [100_000] * 20 + [200_000] * 20, facts)) as backend:
        (change,) = trend(backend, GroupsAsked()).changes
    assert (change.before_ns, change.after_ns) == pytest.approx((100_000, 200_000), rel=0.02)
    assert change.facts == (("kernel", OLD, NEW),)


@pytest.mark.parametrize("at_once", [40, 20, 1])
def test_cells_that_tell_no_time_and_were_added_at_once_are_in_no_order(
    at_once: int, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Their identities are in none; what was added by itself has its place."""

    def facts(day: int) -> dict[str, Any]:
        added = FIRST + timedelta(days=day - day % at_once)
        return {"measured": added, "started": None, "clock": "not told", "cell": f"{day * 7 % 40:032x}"}

    place = of_one_rig(tmp_path, [100_000] * 20 + [200_000] * 20, facts).url
    if at_once == 1:
        assert cli.invoke(["archive", "regressions", place, "--json"]) == 2
        assert json.loads(capsys.readouterr().out)["without_order"] == 0
        return
    assert cli.invoke(["archive", "regressions", place]) == 1
    said = "no series that is asked for: 40 cells do not tell when they were measured and were added at once"
    assert said in capsys.readouterr().err


def test_cells_that_measured_nothing_lost_nothing(tmp_path: Path) -> None:
    def facts(day: int) -> dict[str, Any]:
        return {"n": None, "p99_9_ns": None} if day >= 30 else {}

    with answering(of_one_rig(tmp_path, [100_000] * 60, facts)) as backend:
        found = trend(backend, GroupsAsked())
    assert (found.series, found.changes) == (1, ())


def test_a_condition_that_comes_and_goes_changed_nothing() -> None:
    steady = [{"kernel": "a", "setting x": str(day % 2)} for day in range(10)]
    assert beside_it(steady, 5) == ()
    moved = [one | {"kernel": "b", "label site": "n"} if day >= 6 else one for day, one in enumerate(steady)]
    assert beside_it(moved, 5) == (("kernel", "a", "b"), ("label site", "-", "n"))
    assert beside_it(moved, 3) == beside_it(moved, 9) == beside_it(moved, 5)
    assert beside_it(moved, 2) == ()


def test_a_site_of_results_and_the_page_of_a_fleet_take_turns_in_a_folder(
    archive: Archive, tmp_path: Path
) -> None:
    write_cells(tmp_path / "results", rigs=1, days=1)
    out, results = tmp_path / "site", str(tmp_path / "results")
    first = out / "index.html"
    of_results = ["site", results, "-o", str(out), "--no-reports"]
    assert cli.invoke(of_results) == 0
    page = first.read_text()
    assert cli.invoke(["site", "--archive", archive.url, "-o", str(out)]) == 0
    assert first.read_text() != page
    assert cli.invoke(of_results) == 0
    assert first.read_text() == page


@pytest.mark.parametrize(
    ("given", "said"), [("results", "RESULTS"), ("--no-reports", "--reports/--no-reports")]
)
def test_the_page_of_a_fleet_is_of_nothing_else(
    archive: Archive, tmp_path: Path, given: str, said: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert cli.invoke(["site", given, "--archive", archive.url, "-o", str(tmp_path / "site")]) == 1
    assert f"{said}: is not for the page of a fleet" in capsys.readouterr().err
    assert not (tmp_path / "site").exists()
