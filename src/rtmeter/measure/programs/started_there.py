"""A user's own program on a target: started there under the cell's conditions, and ended."""

from __future__ import annotations

import os
import signal
import subprocess
import time
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from shlex import join
from typing import Any, Self

from rtmeter.conditions.companion import require_program
from rtmeter.host.ending import STARTED, kill_group, reap
from rtmeter.host.remote_root import RemoteRoot
from rtmeter.host.remote_shell import ConnectionLostError
from rtmeter.measure.programs.started import GRACE_S, ended_error, words_of
from rtmeter.results import store

_TOLD_S = 30
_LOOK_EVERY_S = 0.02
_POLICIES = {"fifo": "-f", "rr": "-r"}

_BECOME = """
( { trap "" INT TERM; while read -r _; do :; done; kill -KILL "-$$"; } <&3 3<&- >/dev/null 2>&1 & )
echo "$$"
exec "$@" </dev/null >&2 3<&-
"""
"""The end of standard input, and so of the connection, kills it with all that it has started."""

_THERE = "exec 3<&0; setsid {command}; exit $?"
"""In the foreground: a shell's background ignores SIGINT. Not as the last command, which some shells become:
that of a login leads its session, and setsid would leave it at once."""


class StartedThere:
    """As StartedProgram, on the machine that ``root`` reaches, in the folder of the login."""

    def __init__(
        self, command: str, config: Mapping[str, Any], folder: Path, through: list[str], root: RemoteRoot
    ) -> None:
        self._words, self._folder, self._root = words_of(command), folder, root
        before = list(through)
        if cpus := config.get("cpus"):
            require_program("taskset", "cpus", root)
            before += ["taskset", f"{sum(1 << cpu for cpu in cpus):x}"]
        scheduling = config.get("scheduling") or {"policy": "other"}
        if scheduling["policy"] != "other":
            require_program("chrt", "scheduling", root)
            before += ["chrt", _POLICIES[scheduling["policy"]], str(scheduling["priority"])]
        require_program("setsid", "command", root)
        self._before = ["sh", "-c", _BECOME, "sh", *before]
        self.pid = 0
        """Of the program there: what starts it becomes it."""
        self.was_killed = False
        """As of StartedProgram."""

    def __enter__(self) -> Self:
        script = _THERE.format(command=join([*self._before, *self._words]))
        with (self._folder / store.STDERR).open("wb") as said:
            self._process = subprocess.Popen(
                self._root.shell.ssh.command(script),
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=said,
                start_new_session=True,
            )
        STARTED.add(self._process.pid)
        try:
            self.pid = self._told()
        except BaseException:
            self._end()
            raise
        return self

    def _told(self) -> int:
        assert self._process.stdout is not None
        os.set_blocking(self._process.stdout.fileno(), False)
        limit, said = time.monotonic() + _TOLD_S, b""
        while b"\n" not in said:
            said += self._process.stdout.read() or b""
            if self._process.poll() is not None and b"\n" not in said:
                raise self._root.shell.ssh.failed(self._said(), self._process.returncode)
            if time.monotonic() > limit:
                raise self._root.shell.ssh.error("did not start the program", "check the network")
            time.sleep(_LOOK_EVERY_S)
        return int(said.partition(b"\n")[0])

    def __exit__(self, *_: object) -> None:
        try:
            for asked in (signal.SIGINT, signal.SIGTERM):
                if self._process.poll() is None:
                    with suppress(ConnectionLostError):
                        self._root.shell.run(f"kill -{int(asked)} -{self.pid}")
                    with suppress(subprocess.TimeoutExpired):
                        self._process.wait(GRACE_S)
        finally:
            self.was_killed = self._process.poll() is None
            self._end()

    @property
    def exit_code(self) -> int | None:
        """None while it runs."""
        return self._process.poll()

    def interrupt(self) -> None:
        """As by Ctrl-C there."""
        with suppress(ConnectionLostError):
            self._root.shell.run(f"kill -INT -{self.pid}")

    def wait(self, limit_s: float) -> None:
        """Until it ends, at most ``limit_s``."""
        with suppress(subprocess.TimeoutExpired):
            self._process.wait(limit_s)

    def _end(self) -> None:
        """What is left of it there ends with the connection."""
        assert self._process.stdin is not None and self._process.stdout is not None
        self._process.stdin.close()
        with suppress(subprocess.TimeoutExpired):
            self._process.wait(GRACE_S)
        kill_group(self._process.pid)
        reap(self._process)
        self._process.stdout.close()
        STARTED.remove(self._process.pid)

    @property
    def is_itself(self) -> bool:
        """Whether what starts it has become it."""
        line = self._root.read(f"/proc/{self.pid}/cmdline") or ""
        starters = [*self._before, *self._words]
        return line != "" and all(
            line.rstrip("\0") != "\0".join(starters[place:]).strip() for place in range(len(self._before))
        )

    def check(self) -> None:
        """Raises RtmeterError if it has ended."""
        if self._process.poll() is not None:
            raise ended_error(self._words, self._process.returncode, self._said())

    def _said(self) -> str:
        return (self._folder / store.STDERR).read_text(errors="replace")
