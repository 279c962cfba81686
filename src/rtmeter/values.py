"""Values as people write them: ``10ms``, ``128KiB``, ``fifo:80``, CPUs ``0,2-3``; and written back.

Each parser takes text (or what YAML made of it) and raises ``ValueError(message, remedy)``.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from fractions import Fraction
from functools import cache
from typing import Any, Self

_NS = {"ns": 1, "us": 10**3, "µs": 10**3, "ms": 10**6, "s": 10**9, "min": 60 * 10**9, "h": 3600 * 10**9}
_BYTES = {"B": 1, "kB": 10**3, "MB": 10**6, "GB": 10**9, "KiB": 2**10, "MiB": 2**20, "GiB": 2**30}
_HERTZ = {"Hz": 1, "kHz": 10**3, "MHz": 10**6}
_BITS_PER_S = {"bit/s": 1, "kbit/s": 10**3, "Mbit/s": 10**6, "Gbit/s": 10**9}
_QUANTITY = re.compile(r"\s*(\d{1,99}(?:\.\d{1,99})?)\s*([A-Za-zµ]*(?:/s)?)\s*")
"""No more digits than a float has room for, and than Python makes a number of."""
_NUMBER = re.compile(r"[+-]?(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][+-]?[0-9]+)?")
_LONGEST_NS = 366 * 24 * _NS["h"]
_LARGEST_BYTES = 2**40
_MOST_COUNTED = 1_000_000
_FASTEST_HERTZ = 10**6
_FASTEST_BITS_PER_S = 10**12

DURATION_REMEDY = "write it with its unit, e.g. 10ms, 400us, 1.5s, 10min, 24h"
SHARE_REMEDY = "write it like 0.95 or 95%"
SIZE_REMEDY = "write it like 500, 500B, 128KiB or 8MiB"
HERTZ_REMEDY = "write it like 500, 500Hz or 10kHz"
RATE_REMEDY = "write it like 40Mbit/s, 500kbit/s or 1Gbit/s"
SCHEDULING_REMEDY = "write other, fifo:80, rr:80 or deadline:100us/1ms/1ms (runtime/deadline/period)"
CPUS_REMEDY = "write CPU numbers like 1 or 0,2-3"


def _quantity(value: object, units: dict[str, int], no_unit: int | None, remedy: str) -> int:
    if isinstance(value, bool) or not isinstance(value, int | float | str):
        raise ValueError("is neither a number nor text", remedy)
    match = _QUANTITY.fullmatch(str(value))
    if match is None:
        below = str(value).startswith("-") and _QUANTITY.fullmatch(str(value)[1:])
        raise ValueError("is below zero" if below else "is not a number with a unit", remedy)
    number, unit = Fraction(match[1]), match[2]
    if not unit and number == 0:
        return 0
    factor = no_unit if not unit else units.get(unit)
    if factor is None:
        raise ValueError("has no unit" if not unit else f"has the unknown unit {unit!r}", remedy)
    exact = number * factor
    if exact.denominator != 1:
        raise ValueError(f"is not a whole number of {next(iter(units))}", remedy)
    return exact.numerator


def parse_duration_ns(value: object) -> int:
    """``10ms`` → 10,000,000; at most a year; a bare number other than 0 is refused."""
    if period := _period_of_rate(value):
        raise ValueError("is a rate, not a time", f"write its period, {period}")
    ns = _quantity(value, _NS, None, DURATION_REMEDY)
    if ns > _LONGEST_NS:
        raise ValueError("is longer than a year", "give a shorter time")
    return ns


def _period_of_rate(value: object) -> str | None:
    """Of what is written as a rate: ``500Hz`` → ``2ms``."""
    match = _QUANTITY.fullmatch(str(value))
    if match is None or match[2] not in _HERTZ or not (hertz := Fraction(match[1]) * _HERTZ[match[2]]):
        return None
    return format_duration(max(round(_NS["s"] / hertz), 1))


def parse_positive_ns(value: object) -> int:
    """A duration above zero."""
    ns = parse_duration_ns(value)
    if ns == 0:
        raise ValueError("must be longer than zero", DURATION_REMEDY)
    return ns


def parse_share(value: object) -> object:
    """``95%`` → 0.95; what has no percent sign is a number already, or is refused as none later."""
    if not isinstance(value, str) or not value.rstrip().endswith("%"):
        return value
    match = _QUANTITY.fullmatch(value.rstrip().removesuffix("%"))
    if match is None or match[2]:
        raise ValueError("is no share", SHARE_REMEDY)
    return float(Fraction(match[1]) / 100)


def parse_size_bytes(value: object) -> int:
    """``128KiB`` → 131,072; a bare number is bytes."""
    size = _quantity(value, _BYTES, 1, SIZE_REMEDY)
    if size > _LARGEST_BYTES:
        raise ValueError("is more than 1 TiB", SIZE_REMEDY)
    return size


def parse_hertz(value: object) -> int:
    """``10kHz`` → 10,000; a bare number is Hz."""
    hertz = _quantity(value, _HERTZ, 1, HERTZ_REMEDY)
    if not 1 <= hertz <= _FASTEST_HERTZ:
        raise ValueError("is not from 1 Hz to 1 MHz", HERTZ_REMEDY)
    return hertz


def parse_number(text: str) -> float:
    """``-1.5e3`` → -1500.0: finite, as C and JSON write it, without Python's 1_000."""
    written = _NUMBER.fullmatch(text.strip())
    number = float(written[0]) if written else math.nan
    if not math.isfinite(number):
        raise ValueError("is not a number", "write it like 5, 0.5 or 1e-6")
    return number


