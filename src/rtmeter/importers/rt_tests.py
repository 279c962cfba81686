"""cyclictest and oslat of rt-tests: JSON, and cyclictest's histogram as text."""

from __future__ import annotations

import re
from collections.abc import Mapping
from datetime import datetime
from email.utils import parsedate_to_datetime
from typing import Any

from rtmeter.importers.base import CUT, US, Imported, ImportedSeries, SourceFile, histogram, machine_of
from rtmeter.model import Doubt

FILE_VERSION = 1
NEWER = "use a later rtmeter, or rt-tests 2.x"


def read_json(source: SourceFile) -> Imported:
    """``cyclictest --json`` or ``oslat --json``."""
    document = source.json()
    version = document.get("file_version")
    if isinstance(version, bool) or version != FILE_VERSION:
        raise source.error(
            "is a version that is not known", field="file_version", value=version, remedy=NEWER
        )
    command = str(document.get("cmdline:", document.get("cmdline", "")))
    tool = command.partition(" ")[0].rpartition("/")[2]
    threads = source.section(document, "thread")
    if not threads or tool not in ("cyclictest", "oslat"):
        raise source.error(
            "is neither of cyclictest nor of oslat", field="cmdline", value=command, remedy=CUT
        )
    read = _oslat if tool == "oslat" else _cyclictest
    in_ns = document.get("resolution_in_ns", 0)
    if isinstance(in_ns, bool) or in_ns not in (0, 1):
        raise source.error("is neither 0 nor 1", field="resolution_in_ns", value=in_ns, remedy=NEWER)
    unit_ns = 1 if in_ns else US
    series = [
        read(source, f"thread {name}", source.section(threads, name), command, unit_ns) for name in threads
    ]
    quantity = "gap between two readings of a busy loop" if tool == "oslat" else "wake-up latency"
    return Imported(
        tool=tool,
        quantity=quantity,
        series=tuple(series),
        verified=True,
        period_ns=None if tool == "oslat" else _interval_ns(source, command),
        version=str(document.get("rt_test_version:", document.get("rt_test_version", ""))) or None,
        unit="ns" if unit_ns == 1 else "us",
        machine=machine_of(source.section(document, "sysinfo")),
        started=_time(source, document, "start_time"),
        ended=_time(source, document, "end_time"),
        facts={"command": command},
        skips=tool == "cyclictest",
    )


def _time(source: SourceFile, document: Mapping[str, Any], key: str) -> datetime | None:
    """A time as RFC 5322 has it, if it is there."""
    text = document.get(key)
    try:
        return None if text is None else parsedate_to_datetime(str(text))
    except ValueError:
        raise source.error("is no date", field=key, value=text, remedy=CUT) from None


def _cyclictest(
    source: SourceFile, name: str, thread: Mapping[str, Any], command: str, unit_ns: int
) -> ImportedSeries:
    cycles = source.count(thread.get("cycles"), f"cycles of {name}")
    bins = _bins(source, name, thread)
    over_from = _option(source, command, "histogram", "h") or _option(source, command, "histofall", "H")
    if not bins and cycles and over_from is None:
        remedy = "run cyclictest with -h as well, so that the file has a histogram"
        raise source.error("has no histogram", field=name, remedy=remedy)
    found = histogram(
        source,
        bins,
        unit_ns,
        name=name,
        total=cycles,
        over_from=over_from,
        smallest=source.count(thread.get("min"), f"min of {name}"),
        largest=source.count(thread.get("max"), f"max of {name}"),
    )
    return ImportedSeries(name, histogram=found)


def _oslat(
    source: SourceFile, name: str, thread: Mapping[str, Any], _command: str, _unit_ns: int
) -> ImportedSeries:
    """Bin k holds what took from k - 1 to k microseconds, the last one all that took longer."""
    bins = {edge - 1: count for edge, count in _bins(source, name, thread).items()}
    largest = source.count(thread.get("max"), f"max of {name}") - 1
    total = sum(bins.values())
    last = max(bins, default=0)
    if not bins and largest >= 0:
        message = "is empty, and the stated maximum is not 0"
        raise source.error(message, field=f"histogram of {name}", value=largest + 1, remedy=CUT)
    if largest > last:
        del bins[last]
    found = histogram(source, bins, US, name=name, total=total, over_from=last, largest=largest)
    return ImportedSeries(name, histogram=found)


