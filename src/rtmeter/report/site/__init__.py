"""A static site over all results: latest verdicts, each cell's history, two cells side by side."""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Iterable
from contextlib import suppress
from pathlib import Path

from rtmeter import report
from rtmeter.errors import RtmeterError
from rtmeter.host.files import replace_file
from rtmeter.plots.floors import Floor
from rtmeter.report.site import pages
from rtmeter.report.site.history import Entry, History, histories

MADE = ".rtmeter-site.json"
"""The list of the files that were made, so that those of cells that are gone can be removed."""

Say = Callable[[str], None]
FloorOf = Callable[[Path], Floor]


def write(
    results: Path,
    out: Path,
    floor_of: FloorOf | None,
    say: Say = lambda _: None,
    damage: list[RtmeterError] | None = None,
) -> Path:
    """Writes the site of all cells under ``results`` into the folder ``out``; returns its first page.

    The report of every campaign's latest run is made too, where it is not newer than its cells;
    ``floor_of``: what lies under its middlewares (None: no reports); ``damage`` as in report.write().
    Raises RtmeterError if there is no cell, or a page cannot be written.
    """
    found = histories(results)
    try:
        for folder in (out, out / "cells", out / "reports"):
            folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        message = f"cannot be made: {error.strerror}"
        raise RtmeterError(message, field="-o", value=str(out), remedy="choose another folder") from None
    made = _reports(found, out / "reports", floor_of, say) if floor_of else {}
    for number, history in enumerate(found, 1):
        say(f"cell {number} of {len(found)}: {history.cell}")
        replace_file(out / "cells" / history.page, pages.cell(history, made).encode())
    replace_file(out / "side-by-side.html", pages.side_by_side(found).encode())
    first = out / "index.html"
    replace_file(first, pages.index(found, made).encode())
    if damage is not None:
        damage += [one.cell.damage for history in found for one in history.entries if one.cell.damage]
    kept = [f"cells/{history.page}" for history in found] + [f"reports/{name}" for name in made.values()]
    _forget(out, kept)
    return first


def _forget(out: Path, kept: Iterable[str]) -> None:
    """Removes the pages of an earlier time that are none of these."""
    kept = sorted(kept)
    with suppress(OSError, ValueError, TypeError):
        for name in set(json.loads((out / MADE).read_text(encoding="utf-8"))) - set(kept):
            page = out / name
            if page.parent.parent == out and page.suffix == ".html":
                page.unlink(missing_ok=True)
    replace_file(out / MADE, json.dumps(kept).encode())


def _reports(found: list[History], out: Path, floor_of: FloorOf, say: Say) -> dict[Path, str]:
    """The file's name of each latest run's report, by what it is of."""
    latest: dict[tuple[str, str], Entry] = {}
    for history in sorted(found, key=lambda h: h.latest.started):
        latest[history.machine, history.campaign] = history.latest
    names: dict[Path, str] = {}
    for (machine, campaign), entry in latest.items():
        of = entry.reported
        names[of] = pages.file_name(machine, campaign, of.name)
        file = out / names[of]
        newest = max((path.stat().st_mtime for path in of.rglob("cell.json")), default=math.inf)
        if not file.exists() or file.stat().st_mtime < newest:
            say(f"report of {campaign}, {of.name}")
            report.write(of, file, floor_of(of))
    return names
