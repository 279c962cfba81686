"""A cell whose data are damaged: refused with file and remedy, by every command that reads them alike."""

from __future__ import annotations

import random
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from cell_commands import OF_NO_CELL, Tried
from damaged_data import COUNTED, a_bit, a_folder, damages, deleted, emptied, write_whole
from rtmeter import cli
from rtmeter.errors import RtmeterError
from rtmeter.results import store
from rtmeter.results.data import data_of
from rtmeter.results.record import CellRecord
from stored import with_checksum

Sized = Callable[..., int]

LOOKING_ELSEWHERE_FIRST = {"explain"}
"""Commands that refuse a cell without samples for what it lacks besides."""

OF_WHAT_IS_MEASURED = {"recover", "measure", "run --resume", "published"}
"""Commands that show nothing of a cell that is whole here."""


@pytest.fixture(scope="module")
def wholes(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """Results of whole cells by the name of the file with their data."""
    root = tmp_path_factory.mktemp("whole")
    for file in (store.SAMPLES, *COUNTED):
        write_whole(root / file, file)
    return {file: root / file for file in (store.SAMPLES, *COUNTED)}


def copied(whole: Path, to: Path) -> Tried:
    results = shutil.copytree(whole, to / "results")
    (cell,) = results.rglob("cell")
    (to / "out").mkdir()
    return Tried(results, cell, cell.parent / "plain", to / "out")


@pytest.fixture
def tried(wholes: dict[str, Path], tmp_path: Path) -> Tried:
    return copied(wholes[store.SAMPLES], tmp_path)


def refusal(cell: Path, record: CellRecord) -> RtmeterError | None:
    try:
        data_of(cell, record)
    except RtmeterError as error:
        return error
    return None


def refused_by(name: str, command: list[str], file: Path, capsys: pytest.CaptureFixture[str]) -> None:
    code, said = cli.invoke(command), capsys.readouterr()
    assert code == 1, f"{name} accepts it: {said.out}{said.err}"
    assert str(file) in said.err, f"{name}: {said.err}"
    assert "; " in said.err, f"{name} has no remedy: {said.err}"


@pytest.mark.parametrize("damage", [deleted, a_folder, a_bit])
def test_every_command_that_reads_data_refuses_what_is_gone_or_changed(
    tried: Tried, capsys: pytest.CaptureFixture[str], damage: Callable[[Path], None]
) -> None:
    with_checksum(tried.cell)
    damage(tried.cell / store.SAMPLES)
    for name, command in tried.of_data().items():
        refused_by(name, command, tried.cell / store.SAMPLES, capsys)


@pytest.mark.parametrize("kind", [store.SAMPLES, *COUNTED])
def test_no_damage_is_accepted_by_any(
    wholes: dict[str, Path], tmp_path: Path, capsys: pytest.CaptureFixture[str], sized: Sized, kind: str
) -> None:
    tried = copied(wholes[kind], tmp_path)
    file, drawn = tried.cell / kind, random.Random(13)
    whole, record = file.read_bytes(), store.read_cell(tried.cell)
    assert data_of(tried.cell, record) == file
    commands = tried.of_data()
    if kind != store.SAMPLES:
        commands = {name: one for name, one in commands.items() if name not in LOOKING_ELSEWHERE_FIRST}
    number = sized(f"commands on each damage of {kind}", reduced=3, full=len(commands))
    for what, damage in damages(file).items():
        damage(file)
        error = refusal(tried.cell, record)
        assert error is not None, f"{what} is accepted"
        assert error.where == str(file) and error.remedy, what
        seen_by_nobody_else = what == "fewer rows"  # each command would read on
        for name in commands if seen_by_nobody_else else drawn.sample(sorted(commands), number):
            refused_by(f"{name}, {what}", commands[name], file, capsys)
        file.rmdir() if file.is_dir() else file.unlink(missing_ok=True)
        file.write_bytes(whole)


def test_what_shows_the_record_shows_it(tried: Tried, capsys: pytest.CaptureFixture[str]) -> None:
    deleted(tried.cell / store.SAMPLES)
    for name, command in tried.of_records().items():
        if name not in OF_WHAT_IS_MEASURED:
            assert cli.invoke(command) == 0, f"{name}: {capsys.readouterr().err}"


def test_a_report_is_written_before_its_error(tried: Tried, capsys: pytest.CaptureFixture[str]) -> None:
    emptied(tried.cell / store.SAMPLES)
    emptied(tried.other / store.SAMPLES)
    assert cli.invoke(["report", str(tried.run)]) == 1
    said, page = capsys.readouterr(), (tried.run / "report.html").read_text()
    assert said.out.strip() == str(tried.run / "report.html")
    assert said.err.count(store.SAMPLES) == 1 and "1 more cells cannot be read" in said.err
    assert "cannot be read" in page and f"{store.SAMPLES}:" in page
    assert str(tried.cell) not in page


def test_a_site_tells_damage_that_came_later_until_it_is_mended(
    tried: Tried, capsys: pytest.CaptureFixture[str]
) -> None:
    command = ["site", str(tried.results), "-o", str(tried.out / "site")]
    file = tried.cell / store.SAMPLES
    content = file.read_bytes()
    assert cli.invoke(command) == 0
    (page,) = (tried.out / "site" / "reports").iterdir()
    assert "damaged" not in page.read_text()
    emptied(file)
    for _ in range(2):
        assert cli.invoke(command) == 1
        said = capsys.readouterr()
        assert said.out.strip().endswith(str(tried.out / "site" / "index.html"))
        assert str(file) in said.err
        assert "damaged" in page.read_text()
    file.write_bytes(content)
    assert cli.invoke(command) == 0
    assert "damaged" not in page.read_text()


def test_every_command_that_reads_cells_is_tried(tried: Tried) -> None:
    of_cells = {command[0] for command in tried.of_both().values()}
    assert not of_cells & OF_NO_CELL.keys()
    assert of_cells | OF_NO_CELL.keys() == cli.COMMANDS.keys()
