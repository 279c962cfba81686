"""From the logs of a chain's stages to the age of its outputs, its reaction, and what became of each sample.

A stage's log has a row for each sample that it had: of the way it came (chain_graph.py), with the sample's
index and release as its message carried them. ``served``: passed on in an output; ``skipped``: received, and
overtaken by a newer one before the stage passed it on; ``in_flight``: received, and waiting when all ended.
What the stage before sent and the log does not have was lost between them.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt

from rtmeter.model import ABSENT, IN_FLIGHT, LOST, SERVED, SKIPPED, WARM_UP_FLAG
from rtmeter.statistics.chain_graph import Graph, Stage
from rtmeter.statistics.quantities import Columns, Ints
from rtmeter.statistics.views import LATER, OUTCOME_BITS

COLUMNS = ("way", "sample", "sample_release_ns", "received_ns", "sent_ns", "status")
"""Of a stage's log: int64 arrays of shape (rows,)."""

OUTCOMES = ("arrived", "overtaken", "lost", "in_flight")
"""What becomes of a sample on a path; ``released`` is their sum."""

_ARRIVED, _OVERTAKEN, _LOST, _IN_FLIGHT = range(4)
_Bools = npt.NDArray[np.bool_]

FOREVER = int(np.iinfo(np.int64).max)


@dataclass(frozen=True, slots=True)
class PathResult:
    """One path of a chain; times in nanoseconds.

    ``counts``: warm_up, released and OUTCOMES. ``age_k``, ``age_ns``: of each output in the order of its
    log, the sample that it rests on and the output's stamp less that one's release; once its source has ended
    (a period after its last release) repeats are left out. ``k``, ``reaction_ns``: of each measured sample,
    the first output that rests on it or a later one, less the release of the sample before; LATER where there
    is none, and left out where such a sample is in flight and not overdue. ``samples``: a row for each
    sample, those of the warm-up too: release_ns, before_ns (of the sample before), arrived_ns (the first
    output that rests on it), output_ns (on it or a later one), ABSENT where there is none, and status
    (served: there is an output_ns).
    """

    stages: tuple[str, ...]
    counts: dict[str, int]
    age_k: Ints
    age_ns: Ints
    k: Ints
    reaction_ns: Ints
    samples: dict[str, Ints]

    @property
    def name(self) -> str:
        return " > ".join(self.stages)

    @property
    def identity(self) -> str:
        """The identity with its numbers."""
        numbers = " + ".join(str(self.counts[name]) for name in OUTCOMES)
        return f"released = {' + '.join(OUTCOMES)}: {self.counts['released']} = {numbers}"


@dataclass(frozen=True, slots=True)
class ChainResult:
    """Every path, and what is wrong with the logs: they make the result invalid."""

    paths: tuple[PathResult, ...]
    problems: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class _Source:
    k: Ints
    release_ns: Ints
    warm: _Bools
    period_ns: int

    @property
    def end_ns(self) -> int:
        """A period after its last release."""
        return int(self.release_ns[-1]) + self.period_ns if len(self.release_ns) else 0


@dataclass(slots=True)
class _Way:
    """The samples of a source as they left a stage by one way: arrays of shape (released,)."""

    source: _Source
    outcome: Ints
    first_ns: Ints
    last_ns: Ints
    times: Ints
    rows: tuple[Ints, Ints] = field(default_factory=lambda: (np.empty(0, np.int64), np.empty(0, np.int64)))
    """Of each output: the sample's place among the released, and the stamp."""


@dataclass(frozen=True, slots=True)
class _Before:
    """The stage before, by one way: its log, and until when that has all rows."""

    name: str
    log: Columns
    way: int
    whole_until_ns: int

    def had_logged(self, rows: Columns, then_ns: Ints) -> _Bools:
        """Which rows carry what it had sent by then as its log has it, true or not."""
        sent = (self.log["way"] == self.way) & ((self.log["status"] & OUTCOME_BITS) == SERVED)
        names = ("sample", "sample_release_ns")
        pairs = [np.concatenate([self.log[name][sent], rows[name]]) for name in names]
        _, number = np.unique(np.stack(pairs), axis=1, return_inverse=True)
        number, count = number.ravel(), int(np.count_nonzero(sent))
        first_ns = np.full(len(number), FOREVER)
        np.minimum.at(first_ns, number[:count], self.log["sent_ns"][sent])
        had: _Bools = first_ns[number[count:]] <= then_ns
        return had


