"""A sample log while its probe still writes it: only what is new is read."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np

from rtmeter.errors import RtmeterError
from rtmeter.host.files import open_file
from rtmeter.samples.decode import decode_rows
from rtmeter.samples.frames import (
    FILE_HEAD_BYTES,
    HEAD_BYTES,
    Frame,
    next_head,
    parse_head,
    read_at,
    read_payload,
)
from rtmeter.samples.header import checked_header, parse_object
from rtmeter.samples.segments import segments
from rtmeter.statistics.quantities import Columns


class SegmentsFollower:
    """The same of the logs of a program's own loop, each of which goes on where the one before it ended."""

    def __init__(self, folder: Path) -> None:
        self.path = folder
        self._logs: dict[Path, Follower] = {}
        self._passed: set[Path] = set()

    @property
    def header(self) -> dict[str, Any]:
        """That of the first log; empty until it is there."""
        return next((log.header for log in self._logs.values()), {})

    @property
    def damaged(self) -> int:
        """How many places were passed over."""
        return sum(log.damaged for log in self._logs.values())

    def new(self) -> Iterator[Columns]:
        """As Follower.new()."""
        there = segments(self.path)
        for number, path in enumerate(there):
            if path in self._passed:
                continue
            yield from self._logs.setdefault(path, Follower(path)).new()
            if number < len(there) - 1:
                self._passed.add(path)


class Follower:
    """Follows a log from its beginning; ``header`` is empty until it is there, ``damaged`` counts places that
    were passed over. A log is whole when a LogReader says so: this is for looking on."""

    def __init__(self, path: Path) -> None:
        self.path, self.header = path, dict[str, Any]()
        self.damaged = 0
        self._at = FILE_HEAD_BYTES

    def new(self) -> Iterator[Columns]:
        """The rows of every frame that is whole since the last call: ``k`` and the log's columns (int64).

        Nothing if there is no log yet. Raises RtmeterError if it is none that can be read.
        """
        try:
            with open_file(self.path) as file:
                yield from self._read(file, file.seek(0, 2))
        except OSError:
            return

    def _read(self, file: BinaryIO, size: int) -> Iterator[Columns]:
        while self._at + HEAD_BYTES <= size:
            frame = parse_head(read_at(file, self._at, HEAD_BYTES), self._at)
            if frame is None:
                found = next_head(file, self._at + 1, size)
                if found == size:  # perhaps it is being written
                    return
                self.damaged += 1
                self._at = found
                continue
            if frame.end > size:
                return
            self._at = frame.end
            yield from self._rows(frame, read_payload(file, frame))

    def _rows(self, frame: Frame, payload: bytes | None) -> Iterator[Columns]:
        if payload is None:
            self.damaged += 1
        elif frame.kind == "H" and not self.header:
            self.header = checked_header(parse_object(payload) or {}, str(self.path))
        elif frame.kind == "R":
            if not self.header:
                message = "has rows before its header"
                raise RtmeterError(message, where=str(self.path), remedy="see `rtmeter recover`")
            names = [column["name"] for column in self.header["columns"]]
            values = decode_rows(payload, len(names), frame.row_count)
            if values is None:
                self.damaged += 1
                return
            k = np.arange(frame.first_row, frame.first_row + frame.row_count, dtype=np.int64)
            yield {"k": k} | dict(zip(names, values, strict=True))
