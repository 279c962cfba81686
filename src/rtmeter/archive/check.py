"""Whether an archive is whole: all files readable, each cell once, its numbers those of its bins."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING, Literal

from rtmeter.archive.cells import NO_TIME, NOBODY, NOT_TOLD
from rtmeter.archive.engine import fill, need_archive
from rtmeter.archive.judged import misjudged
from rtmeter.archive.numbers import disagreeing
from rtmeter.archive.prune import abandoned
from rtmeter.archive.schema import CELLS, COMPLETABLE, SCHEMAS
from rtmeter.archive.tables import Archive, snapshot
from rtmeter.errors import RtmeterError

if TYPE_CHECKING:
    import duckdb
    from deltalake import DeltaTable

FlawKind = Literal["damage", "doubt"]

_MOST = 20
"""Cells that are named of each kind of damage."""

_TOLD = f"cell, {', '.join(COMPLETABLE)}"
_TIMES = ", ".join(f"count({name})" for name in COMPLETABLE)

_BROKEN = {
    "is there more than once": "SELECT cell FROM cells GROUP BY cell HAVING count(*) > 1",
    "has no distribution, or several": "SELECT cell FROM cells c WHERE bins IS NOT NULL AND "
    "(SELECT count(*) FROM distributions d WHERE d.cell = c.cell) <> 1",
    "has a distribution of another n than its own": "SELECT cell FROM cells "
    "JOIN (SELECT cell, n, len(counts) AS bins FROM distributions) d USING (cell) "
    "WHERE cells.n <> d.n OR cells.bins <> d.bins",
    "has a distribution, and says that it has none": "SELECT cell FROM cells "
    "JOIN distributions USING (cell) WHERE cells.bins IS NULL",
    "has another minimum or maximum than its distribution": "SELECT cell FROM cells c "
    "JOIN distributions d USING (cell) WHERE (c.min_ns, c.max_ns, c.max_at_k) "
    "IS DISTINCT FROM (d.min_ns, d.max_ns, d.max_at_k)",
    "has misses that are not its late, skipped and lost releases, or more than releases": "SELECT cell "
    "FROM cells WHERE misses > n OR misses <> late + skipped + lost "
    f"AND NOT contains(coalesce(refused, ''), '{NOT_TOLD}')",
    "has bins that do not add up to n": "SELECT cell FROM distributions "
    "WHERE coalesce(list_sum([c.count FOR c IN counts]), 0) + lost <> n "
    "OR list_min([c.count FOR c IN counts]) < 1",
    "has another number of block maxima than it says": "SELECT cell FROM cells c "
    "WHERE blocks IS NOT NULL AND (SELECT count(*) FROM maxima m WHERE m.cell = c.cell) <> blocks",
    "has blocks that do not add up to n, or whose maximum is not that of the cell": "SELECT cell "
    "FROM cells c JOIN (SELECT cell, sum(n) AS blocks_n, sum(lost) AS blocks_lost, max(max_ns) AS most "
    "FROM maxima GROUP BY cell) USING (cell) WHERE blocks_n <> c.n "
    "OR (blocks_lost = 0 AND most IS DISTINCT FROM c.max_ns)",
    "has blocks that are not those from 0 on, each once": "SELECT cell FROM (SELECT cell, count(*) AS rows, "
    "count(DISTINCT block) AS blocks, min(block) AS first, max(block) AS last FROM maxima GROUP BY cell) "
    "WHERE blocks <> rows OR first <> 0 OR last <> rows - 1",
    "has blocks that lost another number of releases than its distribution": "SELECT cell FROM "
    "(SELECT cell, sum(lost) AS in_blocks FROM maxima GROUP BY cell) JOIN distributions USING (cell) "
    "WHERE in_blocks <> lost",
    "has a block whose latest release is not one of it": "SELECT cell FROM (SELECT cell, n, "
    "max_at_k - sum(n) OVER (PARTITION BY cell ORDER BY block) + n AS first_k_at_most FROM maxima) "
    "GROUP BY cell "
    "HAVING min(first_k_at_most) < greatest(max(first_k_at_most - n + 1), 0)",
    "has another latest release than its blocks": "SELECT c.cell FROM cells c JOIN (SELECT cell, "
    "arg_min(max_at_k, (-max_ns, block)) AS latest FROM maxima GROUP BY cell HAVING sum(lost) = 0) m "
    "USING (cell) WHERE c.max_at_k IS DISTINCT FROM m.latest",
    "has another number of lost releases than its distribution allows": "SELECT cell FROM cells c "
    "JOIN distributions d USING (cell) WHERE c.outcome <> 'error' AND c.measurement <> 'own_loop' "
    "AND (c.lost > d.lost OR c.lost + c.skipped < d.lost)",
    "has an outcome that its misses, or its bound, rule out": "SELECT cell FROM cells WHERE outcome = 'fail' "
    "AND misses = 0 OR outcome = 'pass' AND (misses > 0 AND (miss_ratio IS NULL OR criticality = 'hard') "
    "OR upper > miss_ratio AND criticality <> 'hard')",
    "has another rig, or another time, in another table": " UNION ALL ".join(
        f"SELECT x.cell FROM {name} x JOIN cells c USING (cell) WHERE (x.rig, x.measured) "
        "IS DISTINCT FROM (c.rig, c.measured)"
        for name in SCHEMAS
        if name != CELLS
    ),
    "has a number that cannot be": "SELECT cell FROM cells WHERE least(n, misses, late, skipped, lost) < 0 "
    "OR deadline_ns <= 0 OR NOT (miss_ratio > 0 AND miss_ratio < 1) OR NOT (confidence > 0 "
    "AND confidence < 1) OR NOT upper BETWEEN 0 AND 1 OR NOT design_effect BETWEEN 1 AND 1e300 "
    "OR NOT horizon BETWEEN 1 AND 1e6",
    "has another number of causes than it says": "SELECT cell FROM cells c WHERE "
    "(SELECT count(*) FROM causes x WHERE x.cell = c.cell) <> coalesce(causes, 0)",
    "has another number of findings than it says": "SELECT cell FROM cells c WHERE "
    "(SELECT count(*) FROM findings f WHERE f.cell = c.cell) <> findings",
    "is told more than once what it lacked": f"SELECT cell FROM (SELECT {_TOLD} FROM cells_as_written SEMI "
    f"JOIN completed USING (cell) UNION ALL SELECT {_TOLD} FROM completed) GROUP BY cell "
    f"HAVING greatest({_TIMES}) > 1",
    "is said more than once to have samples": "SELECT cell FROM sampled GROUP BY cell HAVING count(*) > 1",
    "has another number of samples than it says": "SELECT cell FROM sampled s LEFT JOIN (SELECT cell, "
    "count(*) AS rows, count(DISTINCT k) AS releases, count(*) FILTER (WHERE x.for_good) AS stay, "
    "count(*) FILTER (WHERE x.late) AS missed FROM samples x GROUP BY cell) USING (cell) "
    "WHERE coalesce(rows, 0) NOT IN (s.samples, s.for_good) OR rows <> releases "
    "OR coalesce(stay, 0) <> s.for_good OR coalesce(missed, 0) <> s.late",
    "has another number of late samples than of misses": "SELECT cell FROM sampled s "
    "JOIN cells c USING (cell) WHERE c.measurement <> 'own_loop' AND s.late <> c.misses",
}


def _at_once(one: str, several: str) -> str:
    """``one`` of cells that overlap in time and differ in ``several``, by clocks that are believed. Each is
    set beside the one before it, not beside all: these are many."""
    return (
        f"SELECT DISTINCT {one} FROM (SELECT {one}, {several}, started, lag({several}) OVER w AS other, "
        f"lag(ended) OVER w AS until FROM cells WHERE clock IS NULL AND {one} IS NOT NULL "
        f"AND {several} IS NOT NULL WINDOW w AS (PARTITION BY {one} ORDER BY started, ended)) "
        f"WHERE other <> {several} AND until > started"
    )


_RIGS = "array_to_string(list_sort(list(DISTINCT rig))[:10], ', ')"

_DOUBTS = {
    "rigs share one machine id ({}): they were cloned from one image; give each an id of its own; what is "
    "added from now on `--label rig=NAME` tells apart, too": f"SELECT {_RIGS} FROM cells "
    "WHERE machine_id IN (SELECT machine_id FROM cells GROUP BY machine_id "
    "HAVING count(DISTINCT coalesce(hostname, '')) > 1 "
    f"UNION {_at_once('machine_id', 'boot_id')}) GROUP BY machine_id",
    "several machines that measured at once have one rig's name ({}): they are one rig here; give each a "
    "name of its own": f"{_at_once('rig', 'machine_id')} ORDER BY rig",
    "cells of rig {} have times that cannot be: its clock was wrong; they stand at the time when they were "
    "added": f"SELECT DISTINCT rig AS what FROM cells WHERE clock <> '{NO_TIME}'",
    "cells of rig {} do not tell when they were measured: they stand at the time when they were added; of "
    "those of one `add` the order is not known": "SELECT DISTINCT rig AS what FROM cells "
    f"WHERE clock = '{NO_TIME}'",
    "cells that name no machine are all of one rig, {}, whatever they are of; what is added from now on "
    "`--label rig=NAME` tells apart": "SELECT DISTINCT rig FROM cells "
    f"WHERE hostname IS NULL AND rig = '{NOBODY}'",
}


@dataclass(frozen=True)
class Flaw:
    """What is wrong: ``damage``, or a ``doubt`` about what the cells say."""

    kind: FlawKind
    message: str


def check(archive: Archive, now: datetime | None = None) -> tuple[int, list[Flaw]]:
    """How many cells there are, and what is wrong with the archive; empty if it is whole."""
    need_archive()
    tables = snapshot(archive)
    flaws = [flaw for name, table in tables.items() for flaw in _files(archive, name, table)]
    if flaws:
        return -1, flaws
    import duckdb

    try:
        with duckdb.connect() as connection:
            fill(connection, archive)
            (counted,) = connection.execute(f"SELECT count(*) FROM {CELLS}").fetchone() or (0,)
            found = [*_broken(connection), *_numbers(connection), *_extremes(connection)]
            found += _doubts(connection)
            return int(counted), [*found, *_abandoned(archive, now)]
    except duckdb.Error as error:
        said = " ".join(str(error).split())[:300]
        return -1, [Flaw("damage", f"cannot be read: {said}")]


def sampled(archive: Archive) -> tuple[int, int]:
    """Of how many cells the archive has samples, and how many these are now."""
    import duckdb

    with duckdb.connect() as connection:
        fill(connection, archive)
        query = "SELECT count(DISTINCT cell), count(*) FROM samples"
        cells, samples = connection.execute(query).fetchone() or (0, 0)
    return int(cells), int(samples)


def _files(archive: Archive, name: str, table: DeltaTable) -> Iterator[Flaw]:
    """Files that are missing or half written, by what the table's log says of each."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    with archive.telling():
        actions = pa.table(table.get_add_actions(flatten=True)).to_pylist()
        system = table.to_pyarrow_dataset().filesystem
    for action in actions:
        path, rows = action["path"], action["num_records"]
        try:
            with system.open_input_file(path) as file:
                found = pq.ParquetFile(file)
                for group in range(found.num_row_groups):
                    found.read_row_group(group)
                if rows is not None and found.metadata.num_rows != rows:
                    yield Flaw(
                        "damage", f"{name}/{path} has {found.metadata.num_rows} rows, its log says {rows}"
                    )
        except FileNotFoundError:
            yield Flaw("damage", f"{name}/{path} is missing: {rows} rows")
        except (OSError, pa.ArrowException) as error:
            yield Flaw("damage", f"{name}/{path} cannot be read: {str(error).splitlines()[0][:200]}")


