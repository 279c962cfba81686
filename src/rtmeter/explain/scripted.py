"""Events and releases from CSV files: traces written by hand, or by a program that knows the truth."""

from __future__ import annotations

import csv
import re
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import TextIO

from rtmeter.errors import RtmeterError
from rtmeter.explain.causes import Release
from rtmeter.explain.events import (
    COLUMNS,
    KINDS,
    LENT,
    LOST,
    NO_PRIORITY,
    NO_VALUE,
    NOBODY,
    STATES,
    SWITCH,
    WAKING,
    Event,
    Trace,
)

RELEASE_COLUMNS = ("k", "release_ns", "stamp_ns", "late")
_WHOLE = re.compile(r"-?[0-9]{1,19}")


def read_events(path: Path) -> Trace:
    """A trace of the columns that docs/explain.md lists."""
    trace, before = Trace(), None
    for row in _rows(path, "--events", COLUMNS):
        event = _event(row)
        if before is not None and event.time_ns < before:
            raise row.wrong("time_ns", f"is before that of the row above, {before}", "sort the rows by time")
        before = event.time_ns
        trace.append(event)
    return trace


def read_releases(path: Path) -> list[Release]:
    """Releases, each index once."""
    releases, seen = [], set()
    for row in _rows(path, "--releases", RELEASE_COLUMNS):
        late = row.number("late", 0, 1, "write 0 for in time or 1 for late")
        release = Release(row.number("k"), row.number("release_ns"), row.number("stamp_ns"), bool(late))
        if release.k in seen:
            raise row.wrong("k", "is there twice", "give each release an index of its own")
        if late and release.lateness_ns < 0:
            raise row.wrong("stamp_ns", "is before the release, which is late", "write late = 0")
        seen.add(release.k)
        releases.append(release)
    return releases


def _event(row: _Row) -> Event:
    kind = row.choice("event", KINDS)
    tid = row.number("tid", 0, 2**31 - 1, empty=NOBODY if kind == LOST else None)
    target = row.number("target", 0, 2**31 - 1, empty=None if kind in (SWITCH, WAKING, LENT) else NOBODY)
    state = row.choice("state", STATES) if kind == SWITCH else 0
    if kind == SWITCH and state == 0:
        raise row.wrong("state", "is empty", f"say how the thread leaves: {', '.join(STATES[1:])}")
    if kind == SWITCH and tid == target and tid > 0:
        raise row.wrong("target", "is the thread that leaves", "name the one that runs from now on")
    if kind == WAKING and target == 0:
        raise row.wrong("target", "is the idle thread, which is never woken", "name the thread that is woken")
    priority = row.number("priority", -(2**31) + 1, 2**31 - 1, empty=None if kind == LENT else NO_PRIORITY)
    value = row.number("value", empty=None if kind == LENT else NO_VALUE)
    return Event(
        row.number("time_ns"),
        row.number("cpu", 0, 2**15),
        kind,
        tid,
        target,
        state,
        priority,
        row.text("name"),
        value,
    )


class _Row:
    """A line of the file; ``wrong`` makes the error that says where and what."""

    def __init__(self, option: str, where: str, values: dict[str, str]) -> None:
        self._option, self._where, self._values = option, where, values

    def wrong(self, column: str, message: str, remedy: str) -> RtmeterError:
        field, value = f"{self._option}: {column}", self._values[column]
        return RtmeterError(message, field=field, value=value, remedy=remedy, where=self._where)

    def text(self, column: str) -> str:
        return self._values[column]

    def number(
        self,
        column: str,
        least: int = -(2**62),
        most: int = 2**62,
        remedy: str = "write a whole number",
        *,
        empty: int | None = None,
    ) -> int:
        """A whole number; ``empty``: what nothing stands for, None: it must be there."""
        text = self._values[column].strip()
        if not text and empty is not None:
            return empty
        if _WHOLE.fullmatch(text) is None:
            raise self.wrong(column, "is no whole number" if text else "is empty", remedy)
        if not least <= int(text) <= most:
            raise self.wrong(column, f"is not from {least} to {most}", remedy)
        return int(text)

    def choice(self, column: str, known: Sequence[str]) -> int:
        text = self._values[column].strip()
        if text not in known:
            raise self.wrong(column, "is not known", f"choose {', '.join(filter(None, known))}")
        return known.index(text)


def _rows(path: Path, option: str, columns: Sequence[str]) -> Iterator[_Row]:
    def wrong(message: str, remedy: str, line: int | None = None) -> RtmeterError:
        where = None if line is None else f"{path}:{line}"
        return RtmeterError(message, field=option, value=str(path), remedy=remedy, where=where)

    with _opened(path, wrong) as file:
        lines = csv.reader(file, strict=True)
        try:
            header = [name.strip() for name in next(lines, [])]
            missing = [name for name in columns if name not in header]
            if twice := [name for name in columns if header.count(name) > 1]:
                raise wrong(f"has the column {twice[0]} twice", "leave one of them out", 1)
            if missing:
                raise wrong(f"has no column {missing[0]}", f"begin it with {','.join(columns)}", 1)
            for fields in lines:
                if not fields:
                    continue
                if len(fields) != len(header):
                    message = f"has {len(fields)} fields, its header {len(header)}"
                    raise wrong(message, "write a field for each column", lines.line_num)
                yield _Row(option, f"{path}:{lines.line_num}", dict(zip(header, fields, strict=True)))
        except csv.Error as error:
            raise wrong(f"is no CSV: {error}", "write CSV in UTF-8", lines.line_num) from error
        except UnicodeDecodeError as error:  # it is decoded far ahead of the line that is read
            raise wrong(f"is no CSV: {error}", "write CSV in UTF-8") from error


def _opened(path: Path, wrong: Callable[[str, str], RtmeterError]) -> TextIO:
    try:
        return path.open(newline="", encoding="utf-8-sig")  # spreadsheets begin with that mark
    except OSError as error:
        raise wrong(f"cannot be read: {error.strerror}", "name a CSV file") from error
