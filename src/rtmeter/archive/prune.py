"""Tidying an archive: samples that were kept for a while go, many small files become few, and files that
nothing refers to any more go."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING

from rtmeter.archive.claim import alone
from rtmeter.archive.once import change, literal
from rtmeter.archive.schema import SAMPLED, SAMPLES
from rtmeter.archive.tables import Archive, snapshot, written
from rtmeter.results.store import quoted

if TYPE_CHECKING:
    from deltalake import DeltaTable

KEPT_HOURS = 7 * 24
"""Files younger than this stay: somebody may just read or write them."""

SAMPLES_DAYS = 30
"""Samples that were taken longer ago than this go, but for late releases and their surroundings."""


@dataclass
class Pruned:
    """Samples let go, those that count for nothing, files that were joined, those that they became, and files
    that were removed."""

    samples: int = 0
    abandoned: int = 0
    joined: int = 0
    became: int = 0
    removed: int = 0


def prune(
    archive: Archive,
    kept_hours: int = KEPT_HOURS,
    samples_days: int = SAMPLES_DAYS,
    now: datetime | None = None,
) -> Pruned:
    """Lets the samples go that are not for good and were taken ``samples_days`` ago, and those that count for
    nothing for ``kept_hours``; joins small files, and removes those that are no part of the archive for so
    long. No other row is changed, others may read and add meanwhile, and it may be killed: whatever was
    joined stays so. Raises RtmeterError while another tidies."""
    done = Pruned()
    oldest = (now or datetime.now(UTC)) - timedelta(days=samples_days)
    with alone(archive.open(), now) as still:
        for name in snapshot(archive):
            still()
            if name == SAMPLES:
                done.samples = _remove(archive, f"NOT for_good AND taken < '{oldest:%Y-%m-%dT%H:%M:%S.%fZ}'")
                for batch, cells in abandoned(archive, kept_hours, now).items():
                    gone = f"batch = {quoted(batch)} AND cell IN ({', '.join(map(quoted, cells))})"
                    done.abandoned += _remove(archive, gone)
            table, enforced = archive.table(name), kept_hours >= KEPT_HOURS
            with archive.telling():
                metrics = table.optimize.compact(writer_properties=written(name))
                removed = table.vacuum(kept_hours, dry_run=False, enforce_retention_duration=enforced)
            done.joined += int(metrics["numFilesRemoved"])
            done.became += int(metrics["numFilesAdded"])
            done.removed += len(removed)
    return done


def _remove(archive: Archive, which: str) -> int:
    """Removes those samples; returns how many."""

    def delete(table: DeltaTable) -> int:
        return int(table.delete(which, writer_properties=written(SAMPLES))["num_deleted_rows"] or 0)

    return change(archive, SAMPLES, delete)


def abandoned(
    archive: Archive, kept_hours: int = KEPT_HOURS, now: datetime | None = None
) -> dict[str, list[str]]:
    """By batch the cells of samples that no row of ``sampled`` names, which were taken ``kept_hours`` ago:
    whoever took them was killed before he had added them, or another was faster."""
    import pyarrow as pa
    from deltalake import QueryBuilder

    if not archive.has(SAMPLES):
        return {}
    oldest = (now or datetime.now(UTC)) - timedelta(hours=kept_hours)
    query = "SELECT DISTINCT s.batch, s.cell FROM samples s LEFT ANTI JOIN sampled n "
    query += f"ON n.cell = s.cell AND n.batch = s.batch WHERE s.taken < {literal(oldest)}"
    with archive.telling():  # what was sampled is read last: nothing that it names is taken for abandoned
        samples, sampled = archive.table(SAMPLES), archive.table(SAMPLED)
        answer = QueryBuilder().register("samples", samples).register("sampled", sampled).execute(query)
        found = pa.RecordBatchReader.from_stream(answer).read_all().to_pylist()
    cells: dict[str, list[str]] = {}
    for row in found:
        cells.setdefault(row["batch"], []).append(row["cell"])
    return cells