def _broken(connection: duckdb.DuckDBPyConnection) -> Iterator[Flaw]:
    for what, query in _BROKEN.items():
        found = connection.execute(f"SELECT DISTINCT cell FROM ({query}) ORDER BY cell").fetchall()
        yield from _named(what, [cell for (cell,) in found])


def _numbers(connection: duckdb.DuckDBPyConnection) -> Iterator[Flaw]:
    """Quantiles and misses that are not those of the bins, bounds and outcomes not those of the misses."""
    wrong: dict[str, list[str]] = {}
    for cell, what in (*disagreeing(connection), *misjudged(connection)):
        wrong.setdefault(what, []).append(cell)
    for what, cells in wrong.items():
        yield from _named(what, sorted(cells))


def _named(what: str, cells: list[str]) -> Iterator[Flaw]:
    for cell in cells[:_MOST]:
        yield Flaw("damage", f"cell {cell} {what}")
    if len(cells) > _MOST:
        yield Flaw("damage", f"{len(cells) - _MOST:,} further cells: {what}")


def _extremes(connection: duckdb.DuckDBPyConnection) -> Iterator[Flaw]:
    """The exact extremes lie in the first and the last bin (spec/archive.md, distributions)."""
    connection.execute(
        "CREATE TEMP MACRO lower_edge(b) AS "
        "CASE WHEN b < 64 THEN b ELSE (64 + b % 64)::HUGEINT << (b // 64 - 1) END"
    )
    connection.execute("CREATE TEMP MACRO size(v) AS CASE WHEN v < 0 THEN -1 - v ELSE v END")
    for extreme, outermost, which in (("min_ns", "min", "minimum"), ("max_ns", "max", "maximum")):
        bins = (
            f"SELECT cell, {extreme} AS v, list_{outermost}([c.bin FOR c IN counts]) AS b FROM distributions"
        )
        query = f"SELECT cell FROM ({bins}) WHERE NOT (size(v) >= lower_edge(size(b)) "
        query += "AND size(v) < lower_edge(size(b) + 1) AND (v < 0) = (b < 0)) ORDER BY cell"
        for (cell,) in connection.execute(query).fetchall():
            yield Flaw("damage", f"cell {cell} has a {which} that is not in its outermost bin")


def _doubts(connection: duckdb.DuckDBPyConnection) -> Iterator[Flaw]:
    for message, query in _DOUBTS.items():
        for (what,) in connection.execute(query).fetchall():
            yield Flaw("doubt", message.format(what))


def _abandoned(archive: Archive, now: datetime | None) -> Iterator[Flaw]:
    if cells := sum(map(len, abandoned(archive, now=now).values())):
        message = (
            f"samples of {cells:,} cells count for nothing, for whoever took them was killed before they "
        )
        yield Flaw(
            "doubt", message + "were added, or another was faster: `rtmeter archive prune` removes them"
        )


def refuse(flaws: list[Flaw], archive: Archive) -> None:
    """Raises RtmeterError if anything is damaged."""
    damage = [flaw for flaw in flaws if flaw.kind == "damage"]
    if damage:
        remedy = "put the files back from a copy, or add the results to a new archive"
        raise RtmeterError(
            f"is not whole: {len(damage)} flaws", field="archive", value=archive.url, remedy=remedy
        )
