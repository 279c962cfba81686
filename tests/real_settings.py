"""Tests that set something of this machine's own run one at a time, also those of other checkouts."""

from __future__ import annotations

import fcntl
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

_LOCK = Path(tempfile.gettempdir()) / "rtmeter-tests-of-real-settings.lock"


@contextmanager
def one_at_a_time() -> Iterator[None]:
    """Waits until no other such test runs."""
    with _LOCK.open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield
