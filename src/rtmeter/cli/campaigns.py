"""A campaign measured from the command line, whether a file says it or options do."""

from __future__ import annotations

import shlex
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from rtmeter.cli import exit_codes
from rtmeter.values import visible

if TYPE_CHECKING:
    from rtmeter.measure.run import Run
    from rtmeter.model import Campaign
    from rtmeter.results.cells import StoredCell
    from rtmeter.results.record import CellRecord


def _to_ask_next(planned: Campaign, folder: Path, cells: Sequence[StoredCell]) -> Iterator[str]:
    """The commands that answer from the cells that were measured: why, what a factor does, all on a page."""
    from rtmeter.campaign.plan_factors import plan_factors
    from rtmeter.judge.factors import can_be_told
    from rtmeter.judge.why_cells import to_explain

    path = shlex.quote(str(folder))
    if any(cell.requirement for cell in planned.cells):
        yield f"rtmeter verdict {path}"
    if (late := to_explain(cells)) is not None:
        yield f"rtmeter explain {path if len(cells) > 1 else shlex.quote(str(late.folder))}"
    told = sorted(plan_factors(planned.cells), key=lambda one: (not one.enough, one.factor == "block"))
    factor = next((one.factor for one in told if can_be_told(cells, one.factor)), None)
    if factor is not None:
        yield f"rtmeter compare {path} --factor {shlex.quote(factor)}"
    yield f"rtmeter report {path}"


def tell_of(run: Run) -> None:
    """Says on standard error which run goes on, and which of its cells cannot be read."""
    print(visible(f"rtmeter: goes on with {run.folder}"), file=sys.stderr)
    for error in run.damaged():
        print(visible(f"rtmeter: {error}"), file=sys.stderr)


def measure_campaign(
    planned: Campaign,
    out: Path,
    scale: float = 1.0,
    *,
    resume: bool = False,
    metrics: Path | None = None,
    wait: bool = False,
    as_json: bool = False,
) -> int:
    """Measures and shows its cells; the exit code is the worst condition's."""
    from rtmeter.api.summaries import cell_summary
    from rtmeter.cli.alone import alone
    from rtmeter.cli.announce import announce
    from rtmeter.cli.cell_tables import show_cells
    from rtmeter.cli.condition_rows import ConditionRows
    from rtmeter.cli.interrupt import stopping
    from rtmeter.cli.on_rigs import measured_on_rigs
    from rtmeter.cli.output import print_json
    from rtmeter.cli.progress import progress_for
    from rtmeter.errors import RtmeterError
    from rtmeter.live import metrics as openmetrics
    from rtmeter.live.run import RunState
    from rtmeter.measure.run import Run
    from rtmeter.results import table
    from rtmeter.results.cells import StoredCell
    from rtmeter.results.record.alike import Alike

    if metrics is not None:  # what cannot be written is said before hours are spent
        openmetrics.write(
            metrics, RunState(planned.name, {}, None, None, tuple(c.id for c in planned.cells), 0)
        )
    announce(planned)

    def begun() -> Run:
        if not resume:
            return Run.start(out, planned, scale)
        run = Run.resume(out, planned, scale)
        tell_of(run)
        return run

    if planned.rigs:
        run, names = measured_on_rigs(planned, begun)
    else:
        with (
            alone(planned.cells, wait=wait),
            stopping(planned.cells) as stop,
            progress_for(planned.cells, metrics) as progress,
        ):
            run = begun()
            progress.follow(planned.name, lambda cell: run.folder / cell.id)
            names = run.measure(stop, progress)
    if not names:
        print("rtmeter: interrupted before anything was measured", file=sys.stderr)
        return exit_codes.ERROR
    rows, alike, cells = ConditionRows(), Alike(), list[StoredCell]()

    def stored() -> Iterator[tuple[CellRecord, str]]:
        for folder, record in table.records([run.folder / name for name in names]):
            if isinstance(record, RtmeterError):
                raise record
            rows.add(record, folder.name)
            cells.append(StoredCell(folder, alike.of(record)))
            yield record, folder.name

    if as_json:
        summaries = [cell_summary(record, run.folder / name) for record, name in stored()]
        print_json({"run": str(run.folder), "cells": summaries})
    else:
        show_cells(stored())
        print(f"stored in {run.folder}", *_to_ask_next(planned, run.folder, cells), sep="\n  ")
    codes = [exit_codes.of_row(row) for row in rows]
    unfinished = len(planned.cells) - len(names)
    if unfinished or any(cell.record.status == "interrupted" for cell in cells):
        said = "interrupted: what was measured is kept, and judged as far as it goes"
        left = f"; {unfinished:,} of {len(planned.cells):,} cells were not begun" if unfinished else ""
        print(f"rtmeter: {said}{left}; --resume goes on", file=sys.stderr)
    return exit_codes.worst([*codes, exit_codes.ERROR] if unfinished else codes)
