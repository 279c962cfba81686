"""What factors do, as the rows of a table."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from rtmeter.judge.factors import FactorEffects, LevelEffects
from rtmeter.results import words
from rtmeter.statistics.effects import Effect
from rtmeter.statistics.halving import RATIO


@dataclass(frozen=True, slots=True)
class FactorRow:
    """A level on one quantity: its value and the reference's with their unit, the quotient (of a ratio that
    of the odds) with its interval, and what that says."""

    quantity: str
    reference: str
    level: str
    times: str
    interval: str
    said: str


def rows(found: LevelEffects) -> list[FactorRow]:
    """Of each quantity."""
    return [_row(one) for one in found.effects]


def _row(one: Effect) -> FactorRow:
    ratio = one.quantity == RATIO
    show = words.ratio if ratio else _time
    known = all(map(math.isfinite, (one.times, one.lower, one.upper)))
    times, interval = (f"× {one.times:.3g}", f"{one.lower:.3g} to {one.upper:.3g}") if known else ("", "")
    said = f"{one.said}: {one.words}" if one.words else str(one.said)
    if one.said == "no difference" and 1 < one.none_above < math.inf:
        said = f"no difference above × {one.none_above:.3g}"
    name = "Miss ratio; times: its odds" if ratio else f"{one.quantity}, us"
    return FactorRow(name, show(one.reference), show(one.level), times, interval, said)


def _time(ns: float) -> str:
    return words.NONE if math.isnan(ns) else words.us("lost" if math.isinf(ns) else ns)


def in_lines(effects: Sequence[FactorEffects], most: int) -> list[str]:
    """What each level does, a line each: what that says, and the share that missed, or p99 without a miss;
    where it depends on another factor whether it is better, that."""
    lines = []
    for found in effects:
        for level in found.levels:
            shown = {one.quantity: one for one in level.effects}
            ratio = shown.get(RATIO)
            one = shown.get("p99") if ratio is None or not (ratio.reference or ratio.level) else ratio
            against = f"{words.label(found.factor)} {level.level} against {found.reference}"
            head = f"{against}: {level.said}{level.but}"
            depends = level.depends(words.label)
            more = f"; {depends}" if depends else "" if one is None else f", {_then_and_now(one)}"
            lines.append(f"{head}{more}")
    return lines[:most]


def _then_and_now(one: Effect) -> str:
    if one.quantity == RATIO:
        return f"{words.share(one.level)} missed, where it was {words.share(one.reference)}"
    return f"{one.quantity} {_time(one.level)} us, where it was {_time(one.reference)} us"


def below(found: LevelEffects) -> Iterator[str]:
    """What the effect depends on, and how many repeats tell what is not told."""
    for one in found.interactions:
        what = "odds of a miss" if one.quantity == RATIO else one.quantity
        here = f"× {one.times:.3g} [{one.lower:.3g}, {one.upper:.3g}] at {one.at}"
        yield f"Depends on {words.label(one.factor)}: {what} {here}, × {one.overall:.3g} over all."
    if found.repeats is not None:
        yield f"Too few repeats to show even a halving: it takes {found.repeats:,}."


def matched(found: FactorEffects) -> str:
    """What is alike in the cells that are compared, and what is not."""
    over = f"matched over {', '.join(map(words.label, found.others))}" if found.others else ""
    with_it = ", ".join(map(words.label, found.confounded))
    changes = f"with it changes {with_it}: what that does is in the effect" if with_it else ""
    return "; ".join(
        part for part in (over, changes, *(f"left out: {name}" for name in found.left_out)) if part
    )
