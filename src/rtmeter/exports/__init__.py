"""Measured cells for other programs: one module a kind of file."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from rtmeter.errors import RtmeterError
from rtmeter.exports import cyclictest, document, hdr, tables
from rtmeter.store import PARTIAL

__all__ = ["FORMATS", "export"]

FORMATS: dict[str, tuple[str, Callable[[Path, Path], list[str]]]] = {
    "csv": ("a row a release, a bin or an interval", tables.csv),
    "parquet": ("the same", tables.parquet),
    "json": ("the same with each cell's record", document.write),
    "hdr": ("an HdrHistogram log of the judged quantity, to 3 digits", hdr.write),
    "cyclictest-hist": ("a histogram in microseconds as cyclictest writes it", cyclictest.write),
}
"""Format → what it holds, and its writer: (path of the cells, file to write) → what to know of the file."""


def export(path: Path, out: Path, form: str) -> list[str]:
    """Writes every cell under the path into one file, whole or not at all; returns what to know of it.

    Raises RtmeterError if the format is none, there are no data, or the file cannot be written.
    """
    if form not in FORMATS:
        remedy = f"choose {' or '.join(FORMATS)}"
        raise RtmeterError("is no format", field="--format", value=form, remedy=remedy)
    if not out.parent.is_dir():
        remedy = f"make its folder first: mkdir -p {out.parent}"
        raise RtmeterError("is in no folder that is there", field="-o", value=str(out), remedy=remedy)
    if out.is_dir():
        raise RtmeterError("is a folder", field="-o", value=str(out), remedy="name a file in it")
    partial = out.with_name(out.name + PARTIAL)
    try:
        notes = FORMATS[form][1](path, partial)
        partial.replace(out)
    except OSError as error:
        reason = (error.strerror or str(error)).lower()
        remedy = "choose another place with -o, or make room there"
        raise RtmeterError(
            f"cannot be written: {reason}", field="-o", value=str(out), remedy=remedy
        ) from None
    finally:
        partial.unlink(missing_ok=True)
    return notes
