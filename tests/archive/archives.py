"""Archives made up for tests: cells as synthetic.py makes them, of rigs with names and days of their own."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import duckdb
import numpy as np

from rtmeter.archive.add import add_rows
from rtmeter.archive.cells import CellRows
from rtmeter.archive.groups import ArchiveGroup
from rtmeter.archive.numbers import PERCENTS
from rtmeter.archive.tables import Archive, archive_at
from rtmeter.statistics.fixed_bins import binned
from rtmeter.statistics.ranks import quantile_index, share_of
from rtmeter.statistics.views import LATER
from synthetic import Delays, Made, usual, write_cell

FIRST = datetime(2026, 1, 1, tzinfo=UTC)
MACHINE = {"hostname": "robot-7", "kernel": "6.1.0-26-rt-amd64", "architecture": "x86_64", "boot_id": "7b0c"}
MACHINE |= {"cpu_model": "Intel(R) Xeon(R)", "cpus_online": 2, "virtual_machine": "kvm"}


def write_cells(folder: Path, rigs: int = 2, days: int = 2, samples: int = 1200) -> list[Path]:
    """Cells of several rigs and days under a folder, each with samples of its own."""
    return [
        write_cell(folder / f"rig{rig}" / f"day{day}", made(rig, day, samples, usual(rig * 100 + day, 50)))
        for rig in range(rigs)
        for day in range(days)
    ]


def made(rig: int, day: int, samples: int, delays: Delays, **machine: Any) -> Made:
    """A cell of a rig and a day."""
    started = FIRST + timedelta(days=day)
    times = {"started": stamp(started), "ended": stamp(started + timedelta(minutes=1))}
    facts = (
        MACHINE | {"hostname": f"rig-{rig}", "machine_id": f"{rig:032x}", "boot_id": f"{rig}-{day}"} | machine
    )
    changes = {"machine": facts, **times}
    return Made(id="loop", samples=samples, delays=delays, miss_ratio=0.01, changes=changes)


def stamp(time: datetime) -> str:
    return time.strftime("%Y-%m-%dT%H:%M:%SZ")


def rows(number: int, values: Sequence[int], **changes: Any) -> CellRows:
    """The rows of a cell that has these values of its judged quantity, without files."""
    found = binned(np.array(values, dtype=np.int64))
    at = FIRST + timedelta(seconds=number)
    row: dict[str, Any] = {
        "cell": f"{number:032x}",
        "rig": f"rig-{number % 4}",
        "measured": at,
        "started": at,
    }
    row |= {"ended": at, "added": at, "labels": [], "valid": True, "n": found.n, "bins": len(found.bins)}
    row |= {"min_ns": min(values), "max_ns": max(values), "blocks": 0, "causes": 0, "findings": 0}
    for name, percent in PERCENTS.items():
        value = sorted(values)[quantile_index(found.n, share_of(percent))]
        row[name] = None if value == LATER else value
    return CellRows(row | changes, found)


def of_one_rig(
    folder: Path, levels: Sequence[int], facts: Callable[[int], dict[str, Any]] = lambda _: {}
) -> Archive:
    """A cell a day, at these levels."""
    made = archive_at(folder / "archive")
    made.make()
    random, group = np.random.default_rng(3), {}
    for day, level in enumerate(levels):
        at = FIRST + timedelta(days=day)
        about = {
            "rig": "rig",
            "campaign": "nightly",
            "name": "loop",
            "adapter": "posix",
            "quantity": "latency",
        }
        about |= {"measured": at, "started": at, "p99_9_ns": round(level * float(random.normal(1, 0.01)))}
        one = rows(day, [1, 2, 3], **(about | facts(day)))
        group[one.cell["cell"]] = one
    add_rows(made, group)
    return made


def cells_in(archive: Archive) -> list[str]:
    """The identities of all cells, as often as they are there."""
    return sorted(archive.table("cells").to_pyarrow_table(columns=["cell"]).column("cell").to_pylist())


def files_of(archive: Archive, table: str) -> Iterator[Path]:
    yield from map(Path, archive.files(archive.table(table)))


def plain(groups: list[ArchiveGroup]) -> list[tuple[object, ...]]:
    """Everything of the groups as text: what two engines must have the same of."""
    found: list[tuple[object, ...]] = []
    for g in groups:
        counts = g.distribution.bins.tolist(), g.distribution.counts.tolist(), g.distribution.lost
        found.append((g.key, g.of, g.cells, g.rigs, g.invalid, g.without, counts, g.maximum, repr(g.verdict)))
    return found


def written(archive: Archive, change: str) -> None:
    """Changes a table of the archive, as SQL says it."""
    _, name, _, changes = change.split(maxsplit=3)
    with duckdb.connect() as connection:
        connection.execute("SET TimeZone = 'UTC'")
        whole = archive.table(name).to_pyarrow_table()
        connection.execute(f"CREATE TABLE {name} AS SELECT * FROM whole")
        connection.execute(f"UPDATE {name} SET {changes}")
        changed = connection.table(name).to_arrow_table().cast(whole.schema)
    archive.table(name).delete()
    archive.append(name, changed)
