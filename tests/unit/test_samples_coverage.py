"""Who gives which row, against the plain definition."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from rtmeter.samples.coverage import claims, gaps
from rtmeter.samples.reader import _merged

ROWS = 40
spans = st.lists(st.tuples(st.integers(0, ROWS - 10), st.integers(1, 10)), max_size=12)


def pieces_of(frames: list[tuple[int, int]]) -> np.ndarray:
    return claims(*(np.array([frame[i] for frame in frames], dtype=np.int64) for i in (0, 1)))


@given(spans)
def test_the_first_frame_that_claims_a_row_has_it(frames: list[tuple[int, int]]) -> None:
    owner = [next((i for i, (at, n) in enumerate(frames) if at <= row < at + n), None) for row in range(ROWS)]
    given_by: list[int | None] = [None] * ROWS
    last = 0
    for frame, first, end in pieces_of(frames).tolist():
        assert last <= first < end
        last = end
        given_by[first:end] = [frame] * (end - first)
    assert given_by == owner


@given(spans, st.integers(0, ROWS), st.booleans())
def test_gaps_are_the_rows_that_nobody_gives(frames: list[tuple[int, int]], known: int, ended: bool) -> None:
    covered = {row for at, n in frames for row in range(at, at + n)}
    end = max(known, max(covered, default=-1) + 1)
    lacking = gaps(pieces_of(frames), known, ended)
    rows: set[int] = set()
    for first, last in lacking:
        assert first is not None
        rows |= set(range(first, end + 1 if last is None else last + 1))
    assert rows == set(range(end)) - covered | (set() if ended else {end})
    assert [last for _, last in lacking[:-1]] == [last for _, last in lacking[:-1] if last is not None]


def test_frames_in_order_are_taken_as_they_are() -> None:
    assert pieces_of([(0, 5), (5, 3), (9, 1)]).tolist() == [[0, 0, 5], [1, 5, 8], [2, 9, 10]]
    assert pieces_of([]).shape == (0, 3)


def test_ranges_of_missing_rows_that_touch_are_one() -> None:
    assert _merged([[5, 9], [0, 4], [11, 12], [13, None]]) == [[0, 9], [11, None]]
