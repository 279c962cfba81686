"""Tidying an archive: many small files become few, and files that nothing refers to any more go."""

from __future__ import annotations

from dataclasses import dataclass

from rtmeter.archive.schema import SCHEMAS
from rtmeter.archive.tables import Archive

KEPT_HOURS = 7 * 24
"""Files younger than this stay: somebody may just read or write them."""


@dataclass
class Pruned:
    """Files that were joined, those that they became, and files that were removed."""

    joined: int = 0
    became: int = 0
    removed: int = 0


def prune(archive: Archive, kept_hours: int = KEPT_HOURS) -> Pruned:
    """Joins small files and removes those that are no part of the archive for ``kept_hours``. No row is
    changed, others may read and add meanwhile, and it may be killed: whatever was joined stays so."""
    archive.open()
    done = Pruned()
    for name in SCHEMAS:
        table = archive.table(name)
        with archive.telling():
            metrics = table.optimize.compact()
            done.joined += int(metrics["numFilesRemoved"])
            done.became += int(metrics["numFilesAdded"])
            gone = table.vacuum(
                kept_hours, dry_run=False, enforce_retention_duration=kept_hours >= KEPT_HOURS
            )
            done.removed += len(gone)
    return done
