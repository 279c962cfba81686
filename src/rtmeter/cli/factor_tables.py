"""What a factor does, as text."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING

from rtmeter.api.comparisons import number
from rtmeter.cli import exit_codes
from rtmeter.cli.columns import print_table
from rtmeter.cli.output import console
from rtmeter.judge.factors import FactorEffects, LevelEffects
from rtmeter.results import words
from rtmeter.statistics.effects import Effect, Interaction, Said
from rtmeter.statistics.halving import RATIO
from rtmeter.statistics.over_quantities import named, not_told
from rtmeter.statistics.words import MOST_TIMES, multiple
from rtmeter.values import format_duration

if TYPE_CHECKING:
    from rich.table import Table

_CODES: dict[Said, int] = {
    "better": exit_codes.PASS,
    "no difference": exit_codes.PASS,
    "worse": exit_codes.FAIL,
    "not told": exit_codes.INCONCLUSIVE,
}
FAR = 1.5
"""The quotient from which two ways to take a mean are told apart."""

_STYLES: dict[Said, str] = {"better": "green", "worse": "red", "not told": "yellow"}


def code_of(found: FactorEffects) -> int:
    """The exit code: of several levels the worst."""
    return exit_codes.worst(_CODES[one.said] for one in found.levels)


def show_effects(found: FactorEffects) -> None:
    """Each level against the reference, a table each."""
    out = console()
    for one in found.levels:
        said = f"[{_STYLES[one.said]}]{one.said}[/]" if one.said in _STYLES else one.said
        head = f"{found.factor} {one.level} against {found.reference}"
        depends = one.where + (f"; {one.depends()}" if one.depends() else "")
        out.print(f"{_plain(head)}: {said}{_plain(depends + _how(found, one))}", soft_wrap=True)
        table = effects_table((found.reference, one.level), one.effects, found.deadline_ns)
        print_table(out, table, markup=True)
        with_it = (f"changes with it: {name}: what that does is in the effect" for name in one.confounded)
        for line in (*below(one.effects), *map(_depends, one.interactions), *with_it):
            out.print(f"  {line}", markup=False, soft_wrap=True)
    for name in found.left_out:
        out.print(f"  left out: {name}", markup=False, soft_wrap=True)
    for doubt in found.doubts:
        hint = f" ({doubt.hint})" if doubt.hint else ""
        out.print(f"  [yellow]{doubt.type}[/yellow]: {_plain(doubt.message + hint)}", soft_wrap=True)


def _how(found: FactorEffects, one: LevelEffects) -> str:
    over = f" matched over {', '.join(found.others)}" if found.others else ""
    cells = f"{one.matched} pair{'' if one.matched == 1 else 's'} of cells{over}"
    runs = f"{one.pairs} pair of runs" if one.pairs == 1 else f"means of {one.pairs} pairs of runs"
    sure = f"{100 * found.confidence:.10g} % confidence for all intervals together"
    return f" ({found.quantity} per release, {cells}, {runs}; {sure})"


def effects_table(sides: tuple[str, str], effects: Sequence[Effect | str], deadline_ns: int | None) -> Table:
    """A row for each quantity, of the reference and the level; one that runs are too short for is named."""
    from rich import box
    from rich.table import Table

    table = Table(box=box.SIMPLE_HEAD, pad_edge=False)
    for header in ("", *sides, "times", "from", "to", "says"):
        left = header in ("", "says")
        table.add_column(_plain(header), justify="left" if left else "right", no_wrap=True)
    for each in effects:
        row = _row(each, deadline_ns) if isinstance(each, Effect) else _too_short(each)
        table.add_row(*row)
    return table


def _too_short(quantity: str) -> Iterator[str]:
    yield f"{quantity}, us"
    yield from "-" * 5
    yield "[yellow]too short a run[/]"


def _row(one: Effect, deadline_ns: int | None) -> Iterator[str]:
    ratio = one.quantity == RATIO
    late = f" > {format_duration(deadline_ns)}" if deadline_ns is not None else ""
    yield named(one) + (f"{late}, odds" if ratio else ", us")
    for value in (one.reference, one.level):
        yield words.share(value) if ratio else _time(value)
    for value in (one.times, one.lower, one.upper):
        yield multiple(value, one.times) or "-"
    said: str = one.said
    if one.said == "no difference" and 1 < one.none_above < math.inf:
        said = f"no difference above x {one.none_above:.3g}"
    style = _STYLES.get(one.said)
    yield f"[{style}]{said}[/]" if style else said


def _time(ns: float) -> str:
    found = number(ns)
    return "-" if found is None else words.us(found)


def below(effects: Sequence[Effect]) -> Iterator[str]:
    """What is said of effects below their table."""
    for each in effects:
        if each.words:
            yield f"{named(each)}: {each.words}"
        if each.level_interval is not None and (math.isnan(each.times) or _counts(each)):
            ends = each.level_interval
            if each.lower < each.times / MOST_TIMES:
                ends = 0.0, ends[1]
            low, high = map(_value(each), ends)
            at = f"where it is {_value(each)(each.reference)} at the reference"
            yield f"{named(each)}: {low} to {high}, {at}"
        if _far_from_its_shares(each):
            apart = _odds(each.level) / _odds(each.reference)
            yield (
                f"{named(each)}: both shares are means over runs, in which those that miss most weigh most: "
                f"their odds are x {apart:.3g} apart; x {each.times:.3g} is the mean over pairs, each of "
                "which weighs the same"
            )
    yield from not_told(effects)


def _far_from_its_shares(one: Effect) -> bool:
    """Whether the two shares in its row look as if the effect were another one."""
    if one.quantity != RATIO or not (0 < one.level < 1 and 0 < one.reference < 1 and one.times > 0):
        return False
    return abs(math.log(_odds(one.level) / _odds(one.reference) / one.times)) > math.log(FAR)


def _odds(share: float) -> float:
    return share / (1 - share)


def _counts(one: Effect) -> bool:
    """Whether it is a ratio of which any run has a miss."""
    return one.quantity == RATIO and not one.words


def _value(one: Effect) -> Callable[[float], str]:
    return words.share if one.quantity == RATIO else lambda ns: f"{_time(ns)} us"


def _depends(one: Interaction) -> str:
    low, high = (multiple(end, one.times, sign="") for end in (one.lower, one.upper))
    ends = f"x {one.times:.3g} [{low}, {high}]"
    what = "odds of a miss" if one.quantity == RATIO else one.quantity
    return f"depends on {one.factor}: {what} {ends} at {one.at}, x {one.overall:.3g} over all"


def _plain(text: str) -> str:
    from rich.markup import escape

    return escape(text)
