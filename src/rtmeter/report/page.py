"""The page: what is said of each cell, put into the templates."""

from __future__ import annotations

import base64
import hashlib
import itertools
import json
import zlib
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache

import jinja2
from markupsafe import Markup

from rtmeter.errors import RtmeterError
from rtmeter.judge import answer, why
from rtmeter.judge import conditions as condition_facts
from rtmeter.judge.entries import by_condition
from rtmeter.judge.factors import FactorEffects
from rtmeter.judge.points import in_points
from rtmeter.judge.published import label
from rtmeter.plots import explained
from rtmeter.plots.data import Detail
from rtmeter.plots.figures import Figure, Panel, detail_for, panels
from rtmeter.plots.floors import QUANTILES, Floor
from rtmeter.plots.grammar import Spec
from rtmeter.report import factors, matrix, published
from rtmeter.report.script import script as script_of_pages
from rtmeter.results import condition_words, words
from rtmeter.results.cells import StoredCell
from rtmeter.results.condition_words import uncertainty, which_cells
from rtmeter.results.overview import WORST_FIRST, CellEntry, damaged
from rtmeter.results.record import Statistics
from rtmeter.values import harmless, version

_FEW_CELLS = 4
"""In reports of so many cells, conditions are not folded away."""

_FACTOR_LINES = 3
"""What factors do, on the first screen: the table below it has all."""

_MANY_CELLS = 60
"""In reports of more cells, the judged quantity alone is plotted."""

MOST_IN_FULL = 200
"""So many cells, the worst, have a section of their own; all others a row of a table, that of the cells or of
their condition: what keeps the report of ten thousand cells below 20 MB."""

SYMBOLS = {"error": "!", "fail": "✕", "inconclusive": "?", "unfinished": "…", "unjudged": "–", "pass": "✓"}


@dataclass(frozen=True, slots=True)
class Section:
    """A cell and its plots, or a condition and its ``repeats``, the worst first; ``in_full``: whether it
    has more than a row of a table, which conditions always have; ``why``: pictures of why releases were
    late."""

    anchor: str
    cell: CellEntry
    panels: list[Panel]
    in_full: bool = True
    repeats: Sequence[Section] = ()
    why: Sequence[Figure] = ()

    @property
    def cells(self) -> Sequence[Section]:
        """It itself, or its repeats."""
        return self.repeats or [self]

    @property
    def statistics(self) -> list[tuple[str, str, Statistics]]:
        """(quantity, views, statistics) of the table; views that are the same share a row."""
        record = self.cell.record
        if record is None or record.summary is None:
            return []
        rows = []
        for name, views in record.summary.quantities.items():
            distinct: dict[Statistics, list[str]] = {}
            for view, statistics in views.items():
                if statistics is not None and statistics.n:
                    distinct.setdefault(statistics.shown, []).append(words.VIEWS.get(view, view))
            title = words.quantity(record.meta, name) + uncertainty(
                name, record.clock_offset, record.kernel_stamps
            )
            rows += [(title, ", ".join(v), s) for s, v in distinct.items()]
        return rows


class Plots:
    """Numbers the figures as the templates place them, and packs their specifications for the page."""

    def __init__(self) -> None:
        self._specs: list[Spec] = []

    def number(self, figure: Figure) -> int:
        """The number of a figure that is placed now."""
        self._specs.append(figure.spec)
        return len(self._specs) - 1

    def packed(self) -> str:
        """The specifications in the order of their numbers: JSON, deflated (RFC 1950), in base 64."""
        text = json.dumps(self._specs, separators=(",", ":"), allow_nan=False)
        return base64.b64encode(zlib.compress(text.encode())).decode()


