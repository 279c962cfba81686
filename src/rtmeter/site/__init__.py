"""A static site over all results: latest verdicts, each cell's history, two cells side by side."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from rtmeter import report
from rtmeter.errors import RtmeterError
from rtmeter.report.files import replace_file
from rtmeter.site import pages
from rtmeter.site.history import History, histories

Say = Callable[[str], None]


def write(results: Path, out: Path, *, reports: bool = True, say: Say = lambda _: None) -> Path:
    """Writes the site of all cells under ``results`` into the folder ``out``; returns its first page.

    With ``reports`` the report of every campaign's latest run is made too, where it is not newer than its
    cells. Raises RtmeterError if there is no cell, or a page cannot be written.
    """
    found = histories(results)
    try:
        for folder in (out, out / "cells", out / "reports"):
            folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        message = f"cannot be made: {error.strerror}"
        raise RtmeterError(message, field="-o", value=str(out), remedy="choose another folder") from None
    made = _reports(found, out / "reports", say) if reports else {}
    for number, history in enumerate(found, 1):
        say(f"cell {number} of {len(found)}: {history.cell}")
        replace_file(out / "cells" / history.page, pages.cell(history, made).encode())
    replace_file(out / "side-by-side.html", pages.side_by_side(found).encode())
    first = out / "index.html"
    replace_file(first, pages.index(found, made).encode())
    return first


def _reports(found: list[History], out: Path, say: Say) -> dict[Path, str]:
    """The file's name of each latest run's report."""
    latest = {(h.machine, h.campaign): h.latest.run for h in sorted(found, key=lambda h: h.latest.started)}
    names: dict[Path, str] = {}
    for (machine, campaign), run in latest.items():
        names[run] = pages.file_name(machine, campaign, run.name)
        file = out / names[run]
        newest = max(path.stat().st_mtime for path in run.rglob("cell.json"))
        if not file.exists() or file.stat().st_mtime < newest:
            say(f"report of {campaign}, {run.name}")
            report.write(run, file)
    return names
