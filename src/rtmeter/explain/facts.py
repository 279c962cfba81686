"""What the trace tells beside a key, which what mends a cause goes by."""

from __future__ import annotations

from functools import reduce
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Iterable


class CauseFacts(NamedTuple):
    """``tid`` and ``priority``, as events print it, of the thread that the key names; the ``cpu``;
    ``waiting``: the priority of the one that waits; ``call``: the system call in which it does, and what of a
    futex it ``asked``; ``stopped``: it waits since a signal or a debugger stopped it. None: not told, or not
    the same throughout."""

    tid: int | None = None
    priority: int | None = None
    cpu: int | None = None
    waiting: int | None = None
    call: str | None = None
    asked: int | None = None
    stopped: bool | None = None


NONE = CauseFacts()


def shared(facts: Iterable[CauseFacts]) -> CauseFacts:
    """What is true of all of them."""
    return reduce(_both, facts)


def _both(one: CauseFacts, other: CauseFacts) -> CauseFacts:
    return CauseFacts._make(a if a == b else None for a, b in zip(one, other, strict=True))
