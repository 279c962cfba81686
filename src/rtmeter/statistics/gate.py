"""Gates of a comparison, as CI states them: ``p99.9<+5%``, ``p99<+20us``, ``miss_ratio<+1e-6``."""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from rtmeter.errors import RtmeterError
from rtmeter.statistics.compare import Shift, shift
from rtmeter.statistics.estimates import Estimates
from rtmeter.values import parse_duration_ns, parse_number

REMEDY = "write a quantile from p0.01 to p99.999 or miss_ratio, and how much larger it may be: p99.9<+5%"
_GATE = re.compile(r"\s*(?:p(?P<percent>\d+(?:\.\d+)?)|(?P<ratio>miss_ratio))\s*<\s*(?P<limit>[+-]\S+)\s*")


@dataclass(frozen=True, slots=True)
class Gate:
    """B's ``quantity`` (``p99.9``, ``miss_ratio``) must be below ``factor`` times A's plus ``allowance``
    (ns, or a ratio); ``text`` is what the user wrote."""

    text: str
    quantity: str
    factor: float
    allowance: float

    @property
    def percent(self) -> str | None:
        """The percentage of the quantile; None for the miss ratio."""
        return self.quantity[1:] if self.quantity.startswith("p") else None


@dataclass(frozen=True, slots=True)
class GateResult:
    """Whether B stays below the gate: ``pass`` and ``fail`` are sure at the comparison's confidence.
    ``excess``: by how much B is above it, with its interval."""

    gate: Gate
    outcome: Literal["pass", "fail", "inconclusive"]
    excess: Shift


def parse_gate(text: str) -> Gate:
    """The gate that a user wrote."""
    match = _GATE.fullmatch(text)
    if match is None:
        raise RtmeterError("is no gate", field="gate", value=text, remedy=REMEDY)
    limit = match["limit"]
    if match["percent"] is not None and not 0.01 <= float(match["percent"]) <= 99.999:
        raise RtmeterError("is a gate on an unknown quantile", field="gate", value=text, remedy=REMEDY)
    quantity = "miss_ratio" if match["ratio"] else f"p{match['percent']}"
    sign = -1 if limit[0] == "-" else 1
    try:
        if limit.endswith("%"):
            return Gate(text, quantity, 1 + sign * _number(limit[1:-1]) / 100, 0.0)
        if quantity == "miss_ratio":
            return Gate(text, quantity, 1.0, sign * _number(limit[1:]))
        return Gate(text, quantity, 1.0, float(sign * parse_duration_ns(limit[1:])))
    except ValueError as error:
        raise RtmeterError(
            f"has a limit that {error.args[0]}", field="gate", value=text, remedy=REMEDY
        ) from None


def judge_gate(gate: Gate, pairs: Sequence[tuple[Estimates, Estimates]]) -> GateResult:
    """The gate on one pair of runs, or on interleaved pairs together. The estimates have to hold the
    gate's quantity. A share of a time that is not above zero says nothing: its excess is NaN."""
    below = [a.quantities[gate.quantity].value for a, _ in pairs]
    if gate.factor != 1 and gate.percent is not None and min(below) <= 0:
        unknown = Shift(gate.quantity, min(below), math.nan, math.nan, math.nan, math.nan)
        return GateResult(gate, "inconclusive", unknown)
    excess = shift(gate.quantity, pairs, gate.factor, gate.allowance)
    if excess.upper < 0:
        return GateResult(gate, "pass", excess)
    return GateResult(gate, "fail" if excess.lower >= 0 else "inconclusive", excess)


def _number(text: str) -> float:
    number = parse_number(text)
    if number < 0:
        raise ValueError("is not a number")
    return number
