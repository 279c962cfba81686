"""Why a measured cell's releases were late, from the kernel's events that were recorded with it."""

from __future__ import annotations

import random
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from rtmeter.errors import RtmeterError
from rtmeter.explain.causes import Explanation, Release
from rtmeter.explain.document import explanation_json
from rtmeter.explain.parts import explain_parts
from rtmeter.model import ABSENT, LOCAL
from rtmeter.results import store
from rtmeter.results.cells import StoredCell
from rtmeter.results.data import data_of
from rtmeter.results.record import CellRecord
from rtmeter.samples.rows import Samples
from rtmeter.statistics.ranks import quantile_index, share_of
from rtmeter.statistics.served import Served, served
from rtmeter.trace.choice import TraceChoice
from rtmeter.trace.chosen import MOST_IN_TIME, Span, span_of
from rtmeter.trace.table import FILE, StoredTrace, open_trace

REMEDY = "measure it with --explain, as root"
"""Of a cell without a trace."""


@dataclass(frozen=True)
class CellExplanation:
    """``tid``: the thread that stamps what does not name its own; ``late_after_ns``: what counts as late: the
    deadline asked for, else the cell's, or where it has none its p99 (not ``by_deadline``); ``unserved``:
    releases that were skipped, lost or in flight, which have no stamp; ``in_time``: how many were, of which
    ``compared`` are in ``found``, MOST_IN_TIME at most, chosen at random, always the same ones;
    ``unrecorded``: late ones of which no events were kept."""

    cell: StoredCell
    tid: int
    found: Explanation
    late_after_ns: int
    by_deadline: bool
    unserved: int
    in_time: int
    compared: int
    unrecorded: int

    def to_json(self) -> dict[str, Any]:
        """As ``rtmeter explain --json`` prints it: the releases, each with its segments, and the causes."""
        return explanation_json(self.found, self.found.releases)


def explained(cell: StoredCell, k: int | None = None, *, deadline_ns: int | None = None) -> CellExplanation:
    """Explains the late releases of a cell, and the release ``k``; ``deadline_ns``: beyond it one is late,
    instead of the cell's own.

    Raises RtmeterError if it has no trace, or no samples.
    """
    if not (cell.folder / FILE).is_file():
        message = "has no record of the kernel's events"
        raise RtmeterError(message, field="cell", value=str(cell.folder), remedy=REMEDY)
    data_of(cell.folder, cell.record)
    tid = _stamping(cell.record, cell.folder)
    trace = open_trace(cell.folder / FILE)
    required = cell.record.requirement
    recorded_ns = required.deadline_ns if required else _p99_ns(cell)
    limit_ns = recorded_ns if deadline_ns is None else deadline_ns
    late, in_time, unserved = 0, 0, 0
    for one in _served(cell):
        is_late = one.lateness_ns[one.measured] > limit_ns
        late, in_time = late + int(is_late.sum()), in_time + int((~is_late).sum())
        unserved += one.others
    if not late + in_time:
        message, remedy = "has no release that was served", "measure it again"
        raise RtmeterError(message, field="cell", value=str(cell.folder), remedy=remedy)
    kept = _kept(cell, trace)
    spans = list(_asked(cell, limit_ns, recorded_ns, in_time, kept, k))
    asked = [release for release, _ in spans]
    surroundings = None if kept is None else [(span.from_ns, span.to_ns) for _, span in spans]
    found = explain_parts(trace.parts(), asked, tid, surroundings, roles=roles(cell.record))
    there = {one.k for one in asked} if kept is None else kept
    compared = min(in_time, MOST_IN_TIME)
    if kept is not None:
        compared = sum(not one.late and one.k in there for one in asked)
    unrecorded = sum(one.late and one.k not in there for one in asked)
    by_deadline = required is not None or deadline_ns is not None
    return CellExplanation(cell, tid, found, limit_ns, by_deadline, unserved, in_time, compared, unrecorded)


def roles(record: CellRecord) -> dict[int, str]:
    """Thread ids of client and server, where both are processes on the machine whose events were recorded:
    the threads of both may have one name."""
    ends = record.threads.items()
    if not all(threads for _, threads in ends) or record.hosts.get("component", LOCAL) != LOCAL:
        return {}
    return {thread["tid"]: end for end, threads in ends for thread in threads}


def _served(cell: StoredCell) -> Iterator[Served]:
    return served(cell.record.meta, store.chunks(cell.folder)())


def _kept(cell: StoredCell, trace: StoredTrace) -> frozenset[int] | None:
    """The k of its releases whose surroundings the trace has; None: it has all."""
    if trace.kept_ns is None:
        return trace.kept
    times = np.array(sorted(trace.kept_ns), np.int64)
    return frozenset(k for one in _served(cell) for k in one.k[np.isin(one.release_ns, times)].tolist())


def _p99_ns(cell: StoredCell) -> int:
    lateness = np.sort(np.concatenate([one.lateness_ns[one.measured] for one in _served(cell)]))
    return int(lateness[quantile_index(len(lateness), share_of("99"))]) if len(lateness) else 0


def _asked(
    cell: StoredCell,
    limit_ns: int,
    recorded_ns: int,
    in_time: int,
    kept: frozenset[int] | None,
    k: int | None,
) -> Iterator[tuple[Release, Span]]:
    """The late ones, those in time that they are compared with, and the release k. What was kept of each
    goes by what was late when it was recorded, beyond ``recorded_ns``."""
    drawn = np.array(sorted(random.Random(0).sample(range(in_time), min(in_time, MOST_IN_TIME))), np.int64)
    there = np.array(sorted(kept or ()), np.int64)
    margin_ns = TraceChoice.of(cell.record.recorded).late_ns
    seen = 0
    for one in _served(cell):
        is_late = one.lateness_ns > limit_ns
        others = one.measured & ~is_late
        places = np.cumsum(others) - 1 + seen
        seen += int(others.sum())
        compared = others & (np.isin(places, drawn) if kept is None else np.isin(one.k, there))
        rows = one.measured & (is_late | (one.k == k)) | compared
        tid = np.full(len(one.k), ABSENT) if one.tid is None else one.tid
        times = (one.k, one.before_ns, one.release_ns, one.stamp_ns, is_late, tid)
        for number, before, release, stamp, late, ran in zip(*(c[rows].tolist() for c in times), strict=True):
            as_late = stamp - release > recorded_ns
            span = span_of(number, before, release, stamp, late=as_late, late_ns=margin_ns)
            yield Release(number, release, stamp, late, None if ran == ABSENT else ran), span


def _stamping(record: CellRecord, folder: Path) -> int:
    """The thread that stamps: the one that is known to, else the measured one. Of several threads that call a
    callback, whose rows tell which of them it was, the first."""
    threads = record.threads.client
    stamping = [thread for thread in threads if thread.get("stamps")]
    found = stamping or [thread for thread in threads if thread.get("role") == "measured"]
    if len(found) != 1 and not (found and "tid" in Samples(folder / store.SAMPLES).columns):
        message = f"has {len(found)} threads that stamp, so that no one can be followed"
        raise RtmeterError(message, field="cell", value=str(folder), remedy="measure with one thread")
    return found[0]["tid"]
