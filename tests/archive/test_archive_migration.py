"""An archive of an older version: read as it is, brought to this one by who adds to it."""

from __future__ import annotations

import json
from pathlib import Path

import pyarrow as pa
import pytest
from archives import rows

from rtmeter import cli
from rtmeter.archive import schema, tables
from rtmeter.archive.add import add_rows
from rtmeter.archive.schema import CELLS, FORMAT, SCHEMAS, VERSION
from rtmeter.archive.tables import archive_at

LATER = ("design_effect", "upper", "refused", "drive", "components", "rmw", "server_kernel")
"""Columns of ``cells`` that version 0, made up here, did not have."""


def test_an_older_archive_is_read_as_it_is_and_migrated_by_who_adds(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    place = str(tmp_path / "archive")
    with monkeypatch.context() as older:
        then = pa.schema([field for field in SCHEMAS[CELLS] if field.name not in LATER])
        older.setitem(SCHEMAS, CELLS, then)
        for module in (schema, tables):
            older.setattr(module, "VERSION", 0)
        archive_at(place).make()
        _add(place, 1, 2, 3)
        assert _versions(place) == {0}
        assert not set(LATER) & set(_columns(place))

    before = archive_at(place).table(CELLS).version()
    assert (
        cli.invoke(["archive", "sql", "SELECT count(*) n, count(upper) u FROM cells", place, "--json"]) == 0
    )
    assert json.loads(capsys.readouterr().out)["rows"] == [{"n": 3, "u": 0}]
    assert cli.invoke(["archive", "check", place]) == 0
    assert cli.invoke(["archive", "merge", place]) in (0, 2, 3)
    assert cli.invoke(["archive", "merge", place, "--by", "rmw"]) in (0, 2, 3)
    assert cli.invoke(["archive", "trend", place]) == 0
    assert archive_at(place).table(CELLS).version() == before and _versions(place) == {0}
    capsys.readouterr()

    archive_at(place).make()  # as `archive add` begins
    _add(place, 4)
    assert _versions(place) == {VERSION}
    assert set(_columns(place)) == set(SCHEMAS[CELLS].names)
    assert cli.invoke(["archive", "sql", "SELECT count(*) n FROM cells", place, "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["rows"] == [{"n": 4}]
    assert cli.invoke(["archive", "check", place]) == 0
    again = archive_at(place).table(CELLS).version()
    archive_at(place).make()
    assert archive_at(place).table(CELLS).version() == again  # nothing is left to migrate


def _add(place: str, *numbers: int) -> None:
    found = [rows(number, [number, 10 * number]) for number in numbers]
    assert add_rows(archive_at(place), {one.cell["cell"]: one for one in found}) == len(numbers)


def _versions(place: str) -> set[int]:
    told = [json.loads(archive_at(place).table(name).metadata().description) for name in SCHEMAS]
    assert {one["format"] for one in told} == {FORMAT}
    return {one["version"] for one in told}


def _columns(place: str) -> list[str]:
    return list(pa.schema(archive_at(place).table(CELLS).schema().to_arrow()).names)