def analyse(
    graph: Graph,
    logs: Mapping[str, Columns],
    *,
    warm_up: Mapping[str, int],
    loss_timeout_ns: int,
    ended_ns: int,
    overdue_ns: Mapping[tuple[str, ...], int],
    whole_until_ns: Mapping[str, int],
) -> ChainResult:
    """Every path of the graph from the logs of all its stages (COLUMNS).

    ``warm_up``: by source, how many of its first samples are not counted; ``ended_ns``: until when all stages
    listened: what was sent less than the loss timeout before is in flight; ``overdue_ns``: by path, a
    reaction that took longer and had not come at the end is lost, also where a sample is in flight;
    ``whole_until_ns``: of each stage whose log lacks rows, until when it has all: whether what was heard of
    it later is re-stamped is not known. All stamps are of one clock.
    """
    ways: dict[tuple[str, int], _Way] = {}
    problems: list[str] = []
    for stage in graph.stages:
        log = logs[stage.name]
        if stage.is_source:
            ways[stage.name, 0] = _released(stage, log, warm_up.get(stage.name, 0), problems)
            continue
        found: list[str] = []
        for name in stage.inputs:
            first, whole_ns = graph.first_way(stage, name), whole_until_ns.get(name, FOREVER)
            for way in range(graph.ways[name]):
                before = _Before(name, logs[name], way, whole_ns)
                mine = log["way"] == first + way
                rows = log if mine.all() else {column: log[column][mine] for column in COLUMNS}
                ways[stage.name, first + way] = _passed_on(
                    stage, before, ways[name, way], rows, ended_ns - loss_timeout_ns, found
                )
        stray = int(np.count_nonzero((log["way"] < 0) | (log["way"] >= graph.ways[stage.name])))
        if stray:
            found.append(f"{stray} rows of stage {stage.name} came a way that it has not")
        problems += found
    paths = []
    for path in graph.paths():
        last_ns = min((ended_ns, *_ends_of_fused(graph, path, ways)))
        named = tuple(stage.name for stage, _ in path)
        paths.append(_path(path, ways[path[-1][0].name, path[-1][1]], last_ns, overdue_ns[named]))
    return ChainResult(tuple(paths), tuple(problems))


def _ends_of_fused(
    graph: Graph, path: tuple[tuple[Stage, int], ...], ways: Mapping[tuple[str, int], _Way]
) -> Iterator[int]:
    """When each source ended that a fusion on the path waits for: it passes on nothing more then."""
    for stage, _ in path:
        if stage.kind == "fusion":
            yield from (ways[stage.name, way].source.end_ns for way in range(graph.ways[stage.name]))


def _released(stage: Stage, log: Columns, warm_up: int, problems: list[str]) -> _Way:
    k, release_ns, sent_ns = log["sample"], log["sample_release_ns"], log["sent_ns"]
    assert stage.period_ns is not None, "a source has one"
    if not np.array_equal(k, np.arange(len(k))):
        at = int(np.flatnonzero(k != np.arange(len(k)))[0])
        problems.append(f"stage {stage.name}: sample {at} should follow, {int(k[at])} does: rows are missing")
    off_grid = np.flatnonzero(release_ns - release_ns[:1] != (k - k[:1]) * stage.period_ns)
    if len(off_grid):
        at = int(off_grid[0])
        late = int(release_ns[at] - release_ns[0] - (k[at] - k[0]) * stage.period_ns)
        problems.append(f"stage {stage.name}: the release of sample {int(k[at])} lies {late} ns off its grid")
    source = _Source(k, release_ns, k < warm_up, stage.period_ns)
    sent = (log["status"] & OUTCOME_BITS) == SERVED
    outcome = np.where(sent, _ARRIVED, _IN_FLIGHT)
    return _Way(
        source, outcome, sent_ns, sent_ns, sent.astype(np.int64), (np.flatnonzero(sent), sent_ns[sent])
    )


