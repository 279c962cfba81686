"""An archive in an object store: the same as in a folder, also for writers at once."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest
from archives import write_cells
from object_store import BUCKET, Store, object_store

from front import Done, ended, rtmeter, running

SOURCES = Path(__file__).parents[2] / "src"
URL = f"s3://{BUCKET}/archive"
QUESTIONS = (
    "SELECT rig, measured, n, max_ns, p99_ns FROM cells ORDER BY rig, measured",
    "SELECT cell, lost, counts FROM distributions ORDER BY cell",
    "SELECT cell, count(*), max(wake_ns) FROM samples GROUP BY cell ORDER BY cell",
)


@pytest.fixture
def store() -> Iterator[Store]:
    with object_store() as store:
        yield store


def archive(store: Store, *arguments: object, **environment: str) -> Done:
    return rtmeter("archive", *arguments, **store.environment, **environment)


def test_it_answers_what_a_folder_answers(store: Store, tmp_path: Path) -> None:
    write_cells(tmp_path / "results", rigs=2, days=1, samples=400)
    folder = str(tmp_path / "archive")
    for place in (URL, folder):
        added = archive(store, "add", tmp_path / "results", "--to", place, "--with-samples")
        assert added.code == 0, added.err
        again = archive(store, "add", tmp_path / "results", "--to", place)
        assert again.code == 0 and "0 cells added, 2 were there" in again.out
        checked = archive(store, "check", place)
        assert checked.code == 0 and "whole: 2 cells, each once" in checked.out
    for question in QUESTIONS:
        there, here = (archive(store, "sql", question, place, "--json") for place in (URL, folder))
        assert there.code == 0, there.err
        assert there.json["rows"] and there.json == here.json


def test_the_answers_that_go_through_all_of_it(store: Store, tmp_path: Path) -> None:
    write_cells(tmp_path / "results", rigs=2, days=2, samples=400)
    assert archive(store, "add", tmp_path / "results", "--to", URL, "--with-samples").code == 0
    with_pandas = {"PYTHONPATH": str(SOURCES)}  # the extra `archive` brings it
    for command, needs in (("ls", {}), ("prune", {}), ("merge", with_pandas), ("regressions", with_pandas)):
        done = archive(store, command, URL, **needs)
        assert done.code in (0, 3), done.err  # whatever the verdict of all
        assert done.out
    page = rtmeter("site", "--archive", URL, "-o", tmp_path / "site", **store.environment, **with_pandas)
    assert page.code == 0 and "rig-1" in (tmp_path / "site" / "index.html").read_text(), page.err


def test_of_two_writers_at_once_neither_loses_a_cell(store: Store, tmp_path: Path) -> None:
    """Both come with the same version of the table; the second is refused, and comes again."""
    cells = write_cells(tmp_path / "results", rigs=3, days=1, samples=400)
    assert archive(store, "add", cells[0], "--to", URL).code == 0
    store.meeting = threading.Barrier(2)
    with ExitStack() as stack:
        writers = [
            stack.enter_context(running("archive", "add", one, "--to", URL, **store.environment))
            for one in cells[1:]
        ]
        for done in map(ended, writers):
            assert done.code == 0 and "1 cells added" in done.out, done.err
    assert store.refused >= 1  # of one table at least
    checked = archive(store, "check", URL)
    assert checked.code == 0 and "whole: 3 cells, each once" in checked.out, checked.out