def parse_count(value: object) -> int:
    """``20`` → 20: a whole number."""
    text = str(value).strip()
    if not re.fullmatch(r"\d{1,99}", text) or int(text) > _MOST_COUNTED:
        raise ValueError(f"is no whole number up to {_MOST_COUNTED:,}", "write e.g. 2..50, or 2,10,50")
    return int(text)


def parse_rate(value: object) -> int:
    """``40Mbit/s`` → 40,000,000 bit/s; a bare number other than 0 is refused."""
    rate = _quantity(value, _BITS_PER_S, None, RATE_REMEDY)
    if rate > _FASTEST_BITS_PER_S:
        raise ValueError("is more than 1000 Gbit/s", RATE_REMEDY)
    return rate


def parse_cpus(value: object) -> tuple[int, ...]:
    """``0,2-3`` → (0, 2, 3), sorted, each once."""
    cpus: set[int] = set()
    for part in str(value).split(","):
        match = re.fullmatch(r"\s*(\d{1,4})(?:-(\d{1,4}))?\s*", part)
        if match is None or isinstance(value, bool):
            raise ValueError("is not a list of CPU numbers", CPUS_REMEDY)
        first, last = int(match[1]), int(match[2] or match[1])
        if last < first:
            raise ValueError(f"has the empty range {part.strip()}", CPUS_REMEDY)
        cpus.update(range(first, last + 1))
    return tuple(sorted(cpus))


def parse_option_text(value: object) -> str:
    """An adapter option's value as text; YAML's numbers and booleans are taken as they are written."""
    if isinstance(value, bool):
        return str(value).lower()
    if not isinstance(value, int | float | str):
        raise ValueError("is neither text nor a number", "give one value")
    return str(value)


def parse_shared_clock(value: object) -> str:
    """``tai``, or the device of a PTP hardware clock."""
    if value == "tai" or (isinstance(value, str) and value.startswith("/dev/")):
        return str(value)
    raise ValueError("is no clock that hosts share", "give tai, or a PTP hardware clock, e.g. /dev/ptp0")


def format_duration(ns: int) -> str:
    """The shortest exact way to write a duration: 1,500,000 → ``1.5ms``."""
    for unit in ("h", "min"):
        if ns and ns % _NS[unit] == 0:
            return f"{ns // _NS[unit]}{unit}"
    unit = next((u for u in ("s", "ms", "us") if abs(ns) >= _NS[u]), "ns")
    if ns == 0:
        return "0s"
    whole, rest = divmod(abs(ns), _NS[unit])
    digits = len(str(_NS[unit])) - 1
    fraction = f"{rest:0{digits}}".rstrip("0") if rest else ""
    return f"{'-' if ns < 0 else ''}{whole}{'.' + fraction if fraction else ''}{unit}"


