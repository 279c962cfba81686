"""A static site over all results: latest verdicts, each cell's history, two cells side by side."""

from __future__ import annotations

import hashlib
import json
import math
from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from functools import partial
from pathlib import Path

from rtmeter import report, version
from rtmeter.errors import RtmeterError
from rtmeter.host.files import replace_file
from rtmeter.host.lock import Say
from rtmeter.plots.floors import Floor
from rtmeter.report.site import pages
from rtmeter.report.site.history import History, HistoryEntry, histories
from rtmeter.results import store

MADE = ".rtmeter-site.json"
"""The files that were made, and a hash of what they were made of: what is the same is not made again, and
those of cells that are gone are removed."""

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
    known, now = _known(out), dict[str, str]()

    def put(name: str, about: object, render: Callable[[], str]) -> None:
        now[name] = hashlib.sha256(repr((version(), about)).encode()).hexdigest()
        if known.get(name) != now[name] or not (out / name).is_file():
            replace_file(out / name, render().encode())

    for number, history in enumerate(found, 1):
        say(f"cell {number} of {len(found)}: {history.cell}")
        put(f"cells/{history.page}", _about(history, made), partial(pages.cell, history, made))
    about = [now[f"cells/{history.page}"] for history in found]
    put("side-by-side.html", about, lambda: pages.side_by_side(found))
    first = "index.html"
    put(first, about, lambda: pages.index(found, made))
    if damage is not None:
        damage += [one.cell.damage for history in found for one in history.entries if one.cell.damage]
    now |= dict.fromkeys((f"reports/{name}" for name in made.values()), "")
    _forget(out, known, now)
    return out / first


def _about(history: History, made: Mapping[Path, str]) -> object:
    """What its page, and its row of the first one, are made of: another page if it is another."""
    entries = []
    for entry in history.entries:
        stamp = [_stamp(one.folder) for one in entry.cell.repeats or (entry.cell,)]
        said = entry.cell.id, entry.cell.state, entry.cell.problem
        entries.append((str(entry.run), entry.started, *said, *stamp, made.get(entry.reported)))
    return history.machine, history.campaign, history.cell, history.page, entries


def _stamp(folder: Path) -> tuple[int, int]:
    try:
        about = (folder / store.CELL).stat()
    except OSError:
        return 0, 0
    return about.st_mtime_ns, about.st_size


def _known(out: Path) -> dict[str, str]:
    """The pages that were made at an earlier time, and what of."""
    try:
        known = json.loads((out / MADE).read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return {}
    if isinstance(known, dict):
        return {str(name): str(about) for name, about in known.items()}
    return dict.fromkeys(map(str, known), "") if isinstance(known, list) else {}


def _forget(out: Path, known: Iterable[str], now: Mapping[str, str]) -> None:
    """Removes the pages of an earlier time that are none of these."""
    for name in set(known) - set(now):
        page = out / name
        if page.parent.parent == out and page.suffix == ".html":
            with suppress(OSError):
                page.unlink(missing_ok=True)
    content = json.dumps(now, indent=0, sort_keys=True).encode()
    if known != now:
        replace_file(out / MADE, content)


def _reports(found: list[History], out: Path, floor_of: FloorOf, say: Say) -> dict[Path, str]:
    """The file's name of each latest run's report, by what it is of."""
    latest: dict[tuple[str, str], HistoryEntry] = {}
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
