"""What effects on several quantities say together, and in words."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from rtmeter.statistics.effects import Effect, Said
from rtmeter.statistics.halving import RATIO
from rtmeter.statistics.words import multiple


def decides(effects: Sequence[Effect]) -> Effect:
    """The quantity that decides: the miss ratio, where it is compared and anything missed, or may have, else
    p99 (of short runs p50)."""
    by_name = {one.quantity: one for one in effects}
    ratio = by_name.get(RATIO)
    missed = ratio is not None and not ratio.reference == ratio.level == 0  # NaN: not known
    return ratio if ratio is not None and missed else by_name.get("p99", effects[0])


def together(effects: Sequence[Effect], *, worse_somewhere: bool = False) -> Said:
    """What the quantity that decides says, worse if it is so somewhere; where that is no difference or not
    told: worse if anything is, better if anything is and it is told."""
    decided, every = decides(effects).said, {one.said for one in effects}
    if worse_somewhere or (decided != "better" and "worse" in every):
        return "worse"
    return "better" if decided == "no difference" and "better" in every else decided


def says_it(effects: Sequence[Effect], said: Said) -> Effect:
    """The quantity whose effect is what is said of all: that which decides, or the first that says it."""
    decided = decides(effects)
    return next((one for one in (decided, *effects) if one.said == said), decided)


def where(effects: Sequence[Effect], said: Said) -> str:
    """At which quantities it is so, where it is not by the one that decides, or worse though it is better, in
    words; else empty."""
    by, decided = says_it(effects, said), decides(effects)
    if by is not decided:
        so = ", ".join(named(one) for one in effects if one.said == said)
        return f" at {so} ({named(decided)}: {decided.said})"
    worse = ", ".join(named(one) for one in effects if one.said == "worse")
    return f", but worse at {worse}" if worse and said == "better" else ""


def not_told(effects: Sequence[Effect], sign: str = "x") -> Iterator[str]:
    """How many repeats tell what is not told: a halving of each quantity, and what was seen of those of which
    that is more than a halving."""
    untold = [one for one in effects if one.repeats]
    if untold:
        names, most = ", ".join(map(named, untold)), max(one.repeats or 0 for one in untold)
        yield f"not told of {names}: so few repeats do not show even a halving; it takes {most:,}"
    seen = [one for one in untold if one.repeats_seen]
    if seen:
        names = ", ".join(f"{named(one)} ({multiple(one.times, sign=sign)})" for one in seen)
        most = max(one.repeats_seen or 0 for one in seen)
        yield f"as much as was seen of {names}: it takes {most:,} to tell"


def named(one: Effect) -> str:
    """A quantity as it is written."""
    return one.quantity.replace("_", " ")
