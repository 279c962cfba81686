"""What a factor does, as text."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import TYPE_CHECKING

from rtmeter.api.comparisons import number
from rtmeter.cli import exit_codes
from rtmeter.cli.columns import print_table
from rtmeter.cli.output import console
from rtmeter.judge.factors import FactorEffects, LevelEffects
from rtmeter.results import words
from rtmeter.statistics.effects import Effect, Interaction, Said
from rtmeter.statistics.halving import RATIO
from rtmeter.values import format_duration

if TYPE_CHECKING:
    from rich.table import Table

_CODES: dict[Said, int] = {
    "better": exit_codes.PASS,
    "no difference": exit_codes.PASS,
    "worse": exit_codes.FAIL,
    "not told": exit_codes.INCONCLUSIVE,
}
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
        depends = one.but + (f"; {one.depends()}" if one.depends() else "")
        out.print(f"{_plain(head)}: {said}{_plain(depends + _how(found, one))}", soft_wrap=True)
        print_table(out, _table(found, one))
        for line in _below(one):
            out.print(f"  {line}", markup=False, soft_wrap=True)
    for name in found.confounded:
        line = f"  changes with it: {name}: what that does is in the effect"
        out.print(line, markup=False, soft_wrap=True)
    for name in found.left_out:
        out.print(f"  left out: {name}", markup=False, soft_wrap=True)
    for doubt in found.doubts:
        hint = f" ({doubt.hint})" if doubt.hint else ""
        out.print(f"  [yellow]{doubt.type}[/yellow]: {_plain(doubt.message + hint)}", soft_wrap=True)


def _how(found: FactorEffects, one: LevelEffects) -> str:
    over = f" matched over {', '.join(found.others)}" if found.others else ""
    cells = f"{one.matched} pair{'' if one.matched == 1 else 's'} of cells{over}"
    runs = f"{one.pairs} pair{'' if one.pairs == 1 else 's'} of runs"
    sure = f"{100 * found.confidence:.10g} % confidence for all intervals together"
    return f" ({found.quantity} per release, {cells}, {runs}; {sure})"


def _table(found: FactorEffects, one: LevelEffects) -> Table:
    from rich import box
    from rich.table import Table

    table = Table(box=box.SIMPLE_HEAD, pad_edge=False)
    for header in ("", found.reference, one.level, "times", "from", "to", "says"):
        left = header in ("", "says")
        table.add_column(_plain(header), justify="left" if left else "right", no_wrap=True)
    for each in one.effects:
        table.add_row(*_row(each, found.deadline_ns))
    return table


def _row(one: Effect, deadline_ns: int | None) -> Iterator[str]:
    ratio = one.quantity == RATIO
    late = f" > {format_duration(deadline_ns)}, odds" if ratio and deadline_ns is not None else ", us"
    yield one.quantity.replace("_", " ") + late
    for value in (one.reference, one.level):
        yield f"{value:.3g}" if ratio else _time(value)
    for value in (one.times, one.lower, one.upper):
        yield f"x {value:.3g}" if math.isfinite(value) else "-"
    said: str = one.said
    if one.said == "no difference" and 1 < one.none_above < math.inf:
        said = f"no difference above x {one.none_above:.3g}"
    style = _STYLES.get(one.said)
    yield f"[{style}]{said}[/]" if style else said


def _time(ns: float) -> str:
    found = number(ns)
    return "-" if found is None else words.us(found)


def _below(one: LevelEffects) -> Iterator[str]:
    for each in one.effects:
        name = each.quantity.replace("_", " ")
        if each.words:
            yield f"{name}: {each.words}"
        if each.level_interval is not None and not each.words:
            low, high = (f"{end:.3g}" for end in each.level_interval)
            yield f"{name}: {low} to {high}, where it is {each.reference:.3g} at the reference"
    if one.repeats is not None:
        untold = [each.quantity.replace("_", " ") for each in one.effects if each.repeats]
        few = f"so few repeats do not show even a halving; it takes {one.repeats:,}"
        yield f"not told of {', '.join(untold)}: {few}"
    for interaction in one.interactions:
        yield _depends(interaction)


def _depends(one: Interaction) -> str:
    ends = f"x {one.times:.3g} [{one.lower:.3g}, {one.upper:.3g}]"
    what = "odds of a miss" if one.quantity == RATIO else one.quantity
    return f"depends on {one.factor}: {what} {ends} at {one.at}, x {one.overall:.3g} over all"


def _plain(text: str) -> str:
    from rich.markup import escape

    return escape(text)
