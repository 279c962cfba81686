"""The verdict of a cell: does it meet its requirement, and how sure is that?"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np

from rtmeter.model import SKIPPED, Requirement, Verdict
from rtmeter.statistics.bounds import miss_ratio_bounds, releases_needed
from rtmeter.statistics.quantities import judged_quantity
from rtmeter.statistics.summary import Chunks
from rtmeter.statistics.views import LATER, per_release
from rtmeter.values import format_duration

MOST_FURTHER_SAMPLES = 10**15
"""Where the search for the samples that would pass ends: 30,000 years at 1 kHz."""


@dataclass(frozen=True, slots=True)
class Misses:
    """How many of n releases missed a deadline on the judged quantity, each counted once: ``late``,
    ``skipped`` and ``lost``. In a round trip a skipped release is no miss by itself but late, lost or
    in time with the next ping."""

    quantity: str
    n: int
    late: int
    skipped: int
    lost: int

    @property
    def total(self) -> int:
        """All misses."""
        return self.late + self.skipped + self.lost

    def words(self, deadline_ns: int) -> str:
        """The misses as a clause, by kind."""
        kinds = {"late": self.late, "skipped": self.skipped, "lost": self.lost}
        found = ", ".join(f"{count:,} {kind}" for kind, count in kinds.items() if count)
        deadline = f"the deadline of {format_duration(deadline_ns)} on {self.quantity}"
        missed = f"{self.total:,} of {self.n:,} releases missed {deadline}"
        return f"{missed} ({found})" if found else missed


def misses(meta: Mapping[str, Any], chunks: Chunks, deadline_ns: int) -> Misses:
    """Counts the misses of the per-release view; ``meta`` and ``chunks`` as in ``summarise``."""
    quantity = judged_quantity(meta)
    n = late = skipped = lost = 0
    for block in per_release(meta, quantity, chunks()):
        over = block.value > deadline_ns
        if meta["measurement"] != "roundtrip":
            passed_over = block.outcome == SKIPPED
            skipped += int(np.count_nonzero(passed_over))
            over &= ~passed_over
        gone = int(np.count_nonzero(block.value == LATER))
        n += len(block.value)
        late += int(np.count_nonzero(over)) - gone
        lost += gone
    return Misses(quantity.name, n, late, skipped, lost)


def judge(
    meta: Mapping[str, Any], chunks: Chunks, requirement: Requirement, invalid: str | None = None
) -> Verdict:
    """The verdict of a cell by its samples; ``invalid`` says why they must not be judged, if so."""
    if invalid is not None:
        return refuse(meta, requirement, invalid)
    return judge_misses(misses(meta, chunks, requirement.deadline_ns), requirement)


def refuse(meta: Mapping[str, Any], requirement: Requirement, reason: str) -> Verdict:
    """The verdict of a cell that failed or whose data are invalid: error."""
    return Verdict("error", reason, requirement, judged_quantity(meta).name, 0, 0, 0, 0, 0, None, None)


def judge_misses(found: Misses, requirement: Requirement) -> Verdict:
    """The verdict by the number of misses alone.

    With a miss ratio P: pass if the upper bound is at most P, fail if the lower bound is above P, else
    inconclusive. Without: any miss fails. The bounds are one-sided and exact (Clopper and Pearson, 1934).
    """
    lower, upper = miss_ratio_bounds(found.total, found.n, requirement.confidence)
    outcome, why, more = _outcome(found, requirement, lower, upper)
    return Verdict(
        outcome=outcome,
        reason=f"{found.words(requirement.deadline_ns)}: {why}",
        requirement=requirement,
        quantity=found.quantity,
        n=found.n,
        misses=found.total,
        late=found.late,
        skipped=found.skipped,
        lost=found.lost,
        lower=lower,
        upper=upper,
        more_samples=more,
    )


def _outcome(
    found: Misses, requirement: Requirement, lower: float, upper: float
) -> tuple[Literal["pass", "fail", "inconclusive"], str, int | None]:
    sure = f"with {100 * requirement.confidence:.10g} % confidence the miss ratio is"
    allowed = requirement.miss_ratio
    if found.n == 0:
        return "inconclusive", "nothing was measured", 1 if allowed is None else _more(found, requirement)
    if allowed is None:
        if found.total:
            return "fail", "none is allowed", None
        return "pass", f"{sure} at most {upper:.3g}", None
    if upper <= allowed:
        return "pass", f"{sure} at most {upper:.3g}, and {allowed:g} is allowed", None
    if lower > allowed:
        return "fail", f"{sure} at least {lower:.3g}, and {allowed:g} is allowed", None
    more = _more(found, requirement)
    further = "more than 10^15" if more is None else f"{more:,}"
    why = f"{sure} at most {upper:.3g} and at least {lower:.3g}, and {allowed:g} is allowed"
    return "inconclusive", f"{why}; {further} further samples, all in time, would pass", more


def _more(found: Misses, requirement: Requirement) -> int | None:
    """The fewest further samples, all in time, that pass; None if more than MOST_FURTHER_SAMPLES."""
    allowed, confidence = requirement.miss_ratio, requirement.confidence
    assert allowed is not None
    most = found.n + MOST_FURTHER_SAMPLES
    if miss_ratio_bounds(found.total, most, confidence)[1] > allowed:
        return None
    return releases_needed(found.total, allowed, confidence, at_least=found.n) - found.n
