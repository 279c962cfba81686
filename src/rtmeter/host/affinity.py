"""Which CPUs a thread of rtmeter keeps off: those that are measured (sched_setaffinity(2))."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator
from contextlib import contextmanager


def keep_off(cpus: Iterable[int]) -> None:
    """The calling thread, from now on; not if it has no others. Raises OSError if these have gone offline."""
    own = os.sched_getaffinity(0)
    os.sched_setaffinity(0, own - set(cpus) or own)


@contextmanager
def away_from(cpus: Iterable[int]) -> Iterator[None]:
    """The calling thread keeps off these CPUs meanwhile."""
    before = os.sched_getaffinity(0)
    keep_off(cpus)
    try:
        yield
    finally:
        os.sched_setaffinity(0, before)
