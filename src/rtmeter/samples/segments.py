"""The logs of a program's own loop, one after the other, as one log (docs/your-own-loop.md)."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

from rtmeter.errors import RtmeterError
from rtmeter.samples.reader import LogReader
from rtmeter.statistics.quantities import Columns

WHOLE, LATE = "whole-", "late-"
"""How the names of the logs begin: of the last hours, and of late releases with what surrounds them."""


def segments(folder: Path, part: str = WHOLE) -> list[Path]:
    """The logs of a part, in the order of their releases."""
    return sorted(folder.glob(f"{part}*.rtlog"))


def lengths(folder: Path, part: str = WHOLE) -> dict[Path, int]:
    """The same, and how many bytes each has; without those that were let go since they were listed."""
    found: dict[Path, int] = {}
    for path in segments(folder, part):
        with suppress(FileNotFoundError):
            found[path] = path.stat().st_size
    return found


class SegmentedLog:
    """As LogReader, of a folder's logs. Rows before the first log are not missing: they were let go; nor are
    those after the last one, where the program was killed or goes on: ``ended`` says whether it closed."""

    def __init__(self, folder: Path, part: str = WHOLE) -> None:
        self.path = folder
        self._logs = [LogReader(path) for path, length in lengths(folder, part).items() if length > 0]
        if not self._logs:
            remedy = "what it recorded was let go with the years, but for bins.json and late-*.rtlog"
            raise RtmeterError("holds no log of whole releases", where=str(folder), remedy=remedy)
        last = self._logs[-1]
        self.header, self.meta, self.columns, self.ended = last.header, last.meta, last.columns, last.ended
        self.first_row, self.end_row = self._logs[0].first_row, last.end_row

    @property
    def missing(self) -> list[list[int | None]]:
        """Ranges of rows that damage or a full disk took, from the first row that is there to the last."""
        found: list[list[int | None]] = []
        for log, after in zip(self._logs, [*self._logs[1:], None], strict=True):
            found += [r for r in log.missing if r[1] is not None]
            if after is not None and log.end_row < after.first_row:
                found.append([log.end_row, after.first_row - 1])
        return found

    @property
    def problems(self) -> list[str]:
        """What is wrong, in words; that there is no end frame is none."""
        return [p for log in self._logs for p in log.problems if not p.startswith("no end frame")]

    def frames(self) -> Iterator[tuple[int, Columns]]:
        """Every whole frame's rows in the order of k."""
        for log in self._logs:
            yield from log.frames()