def _passed_on(
    stage: Stage, before: _Before, came: _Way, rows: Columns, settled_ns: int, problems: list[str]
) -> _Way:
    """What left the stage of what ``came`` from the one before."""
    source, n = came.source, len(came.source.k)
    place = np.minimum(np.searchsorted(source.k, rows["sample"]), max(n - 1, 0))
    status = rows["status"] & OUTCOME_BITS
    true = _as_it_was_sent(stage, before, came, rows, place, problems)
    served = true & (status == SERVED)
    at, sent_ns = place[served], rows["sent_ns"][served]
    times = np.bincount(at, minlength=n).astype(np.int64)
    if stage.kind == "event":
        _check_times(stage, before, came, at[sent_ns <= before.whole_until_ns], problems)
    first_ns, last_ns = np.full(n, FOREVER), np.full(n, ABSENT)
    np.minimum.at(first_ns, at, sent_ns)
    np.maximum.at(last_ns, at, sent_ns)
    outcome = came.outcome.copy()
    gone = (outcome == _ARRIVED) & (times == 0)
    outcome[gone] = np.where(came.last_ns[gone] > settled_ns, _IN_FLIGHT, _LOST)
    # A sample that a newer copy of itself took the place of still waits, if that one does.
    for code, meaning in ((SKIPPED, _OVERTAKEN), (IN_FLIGHT, _IN_FLIGHT)):
        had = np.zeros(n, dtype=bool)
        had[place[true & (status == code)]] = True
        outcome[gone & had] = meaning
    return _Way(source, outcome, first_ns, last_ns, times, (at, sent_ns))


def _as_it_was_sent(
    stage: Stage, before: _Before, came: _Way, rows: Columns, place: Ints, problems: list[str]
) -> _Bools:
    """Which rows carry a sample that the stage before had of its source and had sent by then. Those that
    carry what the stage before had not sent at all are told as re-stamped."""
    then_ns = np.where(rows["received_ns"] == ABSENT, rows["sent_ns"], rows["received_ns"])
    if not len(came.source.k):
        true = np.zeros(len(place), dtype=bool)
    else:
        known = came.source.k[place] == rows["sample"]
        release = came.source.release_ns[place] == rows["sample_release_ns"]
        true = known & release & (came.times[place] > 0) & (came.first_ns[place] <= then_ns)
    wrong = np.flatnonzero(~true & (then_ns <= before.whole_until_ns))
    if len(wrong):
        carried = {name: rows[name][wrong] for name in ("sample", "sample_release_ns")}
        wrong = wrong[~before.had_logged(carried, then_ns[wrong])]
    if len(wrong):
        k, ns = int(rows["sample"][wrong[0]]), int(rows["sample_release_ns"][wrong[0]])
        problems.append(
            f"stage {stage.name} re-stamps: {len(wrong)} of {len(place)} rows carry a sample that "
            f"{before.name} had not sent, the first index {k} with release {ns} ns"
        )
    return true


def _check_times(stage: Stage, before: _Before, came: _Way, passed: Ints, problems: list[str]) -> None:
    times = np.bincount(passed, minlength=len(came.times))
    more = np.flatnonzero(times > came.times)
    if len(more):
        at = int(more[0])
        problems.append(
            f"stage {stage.name} re-stamps: it passes on {len(more)} samples more often than {before.name} "
            f"sent them, the first index {came.source.k[at]}, {times[at]} times, not {came.times[at]}"
        )


def _path(path: tuple[tuple[Stage, int], ...], last: _Way, ended_ns: int, overdue_ns: int) -> PathResult:
    source = last.source
    measured = ~source.warm
    counts = {"warm_up": int(np.count_nonzero(source.warm)), "released": int(np.count_nonzero(measured))}
    for code, name in enumerate(OUTCOMES):
        counts[name] = int(np.count_nonzero(last.outcome[measured] == code))
    at, sent_ns = last.rows
    first = sent_ns == last.first_ns[at]
    # Once its source has ended no newer sample can take a repeated one's place.
    counted = measured[at] & (first | (sent_ns < source.end_ns))
    at, sent_ns = at[counted], sent_ns[counted]
    first_ns = np.where(last.outcome == _ARRIVED, last.first_ns, LATER)
    # The first output with this sample or a later one.
    from_here = np.minimum.accumulate(first_ns[::-1])[::-1]
    never = from_here == LATER
    before_ns = source.release_ns - source.period_ns
    reaction = np.where(never, LATER, from_here - before_ns)
    waits = never & np.logical_or.accumulate((last.outcome == _IN_FLIGHT)[::-1])[::-1]
    waits &= ended_ns - before_ns <= overdue_ns
    known = measured & ~waits
    status = np.where(waits, IN_FLIGHT, np.where(never, LOST, SERVED)) | source.warm * np.int64(WARM_UP_FLAG)
    samples = {
        "release_ns": source.release_ns,
        "before_ns": before_ns,
        "arrived_ns": np.where(first_ns == LATER, ABSENT, first_ns),
        "output_ns": np.where(never, ABSENT, from_here),
        "status": status,
    }
    return PathResult(
        tuple(stage.name for stage, _ in path),
        counts,
        source.k[at],
        sent_ns - source.release_ns[at],
        source.k[known],
        reaction[known],
        samples,
    )
