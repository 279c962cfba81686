"""The server's stamps of round trips and requests, joined to the client's rows by sequence number."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import numpy as np
from numpy.typing import NDArray

from rtmeter.errors import RtmeterError
from rtmeter.model import ABSENT
from rtmeter.samples.kernel_stamps import KernelStamps
from rtmeter.samples.reader import LogReader
from rtmeter.statistics.quantities import Columns

SERVER_STAMPS = ("server_received_ns", "server_sent_ns")
_KEYS = ("sequence", *SERVER_STAMPS)

MAX_PENDING_ROWS = 1 << 22
"""Rows of the server that may be read before the client's row is: bounds the memory (100 MB)."""


class ServerRows:
    """Gives each of the client's rows, in the order of k, the server's first row of that sequence: its
    ``stamps``.

    A server's log is nearly in the order of the sequence. A first pass notes below which sequence no later
    frame goes; so the second one knows how far to read, however late a message came.
    """

    def __init__(
        self, reader: LogReader, to_client: Callable[[NDArray[np.int64]], NDArray[np.int64]] | None = None
    ) -> None:
        """``to_client``: what the client's clock would have shown at the server's stamps."""
        if reader.header.get("role") != "server" or not set(_KEYS) <= set(reader.columns):
            raise RtmeterError(
                "is not the log of a server",
                where=str(reader.path),
                field="role",
                value=reader.header.get("role"),
                remedy="give the log that the server's probe wrote",
            )
        self._reader, self._to_client = reader, to_client
        self._kernel = KernelStamps(reader.columns, reader.meta)
        self.stamps = tuple(name for name in self._kernel.names if name not in ("sequence", "status"))
        lowest = [int(columns["sequence"].min()) for _, columns in reader.frames()]
        self._lowest_from = np.minimum.accumulate(np.array(lowest, dtype=np.int64)[::-1])[::-1]
        self._frames = reader.frames()
        self._frames_read = 0
        self._pending = self._no_rows = np.empty((1 + len(self.stamps), 0), dtype=np.int64)
        self._unmatched = 0

    def take(self, k: NDArray[np.int64]) -> Columns:
        """The ``stamps`` for the client's rows ``k`` (ascending, above those of earlier calls); ABSENT
        where the server has none.
        """
        end = int(k[-1]) + 1
        stamps = np.full((len(self.stamps), len(k)), ABSENT, dtype=np.int64)
        given = np.zeros(len(k), dtype=bool)
        later, pending = [self._no_rows], 0
        for rows in self._rows_below(end):
            now = rows[0] < end
            if not now.all():
                later.append(rows[:, ~now])
                pending += later[-1].shape[1]
            if pending > MAX_PENDING_ROWS:
                raise RtmeterError(
                    f"is out of order by more than {MAX_PENDING_ROWS} messages",
                    where=str(self._reader.path),
                    remedy="convert the client's log without the server's",
                )
            self._deal(rows[:, now], k, stamps, given)
        self._pending = np.concatenate(later, axis=1)
        if self._to_client is not None:
            stamps = self._to_client(stamps)
        return dict(zip(self.stamps, stamps, strict=True))

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

    def _rows_below(self, end: int) -> Iterator[NDArray[np.int64]]:
        """What is pending, then every frame up to the last one that has a sequence below ``end``."""
        yield self._pending
        while self._frames_read < len(self._lowest_from) and self._lowest_from[self._frames_read] < end:
            _, columns = next(self._frames)
            self._frames_read += 1
            told = self._kernel.told(columns)
            yield np.stack([told[name] for name in ("sequence", *self.stamps)])

    def _deal(
        self,
        rows: NDArray[np.int64],
        k: NDArray[np.int64],
        stamps: NDArray[np.int64],
        given: NDArray[np.bool_],
    ) -> None:
        """Puts the rows' stamps where ``k`` is their sequence, unless an earlier row was given there."""
        place = np.minimum(np.searchsorted(k, rows[0]), len(k) - 1)
        known = k[place] == rows[0]
        self._unmatched += int((~known).sum())
        new = known & ~given[place]
        # Backwards: of two rows with one sequence the first received is written last, and stays.
        stamps[:, place[new][::-1]] = rows[1:, new][:, ::-1]
        given[place[new]] = True
