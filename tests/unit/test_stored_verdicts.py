"""A stored verdict is shown where the same would come of the samples, and only there."""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

import pytest

import rtmeter
from rtmeter.api import verdicts
from rtmeter.cli import invoke
from rtmeter.judge import cell as judge_cell
from rtmeter.model import Requirement
from rtmeter.results import store
from rtmeter.results.record import text_of
from synthetic import Made, usual, write_cell

SECOND_NS = 10**9


@pytest.fixture
def results(tmp_path: Path) -> Path:
    """Two cells as they are stored when they were measured."""
    for name in ("a", "b"):
        cell = write_cell(tmp_path / name, Made(id=name, samples=200, delays=usual(1, 50)))
        record = store.read_cell(cell)
        assert record.requirement is not None
        changed(cell, text_of(judge_cell.judged(record, cell, record.requirement)))
    return tmp_path


@pytest.fixture
def read(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The cells whose samples were read."""
    found: list[str] = []
    plain = store.chunks
    monkeypatch.setattr(store, "chunks", lambda folder: (found.append(folder.name), plain(folder))[1])
    return found


def changed(cell: Path, content: str) -> None:
    """Puts another cell.json in the place of the one that is there, later than all that is beside it."""
    file = cell / store.CELL
    file.write_text(content)
    later = max(path.stat().st_mtime_ns for path in cell.iterdir()) + SECOND_NS
    os.utime(file, ns=(later, later))


def edited(cell: Path, edit: Callable[[dict[str, Any]], object]) -> None:
    content = json.loads((cell / store.CELL).read_text())
    edit(content)
    changed(cell, json.dumps(content))


@pytest.mark.parametrize("path", [".", "a"])
def test_it_is_the_one_of_the_samples(
    results: Path, read: list[str], capsys: pytest.CaptureFixture[str], path: str
) -> None:
    judged = ["a"] if path == "a" else ["a", "b"]
    printed = {}
    for option in ([], ["--anew"]):
        read.clear()
        invoke(["verdict", str(results / path), "--json", *option])
        printed[bool(option)] = json.loads(capsys.readouterr().out)
        assert read == (judged if option else [])
    assert printed[False] == printed[True]
    for anew in (False, True):
        read.clear()
        found = [one.to_json() for one in rtmeter.read(results / path).verdict(anew=anew)]
        assert found == printed[anew].get("cells", [printed[anew]])
        assert read == (judged if anew else [])


def samples_of_another_size(cell: Path) -> None:
    """Other samples that are older than the verdict, as of a copy that keeps times."""
    file = cell / store.SAMPLES
    times, size = (file.stat().st_atime_ns, file.stat().st_mtime_ns), file.stat().st_size
    made = Made(id="a", samples=200)
    other = write_cell(cell.parent.parent / f"{cell.parent.name}-other", made)
    (other / store.SAMPLES).replace(file)
    assert file.stat().st_size != size
    os.utime(file, ns=times)


def newer_samples(cell: Path) -> None:
    newer = (cell / store.CELL).stat().st_mtime_ns + SECOND_NS
    os.utime(cell / store.SAMPLES, ns=(newer, newer))


def other_requirement(cell: Path) -> None:
    edited(cell, lambda content: content["requirement"].update(deadline_ns=777_000))


STALE: dict[str, Callable[[Path], None]] = {
    "samples of another size": samples_of_another_size,
    "newer samples": newer_samples,
    "another requirement": other_requirement,
    "another file of data": lambda cell: edited(cell, lambda c: c["judged_by"]["data"].update({"x": 1})),
    "other statistics": lambda cell: edited(cell, lambda c: c["judged_by"].update(statistics="0")),
    "made by nobody knows what": lambda cell: edited(cell, lambda c: c.update(judged_by=None)),
}


@pytest.mark.parametrize("what", STALE)
@pytest.mark.parametrize("path", [".", "a"])
def test_one_that_would_be_another_is_not_shown(
    results: Path, read: list[str], what: str, path: str, capsys: pytest.CaptureFixture[str]
) -> None:
    invoke(["verdict", str(results / path)])
    assert read == []
    STALE[what](results / "a")
    invoke(["verdict", str(results / path)])
    assert read == ["a"]


def test_a_cell_that_became_invalid_has_no_verdict_of_before(
    results: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    edited(results / "a", lambda content: content.update(valid=False))
    assert invoke(["verdict", str(results / "a")]) == 1
    assert "error: the result is invalid" in capsys.readouterr().out


@pytest.mark.parametrize("option", ["--deadline=2ms", "--once-in=24h", "--anew"])
def test_what_is_asked_beyond_it_is_judged(results: Path, read: list[str], option: str) -> None:
    invoke(["verdict", str(results), option])
    assert read == ["a", "b"]


def test_what_is_asked_as_it_was_judged_is_not(results: Path, read: list[str]) -> None:
    required = store.read_cell(results / "a").requirement
    assert required is not None
    cells = list(rtmeter.read(results)._cells.values())
    assert len(list(verdicts.verdicts(cells, asdict(required)))) == 2 and not read
    other: Requirement = replace(required, confidence=0.9)
    assert len(list(verdicts.verdicts(cells, asdict(other)))) == 2 and read == ["a", "b"]


def test_the_statistics_in_use_are_others_when_their_code_is(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("statistics/a.py", "judge/b.py", "samples/rows.py", "model.py"):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text("1")
    monkeypatch.setattr(judge_cell, "__file__", str(tmp_path / "judge/cell.py"))
    of = judge_cell.statistics_in_use.__wrapped__
    seen = {of()}
    for name in ("statistics/a.py", "judge/b.py", "samples/rows.py", "model.py"):
        (tmp_path / name).write_text("2")
        seen.add(of())
    monkeypatch.setattr(judge_cell, "version", lambda: "9")
    seen.add(of())
    assert len(seen) == 6 and of() in seen
