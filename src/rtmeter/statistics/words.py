"""Numbers as findings say them: three significant digits and a unit."""

from __future__ import annotations

import math
from collections.abc import Sequence

MOST_TIMES = 1000.0
"""An end of an interval further than so many times from its middle says nothing more than that."""

_UNITS = ((3.6e12, "h"), (60e9, "min"), (1e9, "s"), (1e6, "ms"), (1e3, "us"))


def about(time_ns: float) -> str:
    """A time in the largest unit that leaves at least 1 before the point once rounded: ``71.2 us``."""
    for size, unit in _UNITS:
        if abs(time_ns) >= 0.9995 * size:
            return f"{_three(time_ns / size)} {unit}"
    return f"{time_ns:.0f} ns"


def in_one_unit(times_ns: Sequence[float]) -> tuple[str, list[str]]:
    """A unit for all times of a column, the largest in which the shortest above zero is 1 or more, and each
    in it."""
    shortest = min((time_ns for time_ns in times_ns if time_ns), default=0.0)
    size, unit = next((one for one in _UNITS if shortest >= 0.9995 * one[0]), (1.0, "ns"))
    return unit, [_three(time_ns / size) for time_ns in times_ns]


def times(ratio: float) -> str:
    """A factor: ``2.5 times``."""
    return f"{ratio:.1f} times" if ratio < 100 else "more than a hundred times"


def multiple(value: float, middle: float = math.nan, sign: str = "x") -> str:
    """A quotient: ``x 0.375``. Of an end of an interval no more than a thousandth or the thousandfold of its
    ``middle``: ``< x 0.000375``; so wide an interval says nothing more. Empty if it is not known."""
    if math.isnan(value):
        return ""
    least, most = middle / MOST_TIMES, middle * MOST_TIMES
    beyond = "< " if value < least else "> " if value > most else ""
    value = least if value < least else most if value > most else value
    return f"{beyond}{sign}{' ' if sign else ''}{value:.3g}"


def moment(release: int, period_ns: int) -> str:
    """A point or length of a run: ``1.5 s (1,500 releases)``."""
    return f"{about(release * period_ns)} ({release:,} releases)"


def _three(value: float) -> str:
    digits = 2 if abs(value) < 10 else 1 if abs(value) < 100 else 0
    text = f"{value:,.{digits}f}"
    return text.rstrip("0").rstrip(".") if "." in text else text
