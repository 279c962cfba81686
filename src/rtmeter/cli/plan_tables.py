"""Plans as text."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Sequence
from typing import TYPE_CHECKING

from rtmeter.campaign.plan import Assumed, CellPlan, Planned, assumptions
from rtmeter.campaign.plan_factors import SPREAD_OF_RUNS, FactorPlan, QuantityPlan
from rtmeter.cli.columns import print_table
from rtmeter.cli.output import console
from rtmeter.results import words
from rtmeter.statistics.bounds import NS_PER_HOUR, cluster_of
from rtmeter.statistics.evidence import FEWEST_JUDGED
from rtmeter.statistics.extremes import FEWEST_RELEASES
from rtmeter.statistics.words import about, in_one_unit
from rtmeter.values import format_duration

if TYPE_CHECKING:
    from rich.table import Table


def show_plan(planned: Planned, assumes: Sequence[str]) -> None:
    """The lengths that pass, and what they assume."""
    out, required = console(), planned.requirement
    sure = f"{100 * required.confidence:.10g} % confidence"
    ratio = required.miss_ratio
    allowed = "no miss" if ratio is None else f"a miss ratio of at most {words.share(ratio)}"
    pace = f"every {format_duration(planned.period_ns)}"
    deadline = f"deadline {format_duration(required.deadline_ns)}, {required.criticality}"
    out.print(f"{deadline}: {allowed} with {sure}, releases {pace}", markup=False)
    if planned.assumed.refusals:
        out.print(_unmended(planned.assumed), markup=False, soft_wrap=True)
        return
    if planned.plans:
        unit, runs = in_one_unit([row.hours * NS_PER_HOUR for row in planned.plans])
        table = _table("misses", "releases", f"run\n{unit}")
        for row, run in zip(planned.plans, runs, strict=True):
            table.add_row(f"{row.misses_allowed:,}", f"{row.releases:,}", run)
    else:
        hard = required.criticality == "hard"
        least = f" of {FEWEST_RELEASES if hard else FEWEST_JUDGED:,} releases at least"
        passes = "can pass" if hard else "passes"
        out.print(
            f"any run{least} without a miss {passes}; the longer it is, the more it says:", markup=False
        )
        unit, runs = in_one_unit([length.hours * NS_PER_HOUR for length in planned.lengths])
        table = _table("releases", f"run\n{unit}", "miss ratio at most")
        for length, run in zip(planned.lengths, runs, strict=True):
            table.add_row(f"{length.releases:,}", run, words.share(length.upper))
    print_table(out, table)
    for line in [*_expected(planned), *(f"assumes: {sentence}" for sentence in assumes)]:
        out.print(line, markup=False, soft_wrap=True)


def show_cells(
    cells: Sequence[CellPlan], factors: Sequence[FactorPlan], total_ns: int, cannot_run: Collection[str]
) -> None:
    """Whether each cell of a campaign can pass, of repeats all together, how long all of them take, and
    whether its repeats can tell what its factors do; of those that ``cannot_run`` here nothing is said."""
    from rich.markup import escape

    lengths = [cell.hours / cell.runs * NS_PER_HOUR for cell in cells]
    known = [cell for cell in cells if cell.id not in cannot_run]
    needed = [cell.needed.hours * NS_PER_HOUR for cell in known if cell.needed]
    (unit, runs), (of_needed, takes) = in_one_unit(lengths), in_one_unit(needed)
    least = iter(takes)
    which = f"which takes\n{of_needed}" if needed else "which takes"
    thing = "condition" if any(cell.runs > 1 for cell in cells) else "cell"
    table = _table(thing, "releases", f"run\n{unit}", "can pass", "misses", "needs", which)
    for cell, length in zip(cells, runs, strict=True):
        said = {"can pass": "yes", "never": "[red]never[/red]", "no requirement": "not judged"}[cell.outcome]
        most = "-" if cell.most_misses is None else f"≤ {cell.most_misses:,}"
        needs = (f"{cell.needed.releases:,}", next(least)) if cell.needed and cell in known else ("-", "-")
        run = length if cell.runs == 1 else f"{cell.runs:,} x {length}"
        passes = [said, most, *needs] if cell in known else ["[red]cannot run[/red]", "-", "-", "-"]
        table.add_row(escape(cell.id), f"{cell.releases:,}", run, *passes)
    out = console()
    print_table(out, table, markup=True)
    count = sum(cell.runs for cell in cells)
    starts = "one run starts and ends" if count == 1 else f"{count:,} runs start and end"
    out.print(
        f"all releases, warm-up included: {about(total_ns)}; besides, {starts} the middleware", markup=False
    )
    for alike in _alike([one for one in factors if one.enough]):
        out.print(_enough_repeats(alike), markup=False, soft_wrap=True)
    for one in factors:
        if not one.enough:
            out.print(f"[yellow]too_few_repeats[/yellow]: {escape(_too_few_repeats(one))}", soft_wrap=True)
    refused = [_unmended(cell.assumed) for cell in cells if cell.requirement and cell.assumed.refusals]
    for sentence in dict.fromkeys(refused):
        out.print(sentence, markup=False, soft_wrap=True)
    never = sum(cell.outcome == "never" and not cell.assumed.refusals for cell in known)
    if never:
        said = f"{never:,} of {len(cells):,} {thing}s {'is' if never == 1 else 'are'} too short to pass"
        out.print(f"{said} whatever {'it measures' if never == 1 else 'they measure'}", markup=False)
    for sentence in _may_be_too_low(known):
        out.print(sentence, markup=False, soft_wrap=True)
    assumed = (s for cell in cells if cell.requirement for s in assumptions(cell.requirement, cell.assumed))
    for sentence in dict.fromkeys(assumed):
        out.print(f"assumes: {sentence}", markup=False, soft_wrap=True)


def _may_be_too_low(cells: Sequence[CellPlan]) -> Iterator[str]:
    """By how much lengths may be too low where independence is assumed: by the cell with the least room."""
    guessed = (one for one in cells if one.assumed == Assumed())
    known = [(one.most_effect, one.id) for one in guessed if one.most_effect]
    if known:
        effect, least = min(known)
        which = "each cell" if len({one for one, _ in known}) == 1 else least
        yield (
            "may be too low: a verdict divides n by what it finds that the latest releases hang together; as "
            f"planned {which} passes without a miss up to n / {effect:.3g} (clusters of "
            f"{cluster_of(effect):.3g} on average); --like PATH plans by a pilot run"
        )


def _alike(factors: Sequence[FactorPlan]) -> Iterable[Sequence[FactorPlan]]:
    """Those of the same quantities, of which the same is said."""
    found: dict[tuple[str, ...], list[FactorPlan]] = {}
    for one in factors:
        found.setdefault((*_names(one.quantities), _if_they_differ(one)), []).append(one)
    return found.values()


def _enough_repeats(alike: Sequence[FactorPlan]) -> str:
    """Of which factors the repeats tell, and how they are asked for."""
    one = alike[0]
    factors, quantities = ", ".join(each.factor for each in alike), ", ".join(_names(one.quantities))
    shows = f"the runs of each cell show a halving, or rule it out, of {quantities}, {_if_they_differ(one)}"
    return f"{factors}: {shows}: then ask rtmeter compare --factor {one.factor}"


def _too_few_repeats(one: FactorPlan) -> str:
    """What a campaign's repeats cannot show."""
    have, shows = ("one run", "shows") if one.repeats == 1 else (f"{one.repeats:,} runs", "show")
    cells = "cell" if one.matched == 1 else "cells"
    factors = " with ".join(filter(None, (one.factor, ", ".join(one.together))))
    needed = zip(one.quantities, _names(one.quantities), strict=True)
    each = ", ".join(f"{_count(quantity.needed)} for {name}" for quantity, name in needed)
    return (
        f"{factors}: {have} of each cell {shows} not even a halving of {', '.join(_names(one.too_few))}, "
        f"compared over {one.matched:,} {cells} a level; it takes {_count(one.needed)} (repeat): {each}, "
        f"{_if_they_differ(one)}"
    )


