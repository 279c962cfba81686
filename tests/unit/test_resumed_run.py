"""A campaign's run that goes on although something of it is damaged, or is of another text."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from rtmeter.cli.campaigns import tell_of
from rtmeter.errors import RtmeterError
from rtmeter.host.checked import crc32c_of
from rtmeter.measure.run import Run
from rtmeter.model import Campaign, Cell
from rtmeter.results import store
from rtmeter.results.record import text_of
from synthetic import Made, write_cell

CELLS = tuple(Cell(name, "null", None, {}, {"measurement": "wakeup"}) for name in ("a", "b", "c"))
CAMPAIGN = Campaign("day", CELLS, "", "cells: []", None, ())


@pytest.fixture
def run(tmp_path: Path) -> Run:
    """One whose cells are there."""
    started = Run.start(tmp_path, CAMPAIGN, 1.0)
    for cell in CELLS:
        write_cell(started.folder / cell.id, Made(id=cell.id, samples=50))
        record = store.read_cell(started.folder / cell.id)
        crc = crc32c_of(started.folder / cell.id / store.SAMPLES)
        text = text_of(record.model_copy(update={"data_crc32c": crc}))
        (started.folder / cell.id / store.CELL).write_text(text)
    return started


def flip_a_bit(file: Path) -> None:
    content = bytearray(file.read_bytes())
    content[len(content) // 2] ^= 1
    file.write_bytes(content)


@pytest.mark.parametrize(
    ("file", "damage", "said"),
    [
        (store.CELL, lambda file: file.write_text(""), "is no rtmeter-cell: is no JSON (line 1, column 1)"),
        (store.SAMPLES, Path.unlink, "is not there, though cell.json has a summary of it"),
        (store.SAMPLES, flip_a_bit, "is damaged"),
    ],
)
def test_a_cell_that_cannot_be_read_is_measured_again(
    run: Run,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    file: str,
    damage: Callable[[Path], object],
    said: str,
) -> None:
    assert Run.last(tmp_path, CAMPAIGN, 1.0).remaining() == []
    damage(run.folder / "b" / file)
    resumed = Run.resume(tmp_path, CAMPAIGN, 1.0)
    assert [cell.id for cell in resumed.remaining()] == ["b"]
    tell_of(resumed)
    first, second = capsys.readouterr().err.splitlines()
    assert first == f"rtmeter: goes on with {run.folder}"
    assert second.startswith(f"rtmeter: {run.folder / 'b' / file}: {said}")
    assert second.endswith("; it is measured again")


@pytest.mark.parametrize("changes", [{"valid": False}, {"status": "interrupted"}])
def test_a_cell_that_is_interrupted_or_not_valid_is_measured_again(
    run: Run, tmp_path: Path, changes: dict[str, object]
) -> None:
    record = store.read_cell(run.folder / "b").model_copy(update=changes)
    (run.folder / "b" / store.CELL).write_text(text_of(record))
    resumed = Run.last(tmp_path, CAMPAIGN, 1.0)
    assert [cell.id for cell in resumed.remaining()] == ["b"]
    assert list(resumed.damaged()) == []


def test_a_cell_of_a_later_version_is_none_to_be_replaced(run: Run, tmp_path: Path) -> None:
    cell = run.folder / "b" / store.CELL
    cell.write_text(cell.read_text().replace('"version": 2', '"version": 99', 1))
    with pytest.raises(RtmeterError, match="has version 99"):
        Run.resume(tmp_path, CAMPAIGN, 1.0).remaining()


@pytest.mark.parametrize(
    ("content", "said"),
    [
        (b"cells: []  # another", "finds a run with another campaign"),
        (b"\xff\xfe", "finds a run with another campaign"),
        (None, "cannot be read: no such file or directory"),
    ],
)
def test_another_text_is_said_with_what_helps(
    run: Run, tmp_path: Path, content: bytes | None, said: str
) -> None:
    """The copy is no campaign to be resumed: its name and its scripts are those of the file it was of."""
    copy = run.folder / store.CAMPAIGN
    copy.unlink() if content is None else copy.write_bytes(content)
    with pytest.raises(RtmeterError, match=said) as caught:
        Run.resume(tmp_path, CAMPAIGN, 1.0)
    if content is not None:
        assert caught.value.remedy == f"put its text back from {copy}, or run anew"


def test_the_copy_is_not_written_again(run: Run, tmp_path: Path) -> None:
    before = (run.folder / store.CAMPAIGN).stat()
    Run.resume(tmp_path, CAMPAIGN, 1.0)
    after = (run.folder / store.CAMPAIGN).stat()
    assert (after.st_ino, after.st_mtime_ns) == (before.st_ino, before.st_mtime_ns)


def test_the_data_of_a_cell_are_read_once(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    read: list[str] = []
    monkeypatch.setattr("rtmeter.measure.run.data_of", lambda folder, _: read.append(folder.name))
    assert list(run.damaged()) == run.remaining() == [] and all(map(run.has, CELLS))
    assert read == [cell.id for cell in CELLS]
