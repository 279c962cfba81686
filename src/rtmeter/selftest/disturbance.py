"""Disturbances as processes: started, let go, heard, and ended by their id."""

from __future__ import annotations

import select
import subprocess
import sys
from pathlib import Path
from typing import Self

from rtmeter.errors import RtmeterError
from rtmeter.host.ending import kill_group, reap

_PROGRAM = Path(__file__).with_name("disturber.py")
_PATIENCE_S = 30  # besides the length: a busy machine may let a program start late


class Disturbance:
    """One disturbance; a context manager, ready when entered, that leaves no process behind.

    ``program``: one that speaks as disturber.py does; ``shared``: a file that it has open, too.
    """

    def __init__(
        self,
        kind: str,
        *arguments: object,
        length_ns: int,
        program: Path | None = None,
        shared: int | None = None,
    ) -> None:
        self._length_ns = length_ns
        file = str(program or _PROGRAM)
        command = [sys.executable, "-I", file, kind, *map(str, arguments), str(length_ns)]
        self._process = subprocess.Popen(
            command,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            start_new_session=True,
            pass_fds=() if shared is None else (shared,),
        )
        self.pid = self._process.pid

    def __enter__(self) -> Self:
        word, _, why = self._line().strip().partition(" ")
        if word != "ready":
            self.__exit__()
            raise RtmeterError(why or "it did not start")
        return self

    def __exit__(self, *_: object) -> None:
        """One that was let go ends by itself, so that what it stopped goes on."""
        if self._process.returncode is not None:
            return
        try:
            self._process.communicate(timeout=_PATIENCE_S + self._length_ns / 1e9)
        except subprocess.TimeoutExpired:
            kill_group(self.pid)
            reap(self._process)
            for pipe in (self._process.stdin, self._process.stdout):
                if pipe is not None:
                    pipe.close()

    def go(self) -> None:
        """Lets it disturb. Raises RtmeterError if it is gone."""
        assert self._process.stdin is not None
        try:
            self._process.stdin.write("go\n")
            self._process.stdin.flush()
        except OSError:
            raise RtmeterError("the disturbance ended early") from None

    def window_ns(self) -> tuple[int, int]:
        """When it began and when it ended, once it has; raises RtmeterError if it does not say."""
        said = self._line().split()
        if len(said) != 2:
            raise RtmeterError("the disturbance ended early")
        return int(said[0]), int(said[1])

    def _line(self) -> str:
        """What it says next; empty if that does not come in time."""
        assert self._process.stdout is not None
        limit_s = _PATIENCE_S + self._length_ns / 1e9
        if not select.select([self._process.stdout], [], [], limit_s)[0]:
            kill_group(self.pid)
        return self._process.stdout.readline()  # its lines are written whole, or it is gone
