"""Ctrl-C, SIGTERM and SIGHUP: once to end cleanly, twice to kill."""

from __future__ import annotations

import os
import signal
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from rtmeter.supervise import Stop

_SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
_NOTE = b"\nrtmeter: ending; what was measured is kept (once more to kill)\n"


@contextmanager
def stopping() -> Iterator[Stop]:
    """A Stop that the signals ask while the block runs."""
    from rtmeter.supervise import Stop

    stop = Stop()

    def ask(_number: int, _frame: FrameType | None) -> None:
        if not stop.asked:
            os.write(2, _NOTE)
        stop.ask()

    before = {number: signal.signal(number, ask) for number in _SIGNALS}
    try:
        yield stop
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
