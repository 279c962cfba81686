"""Which releases a quantity is seen over, and what each counts: the per-release and as-served views.

Both views are streams of blocks in the order of k, warm-up left out, so that a run of any length is
looked at a chunk at a time.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from rtmeter.model import ABSENT, IN_FLIGHT, LOST, SERVED, SKIPPED, TWO_ENDS, WARM_UP_FLAG
from rtmeter.statistics.quantities import Columns, Ints, Quantity, judged_quantity, timeout_ns

LATER = np.iinfo(np.int64).max
"""What a lost release counts: later than anything measured."""

OUTCOME_BITS = 15
"""The bits of the status column that hold the outcome (spec/sample-log.md)."""


@dataclass(frozen=True, slots=True)
class Block:
    """Consecutive releases of a view, arrays of shape (releases,): release index, value in nanoseconds
    (LATER if lost) and outcome (model.SERVED, SKIPPED or LOST)."""

    k: Ints
    value: Ints
    outcome: Ints


def as_served(meta: Mapping[str, Any], quantity: Quantity, chunks: Iterable[Columns]) -> Iterator[Block]:
    """The releases that were served and have every column of the quantity."""
    for rows in _measured(chunks):
        yield _present(_served(meta, quantity, rows))


def per_release(
    meta: Mapping[str, Any], quantity: Quantity, chunks: Iterable[Columns], *, with_k: bool = True
) -> Iterator[Block]:
    """Every release but those in flight.

    A skipped release counts ``free - release``; that of a round trip or request counts from its own
    release to the reply to the next one sent, is lost if that was lost or never sent, in flight if it is.
    A row without the stamps that its outcome needs is left out, which the summary reports. ``with_k``: False
    where nobody asks which releases they are: then ``k`` is not read, and -1.
    """
    if meta["measurement"] in TWO_ENDS:
        names = {"status", "release_ns", *quantity.columns} | ({"k"} if with_k else set())
        for rows in up_to_a_ping(_only(names, rows) for rows in _measured(chunks)):
            yield _present(_answered(quantity, rows, with_k))
    else:
        for rows in _measured(chunks):
            yield _present(_freed(meta, quantity, rows, with_k))


def missed(meta: Mapping[str, Any], chunks: Iterable[Columns], deadline_ns: int | None) -> Ints:
    """The releases (k, ascending) that a verdict counts as missed: late, lost, and skipped where that is a
    miss by itself; without a deadline those that are one by any. Where chunks are asked about one by one,
    those of round trips and requests end with the ping that serves the skipped ones (``up_to_a_ping``).
    """
    latest_ns = LATER - 1 if deadline_ns is None else deadline_ns
    found = [np.empty(0, np.int64)]
    for block in per_release(meta, judged_quantity(meta), chunks):
        which = block.value > latest_ns
        if meta["measurement"] not in TWO_ENDS:
            which |= block.outcome == SKIPPED
        found.append(block.k[which])
    return np.concatenate(found)


def _measured(chunks: Iterable[Columns]) -> Iterator[Columns]:
    for chunk in chunks:
        if (only := same(chunk["status"])) is not None:
            if not only & WARM_UP_FLAG:
                yield chunk
            continue
        warm_up = (chunk["status"] & WARM_UP_FLAG) != 0
        rows = _Some(chunk, ~warm_up) if warm_up.any() else chunk
        if len(rows["status"]):
            yield rows


def same(column: Ints) -> int | None:
    """The one value of a column that is one value over and over, as a file may say of a whole group of rows;
    None of any other, and of none."""
    return int(column[0]) if len(column) and column.strides == (0,) else None


def outcomes(status: Ints) -> Ints:
    """What became of the releases, without the flags; as much one value as the status is."""
    only = same(status)
    return status & OUTCOME_BITS if only is None else np.broadcast_to(only & OUTCOME_BITS, status.shape)


def all_served(outcome: Ints) -> bool:
    """Whether each of them was served."""
    only = same(outcome)
    return bool((outcome == SERVED).all()) if only is None else only == SERVED


class _Some(Mapping[str, Ints]):
    """Some of the rows, of each column when it is asked for."""

    def __init__(self, rows: Columns, which: Any) -> None:
        self._rows, self._which = rows, which

    def __getitem__(self, name: str) -> Ints:
        some: Ints = self._rows[name][self._which]
        return some

    def __iter__(self) -> Iterator[str]:
        return iter(self._rows)

    def __len__(self) -> int:
        return len(self._rows)


def _select(rows: Columns, which: Any) -> Columns:
    return {name: column[which] for name, column in rows.items()}


def _only(names: Iterable[str], rows: Columns) -> Columns:
    return {name: rows[name] for name in names}


def _served(meta: Mapping[str, Any], quantity: Quantity, rows: Columns) -> Block:
    outcome = outcomes(rows["status"])
    if not all_served(outcome):
        served = outcome == SERVED
        rows = _select(_only({"k", *quantity.columns}, rows), served)
        outcome = outcome[served]
    return Block(rows["k"], quantity.of(rows, timeout_ns(meta)), outcome)


def _freed(meta: Mapping[str, Any], quantity: Quantity, rows: Columns, with_k: bool) -> Block:
    outcome = outcomes(rows["status"])
    value = quantity.of(rows, timeout_ns(meta))
    if not all_served(outcome):
        skipped = outcome == SKIPPED
        if skipped.any():
            free, release = rows["free_ns"][skipped], rows["release_ns"][skipped]
            value[skipped] = np.where(free == ABSENT, ABSENT, free - release)
        value[outcome == LOST] = LATER
        value[outcome == IN_FLIGHT] = ABSENT
    return Block(_k_of(rows, with_k), value, outcome)


def _k_of(rows: Columns, with_k: bool) -> Ints:
    """Which releases they are; -1 each where nobody asks."""
    nobody_asks: Ints = np.broadcast_to(np.int64(-1), len(rows["status"]))
    return rows["k"] if with_k else nobody_asks


def _answered(quantity: Quantity, rows: Columns, with_k: bool) -> Block:
    outcome = outcomes(rows["status"])
    value = quantity.of(rows, 0)
    if not all_served(outcome):
        value[outcome == LOST] = LATER
        value[outcome == IN_FLIGHT] = ABSENT
        skipped = np.flatnonzero(outcome == SKIPPED)
        pings = np.flatnonzero(outcome != SKIPPED)
        if len(pings):
            ping = pings[np.searchsorted(pings, skipped)]
            answer = value[ping]
            later = answer + (rows["release_ns"][ping] - rows["release_ns"][skipped])
            value[skipped] = np.where((answer == LATER) | (answer == ABSENT), answer, later)
        else:
            value[skipped] = LATER
    return Block(_k_of(rows, with_k), value, outcome)


def up_to_a_ping(chunks: Iterable[Columns]) -> Iterator[Columns]:
    """The same rows cut so that each chunk ends with a ping, except for what follows the last one."""
    held: Columns | None = None
    for chunk in chunks:
        if held is not None:
            chunk = {name: np.concatenate((column, chunk[name])) for name, column in held.items()}
        pings = np.flatnonzero((chunk["status"] & OUTCOME_BITS) != SKIPPED)
        end = int(pings[-1]) + 1 if len(pings) else 0
        held = _select(chunk, slice(end, None)) if end < len(chunk["status"]) else None
        if end:
            yield _select(chunk, slice(0, end))
    if held is not None:
        yield held


def _present(block: Block) -> Block:
    absent = block.value == ABSENT
    if not absent.any():
        return block
    there = ~absent
    return Block(block.k[there], block.value[there], block.outcome[there])
