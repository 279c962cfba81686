"""Measured cells → files for other programs: one module a kind of file."""

from __future__ import annotations

from collections.abc import Callable
from importlib import import_module
from pathlib import Path

from rtmeter.errors import RtmeterError
from rtmeter.host.files import whole_file

__all__ = ["FORMATS", "OF_QUANTITY", "export"]

FORMATS: dict[str, tuple[str, str]] = {
    "csv": ("a row a release, a bin or an interval", "tables.csv"),
    "parquet": ("the same", "tables.parquet"),
    "json": ("the same with each cell's record", "document.write"),
    "hdr": ("an HdrHistogram log of the judged quantity, to 3 digits", "hdr.write"),
    "cyclictest-hist": ("a histogram in microseconds as cyclictest writes it", "cyclictest.write"),
    "perfetto": ("spans and counters on their threads, for ui.perfetto.dev", "perfetto.write"),
    "mcap": ("a message a release, for Foxglove and PlotJuggler", "mcap.write"),
    "markdown": ("the answer and a row a cell, for the page of a CI job", "markdown.write"),
}
"""Format → what it holds, and its writer: (path of the cells, file to write) → what to know of the file.
A writer's module, with the libraries that it takes, is imported when it is the one."""

OF_QUANTITY: dict[str, tuple[str, str]] = {
    "ros1-timer-log": ("the 2014 ROS 1 timer tests' gnuplot log", "timer2014.write"),
    "ros2-timer-series": ("the 2020 ROS 2 timer tool's idx,latency", "timer2020.write_series"),
    "ros2-timer-hist": ("the 2020 ROS 2 timer tool's latency,count", "timer2020.write_histogram"),
    "ros2-timer-topn": ("the 2020 ROS 2 timer tool's latency,index", "timer2020.write_largest"),
}
"""Formats of one quantity of one cell; their writers take it besides (None: the format's own)."""


def export(path: Path, out: Path, form: str, quantity: str | None = None) -> list[str]:
    """Writes every cell under the path into one file, whole or not at all; returns what to know of it.
    ``quantity``: what to write, of a format that holds one (OF_QUANTITY).

    Raises RtmeterError if the format is none, there are no data, or the file cannot be written.
    """
    if form not in FORMATS and form not in OF_QUANTITY:
        remedy = f"choose {' or '.join([*FORMATS, *OF_QUANTITY])}"
        raise RtmeterError("is no format", field="--format", value=form, remedy=remedy)
    if quantity is not None and form not in OF_QUANTITY:
        remedy = f"leave it out; it is for {', '.join(OF_QUANTITY)}"
        raise RtmeterError(f"means nothing for {form}", field="--quantity", value=quantity, remedy=remedy)
    if not out.parent.is_dir():
        remedy = f"make its folder first: mkdir -p {out.parent}"
        raise RtmeterError("is in no folder that is there", field="-o", value=str(out), remedy=remedy)
    with whole_file(out) as partial:
        if form in OF_QUANTITY:
            notes = _writer(OF_QUANTITY[form][1])(path, partial, quantity)
        else:
            notes = _writer(FORMATS[form][1])(path, partial)
    return notes


def _writer(name: str) -> Callable[..., list[str]]:
    module, _, function = name.partition(".")
    found: Callable[..., list[str]] = getattr(import_module(f"rtmeter.exports.{module}"), function)
    return found
