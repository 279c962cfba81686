"""`rtmeter sql`: one SELECT over cells and samples, and nothing else."""

from __future__ import annotations

import json
from pathlib import Path

import pyarrow.parquet as pq
import pytest

from rtmeter import cli
from rtmeter.cli.commands import sql
from synthetic import Made, write_cell, write_failed_cell

LATE = (
    "SELECT cell, max(wake_ns - release_ns) AS most FROM samples WHERE NOT warm_up "
    "GROUP BY cell ORDER BY cell"
)


@pytest.fixture(scope="module")
def root(tmp_path_factory: pytest.TempPathFactory) -> Path:
    found = tmp_path_factory.mktemp("sql")
    write_cell(found / "results/good", Made(id="good", samples=100))
    late = Made(
        id="late",
        samples=100,
        axes={"load": "idle"},
        delays=lambda k: [2_000_000 if k == 150 else 1000],
    )
    write_cell(found / "results/late", late)
    write_failed_cell(found / "results/failed", Made(id="failed"), {"message": "was not there"})
    return found


@pytest.fixture(autouse=True)
def _there(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(root)


def test_results_are_the_default_and_json_has_columns_and_rows(capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.invoke(["sql", LATE, "--json"]) == 0
    assert json.loads(capsys.readouterr().out) == {
        "columns": ["cell", "most"],
        "rows": [{"cell": "good", "most": 50_000}, {"cell": "late", "most": 2_000_000}],
    }


NESTED = "[date '2026-11-26'] AS days, {'a': sum(k)} AS found, ['nan'::DOUBLE] AS none"


def test_sums_are_numbers_and_what_json_has_no_type_for_is_text_wherever_it_stands(
    capsys: pytest.CaptureFixture[str],
) -> None:
    of = "FROM samples WHERE cell = 'good' AND NOT warm_up"
    assert cli.invoke(["sql", f"SELECT sum(k) AS whole, 1.5 AS part, {NESTED} {of}", "--json"]) == 0
    (row,) = json.loads(capsys.readouterr().out)["rows"]
    whole = sum(range(100, 200))
    assert row == {
        "whole": whole,
        "part": 1.5,
        "days": ["2026-11-26"],
        "found": {"a": whole},
        "none": [None],
    }
    assert cli.invoke(["sql", f"SELECT {NESTED} {of}", "--csv"]) == 0
    said = capsys.readouterr().out.replace('""', '"')
    assert f'"["2026-11-26"]","{{"a": {whole}}}","[null]"' in said
    assert cli.invoke(["sql", "SELECT a.cell, b.cell FROM cells a JOIN cells b USING (n)", "--json"]) == 1
    assert "two columns have one name" in capsys.readouterr().err
    assert cli.invoke(["sql", f"SELECT sum(k) AS whole {of}"]) == 0
    assert f"{whole:,}" in capsys.readouterr().out


def test_cells_have_a_row_a_view_and_a_failed_one_has_its_row(capsys: pytest.CaptureFixture[str]) -> None:
    text = (
        "SELECT cell, status, quantity, n, max_ns, outcome, axis_load FROM cells WHERE view = 'per_release' "
    )
    assert cli.invoke(["sql", text + "OR view IS NULL ORDER BY cell", "--csv"]) == 0
    assert capsys.readouterr().out.splitlines() == [
        '"cell","status","quantity","n","max_ns","outcome","axis_load"',
        '"failed","failed",,,,"error",',
        '"good","complete","latency",100,50000,"inconclusive",',
        '"late","complete","latency",100,2000000,"fail","idle"',
    ]


def test_cells_of_several_folders_are_named_by_what_tells_them_apart(
    capsys: pytest.CaptureFixture[str],
) -> None:
    text = "SELECT DISTINCT cell FROM samples ORDER BY cell"
    assert cli.invoke(["sql", text, "results/late", "results/good", "results/late", "--csv"]) == 0
    assert capsys.readouterr().out.split() == ['"cell"', '"good"', '"late"']
    assert cli.invoke(["sql", text, "results/late", "--csv"]) == 0
    assert capsys.readouterr().out.split() == ['"cell"', '"late"']


def test_a_table_for_people(capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.invoke(["sql", "SELECT cell, most, NULL AS nothing FROM (" + LATE + ")"]) == 0
    out = capsys.readouterr().out
    assert [line.split() for line in out.splitlines() if "00" in line] == [
        ["good", "50,000", "-"],
        ["late", "2,000,000", "-"],
    ]


def test_files(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for name in ("a.parquet", "a.csv"):
        assert cli.invoke(["sql", LATE, "-o", str(tmp_path / name)]) == 0
        assert capsys.readouterr().out == f"{tmp_path / name}\n"
    assert pq.read_table(tmp_path / "a.parquet").to_pydict()["most"] == [50_000, 2_000_000]
    assert (tmp_path / "a.csv").read_text() == '"cell","most"\n"good",50000\n"late",2000000\n'
    assert sorted(path.name for path in tmp_path.iterdir()) == ["a.csv", "a.parquet"]


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("selec 1", 'syntax error at or near "selec"; the tables are cells and samples'),
        ("SELECT nope FROM cells", 'referenced column "nope" not found'),
        ("SELECT 1; SELECT 2", "is not one statement; write one SELECT"),
        ("", "is not one statement"),
        ("COPY (SELECT 1) TO 'x'", "is COPY, and only SELECT is answered"),
        ("SET threads = 1", "only SELECT is answered"),
        ("INSTALL httpfs", "only SELECT is answered"),
        ("ATTACH 'x.db'", "only SELECT is answered"),
        ("CREATE TABLE x AS SELECT 1", "only SELECT is answered"),
        ("EXPLAIN SELECT 1", "is EXPLAIN, and only SELECT is answered"),
        ("EXPLAIN ANALYZE CREATE TABLE x AS SELECT 1", "only SELECT is answered"),
        ("SELECT * FROM read_text('results/good/cell.json')", "only the tables cells and samples are read"),
        ("SELECT * FROM read_csv('/etc/passwd')", "only the tables cells and samples are read"),
        ("SELECT * FROM read_parquet('https://example.org/a.parquet')", "only the tables cells and samples"),
        ("SELECT * FROM 'results/good/cell.json'", "only the tables cells and samples are read"),
        ("SELECT * FROM names", "does not exist"),
        ("SELECT", "SELECT clause without selection list"),
    ],
)
def test_what_is_not_answered(text: str, said: str, capsys: pytest.CaptureFixture[str]) -> None:
    before = sorted(Path().rglob("*"))
    assert cli.invoke(["sql", text]) == 1
    printed = capsys.readouterr()
    assert (printed.out, printed.err.count("rtmeter:")) == ("", 1)
    assert printed.err.startswith("rtmeter: SELECT = ") and said in printed.err
    assert sorted(Path().rglob("*")) == before


def test_no_statement_within_another_writes_what_is_read(
    root: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    samples = root / "results/good/samples.parquet"
    before = samples.read_bytes()
    inner = f"COPY (SELECT 42 AS k FROM samples) TO '{samples}' (FORMAT csv, USE_TMP_FILE false)"
    for text in (f"EXPLAIN ANALYZE {inner}", f"EXPLAIN (ANALYZE, FORMAT json) {inner}", inner):
        assert cli.invoke(["sql", text]) == 1
        assert "only SELECT is answered" in capsys.readouterr().err
        assert samples.read_bytes() == before


@pytest.mark.parametrize(
    ("more", "said"),
    [
        (["-o", "x.txt"], "-o = 'x.txt': is no format of a table; end it with .parquet or .csv"),
        (["-o", "nowhere/x.csv"], "-o = 'nowhere/x.csv': cannot be written"),
        (["--csv", "--json"], "--csv: contradicts --json"),
        (["nothing"], "path = 'nothing': is not there"),
    ],
)
def test_wrong_options(more: list[str], said: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.invoke(["sql", LATE, *more]) == 1
    assert said in capsys.readouterr().err


def test_the_archive_refuses_what_contradicts_itself_likewise(capsys: pytest.CaptureFixture[str]) -> None:
    pytest.importorskip("deltalake")
    assert cli.invoke(["archive", "sql", "SELECT 1", "--csv", "--json"]) == 1
    assert "--csv: contradicts --json" in capsys.readouterr().err


def test_both_examples_of_the_help_are_answered(capsys: pytest.CaptureFixture[str]) -> None:
    examples = [text.split('"')[1] for text in (sql.EXAMPLE, sql.DETAILS.partition("rtmeter sql")[2])]
    for text in examples:
        assert text.startswith("SELECT")
        assert cli.invoke(["sql", text, "--json"]) == 0
        assert len(json.loads(capsys.readouterr().out)["rows"]) == 2
    assert cli.invoke(["sql", "--help"]) == 0
    assert capsys.readouterr().out.count("Example:") == 2