def _count(needed: int | None) -> str:
    return "more than can be told" if needed is None else f"{needed:,}"


def _names(quantities: Sequence[QuantityPlan]) -> list[str]:
    return [one.quantity.replace("_", " ") for one in quantities]


def _if_they_differ(one: FactorPlan) -> str:
    """What it holds for."""
    if one.seen:
        return "if runs go on to differ as in --like"
    share = f"{100 * SPREAD_OF_RUNS:.0f} %"
    return f"if runs differ by {share} and by what their counts do (--like PATH: as those of a pilot do)"


def _expected(planned: Planned) -> list[str]:
    assumed = planned.assumed
    if not assumed.misses:
        return []
    often = f"{assumed.like} missed {assumed.misses:,} of {assumed.n:,} releases; if that goes on,"
    if planned.expected is None:
        return [f"{often} no length passes"]
    return [f"{often} {planned.expected.releases:,} releases ({_run(planned.expected.hours)}) pass"]


def _unmended(assumed: Assumed) -> str:
    why = "; ".join(assumed.refusals)
    return f"no length helps before that is mended for which {assumed.like} is refused: {why}"


def _run(hours: float) -> str:
    days = hours / 24
    return f"{days:,.1f} days" if days >= 2 else about(hours * NS_PER_HOUR)


def _table(*headers: str) -> Table:
    from rich import box
    from rich.table import Table

    table = Table(box=box.SIMPLE_HEAD, pad_edge=False)
    for header in headers:
        name = header in ("cell", "condition", "can pass")
        table.add_column(header, justify="left" if name else "right", no_wrap=not name, overflow="fold")
    return table
