"""What most of a cell's late releases waited for; kept beside its trace, since finding it takes long."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from rtmeter.errors import RtmeterError
from rtmeter.explain.causes import Explained, Ranked, chosen, times_by_key
from rtmeter.explain.facts import CauseFacts
from rtmeter.explain.passed_over import Throttled
from rtmeter.explain.segments import Key, Segment
from rtmeter.explain.timeline import Doing, doings
from rtmeter.explain.words import words_of_cause
from rtmeter.judge.explained import CellExplanation, explained
from rtmeter.judge.mends import mends
from rtmeter.results.cells import StoredCell
from rtmeter.results.record import CellRecord
from rtmeter.results.store import CELL, SAMPLES
from rtmeter.trace.table import FILE, StoredTrace, open_trace
from rtmeter.values import from_json

KEPT = "explanation.json"
_VERSION = 11

WORST = 3
"""Late releases of which all is shown."""

_CLASSES = (1, 2, 4, 8)
"""Classes of lateness begin at so many times what counts as late."""

_LEAD_NS = 2_000_000
"""Before what is shown: who runs there is told by what came before."""

_BESIDE = 0.15
"""Of the lateness: what is shown before the release and after the stamp."""


@dataclass(frozen=True)
class Class:
    """The late releases from a lateness to another (None: and beyond), and their time by key."""

    from_ns: int
    to_ns: int | None
    releases: int
    times_ns: tuple[tuple[Key, int], ...]


@dataclass(frozen=True)
class Shown:
    """A late release: its segments, and what the CPUs did; times from the release on."""

    k: int
    lateness_ns: int
    cause: Key | None
    segments: tuple[Segment, ...]
    doings: tuple[Doing, ...]


@dataclass(frozen=True)
class Why:
    """``causes`` of the ``late`` releases, the one that carries most of their lateness first; the ``worst``
    of them, the latest first."""

    late: int
    lateness_ns: int
    unknown_ns: int
    causes: tuple[Ranked, ...]
    classes: tuple[Class, ...] = ()
    worst: tuple[Shown, ...] = ()


def why(cell: StoredCell) -> Why | None:
    """None if nothing is late, the cell has no trace, or it cannot be explained."""
    state = _state_of(cell.folder)
    if state is None:
        return None
    kept = _read(cell.folder / KEPT, state)
    if kept is None:
        try:
            kept = of(explained(cell))
        except RtmeterError:
            return None
        with suppress(OSError):  # the next one finds it anew
            (cell.folder / KEPT).write_text(json.dumps(_to_json(kept, state)), encoding="utf-8")
    return kept if kept.late else None


def of(explained: CellExplanation) -> Why:
    """In short, with what pictures show."""
    found = explained.found
    late = [each for each in found.releases if each.release.late]
    times = [each.release.lateness_ns for each in late]
    trace = open_trace(explained.cell.folder / FILE)
    worst = tuple(
        _shown(trace, each.release.tid or explained.tid, each) for each in chosen(found, None, WORST)
    )
    classes = tuple(_classes(late, explained.late_after_ns))
    return Why(len(late), sum(times), found.unknown_ns, found.causes, classes, worst)


def _classes(late: Sequence[Explained], limit_ns: int) -> Iterator[Class]:
    begins = [factor * max(limit_ns, 1) for factor in _CLASSES]
    for from_ns, to_ns in zip(begins, [*begins[1:], None], strict=True):
        inside = [e for e in late if from_ns < e.release.lateness_ns <= (to_ns or e.release.lateness_ns)]
        times: Counter[Key] = Counter()
        for each in inside:
            times.update(times_by_key(each.segments))
        ordered = sorted(times.items(), key=lambda one: (-one[1], one[0].order))
        if inside:
            yield Class(from_ns, to_ns, len(inside), tuple(ordered))


def _shown(trace: StoredTrace, tid: int, each: Explained) -> Shown:
    release = each.release
    beside = int(_BESIDE * release.lateness_ns)
    start, end = release.release_ns - beside, release.stamp_ns + beside
    rows = trace.within(start - _LEAD_NS, end + _LEAD_NS)
    moved = [
        s._replace(start_ns=s.start_ns - release.release_ns, end_ns=s.end_ns - release.release_ns)
        for s in each.segments
    ]
    there = [
        d._replace(start_ns=d.start_ns - release.release_ns, end_ns=d.end_ns - release.release_ns)
        for d in doings(rows, tid, start, end)
    ]
    cause = each.cause.key if each.cause else None
    return Shown(release.k, release.lateness_ns, cause, tuple(moved), tuple(there))


def why_words(cell: StoredCell) -> str | None:
    """What most of the cell's late releases waited for, in a sentence, and what mends it."""
    found = why(cell)
    if found is None:
        return None
    first = found.causes[0] if found.causes else None
    if first is None:
        return None
    share = f"{100 * first.lateness_ns / found.lateness_ns:.0f} % of all lateness"
    unknown = f", {100 * found.unknown_ns / found.lateness_ns:.0f} % unknown" if found.unknown_ns else ""
    said = f"of {found.late:,} late releases {first.releases:,}: {words_of_cause(first)} ({share}{unknown})"
    return said + mends(first, cell.record) + stampless_words(cell.record, found.late)


