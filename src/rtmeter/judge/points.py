"""A verdict as a line (outcome apart: share missed, allowed, worst) and points for the rest."""

from __future__ import annotations

from rtmeter.judge.answer import reason, sentence
from rtmeter.model import Verdict
from rtmeter.results import words
from rtmeter.results.overview import CellEntry
from rtmeter.results.record import CellRecord

_NONE = "none allowed"


def in_points(cell: CellEntry) -> list[str]:
    """Of a cell or a condition: the line, and the points."""
    verdict = cell.record.verdict if cell.record else None
    if verdict is None or not verdict.n or cell.outcome not in ("pass", "fail", "inconclusive"):
        return [reason(cell)]
    line, points = line_and_points(verdict, cell.judged.max_ns if cell.judged else None)
    return [sentence(line), *(sentence(point) for point in points)]


def worst_of(record: CellRecord) -> float | str | None:
    """The maximum of a cell's judged quantity, per release (ns, or ``lost``); None where it is not known."""
    return record.judged.max_ns if record.judged else None


def line_and_points(verdict: Verdict, worst_ns: float | str | None) -> tuple[str, list[str]]:
    """What missed of how many, what is allowed and what came worst; why, a point each.

    ``worst_ns``: the maximum of the judged quantity, ``lost``, or None where it is not known.
    """
    head, colon, rest = verdict.reason.partition(": ")
    if not colon or not verdict.n:
        return verdict.reason, []
    allowed, hard = verdict.requirement.miss_ratio, verdict.requirement.criticality == "hard"
    parts = [words.missed_share(verdict)] if verdict.misses else []
    parts.append(_NONE if allowed is None or hard else f"{words.share(allowed)} allowed")
    if worst_ns == "lost":
        parts.append("worst lost")
    elif worst_ns is not None and not isinstance(worst_ns, str):
        parts.append(f"worst {words.us_beside(worst_ns, verdict.requirement.deadline_ns)} us")
    points = [point for point in rest.split("; ") if point and point != _NONE]
    return f"{head}: {', '.join(parts)}", points
