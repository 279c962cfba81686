"""Power is lost at every moment while cells and runs are stored: what was said to be stored is there, and
what has the name of a cell is whole."""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest

from power_loss import Disk, calls_of, every_moment, lay
from rtmeter.results import store
from stored import record

CELL = """
import sys
from pathlib import Path
from rtmeter.results import store
from rtmeter.results.record import CellRecord
for n in (1, 2):
    new = store.NewCell(Path(sys.argv[1]) / "machine" / "campaign" / "cell")
    (new.folder / "samples.parquet").write_bytes(b"%d" % n * 1000)
    new.finish(CellRecord.model_construct(id=str(n)))
    print(n, end="", flush=True)
"""
RUN = """
import sys
from pathlib import Path
from rtmeter.results import store
from rtmeter.results.record import RunRecord
folder = Path(sys.argv[1]) / "machine" / "campaign"
store.write_run(folder, RunRecord.model_construct(campaign="1"), "name: campaign" + 100 * "#")
print(1, end="", flush=True)
store.write_run(folder, RunRecord.model_construct(campaign="2"), "name: campaign" + 200 * "#")
print(2, end="", flush=True)
store.write_run(folder, RunRecord.model_construct(campaign="3"), None)
print(3, end="", flush=True)
"""

TEXTS = ["name: campaign" + times * "#" for times in (100, 200)]


def moments(folder: Path, script: str) -> Iterator[tuple[int, Path]]:
    """How many things had been said to be stored, and the campaign's folder as the disk may have kept it."""
    (folder / "disk").mkdir()
    disk, again = Disk(folder / "disk"), folder / "again"
    for said in every_moment(disk, calls_of(script, folder / "disk")):
        for left in disk.left():
            shutil.rmtree(again, ignore_errors=True)
            lay(left, again)
            yield len(said), again / "machine" / "campaign"


def test_a_cell_that_has_its_name_is_whole_and_the_earlier_one_stays_until_then(tmp_path: Path) -> None:
    seen = set()
    for stored, campaign in moments(tmp_path, CELL):
        cell = campaign / "cell"
        if stored or cell.exists():
            n = int(json.loads((cell / store.CELL).read_text())["id"])
            assert (cell / "samples.parquet").read_bytes() == b"%d" % n * 1000
            assert n >= stored
            seen.add((stored, n))
    assert seen == {(0, 1), (1, 1), (1, 2), (2, 2)}


def test_a_run_is_never_half_written(tmp_path: Path) -> None:
    seen = set()
    for stored, campaign in moments(tmp_path, RUN):
        if stored or (campaign / store.RUN).exists():
            n = int(json.loads((campaign / store.RUN).read_text())["campaign"])
            text = (campaign / store.CAMPAIGN).read_text()
            assert text in {0: TEXTS[:1], 1: TEXTS, 2: TEXTS[1:], 3: TEXTS[1:]}[stored]
            assert n >= stored
            seen.add((stored, n))
    assert seen == {(0, 1), (1, 1), (1, 2), (2, 2), (2, 3), (3, 3)}


def test_where_names_cannot_be_exchanged_the_new_cell_takes_the_place(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(store, "exchange", lambda one, other: False)
    for n in (1, 2):
        store.NewCell(tmp_path / "cell").finish(record(str(n)))
    assert json.loads((tmp_path / "cell" / store.CELL).read_text())["id"] == "2"
    assert [path.name for path in tmp_path.iterdir()] == ["cell"]
