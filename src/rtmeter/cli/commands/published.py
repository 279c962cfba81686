"""rtmeter published: published values beside measured ones."""

from __future__ import annotations

import os
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from rtmeter.cli import exit_codes
from rtmeter.cli.columns import print_table

if TYPE_CHECKING:
    from rich.console import Console

    from rtmeter.judge.published import Beside, SourceTable, Value

EXAMPLE = "rtmeter published results/robot/ros1-timer-2014"
DETAILS = (
    "PATH is a cell or a folder of cells of campaigns that name a published table, such as those that "
    "rtmeter ships; several runs, also of several kernels, make one. Without PATH: the tables that there "
    "are, and their sources."
)


def command(
    paths: Annotated[
        list[Path] | None,
        typer.Argument(metavar="PATH...", help="A cell, or a folder of cells.", show_default=False),
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print one JSON object.")] = False,
) -> int:
    """Shows the tables of the source, and which of its conditions did not hold; judges nothing."""
    from rtmeter.campaign.published import tables
    from rtmeter.cli.output import console, print_json
    from rtmeter.errors import RtmeterError
    from rtmeter.judge import published
    from rtmeter.results import store

    if not paths:
        shipped = [tables.table(name) for name in tables.names()]
        if as_json:
            print_json({"tables": [asdict(one) for one in shipped]})
        for one in () if as_json else shipped:
            print(f"{one.name}: {one.about}\n  {one.source}")
        return exit_codes.PASS
    folders = dict.fromkeys(folder.resolve() for path in paths for folder in store.cell_folders(path))
    cells = {folder: store.read_cell(folder) for folder in folders}
    ids = {folder: cell.id for folder, cell in cells.items()}
    names = store.distinct(ids, Path(os.path.commonpath(cells)))
    found = published.beside((names[folder], cell) for folder, cell in cells.items())
    if not found:
        remedy = "give cells of a campaign with the key published (spec/campaign.md)"
        raise RtmeterError(
            "has no published values", field="path", value=", ".join(map(str, paths)), remedy=remedy
        )
    if as_json:
        print_json({"published": [_as_json(one) for one in found]})
    else:
        for beside in found:
            _show(beside, console())
    return exit_codes.PASS


def _as_json(one: Beside) -> dict[str, Any]:
    """Without the table's rows, which `rtmeter published --json` has."""
    return asdict(one) | {"table": one.table.name, "source": one.table.source}


def _show(one: Beside, out: Console) -> None:
    from rich import box
    from rich.table import Table

    out.print(f"{one.table.about}\nSource: {one.table.source}\n", markup=False)
    for part in one.parts:
        _show_part(part, out)
    if one.unmet:
        table = Table(box=box.SIMPLE_HEAD, pad_edge=False, title="did not hold here", title_justify="left")
        for header in ("condition", "at the source", "here", "cells"):
            table.add_column(header, overflow="fold")
        for condition in one.unmet:
            here = condition.here if condition.known else f"{condition.here} (so it cannot be told)"
            count = len(condition.cells)
            cells = condition.cells[0] if count == 1 else f"{condition.cells[0]} and {count - 1} more"
            table.add_row(condition.condition, condition.was, here, cells)
        print_table(out, table)
    for name, was in one.held:
        out.print(f"held: {name} ({was})", markup=False)
    for note in one.notes:
        out.print(f"- {note}", markup=False)
    if one.without:
        out.print(f"without published values: {', '.join(one.without)}", markup=False)


def _show_part(part: SourceTable, out: Console) -> None:
    from rich import box
    from rich.table import Table

    from rtmeter.judge.published import label

    title = ", ".join(f"{label(column)} {value}" for column, value in part.labels.items() if value)
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False, title=title, title_justify="left")
    for header in ("setting", "of", "quantity", "view"):
        table.add_column(header, overflow="fold")
    table.add_column("n", justify="right", no_wrap=True)
    for column in part.columns:
        found = [line.values.get(column) for entry in part.entries for line in entry.lines]
        words = any(isinstance(value, str) and " " in value for value in found)
        table.add_column(
            label(column), justify="left" if words else "right", no_wrap=not words, overflow="fold"
        )
    table.add_column("did not hold", overflow="fold")
    for entry in part.entries:
        setting = ", ".join(f"{label(column)} {value}" for column, value in entry.labels.items())
        named = ""
        for line in entry.lines:
            who = line.cell or f"published {line.who}".strip()
            who, named = ("" if who == named else who), who
            said = [line.quantity or "", line.view or "", "" if line.n is None else f"{line.n:,}"]
            if line.state:
                said[0] = f"{line.state} {said[0]}".strip()
            values = [_shown(line.values.get(column), column) for column in part.columns]
            table.add_row(setting, who, *said, *values, ", ".join(line.unmet))
            setting = ""
    print_table(out, table)
    for column, why in part.not_comparable.items():
        out.print(f"{label(column)} is not comparable: {why}", markup=False)
    for note in part.notes:
        out.print(note, markup=False)


def _shown(value: Value, column: str) -> str:
    from rtmeter.cli.output import microseconds
    from rtmeter.judge.published import MeasuredTime, has_unit

    if isinstance(value, MeasuredTime):
        us = microseconds(value.ns)
        return us if has_unit(column) else f"{value.statistic} {us} us"
    return "" if value is None else f"{value:,}" if isinstance(value, int) else value
