"""Which frame gives which rows, and which rows no frame gives."""

from __future__ import annotations

import heapq

import numpy as np

from rtmeter.statistics.quantities import Ints


def claims(first_rows: Ints, row_counts: Ints) -> Ints:
    """Rows of ``(frame, first, end)`` in the order of ``first``, without overlap: of two frames that claim
    a row the first in the file has it. ``frame`` indexes the arguments, ``end`` is exclusive.
    """
    ends = first_rows + row_counts
    order = np.argsort(first_rows)
    if (first_rows[order][1:] >= ends[order][:-1]).all():
        return np.column_stack((order, first_rows[order], ends[order]))
    return _sweep(order, first_rows, ends)


def _sweep(order: Ints, first_rows: Ints, ends: Ints) -> Ints:
    """Goes through the rows in order; a heap holds the frames that claim the present one."""
    pieces: list[list[int]] = []
    open_frames: list[int] = []
    starts = [(int(first_rows[frame]), int(frame)) for frame in reversed(order)]
    row = 0
    while starts or open_frames:
        if not open_frames:
            row = max(row, starts[-1][0])
        while starts and starts[-1][0] <= row:
            heapq.heappush(open_frames, starts.pop()[1])
        frame = open_frames[0]
        if ends[frame] <= row:
            heapq.heappop(open_frames)
            continue
        end = min(int(ends[frame]), starts[-1][0]) if starts else int(ends[frame])
        if pieces and pieces[-1][0] == frame and pieces[-1][2] == row:
            pieces[-1][2] = end
        else:
            pieces.append([frame, row, end])
        row = end
    return np.array(pieces, dtype=np.int64).reshape(-1, 3)


def gaps(pieces: Ints, rows_known: int, ended: bool, first_row: int = 0) -> list[list[int | None]]:
    """The ranges ``[first, last]`` of rows from ``first_row`` on that no piece covers, below ``rows_known``
    or the last piece's end; without an end frame the log may have gone on: a last range ``[first, None]``.
    """
    begins = np.concatenate(([first_row], pieces[:, 2]))
    ends = np.concatenate((pieces[:, 1], [max(rows_known, int(begins[-1]))]))
    open_ = np.flatnonzero(begins < ends)
    found: list[list[int | None]] = [[int(begins[i]), int(ends[i]) - 1] for i in open_]
    if not ended:
        found.append([int(ends[-1]), None])
    return found
