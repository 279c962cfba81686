"""The sample log's reader: streams rows in the order of k, in constant memory."""

from __future__ import annotations

from array import array
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np
from numpy.typing import NDArray

from rtmeter.errors import RtmeterError
from rtmeter.host.files import open_file
from rtmeter.samples.coverage import claims, gaps
from rtmeter.samples.decode import decode_rows
from rtmeter.samples.frames import (
    FILE_HEAD_BYTES,
    HEAD_BYTES,
    MAGIC,
    VERSION,
    Damage,
    Frame,
    next_head,
    parse_head,
    read_at,
    read_payload,
    scan,
)
from rtmeter.samples.header import checked_header, parse_object
from rtmeter.statistics.quantities import Columns

MAX_PROBLEMS = 100
"""Problems kept in words; further ones are only counted."""

_START_BYTES = 4096  # where a log whose first bytes are damaged must have its first whole head


class LogReader:
    """A sample log, checked from end to end when it is opened.

    ``header`` is the probe's header; ``meta`` the same with the keys of all updates and of the end frame;
    ``columns`` the columns' names; ``ended`` whether the probe ended by itself; ``missing`` the ranges
    ``[first, last]`` of rows that damage took (``last`` None: the log was cut, its length is unknown);
    ``problems`` what is wrong, in words. A payload that is whole but cannot be decoded is found by
    :meth:`frames` only, and added to both then.

    Raises RtmeterError if the file cannot be read, is none of ours, has another version, or lost both
    copies of its header.
    """

    def __init__(self, path: Path | str) -> None:
        self.path = Path(path)
        self.header: dict[str, Any] = {}
        self.meta: dict[str, Any] = {}
        self.ended = False
        self.problems: list[str] = []
        self._unsaid = 0
        self._at, self._first_rows, self._row_counts = array("q"), array("q"), array("q")
        self._refused: dict[int, list[int | None]] = {}
        try:
            with open_file(self.path) as file:
                self._index(file)
        except OSError as error:
            raise self._unreadable(error, "give the path of a sample log") from error
        self.columns: tuple[str, ...] = tuple(c["name"] for c in self.header["columns"])
        self._pieces = claims(*(np.asarray(a, dtype=np.int64) for a in (self._first_rows, self._row_counts)))
        self._report_claims()
        self._gaps = self._holes()
        if not self.ended:
            self._problem(f"no end frame: the log is cut after {self._last_row()}")

    @property
    def missing(self) -> list[list[int | None]]:
        """Ranges ``[first, last]`` of rows lost, in order; a last one of None: unknown how many."""
        return _merged([*self._gaps, *self._refused.values()])

    @property
    def rows(self) -> int:
        """How many rows :meth:`frames` yields, unless a payload cannot be decoded."""
        return int((self._pieces[:, 2] - self._pieces[:, 1]).sum())

    @property
    def first_row(self) -> int:
        """k of the first row that the log is for."""
        return int(self.header.get("first_row", 0))

    @property
    def end_row(self) -> int:
        """k after the last row that is there, or is known to have been."""
        ends: list[int] = self._pieces[-1:, 2].tolist()
        return max(self.first_row, self._rows_known, *ends)

    def frames(self) -> Iterator[tuple[int, Columns]]:
        """Every whole frame's rows in the order of k: the first one's k, and for each column an array
        (int64, absent values as ABSENT). Each call starts from the beginning. Raises RtmeterError if the file
        cannot be read any more.
        """
        try:
            with open_file(self.path) as file:
                for number, first, end in self._pieces.tolist():
                    values = self._decode(file, number)
                    if values is None:
                        self._refuse(number, first, end)
                        continue
                    offset = first - self._first_rows[number]
                    cut = values[:, offset : offset + end - first]
                    yield first, dict(zip(self.columns, cut, strict=True))
        except OSError as error:
            raise self._unreadable(error, "see that the file is there, and to its disk") from error

    def _holes(self) -> list[list[int | None]]:
        """Rows that no frame has; of a log whose header says that it has only some rows, none."""
        if self.header.get("sparse"):
            return []
        return gaps(self._pieces, self._rows_known, self.ended, self.first_row)

    def _index(self, file: BinaryIO) -> None:
        """Goes through all frames: notes where rows are and merges the JSON objects."""
        size = file.seek(0, 2)
        self._rows_known = 0
        for item in scan(file, self._start(file, size), size):
            if isinstance(item, Damage):
                self._problem(f"bytes {item.at} to {item.end - 1} are damaged")
                continue
            frame, payload = item
            if frame.kind == "R":
                self._at.append(frame.at)
                self._first_rows.append(frame.first_row)
                self._row_counts.append(frame.row_count)
            else:
                self._merge(frame, payload)
        if not self.header:
            raise self._error(
                "both copies of the header are damaged: the rows cannot be told apart",
                "nothing of this log can be recovered",
            )
        self.meta = {**self.header, **self.meta}

    def _start(self, file: BinaryIO, size: int) -> int:
        """Offset of the first frame, after a look at magic and version."""
        head = read_at(file, 0, FILE_HEAD_BYTES)
        if head.startswith(MAGIC) and len(head) == FILE_HEAD_BYTES:
            version = int.from_bytes(head[len(MAGIC) :], "little")
            if version != VERSION:
                raise self._error(
                    f"has version {version} of the sample log, this rtmeter reads version {VERSION}",
                    "read it with the rtmeter that wrote it, or a newer one; if that was version 1, "
                    "bytes 8 to 11 are damaged: make them 01 00 00 00",
                )
            return FILE_HEAD_BYTES
        if next_head(file, 0, min(size, _START_BYTES)) == min(size, _START_BYTES):
            what = "is empty" if size == 0 else "is no sample log"
            raise self._error(what, "give a file that a probe wrote (*.rtlog)")
        return 0  # frames there are: only the magic is damaged, and will be reported as damage

    def _merge(self, frame: Frame, payload: bytes) -> None:
        content = parse_object(payload)
        if content is None:
            self._problem(f"the '{frame.kind}' frame at byte {frame.at} holds no JSON object")
        elif frame.kind == "H":
            self.header = self.header or checked_header(content, str(self.path))
        else:
            self.meta.update(content)
            self.ended = self.ended or frame.kind == "E"
        self._rows_known = max(self._rows_known, frame.first_row)

    def _decode(self, file: BinaryIO, number: int) -> NDArray[np.int64] | None:
        """The values (columns x rows) of a row frame, or None if its payload is not what it says."""
        at = self._at[number]
        frame = parse_head(read_at(file, at, HEAD_BYTES), at)
        payload = read_payload(file, frame) if frame else None
        if frame is None or payload is None:
            return None
        return decode_rows(payload, len(self.columns), frame.row_count)

    def _refuse(self, number: int, first: int, end: int) -> None:
        if first not in self._refused:
            self._refused[first] = [first, end - 1]
            self._problem(f"rows {first} to {end - 1} at byte {self._at[number]} cannot be decoded")

    def _report_claims(self) -> None:
        """Reports the frames that lost rows to an earlier one."""
        given = np.zeros(len(self._at), dtype=np.int64)
        np.add.at(given, self._pieces[:, 0], self._pieces[:, 2] - self._pieces[:, 1])
        for number in np.flatnonzero(given < np.asarray(self._row_counts, dtype=np.int64)):
            first = self._first_rows[number]
            last = first + self._row_counts[number] - 1
            self._problem(
                f"rows {first} to {last} at byte {self._at[number]} were there before, partly or all: "
                "the earlier frame's count"
            )

    def _last_row(self) -> str:
        return f"row {int(self._pieces[-1, 2]) - 1}" if len(self._pieces) else "the header"

    def _problem(self, text: str) -> None:
        """Keeps a problem; beyond MAX_PROBLEMS the last line counts the others."""
        if len(self.problems) < MAX_PROBLEMS:
            self.problems.append(text)
            return
        self._unsaid += 1
        self.problems[MAX_PROBLEMS:] = [f"and {self._unsaid} more"]

    def _unreadable(self, error: OSError, remedy: str) -> RtmeterError:
        return self._error(f"cannot be read: {error.strerror}", remedy)

    def _error(self, message: str, remedy: str) -> RtmeterError:
        return RtmeterError(message, where=str(self.path), remedy=remedy)


