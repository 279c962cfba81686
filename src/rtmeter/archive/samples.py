"""Samples taken along: every late release with what surrounds it, for good; all others for a while
(docs/archive.md)."""

from __future__ import annotations

import uuid
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING, Any

import numpy as np

from rtmeter.archive.once import rows_there, until_first, write_once
from rtmeter.archive.schema import CELLS, SAMPLED, SAMPLES, SCHEMAS, STAMPS
from rtmeter.archive.tables import Archive
from rtmeter.errors import RtmeterError
from rtmeter.model import ABSENT, STATUS_NAMES, WARM_UP_FLAG
from rtmeter.results import store
from rtmeter.results.cells import StoredCell
from rtmeter.results.data import samples_of
from rtmeter.samples.rows import Samples
from rtmeter.statistics.quantities import Columns, Ints
from rtmeter.statistics.views import OUTCOME_BITS, missed

if TYPE_CHECKING:
    import pyarrow as pa
    from numpy.typing import NDArray

SURROUNDINGS = 64
"""Releases on either side of a late one that stay with it, as librtmeter keeps them."""

_KEY = ("cell", "measured", "rig")


class UnreadableError(Exception):
    """What is wrong with the samples of cells, by identity; nothing was added."""

    def __init__(self, of: Mapping[str, RtmeterError]) -> None:
        super().__init__(*of.values())
        self.of = of


@dataclass
class _Counts:
    """Of a cell: rows that were taken, those that stay for good, those of late releases."""

    samples: int = 0
    for_good: int = 0
    late: int = 0


def add_samples(
    archive: Archive, cells: Mapping[str, StoredCell], started: Sequence[datetime | None], now: datetime
) -> int:
    """Takes the samples of these cells along, by identity, all of which are in the archive; those that it
    has, or had before they were let go, stay as they are. ``started``: the times at which the archive has the
    cells. Returns of how many cells. Raises UnreadableError if samples of any cannot be read, RtmeterError if
    the store refuses."""
    having = {name: cell for name, cell in cells.items() if _has_samples(cell)}
    if not having:
        return 0
    known = rows_there(archive, archive.table(CELLS), CELLS, started, (*_KEY, "deadline_ns"))
    ordered = sorted(
        (row for row in known if row["cell"] in having),
        key=lambda row: (row["rig"], row["measured"], row["cell"]),
    )
    own = {"batch": uuid.uuid4().hex, "taken": now}
    found = {row["cell"]: ({key: row[key] for key in _KEY} | own, row["deadline_ns"]) for row in ordered}
    counts: dict[str, _Counts] = {}

    def children(new: Mapping[str, Any]) -> None:
        def take() -> None:
            counts.update({name: _Counts() for name in new})
            parts = {
                name: _batches(having[name], key, deadline_ns, counts[name])
                for name, (key, deadline_ns) in new.items()
            }
            _append(archive, parts)

        until_first(take)

    def rows(new: Mapping[str, Any]) -> pa.Table:
        import pyarrow as pa

        of = [key | vars(counts[name]) for name, (key, _) in new.items()]
        return pa.Table.from_pylist(of, SCHEMAS[SAMPLED])

    times = [key["measured"] for key, _ in found.values()]
    return write_once(archive, SAMPLED, found, times, children, rows)


def _has_samples(cell: StoredCell) -> bool:
    return cell.record.usable and samples_of(cell.folder, cell.record) is not None


def _append(archive: Archive, parts: Mapping[str, Iterator[pa.RecordBatch]]) -> None:
    """One commit, batch by batch; none if the file of any cell has something wrong, once all are read."""
    import pyarrow as pa

    wrong: dict[str, RtmeterError] = {}

    def read() -> Iterator[pa.RecordBatch]:
        for name, batches in parts.items():
            try:
                yield from batches
            except RtmeterError as error:
                wrong[name] = error
        if wrong:
            raise UnreadableError(wrong)

    try:
        archive.append(SAMPLES, pa.RecordBatchReader.from_batches(SCHEMAS[SAMPLES], read()))
    except Exception:
        if wrong:
            raise UnreadableError(wrong) from None
        raise


def _batches(
    cell: StoredCell, key: Mapping[str, Any], deadline_ns: int | None, counts: _Counts
) -> Iterator[pa.RecordBatch]:
    """All rows of a cell, in the order of k."""
    for rows, all_for_good, late_k in _sources(cell, deadline_ns):
        k = rows["k"]
        late = np.isin(k, late_k)
        for_good = np.ones(len(k), dtype=np.bool_) if all_for_good else near(k, late_k)
        counts.samples += len(k)
        counts.for_good += int(for_good.sum())
        counts.late += int(late.sum())
        yield _batch(rows, key, late, for_good)


def _sources(cell: StoredCell, deadline_ns: int | None) -> Iterator[tuple[Columns, bool, Ints]]:
    """Chunks of rows, whether all of them stay for good, and which releases of their file were late."""
    first_k = int(cell.record.config.get("first_k") or 0)
    before = cell.folder / store.LATE_RELEASES
    if first_k and before.is_file():
        samples = Samples(before)
        names = sorted(samples.columns - {"k", "status", "warm_up"})
        late = missed(cell.record.meta, samples.chunks(*names), deadline_ns)
        for rows in samples.chunks(*names):
            older = rows["k"] < first_k
            if older.any():
                yield {name: column[older] for name, column in rows.items()}, True, late
    chunks = store.chunks(cell.folder)
    late = missed(cell.record.meta, chunks(), deadline_ns)
    for rows in chunks():
        yield rows, False, late


def near(k: Ints, late: Ints) -> NDArray[np.bool_]:
    """Which releases are no further than SURROUNDINGS from a late one; both ascending."""
    if not len(late):
        return np.zeros(len(k), dtype=np.bool_)
    next_late = np.searchsorted(late, k - SURROUNDINGS)
    there = next_late < len(late)
    return there & (late[np.minimum(next_late, len(late) - 1)] <= k + SURROUNDINGS)


def _batch(
    rows: Columns, key: Mapping[str, Any], late: NDArray[np.bool_], for_good: NDArray[np.bool_]
) -> pa.RecordBatch:
    import pyarrow as pa

    from rtmeter.samples.arrow import array, bits, strings

    status = np.asarray(rows["status"])
    outcome = status & OUTCOME_BITS
    names = pa.array(strings(STATUS_NAMES)).take(array(pa.int64(), outcome.astype(np.int64)))
    own = {"k": array(pa.int64(), rows["k"]), "status": names, "late": bits(late), "for_good": bits(for_good)}
    own["warm_up"] = bits((status & WARM_UP_FLAG) != 0)
    own |= {name: array(pa.int64(), rows[name], rows[name] == ABSENT) for name in STAMPS if name in rows}
    size, schema = len(status), SCHEMAS[SAMPLES]
    columns = [
        own[field.name] if field.name in own else pa.repeat(pa.scalar(key.get(field.name), field.type), size)
        for field in schema
    ]
    return pa.record_batch(columns, schema=schema)
