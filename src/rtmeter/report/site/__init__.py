"""All results → a static site: latest verdicts, each cell's history, two cells side by side."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from pathlib import Path

from rtmeter import report
from rtmeter.errors import RtmeterError
from rtmeter.host.files import replace_file
from rtmeter.host.lock import Say
from rtmeter.plots.floors import Floor
from rtmeter.report.site import pages
from rtmeter.report.site.history import History, HistoryEntry, histories
from rtmeter.results import store
from rtmeter.values import from_json, version

MADE = ".rtmeter-site.json"
"""The files that were made, and a hash of what they were made of: what is the same is not made again, and
those of cells that are gone are removed."""

FIRST = "index.html"

FloorOf = Callable[[Path], Floor]


def write(
    results: Path,
    out: Path,
    floor_of: FloorOf | None,
    say: Say = lambda _: None,
    damage: list[RtmeterError] | None = None,
) -> Path:
    """Writes the site of all cells under ``results`` into the folder ``out``; returns its first page.

    The report of every campaign's latest run is made too; ``floor_of``: what lies under its middlewares
    (None: no reports); ``say`` is told of each page as it is made; ``damage`` as in report.write(). A page
    that would be the same as at the last time is not made again. Raises RtmeterError if there is no cell, or
    a page cannot be written.
    """
    found = histories(results)
    try:
        for folder in (out, out / "cells", out / "reports"):
            folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        message = f"cannot be made: {error.strerror}"
        raise RtmeterError(message, field="-o", value=str(out), remedy="choose another folder") from None
    known, now = _known(out), dict[str, str]()

    def is_new(name: str, about: object, words: str) -> bool:
        now[name] = hashlib.sha256(repr((version(), about)).encode()).hexdigest()
        if known.get(name) == now[name] and (out / name).is_file():
            return False
        say(words)
        return True

    wrong = [one.cell.damage for history in found for one in history.entries if one.cell.damage]
    told = {error.where for error in wrong}
    reports = _reports(found) if floor_of else {}
    made = {of: name for of, (name, _) in reports.items()}
    for of, (name, campaign) in reports.items():
        if floor_of and is_new(f"reports/{name}", _about_report(of), f"report of {campaign}, {of.name}"):
            report.write(of, out / "reports" / name, floor_of(of), in_it := list[RtmeterError]())
            if more := [error for error in in_it if error.where not in told]:
                now[f"reports/{name}"] = ""  # made again the next time, and told again
                wrong += more
    for number, history in enumerate(found, 1):
        page = f"cells/{history.page}"
        if is_new(page, _about(history, made), f"cell {number} of {len(found)}: {history.cell}"):
            replace_file(out / page, pages.cell(history, made).encode())
    about = [now[f"cells/{history.page}"] for history in found]
    beside = "side-by-side.html"
    if is_new(beside, about, "cells side by side"):
        replace_file(out / beside, pages.side_by_side(found).encode())
    if is_new(FIRST, about, "first page"):
        replace_file(out / FIRST, pages.index(found, made).encode())
    if damage is not None:
        damage += wrong
    _forget(out, known, now)
    return out / FIRST


def forget(out: Path, name: str) -> None:
    """Has a page of the site in the folder made anew the next time, if there is a site."""
    known = _known(out)
    if known.pop(name, None) is not None:
        _remember(out, known)


def _about(history: History, made: Mapping[Path, str]) -> object:
    """What its page, and its row of the first one, are made of: another page if it is another."""
    entries = []
    for entry in history.entries:
        stamp = [_stamp(one.folder / store.CELL) for one in entry.cell.repeats or (entry.cell,)]
        said = entry.cell.id, entry.cell.state, entry.cell.problem
        entries.append((str(entry.run), entry.started, *said, *stamp, made.get(entry.reported)))
    return history.machine, history.campaign, history.cell, history.page, entries


def _stamp(file: Path) -> tuple[int, int]:
    try:
        about = file.stat()
    except OSError:
        return 0, 0
    return about.st_mtime_ns, about.st_size


def _known(out: Path) -> dict[str, str]:
    """The pages that were made at an earlier time, and what of."""
    try:
        known = from_json((out / MADE).read_text(encoding="utf-8"))
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
    if known != now:
        _remember(out, now)


def _remember(out: Path, now: Mapping[str, str]) -> None:
    replace_file(out / MADE, json.dumps(now, indent=0, sort_keys=True).encode())


def _reports(found: list[History]) -> dict[Path, tuple[str, str]]:
    """What the report of each campaign's latest run is of: the name of its file, and the campaign."""
    latest: dict[tuple[str, str], HistoryEntry] = {}
    for history in sorted(found, key=lambda h: h.latest.started):
        latest[history.machine, history.campaign] = history.latest
    return {
        entry.reported: (pages.file_name(machine, campaign, entry.reported.name), campaign)
        for (machine, campaign), entry in latest.items()
    }


def _about_report(of: Path) -> object:
    """What a report is made of: the files of its run and cells, and those that are being measured."""
    names = {store.CELL, store.RUN, *store.DATA}
    parts = (path for path in of.rglob("*") if path.name in names)
    return (
        sorted((str(path), *_stamp(path)) for path in parts),
        sorted(str(path) for path in of.rglob(f"*{store.PARTIAL}")),
    )
