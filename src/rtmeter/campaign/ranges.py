"""Values of an option in one line: ``16B..8MiB``, ``10..10kHz``, ``16B..8MiB/5``, ``500,128KiB``."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Mapping

from rtmeter.campaign.beside_options import BESIDE
from rtmeter.errors import RtmeterError
from rtmeter.values import format_duration, parse_count, parse_hertz, parse_positive_ns, parse_size_bytes

NS_PER_S = 1_000_000_000

COUNTED = tuple(BESIDE)
"""How many there are beside the two ends of a round trip, each kind by its option."""

SWEPT: Mapping[str, Callable[[object], int]] = {
    "payload": parse_size_bytes,
    "period": parse_positive_ns,
    "rate": parse_hertz,
    "participants": parse_count,
    **dict.fromkeys(COUNTED, parse_count),
}
"""What may be a range, and how an end of it is read: bytes, nanoseconds, Hz, a number."""

SEARCHED: Mapping[str, str] = {
    "rate": "10Hz..10kHz",
    "payload": "16B..8MiB",
    **{name: f"{least}..16" for name, least in BESIDE.items()},
}
"""What `plan --find-max` searches for, and where, unless it is said."""

_SIZES_APART = 4
_OF_A_DECADE = (1, 2, 5)
_MOST_VALUES = 1000


def is_range(text: object) -> bool:
    """Whether it says several values."""
    return isinstance(text, str) and (".." in text or "," in text)


def ends(name: str, text: str) -> tuple[int, int]:
    """The ends of ``16B..8MiB``. Raises RtmeterError naming the option."""
    first, dots, last = text.partition("..")
    if not dots:
        raise _refused(name, text, "is no range", "write e.g. 16B..8MiB, or 10..10kHz")
    low, high = _one(name, first, text), _one(name, last, text)
    least = min(1, BESIDE.get(name, 1))
    if low < least:
        raise _refused(name, text, f"begins at {low:,}", f"begin at {least}")
    if low >= high:
        raise _refused(name, text, "does not go up", "write the lower end first")
    return low, high


def values_of(name: str, text: str) -> list[int]:
    """All values that the text says, going up: both ends, and between them 1, 2 and 5 of each decade (sizes:
    each four times the one before); with ``/N`` as many values at equal ratios. Raises RtmeterError."""
    if ".." not in text:
        return sorted({_one(name, part, text) for part in text.split(",")})
    span, slash, count = text.partition("/")
    low, high = ends(name, span)
    if slash:
        if not re.fullmatch(r"\s*\d{1,9}\s*", count) or not 2 <= int(count) <= _MOST_VALUES:
            raise _refused(name, text, "says no number of values", "write e.g. 16B..8MiB/5, with 2 or more")
        if low == 0:
            raise _refused(name, text, "has no equal ratios from 0 on", "begin at 1, or leave /N out")
        ratios = (step / (int(count) - 1) for step in range(int(count)))
        values = sorted({round(low * (high / low) ** ratio) for ratio in ratios})
        if len(values) < int(count):
            remedy = f"ask for {len(values)} values or fewer, or for ends that lie further apart"
            raise _refused(name, text, f"has no {int(count)} values", remedy)
        return values
    if name == "payload":
        steps = range(math.ceil(math.log(high / low, _SIZES_APART)))
        return [*(low * _SIZES_APART**step for step in steps), high]
    decades = range(len(str(low)) - 1, len(str(high)))
    between = [digit * 10**decade for decade in decades for digit in _OF_A_DECADE]
    return [low, *(value for value in between if low < value < high), high]


def value_of(name: str, text: str) -> int:
    """The one value that the text says. Raises RtmeterError naming the option."""
    return _one(name, text, text)


def option_of(name: str, value: int) -> tuple[str, str]:
    """The option of a cell that says it, and as what: a rate is a period."""
    if name == "payload":
        return name, f"{value}B"
    if name == "participants" or name in COUNTED:
        return name, str(value)
    return "period", format_duration(round(NS_PER_S / value) if name == "rate" else value)


def in_words(name: str, value: int) -> str:
    """The value with its unit: ``64 KiB``, ``500 Hz``, ``2ms``."""
    if name == "payload":
        unit = next((u for u in ((2**20, "MiB"), (2**10, "KiB")) if value >= u[0] and not value % u[0]), None)
        return f"{value // unit[0]:,} {unit[1]}" if unit else f"{value:,} B"
    if name == "participants" or name in COUNTED:
        return f"{value:,}"
    return f"{value:,} Hz" if name == "rate" else format_duration(value)


def named(name: str) -> str:
    """What is looked for the largest of, in words: ``number of subscribers``, ``rate``."""
    return f"number of {name.replace('_', ' ')}" if name in COUNTED else name


def _one(name: str, text: str, whole: str) -> int:
    try:
        return SWEPT[name](text.strip())
    except ValueError as error:
        message, remedy = error.args
        raise _refused(name, whole, message, remedy) from None


def _refused(name: str, text: str, message: str, remedy: str) -> RtmeterError:
    return RtmeterError(message, field=f"--{name}", value=text, remedy=remedy)
