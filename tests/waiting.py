"""How a test waits: for a state, with a limit that only a fault reaches; never for a time."""

from __future__ import annotations

import inspect
import os
import subprocess
import time
from collections.abc import Callable
from typing import Any, TypeVar

T = TypeVar("T")
LIMIT_S = 3000.0 if os.environ.get("RTMETER_FULL") == "1" else 300.0
"""At full size a command may measure for an hour, and hosts others beside it."""


def until(state: Callable[[], T], limit_s: float = LIMIT_S, *, of: subprocess.Popen[Any] | None = None) -> T:
    """What ``state`` returns as soon as that is true; fails after the limit, or once the process ``of`` which
    it is a state has ended."""
    end = time.monotonic() + limit_s
    while True:
        ended = of is not None and of.poll() is not None
        if found := state():
            return found
        if ended:
            assert of is not None
            raise AssertionError(f"{of.args} ended, {of.communicate()}, before {_name_of(state)}")
        assert time.monotonic() < end, f"waited {limit_s:.0f} s for {_name_of(state)}"
        time.sleep(0.02)


def _name_of(state: Callable[[], object]) -> str:
    try:
        return inspect.getsource(state).strip()
    except (OSError, TypeError):  # it has no source
        return repr(state)