def as_json(value: Any) -> Any:
    """The value as JSON can hold it: mappings and lists, null for what is infinite or no number."""
    if isinstance(value, Mapping):
        return {key: as_json(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [as_json(item) for item in value]
    return None if isinstance(value, float) and not math.isfinite(value) else value


def without_repeat(cell_id: str, axes: Mapping[str, Any]) -> str:
    """The id that all repeats of a cell share: ``wakeup-posix`` of ``wakeup-posix-r2``."""
    return cell_id.removesuffix(f"-r{axes['repeat']}") if "repeat" in axes else cell_id


def format_cpus(cpus: Iterable[int]) -> str:
    """CPUs as they are written: (0, 2, 3) → ``0,2-3``."""
    text, ordered = "", sorted(cpus)
    for n, cpu in enumerate(ordered):
        follows = n > 0 and ordered[n - 1] == cpu - 1
        goes_on = n + 1 < len(ordered) and ordered[n + 1] == cpu + 1
        if not follows:
            text += f",{cpu}" if text else str(cpu)
        elif not goes_on:
            text += f"-{cpu}"
    return text


def cpu_mask(cpus: Iterable[int]) -> str:
    """CPUs as the kernel reads a mask: hexadecimal, 32 at a time."""
    bits = sum(1 << cpu for cpu in cpus)
    words: list[str] = []
    while bits or not words:
        words.append(f"{bits & 0xFFFF_FFFF:08x}")
        bits >>= 32
    return ",".join(reversed(words))


def slug(text: str) -> str:
    """The text as a file name: other characters than letters, digits, ``.``, ``_`` become ``-``."""
    return re.sub(r"[^A-Za-z0-9._]+", "-", text).strip("-.")


def visible(text: str) -> str:
    """The text with what a terminal would heed (control and formatting characters) as escapes."""
    if text.isprintable():
        return text
    return "".join(c if c.isprintable() else c.encode("unicode_escape").decode() for c in text)


_HEEDED = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f\u200e\u200f\u202a-\u202e\u2066-\u2069]")


def utc(text: str) -> datetime:
    """A time, or a day's beginning, in ISO 8601; UTC if it does not say of where. Raises ValueError if it is
    none, or lies before the year 1 or after 9999."""
    time = datetime.fromisoformat(text)
    try:
        return time.astimezone(UTC) if time.tzinfo else time.replace(tzinfo=UTC)
    except OverflowError as error:
        raise ValueError(str(error)) from None


def from_json(text: str | bytes) -> Any:
    """What JSON of somebody else's says. Raises ValueError, also where brackets lie too deep in brackets."""
    try:
        return json.loads(text)
    except RecursionError:
        raise ValueError("brackets in too many brackets") from None


def harmless(content: Any) -> Any:
    """JSON of somebody else's with every text that a terminal would heed, or show in another order, told by
    escapes; lines stay lines."""
    if isinstance(content, str):
        return _HEEDED.sub(lambda found: visible(found[0]), content) if not content.isprintable() else content
    if isinstance(content, dict):
        return {harmless(key): harmless(value) for key, value in content.items()}
    if isinstance(content, list):
        return [harmless(value) for value in content]
    return content


@dataclass(frozen=True, slots=True)
class Scheduling:
    """A scheduling policy: ``other``, ``fifo``, ``rr`` with a priority, ``deadline`` with its times."""

    policy: str
    priority: int = 0
    runtime_ns: int = 0
    deadline_ns: int = 0
    period_ns: int = 0

    def __str__(self) -> str:
        if self.policy == "deadline":
            times = (self.runtime_ns, self.deadline_ns, self.period_ns)
            return "deadline:" + "/".join(format_duration(t) for t in times)
        return f"{self.policy}:{self.priority}" if self.policy in ("fifo", "rr") else self.policy

    @property
    def rank(self) -> int:
        """Orders as the scheduler does: deadline above fifo and rr by priority, above the rest."""
        return 100 if self.policy == "deadline" else self.priority if self.policy in ("fifo", "rr") else 0

    @classmethod
    def from_probe(cls, given: Mapping[str, Any]) -> Self:
        """From what a probe says is in effect."""
        numbers = ("priority", "runtime_ns", "deadline_ns", "period_ns")
        return cls(str(given.get("policy")), **{key: given.get(key) or 0 for key in numbers})

    def to_probe(self) -> dict[str, Any]:
        """As the probe config has it (spec/probe.md)."""
        keys = {
            "fifo": ("priority",),
            "rr": ("priority",),
            "deadline": ("runtime_ns", "deadline_ns", "period_ns"),
        }
        return {"policy": self.policy} | {k: getattr(self, k) for k in keys.get(self.policy, ())}


def parse_scheduling(value: object) -> Scheduling:
    """``other``, ``fifo:P``, ``rr:P`` (1 to 99) or ``deadline:R/D/P`` with R ≤ D ≤ P."""
    if isinstance(value, Scheduling):
        return value
    policy, _, rest = str(value).strip().partition(":")
    if policy == "other" and not rest:
        return Scheduling("other")
    if policy in ("fifo", "rr"):
        if not rest:
            raise ValueError("lacks a priority", f"write {policy}:80 (priorities 1 to 99)")
        if not re.fullmatch(r"[0-9]{1,99}", rest) or not 1 <= int(rest) <= 99:
            raise ValueError(
                f"has a priority {rest!r} that is not a number from 1 to 99", f"write {policy}:80"
            )
        return Scheduling(policy, priority=int(rest))
    if policy == "deadline":
        times = [parse_positive_ns(t) for t in rest.split("/")] if rest else []
        if len(times) != 3 or sorted(times) != times:
            raise ValueError("needs runtime/deadline/period, each at most the next", SCHEDULING_REMEDY)
        return Scheduling("deadline", runtime_ns=times[0], deadline_ns=times[1], period_ns=times[2])
    raise ValueError("is no scheduling policy", SCHEDULING_REMEDY)


@cache
def version() -> str:
    """The installed version; ``0+checkout`` when run from a source tree that is not installed."""
    from importlib import metadata  # not at start: it costs a tenth of `rtmeter --help`

    try:
        return metadata.version("rtmeter")
    except metadata.PackageNotFoundError:
        return "0+checkout"