def render(
    title: str,
    cells: Sequence[CellEntry],
    floor: Floor,
    effects: Sequence[FactorEffects] = (),
    damage: list[RtmeterError] | None = None,
) -> str:
    """The page of at least one cell; to ``damage`` it adds why those that it shows as damaged cannot be
    read."""
    conditions = sorted(by_condition(cells), key=lambda cell: cell.badness)
    of = [sorted(one.repeats or [one], key=lambda cell: cell.badness) for one in conditions]
    detail, all_quantities = detail_for(min(len(cells), MOST_IN_FULL)), len(cells) <= _MANY_CELLS
    numbers, sections = itertools.count(1), list[Section]()
    for place, (one, repeats) in enumerate(zip(conditions, of, strict=True), 1):
        each = [
            _section(number, cell, detail, all_quantities)
            if number <= MOST_IN_FULL
            else Section(f"cell-{number}", cell, [], in_full=False)
            for cell, number in zip(repeats, numbers, strict=False)
        ]
        if one.repeats and any(section.cell.damage for section in each):
            (one,) = by_condition([section.cell for section in each])
        sections.append(Section(f"condition-{place}", one, [], repeats=each) if one.repeats else each[0])
    sections.sort(key=lambda section: section.cell.badness)
    leaves = [leaf for section in sections for leaf in section.cells]
    if damage is not None:
        damage += [leaf.cell.damage for leaf in leaves if leaf.cell.damage]
    cells = [section.cell for section in sections]
    tally = Counter(cell.outcome for cell in cells)
    script = script_of_pages()
    return (
        environment()
        .get_template("report.html")
        .render(
            title=title,
            answer=answer.answer(cells),
            things=answer.things(cells),
            tally=[(outcome, tally[outcome]) for outcome in WORST_FIRST if tally[outcome]],
            sections=sections,
            leaves=leaves,
            in_rows_only=max(0, len(leaves) - MOST_IN_FULL),
            floor=floor,
            factors=effects,
            factor_doubts=factors.doubts(effects),
            factor_lines=factors.in_lines(effects, _FACTOR_LINES),
            quantiles=QUANTILES,
            matrices=matrix.matrices([(section.anchor, section.cell) for section in sections]),
            choices=matrix.choices(cells),
            axes=matrix.shown_axes(cells),
            shared={doubt: cells for doubt, cells in answer.shared(cells) if len(cells) > 1},
            which_cells=which_cells,
            repeated=any(section.repeats for section in sections),
            few=len(leaves) <= _FEW_CELLS,
            plots=Plots(),
            script=Markup(script),
            script_hash=base64.b64encode(hashlib.sha256(script.encode()).digest()).decode(),
            version=version(),
        )
    )


def _section(number: int, cell: CellEntry, detail: Detail, all_quantities: bool) -> Section:
    drawn: list[Panel] = []
    if cell.record is not None:
        try:
            drawn = panels(cell, detail, all_quantities)
        except RtmeterError as error:
            cell = damaged(cell, error)
    return Section(f"cell-{number}", cell, drawn, why=_why(cell))


def _why(cell: CellEntry) -> Sequence[Figure]:
    """Pictures of what late releases waited for, where the kernel's events were recorded."""
    found = why.why(StoredCell(cell.folder, cell.record)) if cell.record is not None else None
    return explained.figures(found) if found is not None else ()


def _shown(value: object) -> object:
    """What a page writes: of a text, what a terminal or a reader's editor would heed as escapes."""
    return harmless(value) if isinstance(value, str) and not isinstance(value, Markup) else value


@cache
def environment(*rooms: str) -> jinja2.Environment:
    """Templates, those of ``rooms`` first, and what they call."""
    loaders = [jinja2.PackageLoader(room) for room in (*rooms, "rtmeter.report", "rtmeter.plots")]
    environment = jinja2.Environment(
        loader=jinja2.ChoiceLoader(loaders),
        autoescape=True,
        finalize=_shown,
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.globals |= {"names": answer.NAMES, "symbols": SYMBOLS, "dash": words.NONE}
    environment.globals |= {"reason": answer.reason, "in_points": in_points, "unfit": answer.unfit}
    environment.globals |= {"in_one_line": condition_facts.in_one_line, "settings": condition_facts.settings}
    environment.globals |= {"facts_of": condition_facts.facts, "judged_of": words.judged}
    environment.globals |= {"suspected": condition_facts.suspected, "meanwhile": condition_facts.meanwhile}
    environment.globals |= {"in_words_meanwhile": condition_words.meanwhile}
    environment.globals |= {"of_all_runs": words.OF_ALL_RUNS}
    environment.globals |= {"published": published.published, "anchors": published.anchors}
    environment.globals |= {"column_label": label, "beside_value": published.shown, "views": words.VIEWS}
    environment.globals |= {"line_quantity": published.quantity}
    environment.globals |= {"factor_rows": factors.rows, "factor_below": factors.below}
    environment.globals |= {"factor_matched": factors.matched}
    environment.globals |= {"meanwhile_there": condition_facts.meanwhile_there}
    environment.filters |= {
        "searched": matrix.searched,
        "filtered_by": matrix.filtered_by,
        "us": words.us,
        "round_us": words.round_us,
        "n": words.count,
        "share": words.share,
        "setting": lambda value, name: words.setting(name, value),
        "label": words.label,
    }
    return environment
