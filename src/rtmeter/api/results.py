"""Results on disk, as a notebook or a test asks of them."""

from __future__ import annotations

import os
from collections.abc import Iterable, Sequence
from contextlib import nullcontext
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rtmeter.api.comparisons import Comparisons, Pairs
from rtmeter.api.summaries import cell_summary
from rtmeter.api.verdicts import CellVerdict, verdicts
from rtmeter.errors import RtmeterError, did_you_mean
from rtmeter.judge.compared import ComparisonOptions
from rtmeter.model import Criticality
from rtmeter.results import query, store
from rtmeter.results.cell_table import cell_table, names_of, samples_table
from rtmeter.results.cells import StoredCell, find_cells
from rtmeter.results.loops import cell_of_loop, loop_folders

if TYPE_CHECKING:
    import pyarrow as pa

    from rtmeter.judge.explained import CellExplanation
    from rtmeter.judge.factors import FactorEffects

    PathLike = str | os.PathLike[str]


def read(path: PathLike | Sequence[PathLike] = "results") -> Results:
    """The cells of a path: a cell's folder, a run's, or any above them; or those of several.

    Raises RtmeterError if there is none, or a cell.json is damaged: with file, field and remedy. Samples are
    read when they are asked for.
    """
    paths = [Path(one) for one in ([path] if isinstance(path, str | os.PathLike) else path)]
    for one in paths:
        if loop_folders(one):
            from rtmeter.measure import own_loop

            own_loop.adopt(one)
    return Results(cell for one in paths for cell in find_cells(cell_of_loop(one)))


