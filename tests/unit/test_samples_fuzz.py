"""Logs damaged at random: whatever happens to the bytes, whole frames are read and the rest is told.

The oracle does not know how the reader works: a frame whose bytes still stand somewhere in the file is
undamaged, so its rows must come, with their values; every other row must be reported as missing.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

import numpy as np
from hypothesis import HealthCheck, event, given, settings
from hypothesis import strategies as st
from sample_logs import FILE_HEAD, Piece, joined, wakeup_log

from rtmeter.errors import RtmeterError
from rtmeter.samples import LogReader

Edit = Callable[[bytearray], None]

_places = st.floats(0, 1, exclude_max=True)


def _at(data: bytearray, place: float) -> int:
    return int(place * len(data))


def _truncate(place: float) -> Edit:
    def edit(data: bytearray) -> None:
        del data[_at(data, place) :]

    return edit


def _flip(place: float, bit: int) -> Edit:
    def edit(data: bytearray) -> None:
        if data:
            data[_at(data, place)] ^= 1 << bit

    return edit


def _insert(place: float, junk: bytes) -> Edit:
    def edit(data: bytearray) -> None:
        at = _at(data, place)
        data[at:at] = junk

    return edit


def _delete(place: float, size: int) -> Edit:
    def edit(data: bytearray) -> None:
        at = _at(data, place)
        del data[at : at + size]

    return edit


def _zero(place: float, size: int) -> Edit:
    def edit(data: bytearray) -> None:
        at = _at(data, place)
        end = min(at + size, len(data))
        data[at:end] = bytes(end - at)

    return edit


def _copy(place: float, target: float, size: int) -> Edit:
    """Copies a stretch elsewhere: doubled frames, heads within payloads."""

    def edit(data: bytearray) -> None:
        at, to = _at(data, place), _at(data, target)
        data[to:to] = data[at : at + size]

    return edit


_junk = st.one_of(st.binary(min_size=1, max_size=100), st.just(b"RBF\x01"), st.just(b"RBF\x01" * 20))
_sizes = st.integers(1, 3000)
_byte_edits = st.one_of(
    st.builds(_truncate, _places),
    st.builds(_flip, _places, st.integers(0, 7)),
    st.builds(_insert, _places, _junk),
    st.builds(_delete, _places, _sizes),
    st.builds(_zero, _places, _sizes),
    st.builds(_copy, _places, _places, _sizes),
)


@st.composite
def damaged_logs(draw: st.DrawFn) -> tuple[list[Piece], bytes]:
    """The frames of a whole log, and a file made of them with frames moved, doubled or left out, and then
    bytes damaged.
    """
    whole = wakeup_log(draw(st.lists(st.integers(1, 40), max_size=6)), draw(st.booleans()))
    order = list(range(len(whole)))
    if draw(st.booleans()):
        order = draw(st.permutations(order))
        order = [number for number in order for _ in range(draw(st.integers(0, 2)))]
    data = bytearray(joined([whole[number] for number in order]))
    for edit in draw(st.lists(_byte_edits, max_size=4)):
        edit(data)
    return whole, bytes(data)


def check(whole: list[Piece], data: bytes, path: Path) -> None:
    path.write_bytes(data)
    intact = [piece for piece in whole if piece.data in data]
    try:
        reader = LogReader(path)
    except RtmeterError:
        header_lost = not any(piece.data[4:5] == b"H" for piece in intact)
        assert header_lost or not data.startswith(FILE_HEAD)
        event("refused")
        return
    rows = 1 + max(
        (piece.first + piece.values.shape[1] for piece in whole if piece.values is not None), default=0
    )
    times_seen = np.zeros(rows, int)
    last = -1
    for first, columns in reader.frames():
        values = np.stack(list(columns.values()))
        assert first > last
        last = first + values.shape[1] - 1
        times_seen[first : last + 1] += 1
        source = next(
            p for p in whole if p.values is not None and p.first <= first < p.first + p.values.shape[1]
        )
        assert source.values is not None
        np.testing.assert_array_equal(
            values, source.values[:, first - source.first : last + 1 - source.first]
        )
    assert times_seen.max(initial=0) <= 1
    for piece in intact:
        if piece.values is not None:
            assert times_seen[piece.first : piece.first + piece.values.shape[1]].all()
    told_missing = np.zeros(rows, int)
    for begin, end in reader.missing:
        assert begin is not None
        told_missing[begin : None if end is None else end + 1] += 1
    np.testing.assert_array_equal((times_seen + told_missing)[:-1], 1)
    ended = any(piece.data[4:5] == b"E" for piece in intact)
    assert told_missing[-1] == (0 if ended else 1)  # the row behind the last: an open end covers it
    event("missing rows" if reader.missing else "all rows")


def test_reads_what_is_whole_and_tells_what_is_not(tmp_path: Path, sized: Callable[..., int]) -> None:
    @settings(
        max_examples=sized("damaged logs", reduced=500, full=50_000),
        deadline=None,
        derandomize=os.environ.get("RTMETER_FULL") != "1",
        suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large],
    )
    @given(damaged_logs())
    def run(log: tuple[list[Piece], bytes]) -> None:
        check(*log, tmp_path / "damaged.rtlog")

    run()
