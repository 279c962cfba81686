"""Cells that were stopped in their warm-up: complete in themselves, and without a release that counts."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from rtmeter.cli import invoke
from rtmeter.results import store
from synthetic import Made, usual, write_cell


@pytest.fixture
def cells(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """``run`` of two conditions, one of which measured nothing, and ``alone``, which did not either."""
    monkeypatch.chdir(tmp_path)
    stopped = {"status": "interrupted"}
    for repeat in (1, 2):
        axes = {"load": "idle", "repeat": repeat}
        made = Made(id=f"idle-r{repeat}", axes=axes, delays=usual(repeat, 50), miss_ratio=1e-3)
        write_cell(tmp_path / "run" / made.id, made)
        axes = {"load": "full", "repeat": repeat}
        made = Made(id=f"full-r{repeat}", axes=axes, samples=0, miss_ratio=1e-3, changes=stopped)
        write_cell(tmp_path / "run" / made.id, made)
    write_cell(tmp_path / "alone", Made(id="alone", samples=0, miss_ratio=1e-3, changes=stopped))
    (tmp_path / "c.yaml").write_text(
        "name: c\ncells:\n  - {measurement: wakeup, adapter: posix, period: 1ms, duration: 1s, "
        "requirement: {deadline: 1ms, miss_ratio: 1e-3}}\n"
    )
    return tmp_path


@pytest.mark.parametrize(
    "command",
    [
        ["compare", "alone", "run/idle-r1"],
        ["compare", "run/idle-r1", "alone"],
        ["compare", "run", "--factor", "load"],
        ["plan", "c.yaml", "--like", "alone"],
        ["plot", "alone", "--kind", "return-level", "-o", "a.svg"],
        ["plot", "run/idle-r1", "alone", "--kind", "shift", "-o", "a.svg"],
        ["plot", "run/idle-r1", "alone", "--kind", "waterfall", "-o", "a.svg"],
    ],
    ids=" ".join,
)
def test_refused_where_releases_are_needed(
    cells: Path, command: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    assert invoke(command) == 1
    said = capsys.readouterr()
    assert "measured nothing" in said.out + said.err


def test_it_has_no_verdict_but_an_error(cells: Path, capsys: pytest.CaptureFixture[str]) -> None:
    cell = cells / "alone" / store.CELL
    cell.write_text(json.dumps(json.loads(cell.read_text()) | {"summary": None, "verdict": None}))
    assert invoke(["verdict", "alone", "--deadline", "1ms"]) == 1
    assert "error: nothing was measured" in capsys.readouterr().out


def test_among_others_in_a_report(cells: Path) -> None:
    assert invoke(["report", "run", "-o", "page.html"]) == 0
    page = (cells / "page.html").read_text()
    assert "full" in page and "nothing was measured" in page


def test_what_was_measured_is_usable(cells: Path) -> None:
    assert store.read_cell(cells / "run/idle-r1").usable
    assert not store.read_cell(cells / "alone").usable
