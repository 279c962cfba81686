"""Verdicts of several conditions: a row each, and of many what is said of them, once for all it holds for."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING

from rtmeter.results.overview import WORST_FIRST

if TYPE_CHECKING:
    from rtmeter.api.verdicts import CellVerdict

    Points = Iterator[tuple[str, str]]
    """(what, what is said of it)"""

MOST_WHOLE = 3
"""So many conditions have their whole verdicts shown; of more it is told together what is said of them."""

_MOST_NAMES, _MOST_BUT = 6, 2
_OF_OUTCOME = {
    "error": "with an error",
    "fail": "that fail",
    "inconclusive": "that are inconclusive",
    "unjudged": "that are not judged",
    "pass": "that pass",
}
_VARIES = re.compile(
    r"(\br\d+|each run|\d+ of \d+ runs(, as in r\d+)?): "  # of which run
    r"|no (upper )?bound( of the miss ratio)? is stated: "
    r"|\([^()]*\)|more than a hundred"
    r"|([+-]?\d[\d.,]*( ?(ns|us|ms|s|min|h|%))?( \([^()]*\))?(, (?=\d))?)+"
)
"""In what is said of conditions alike: runs, numbers, lists of them, and what stands in brackets."""


def worst_first(found: Sequence[CellVerdict]) -> list[CellVerdict]:
    """Those that failed first, of them the one that missed most."""
    places: Mapping[str, int] = {outcome: place for place, outcome in enumerate(WORST_FIRST)}
    return sorted(found, key=lambda one: (places[one.outcome], -_share(one)))


def _share(one: CellVerdict) -> float:
    return one.verdict.misses / one.verdict.n if one.verdict and one.verdict.n else 0.0


def show_table(named: Mapping[str, CellVerdict]) -> None:
    """All conditions, by name, in a table."""
    from rich import box
    from rich.markup import escape
    from rich.table import Table

    from rtmeter.cli.cell_tables import STYLES
    from rtmeter.cli.columns import print_table
    from rtmeter.cli.output import console, microseconds
    from rtmeter.results.words import missed_share, share

    table = Table(box=box.SIMPLE_HEAD, pad_edge=False)
    for header in ("condition", "verdict", "missed", "of", "share", "allowed", "worst\nus"):
        left = header in ("condition", "verdict")
        wraps = header == "condition"
        table.add_column(header, justify="left" if left else "right", no_wrap=not wraps, overflow="fold")
    for name, one in named.items():
        verdict, style = one.verdict, STYLES.get(one.outcome)
        said = f"[{style}]{one.outcome}[/]" if style else one.outcome
        row = ["-", "-", "-", "-"]
        if verdict and verdict.n:
            allowed = verdict.requirement.miss_ratio
            missed = missed_share(verdict), "none" if allowed is None else share(allowed)
            row = [verdict.missed, f"{verdict.n:,}", *missed]
        table.add_row(escape(name), said, *row, microseconds(one.worst_ns))
    print_table(console(), table, markup=True)


def told_together(named: Mapping[str, CellVerdict], why: Mapping[str, str]) -> Iterator[str]:
    """What is said of many conditions, each thing once, with those that it holds for; ``why``: of those with
    a trace why their releases were late."""
    before = ""
    for what, words in _together(named, why):
        yield f"  {'' if what == before else what:<17}{words}"
        before = what


def _together(named: Mapping[str, CellVerdict], why: Mapping[str, str]) -> Points:
    told: dict[tuple[str, str], dict[str, list[str]]] = {}
    for name, one in named.items():
        for what, said in (*_points(one), *((("why", why[name]),) if name in why else ())):
            text = said.replace(f"{one.id}-r", "r")
            told.setdefault((what, _VARIES.sub("", text)), {}).setdefault(text, []).append(name)
    for what in ("because", "why", "next", "meanwhile"):
        for (kind, _), texts in told.items():
            if kind == what:
                names = list(dict.fromkeys(name for having in texts.values() for name in having))
                which, text = _which(names, named), next(iter(texts))
                first = "the first" if which.startswith(f"{names[0]}, ") else names[0]
                yield (
                    what,
                    f"{which}{f', as in {first}' if len(texts) > 1 and len(names) > 1 else ''}: {text}",
                )
    yield from _of_all(list(named.values()))


def _points(one: CellVerdict) -> Points:
    """What a condition says that others may say too."""
    from rtmeter.judge.points import line_and_points

    verdict = one.verdict
    line, points = line_and_points(verdict, one.worst_ns) if verdict else (one.reason, [])
    for point in points if verdict and verdict.n else [line]:
        yield "because", point
    if one.next:
        yield "next", one.next
    for words in one.meanwhile:
        for part in words.split("; "):
            yield "meanwhile", part


def _which(names: Sequence[str], named: Mapping[str, CellVerdict]) -> str:
    rest = [name for name in named if name not in names]
    if len(rest) < len(names) and len(rest) <= _MOST_BUT:
        return f"all but {' and '.join(rest)}" if rest else f"all {len(names)} conditions"
    outcome = named[names[0]].outcome
    if len(names) > 1 and set(names) == {name for name, one in named.items() if one.outcome == outcome}:
        return f"the {len(names)} {_OF_OUTCOME[outcome]}"
    more = f" and {len(names) - _MOST_NAMES:,} more" if len(names) > _MOST_NAMES else ""
    return ", ".join(names[:_MOST_NAMES]) + more


def _of_all(found: Sequence[CellVerdict]) -> Points:
    """What the gates found in each alike, and the conditions that are those of all."""
    from rtmeter.cli.evidence import found_besides

    judged = [one for one in found if one.verdict and one.verdict.n and one.verdict.support]
    if not judged:
        return
    each = [list(found_besides(one.verdict)) for one in judged if one.verdict]
    yield from (point for point in each[0] if all(point in others for others in each))
    common = [part for part in judged[0].conditions if all(part in one.conditions for one in judged)]
    if common:
        differ = any(len(one.conditions) > len(common) for one in judged)
        yield "holds for", ", ".join(common) + (", and what each has of its own" if differ else "")
