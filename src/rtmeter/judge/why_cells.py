"""Which of several cells was late, and why, in short."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from rtmeter.errors import RtmeterError
from rtmeter.explain.causes import Ranked
from rtmeter.judge.explained import explained
from rtmeter.judge.why import why
from rtmeter.results.cells import StoredCell
from rtmeter.trace.table import FILE


@dataclass(frozen=True)
class CellCauses:
    """``late`` releases and their lateness; ``error``: why the cell's trace cannot be explained."""

    cell: StoredCell
    late: int = 0
    lateness_ns: int = 0
    causes: tuple[Ranked, ...] = ()
    error: RtmeterError | None = None


def is_traced(cell: StoredCell) -> bool:
    """Whether the kernel's events were recorded with it."""
    return (cell.folder / FILE).is_file()


def to_explain(cells: Iterable[StoredCell]) -> StoredCell | None:
    """The first with a trace that missed, or has no deadline: the latest hundredth counts as late then."""
    verdicts = ((cell, cell.record.verdict) for cell in cells if cell.record.summary and is_traced(cell))
    return next((cell for cell, verdict in verdicts if verdict is None or verdict.misses), None)


def causes_of(cells: Iterable[StoredCell], deadline_ns: int | None = None) -> list[CellCauses]:
    """Those of cells with a trace, the one with most lateness first; ``deadline_ns``: as explained() has
    it."""
    return sorted((_causes(cell, deadline_ns) for cell in cells), key=lambda one: -one.lateness_ns)


def _causes(cell: StoredCell, deadline_ns: int | None) -> CellCauses:
    kept = why(cell) if deadline_ns is None else None
    if kept is not None:
        return CellCauses(cell, kept.late, kept.lateness_ns, kept.causes)
    try:
        found = explained(cell, deadline_ns=deadline_ns).found
    except RtmeterError as error:
        return CellCauses(cell, error=error)
    late = [each.release.lateness_ns for each in found.releases if each.release.late]
    return CellCauses(cell, len(late), sum(late), found.causes)
