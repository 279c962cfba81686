"""The rule of verdicts, row by row: what is seen, what is said, what to do. The first row that holds decides;
docs/judge.md has the same table."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

Decided = Literal["pass", "fail", "inconclusive", "error"]


@dataclass(frozen=True, slots=True)
class RuleRow:
    """One row: ``seen``, ``outcome`` and the beginning of its words (``said``), and what to ``do``."""

    key: str
    seen: str
    outcome: Decided
    said: str
    do: str


NOT_JUDGED = RuleRow(
    "not_judged",
    "the run failed, or its data are invalid",
    "error",
    "the run failed",
    "do what the error says, and measure again",
)
NOTHING_MEASURED = RuleRow(
    "nothing_measured", "no release", "inconclusive", "nothing was measured", "measure so many releases"
)
NONE_ALLOWED = RuleRow(
    "none_allowed",
    "a miss, and the deadline is hard or no miss ratio was given",
    "fail",
    "none allowed",
    "look when and why releases were late",
)
NO_LEVEL = RuleRow(
    "no_level",
    "hard, no miss, and no return level may be stated",
    "inconclusive",
    "nothing is extrapolated",
    "mend what refuses it, or measure longer",
)
LEVEL_TOO_HIGH = RuleRow(
    "level_too_high",
    "hard, no miss, and the upper end of the return level is beyond the deadline",
    "inconclusive",
    "beyond the deadline",
    "look at the latest releases: their cause is rare, not absent",
)
MISSES_TOO_OFTEN = RuleRow(
    "misses_too_often",
    "lower bound of the miss ratio > P, also where a gate refuses the upper one",
    "fail",
    "is allowed",
    "look when and why releases were late",
)
BEYOND_THE_HORIZON = RuleRow(
    "beyond_the_horizon",
    "misses / (h · n) > P, whatever the dependence and the gates; h: `--horizon`, 10 unless it is said",
    "fail",
    "without a further miss that is",
    "look when and why releases were late: no length of run helps",
)
REFUSED = RuleRow(
    "refused",
    "a gate refuses the bound: drift, overload, growth, a change, what a file leaves out",
    "inconclusive",
    "no bound of the miss ratio is stated",
    "mend what it names, and measure anew: no length helps before",
)
MORE_MISSED = RuleRow(
    "more_missed",
    "misses / n > P, and none of these: it may be chance",
    "inconclusive",
    "more missed than is allowed",
    "look when and why releases were late: if they go on so, no length of run passes",
)
TOO_FEW = RuleRow(
    "too_few",
    "fewer than 1,000 releases",
    "inconclusive",
    "too few to look at dependence and stationarity",
    "measure so many more releases as it says",
)
MEETS = RuleRow(
    "meets",
    "upper bound ≤ P; without P: no miss",
    "pass",
    "is at most",
    "nothing; keep to the conditions that it holds for",
)
UNDECIDED = RuleRow(
    "undecided",
    "none of these: P lies between the bounds",
    "inconclusive",
    "too few releases to tell",
    "measure so many more releases as it says",
)

ROWS = (
    NOT_JUDGED,
    NOTHING_MEASURED,
    NONE_ALLOWED,
    NO_LEVEL,
    LEVEL_TOO_HIGH,
    MISSES_TOO_OFTEN,
    BEYOND_THE_HORIZON,
    REFUSED,
    MORE_MISSED,
    TOO_FEW,
    MEETS,
    UNDECIDED,
)