def stampless(record: CellRecord, late: int) -> int:
    """How many missed by the verdict besides the ``late`` ones: skipped or lost, they have no stamp."""
    return max(0, record.verdict.misses - late) if record.verdict else 0


def stampless_words(record: CellRecord, late: int) -> str:
    """Why fewer are ``late`` than the verdict says missed; nothing where as many are."""
    rest = stampless(record, late)
    if record.verdict is None or not rest:
        return ""
    have = "was skipped or lost and has" if rest == 1 else "were skipped or lost and have"
    return f"; of the {record.verdict.missed} that missed {rest:,} {have} no stamp: nothing tells why"


def _state_of(folder: Path) -> list[int] | None:
    """What an explanation rests on: sizes and times of the files; None if one is missing."""
    try:
        files = [(folder / name).stat() for name in (FILE, SAMPLES, CELL)]
    except OSError:
        return None
    return [number for file in files for number in (file.st_size, file.st_mtime_ns)]


def _read(path: Path, state: list[int]) -> Why | None:
    """What is kept, if it is of these files."""
    try:
        kept = from_json(path.read_text(encoding="utf-8"))
        if kept["version"] != _VERSION or kept["of"] != state:
            return None
        causes = tuple(
            Ranked(
                Key(*row["key"]),
                row["releases"],
                row["lateness_ns"],
                row["throttled_ns"],
                _throttled(row["throttled_as"]),
                row["faults"],
                tuple((name, ns) for name, ns in row["lenders"]),
                CauseFacts(*row["facts"]),
            )
            for row in kept["causes"]
        )
        classes = tuple(
            Class(
                row["from_ns"],
                row["to_ns"],
                row["releases"],
                tuple((Key(*key), ns) for key, ns in row["times_ns"]),
            )
            for row in kept["classes"]
        )
        worst = tuple(
            Shown(
                row["k"],
                row["lateness_ns"],
                Key(*row["cause"]) if row["cause"] else None,
                tuple(
                    Segment(
                        start,
                        end,
                        Key(*key),
                        _throttled(so),
                        tuple((name, ns) for name, ns in lenders),
                        CauseFacts(*facts),
                    )
                    for start, end, key, so, lenders, facts in row["segments"]
                ),
                tuple(Doing(*one) for one in row["doings"]),
            )
            for row in kept["worst"]
        )
        return Why(kept["late"], kept["lateness_ns"], kept["unknown_ns"], causes, classes, worst)
    except (OSError, ValueError, KeyError, TypeError):
        return None


def _throttled(kept: str | None) -> Throttled | None:
    return None if kept is None else Throttled(kept)


def _to_json(kept: Why, state: list[int]) -> dict[str, Any]:
    causes = [
        {"key": row.key, "releases": row.releases, "lateness_ns": row.lateness_ns}
        | {"throttled_ns": row.throttled_ns, "throttled_as": row.throttled_as}
        | {"faults": row.faults, "lenders": row.lenders, "facts": row.facts}
        for row in kept.causes
    ]
    classes = [
        {"from_ns": one.from_ns, "to_ns": one.to_ns, "releases": one.releases, "times_ns": one.times_ns}
        for one in kept.classes
    ]
    worst = [
        {"k": one.k, "lateness_ns": one.lateness_ns, "cause": one.cause}
        | {"segments": one.segments, "doings": one.doings}
        for one in kept.worst
    ]
    numbers = {"late": kept.late, "lateness_ns": kept.lateness_ns, "unknown_ns": kept.unknown_ns}
    pictures = {"classes": classes, "worst": worst}
    return {"version": _VERSION, "of": state, **numbers, "causes": causes, **pictures}
