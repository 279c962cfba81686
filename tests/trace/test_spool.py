"""What stays of a long recording: pages that are written by hand, and releases whose fate is known."""

from __future__ import annotations

import os
import random
import struct
from itertools import pairwise
from pathlib import Path

import pytest

from rtmeter.trace.chosen import FEWEST_IN_TIME, Chooser, Span, span_of
from rtmeter.trace.spool import Spool, touching

PAGE = 64
MS = 1_000_000
CPUS = (0, 1)


def write(spool: Spool, cpu: int, begin_ns: int) -> None:
    os.write(spool.files[cpu], struct.pack("<Q", begin_ns).ljust(PAGE, b"\1"))


def begins(spool: Spool, cpu: int) -> list[int | None]:
    return [None if page is None else int.from_bytes(page[:8], "little") for page in spool.pages(cpu)]


def released(k: int, *, late: bool = False) -> Span:
    return span_of(k, (k - 1) * MS, k * MS, k * MS + 50_000, late=late)


def run(folder: Path, most: int, chooser: Chooser, late: set[int], n: int) -> tuple[Spool, int]:
    """A release each millisecond; on CPU 0 a page each half of one, on CPU 1 one in seven. The log is told
    each 100. Returns the largest size, too."""
    spool, largest, batch = Spool(folder, CPUS, PAGE, chooser, most), 0, []
    for k in range(n):
        write(spool, 0, k * MS)
        write(spool, 0, k * MS + MS // 2)
        if k % 7 == 0:
            write(spool, 1, k * MS)
        batch.append(released(k, late=k in late))
        if len(batch) == 100:
            chooser.add(batch)
            batch = []
        assert spool.settle()
        if k % 10 == 0:
            largest = max(largest, sum(file.stat().st_size for file in folder.glob("trace.cpu*")))
    chooser.add(batch)
    spool.end()
    return spool, largest


def test_a_short_run_keeps_all(tmp_path: Path) -> None:
    spool, _ = run(tmp_path, 1 << 20, Chooser(10), {5}, 1000)
    assert spool.whole and len(begins(spool, 0)) == 2000 and None not in begins(spool, 0)
    spool.tidy()
    assert not list(tmp_path.iterdir())


def test_a_run_keeps_all_as_long_as_there_is_room_for_it_beside_a_piece(tmp_path: Path) -> None:
    """Half of the room: more than what is not settled may take, less than what is kept may."""
    spool, _ = run(tmp_path, 400 * 1024, Chooser(10), {5}, 1_500)
    assert spool.whole and len(begins(spool, 0)) == 3_000


def test_where_nobody_tells_after_all_all_is_kept_as_if_nothing_had_been_to_be_chosen(tmp_path: Path) -> None:
    spool, plain = (Spool(tmp_path, CPUS, PAGE, chooser, 8 * 1024) for chooser in (Chooser(10), None))
    spool.keep_all()
    for size in range(8 * 1024 // PAGE):
        assert (spool.settle(), spool.whole, spool.overrun) == (True, True, False), size
        write(spool, 0, size * MS)
    assert spool.settle() and len(begins(spool, 0)) == 8 * 1024 // PAGE
    write(spool, 0, 10**12)
    assert not spool.settle() and spool.whole
    for each in (spool, plain):
        each.tidy()


def test_of_a_long_run_the_surroundings_of_each_late_release_stay_and_of_some_in_time(tmp_path: Path) -> None:
    late = set(random.Random(1).sample(range(10, 6_000), 30))
    most, chooser = 400 * 1024, Chooser(20)
    spool, largest = run(tmp_path, most, chooser, late, 6_000)
    assert not spool.whole and not spool.overrun and chooser.share == 1.0
    assert largest <= most, "disk is bounded"
    kept = chooser.kept
    assert {span.k for span in kept if span.late} == late
    assert len(kept) == 50 and [span.k for span in kept] == sorted(span.k for span in kept)
    assert max(span.k for span in kept if not span.late) > 3_000 > min(s.k for s in kept if not s.late)
    every = {0: [half * MS // 2 for half in range(12_000)], 1: [k * MS for k in range(0, 6_000, 7)]}
    for cpu in CPUS:
        there = begins(spool, cpu)
        needed = {
            begin
            for begin, end in pairwise([*every[cpu], 2**62])
            if any(span.from_ns <= end and begin <= span.to_ns for span in kept)
        }
        assert needed <= set(there)
        places = [None if begin is None else every[cpu].index(begin) for begin in there]
        for before, after in pairwise([-1, *places]):  # None where a page is missing, and only there
            assert before is None or after is None or after == before + 1
        assert len(there) < 3 * len(needed)


def test_the_last_page_of_a_long_run_stays_where_the_last_release_was_late(tmp_path: Path) -> None:
    spool, _ = run(tmp_path, 400 * 1024, Chooser(20), {5_999}, 6_000)
    there = begins(spool, 0)
    assert not spool.whole and there[-2:] == [5_999 * MS, 5_999 * MS + MS // 2], "with no gap between"


def test_the_last_page_of_a_cpu_that_tells_nothing_more_comes_after_a_gap(tmp_path: Path) -> None:
    """It has no end, so that a late release may need it that does not need the one before."""
    chooser = Chooser(0)
    spool = Spool(tmp_path, CPUS, PAGE, chooser, 40 * 1024)
    for k in range(3):
        write(spool, 1, k * MS)
    for k in range(3, 2_000):
        write(spool, 0, k * MS)
        chooser.add([released(k, late=k == 1_500)])
        assert spool.settle()
    spool.end()
    assert not spool.whole and begins(spool, 1) == [None, 2 * MS]


def test_where_late_ones_are_too_many_a_known_share_of_them_stays(tmp_path: Path) -> None:
    most, chooser = 300 * 1024, Chooser(2000)
    spool, largest = run(tmp_path, most, chooser, set(range(0, 6_000, 4)), 6_000)
    assert largest <= most
    late = sum(span.late for span in chooser.kept)
    assert 0 < chooser.share < 1 and 0.5 < late / (1500 * chooser.share) < 2
    assert FEWEST_IN_TIME // 4 <= len(chooser.kept) - late <= FEWEST_IN_TIME
    assert all(begin is not None for begin in begins(spool, 0)[-1:])


def test_where_the_log_tells_nothing_the_oldest_go_and_it_is_said(tmp_path: Path) -> None:
    chooser = Chooser(20)
    spool = Spool(tmp_path, CPUS, PAGE, chooser, 40 * 1024)
    for k in range(2000):
        write(spool, 0, k * MS)
        assert spool.settle() and spool.size_bytes <= 40 * 1024
    assert spool.overrun and not spool.whole
    for k in range(2000, 3000):
        write(spool, 0, k * MS)
        chooser.add([released(k)])
        assert spool.settle()
    assert spool.overrun, "whatever is told later"


def test_where_the_log_tells_nothing_any_more_what_is_kept_has_its_room_alone(tmp_path: Path) -> None:
    most, chooser = 40 * 1024, Chooser(0)
    spool = Spool(tmp_path, CPUS, PAGE, chooser, most)
    for k in range(3000):
        write(spool, 0, k * MS)
        if k < 1500:
            chooser.add([released(k, late=k % 40 == 0)])
        assert spool.settle() and spool.size_bytes <= most
    assert spool.overrun and spool.size_bytes > most // 2


@pytest.mark.parametrize(
    ("most", "came", "stay"),
    [
        (400, (400, 2), (200, 2)),
        (FEWEST_IN_TIME, (FEWEST_IN_TIME, 2), (FEWEST_IN_TIME, 1)),
        (FEWEST_IN_TIME, (FEWEST_IN_TIME, 0), (FEWEST_IN_TIME // 2, 0)),
        (2000, (10, 2), (5, 2)),
    ],
)
def test_what_goes_to_make_room(most: int, came: tuple[int, int], stay: tuple[int, int]) -> None:
    """Releases in time, and late ones."""
    chooser, (in_time, late) = Chooser(most), came
    chooser.add([released(k, late=k < late) for k in range(in_time + late)])
    chooser.thin()
    kept = [span.late for span in chooser.kept]
    assert (kept.count(False), kept.count(True)) == stay


def test_without_a_chooser_it_ends_when_there_is_no_more_room(tmp_path: Path) -> None:
    spool = Spool(tmp_path, CPUS, PAGE, None, 1024)
    went_on = []
    for k in range(20):
        write(spool, 0, k * MS)
        went_on.append(spool.settle())
    assert went_on == [True] * 16 + [False] * 4 and len(begins(spool, 0)) == 20


@pytest.mark.parametrize("before_ns", (None, 99 * MS, 90 * MS, 0))
def test_what_surrounds_a_release(before_ns: int | None) -> None:
    span = span_of(7, before_ns, 100 * MS, 100 * MS + 5, late=False)
    assert span.from_ns == {None: 97, 99 * MS: 97, 90 * MS: 89, 0: -1}[before_ns] * MS
    assert span.to_ns == 101 * MS + 5
    assert span_of(7, 0, 2000 * MS, 2001 * MS, late=False).from_ns == 1000 * MS, "a second at most"
    assert span_of(7, before_ns, 100 * MS, 99 * MS, late=False).to_ns == 101 * MS, "served early"
    late = span_of(7, before_ns, 100 * MS, 100 * MS + 5, late=True)
    assert (late.from_ns, late.to_ns) == (span.from_ns - 20 * MS, span.to_ns + 20 * MS)
    wide = span_of(7, before_ns, 100 * MS, 100 * MS + 5, late=True, late_ns=50 * MS)
    assert (wide.from_ns, wide.to_ns) == (span.from_ns - 50 * MS, span.to_ns + 50 * MS)


def test_what_a_wider_margin_may_ask_for_is_not_settled() -> None:
    chooser = Chooser(late_ns=50 * MS)
    chooser.add([Span(7, 100 * MS, 101 * MS, late=False)])
    assert chooser.settled_ns == 50 * MS
    chooser.add([Span(8, 100 * MS, 101 * MS, late=True)])
    assert chooser.settled_ns == 100 * MS


def test_each_release_in_time_is_as_likely_as_any_other() -> None:
    counts = [0] * 10
    for seed in range(2000):
        chooser = Chooser(3, seed)
        chooser.add([released(k) for k in range(10)])
        for span in chooser.kept:
            counts[span.k] += 1
    assert all(450 < count < 750 for count in counts), counts  # 600 each, by 8 standard deviations


def test_of_pages_those_that_touch_a_span_come_and_a_gap_is_told() -> None:
    pages = [ns.to_bytes(8, "little") + b"data" for ns in (100, 200, 300, 400, 500)]

    def kept(*spans: tuple[int, int], of: list[bytes | None] | None = None) -> list[int | None]:
        found = touching(iter(of or pages), spans)
        return [page and int.from_bytes(page[:8], "little") for page in found]

    assert kept((0, 1000)) == [100, 200, 300, 400, 500]
    assert kept((250, 250)) == [None, 200], "it ends where the next begins"
    assert kept((300, 300)) == [None, 200, 300]
    assert kept((150, 150), (550, 900)) == [100, None, 500], "the last one has no end"
    assert kept((0, 50)) == []
    assert kept((150, 350), of=[pages[0], None, pages[2], pages[3]]) == [100, None, 300]
    assert kept((310, 350), of=[pages[0], None, pages[2], pages[3]]) == [None, 300]
