"""rtla timerlat hist and rtla osnoise hist: a row a bin, a column a CPU and context, then totals."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping

from rtmeter.importers.base import CUT, US, Imported, ImportedSeries, SourceFile, histogram
from rtmeter.model import Doubt

_CONTEXTS = {"IRQ": "interrupt", "Thr": "thread", "Usr": "user thread", "CPU": "noise"}
_UNITS = {"nanoseconds": 1, "microseconds": US}
_ASSUMED = "rtla does not state its bucket size: {} are taken, the widest that fits its rows"
_SUMMARY = ("over", "count", "min", "avg", "max")
_NEEDED = ("over", "count", "min", "max")


def read(source: SourceFile) -> Imported:
    """The standard output of ``rtla timerlat hist`` or ``rtla osnoise hist``."""
    lines = source.whole_lines
    titles = [match for line in lines if (match := re.match(r"# RTLA (\w+) histogram", line))]
    units = re.findall(r"^# Time unit is (\w+)", source.text, re.MULTILINE)
    if not titles or not units:
        raise source.error("is no histogram of rtla, or has no header", remedy="run rtla without --no-header")
    if len(titles) > 1:
        remedy = "import the output of one run at a time"
        raise source.error(f"has {len(titles)} histograms ({', '.join(units)})", remedy=remedy)
    tool, unit = titles[0][1], units[0]
    if tool not in ("timerlat", "osnoise") or unit not in _UNITS:
        raise source.error("is not known", field="histogram", value=f"{tool} in {unit}", remedy=CUT)
    columns: list[str] = []
    rows: dict[int, list[str]] = {}
    stated: dict[str, list[str]] = {}
    for number, line in enumerate(lines, 1):
        words = line.split()
        if line.startswith("Index"):
            columns = words[1:]
        elif line.startswith("ALL:"):
            break
        elif words and words[0].rstrip(":") in _SUMMARY and words[0].endswith(":"):
            stated[words[0][:-1]] = words[1:]
        elif words and columns and words[0].isdigit():
            if len(words) != len(columns) + 1:
                raise source.error("has another number of columns than the header", line=number, remedy=CUT)
            rows[int(words[0])] = words[1:]
    if not columns or not stated:
        raise source.error("has no index or no totals", remedy="run rtla without --no-index and --no-summary")
    if lacking := [what for what in _NEEDED if what not in stated]:
        raise source.error(f"has no line {lacking[0]}", field="histogram", remedy=CUT)
    for what, words in stated.items():
        if len(words) != len(columns):
            raise source.error("has another number of columns than the header", field=what, remedy=CUT)
    edges = sorted(rows)
    width = _width(source, edges, stated)
    series: list[ImportedSeries] = []
    for column, label in enumerate(columns):
        name = _name(label)
        bins = {edge // width: source.count(rows[edge][column], f"bin {edge} of {name}") for edge in edges}
        over = source.count(stated["over"][column], f"over of {name}")
        largest = _stated(source, stated, "max", column, width, name)
        if width > 1 and bins and largest is not None and largest <= max(bins):
            # The widest that fits may reach beyond the last bucket: so far all lies within it.
            bins[max(bins)] += over
            over = 0
        found = histogram(
            source,
            bins,
            width * _UNITS[unit],
            name=name,
            total=sum(bins.values()) + over,
            over_from=max(edges, default=-width) // width + 1,  # all columns have as many buckets
            largest=largest,
            smallest=_stated(source, stated, "min", column, width, name),
        )
        counted = stated["count"]
        if source.count(counted[column], f"count of {name}") != found.n:
            message = f"has {found.n:,} values, and its count is {counted[column]}"
            raise source.error(message, field=f"histogram of {name}", remedy=CUT)
        series.append(ImportedSeries(name, histogram=found))
    duration = re.search(r"^# Duration: (.*)$", source.text, re.MULTILINE)
    return Imported(
        f"rtla {tool}",
        "timer latency" if tool == "timerlat" else "noise in a period",
        tuple(series),
        verified=True,
        unit=unit,
        skips=tool == "timerlat",
        doubts=() if width == 1 else (Doubt("bucket_assumed", _ASSUMED.format(f"{width} {unit}"), ""),),
        facts={"duration": duration[1].strip()} if duration else {},
    )


def _width(source: SourceFile, edges: list[int], stated: Mapping[str, list[str]]) -> int:
    """The bucket size, which the output does not state: the widest that fits, the greatest common divisor of
    all edges. If all is in the first bucket it is as wide as the largest value needs."""
    largest = [source.count(word, "max") for word in stated["max"] if word != "-"]
    return math.gcd(*edges) or max(largest, default=0) + 1


def _stated(
    source: SourceFile, stated: dict[str, list[str]], what: str, column: int, width: int, name: str
) -> int | None:
    words = stated[what]
    if words[column] == "-":
        return None
    return source.count(words[column], f"{what} of {name}") // width


def _name(label: str) -> str:
    context, _, cpu = label.partition("-")
    return f"CPU {int(cpu)} {_CONTEXTS.get(context, context)}" if cpu.isdigit() else label
