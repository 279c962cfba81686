"""Whose priority a thread had, on loan, and for how long."""

from __future__ import annotations

from collections.abc import Iterable

Lenders = tuple[tuple[str, int], ...]
"""Names, each once, and nanoseconds."""


def together(loans: Iterable[tuple[str, int]]) -> Lenders:
    """Each name once, with all its time."""
    found: dict[str, int] = {}
    for name, time_ns in loans:
        found[name] = found.get(name, 0) + time_ns
    return tuple(found.items())


def of_most(lenders: Lenders, whole_ns: int) -> str | None:
    """The one whose time is more than half of the whole."""
    return next((name for name, time_ns in lenders if 2 * time_ns > whole_ns), None)
