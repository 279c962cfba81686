"""The gnuplot logs of the 2014 ROS 1 timer tests: a histogram in microseconds after lines of comment.

Early values follow as comments of their own (``#-000003``), truncated towards zero; those of less than a
microsecond are in no row. Later versions of the tool put a gnuplot script before the
data and ``end`` after them.
"""

from __future__ import annotations

import re

from rtmeter.importers.base import CUT, US, Imported, ImportedSeries, SourceFile, histogram
from rtmeter.model import Doubt

_ROW = re.compile(r"(?P<early>#-)?(?P<bin>\d{6,})\s+(?P<count>\d+)")
_STATED = re.compile(
    r"# (?P<what>Measured|Reported|Difference).*MIN:\s*(?P<MIN>-?\d+)us.*MAX:\s*(?P<MAX>-?\d+)us"
)
_EARLY = "{:,} values are in no row: taken for early by less than a microsecond, which the tool leaves out"


def read(source: SourceFile) -> Imported:
    """One of the logs; which of the three quantities it holds is told by its minimum and maximum."""
    bins: dict[int, int] = {}
    stated: dict[str, tuple[int, int]] = {}
    for number, line in enumerate(source.whole_lines, 1):
        if match := _ROW.fullmatch(line.strip()):
            edge = source.count(match["bin"], "bin", number) * (-1 if match["early"] else 1)
            if edge in bins:
                remedy = "the file was put together from two: import one at a time"
                raise source.error("comes twice", line=number, field="bin", value=edge, remedy=remedy)
            bins[edge] = source.count(match["count"], f"bin {edge}", number)
        elif match := _STATED.match(line):
            least, most = (
                source.time_ns(match[end], US, f"{match['what']} {end}", number, signed=True) // US
                for end in ("MIN", "MAX")
            )
            stated[match["what"].lower()] = (least, most)
    if not bins or not stated:
        raise source.error("is no log of the 2014 timer tests", remedy=CUT)
    loops = re.search(r"(?:LoopLength:|loop length of)\s*(\d+)", source.text)
    timeout = re.search(r"(?:Timeout:|timeout of)\s*(\d+)\s*us", source.text)
    length = source.count(loops[1], "LoopLength") if loops else sum(bins.values())
    missing = length - sum(bins.values())
    used = [edge for edge, count in bins.items() if count] + [0] * (missing > 0)
    if not used:
        raise source.error("has no values", remedy=CUT)
    least, most = min(used), max(used)
    names = [what for what, found in stated.items() if found == (least, most)]
    # Early versions take the first difference, negated, for an extreme at first: its rows may reach too far.
    if min(bins) < 0 and stated.get("difference") == (min(bins), max(bins)) and not names:
        names = ["difference"]
    if not names:
        message = f"reaches from {least} to {most} us, which is no stated minimum and maximum"
        remedy = "units are mixed (the summary in another than the histogram), or the file was edited"
        raise source.error(message, field="histogram", remedy=remedy)
    # Truncation towards zero makes -3 hold what lies in (-4, -3], a bin lower than its name says; and what
    # lies in (-1, 0) is in no row at all.
    shifted = {edge - 1 if edge < 0 else edge: count for edge, count in bins.items()}
    doubts: list[Doubt] = []
    if missing:
        message = f"has {sum(bins.values()):,} values, and its loop length is {length}"
        if missing < 0 or len(bins) != max(bins) - min(least, *bins) + 1:
            raise source.error(message, field="histogram", remedy=CUT)
        shifted[-1] = missing
        doubts.append(Doubt("early_assumed", _EARLY.format(missing), ""))
    if len(names) > 1:
        message = f"minimum and maximum are those of {' and of '.join(names)}: {names[0]} is taken"
        doubts.append(Doubt("quantity_assumed", message, ""))
    largest = max(edge for edge, count in shifted.items() if count)
    found = histogram(source, shifted, US, name=names[0], largest=largest)
    return Imported(
        "ros_realtime_tests",
        f"{names[0]} latency of a one-shot timer",
        (ImportedSeries(names[0], histogram=found),),
        verified=False,
        period_ns=source.period_ns(float(timeout[1]) * US, "Timeout", timeout[1]) if timeout else None,
        unit="us",
        facts={"loops": loops[1]} if loops else {},
        doubts=tuple(doubts),
    )
