"""What `rtmeter archive merge` must not pass over: cells that failed, several quantities, cells of which
nothing is required, and maxima that are in no distribution."""

from __future__ import annotations

import importlib.util
import json
import shutil
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from archives import made, plain, rows

from rtmeter import cli
from rtmeter.archive.add import add, add_rows
from rtmeter.archive.cells import CellRows
from rtmeter.archive.engine import answering
from rtmeter.archive.groups import GroupsAsked, merged
from rtmeter.archive.tables import Archive, archive_at
from rtmeter.archive.trend import trend
from rtmeter.results.cells import find_cells
from synthetic import usual, write_cell, write_failed_cell

SPARK = importlib.util.find_spec("pyspark") is not None and shutil.which("java") is not None
REQUIRED = {
    "deadline_ns": 10**6,
    "miss_ratio": 0.1,
    "confidence": 0.95,
    "criticality": "firm",
    "horizon": 10.0,
}
PASSING = {"outcome": "pass", "misses": 0, "design_effect": 1.0, **REQUIRED}
WAKEUP = {"measurement": "wakeup", "quantity": "latency"}
TIMER = {"measurement": "timer", "quantity": "latency", "components": None}
TRIP = {"measurement": "roundtrip", "quantity": "response"}


def archive_of(folder: Path, *cells: CellRows) -> Archive:
    archive = archive_at(folder / "archive")
    archive.make()
    add_rows(archive, {one.cell["cell"]: one for one in cells})
    return archive


def merged_json(
    archive: Archive, capsys: pytest.CaptureFixture[str], code: int, *words: str
) -> list[dict[str, Any]]:
    capsys.readouterr()
    assert cli.invoke(["archive", "merge", archive.url, "--json", *words]) == code
    groups: list[dict[str, Any]] = json.loads(capsys.readouterr().out)["groups"]
    return groups


