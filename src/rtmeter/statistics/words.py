"""Numbers as findings say them: three significant digits and a unit."""

from __future__ import annotations

from collections.abc import Sequence

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


def moment(release: int, period_ns: int) -> str:
    """A point or length of a run: ``1.5 s (1,500 releases)``."""
    return f"{about(release * period_ns)} ({release:,} releases)"


def _three(value: float) -> str:
    digits = 2 if abs(value) < 10 else 1 if abs(value) < 100 else 0
    text = f"{value:,.{digits}f}"
    return text.rstrip("0").rstrip(".") if "." in text else text
