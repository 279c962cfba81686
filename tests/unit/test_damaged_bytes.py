"""Bytes that are not those that were written: refused, or what is asked is known without them."""

from __future__ import annotations

import errno
import os
import random
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import google_crc32c
import pyarrow.parquet as pq
import pytest

from damaged_data import COUNTED, write_whole
from rtmeter.cli import invoke
from rtmeter.errors import RtmeterError
from rtmeter.host import checked
from rtmeter.results import store, table
from rtmeter.results.data import data_of
from rtmeter.samples.rows import Samples
from rtmeter.trace.table import FILE, open_trace
from stored import record, with_checksum
from synthetic import usual
from traced_cells import TRACED, write_traced

Sized = Callable[..., int]


def flipped(content: bytes, bit: int) -> bytes:
    changed = bytearray(content)
    changed[bit // 8] ^= 1 << bit % 8
    return bytes(changed)


def ends_of_pages(file: Path) -> dict[str, int]:
    """Where the last byte of each column's last page is, in the last group of rows."""
    found, about = {}, pq.read_metadata(file)
    group = about.row_group(about.num_row_groups - 1)
    for column in map(group.column, range(group.num_columns)):
        begins = column.dictionary_page_offset or column.data_page_offset
        found[column.path_in_schema] = begins + column.total_compressed_size - 1
    return found


@pytest.mark.parametrize("kind", [store.SAMPLES, *COUNTED])
def test_no_bit_of_the_data_may_change(tmp_path: Path, sized: Sized, kind: str) -> None:
    cell = write_whole(tmp_path, kind) / "cell"
    known, file, drawn = with_checksum(cell), cell / kind, random.Random(13)
    whole = file.read_bytes()
    assert data_of(cell, known) == file
    bits = 8 * len(whole)
    for bit in drawn.sample(range(bits), sized(f"bits of {kind}", reduced=300, full=bits // 8)):
        file.write_bytes(flipped(whole, bit))
        with pytest.raises(RtmeterError) as caught:
            data_of(cell, known)
        assert "is damaged" in caught.value.message
        assert caught.value.where == str(file) and caught.value.remedy
    file.write_bytes(whole[:-1])
    with pytest.raises(RtmeterError, match="is damaged"):
        data_of(cell, known)


def test_a_cell_that_is_finished_has_the_checksum_of_its_data(tmp_path: Path) -> None:
    for name in (*store.DATA, None):
        with store.NewCell(tmp_path / "cell") as new:
            if name is not None:
                (new.folder / name).write_bytes(b"x" * (1 << 20) + b"end")  # more than is read at once
            new.finish(record())
        found = store.read_cell(tmp_path / "cell").data_crc32c
        assert found == (None if name is None else google_crc32c.value(b"x" * (1 << 20) + b"end"))


def test_of_an_older_cell_no_checksum_is_known(tmp_path: Path) -> None:
    cell = write_whole(tmp_path, store.SAMPLES) / "cell"
    assert store.read_cell(cell).data_crc32c is None
    pq.write_table(pq.read_table(cell / store.SAMPLES), cell / store.SAMPLES)
    assert data_of(cell, store.read_cell(cell)) == cell / store.SAMPLES


@pytest.mark.parametrize("command", ["export {} --format csv -o out", "export {} --format parquet -o out"])
def test_without_a_checksum_of_the_data_each_page_is_looked_at(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], command: str
) -> None:
    """Also by those whose reader, DuckDB, does not."""
    monkeypatch.chdir(tmp_path)
    cell = write_whole(tmp_path, store.SAMPLES) / "cell"
    assert store.read_cell(cell).data_crc32c is None
    file = cell / store.SAMPLES
    checked.write(checked.read(file), file)  # as rtmeter writes it, with checksums
    commands = [command.format(cell).split(), ["sql", "select sum(wake_ns) from samples", str(cell)]]
    assert [invoke(one) for one in commands] == [0, 0]
    file.write_bytes(flipped(file.read_bytes(), 8 * ends_of_pages(file)["wake_ns"]))
    capsys.readouterr()
    assert [invoke(one) for one in commands] == [1, 1]
    said = capsys.readouterr().err
    assert said.count("samples.parquet: cannot be read: ") == 2 and "CRC" in said


def test_data_that_the_disk_does_not_give_are_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    cell = write_whole(tmp_path, store.SAMPLES) / "cell"
    known = with_checksum(cell)

    def failing(file: Path) -> int:
        raise OSError(errno.EIO, os.strerror(errno.EIO), str(file))

    monkeypatch.setattr(checked, "crc32c_of", failing)
    with pytest.raises(RtmeterError, match="cannot be read: Input/output error") as caught:
        data_of(cell, known)
    assert caught.value.where == str(cell / store.SAMPLES) and caught.value.remedy


def test_a_damaged_table_of_cells_changes_no_answer(tmp_path: Path, sized: Sized) -> None:
    run = write_whole(tmp_path, store.SAMPLES)
    folders = [run / "cell", run / "plain"]
    records, facts = dict(table.records(folders)), list(table.facts(folders, "id", "max_ns", "axes"))
    file, drawn = run / table.TABLE, random.Random(13)
    whole = file.read_bytes()
    assert dict(table.records(folders)) == records and file.read_bytes() == whole
    pages = range(8 * 4, 8 * (len(whole) - 8 - int.from_bytes(whole[-8:-4], "little")))
    for bit in drawn.sample(pages, sized("bits of cells.parquet", reduced=60, full=3000)):
        file.write_bytes(flipped(whole, bit))
        assert dict(table.records(folders)) == records, bit
        file.write_bytes(flipped(whole, bit))
        assert list(table.facts(folders, "id", "max_ns", "axes")) == facts, bit


def test_a_table_with_a_damaged_column_is_made_anew(tmp_path: Path) -> None:
    run = write_whole(tmp_path, store.SAMPLES)
    folders = [run / "cell", run / "plain"]
    facts = list(table.facts(folders, "axes"))
    file = run / table.TABLE
    whole = file.read_bytes()
    file.write_bytes(flipped(whole, 8 * ends_of_pages(file)["axes"]))
    assert list(table.facts(folders, "axes")) == facts
    assert file.read_bytes() == whole


def test_each_page_of_a_trace_has_a_checksum(tmp_path: Path) -> None:
    made = replace(TRACED, samples=600, warm_up=10, delays=usual(1, 50))
    write_traced(tmp_path / "cell", "thief", made)
    file, drawn = tmp_path / "cell" / FILE, random.Random(13)
    whole = file.read_bytes()
    assert list(open_trace(file).parts())
    for name, at in ends_of_pages(file).items():
        file.write_bytes(flipped(whole, 8 * at + drawn.randrange(8)))
        with pytest.raises(RtmeterError, match="the trace cannot be read"):
            list(open_trace(file).parts())
            pytest.fail(name)


def test_each_page_of_late_releases_has_a_checksum(tmp_path: Path) -> None:
    """late.parquet, which no record speaks of."""
    cell = write_whole(tmp_path, store.SAMPLES) / "cell"
    rows = pq.read_table(cell / store.SAMPLES)
    late = tmp_path / store.LATE_RELEASES
    checked.write(rows, late)
    assert sum(len(chunk["k"]) for chunk in Samples(late).chunks()) == len(rows)
    whole, ends = late.read_bytes(), ends_of_pages(late)
    for at in ends.values():
        late.write_bytes(flipped(whole, 8 * at))
        with pytest.raises(checked.DAMAGED):
            checked.read(late)
    late.write_bytes(flipped(whole, 8 * ends["wake_ns"]))
    with pytest.raises(RtmeterError, match="cannot be read"):
        [chunk["wake_ns"] for chunk in Samples(late).chunks("wake_ns")]


def test_a_pipe_in_the_place_of_a_table_is_not_waited_for(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "cells.parquet")
    with pytest.raises(OSError, match="It is no regular file"):
        checked.opened(tmp_path / "cells.parquet")
