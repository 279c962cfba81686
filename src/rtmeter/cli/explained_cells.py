"""What several cells with traces waited for: a row for each, then all of the one with most lateness."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from rtmeter.cli import exit_codes
from rtmeter.cli.columns import print_table
from rtmeter.cli.explanations import show_explanation
from rtmeter.cli.output import console, microseconds, print_json
from rtmeter.errors import RtmeterError
from rtmeter.explain.causes import chosen
from rtmeter.explain.words import words_of_cause
from rtmeter.judge.explained import REMEDY, explained
from rtmeter.judge.next_step import to_explain_one
from rtmeter.judge.why import stampless
from rtmeter.judge.why_cells import CellCauses, causes_of, is_traced

if TYPE_CHECKING:
    from rtmeter.results.cells import StoredCell

_CAUSES = 2
"""Of each cell, in its row."""

_NAMES = 3
"""Cells without a trace that are named."""


def explain_cells(
    path: Path,
    cells: Sequence[StoredCell],
    release: int | None,
    top: int,
    deadline_ns: int | None,
    *,
    as_json: bool,
) -> int:
    """Explains several cells; ``deadline_ns``: as explained() has it. Raises RtmeterError if none has a
    trace, or one release is asked for."""
    traced = [cell for cell in cells if is_traced(cell)]
    without = [_name(cell, path) for cell in cells if not is_traced(cell)]
    if not traced:
        message = f"holds {len(cells)} cells, none of which has a record of the kernel's events"
        raise RtmeterError(message, field="PATH", value=str(path), remedy=REMEDY)
    if release is not None and len(traced) > 1:
        message = f"is of one cell, and {path} has {len(traced)} with a trace"
        worst = causes_of(traced, deadline_ns)[0].cell
        remedy = f"name one: {to_explain_one(worst.folder, deadline_ns)} --release {release}"
        raise RtmeterError(message, field="--release", value=release, remedy=remedy)
    if as_json:
        documents = _documents(traced, release, deadline_ns)
        print_json({"cells": documents, "without_trace": without})
        return exit_codes.ERROR if any("error" in one for one in documents) else exit_codes.PASS
    found = causes_of(traced, deadline_ns)
    worst = found[0].cell
    _show_rows(found, path, deadline_ns)
    if without:
        more = f" and {len(without) - _NAMES:,} more" if len(without) > _NAMES else ""
        said = f"without a record of the kernel's events: {', '.join(without[:_NAMES])}{more}; {REMEDY}"
        console().print(said, markup=False, soft_wrap=True)
    if found[0].error is None and (found[0].late or release is not None):
        console().print(f"\n{to_explain_one(worst.folder, deadline_ns)}", markup=False, soft_wrap=True)
        whole = explained(worst, release, deadline_ns=deadline_ns)
        show_explanation(whole.found, chosen(whole.found, release, top), whole)
    return exit_codes.ERROR if any(one.error for one in found) else exit_codes.PASS


def _name(cell: StoredCell, path: Path) -> str:
    return str(cell.folder.relative_to(path) if cell.folder.is_relative_to(path) else cell.folder.name)


def _show_rows(found: Sequence[CellCauses], path: Path, deadline_ns: int | None) -> None:
    from rich.table import Table

    out, table = console(), Table("cell", "late releases", "their lateness\nus", "first causes")
    for one in found:
        shares = [
            f"{words_of_cause(row)} ({100 * row.lateness_ns / one.lateness_ns:.0f} %)"
            for row in one.causes[:_CAUSES]
            if one.lateness_ns
        ]
        said = "\n".join(shares) or "-"
        late = (f"{one.late:,}", microseconds(one.lateness_ns)) if one.error is None else ("?", "?")
        table.add_row(_name(one.cell, path), *late, said if one.error is None else "cannot be explained")
    print_table(out, table)
    whole = [one for one in found if one.error is None and deadline_ns is None]
    if rest := sum(stampless(one.cell.record, one.late) for one in whole):
        said = f"{rest:,} more missed by the verdicts, skipped or lost: without a stamp nothing tells why"
        out.print(said, soft_wrap=True)
    for one in found:
        if one.error is not None:
            out.print(f"{_name(one.cell, path)}: {one.error}", markup=False, soft_wrap=True)


def _documents(
    cells: Sequence[StoredCell], release: int | None, deadline_ns: int | None
) -> list[dict[str, object]]:
    """What explains each cell, the one with most lateness first."""
    found: list[tuple[int, dict[str, object]]] = []
    for cell in cells:
        named: dict[str, object] = {"cell": str(cell.folder)}
        try:
            whole = explained(cell, release, deadline_ns=deadline_ns)
        except RtmeterError as error:
            found.append((0, named | {"error": str(error)}))
            continue
        late = sum(one.release.lateness_ns for one in whole.found.releases if one.release.late)
        found.append((late, named | whole.to_json()))
    return [document for _, document in sorted(found, key=lambda one: -one[0])]
