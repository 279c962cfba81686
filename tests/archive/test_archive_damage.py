"""What goes wrong with an archive, and what then happens."""

from __future__ import annotations

import csv
import json
import shutil
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import duckdb
import numpy as np
import pyarrow as pa
import pytest
from archives import cells_in, files_of, rows, write_cells

from rtmeter import cli
from rtmeter.archive.add import add, add_rows
from rtmeter.archive.check import _extremes, _named, check
from rtmeter.archive.engine import answering, telling
from rtmeter.archive.groups import GroupsAsked, merged
from rtmeter.archive.schema import SCHEMAS, VERSION
from rtmeter.archive.tables import archive_at
from rtmeter.errors import RtmeterError
from rtmeter.results.cells import find_cells
from rtmeter.statistics.fixed_bins import Binned, bin_numbers


@pytest.fixture(scope="module")
def template(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("archive") / "whole"
    archive = archive_at(folder)
    archive.make()
    for numbers in ((1, 2), (3, 4)):
        group = [rows(number, [number, 10 * number, 2000 * number]) for number in numbers]
        add_rows(archive, {one.cell["cell"]: one for one in group})
    return folder


@pytest.fixture
def place(template: Path, tmp_path: Path) -> Path:
    """An archive of four cells that may be damaged."""
    return Path(shutil.copytree(template, tmp_path / "archive"))


def refused(capsys: pytest.CaptureFixture[str], *command: str) -> str:
    """The one line that is said."""
    assert cli.invoke(["archive", *command]) == 1
    (line,) = [one for one in capsys.readouterr().err.splitlines() if one.startswith("rtmeter: ")]
    return line


def test_a_byte_that_is_wrong_within_a_file_is_told_as_damage_wherever_it_is(
    place: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """In its footer DuckDB's words for it are an error of no kind."""
    file = max((place / "cells").glob("*.parquet"), key=lambda one: one.stat().st_size)
    whole, told = file.read_bytes(), 0
    footer = len(whole) - 8 - int.from_bytes(whole[-8:-4], "little")
    for at in range(footer + 2, len(whole) - 8, (len(whole) - 8 - footer) // 24):
        file.write_bytes(whole[:at] + bytes([whole[at] ^ 0x18]) + whole[at + 1 :])
        code = cli.invoke(["archive", "ls", str(place)])
        said = capsys.readouterr().err
        assert code == 0 or "`rtmeter archive check` names every file that is missing or damaged" in said
        told += code
    assert told > 5


def says_version(place: Path, table: str, version: int) -> None:
    """The table as a rtmeter of another version has made it."""
    log = place / table / "_delta_log" / f"{0:020}.json"
    actions = [json.loads(line) for line in log.read_text().splitlines()]
    for action in actions:
        if "metaData" in action:
            about = {"format": "rtmeter-archive", "version": version}
            action["metaData"]["description"] = json.dumps(about)
    log.write_text("\n".join(map(json.dumps, actions)))


def test_an_archive_of_a_future_version_is_refused_by_all_and_not_changed(
    place: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    says_version(place, "cells", VERSION + 1)
    before = sorted(path.name for path in place.rglob("*"))
    for command in (["ls", str(place)], ["check", str(place)], ["add", "nowhere", "--to", str(place)]):
        said = refused(capsys, *command)
        assert f"version {VERSION + 1}" in said and "update rtmeter" in said
    assert sorted(path.name for path in place.rglob("*")) == before


def test_a_delta_table_of_others_is_no_archive(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    from deltalake import DeltaTable

    DeltaTable.create(tmp_path / "cells", SCHEMAS["cells"], description="mine")
    assert "of no archive of rtmeter" in refused(capsys, "ls", str(tmp_path))


def test_a_missing_file_is_named(place: Path, capsys: pytest.CaptureFixture[str]) -> None:
    gone = next(files_of(archive_at(str(place)), "distributions"))
    gone.unlink()
    assert cli.invoke(["archive", "check", str(place)]) == 1
    printed = capsys.readouterr()
    assert f"damage: distributions/{gone.name} is missing: 2 rows" in printed.out
    assert "is not whole: 1 flaws" in printed.err
    said = refused(capsys, "sql", "SELECT * FROM distributions", str(place))
    assert gone.name in said and "rtmeter archive check" in said


def test_a_half_written_file_is_named(place: Path, capsys: pytest.CaptureFixture[str]) -> None:
    torn = next(files_of(archive_at(str(place)), "cells"))
    torn.write_bytes(torn.read_bytes()[: torn.stat().st_size // 2])
    (flaw,) = check(archive_at(str(place)))[1]
    assert flaw.kind == "damage" and flaw.message.startswith(f"cells/{torn.name} cannot be read")
    for command in (["ls", str(place)], ["sql", "SELECT * FROM cells", str(place)]):
        assert "rtmeter archive check" in refused(capsys, *command)


@pytest.mark.parametrize(
    ("error", "ours", "is_damage"),
    [
        (duckdb.OutOfMemoryException("no room"), True, False),
        (duckdb.BinderException("no column n"), True, True),
        (duckdb.BinderException("no column n"), False, False),
        (duckdb.BinderException("no column n in cells/1.parquet"), False, False),
        (duckdb.Error("TProtocolException: Invalid data"), False, True),
    ],
)
def test_what_is_damage_goes_by_the_error_and_by_who_asked(
    error: duckdb.Error, ours: bool, is_damage: bool
) -> None:
    with pytest.raises(RtmeterError if is_damage else type(error)), telling(archive_at("/lab"), ours=ours):
        raise error


@pytest.mark.parametrize("place", ["s3://lab/archive", "/lab/archive"])
def test_a_store_that_spark_cannot_read_is_no_damage(place: str) -> None:
    refusing = type("Py4JJavaError", (Exception,), {"__module__": "py4j.protocol"})
    with pytest.raises(RtmeterError) as caught, telling(archive_at(place)):
        raise refusing('UnsupportedFileSystemException: No FileSystem for scheme "s3"')
    assert 'No FileSystem for scheme "s3"' in caught.value.message
    remedy = caught.value.remedy or ""
    if place.startswith("s3://"):
        assert (caught.value.field, caught.value.value) == ("--engine", "spark")
        assert place in caught.value.message and "s3:// " in remedy and "leave out --engine spark" in remedy
    else:
        assert caught.value.field == "archive" and "rtmeter archive check" in remedy


def test_a_missing_table_is_named(place: Path, capsys: pytest.CaptureFixture[str]) -> None:
    shutil.rmtree(place / "maxima")
    assert "its table maxima is not there" in refused(capsys, "ls", str(place))


BROKEN = {
    "UPDATE distributions SET n = n + 1": "has a distribution of another n than its own",
    "UPDATE distributions SET lost = lost + 1": "has bins that do not add up to n",
    "UPDATE distributions SET max_ns = max_ns * 2": "has a maximum that is not in its outermost bin",
    "UPDATE distributions SET min_ns = min_ns * 2": "has a minimum that is not in its outermost bin",
    "UPDATE cells SET bins = bins + 1": "has a distribution of another n than its own",
    "UPDATE cells SET blocks = blocks + 1": "has another number of block maxima than it says",
    "UPDATE cells SET causes = 1": "has another number of causes than it says",
    "UPDATE cells SET findings = 1": "has another number of findings than it says",
    "UPDATE cells SET bins = NULL": "has a distribution, and says that it has none",
    "UPDATE cells SET max_ns = max_ns * 7": "has another minimum or maximum than its distribution",
    "UPDATE cells SET min_ns = min_ns - 1": "has another minimum or maximum than its distribution",
    "UPDATE cells SET max_at_k = 5": "has another minimum or maximum than its distribution",
    "UPDATE cells SET misses = n + 5": "or more than releases",
    "UPDATE cells SET p50_ns = 1000000000": "has a p50 that is not that of its bins",
    "UPDATE cells SET p99_9_ns = NULL": "has a p99.9 that is not that of its bins",
}


@pytest.mark.parametrize("change", BROKEN)
def test_numbers_that_do_not_agree_are_seen(place: Path, change: str) -> None:
    _, table, _, column, _, *value = change.split()
    archive = archive_at(str(place))
    archive.table(table).update(updates={column: " ".join(value)})
    found = check(archive)[1]
    assert len({flaw.message.split(" has ", 1)[0] for flaw in found}) == 4
    assert BROKEN[change] in found[0].message or BROKEN[change] in found[-1].message


@pytest.mark.parametrize("beside", [-1, 0, 1])
def test_an_extreme_beside_its_bin_is_seen_wherever_it_lies(beside: int) -> None:
    edges = np.r_[
        np.arange(-200, 5000), 2 ** np.arange(1, 62), 2 ** np.arange(1, 62) - 1, -(2 ** np.arange(1, 62))
    ]
    values = np.unique(edges)
    counts = [[{"bin": number + beside, "count": 1}] for number in bin_numbers(values).tolist()]
    cells = list(map(str, values))
    with duckdb.connect() as connection:
        table = {"cell": cells, "min_ns": values, "max_ns": values, "counts": counts}
        connection.register("distributions", pa.table(table))
        found = [flaw.message.split()[1] for flaw in _extremes(connection)]
    assert sorted(found) == sorted(2 * cells if beside else [])


def test_a_cell_that_is_there_twice_is_seen(place: Path) -> None:
    archive = archive_at(str(place))
    archive.append("cells", archive.table("cells").to_pyarrow_table())
    messages = [flaw.message for flaw in check(archive)[1]]
    assert sum("is there more than once" in message for message in messages) == 4


def test_a_cell_with_two_distributions_or_none_is_seen(place: Path) -> None:
    archive = archive_at(str(place))
    archive.append("distributions", archive.table("distributions").to_pyarrow_table())
    for _ in range(2):
        messages = [flaw.message for flaw in check(archive)[1]]
        assert sum("has no distribution, or several" in message for message in messages) == 4
        archive.table("distributions").delete()


def test_of_many_cells_with_one_flaw_some_are_named_and_all_counted() -> None:
    found = [flaw.message for flaw in _named("is damaged", [f"{number:04}" for number in range(1_025)])]
    assert (found[0], found[19]) == ("cell 0000 is damaged", "cell 0019 is damaged")
    assert found[20:] == ["1,005 further cells: is damaged"]


def test_a_bin_of_nothing_is_seen(tmp_path: Path) -> None:
    archive = archive_at(tmp_path / "archive")
    archive.make()
    bins = Binned(np.array([1, 2, 3]), np.array([1, 0, 1]), 0)
    add_rows(archive, {"x": replace(rows(1, [1, 3], bins=3), binned=bins)})
    assert ["has bins that do not add up" in flaw.message for flaw in check(archive)[1]] == [True]


@pytest.mark.parametrize("column", ["n", "max_ns"])
def test_blocks_that_do_not_agree_with_their_cell_are_seen(tmp_path: Path, column: str) -> None:
    write_cells(tmp_path / "results", rigs=1, days=1, samples=200)
    archive = archive_at(tmp_path / "archive")
    add(archive, find_cells(tmp_path / "results"))
    assert check(archive) == (1, [])
    archive.table("maxima").update(updates={column: f"{column} + 1"})
    assert ["has blocks that do not add up" in flaw.message for flaw in check(archive)[1]] == [True]


def test_what_a_killed_writer_left_is_seen_by_nobody(place: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """It was killed before its cells: their distributions are in the files, and in no answer."""
    archive = archive_at(str(place))
    archive.append("distributions", _distribution_of_none(archive))
    assert check(archive) == (4, [])
    with answering(archive) as backend:
        (group,) = merged(backend, GroupsAsked())
    assert (group.cells, group.distribution.n) == (4, 12)
    assert cli.invoke(["archive", "sql", "SELECT count(*) AS n FROM distributions", str(place), "--csv"]) == 0
    assert capsys.readouterr().out.split() == ['"n"', "4"]


def _distribution_of_none(archive):  # type: ignore[no-untyped-def]
    import pyarrow as pa

    table = archive.table("distributions").to_pyarrow_table()
    return table.set_column(table.schema.get_field_index("batch"), "batch", pa.array(["killed"] * len(table)))


_REFUSES = """
from http.server import BaseHTTPRequestHandler, HTTPServer
class Refusing(BaseHTTPRequestHandler):
    def refuse(self):
        self.send_response(403)
        self.send_header("Content-Length", "0")
        self.end_headers()
    do_GET = do_PUT = do_HEAD = do_POST = do_DELETE = refuse
    log_message = lambda *_: None
server = HTTPServer(("127.0.0.1", 0), Refusing)
print(server.server_port, flush=True)
server.serve_forever()
"""


@pytest.fixture
def refusing_store(monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    """The URL of a place in an object store that refuses whatever it is asked."""
    server = subprocess.Popen([sys.executable, "-c", _REFUSES], stdout=subprocess.PIPE, text=True)
    assert server.stdout is not None
    monkeypatch.setenv("AWS_ENDPOINT_URL", f"http://127.0.0.1:{int(server.stdout.readline())}")
    monkeypatch.setenv("AWS_ALLOW_HTTP", "true")
    for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY", "AWS_REGION"):
        monkeypatch.setenv(name, "nobody")
    yield "s3://bucket/archive"
    server.kill()
    server.wait()


def test_a_store_that_refuses_is_told_as_it_is(
    refusing_store: str, capsys: pytest.CaptureFixture[str]
) -> None:
    for command in (["ls", refusing_store], ["add", "nowhere", "--to", refusing_store]):
        said = refused(capsys, *command)
        assert refusing_store in said and "403" in said and "credentials" in said


@pytest.mark.parametrize(
    "query",
    [
        "SELECT * FROM read_text('/etc/passwd')",
        "SELECT * FROM '/etc/passwd'",
        "SELECT * FROM read_parquet('/tmp/another.parquet')",
        'SELECT "another.parquet" FROM cells',
        "COPY cells TO '/tmp/stolen.csv'",
        "DROP VIEW cells",
        "SELECT 1; SELECT 2",
        "INSTALL httpfs",
        "SET enable_external_access = true",
        "EXPLAIN ANALYZE DROP VIEW cells",
    ],
)
def test_nothing_but_the_tables_is_read_and_nothing_is_written(
    query: str, place: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert "SELECT" in refused(capsys, "sql", query, str(place))
    assert check(archive_at(str(place))) == (4, [])


def test_no_statement_within_another_writes_a_table(place: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for part in place.glob("*/part-*.parquet"):
        query = f"EXPLAIN ANALYZE COPY (SELECT 42) TO '{part}' (FORMAT csv, USE_TMP_FILE false)"
        assert "only SELECT is answered" in refused(capsys, "sql", query, str(place))
        assert check(archive_at(str(place))) == (4, [])


def test_csv_has_lists_and_maps_as_json(place: Path, capfd: pytest.CaptureFixture[str]) -> None:
    for query in ("SELECT * FROM cells ORDER BY cell", "SELECT * FROM distributions ORDER BY cell"):
        assert cli.invoke(["archive", "sql", query, str(place), "--csv"]) == 0
        assert cli.invoke(["archive", "sql", query, str(place), "-o", str(place.parent / "out.csv")]) == 0
        written = (place.parent / "out.csv").read_text()
        assert capfd.readouterr().out.startswith(written)
    found = [json.loads(row["counts"]) for row in csv.DictReader(written.splitlines())]
    assert [sum(one["count"] for one in counts) for counts in found] == [3, 3, 3, 3]


NO_PLACES = ["", " ", "a%20folder", "lab[1]", "lab]", "a^b", "a|b", "a\\b", "a\tb", "a\x1bb"]


@pytest.mark.parametrize("where", [*NO_PLACES, "s3:lab", "s3:/lab", "a:b"])
def test_a_place_that_can_have_no_archive_is_refused_before_it_is_made(
    where: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    for command in (["add", "nowhere", "--to", where], ["ls", where], ["check", where], ["prune", where]):
        assert "archive = " in refused(capsys, *command)
    assert list(tmp_path.iterdir()) == []


def test_a_folder_is_a_url_too(tmp_path: Path) -> None:
    folder = tmp_path / "an archive"
    archive_at(folder.as_uri()).make()
    assert archive_at(folder).open().url == archive_at(folder.as_uri()).url == str(folder)
    for form in ("file:", "file://localhost"):
        assert archive_at(folder.as_uri().replace("file://", form)).url == str(folder)


def test_a_name_that_begins_like_a_url_is_a_folder_behind_a_dot(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    archive_at("./s3:lab").make()
    assert archive_at(tmp_path / "s3:lab").open().has("cells")


def test_a_folder_above_counts_as_part_of_the_name(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "lab[1]").mkdir()
    monkeypatch.chdir(tmp_path / "lab[1]")
    assert "has '[' in its name" in refused(capsys, "add", "nowhere", "--to", "archive")
    assert list(Path().iterdir()) == []


def test_names_from_a_rig_are_text_in_sql_and_on_a_screen(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    name = "'; DROP TABLE cells; --\x1b[2J<script>"
    archive = archive_at(tmp_path / "it's an archive")
    archive.make()
    add_rows(archive, {"x": rows(7, [1, 2], rig=name, hostname=name, kernel=name, labels=[(name, name)])})
    assert cli.invoke(["archive", "ls", archive.url]) == 0
    out = capsys.readouterr().out
    assert "DROP TABLE" in out and "\x1b" not in out
    assert cli.invoke(["archive", "sql", "SELECT rig, labels FROM cells", archive.url, "--json"]) == 0
    (row,) = json.loads(capsys.readouterr().out)["rows"]
    assert row["rig"] == name
    assert len(cells_in(archive)) == 1 and check(archive) == (1, [])