def _bins(source: SourceFile, name: str, thread: Mapping[str, Any]) -> dict[int, int]:
    bins = thread.get("histogram")
    if not isinstance(bins, dict):
        raise source.error("has no histogram", field=name, remedy=CUT)
    return {
        source.count(edge, f"bin of {name}"): source.count(count, f"bin {edge} of {name}")
        for edge, count in bins.items()
    }


def read_histogram(source: SourceFile) -> Imported:
    """What ``cyclictest -h``, ``-H`` or ``--histfile`` writes: a row a bin, a column a thread, and lines
    of totals. Of ``-H`` the last column is the sum over the threads and is left out."""
    rows: dict[int, list[int]] = {}
    stated: dict[str, list[int]] = {}
    for number, line in enumerate(source.whole_lines, 1):
        if match := re.match(r"# (Total|Min Latencies|Max Latencies|Histogram Overflows): *(.*)", line):
            stated[match[1]] = [source.count(word, match[1], number) for word in match[2].split()]
        elif line and not line.startswith(("#", "T:", "policy:")):
            text, *counts = line.split()
            edge = source.count(text, "bin", number)
            if rows and edge <= next(reversed(rows)):
                remedy = "the file was put together from two: import one run at a time"
                raise source.error("comes again", line=number, field="bin", value=text, remedy=remedy)
            rows[edge] = [source.count(count, f"bin {text}", number) for count in counts]
    least, most, over = (stated.get(key) for key in ("Min Latencies", "Max Latencies", "Histogram Overflows"))
    if not rows or least is None or most is None or over is None:
        raise source.error("is no histogram of cyclictest, or is cut", remedy=CUT)
    threads = len(least)
    for what, numbers in (stated | {f"bin {edge}": counts for edge, counts in rows.items()}).items():
        if len(numbers) not in (threads, threads + 1):
            message = f"has not one number for each thread, of which there are {threads}"
            raise source.error(message, field=what, value=numbers, remedy=CUT)
    series: list[ImportedSeries] = []
    for thread in range(threads):
        name, bins = f"thread {thread}", {edge: counts[thread] for edge, counts in rows.items()}
        total = sum(bins.values()) + over[thread]
        if "Total" in stated and stated["Total"][thread] != sum(bins.values()):
            message = f"has {sum(bins.values()):,} values, and its total is {stated['Total'][thread]:,}"
            raise source.error(message, field=f"histogram of {name}", remedy=CUT)
        found = histogram(
            source,
            bins,
            US,
            name=name,
            total=total,
            over_from=max(rows) + 1,
            smallest=least[thread] if sum(bins.values()) else None,
            largest=most[thread],
        )
        series.append(ImportedSeries(name, histogram=found))
    return Imported(
        "cyclictest", "wake-up latency", tuple(series), verified=True, skips=True, doubts=(_UNIT,)
    )


_UNIT = Doubt(
    "unit_assumed",
    "a histogram as text does not say its unit: microseconds are taken",
    "of a run with --nsecs import the file that --json writes",
)


def _interval_ns(source: SourceFile, command: str) -> int:
    """The period of all threads of a run with a histogram: ``-i``, 1 ms by default."""
    interval_us = _option(source, command, "interval", "i") or 1000
    return source.period_ns(interval_us * US, "--interval", interval_us)


_OPTION = re.compile(
    r"(?<!\S)(?:-[mMNqrRsSuvx]*(?P<short>[a-zA-Z])\s*|--(?P<long>[a-z]+)[= ])(?P<number>\d+)"
)


def _option(source: SourceFile, command: str, long: str, short: str) -> int | None:
    """The last number given for an option, also for the beginning of its name (``--inter=200``), and behind
    letters that take none (``-mqi200``)."""
    found = [
        option["number"]
        for option in _OPTION.finditer(command)
        if option["short"] == short or (option["long"] and long.startswith(option["long"]))
    ]
    return source.count(found[-1], f"--{long}") if found else None
