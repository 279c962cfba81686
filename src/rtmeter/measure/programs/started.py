"""A user's own program: started under the cell's conditions, and ended."""

from __future__ import annotations

import os
import shlex
import shutil
import signal
import subprocess
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any, Self

from rtmeter.conditions.companion import find_program
from rtmeter.errors import RtmeterError
from rtmeter.host.ending import STARTED, kill_group, reap
from rtmeter.host.root import Root
from rtmeter.host.trust import require_trusted
from rtmeter.model import Doubt
from rtmeter.results import store
from rtmeter.values import format_cpus

GRACE_S = 5


class StartedProgram:
    """The program of a ``command`` while the block runs, in a process group of its own: what it prints is in
    the cell's probe.stderr. ``through``: what its command is put behind. It is asked to end as by Ctrl-C,
    then by SIGTERM, then killed; it ends with this process, however that ends."""

    def __init__(self, command: str, config: Mapping[str, Any], folder: Path, through: list[str]) -> None:
        self._words = trusted_words(command)
        before = [find_program("setpriv", "command"), "--pdeathsig", "KILL", *through]
        scheduling = config.get("scheduling") or {"policy": "other"}
        if config.get("cpus"):
            before += [find_program("taskset", "cpus"), "--cpu-list", format_cpus(config["cpus"])]
        if scheduling["policy"] != "other" or os.sched_getscheduler(0) != os.SCHED_OTHER:  # else the front's
            policy = [f"--{scheduling['policy']}", str(scheduling.get("priority", 0))]
            before += [find_program("chrt", "scheduling"), *policy]
        self._command, self._folder, self._through = [*before, *self._words], folder, len(before)
        self.was_killed = False
        """Once the block is left: it did not end when it was asked to."""

    def __enter__(self) -> Self:
        with (self._folder / store.STDERR).open("wb") as said:
            try:
                self._process = subprocess.Popen(
                    self._command,
                    stdin=subprocess.DEVNULL,
                    stdout=said,
                    stderr=said,
                    start_new_session=True,
                )
            except OSError as error:
                raise RtmeterError(
                    f"cannot be started: {(error.strerror or str(error)).lower()}",
                    field="command",
                    value=shlex.join(self._words),
                    remedy="see that it is there and may be run",
                ) from None
        STARTED.add(self._process.pid)
        return self

    def __exit__(self, *_: object) -> None:
        try:
            for asked in (signal.SIGINT, signal.SIGTERM):
                if self._process.poll() is None:
                    with suppress(OSError):
                        os.killpg(self._process.pid, asked)
                    with suppress(subprocess.TimeoutExpired):
                        self._process.wait(GRACE_S)
        finally:
            self.was_killed = self._process.poll() is None
            kill_group(self._process.pid)
            reap(self._process)
            STARTED.remove(self._process.pid)

    @property
    def pid(self) -> int:
        """Of the program: setpriv, taskset and chrt become it."""
        return self._process.pid

    @property
    def is_itself(self) -> bool:
        """Whether what starts it has become it."""
        line = Root().read(f"/proc/{self.pid}/cmdline") or ""
        words = line.rstrip("\0").split("\0")
        return line != "" and all(words != self._command[place:] for place in range(self._through))

    def wait(self, limit_s: float) -> None:
        """Until it ends, at most ``limit_s``."""
        with suppress(subprocess.TimeoutExpired):
            self._process.wait(limit_s)

    def check(self) -> None:
        """Raises RtmeterError if it has ended."""
        if self._process.poll() is not None:
            said = (self._folder / store.STDERR).read_text(errors="replace")
            raise ended_error(self._words, self._process.returncode, said)


def killed_doubt(command: str) -> Doubt:
    """That it had to be killed: whoever measures a robot's program wants to know that it did not end."""
    message = f"{command} did not end when asked (SIGINT, then SIGTERM, {GRACE_S} s each), and was killed"
    return Doubt("command_killed", message, "what it ends orderly by itself (motors, files) it did not end")


def ended_error(words: Sequence[str], code: int, said: str) -> RtmeterError:
    """That the program has ended by itself, and what it said last."""
    last = said.strip().splitlines()[-1:]
    return RtmeterError(
        f"ended with exit code {code}: {last[0] if last else 'it said nothing'}",
        field="command",
        value=shlex.join(words),
        remedy="run it by itself first; it must go on until it is ended",
    )


def words_of(command: str) -> list[str]:
    """Raises RtmeterError for quotes that do not end, and for nothing."""
    try:
        words = shlex.split(command)
    except ValueError as error:
        message = f"cannot be taken apart: {str(error).lower()}"
        raise RtmeterError(message, field="command", value=command, remedy="close the quotes") from None
    if not words:
        raise RtmeterError("is empty", field="command", value=command, remedy="give a program")
    return words


def trusted_words(command: str) -> list[str]:
    """Raises RtmeterError as words_of() does, and if this is root and must not run the program; what that
    reads or starts is not looked at."""
    words = words_of(command)
    if (program := shutil.which(words[0])) is not None:
        require_trusted(Path(program), field="command", value=command, verb="run")
    return words
