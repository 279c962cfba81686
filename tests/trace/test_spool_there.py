"""The pages of another machine: by a shell of this one, beside those of a Spool that gets the same."""

from __future__ import annotations

import os
import struct
import subprocess
from collections.abc import Sequence
from pathlib import Path
from typing import IO, Any

import pytest

from rtmeter.conditions.spool_there import SpoolThere
from rtmeter.trace.chosen import Chooser, Span, span_of
from rtmeter.trace.spool import Spool

PAGE, MS, CPUS = 64, 1_000_000, (0, 1, 10)


class HereShell:
    """As Shell, and its ssh; counts the bytes that come."""

    def __init__(self) -> None:
        self.ssh, self.said = self, 0

    def run(
        self, script: str, limit_s: float = 0, into: IO[bytes] | None = None
    ) -> tuple[int, bytes] | bytes:
        done = subprocess.run(["sh"], input=script.encode(), stdout=into or subprocess.PIPE, check=False)
        self.said += len(done.stdout or b"")
        return b"" if into else (done.returncode, done.stdout)


class Writer:
    """Writes the same pages here and there, ends pieces there as they end here."""

    def __init__(self, folder: Path, most: int, choosers: Sequence[Chooser | None]) -> None:
        for name in ("here", "there", "brought"):
            (folder / name).mkdir()
        self.here = Spool(folder / "here", CPUS, PAGE, choosers[0], most)
        self.shell: Any = HereShell()
        self.there = SpoolThere(folder / "brought", CPUS, PAGE, choosers[1], most)
        self.there.begin(str(folder / "there"), self.shell)
        self.folder = folder / "there"
        self._pieces, self._pages, self._last_ns = 0, 0, 0
        self.largest = 0

    def write(self, cpu: int, begin_ns: int) -> None:
        page = struct.pack("<QI", begin_ns, cpu).ljust(PAGE, b"\n")
        os.write(self.here.files[cpu], page)
        with (self.folder / f"cpu{cpu}").open("ab") as file:
            file.write(page)
        self._pages, self._last_ns = self._pages + 1, begin_ns

    def settle(self) -> None:
        if self._pages * PAGE >= self.there.piece_bytes:
            self.end_piece()
        assert self.here.settle() and self.there.settle()
        self.largest = max(self.largest, sum(f.stat().st_size for f in self.folder.rglob("*cpu*")))

    def end_piece(self) -> None:
        piece = self.folder / f"piece.{self._pieces:06d}"
        piece.mkdir()
        for file in self.folder.glob("cpu*"):
            file.rename(piece / file.name)
        self.there.ended(self._pieces, self._pages, self._last_ns)
        self._pieces, self._pages = self._pieces + 1, 0

    def end(self) -> None:
        self.end_piece()
        self.here.end()
        self.there.end()
        self.there.bring()

    def pages(self, cpu: int) -> tuple[list[bytes | None], list[bytes | None]]:
        return list(self.here.pages(cpu)), list(self.there.pages(cpu))


def released(k: int, *, late: bool) -> Span:
    return span_of(k, (k - 1) * MS, k * MS, k * MS + 50_000, late=late)


def ran(folder: Path, most: int, late: set[int], n: int, in_time: int = 20) -> Writer:
    """A release each millisecond; on CPU 0 a page each half of one, on CPU 10 one in seven, none on CPU 1."""
    choosers = Chooser(in_time), Chooser(in_time)
    writer, batch = Writer(folder, most, choosers), []
    for k in range(n):
        writer.write(0, k * MS)
        writer.write(0, k * MS + MS // 2)
        if k % 7 == 0:
            writer.write(10, k * MS)
        batch.append(released(k, late=k in late))
        if len(batch) == 20:
            for chooser in choosers:
                chooser.add(batch)
            batch = []
        if k % 5 == 0:
            writer.settle()
    for chooser in choosers:
        chooser.add(batch)
    writer.end()
    assert choosers[0].kept == choosers[1].kept and choosers[0].share == choosers[1].share
    return writer


def told_of_removals(writer: Writer) -> int:
    return int((writer.folder / "gone").read_text())


@pytest.mark.parametrize(
    ("most", "late"),
    [(100 << 10, {300, 301, 1_199}), (40 << 10, set(range(0, 1_200, 4)))],
    ids=["some", "too many"],
)
def test_of_a_long_run_the_same_pages_stay_as_here(tmp_path: Path, most: int, late: set[int]) -> None:
    writer = ran(tmp_path, most, late, 1_200)
    assert not writer.there.whole and not writer.there.overrun
    for cpu in CPUS:
        here, there = writer.pages(cpu)
        assert there == here and (cpu == 1 or None in here)
    left = list(writer.folder.glob("piece.*/*"))
    assert writer.largest <= most + writer.there.piece_bytes, "a piece that is split is there twice"
    assert told_of_removals(writer) == 2_572 - len(left), "so the writer knows how much room there is"
    assert all(any(piece.iterdir()) for piece in writer.folder.glob("piece.*")), "an empty folder goes"
    assert writer.there.bytes == 2_572 * PAGE
    brought = sum(len(page or b"") for cpu in CPUS for page in writer.pages(cpu)[1])
    assert brought <= len(left) * PAGE and writer.shell.said < 12 * 2_572, "of a page only when it begins"


def test_a_short_run_keeps_all_and_asks_nothing_while_it_runs(tmp_path: Path) -> None:
    writer = ran(tmp_path, 1 << 20, {5}, 700)
    assert writer.there.whole and len(writer.pages(0)[1]) == 1_400
    for cpu in CPUS:
        here, there = writer.pages(cpu)
        assert there == here
    assert not (writer.folder / "gone").exists()
    writer.there.tidy()
    assert not list((tmp_path / "brought").iterdir())


def test_where_the_log_tells_nothing_the_oldest_go_and_it_is_said(tmp_path: Path) -> None:
    writer = Writer(tmp_path, 40 << 10, (Chooser(20), Chooser(20)))
    for k in range(1_000):
        writer.write(0, k * MS)
        writer.settle()
    assert writer.there.overrun and writer.largest <= 40 << 10
    writer.end()
    assert writer.pages(0) == ([], [])


def test_pages_that_were_counted_and_did_not_come_take_no_room(tmp_path: Path) -> None:
    writer = Writer(tmp_path, 40 << 10, (None, Chooser(20)))
    writer.write(0, 0)
    writer._pages += 5
    writer.end_piece()
    writer.there._sift(0)
    assert told_of_removals(writer) == 5


def test_what_the_shell_there_says_is_the_error(tmp_path: Path) -> None:
    writer = Writer(tmp_path, 40 << 10, (None, Chooser(20)))
    writer.write(0, 0)
    writer.end_piece()
    (writer.folder / "piece.000000" / "cpu0.aaaa").mkdir()
    with pytest.raises(OSError, match="directory"):
        writer.there._sift(0)
