"""Other tools' files → series with their provenance → cells: one module a tool."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from rtmeter.errors import RtmeterError
from rtmeter.importers import jitterdebugger, performance_test, rt_tests, rtla, rttest, timer2014, timer2020
from rtmeter.importers.base import Imported, ImportedSeries, SourceFile

__all__ = ["FORMATS", "Imported", "ImportedSeries", "read"]

FORMATS: dict[str, tuple[str, Callable[[SourceFile], Imported]]] = {
    "cyclictest-json": ("cyclictest --json, oslat --json", rt_tests.read_json),
    "cyclictest-histogram": ("cyclictest -h, --histfile", rt_tests.read_histogram),
    "jitterdebugger": ("jitterdebugger -o", jitterdebugger.read),
    "rtla": ("rtla timerlat hist, rtla osnoise hist", rtla.read),
    "rttest": ("rttest -f", rttest.read),
    "timer2020-histogram": ("the 2020 timer tool's latency,count", timer2020.read_histogram),
    "timer2020-largest": ("the 2020 timer tool's latency,index", timer2020.read_largest),
    "timer2020-series": ("the 2020 timer tool's idx,latency", timer2020.read_series),
    "timer2014": ("the 2014 timer tests' gnuplot logs", timer2014.read),
    "performance-test-csv": ("performance_test's CSV log", performance_test.read_csv),
    "performance-test-json": ("performance_test's JSON log", performance_test.read_json),
}
"""Format → what writes it, and its reader."""


def read(path: Path, form: str | None = None) -> Imported:
    """The file's series; ``form`` is one of FORMATS, or None: told by the file.

    Raises RtmeterError naming file, line, field, value and remedy.
    """
    if form is not None and form not in FORMATS:
        remedy = f"choose {' or '.join(FORMATS)}"
        raise RtmeterError("is no format", field="--format", value=form, remedy=remedy)
    source = SourceFile(path)
    return FORMATS[form or _format_of(source)][1](source)


def _format_of(source: SourceFile) -> str:
    """By what only that tool writes."""
    text = source.text.lstrip()
    if text.startswith("{"):
        return _format_of_json(source)
    first = text.partition("\n")[0].strip()
    headers = {
        rttest.HEADER: "rttest",
        timer2020.HIST: "timer2020-histogram",
        timer2020.TOP: "timer2020-largest",
        timer2020.SERIES: "timer2020-series",
    }
    if first in headers:
        return headers[first]
    for sign, form in (
        ("# RTLA ", "rtla"),
        (performance_test.START, "performance-test-csv"),
        ("LoopLength:", "timer2014"),
        ("# Measurement results with a loop length of", "timer2014"),
        ("# Histogram", "cyclictest-histogram"),
    ):
        if sign in text:
            return form
    raise source.error("is of no tool that is known", value=first[:60], remedy=_known())


def _format_of_json(source: SourceFile) -> str:
    keys = source.json().keys()
    for key, form in (
        ("thread", "cyclictest-json"),
        ("cpu", "jitterdebugger"),
        ("analysis_results", "performance-test-json"),
    ):
        if key in keys:
            return form
    raise source.error(
        "is JSON of no tool that is known", value=", ".join(sorted(keys))[:60], remedy=_known()
    )


def _known() -> str:
    return "what can be read: " + "; ".join(what for what, _ in FORMATS.values())
