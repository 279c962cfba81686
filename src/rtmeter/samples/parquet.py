"""Sample logs to samples.parquet (spec/results.md)."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Self

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from rtmeter.errors import RtmeterError
from rtmeter.host import checked
from rtmeter.model import ABSENT, SERVED, STATUS_NAMES, TWO_ENDS, WARM_UP_FLAG
from rtmeter.samples.arrow import array, bits, strings
from rtmeter.samples.join import SERVER_STAMPS, ServerRows
from rtmeter.samples.kernel_stamps import KernelStamps
from rtmeter.samples.reader import LogReader
from rtmeter.samples.segments import WHOLE, SegmentedLog
from rtmeter.statistics.quantities import Columns

ROW_GROUP_ROWS = 1 << 20
_STATUS = pa.dictionary(pa.int8(), pa.string())
_KNOWN_BITS = WARM_UP_FLAG | 0x0F


@dataclass(slots=True)
class Recovery:
    """What became of a log: ``rows`` written; ``missing`` ranges ``[first, last]`` of rows that damage
    took (``last`` None: unknown how many); ``problems`` in words; ``meta``, what the probe said.
    """

    rows: int
    missing: list[list[int | None]]
    problems: list[str]
    meta: dict[str, Any] = field(repr=False)


_STATUS_NAMES = strings(STATUS_NAMES)


def write_parquet(
    client_log: Path | str,
    out: Path | str,
    server_log: Path | str | None = None,
    to_client: Callable[[NDArray[np.int64]], NDArray[np.int64]] | None = None,
    part: str = WHOLE,
) -> Recovery:
    """Converts a log, and for a round trip the server's, into the Parquet file ``out`` (replaced whole, or
    not at all); of the folder of a program's own loop the logs of a ``part``. Memory does not grow with the
    length of the logs. ``to_client`` makes of the server's stamps what the client's clock would have shown.

    Raises RtmeterError if a log cannot be read at all or ``out`` cannot be written.
    """
    reader = SegmentedLog(Path(client_log), part) if Path(client_log).is_dir() else LogReader(client_log)
    server = None if server_log is None else ServerRows(LogReader(server_log), to_client)
    out = Path(out)
    partial = out.with_name(out.name + ".partial")
    try:
        try:
            rows, unknown = _write(reader, server, partial)
            partial.replace(out)
        finally:
            partial.unlink(missing_ok=True)
    except OSError as error:
        raise RtmeterError(
            f"cannot be written: {error.strerror or error}",
            where=str(out),
            remedy="make room, or choose a directory that exists and can be written",
        ) from error
    problems = list(reader.problems)
    if unknown:
        problems.append(f"{unknown} rows have a status that this version does not know: it is left empty")
    if server:
        problems += server.finish()
    return Recovery(rows, reader.missing, problems, reader.meta)


def exchanges(client_log: Path, server_log: Path) -> Iterator[tuple[NDArray[np.int64], ...]]:
    """The four stamps of every message that came back, each as its own clock showed it, in chunks:
    ``sent``, ``server_received``, ``server_sent``, ``received``. Raises RtmeterError for a log that cannot
    be read."""
    server = ServerRows(LogReader(server_log))
    for k, columns in _row_groups(LogReader(client_log)):
        stamps = {**columns, **server.take(k)}
        four = [stamps[name] for name in ("sent_ns", *SERVER_STAMPS, "received_ns")]
        known = np.all([stamp != ABSENT for stamp in four], axis=0)
        yield tuple(stamp[known] for stamp in four)


def write_values(values: NDArray[np.int64], column: str, meta: Mapping[str, Any], out: Path) -> None:
    """Writes a samples.parquet of releases from 0 on that were all served, with one column of values.

    ``meta`` has measurement, mode, period_ns and warm_up.
    """
    with _Rows(out, [column], meta) as rows:
        for first in range(0, len(values), ROW_GROUP_ROWS):
            part = values[first : first + ROW_GROUP_ROWS]
            columns = {column: part, "status": np.full(len(part), SERVED)}
            rows.write(np.arange(first, first + len(part)), columns)


def write_columns(columns: Columns, meta: Mapping[str, Any], out: Path) -> None:
    """Writes a samples.parquet of releases from 0 on: columns of times, and ``status``; ``meta`` as in
    write_values()."""
    file = ColumnsFile(columns, meta, out)
    try:
        for first in range(0, len(columns["status"]), ROW_GROUP_ROWS):
            file.write({name: column[first : first + ROW_GROUP_ROWS] for name, column in columns.items()})
    finally:
        file.close()


class ColumnsFile:
    """The same, piece by piece. ``columns``: anything with their names."""

    def __init__(self, columns: Iterable[str], meta: Mapping[str, Any], out: Path) -> None:
        self._rows = _Rows(out, [name for name in columns if name != "status"], meta)

    def write(self, columns: Columns) -> None:
        """Adds rows."""
        first = self._rows.count
        self._rows.write(np.arange(first, first + len(columns["status"])), columns)

    def close(self) -> None:
        """The file is whole then."""
        self._rows.__exit__()


class _Rows:
    """A samples.parquet being written: columns of ``times``, and how many rows there are, of which
    ``unknown`` have a status that is not known."""

    def __init__(self, out: Path, times: list[str], meta: Mapping[str, Any]) -> None:
        self.count = self.unknown = 0
        self._times = times
        fields = [("k", pa.int64()), *((name, pa.int64()) for name in times)]
        fields += [("status", _STATUS), ("warm_up", pa.bool_())]
        self._schema = pa.schema(fields, metadata={"rtmeter": json.dumps(_metadata(meta))})
        # Times are nearly equidistant: their deltas take a third of the space and of the reading time.
        encoding = dict.fromkeys(("k", *times), "DELTA_BINARY_PACKED")
        self._writer = checked.writer(
            out, self._schema, compression_level=1, use_dictionary=["status"], column_encoding=encoding
        )

    def write(self, k: NDArray[np.int64], columns: Columns) -> None:
        """Adds rows: their k, the columns and ``status``."""
        status = columns["status"]
        alien = (status & 0x0F >= len(STATUS_NAMES)) | (status & ~_KNOWN_BITS != 0)
        codes = array(pa.int8(), (status & 0x0F).astype(np.int8), alien)
        arrays = [array(pa.int64(), k)]
        arrays += [array(pa.int64(), columns[name], columns[name] == ABSENT) for name in self._times]
        arrays += [pa.DictionaryArray.from_arrays(codes, _STATUS_NAMES)]
        arrays += [bits(status & WARM_UP_FLAG != 0)]
        table = pa.Table.from_arrays(arrays, schema=self._schema)
        self._writer.write_table(table, row_group_size=ROW_GROUP_ROWS)
        self.count += len(k)
        self.unknown += int(alien.sum())

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._writer.close()


def _write(reader: LogReader | SegmentedLog, server: ServerRows | None, out: Path) -> tuple[int, int]:
    """Writes all rows; returns how many, and how many have an unknown status."""
    kernel = KernelStamps(reader.columns, reader.meta)
    names = [name for name in kernel.names if name != "status"]
    answered = reader.meta.get("measurement") in TWO_ENDS and reader.meta.get("role") != "server"
    of_server = [*SERVER_STAMPS, *(f"server_{name}" for name in names if name not in reader.columns)]
    with _Rows(out, names + (of_server if answered else []), reader.meta) as rows:
        for k, raw in _row_groups(reader):
            columns = kernel.told(raw)
            if answered:
                columns |= {**_absent(of_server, len(k)), **(server.take(k) if server else {})}
            rows.write(k, columns)
    return rows.count, rows.unknown


def _row_groups(reader: LogReader | SegmentedLog) -> Iterator[tuple[NDArray[np.int64], Columns]]:
    """The log's frames, gathered into groups of about ROW_GROUP_ROWS rows: k and the columns."""
    frames: list[tuple[int, Columns]] = []
    held = 0
    for frame in reader.frames():
        frames.append(frame)
        held += len(frame[1]["status"])
        if held >= ROW_GROUP_ROWS:
            yield _joined(frames)
            frames, held = [], 0
    if frames:
        yield _joined(frames)


def _joined(frames: list[tuple[int, Columns]]) -> tuple[NDArray[np.int64], Columns]:
    k = np.concatenate([np.arange(first, first + len(columns["status"])) for first, columns in frames])
    return k, {name: np.concatenate([columns[name] for _, columns in frames]) for name in frames[0][1]}


def _metadata(meta: Mapping[str, Any]) -> dict[str, Any]:
    own = {"format": "rtmeter-samples", "version": 1}
    return own | {key: meta.get(key) for key in ("measurement", "mode", "period_ns", "warm_up")}


def _absent(names: list[str], rows: int) -> dict[str, NDArray[np.int64]]:
    """Of a server whose log is not there."""
    return {name: np.full(rows, ABSENT) for name in names}
