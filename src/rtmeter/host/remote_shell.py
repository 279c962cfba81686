"""A shell on another machine that stays open, so that a question takes no new connection."""

from __future__ import annotations

import contextlib
import os
import re
import secrets
import select
import subprocess
import tempfile
import threading
import time

from rtmeter.errors import RtmeterError
from rtmeter.host.ending import reap
from rtmeter.host.ssh import Ssh

_LIMIT_S = 30  # for an answer
_START = "export LC_ALL=C; exec sh"  # messages are read, so they must be in English
_LONGEST_END = 80  # of an answer: the mark and the exit code


class ConnectionLostError(RtmeterError):
    """The machine does not answer any more: what it was told last may have been done or not.

    It is no OSError: nothing may take it for what the kernel there says.
    """


class Shell:
    """A shell there, which ends with this object, with its process, or with the connection.

    Several threads may use it; one waits for the other.
    """

    def __init__(self, ssh: Ssh) -> None:
        """Raises RtmeterError if the machine cannot be reached."""
        self.ssh = ssh
        self._mark = secrets.token_hex(16)
        self._asked = 0
        self._turn = threading.Lock()
        self._lost: ConnectionLostError | None = None
        self._said = tempfile.TemporaryFile()  # noqa: SIM115 (close() does)
        try:
            self._popen = subprocess.Popen(
                ssh.command(_START),
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=self._said,
                start_new_session=True,
            )
            assert self._popen.stdin is not None
            os.set_blocking(self._popen.stdin.fileno(), False)
        except OSError as error:
            self._said.close()
            raise ssh.not_started(error) from None
        try:
            self.run(":")
        except ConnectionLostError:
            self._popen.kill()
            code = -9 if not reap(self._popen) else self._popen.returncode
            words = self._words()
            self.close()
            raise ssh.failed(words, code) from None

    def run(self, script: str, limit_s: float = _LIMIT_S) -> tuple[int, bytes]:
        """The exit code of a script, and what it printed. Raises ConnectionLostError, also if that takes
        longer than ``limit_s``."""
        assert self._popen.stdin is not None
        with self._turn:
            if self._lost is not None:
                raise self._lost
            self._asked += 1
            mark, whole = f"{self._mark}.{self._asked}", False
            asked = f"printf '\\n{mark}\\n'; {{ {script}\n}} </dev/null\nprintf '\\n{mark} %d\\n' $?\n"
            try:
                limit = time.monotonic() + limit_s
                self._ask(asked.encode(), limit)
                whole = True
                return self._answer(mark.encode(), limit)
            except OSError:
                self._lost = self._loss()
                raise self._lost from None
            except BaseException:  # killed: what comes of it yet is no answer to the next question
                if not whole:
                    self._lost = self._loss()
                raise

    @property
    def pid(self) -> int:
        """Of the program here that holds the connection."""
        return self._popen.pid

    def close(self) -> None:
        """Ends the shell there."""
        self._lost = self._lost or self._loss()
        assert self._popen.stdin is not None and self._popen.stdout is not None
        with contextlib.suppress(OSError):  # what could not be written any more
            self._popen.stdin.close()
        try:
            self._popen.wait(5)
        except subprocess.TimeoutExpired:
            self._popen.kill()
            reap(self._popen)
        self._popen.stdout.close()
        self._said.close()

    def _ask(self, asked: bytes, limit: float) -> None:
        """Raises OSError where nobody takes it any more."""
        assert self._popen.stdin is not None
        descriptor = self._popen.stdin.fileno()
        while asked:
            if not select.select([], [descriptor], [], max(limit - time.monotonic(), 0))[1]:
                raise TimeoutError
            asked = asked[os.write(descriptor, asked) :]

    def _answer(self, mark: bytes, limit: float) -> tuple[int, bytes]:
        """What comes between the question's marks. Raises OSError where nothing comes any more."""
        assert self._popen.stdout is not None
        descriptor, got = self._popen.stdout.fileno(), bytearray()
        end = re.compile(rb"\n%s (\d+)\n\Z" % re.escape(mark))
        while (found := end.search(got, max(len(got) - _LONGEST_END, 0))) is None:
            if not select.select([descriptor], [], [], max(limit - time.monotonic(), 0))[0]:
                raise TimeoutError
            data = os.read(descriptor, 1 << 16)
            if not data:
                raise ConnectionError
            got += data
        return int(found[1]), bytes(got[: found.start()].partition(b"\n%s\n" % mark)[2])

    def _loss(self) -> ConnectionLostError:
        last = [line.strip() for line in self._words().splitlines() if line.strip()][-1:]
        return ConnectionLostError(
            "the connection is lost" + "".join(f": {line}" for line in last),
            field=self.ssh.field,
            value=self.ssh.target,
            remedy="see to the network there, and that the machine runs",
        )

    def _words(self) -> str:
        size = os.fstat(self._said.fileno()).st_size
        return os.pread(self._said.fileno(), size, 0).decode(errors="replace")
