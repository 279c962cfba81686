"""What factors do, as the rows of a table."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from rtmeter.judge.factors import FactorEffects, LevelEffects
from rtmeter.results import words
from rtmeter.statistics.effects import Effect, Interaction
from rtmeter.statistics.halving import RATIO
from rtmeter.statistics.over_quantities import not_told, says_it
from rtmeter.statistics.words import multiple


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
    show = words.share if ratio else _time
    times = multiple(one.times, sign="×") if not math.isnan(one.upper) else ""
    interval = _ends(one, " to ")
    said = f"{one.said}: {one.words}" if one.words else str(one.said)
    if one.said == "no difference" and 1 < one.none_above < math.inf:
        said = f"no difference above × {one.none_above:.3g}"
    name = "Miss ratio; times: its odds" if ratio else f"{one.quantity}, us"
    return FactorRow(name, show(one.reference), show(one.level), times, interval, said)


def _time(ns: float) -> str:
    return words.NONE if math.isnan(ns) else words.us("lost" if math.isinf(ns) else ns)


def in_lines(effects: Sequence[FactorEffects], most: int) -> list[str]:
    """What each level does, a line each: what that says, and the quantity that says so: the share that
    missed, or p99 without a miss, or another. Where it depends on another factor whether it is better, that.
    """
    lines = []
    for found in effects:
        for level in found.levels:
            against = f"{words.label(found.factor)} {level.level} against {found.reference}"
            depends = level.depends(words.label)
            more = f"; {depends}" if depends else f", {_then_and_now(says_it(level.effects, level.said))}"
            lines.append(f"{against}: {level.said}{level.where}{more}")
    return lines[:most]


def _then_and_now(one: Effect) -> str:
    if one.quantity == RATIO:
        return f"{words.share(one.level)} missed, where it was {words.share(one.reference)}"
    return f"{one.quantity} {_time(one.level)} us, where it was {_time(one.reference)} us"


def _ends(one: Effect | Interaction, between: str) -> str:
    """Of the interval of a quotient; empty if there is none."""
    if math.isnan(one.upper):
        return ""
    return between.join(multiple(end, one.times, sign="") for end in (one.lower, one.upper))


def below(found: LevelEffects) -> Iterator[str]:
    """What changes with the level, what the effect depends on, and how many repeats tell what is not told."""
    if found.confounded:
        with_it = ", ".join(map(words.label, found.confounded))
        yield f"With it changes {with_it}: what that does is in the effect."
    for one in found.interactions:
        what = "odds of a miss" if one.quantity == RATIO else one.quantity
        here = f"× {one.times:.3g} [{_ends(one, ', ')}] at {one.at}"
        yield f"Depends on {words.label(one.factor)}: {what} {here}, × {one.overall:.3g} over all."
    for line in not_told(found.effects, sign="×"):
        yield f"{line[0].upper()}{line[1:]}."


def doubts(effects: Sequence[FactorEffects]) -> list[str]:
    """What is doubted of the effects, each once, with the factors that it is of."""
    of: dict[str, list[str]] = {}
    for found in effects:
        for message in dict.fromkeys(doubt.message for doubt in found.doubts):
            of.setdefault(message, []).append(words.label(found.factor))
    return [f"{', '.join(factors)}: {message}" for message, factors in of.items()]


def matched(found: FactorEffects) -> str:
    """What is alike in the cells that are compared, and which are left out."""
    over = f"matched over {', '.join(map(words.label, found.others))}" if found.others else ""
    return "; ".join(part for part in (over, *(f"left out: {name}" for name in found.left_out)) if part)