@dataclass(frozen=True, slots=True)
class Log:
    """A whole log in memory: ``k`` and each of ``columns`` are int64 arrays of one length; the rest is
    the reader's.
    """

    k: NDArray[np.int64]
    columns: Columns
    meta: dict[str, Any]
    missing: list[list[int | None]]
    problems: list[str]


def read_log(path: Path | str) -> Log:
    """All rows of a log at once; :class:`LogReader` is for logs that may be large."""
    reader = LogReader(path)
    ks, parts = [np.empty(0, np.int64)], {name: [np.empty(0, np.int64)] for name in reader.columns}
    for first_k, columns in reader.frames():
        ks.append(np.arange(first_k, first_k + len(columns[reader.columns[0]])))
        for name, values in columns.items():
            parts[name].append(values)
    columns = {name: np.concatenate(arrays) for name, arrays in parts.items()}
    return Log(np.concatenate(ks), columns, reader.meta, reader.missing, reader.problems)


def _merged(ranges: list[list[int | None]]) -> list[list[int | None]]:
    """The ranges in order, those that touch made one."""
    merged: list[list[int | None]] = []
    for first, last in sorted(ranges, key=lambda r: r[0] or 0):
        if merged and merged[-1][1] is not None and first == merged[-1][1] + 1:
            merged[-1][1] = last
        else:
            merged.append([first, last])
    return merged