def test_cells_that_failed_are_counted_and_nothing_passes_with_them(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    error = {"field": "probe", "value": "7", "message": "was killed by signal 11"}
    write_cell(tmp_path / "results/rig0", made(0, 0, 1200, usual(1, 50)))
    archive = archive_at(tmp_path / "archive")
    add(archive, find_cells(tmp_path / "results"))
    assert [one["verdict"]["outcome"] for one in merged_json(archive, capsys, 0)] == ["pass"]
    for rig in (1, 2):
        write_failed_cell(tmp_path / f"results/rig{rig}", made(rig, 0, 1200, usual(1, 50)), error)
    assert add(archive, find_cells(tmp_path / "results")).new == 2
    (group,) = merged_json(archive, capsys, 3)
    assert (group["cells"], group["rigs"], group["invalid"], group["n"]) == (3, 3, 2, 1200)
    assert group["without_distribution"] == 0
    assert group["verdict"]["outcome"] == "inconclusive"
    said = "0 of 1,200 releases of 1 rig missed: 2 cells could not be judged"
    assert group["verdict"]["reason"] == said
    assert [one["invalid"] for one in merged_json(archive, capsys, 3, "--by", "status")] == [0, 2]
    assert cli.invoke(["archive", "merge", archive.url]) == 3
    assert "2 cells failed or are invalid" in capsys.readouterr().out
    assert cli.invoke(["archive", "merge", archive.url, "--where", "status=failed"]) == 1
    assert "no valid cell that is asked for: 2 cells failed or are invalid" in capsys.readouterr().err
    for command in ("trend", "regressions"):
        assert cli.invoke(["archive", command, archive.url, "--json"]) == 0
        assert json.loads(capsys.readouterr().out)["invalid"] == 2
        assert cli.invoke(["archive", command, archive.url]) == 0
        assert "2 cells failed or are invalid: in no series" in capsys.readouterr().out
    assert cli.invoke(["site", "--archive", archive.url, "-o", str(tmp_path / "site")]) == 0
    page = (tmp_path / "site/index.html").read_text()
    assert "<p>2 cells failed or are invalid" in page and page.count(">3, 2 invalid<") == 2


DRIVEN = [
    ("timer", "periodic", {"drive": "spin"}),
    ("cycle", None, {"drive": "spin", "components": "two_threads"}),
]


@pytest.mark.parametrize(("measurement", "mode", "driven"), DRIVEN)
def test_nothing_passes_beside_cells_that_failed_before_they_told_how_they_were_driven(
    measurement: str,
    mode: str | None,
    driven: dict[str, str],
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    error = {"field": "probe", "value": "7", "message": "was killed by signal 11"}
    cell = replace(made(0, 0, 1200, usual(1, 5)), measurement=measurement, mode=mode)
    folder = write_cell(tmp_path / "results/rig0", cell)
    content = json.loads((folder / "cell.json").read_text())
    content["effective"] |= driven
    (folder / "cell.json").write_text(json.dumps(content))
    archive = archive_at(tmp_path / "archive")
    add(archive, find_cells(tmp_path / "results"))
    assert [one["verdict"]["outcome"] for one in merged_json(archive, capsys, 0)] == ["pass"]
    failed = replace(made(1, 0, 1200, usual(1, 5)), measurement=measurement, mode=mode)
    failed.changes["effective"] = {}
    write_failed_cell(tmp_path / "results/rig1", failed, error)
    write_failed_cell(tmp_path / "results/rig2", replace(failed, measurement="wakeup", mode=None), error)
    assert add(archive, find_cells(tmp_path / "results")).new == 2
    found = {str(one["of"]): one for one in merged_json(archive, capsys, 3)}
    (told,) = (one for one in found.values() if one["of"]["drive"])
    assert (told["cells"], told["invalid"], told["verdict"]["outcome"]) == (1, 0, "inconclusive")
    said = "0 of 1,200 releases of 1 rig missed: 1 cell could not be judged"
    assert told["verdict"]["reason"] == said and len(found) == 3


def test_a_group_that_misses_fails_also_beside_cells_that_failed(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    late = PASSING | {"outcome": "fail", "misses": 900}
    bad = rows(2, [1], valid=False, n=None, bins=None, **(PASSING | {"outcome": "error"}))
    (group,) = merged_json(archive_of(tmp_path, rows(1, [1] * 1000, **late), bad), capsys, 2)
    assert (group["verdict"]["outcome"], group["verdict"]["n"]) == ("fail", 1000)


def test_nothing_that_an_invalid_cell_says_counts(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    bad = rows(2, [10**9] * 1000, valid=False, **PASSING)
    (group,) = merged_json(archive_of(tmp_path, rows(1, [100] * 1000, max_at_k=0, **PASSING), bad), capsys, 3)
    assert (group["n"], group["maximum"]["max_ns"], group["invalid"]) == (1000, 100, 1)
    assert (group["verdict"]["n"], group["verdict"]["outcome"]) == (1000, "inconclusive")


OTHERS = [TRIP, TIMER | {"drive": "spin"}, WAKEUP | {"components": "two_threads"}]


@pytest.mark.parametrize("other", OTHERS)
def test_no_distribution_and_no_verdict_is_of_several_quantities(
    other: dict[str, Any], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    late = PASSING | {"outcome": "fail", "misses": 1000}
    slow = rows(1, [10**9] * 1000, **late, **other)
    archive = archive_of(tmp_path, rows(0, [100] * 1000, **PASSING, **WAKEUP), slow)
    found = merged_json(archive, capsys, 2)
    of = [{name: value for name, value in group["of"].items() if value} for group in found]
    told = [{name: value for name, value in one.items() if value} for one in (WAKEUP, other)]
    assert sorted(of, key=str) == sorted(told, key=str)
    groups = {str(group["of"]): (group["verdict"]["outcome"], group["n"]) for group in found}
    assert sorted(groups.values()) == [("fail", 1000), ("pass", 1000)]
    for group in found:
        assert group["quantiles"]["p50"][1] - group["quantiles"]["p50"][0] <= 10**9 // 64
    assert cli.invoke(["archive", "merge", archive.url, "--by", "kernel"]) == 2
    out = " ".join(capsys.readouterr().out.split())
    words = [" ".join(one.values()) for one in told]
    assert all(word in out for one in words for word in one.split())
    assert cli.invoke(["site", "--archive", archive.url, "-o", str(tmp_path / "site")]) == 0
    page = (tmp_path / "site/index.html").read_text()
    assert all(page.count(f"<caption>{one.capitalize()}, of all releases") == 2 for one in words)


def test_a_maximum_that_is_in_no_distribution_is_the_groups(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """That of a histogram, whose tool told it, not its release."""
    own = rows(0, [7, 100], max_at_k=1)
    histogram = rows(1, [5000], bins=None, max_at_k=None)
    archive = archive_of(tmp_path, own, CellRows(histogram.cell, None))
    (group,) = merged_json(archive, capsys, 0)
    assert group["maximum"] == {"max_ns": 5000, "rig": "rig-1", "k": None, "cell": f"{1:032x}"}
    assert (group["n"], group["without_distribution"]) == (2, 1)
    assert cli.invoke(["archive", "merge", archive.url]) == 0
    said = "1 cell has no distribution (imported histograms): not in these quantiles and releases"
    out = capsys.readouterr().out
    assert said in out and "release -1" not in out
    lost = rows(2, [5000], bins=None, max_ns=None, max_at_k=None, lost=1)
    add_rows(archive, {"lost": CellRows(lost.cell, None)})
    add_rows(archive, {"untold": CellRows(rows(3, [9], bins=None, max_ns=None, max_at_k=None).cell, None)})
    (group,) = merged_json(archive, capsys, 0)
    assert group["maximum"] == {"max_ns": "lost", "rig": "rig-2", "k": None, "cell": f"{2:032x}"}
    assert cli.invoke(["site", "--archive", archive.url, "-o", str(tmp_path / "site")]) == 0
    page = (tmp_path / "site/index.html").read_text()
    assert page.count("3 cells have no distribution (imported histograms): not in these quantiles") == 2


def test_rigs_are_listed_by_what_each_cell_came_to_last(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    outcomes = [("a", "c", "x", "inconclusive"), ("a", "c", "y", None), ("b", "c", "x", "pass")]
    outcomes += [
        ("b", "c", "x", "fail"),
        ("c", "c", "x", "fail"),
        ("c", "c", "x", "pass"),
        ("c", "d", "x", "pass"),
    ]
    cells = [
        rows(at, [7], rig=rig, campaign=campaign, id=id_, outcome=outcome, kernel="6.10" if at else "6.9")
        for at, (rig, campaign, id_, outcome) in enumerate(outcomes)
    ]
    archive = archive_of(tmp_path, *cells)
    assert cli.invoke(["archive", "ls", archive.url, "--json"]) == 0
    found = json.loads(capsys.readouterr().out)["rows"]
    counts = [(row["rig"], row["failing"], row["passing"], row["undecided"]) for row in found]
    assert counts == [("b", 1, 0, 0), ("a", 0, 0, 2), ("c", 0, 2, 0)], "the worst first"
    assert [row["kernel"] for row in found] == ["6.10"] * 3
    with answering(archive) as backend:
        (group,) = merged(backend, GroupsAsked())
    assert group.maximum == (7, "a", None, f"{0:032x}"), "of equal ones that of the first cell"


def test_a_group_does_not_pass_by_those_cells_alone_that_have_a_requirement(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    asked, *free = (rows(number, [100] * 1000, **(PASSING if number == 0 else {})) for number in range(3))
    archive = archive_of(tmp_path, asked, *free)
    (group,) = merged_json(archive, capsys, 3)
    said = "0 of 1,000 releases of 1 rig missed: 2 cells have no requirement"
    assert (group["verdict"]["outcome"], group["verdict"]["reason"]) == ("inconclusive", said)
    (passing,) = merged_json(archive, capsys, 0, "--where", "miss_ratio=0.1")
    assert passing["verdict"]["outcome"] == "pass"


@pytest.mark.full_only("Spark, which takes half a minute to start")
@pytest.mark.skipif(not SPARK, reason="needs PySpark and Java")
def test_spark_passes_over_nothing_either(tmp_path: Path) -> None:
    cells = [rows(number, [100, 200], **PASSING, **of) for number, of in enumerate((WAKEUP, *OTHERS, {}))]
    cells += [rows(10, [1], valid=False, n=None, bins=None, **(PASSING | {"outcome": "error"}), **WAKEUP)]
    cells += [rows(11, [1], valid=False, n=None, bins=None), rows(12, [300], **WAKEUP)]
    cells += [CellRows(rows(13, [9000], bins=None, max_at_k=None, **WAKEUP).cell, None)]
    archive = archive_of(tmp_path, *cells)
    asked = GroupsAsked(by=["kernel", "miss_ratio"]), GroupsAsked()
    with answering(archive) as backend:
        expected = [plain(merged(backend, one)) for one in asked], trend(backend, GroupsAsked()).invalid
    assert expected[1] == 2
    with answering(archive, "spark") as backend:
        found = [plain(merged(backend, one)) for one in asked], trend(backend, GroupsAsked()).invalid
    assert found == expected
