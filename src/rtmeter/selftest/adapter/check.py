"""One check of an adapter, and what came of it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

PASS, FAIL, NOT_APPLICABLE = "pass", "fail", "not applicable"

CheckOutcome = tuple[str, str, str | None]
"""PASS, FAIL or NOT_APPLICABLE; the reason; the remedy."""


@dataclass(frozen=True, slots=True)
class Check:
    """A name, such as ``echo.cycle.spin``, and what finds out."""

    name: str
    run: Callable[[], CheckOutcome]


@dataclass(frozen=True, slots=True)
class Result:
    """What came of a check; ``remedy`` where it failed."""

    name: str
    outcome: str
    reason: str
    remedy: str | None


def passed(reason: str) -> CheckOutcome:
    """It holds, as far as was tried: what was seen."""
    return PASS, reason, None


def failed(reason: str, remedy: str) -> CheckOutcome:
    """It does not hold: what was seen, and what the adapter should do."""
    return FAIL, reason, remedy


def not_applicable(reason: str) -> CheckOutcome:
    """There is nothing to try: why."""
    return NOT_APPLICABLE, reason, None
