"""What a campaign's run would do here: its cells in order, how long they take, and what they lack."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import accumulate
from typing import Any, Self

from rtmeter.campaign.plan import Assumed, plan_cells
from rtmeter.cli import exit_codes
from rtmeter.cli.columns import print_table
from rtmeter.cli.output import console
from rtmeter.errors import RtmeterError
from rtmeter.measure.can_run import lacking
from rtmeter.measure.probe.probes import NotBuiltError
from rtmeter.model import LOCAL, Campaign, Cell
from rtmeter.results.condition_words import which_cells
from rtmeter.statistics.words import about, in_one_unit
from rtmeter.values import without_repeat


@dataclass(frozen=True, slots=True)
class Preview:
    """``cells``: those that would be measured; ``lacks``: what keeps each from it here; ``too_short``: those
    that could not pass, all of their repeats together, whatever they measure, if releases miss
    independently."""

    campaign: str
    cells: Sequence[Cell]
    lacks: Sequence[list[RtmeterError]]
    too_short: Sequence[str]

    @classmethod
    def of(cls, planned: Campaign, cells: Sequence[Cell]) -> Self:
        """Of the cells of a campaign that are left. Looks at the machine as it is now; changes nothing."""
        left = {without_repeat(cell.id, cell.axes) for cell in cells}
        plans = plan_cells(planned.cells, lambda _: Assumed())
        never = [one.id for one in plans if one.outcome == "never" and one.id in left]
        return cls(planned.name, cells, [lacking(cell) for cell in cells], never)

    @property
    def planned_ns(self) -> int:
        """How long all releases take, warm-up included."""
        return sum(cell.planned_ns for cell in self.cells)

    @property
    def exit_code(self) -> int:
        """An error if cells would fail, inconclusive if some would be skipped."""
        found = [error for errors in self.lacks for error in errors]
        if not found:
            return exit_codes.PASS
        skipped = all(isinstance(error, NotBuiltError) for error in found)
        return exit_codes.INCONCLUSIVE if skipped else exit_codes.ERROR

    def to_json(self) -> dict[str, Any]:
        """As ``--json`` prints it."""
        rows = [
            {"id": cell.id, "planned_ns": cell.planned_ns, "lacks": [error.to_json() for error in errors]}
            for cell, errors in zip(self.cells, self.lacks, strict=True)
        ]
        return {
            "campaign": self.campaign,
            "planned_ns": self.planned_ns,
            "cells": rows,
            "too_short": list(self.too_short),
        }


def show_preview(preview: Preview) -> None:
    """The cells in running order, their time, then each thing that is missing once."""
    from rich import box
    from rich.table import Table

    out = console()
    takes_ns = [cell.planned_ns for cell in preview.cells]
    begins_ns = [0, *accumulate(takes_ns)][: len(takes_ns)]
    (begin_unit, begins), (unit, takes) = in_one_unit(begins_ns), in_one_unit(takes_ns)
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False)
    table.add_column("", justify="right", no_wrap=True)
    table.add_column("cell", overflow="fold")
    for header in ("releases", f"begins after\n{begin_unit}", f"takes\n{unit}"):
        table.add_column(header, justify="right", no_wrap=True)
    table.add_column("here", no_wrap=True)
    planned = zip(preview.cells, preview.lacks, begins, takes, strict=True)
    for place, (cell, errors, after, long) in enumerate(planned, 1):
        fails = any(not isinstance(error, NotBuiltError) for error in errors)
        here = "would fail" if fails else "would be skipped" if errors else "can run"
        table.add_row(f"{place:,}", cell.id, f"{cell.config['samples']:,}", after, long, here)
    print_table(out, table)
    count = len(preview.cells)
    cells = f"{count:,} cell{'' if count == 1 else 's'}"
    out.print(f"{preview.campaign}: {cells}, {about(preview.planned_ns)} of releases in all; besides, each")
    out.print("cell starts and ends its middleware. Nothing was measured or changed.")
    missing: dict[str, list[str]] = {}
    for cell, errors in zip(preview.cells, preview.lacks, strict=True):
        for error in errors:
            missing.setdefault(str(error), []).append(cell.id)
    for said, names in missing.items():
        out.print(f"missing for {which_cells(names, count)}: {said}", markup=False, soft_wrap=True)
    if preview.too_short:
        conditions = {without_repeat(cell.id, cell.axes) for cell in preview.cells}
        which = which_cells(list(preview.too_short), len(conditions))
        out.print(f"too short to pass: {which}: see `rtmeter plan`", markup=False, soft_wrap=True)
    hosts = dict.fromkeys(host for cell in preview.cells for host in cell.hosts.values() if host != LOCAL)
    if hosts:
        out.print(f"not looked at: {', '.join(hosts)}", markup=False, soft_wrap=True)
