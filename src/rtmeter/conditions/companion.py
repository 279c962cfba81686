"""A program that runs beside the probes (stress-ng, iperf3): found, started, watched, ended."""

from __future__ import annotations

import contextlib
import os
import shutil
import signal
import subprocess
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from typing import IO

from rtmeter.conditions.processes import members
from rtmeter.errors import RtmeterError
from rtmeter.host.ending import STARTED, kill_group, reap
from rtmeter.host.root import Root
from rtmeter.host.trust import require_trusted
from rtmeter.model import LOCAL

_PACKAGES = {"ip": "iproute2", "tc": "iproute2"} | dict.fromkeys(("setpriv", "chrt", "taskset"), "util-linux")
_GONE_S, _LOOK_EVERY_S = 5, 0.02


def require_program(name: str, field: str, root: Root = Root()) -> None:  # noqa: B008
    """Raises RtmeterError that names the option that needs the program, and its package, if it is missing;
    or if it is here and root must not run it."""
    if not root.has_program(name):
        package = _PACKAGES.get(name, name)
        remedy = f"install it (Debian, Ubuntu: apt-get install {package}), and see that PATH has its folder"
        where = "PATH" if root.host == LOCAL else f"the PATH of {root.host}"
        raise RtmeterError(f"needs {name}, which is not in {where}", field=field, remedy=remedy)
    if root.host == LOCAL and (path := shutil.which(name)) is not None:
        require_trusted(Path(path), field=field, value=name, verb="run")


def find_program(name: str, field: str) -> str:
    """The program's path. Raises RtmeterError as require_program() does."""
    require_program(name, field)
    return shutil.which(name) or name


class Companion:
    """The program in a process group of its own.

    It runs at normal priority, and is killed if the thread that started it dies, and with it the front
    (PR_SET_PDEATHSIG). What it prints is held in a file without a name. One that is ``held`` is asked to
    end by the end of its standard input, which a connection carries where it does not carry signals.
    """

    def __init__(
        self, command: Sequence[str], *, field: str, cpus: Sequence[int] | None = None, held: bool = False
    ) -> None:
        """Starts it on ``cpus`` (None: any). Raises RtmeterError if it or what starts it is not there."""
        before = [find_program("setpriv", field), "--pdeathsig", "KILL"]
        if os.sched_getscheduler(0) != os.SCHED_OTHER:  # it would inherit the front's priority
            before += [find_program("chrt", field), "--other", "0"]
        if cpus is not None:
            before += [find_program("taskset", field), "--cpu-list", ",".join(map(str, cpus))]
        self._out, self._err = (tempfile.TemporaryFile() for _ in range(2))  # noqa: SIM115
        self._popen = subprocess.Popen(
            [*before, *command],
            stdin=subprocess.PIPE if held else subprocess.DEVNULL,
            stdout=self._out,
            stderr=self._err,
            start_new_session=True,
        )
        self.pid = self._popen.pid
        STARTED.add(self.pid)
        self.started_at = time.monotonic()
        self._died_at: float | None = None
        self._ended = False  # then the number of its group may be somebody else's

    @property
    def program_pid(self) -> int | None:
        """Of the program on the machine that it runs on; None if that is not known yet."""
        return self.pid

    @property
    def exit_code(self) -> int | None:
        """None while it runs; negative: the signal that ended it. Until end() it is not reaped, so that the
        number of its group is nobody else's."""
        code: int | None = self._popen.returncode
        if code is None and (ended := os.waitid(os.P_PID, self.pid, os.WEXITED | os.WNOHANG | os.WNOWAIT)):
            code = ended.si_status if ended.si_code == os.CLD_EXITED else -ended.si_status
        if code is not None and self._died_at is None:
            self._died_at = time.monotonic()
        return code

    @property
    def ran_s(self) -> float:
        """How long it has run, or had when it was first seen to have ended."""
        alive = self.exit_code is None or self._died_at is None
        return (time.monotonic() if alive else self._died_at or 0) - self.started_at

    @property
    def how_it_ended(self) -> str:
        """In words: ``killed by SIGKILL after 3.2 s``, ``exit code 3 after 0.1 s; it said: …``."""
        code = self.exit_code or 0
        if code < 0:
            return f"killed by {signal.Signals(-code).name} after {self.ran_s:.1f} s"
        words = self.last_words()
        return f"exit code {code} after {self.ran_s:.1f} s" + (f"; it said: {words}" if words else "")

    def stdout(self) -> str:
        """What it has printed so far."""
        return _content(self._out)

    def last_words(self) -> str:
        """The last lines that it printed on standard error, else on standard output; empty if none."""
        for text in (_content(self._err), self.stdout()):
            lines = [line.strip() for line in text.splitlines() if line.strip()]
            if lines:
                return " / ".join(lines[-2:])
        return ""

    def beat(self) -> None:
        """Lets one that is held know that this process lives."""
        assert self._popen.stdin is not None
        with contextlib.suppress(BrokenPipeError):  # it has ended
            self._popen.stdin.write(b".")
            self._popen.stdin.flush()

    def wait(self, limit_s: float) -> None:
        """Until it ends, at most ``limit_s``."""
        limit = time.monotonic() + limit_s
        while self.exit_code is None and time.monotonic() < limit:
            time.sleep(_LOOK_EVERY_S)

    def end(self, how: signal.Signals = signal.SIGTERM, grace_s: float = 5) -> None:
        """Asks it to end (by the signal ``how``, unless it is held), waits, kills what is left of its group,
        and reaps it."""
        if self._ended:
            return
        if self.exit_code is None:
            if self._popen.stdin is not None:
                _hang_up(self._popen.stdin)
            else:
                os.kill(self.pid, how)
            self.wait(grace_s)
        limit = time.monotonic() + _GONE_S
        while members(self.pid, Root()) and time.monotonic() < limit:
            kill_group(self.pid)
            time.sleep(_LOOK_EVERY_S)
        reap(self._popen)  # one that the kernel holds is left to it: it is killed
        STARTED.remove(self.pid)
        self._ended = True

    def close(self) -> None:
        """Kills it if it still runs, and forgets what it printed."""
        self.end(signal.SIGKILL)
        if self._popen.stdin is not None:
            _hang_up(self._popen.stdin)
        self._out.close()
        self._err.close()


def _hang_up(pipe: IO[bytes]) -> None:
    with contextlib.suppress(BrokenPipeError):  # nobody reads what was still to be written
        pipe.close()


def _content(file: IO[bytes]) -> str:
    """A held file from its beginning; the child that writes shares the offset, so it is not moved."""
    size = os.fstat(file.fileno()).st_size
    return os.pread(file.fileno(), size, 0).decode(errors="replace")
