"""The program of looper.py, from outside: started, asked, and its releases."""

from __future__ import annotations

import os
import select
import subprocess
import sys
import time
from array import array
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from rtmeter.errors import RtmeterError
from rtmeter.host.ending import kill_group, reap
from rtmeter.selftest import looper
from rtmeter.selftest.measuring import PERIOD_NS
from rtmeter.selftest.sight import Window

PROGRAM = Path(looper.__file__)
_PATIENCE_S = 60


class PlantedLoop:
    """``pid`` is the thread that stamps, ``server`` who answers it; ``shared``: the file that they share."""

    def __init__(self, priority: int, cpu: int) -> None:
        self.shared = os.memfd_create("rtmeter-self-test")
        os.truncate(self.shared, looper.BYTES)
        self._control = looper.Shared(self.shared)
        command = [sys.executable, "-I", PROGRAM, "loop", self.shared, priority, cpu, PERIOD_NS]
        self._process = subprocess.Popen(
            list(map(str, command)),
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            start_new_session=True,
            pass_fds=(self.shared,),
        )
        self.pid, self.server = self._process.pid, 0

    def begin(self) -> None:
        """Lets it loop. Raises RtmeterError if it is not ready for that."""
        assert self._process.stdin is not None and self._process.stdout is not None
        said = [b""]
        if select.select([self._process.stdout], [], [], _PATIENCE_S)[0]:
            said = self._process.stdout.readline().split(maxsplit=1)
        if said[:1] != [b"ready"]:
            raise RtmeterError(b" ".join(said[1:]).decode().strip() or "the measured loop did not start")
        self.server = int(said[1])
        self._process.stdin.write(b"go\n")
        self._process.stdin.flush()

    def ask(self, what: int) -> None:
        """As looper has it."""
        self._control.asked = what

    def done(self, what: int) -> Window:
        """Asks for something, and says from when to when it was at it."""
        begin_ns = time.monotonic_ns()
        self.ask(what)
        limit = time.monotonic() + _PATIENCE_S
        while self._control.asked != looper.NOTHING:
            if self._process.poll() is not None or time.monotonic() > limit:
                raise RtmeterError("the measured loop did not do what it was asked")
            time.sleep(0.001)
        return begin_ns, time.monotonic_ns()

    def end(self) -> tuple[list[int], list[int]]:
        """Its releases and stamps."""
        self.ask(looper.END)
        try:
            out, _ = self._process.communicate(timeout=_PATIENCE_S)
        except subprocess.TimeoutExpired:
            out = b""
        rows = array("q", out[: len(out) // 16 * 16])
        return rows[::2].tolist(), rows[1::2].tolist()

    def close(self) -> None:
        """Whatever it is at."""
        kill_group(self.pid)
        reap(self._process)
        for pipe in (self._process.stdin, self._process.stdout):
            if pipe is not None:
                pipe.close()
        os.close(self.shared)


@contextmanager
def planted_loop(priority: int, cpu: int) -> Iterator[PlantedLoop]:
    """It loops, and is gone afterwards. Raises RtmeterError if it does not start."""
    loop = PlantedLoop(priority, cpu)
    try:
        loop.begin()
        yield loop
    finally:
        loop.close()