class Results:
    """Measured cells, in their running order. Made by read()."""

    def __init__(self, cells: Iterable[StoredCell]) -> None:
        self._cells = names_of(list(cells))

    def __len__(self) -> int:
        return len(self._cells)

    def __repr__(self) -> str:
        return f"<rtmeter results: {len(self)} cell{'' if len(self) == 1 else 's'}>"

    @property
    def names(self) -> list[str]:
        """The cells' names, as ``cells["cell"]`` has them and samples() takes them: the folder below what all
        of them share; of one cell its id."""
        return list(self._cells)

    @cached_property
    def cells(self) -> pa.Table:
        """A row a cell, quantity and view: conditions, stored verdict, and statistics in nanoseconds.

        ``cells.to_pandas()`` where pandas is installed. docs/notebook.md lists the columns.
        """
        return cell_table(self._cells)

    def samples(self, cell: str | None = None) -> pa.Table:
        """Every release of a cell, warm-up included, as spec/results.md has it: ``k``, ``status``, and stamps
        in nanoseconds of the monotonic clock (int64), null where there is none. Of data without order, such
        as an imported histogram, a row a bin or interval.

        ``cell`` is one of ``names``; it may be left out of the results of one cell. Raises RtmeterError if
        there is no such cell, or it has no samples.
        """
        return samples_table(self._find(cell))

    def summary(self) -> list[dict[str, Any]]:
        """Counts and quantiles of each cell, as ``rtmeter summary --json`` prints them; nanoseconds."""
        return [cell_summary(cell.record, cell.folder) for cell in self._cells.values()]

    def verdict(
        self,
        deadline: str | int | None = None,
        *,
        miss_ratio: str | float | None = None,
        confidence: str | float | None = None,
        criticality: Criticality | None = None,
        horizon: float | None = None,
        once_in: str | int | None = None,
        anew: bool = False,
    ) -> list[CellVerdict]:
        """Each condition judged as `rtmeter verdict` does: by the verdict that is stored where the same
        would come of the samples; ``anew``: each from its samples.

        ``deadline`` and ``once_in`` are text with a unit (``"1ms"``) or nanoseconds; ``miss_ratio`` is the
        allowed share of misses (none: any miss fails); ``confidence`` (0.95) and ``criticality`` (firm);
        ``horizon`` (10): the times the run over which the misses seen alone must meet it. Without a deadline
        each cell is judged by its own requirement, but for what is given. Repeats of a cell have one verdict.
        Raises RtmeterError for what is none, or if no cell has a requirement.
        """
        given = {
            "miss_ratio": miss_ratio,
            "confidence": confidence,
            "criticality": criticality,
            "horizon": horizon,
        }
        asked = {name: _fact(name, value) for name, value in given.items() if value is not None}
        asked |= {} if deadline is None else {"deadline_ns": _ns("deadline", deadline)}
        hours = None if once_in is None else _ns("once_in", once_in, "duration") / 3.6e12
        cells = list(self._cells.values())
        judged = verdicts(cells, asked, horizon_hours=hours, anew=anew)
        return list(judged)

    def compare(
        self,
        other: Results | PathLike,
        *,
        gates: Sequence[str] = (),
        deadline: str | int | None = None,
        confidence: str | float = 0.95,
        force: bool = False,
    ) -> Comparisons:
        """What shifted from these cells to those of ``other``, as `rtmeter compare` does.

        ``gates`` such as ``"p99.9<+5%"``; ``deadline`` of the miss ratio (default: the cells'); ``force``:
        also where conditions differ that make it meaningless. Raises RtmeterError for what is none, or if no
        cells belong together.
        """
        from rtmeter.statistics.gate import parse_gate

        options = ComparisonOptions(
            gates=tuple(parse_gate(text) for text in gates),
            deadline_ns=None if deadline is None else _ns("deadline", deadline),
            confidence=_fact("confidence", confidence),
            force=force,
        )
        theirs = other if isinstance(other, Results) else read(other)
        pairs = Pairs.of(list(self._cells.values()), list(theirs._cells.values()), options)
        compared = list(pairs.compared(lambda: nullcontext(store.chunks)))
        return Comparisons(compared, pairs.only_in_a, pairs.only_in_b)

    def effects(
        self,
        factor: str,
        *,
        reference: str | None = None,
        deadline: str | int | None = None,
        confidence: str | float = 0.95,
        force: bool = False,
    ) -> FactorEffects:
        """The effect of each level of a factor of these cells' campaign on the miss ratio and on p50, p99,
        p99.9, matched over all other factors, as ``rtmeter compare --factor`` has it.

        ``reference``: the level that the others are compared with (default: the one measured first); the
        rest as in compare(). Raises RtmeterError if the cells have no such factor, or none are alike in all
        others.
        """
        from rtmeter.judge.factors import FactorOptions, factor_effects

        within = None if deadline is None else _ns("deadline", deadline)
        asked = FactorOptions(factor, reference, within, _fact("confidence", confidence), force)
        return factor_effects(list(self._cells.values()), asked)

    def explain(
        self, cell: str | None = None, *, release: int | None = None, deadline: str | int | None = None
    ) -> CellExplanation:
        """Why the late releases of a cell were late, as ``rtmeter explain`` has it: each split into segments
        that sum to its lateness (nanoseconds), with its cause, and the causes by the lateness they carry.

        ``cell`` as in samples(); ``release``: one, by its ``k``, that is split too, if it was in time;
        ``deadline``: what is later is late, as text with a unit or nanoseconds (default: the cell's).
        Raises RtmeterError if the cell was not measured with ``--explain``, or has no such release.
        """
        from rtmeter.explain.causes import chosen
        from rtmeter.judge.explained import explained

        beyond = None if deadline is None else _ns("deadline", deadline)
        explanation = explained(self._find(cell), release, deadline_ns=beyond)
        if release is not None:
            try:
                chosen(explanation.found, release, 1)
            except RtmeterError as error:
                error.field = "release"
                raise
        return explanation

    def sql(self, text: str) -> pa.Table:
        """What a SELECT finds in the tables ``cells`` (as ``cells``) and ``samples`` (as samples(), with the
        column ``cell``), by DuckDB; nothing else is read or written.

        Raises RtmeterError for SQL that is wrong.
        """
        with query.answering(self._cells, text) as answer:
            return answer.read_all()

    def _find(self, name: str | None) -> StoredCell:
        if name is None:
            if len(self._cells) != 1:
                message = f"is missing: these are {len(self._cells)} cells"
                raise RtmeterError(message, field="cell", remedy="give one of names")
            return next(iter(self._cells.values()))
        if name not in self._cells:
            remedy = did_you_mean(name, self._cells) or "give one of names"
            raise RtmeterError("is not among these cells", field="cell", value=name, remedy=remedy)
        return self._cells[name]


def _ns(field: str, given: str | int, name: str = "deadline") -> int:
    """Text with a unit, or nanoseconds."""
    try:
        return int(_fact(name, given if isinstance(given, str) else f"{given}ns"))
    except RtmeterError as error:
        error.field = field
        raise


def _fact(name: str, given: object) -> Any:
    from rtmeter.campaign import matrix

    return matrix.parse_fact(name, str(given))
