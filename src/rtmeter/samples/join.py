"""The server's stamps of a round trip, joined to the client's rows by sequence number."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from rtmeter.errors import RtmeterError
from rtmeter.model import ABSENT
from rtmeter.samples.reader import Columns, LogReader

SERVER_STAMPS = ("server_received_ns", "server_sent_ns")
_KEYS = ("sequence", *SERVER_STAMPS)

MAX_PENDING_ROWS = 1 << 22
"""Rows of the server that may be read before the client's row is: bounds the memory (100 MB)."""


class ServerRows:
    """Gives each of the client's rows, in the order of k, the server's first row of that sequence.

    A server's log is nearly in the order of the sequence. A first pass notes below which sequence no later
    frame goes; so the second one knows how far to read, however late a message came.
    """

    def __init__(self, reader: LogReader) -> None:
        if reader.header.get("role") != "server" or not set(_KEYS) <= set(reader.columns):
            raise RtmeterError(
                "is not the log of a round trip's server",
                where=str(reader.path),
                field="role",
                value=reader.header.get("role"),
                remedy="give the log that the server's probe wrote",
            )
        self._reader = reader
        lowest = [int(columns["sequence"].min()) for _, columns in reader.frames()]
        self._lowest_from = np.minimum.accumulate(np.array(lowest, dtype=np.int64)[::-1])[::-1]
        self._frames = reader.frames()
        self._frames_read = 0
        self._pending = np.empty((len(_KEYS), 0), dtype=np.int64)
        self._unmatched = 0

    def take(self, k: NDArray[np.int64]) -> Columns:
        """The two stamps for the client's rows ``k`` (ascending, above those of earlier calls); ABSENT
        where the server has none.
        """
        rows = self._below(int(k[-1]) + 1)
        place = np.minimum(np.searchsorted(k, rows[0]), len(k) - 1)
        matched = k[place] == rows[0]
        self._unmatched += int((~matched).sum())
        stamps: Columns = {}
        for name, values in zip(SERVER_STAMPS, rows[1:], strict=True):
            stamps[name] = np.full(len(k), ABSENT, dtype=np.int64)
            # Backwards: of two rows with one sequence the first received is written last, and stays.
            stamps[name][place[matched][::-1]] = values[matched][::-1]
        return stamps

    def finish(self) -> list[str]:
        """What is wrong with the server's log, in words; to be asked when all rows were taken."""
        self._unmatched += self._pending.shape[1]
        self._unmatched += sum(len(columns["sequence"]) for _, columns in self._frames)
        problems = list(self._reader.problems)
        for first, last in self._reader.missing:
            problems.append(
                f"rows from {first} on are missing" if last is None else f"rows {first} to {last} are missing"
            )
        if self._unmatched:
            problems.append(f"{self._unmatched} rows belong to no row of the client's log")
        return [f"server's log: {problem}" for problem in problems]

    def _below(self, end: int) -> NDArray[np.int64]:
        """Takes out all rows (in the order received) with a sequence below ``end``."""
        parts, count = [self._pending], self._pending.shape[1]
        while self._frames_read < len(self._lowest_from) and self._lowest_from[self._frames_read] < end:
            _, columns = next(self._frames)
            self._frames_read += 1
            parts.append(np.stack([columns[name] for name in _KEYS]))
            count += parts[-1].shape[1]
            if count > MAX_PENDING_ROWS:
                raise RtmeterError(
                    f"is out of order by more than {MAX_PENDING_ROWS} messages",
                    where=str(self._reader.path),
                    remedy="convert the client's log without the server's",
                )
        rows = np.concatenate(parts, axis=1)
        now = rows[0] < end
        self._pending = rows[:, ~now]
        return rows[:, now]
