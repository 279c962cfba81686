"""A campaign measured on many rigs from the command line."""

from __future__ import annotations

import sys
from collections.abc import Callable
from contextlib import suppress

from rtmeter.cli.interrupt import asking
from rtmeter.cli.rigs_progress import rigs_progress
from rtmeter.errors import RtmeterError
from rtmeter.measure.rigs import Stops, measure_on_rigs, one_machine_twice
from rtmeter.measure.run import Run
from rtmeter.model import Campaign
from rtmeter.results import store
from rtmeter.results.record import CellRecord
from rtmeter.values import visible


def measured_on_rigs(planned: Campaign, begun: Callable[[], Run]) -> tuple[Run, list[str]]:
    """The run, and the ids of its cells that are there then. Raises RtmeterError."""
    used = {cell.rig.name for cell in planned.cells if cell.rig}
    rigs = tuple(rig for rig in planned.rigs if rig.name in used)  # --only may leave one without a cell
    stops = Stops(rigs)
    with asking(stops, planned.cells), rigs_progress(planned.cells) as progress:
        run = begun()
        names = measure_on_rigs(run, rigs, stops, progress.watcher)
    for sentence in one_machine_twice(_a_cell_of_each(run, names)):
        print(visible(f"rtmeter: warning: {sentence}"), file=sys.stderr)
    return run, names


def _a_cell_of_each(run: Run, names: list[str]) -> dict[str, CellRecord]:
    """Of each rig the first cell that tells its machine."""
    found: dict[str, CellRecord] = {}
    rig_of = {cell.id: cell.rig.name for cell in run.cells if cell.rig}
    for name in names:
        if rig_of[name] not in found:
            with suppress(RtmeterError):  # told by whoever shows the cell
                record = store.read_cell(run.folder / name)
                if record.machine:
                    found[rig_of[name]] = record
    return found
