"""SQL over an archive: one SELECT that reads its tables and nothing else."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from rtmeter.archive.engine import fill, need_archive, telling
from rtmeter.archive.tables import Archive
from rtmeter.results.query import batches_of, check_select, in_our_form, lock

if TYPE_CHECKING:
    import pyarrow as pa

_TABLES = "cells, distributions, maxima, causes, findings, sampled and samples"

RIGS = """
SELECT rig, count(*) AS cells, min(measured) AS "first", max(measured) AS latest,
  arg_max(kernel, measured) AS kernel,
  count(*) FILTER (WHERE last_one AND outcome = 'fail') AS failing,
  count(*) FILTER (WHERE last_one AND outcome = 'pass') AS passing,
  count(*) FILTER (WHERE last_one AND coalesce(outcome, '') NOT IN ('pass', 'fail')) AS undecided,
  max(max_ns) AS max_ns,
  count(*) FILTER (WHERE n > 0 AND max_ns IS NULL AND (bins IS NOT NULL OR lost > 0)) AS losing
FROM (SELECT *, 1 = row_number() OVER (PARTITION BY rig, campaign, id ORDER BY measured DESC, cell)
  AS last_one FROM cells) GROUP BY rig ORDER BY failing DESC, undecided DESC, rig
"""
"""The rigs by the latest verdicts of their cells, the worst first; ``max_ns`` of cells that lost no release,
and how many are ``losing`` one."""


@contextmanager
def selecting(archive: Archive, text: str) -> Iterator[pa.RecordBatchReader]:
    """The rows that the SELECT finds, batch by batch. Raises RtmeterError for SQL that is wrong, or that is
    more than one SELECT."""
    need_archive()
    import duckdb

    form = in_our_form(text, _TABLES, "rtmeter archive sql")
    with form, telling(archive, ours=text == RIGS), duckdb.connect() as connection:
        check_select(text)
        lock(connection, fill(connection, archive))
        yield batches_of(connection, text)
