"""`import rtmeter`: the same numbers as the command line, typed, and light to import."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
import venv
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from test_imports import imported_of

import rtmeter
from rtmeter import cli
from synthetic import Made, write_cell, write_failed_cell
from traced_cells import LATE_NS, write_traced

ROOT = Path(__file__).resolve().parents[2]

USER_SCRIPT = """
import rtmeter

results = rtmeter.read("results")
table = results.cells
for verdict in results.verdict(deadline="1ms", miss_ratio=1e-6):
    bound: float | None = verdict.verdict.upper if verdict.verdict else None
    print(verdict.id, verdict.outcome, bound)
shift: float = results.compare("other").cells[0].found.shifts[0].difference  # type: ignore[union-attr]
late: int = results.explain("a").found.causes[0].lateness_ns
try:
    results.samples("nothing")
except rtmeter.RtmeterError as error:
    remedy: str | None = error.remedy
"""


@pytest.fixture(scope="module")
def root(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """``a`` and ``b`` with the same cells, those of b later by 10 us; one repeated, one failed."""
    found = tmp_path_factory.mktemp("api")
    for side, more in (("a", 0), ("b", 10_000)):
        delays = lambda k, more=more: (40_000 + more + 7 * (k * 37 % 1000),)  # noqa: E731
        for repeat in (1, 2):
            made = Made(id=f"late-r{repeat}", samples=2000, delays=delays, axes={"repeat": repeat})
            write_cell(found / side / f"late-r{repeat}", made)
        trip = Made(id="trip", measurement="roundtrip", samples=50, delays=lambda k: (1e4, 1e4, 1e4))
        write_cell(found / side / "trip", trip)
    write_failed_cell(found / "a" / "failed", Made(id="failed"), {"message": "was not there"})
    return found


def printed(capsys: pytest.CaptureFixture[str], *line: str) -> Any:
    cli.invoke([*line, "--json"])
    return json.loads(capsys.readouterr().out)


def as_read(value: Any) -> Any:
    return json.loads(json.dumps(value))


def test_the_summary_is_that_of_the_command_line(root: Path, capsys: pytest.CaptureFixture[str]) -> None:
    found = as_read(rtmeter.read(root / "a").summary())
    assert {"cells": found} == printed(capsys, "summary", str(root / "a"))
    assert [cell["id"] for cell in found] == ["failed", "late-r1", "late-r2", "trip"]


@pytest.mark.parametrize(
    ("asked", "flags"),
    [
        ({"deadline": "1ms"}, ["--deadline", "1ms"]),
        ({"deadline": 43_000, "miss_ratio": 0.3}, ["--deadline", "43us", "--miss-ratio", "0.3"]),
        (
            {"deadline": "43us", "miss_ratio": "50%", "confidence": 0.9, "criticality": "hard"},
            ["--deadline", "43us", "--miss-ratio", "50%", "--confidence", "90%", "--criticality", "hard"],
        ),
        ({"deadline": "1ms", "once_in": "10s"}, ["--deadline", "1ms", "--once-in", "10s"]),
        ({"miss_ratio": 0.3, "horizon": 5}, ["--miss-ratio", "0.3", "--horizon", "5"]),
        ({}, []),
    ],
)
def test_verdicts_are_those_of_the_command_line(
    asked: dict[str, Any], flags: list[str], root: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    found = rtmeter.read(root / "a").verdict(**asked)
    assert {"cells": as_read([one.to_json() for one in found])} == printed(
        capsys, "verdict", str(root / "a"), *flags
    )
    assert [one.id for one in found] == ["failed", "late", "trip"]
    assert [one.id for one in found[1].repeats] == ["late-r1", "late-r2"]


def test_a_verdict_says_what_it_rests_on(root: Path) -> None:
    (found,) = rtmeter.read(root / "a/late-r1").verdict("43us", miss_ratio=0.9)
    assert found.verdict is not None
    values = rtmeter.read(root / "a/late-r1").samples().to_pandas()
    measured = values[~values["warm_up"]]
    assert found.verdict.misses == int((measured["wake_ns"] - measured["release_ns"] > 43_000).sum()) > 0
    assert (found.outcome, found.reason) == (found.verdict.outcome, found.verdict.reason)


@pytest.mark.parametrize(
    ("asked", "flags"),
    [
        ({}, []),
        ({"gates": ["p99<+5%"], "deadline": "43us"}, ["--gate", "p99<+5%", "--deadline", "43us"]),
        ({"confidence": 0.8, "force": True}, ["--confidence", "80%", "--force"]),
    ],
)
def test_comparisons_are_those_of_the_command_line(
    asked: dict[str, Any], flags: list[str], root: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    a, b = rtmeter.read(root / "a"), rtmeter.read(root / "b")
    found = a.compare(b, **asked)
    assert as_read(found.to_json()) == printed(capsys, "compare", str(root / "a"), str(root / "b"), *flags)
    assert as_read(a.compare(root / "b", **asked).to_json()) == as_read(found.to_json())
    assert found.only_in_a == ["failed"]


def test_cells_are_a_table_with_the_numbers_of_the_summary(root: Path) -> None:
    results = rtmeter.read(root / "a")
    rows = results.cells.to_pylist()
    assert len(results) == 4 and results.names == list(dict.fromkeys(row["cell"] for row in rows))
    summaries = {cell["id"]: cell for cell in results.summary()}
    statistics = [name for name in results.cells.column_names if name.endswith("_ns")]
    compared = 0
    for row in rows:
        if row["quantity"] is not None:
            values = summaries[row["id"]]["quantities"][row["quantity"]][row["view"]]
            for name in set(statistics) & set(values):
                expected = None if name in row["lost"] else values[name]
                assert row[name] == expected, name
                compared += 1
    assert compared > 50
    (failed,) = [row for row in rows if row["cell"] == "failed"]
    assert (failed["status"], failed["n"], failed["quantity"]) == ("failed", None, None)


def test_a_statistic_that_falls_on_a_lost_release_is_named(tmp_path: Path) -> None:
    made = Made(id="trip", measurement="roundtrip", samples=20, delays=lambda k: (1e4, None, 1e4))
    table = rtmeter.read(write_cell(tmp_path / "trip", made)).cells.to_pylist()
    (response,) = [row for row in table if (row["quantity"], row["view"]) == ("response", "per_release")]
    assert "max_ns" in response["lost"] and response["max_ns"] is None


def test_samples_are_what_is_stored(root: Path) -> None:
    table = rtmeter.read(root / "a").samples("late-r2")
    assert table.num_rows == 2100
    late = np.asarray(table["wake_ns"]) - np.asarray(table["release_ns"])
    assert late[150] == 40_000 + 7 * (150 * 37 % 1000)


def test_an_explanation_is_that_of_the_command_line(
    root: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    write_traced(tmp_path / "traced", "driver")
    results = rtmeter.read([tmp_path, root / "a" / "trip"])
    name = next(name for name in results.names if name.endswith("traced"))
    found = results.explain(name)
    assert as_read(found.to_json()) == printed(capsys, "explain", str(tmp_path / "traced"))
    assert [(one.key.who, one.releases, one.lateness_ns) for one in found.found.causes] == [
        ("driver", 8, 8 * LATE_NS)
    ]
    monkeypatch.setattr("rtmeter.judge.explained.MOST_IN_TIME", 1)
    (asked,) = printed(capsys, "explain", str(tmp_path / "traced"), "--release", "6")["releases"]
    assert asked not in as_read(results.explain(name).to_json())["releases"]
    assert asked in as_read(results.explain(name, release=6).to_json())["releases"]
    with pytest.raises(rtmeter.RtmeterError, match="release = 99: is not among the releases"):
        results.explain(name, release=99)


def test_sql_is_that_of_the_command_line(root: Path, capsys: pytest.CaptureFixture[str]) -> None:
    text = "SELECT cell, count(*) AS n FROM samples GROUP BY cell ORDER BY cell"
    found = rtmeter.read(root / "a").sql(text).to_pylist()
    assert found == printed(capsys, "sql", text, str(root / "a"))["rows"]
    assert len(found) == 3


def test_several_paths_are_read_as_one(root: Path) -> None:
    results = rtmeter.read([root / "a", root / "b" / "trip", root / "a"])
    assert results.names == ["a/failed", "a/late-r1", "a/late-r2", "a/trip", "b/trip"]
    assert repr(results) == "<rtmeter results: 5 cells>"


@pytest.mark.parametrize(
    ("call", "field", "remedy"),
    [
        (lambda r: r.samples("late-r3"), "cell", "did you mean"),
        (lambda r: r.samples(), "cell", "give one of names"),
        (lambda r: r.samples("failed"), "cell", "measure again"),
        (lambda r: r.verdict("1"), "deadline", "with its unit"),
        (lambda r: r.verdict("1ms", miss_ratio=2), "miss_ratio", ""),
        (lambda r: r.verdict("1ms", criticality="severe"), "criticality", "choose"),
        (lambda r: r.verdict("1ms", once_in="x"), "once_in", "with its unit"),
        (lambda r: r.compare(r, gates=["p99"]), "gate", ""),
        (lambda r: r.compare("nothing"), "path", ""),
        (lambda r: r.sql("SELECT"), "SELECT", ""),
        (lambda r: r.explain("late-r3"), "cell", "did you mean"),
        (lambda r: r.explain("trip"), "cell", "measure it with --explain"),
    ],
)
def test_errors_name_field_and_remedy(call: Any, field: str, remedy: str, root: Path) -> None:
    with pytest.raises(rtmeter.RtmeterError) as caught:
        call(rtmeter.read(root / "a"))
    assert caught.value.field == field
    assert remedy in (caught.value.remedy or "")


def test_the_public_names_are_there_and_no_others() -> None:
    for name in rtmeter.__all__:
        assert getattr(rtmeter, name).__doc__
        assert name in dir(rtmeter)
    with pytest.raises(AttributeError, match="no attribute 'reed'"):
        _ = rtmeter.reed


def test_the_import_is_light_and_reading_needs_no_pandas() -> None:
    heavy = "numpy pyarrow pydantic scipy duckdb typer rich yaml pandas rtmeter.api"
    assert imported_of("import rtmeter; rtmeter.RtmeterError", heavy) == "[]\n"
    assert imported_of("import rtmeter; rtmeter.read", "duckdb typer rich jinja2 pandas altair") == "[]\n"


def test_a_users_script_is_typed(tmp_path: Path) -> None:
    """As where rtmeter is installed: in site-packages, with mypy's own settings."""
    venv.create(tmp_path / "venv", with_pip=False)
    (packages,) = (tmp_path / "venv/lib").glob("python3*/site-packages")
    shutil.copytree(ROOT / "src/rtmeter", packages / "rtmeter", ignore=shutil.ignore_patterns("probes"))
    (tmp_path / "script.py").write_text(USER_SCRIPT)
    (tmp_path / "wrong.py").write_text(USER_SCRIPT.replace('"1ms"', "1.5"))
    python = str(tmp_path / "venv/bin/python")
    command = [
        sys.executable,
        "-m",
        "mypy",
        "--strict",
        "--python-executable",
        python,
        "script.py",
        "wrong.py",
    ]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True)
    assert [line.partition(": ")[2] for line in done.stdout.splitlines()[:-1]] == [
        'error: Argument "deadline" to "verdict" of "Results" has incompatible type "float"; '
        'expected "str | int | None"  [arg-type]'
    ], done.stdout
