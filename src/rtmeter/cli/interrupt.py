"""Ctrl-C, SIGTERM and SIGHUP: once to end cleanly, twice to kill what measures.

SIGHUP is not heard where it is ignored: under ``nohup`` a run survives its terminal.
"""

from __future__ import annotations

import os
import signal
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from types import FrameType
from typing import TYPE_CHECKING

from rtmeter.cli.output import let_go
from rtmeter.errors import RtmeterError
from rtmeter.host.ending import LEFT, STARTED, Killed, left_words
from rtmeter.model import TARGET

if TYPE_CHECKING:
    from rtmeter.measure.probe.supervise import Stop
    from rtmeter.measure.rigs import Stops
    from rtmeter.model import Cell

PATIENCE_S = 120
"""From the first signal until a run that has not ended is killed; besides, a cell's loss timeout."""

_SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
_NOTE = b"\nrtmeter: ending; what was measured is kept (once more to kill)\n"
KEPT = "what was recorded is in a folder *.partial (see `rtmeter recover`), and what was set of the machine "
KEPT += "is put back by the next run, or by `rtmeter restore`"
"""Of a run that is killed."""


@contextmanager
def stopping(cells: Sequence[Cell]) -> Iterator[Stop]:
    """A Stop that the signals ask while the block measures the cells, as asking() says."""
    from rtmeter.measure.probe.supervise import Stop

    stop = Stop()
    with asking(stop, cells):
        yield stop


@contextmanager
def asking(stop: Stop | Stops, cells: Sequence[Cell]) -> Iterator[None]:
    """While the block measures the cells, the signals ask ``stop``.

    The second one kills: who looks at the Stop all the time does it and ends cleanly; whatever else is being
    waited for, or ``PATIENCE_S`` after the first, ends by force.
    """
    loss_timeout_s = max((cell.config.get("loss_timeout_ns", 0) for cell in cells), default=0) / 1e9
    last = threading.Timer(PATIENCE_S + loss_timeout_s, _end_by_force, [stop])
    last.daemon = True

    def ask(_number: int, _frame: FrameType | None) -> None:
        stop.ask()
        if stop.asked == 1:
            last.start()
            try:
                os.write(2, _NOTE)
            except OSError:  # the terminal has gone, which may be why
                let_go(2)
        elif stop.asked > 2 or not stop.heeded:
            STARTED.kill()
            if stop.asked > 3:
                _end_by_force(stop)
            raise Killed

    there = {f"rtmeter restore --on {cell.hosts[TARGET]}" for cell in cells if TARGET in cell.hosts}
    LEFT.update(dict.fromkeys(sorted(there)))
    before = {number: signal.signal(number, ask) for number in _heard()}
    try:
        yield
    except Killed:
        there.clear()  # it is left, and told
        raise
    finally:
        last.cancel()
        for command in there:
            LEFT.pop(command, None)
        for number, handler in before.items():
            signal.signal(number, handler)


@contextmanager
def ending() -> Iterator[None]:
    """The first of the signals ends the block; while it puts back what it set, no other one is heard. Raises
    RtmeterError then."""

    def end(_number: int, _frame: FrameType | None) -> None:
        for number in before:
            signal.signal(number, lambda *_: None)
        raise KeyboardInterrupt

    before = {number: signal.signal(number, end) for number in _heard()}
    try:
        yield
    except KeyboardInterrupt:
        raise RtmeterError("interrupted", remedy="run it again: what it had set is put back") from None
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def _heard() -> list[signal.Signals]:
    return [n for n in _SIGNALS if n != signal.SIGHUP or signal.getsignal(n) is not signal.SIG_IGN]


def _end_by_force(stop: Stop | Stops) -> None:
    """Ends this process and all that it has started, unless there is nothing left but to keep what was
    measured, which takes as long as it takes."""
    if stop.keeping:
        return
    STARTED.kill()
    with suppress(OSError):
        os.set_blocking(2, False)  # a terminal may be stopped (Ctrl-S)
        os.write(2, f"\nrtmeter: killed; {KEPT}{left_words()}\n".encode())
    os._exit(1)
