"""`rtmeter archive prune`: fewer files, the same rows."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from archives import cells_in, files_of, made, rows
from deltalake import DeltaTable
from deltalake.table import TableOptimizer

from rtmeter import cli
from rtmeter.archive import claim
from rtmeter.archive.add import add_rows
from rtmeter.archive.check import check, sampled
from rtmeter.archive.prune import prune
from rtmeter.archive.tables import archive_at
from rtmeter.errors import RtmeterError
from synthetic import write_cell


def test_files_are_joined_and_no_row_is_changed(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    archive = archive_at(tmp_path / "archive")
    archive.make()
    added = [rows(number, [number, 1000]) for number in range(5)]
    for one in added[:4]:
        add_rows(archive, {one.cell["cell"]: one})
    before, seen = cells_in(archive), archive.table("cells")
    assert len(list(files_of(archive, "cells"))) == 4
    assert cli.invoke(["archive", "prune", archive.url, "--json"]) == 0
    done = json.loads(capsys.readouterr().out)
    assert (done["joined"], done["became"], done["removed"]) == (8, 2, 0)
    assert len(list(files_of(archive, "cells"))) == len(list(files_of(archive, "distributions"))) == 1
    assert cells_in(archive) == before and check(archive) == (4, [])
    assert seen.to_pyarrow_table(columns=["cell"]).num_rows == 4  # whoever reads meanwhile has its files
    add_rows(archive, {one.cell["cell"]: one for one in added})
    assert check(archive) == (5, [])


def test_what_nothing_refers_to_goes_when_it_is_old(tmp_path: Path) -> None:
    archive = archive_at(tmp_path / "archive")
    archive.make()
    for number in range(3):
        add_rows(archive, {str(number): rows(number, [number])})
    assert prune(archive).removed == 0
    assert prune(archive, kept_hours=0).removed == 6
    assert check(archive) == (3, [])


SAMPLES, WARM_UP = 20, 100
LATER = datetime.now(UTC) + timedelta(days=60)


def adding(folder: Path, place: str, rig: int) -> Callable[[], int]:
    """What adds a cell with its samples, none of them late."""
    results = write_cell(folder / f"rig{rig}", made(rig, 0, SAMPLES, lambda k: [40_000 + k]))
    return lambda: cli.invoke(["archive", "add", str(results), "--to", place, "--with-samples"])


def once_before(do: Callable[[], Any], then: Callable[..., Any]) -> Callable[..., Any]:
    """``then``, and before its first call ``do``."""
    first = iter([do])

    def call(*args: Any, **named: Any) -> Any:
        next(first, lambda: None)()
        return then(*args, **named)

    return call


def test_samples_are_let_go_while_others_are_added(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    archive = archive_at(tmp_path / "archive")
    assert adding(tmp_path, archive.url, 0)() == 0
    add_other = adding(tmp_path, archive.url, 1)
    monkeypatch.setattr(DeltaTable, "delete", once_before(add_other, DeltaTable.delete))
    assert prune(archive, now=LATER).samples == 2 * (SAMPLES + WARM_UP)
    assert check(archive) == (2, []) and sampled(archive) == (0, 0)


def test_of_two_who_tidy_at_once_one_is_refused_and_each_row_stays_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """The other one comes just before the first would commit the joined files."""
    archive = archive_at(tmp_path / "archive")
    archive.make()
    for number in range(3):
        add_rows(archive, {str(number): rows(number, [number])})
    said: list[int] = []
    other = once_before(lambda: said.append(cli.invoke(["archive", "prune", archive.url])), lambda: None)
    compact = TableOptimizer.compact

    def slowly(self: TableOptimizer, **named: Any) -> Any:
        other()
        return compact(self, **named)

    monkeypatch.setattr(TableOptimizer, "compact", slowly)
    assert prune(archive).joined == 6 and said == [1]
    assert "another tidies it" in capsys.readouterr().err
    assert check(archive) == (3, [])
    assert cli.invoke(["archive", "prune", archive.url]) == 0


@pytest.fixture
def killed(tmp_path: Path) -> str:
    """The archive that a process claimed which was killed then."""
    archive = archive_at(tmp_path / "archive")
    archive.make()
    code = (
        "import os, signal, sys\n"
        "from rtmeter.archive import claim, tables\n"
        "with claim.alone(tables.archive_at(sys.argv[1])): os.kill(os.getpid(), signal.SIGKILL)"
    )
    ended = subprocess.run([sys.executable, "-c", code, archive.url], check=False)
    assert ended.returncode == -signal.SIGKILL
    return archive.url


def held(url: str) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = archive_at(url).table(claim.CLAIM).to_pyarrow_table().to_pylist()
    return found


def test_who_was_killed_here_while_tidying_stands_in_nobodys_way(killed: str) -> None:
    assert len(held(killed)) == 1
    prune(archive_at(killed))
    assert held(killed) == []


ELSEWHERE: dict[str, Callable[[str, str, str], tuple[str, ...]]] = {
    "another boot, or machine": lambda numbers, pid, start: (f"0000{numbers}", pid, start),
    "another namespace of processes": lambda numbers, pid, start: (f"{numbers}0", pid, start),
    "no machine that is known": lambda numbers, pid, start: (),
    "one who lives": lambda numbers, pid, start: (numbers, "1", str(claim._start(1))),
}


@pytest.mark.parametrize("who", ELSEWHERE)
def test_who_may_still_tidy_stands_in_the_way_for_some_hours(
    killed: str, monkeypatch: pytest.MonkeyPatch, who: str
) -> None:
    archive, [row] = archive_at(killed), held(killed)
    name, *rest = row["holder"].split()
    begun = row["until"] - timedelta(hours=6)
    claim._write(
        archive, archive.table(claim.CLAIM), [row | {"holder": " ".join([name, *ELSEWHERE[who](*rest)])}]
    )
    with pytest.raises(RtmeterError, match="another tidies it"):
        prune(archive, now=begun + timedelta(hours=5))
    with claim.alone(archive, begun + timedelta(hours=7)) as still:
        still()
    prune(archive, now=begun)


def test_a_number_that_was_given_again_is_nobodys_claim(killed: str) -> None:
    archive, [row] = archive_at(killed), held(killed)
    name, numbers, _, start = row["holder"].split()
    again = f"{name} {numbers} {os.getpid()} {start}"
    claim._write(archive, archive.table(claim.CLAIM), [row | {"holder": again}])
    prune(archive)
    assert held(killed) == []
