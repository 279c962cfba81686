"""What a search for the largest value came to, as text and as JSON."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from rtmeter.campaign.ranges import in_words, named
from rtmeter.cli.columns import print_table
from rtmeter.cli.output import console
from rtmeter.results.words import share
from rtmeter.values import as_json, format_duration

if TYPE_CHECKING:
    from rtmeter.measure.largest import Largest, SearchAsked

_UNITS = {"rate": "Hz", "payload": "B"}


def find_max_json(asked: SearchAsked, found: Largest) -> dict[str, Any]:
    """As ``--json`` prints it: values in Hz, bytes, or a number of them (``unit`` null); null where
    none is known."""
    tried: list[dict[str, Any]] = []
    for one in found.tried:
        counts = {"n": one.verdict.n, "misses": one.verdict.misses} if one.verdict else {}
        about = {"value": one.value, "outcome": one.outcome, "reason": one.reason, "cells": list(one.cells)}
        tried.append(about | counts)
    answer: dict[str, Any] = {"find_max": asked.what, "unit": _UNITS.get(asked.what)}
    answer |= {"outcome": found.outcome, "passes": found.search.passes, "fails": found.search.fails}
    document: dict[str, Any] = as_json(answer | {"run": str(found.folder), "tried": tried})
    return document


def show_largest(asked: SearchAsked, found: Largest) -> None:
    """A row for each value, going up, then the answer."""
    from rich import box
    from rich.table import Table

    out, table = console(), Table(box=box.SIMPLE_HEAD, pad_edge=False)
    for header, justify in ((asked.what, "right"), ("runs", "right"), ("missed", "right"), ("of", "right")):
        table.add_column(header, justify=justify, no_wrap=True)  # type: ignore[arg-type]
    table.add_column("", no_wrap=True)
    table.add_column("cell", overflow="fold")
    for one in sorted(found.tried, key=lambda tried: tried.value):
        missed, of = (one.verdict.missed, f"{one.verdict.n:,}") if one.verdict else ("-", "-")
        cell = one.cells[0] + (f" to r{len(one.cells)}" if len(one.cells) > 1 else "") if one.cells else "-"
        table.add_row(in_words(asked.what, one.value), f"{len(one.cells)}", missed, of, one.outcome, cell)
    if found.tried:
        print_table(out, table)
    for line in _answer(asked, found):
        out.print(line, markup=False, soft_wrap=True)


def _answer(asked: SearchAsked, found: Largest) -> list[str]:
    search, last = found.search, found.tried[-1] if found.tried else None

    def words(value: int) -> str:
        return in_words(asked.what, value)

    lines = []
    if found.outcome == "pass" and search.passes is not None:
        lines.append(f"largest {named(asked.what)} that passes: {words(search.passes)} ({_required(found)})")
        if search.fails is None:
            lines.append("it is the largest that was asked for: a wider range may find more")
        else:
            why = next(one for one in found.tried if one.value == search.fails)
            lines.append(f"{words(search.fails)} does not: {_why(why.reason)}")
            lines.append("assumes: what passes, passes at every smaller value")
    elif found.outcome in ("fail", "error") and last is not None:
        verb = "passes" if found.outcome == "fail" else "can be measured"
        lines.append(f"no {named(asked.what)} {verb}, not even {words(last.value)}: {_why(last.reason)}")
    elif found.outcome == "inconclusive" and last is not None:
        lines.append(f"inconclusive: {words(last.value)}: {_why(last.reason)}")
        more = "; --most-repeats allows more runs, --resume keeps what is there" if last.cells else ""
        lines.append(_known(asked, found) + more)
    else:
        lines.append(f"interrupted: {_known(asked, found)}; --resume goes on")
    return [*lines, f"stored in {found.folder}"]


def _known(asked: SearchAsked, found: Largest) -> str:
    passes, fails = found.search.passes, found.search.fails
    known = [f"{in_words(asked.what, passes)} passes"] if passes is not None else []
    known += [f"{in_words(asked.what, fails)} does not"] if fails is not None else []
    return " and ".join(known) or "nothing is known yet"


def _required(found: Largest) -> str:
    required = next(one.verdict.requirement for one in found.tried if one.verdict)
    allowed = "no miss" if required.miss_ratio is None else f"at most {share(required.miss_ratio)} missed"
    confidence = f"{100 * required.confidence:.10g} % confidence"
    return f"deadline {format_duration(required.deadline_ns)}, {allowed}, {confidence}"


def _why(reason: str) -> str:
    return reason.rstrip(".")
