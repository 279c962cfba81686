"""Comparisons as JSON and as text. Times in microseconds, as everywhere on the screen."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING

from rtmeter.api.comparisons import apart_by, number
from rtmeter.cli import exit_codes
from rtmeter.cli.columns import print_table
from rtmeter.cli.factor_tables import below, effects_table
from rtmeter.cli.output import console
from rtmeter.judge.compared import Compared
from rtmeter.results import words
from rtmeter.statistics.compare import Shift
from rtmeter.statistics.gate import GateResult
from rtmeter.values import format_duration

if TYPE_CHECKING:
    from rich.console import Console
    from rich.table import Table

_CODES = {
    "better": exit_codes.PASS,
    "no difference": exit_codes.PASS,
    "worse": exit_codes.FAIL,
    "not told": exit_codes.INCONCLUSIVE,
    "not enough data": exit_codes.INCONCLUSIVE,
    "error": exit_codes.ERROR,
}
_STYLES = (
    {"better": "green", "worse": "red", "error": "red"}
    | {
        "not told": "yellow",
        "not enough data": "yellow",
    }
    | {
        "pass": "green",
        "fail": "red",
        "inconclusive": "yellow",
    }
)
WORDS = {"not told": "not told: half or twice as much is not ruled out"}


def code_of(compared: Compared) -> int:
    """The exit code: that of the gates, where there are any."""
    if compared.found is not None and compared.gates:
        return exit_codes.worst(exit_codes.of_outcome(result.outcome) for result in compared.gates)
    return _CODES[compared.outcome]


def show(compared: Compared) -> None:
    """A comparison in full."""
    out = console()
    outcome = compared.outcome
    style = _STYLES.get(outcome)
    said = WORDS.get(outcome, outcome)
    said = f"[{style}]{said}[/{style}]" if style else said
    said += _plain(compared.where)
    out.print(f"{_plain(compared.pairing.name)}: {said}{_plain(_how(compared))}", soft_wrap=True)
    if compared.found and compared.found.pairs:
        effects = [one.effect or one.quantity for one in compared.found.shifts]
        print_table(out, effects_table(("A", "B"), effects, compared.deadline_ns), markup=True)
        for line in below(compared.found.effects):
            out.print(f"  {line}", markup=False, soft_wrap=True)
    elif compared.found:
        table = _table("", "A", "B", "shift", "from", "to", "relative", "says")
        for shift in compared.found.shifts:
            table.add_row(*_row(shift, compared))
        print_table(out, table, markup=True)
    if compared.outcome == "not told" and compared.found and not compared.found.pairs:
        out.print(f"  {_ONE_RUN_EACH}", markup=False)
    for result in compared.gates:
        judged = f"[{_STYLES[result.outcome]}]{result.outcome}[/]"
        out.print(f"  gate {_plain(result.gate.text)}: {judged}{_excess(result)}", soft_wrap=True)
    _show_conditions(compared, out)


def _how(compared: Compared) -> str:
    if compared.found is None:
        return f": {compared.refusal}{'; --force compares them anyway' if compared.pairing.pairs else ''}"
    count = len(compared.pairing.pairs)
    turns = "measured in turn" if compared.pairing.interleaved else "not measured in turn"
    runs = "one run each" if count == 1 else f"means of {count} pairs of runs, {turns}"
    sure = f"{100 * compared.found.confidence:.10g} % confidence for all intervals together"
    return f" ({compared.quantity} per release, {runs}; {sure})"


_ONE_RUN_EACH = (
    "one run each does not rule out half or twice as much: measure longer, and repeat both in turn"
)


def _show_conditions(compared: Compared, out: Console) -> None:
    if compared.pairing.pairs and not compared.differs:
        out.print("  differs: nothing that is recorded")
    for difference in compared.differs:
        out.print(
            f"  differs: {difference.name}: {difference.a} → {difference.b}", markup=False, soft_wrap=True
        )
    for doubt in compared.doubts:
        hint = f" ({doubt.hint})" if doubt.hint else ""
        out.print(f"  [yellow]{doubt.type}[/yellow]: {_plain(doubt.message + hint)}", soft_wrap=True)


_OF_LAYERS = ("p50", "p99", "p99.9", "p99.99")
"""The last one of one run each only."""


def show_layers(compared: Sequence[Compared]) -> None:
    """Each middleware as floor + X: the shifts of its quantiles with their intervals."""
    out = console()
    out.print("X in us, with its interval: the shift of each quantile", markup=False)
    known = [{shift.quantity: shift for shift in one.found.shifts} if one.found else {} for one in compared]
    columns = [key for key in _OF_LAYERS if any(key in shifts for shifts in known)]
    table = _table("cell", "pairs", *columns)
    for one, shifts in zip(compared, known, strict=True):
        if shifts:
            name = f"{_plain(one.pairing.b)}\n  = {_plain(one.pairing.a)} + X"
            xs = (_layer(shifts[key]) if key in shifts else "" for key in columns)
            table.add_row(name, f"{len(one.pairing.pairs)}", *xs)
    print_table(out, table, markup=True)
    for one in compared:
        name = _plain(one.pairing.name)
        if one.found is None:
            out.print(f"{name}: [red]error[/red]{_plain(_how(one))}", soft_wrap=True)
        for doubt in one.doubts:
            out.print(f"  {name}: [yellow]{doubt.type}[/yellow]: {_plain(doubt.message)}", soft_wrap=True)


def _layer(shift: Shift) -> str:
    if shift.outcome == "not enough data":
        return "too short"
    return f"{_apart(shift.difference)}\n{_plain(f'[{_apart(shift.lower)}, {_apart(shift.upper)}]')}"


def _row(shift: Shift, compared: Compared) -> Iterator[str]:
    of_time = shift.quantity != "miss_ratio"
    text: Callable[[float], str] = _time if of_time else words.share
    shifted: Callable[[float], str] = _apart if of_time else _points
    deadline_ns = compared.deadline_ns
    if not compared.allows(shift.quantity):
        text = shifted = _nothing
    late = f" > {format_duration(deadline_ns)}" if deadline_ns is not None and not of_time else ", us"
    yield shift.quantity.replace("_", " ") + late
    yield text(shift.a)
    yield text(shift.b)
    yield shifted(shift.difference)
    short = shift.outcome == "not enough data"
    yield "-" if short else shifted(shift.lower)
    yield "-" if short else shifted(shift.upper)
    known = math.isfinite(shift.relative) and text is not _nothing
    yield f"{100 * shift.relative:+.2f} %" if known else "-"
    unknown = "too short a run" if of_time else "not known"
    outcome = unknown if short else _said(shift, shifted)
    style = _STYLES.get(shift.outcome)
    yield f"[{style}]{outcome}[/{style}]" if style else outcome


def _said(shift: Shift, text: Callable[[float], str]) -> str:
    """What a shift says; of no difference above which."""
    reach = max(-shift.lower, shift.upper)
    if shift.outcome == "no difference" and reach and text is not _nothing:
        return f"no difference above {text(reach)}"
    return shift.outcome


def _nothing(_: float) -> str:
    """Of a quantile that is the maximum, since there are too few values."""
    return "-"


def _excess(result: GateResult) -> str:
    shift = result.excess
    if shift.effect is not None and shift.effect.level_interval is None:
        return f": {shift.effect.words}"
    if shift.outcome == "not enough data":
        if shift.quantity == "miss_ratio":
            return ": how many releases were left out is not known"
        early = result.gate.factor != 1 and shift.a <= 0 and result.gate.percent is not None
        return (
            ": a share of a time that is not above zero: give a time"
            if early
            else ": too short a run to tell"
        )
    text = _points if shift.quantity == "miss_ratio" else _us
    where = "above" if shift.difference >= 0 else "below"
    ends = f"{text(shift.lower)} to {text(shift.upper)}"
    return f": B is {text(abs(shift.difference))} {where} it (interval {ends})"


def gate_words(result: GateResult) -> str:
    """A gate's outcome with its excess, as plain text."""
    return f"{result.gate.text}: {result.outcome}{_excess(result)}"


def _time(ns: float) -> str:
    found = number(ns)
    return "-" if found is None else words.us(found)


def _apart(ns: float) -> str:
    """A difference of times; where it has no size, which of the two is lost."""
    found = apart_by(ns)
    return found if isinstance(found, str) else _time(ns)


def _us(ns: float) -> str:
    return _apart(ns) if math.isinf(ns) else f"{_time(ns)} us"


def _points(difference: float) -> str:
    """A difference of shares: no share of either."""
    return "-" if math.isnan(difference) else f"{100 * difference:.3g} points"


def _plain(text: str) -> str:
    from rich.markup import escape

    return escape(text)


def _table(*headers: str) -> Table:
    from rich import box
    from rich.table import Table

    table = Table(box=box.SIMPLE_HEAD, pad_edge=False)
    for header in headers:
        left = header in ("", "says", "cell")
        table.add_column(header, justify="left" if left else "right", no_wrap=True)
    return table


def only_words(names: Mapping[str, Sequence[str]]) -> list[str]:
    """What has no partner, by side."""
    return [f"only in {side}: {name}" for side, cells in names.items() for name in cells]
