"""What an importer makes of a tool's file, and how it says what is wrong with one."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from io import TextIOWrapper
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
from pyarrow import csv

from rtmeter.errors import RtmeterError
from rtmeter.host.files import open_file
from rtmeter.importers.clock_steps import STEP_NS, steps
from rtmeter.model import Doubt
from rtmeter.statistics.counted_data import MOST_COUNTED, Histogram, Intervals
from rtmeter.statistics.quantities import Ints
from rtmeter.statistics.words import about
from rtmeter.values import parse_number

US = 1000
MOST_NS = 366 * 24 * 3600 * 10**9
"""No latency is a year long: what is, was negative and wrapped around, or is of another unit."""


@dataclass(frozen=True, slots=True)
class ImportedSeries:
    """One series of a file (a thread, a CPU): exactly one of single values in order (ns, shape (n,)), a
    histogram, or intervals."""

    name: str
    samples: Ints | None = None
    histogram: Histogram | None = None
    intervals: Intervals | None = None

    @property
    def n(self) -> int:
        """How many values it has."""
        data = self.histogram or self.intervals
        return data.n if data else len(self.samples) if self.samples is not None else 0

    @property
    def doubts(self) -> tuple[Doubt, ...]:
        """That values lie beyond the last bin, if any do."""
        over = self.histogram.over if self.histogram else 0
        if not over:
            return ()
        message = f"{over:,} of {self.n:,} values lie beyond the last bin, and only the largest is known"
        return (Doubt("histogram_overflow", message, "measure with more bins"),)


@dataclass(frozen=True, slots=True)
class Imported:
    """A file of another tool. ``quantity``: what its values are; ``verified``: the reader was tested on the
    tool's own output, not only written from its source; ``skips``: the tool passes over releases for which
    it comes too late, and they are in no file. What the file does not say is None or absent: ``period_ns``,
    ``version``, ``unit`` of its times, when it ``started`` and ``ended``, facts of the ``machine`` (by the
    names that sample logs have for them) and other ``facts``."""

    tool: str
    quantity: str
    series: tuple[ImportedSeries, ...]
    verified: bool
    period_ns: int | None = None
    version: str | None = None
    unit: str | None = None
    started: datetime | None = None
    ended: datetime | None = None
    skips: bool = False
    machine: Mapping[str, str] = field(default_factory=dict)
    facts: Mapping[str, str] = field(default_factory=dict)
    doubts: tuple[Doubt, ...] = ()


class SourceFile:
    """A file being read: its text by lines, and errors that name the place."""

    def __init__(self, path: Path) -> None:
        self.path = path
        try:
            with TextIOWrapper(open_file(path), encoding="utf-8") as file:
                self.text = file.read()
        except UnicodeDecodeError:
            raise self.error("is not text", remedy="give the tool's own output file") from None
        except OSError as error:
            reason = (error.strerror or str(error)).lower()
            raise self.error(f"cannot be read: {reason}", remedy="give the path of a file") from None

    @property
    def lines(self) -> list[str]:
        """The lines without their ends."""
        return self.text.splitlines()

    @property
    def whole_lines(self) -> list[str]:
        """The lines of a tool that ends each of them; refused if the last one is cut."""
        if self.text and not self.text.endswith("\n"):
            lines = self.lines
            raise self.error("ends within a line", line=len(lines), value=lines[-1][:60], remedy=CUT)
        return self.lines

    def whole_numbers(self, columns: int, delimiter: str) -> Ints | None:
        """The rows after the header at once, shape (columns, rows); None unless all are whole numbers, whole
        lines and no later than MOST_NS: reading line by line then tells what is wrong, and where."""
        names = [str(column) for column in range(columns)]
        types = pa.schema([(name, pa.int64()) for name in names])
        if not self.text.endswith("\n") or "0x" in self.text.lower():  # Arrow takes hexadecimal ones too
            return None
        try:
            table = csv.read_csv(
                self.path,
                csv.ReadOptions(column_names=names, skip_rows=1),
                csv.ParseOptions(delimiter=delimiter, quote_char=False),
                csv.ConvertOptions(column_types=types, null_values=[]),
            )
        except pa.ArrowException:
            return None
        values = np.array([column.to_numpy() for column in table.columns], dtype=np.int64)
        return values if values.size and -MOST_NS <= values.min() <= values.max() <= MOST_NS else None

    def error(
        self,
        message: str,
        *,
        line: int | None = None,
        field: str | None = None,
        value: object = None,
        remedy: str | None = None,
    ) -> RtmeterError:
        """What is wrong, at a line (from 1)."""
        where = f"{self.path}:{line}" if line else str(self.path)
        return RtmeterError(message, where=where, field=field, value=value, remedy=remedy)

    def json(self) -> dict[str, Any]:
        """The file as a JSON object; NaN and infinities are refused. A mean of nothing, which C prints as
        ``-nan``, is null: no reader looks at means."""

        def no_number(name: str) -> float:
            key = re.search(rf'"([^"]+)"\s*:\s*{re.escape(name)}', self.text)
            field, remedy = key and key[1], "the file is damaged: measure again"
            raise self.error("is not a number", field=field, value=name, remedy=remedy)

        try:
            found = json.loads(_NO_MEAN.sub(r"\1null", self.text), parse_constant=no_number)
        except json.JSONDecodeError as error:
            raise self.error(f"is not JSON: {error.msg}", line=error.lineno, remedy=CUT) from None
        except (ValueError, RecursionError) as error:  # a number of thousands of digits, brackets in brackets
            raise self.error(f"is not JSON that a tool writes: {error}", remedy=CUT) from None
        if not isinstance(found, dict):
            raise self.error("is not a JSON object", remedy=CUT)
        return found

    def section(self, document: Mapping[str, Any], key: str) -> dict[str, Any]:
        """An object within a JSON object; empty if it is not there."""
        found = document.get(key, {})
        if not isinstance(found, dict):
            raise self.error("is not a JSON object", field=key, value=found, remedy=CUT)
        return found

    def number(self, text: object, field: str, line: int | None = None) -> float:
        """A finite number."""
        try:
            return parse_number(str(text))
        except ValueError as error:
            raise self.error(error.args[0], line=line, field=field, value=text, remedy=CUT) from None

    def count(self, text: object, field: str, line: int | None = None) -> int:
        """A whole number, not negative."""
        number = self.number(text, field, line)
        if number < 0 or number != int(number):
            raise self.error("is not a count", line=line, field=field, value=text, remedy=CUT)
        self.check_counted(int(number), field, line)
        return int(number)

    def time_ns(
        self, text: object, unit_ns: int, field: str, line: int | None = None, *, signed: bool = False
    ) -> int:
        """A time in units of ``unit_ns``, as nanoseconds, of which there are only whole ones."""
        number = self.number(text, field, line)
        if unit_ns == 1 and number != int(number):
            raise self.error("is no whole number", line=line, field=field, value=text, remedy=CUT)
        time = round(number * unit_ns)
        if time < 0 and not signed:
            remedy = "this tool writes no negative times: the file is damaged, or its clock was set back"
            raise self.error("is negative", line=line, field=field, value=text, remedy=remedy)
        if abs(time) > MOST_NS:
            remedy = "a negative time wrapped around, or the unit is another: check the tool's options"
            raise self.error("is longer than a year", line=line, field=field, value=text, remedy=remedy)
        return time

    def period_ns(self, ns: float, field: str, value: object) -> int:
        """A period, which the file states as the ``value`` of ``field``."""
        if not 1 <= ns <= MOST_NS:
            raise self.error("is no period from 1 ns to a year", field=field, value=value, remedy=CUT)
        return round(ns)

    def check_counted(self, counted: int, field: str, line: int | None = None) -> None:
        """Refuses more values than a cell can have."""
        if counted > MOST_COUNTED:
            message = f"is not a count: it is larger than {MOST_COUNTED:,}"
            raise self.error(message, line=line, field=field, value=counted, remedy=CUT)

    def check_steps(self, samples: Ints) -> tuple[Doubt, ...]:
        """Refuses samples whose level jumps by more than any delay and stays, or that are early by as much:
        the clock was set. One that does not stay may have been a stall: that is a doubt."""
        found = list(steps(samples))
        largest = max(found, key=lambda step: abs(step.by_ns), default=None)
        told = next((step for step in found if step.stays), largest)
        said = [] if told is None else [f"steps by {about(abs(told.by_ns))} at about sample {told.at:,}"]
        early = int(samples.min(initial=0)) < -STEP_NS
        if early or (told and told.stays):
            message = " and ".join([*said, "is early by more than any delay" if early else "stays there"])
            remedy = "the clock was set: measure with CLOCK_MONOTONIC"
            raise self.error(message, field="latency", remedy=remedy)
        hint = "measure with CLOCK_MONOTONIC, which nobody sets"
        message = "the latency {}: a stall, or a clock that was set"
        return tuple(Doubt("stall_or_clock_set", message.format(step), hint) for step in said)


_NO_MEAN = re.compile(r'("avg": )-?nan\b')


def machine_of(system: Mapping[str, Any]) -> dict[str, str]:
    """Facts of the machine from what uname says, as JSON files of tools have it."""
    names = {"hostname": "nodename", "kernel": "release", "kernel_version": "version"}
    names |= {"architecture": "machine"}
    return {ours: str(system[theirs]) for ours, theirs in names.items() if theirs in system}


CUT = "the file is cut, damaged or of another tool: copy it again or measure again"


def histogram(
    source: SourceFile,
    bins: Mapping[int, int],
    unit_ns: int,
    *,
    name: str,
    total: int | None = None,
    over_from: int | None = None,
    smallest: int | None = None,
    largest: int | None = None,
) -> Histogram:
    """A histogram from counts by bin in units of ``unit_ns``, checked against what the tool says of it.

    ``total``: how many values there were, so that more of them are ``over_from`` or beyond; ``smallest``
    and ``largest`` value as the tool states them: a histogram that disagrees has mixed units.
    """
    used = sorted(edge for edge, count in bins.items() if count)
    edges = [("bin", edge) for edge in used[:1] + used[-1:]]
    for what, edge in [*edges, ("last bin", over_from), ("min", smallest), ("max", largest)]:
        if edge is not None and abs(edge) * unit_ns > MOST_NS:
            raise source.error("is beyond a year", field=f"{what} of {name}", value=edge, remedy=CUT)
    source.check_counted(max(sum(bins.values()), total or 0), f"values of {name}")
    inside = sum(bins.values())
    over = 0 if total is None else total - inside
    if over < 0:
        remedy = "the file was put together from two, or is damaged"
        raise source.error(
            f"has {inside:,} values, and its total is {total:,}", field=f"histogram of {name}", remedy=remedy
        )
    start = max(used[-1] + 1 if used else 0, over_from or 0)
    mixed = "units are mixed (the summary in another than the histogram), or the file was edited"
    if over and not used and smallest is not None and smallest < start:
        message = f"is empty below {start:,}, and the stated minimum is there"
        raise source.error(message, field=f"histogram of {name}", value=smallest, remedy=CUT)
    if used and smallest is not None and smallest > used[0]:
        message = f"begins at {used[0]:,}, below the stated minimum"
        raise source.error(message, field=f"histogram of {name}", value=smallest, remedy=mixed)
    if largest is not None and used and largest < used[-1]:
        message = f"reaches {used[-1]:,}, beyond the stated maximum"
        raise source.error(message, field=f"histogram of {name}", value=largest, remedy=mixed)
    if over and largest is not None and largest < start:
        message = f"has {over:,} values from {start:,} on, beyond the stated maximum"
        raise source.error(message, field=f"histogram of {name}", value=largest, remedy=mixed)
    if largest is not None and used and not over and largest > used[-1]:
        message = f"ends at {used[-1]:,}, below the stated maximum, and nothing lies beyond it"
        raise source.error(message, field=f"histogram of {name}", value=largest, remedy=mixed)
    return Histogram(
        lower_ns=np.array([edge * unit_ns for edge in used], dtype=np.int64),
        width_ns=unit_ns,
        counts=np.array([bins[edge] for edge in used], dtype=np.int64),
        over=over,
        over_from_ns=start * unit_ns,
        below_ns=None if largest is None else (largest + 1) * unit_ns,
    )
