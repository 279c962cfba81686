"""Commands on another machine, over the ssh program: keys, known hosts and aliases are as ssh has them."""

from __future__ import annotations

import errno
import os
import re
import shlex
import socket
import subprocess
import threading
from collections.abc import Sequence
from dataclasses import dataclass
from typing import IO, Any

from rtmeter.errors import RtmeterError

PROGRAM = "RTMETER_SSH"
"""Environment variable: the program and its options, if it is not plain ``ssh``."""

_OPTIONS = (
    "-T",
    "-oBatchMode=yes",
    "-oConnectTimeout=10",
    "-oServerAliveInterval=2",
    "-oServerAliveCountMax=5",
)
_ANSWERS = "exec >&9 9>&-\n"
_LOOKED_UP_S = 30
HOST = r"ssh://([\w.+-]+@)?([\w.][\w.-]*|\[[0-9A-Fa-f:.]+\])(:\d{1,5})?/?"
"""How a host is written."""
_CUT_OFF = 255  # ssh's own exit code for what went wrong between the machines

_REMEDIES = (
    ("host key verification failed", "connect once by hand, compare the key that ssh shows, and accept it"),
    ("identification has changed", "find out why the host has another key than known_hosts says"),
    ("permission denied", "let that user log in with a key: ssh-copy-id, or ssh-agent"),
    ("could not resolve", "check the name, or give its IP address"),
    ("connection refused", "start sshd there, or give its port: ssh://user@host:port"),
    ("timed out", "check the network and the address"),
    ("no route to host", "check the network and the address"),
)

_REMEDIES_THERE = (
    ("no space left", "free space in its /tmp, or set TMPDIR there"),
    ("read-only file system", "set TMPDIR there to a folder that can be written"),
    ("shared libraries", "install there what the probe needs of its middleware"),
    ("not found", "install it there"),
)


def parse_target(text: str) -> str:
    """The URL if it is one, else ValueError(message, remedy)."""
    if not re.fullmatch(HOST, text):
        raise ValueError("is no host", "write local, or ssh://user@host, with :port if it is not 22")
    return text.rstrip("/")


@dataclass(frozen=True, slots=True)
class Ssh:
    """A machine to be reached at ``target`` (ssh://user@host:port), asked for by the option ``field``."""

    target: str
    field: str

    def command(self, script: str) -> list[str]:
        """What runs a shell script there, in a login shell, so that its PATH is the user's. What the files
        that this reads print is no answer: it goes where errors go."""
        login = shlex.quote(f"exec sh -lc {shlex.quote(_ANSWERS + script)} 9>&1 >&2")
        return [*_program(), *_OPTIONS, self.target, f"exec sh -c {login}"]

    def run(
        self, script: str, given: bytes = b"", limit_s: float = 60, into: IO[bytes] | None = None
    ) -> bytes:
        """What the script printed, or nothing if that goes ``into`` a file.

        Raises RtmeterError if it failed, or the machine cannot be reached.
        """
        try:
            done = subprocess.run(
                self.command(script),
                input=given,
                stdout=into or subprocess.PIPE,
                stderr=subprocess.PIPE,
                timeout=limit_s,
                start_new_session=True,  # Ctrl-C on the terminal is for rtmeter alone
                check=False,
            )
        except OSError as error:
            raise self.not_started(error) from None
        except subprocess.TimeoutExpired:
            raise self.error(f"did not answer within {limit_s:.0f} s", "check the network") from None
        if done.returncode != 0:
            raise self.failed(done.stderr.decode(errors="replace"), done.returncode)
        return done.stdout or b""

    def failed(self, said: str, code: int) -> RtmeterError:
        """The error that ssh, or what it ran, ended with."""
        lines = [line.strip() for line in said.splitlines() if line.strip()] or [f"exit code {code}"]
        if code != _CUT_OFF:
            return self.error(f"says: {lines[-1]}", _remedy(_REMEDIES_THERE, said, "see to it there"))
        return self.error(f"cannot be reached: {lines[-1]}", _remedy(_REMEDIES, said, "see what ssh says"))

    def not_started(self, error: OSError) -> RtmeterError:
        """That the program here is not there, or may not be run, or is none."""
        words, remedy = (error.strerror or str(error)).lower(), f"install openssh-client, or set {PROGRAM}"
        return self.error(f"needs the program {_program()[0]}, which cannot be run: {words}", remedy)

    def error(self, message: str, remedy: str) -> RtmeterError:
        """An error that names the machine."""
        return RtmeterError(message, field=self.field, value=self.target, remedy=remedy)

    def address(self) -> str:
        """The IP address that ssh would connect to. Raises RtmeterError for a name that is none."""
        command = [*_program(), "-G", self.target]
        try:
            asked = subprocess.run(
                command,
                capture_output=True,
                text=True,
                timeout=_LOOKED_UP_S,
                start_new_session=True,
                check=False,
            )
            names = [line.split()[1] for line in asked.stdout.splitlines() if line.startswith("hostname ")]
            return look_up(names[0], socket.SOCK_DGRAM)[0][4][0]
        except (OSError, IndexError, subprocess.TimeoutExpired):
            raise self.error("has no address", "give its IP address") from None


def look_up(name: str, kind: socket.SocketKind) -> list[tuple[Any, Any, int, str, tuple[str, int]]]:
    """getaddrinfo(3), with a limit: a resolver of the system's may have none. Raises OSError."""
    found: list[Any] = []
    failed: list[OSError] = []

    def ask() -> None:
        try:
            found.extend(socket.getaddrinfo(name, 0, type=kind))
        except OSError as error:
            failed.append(error)

    asking = threading.Thread(target=ask, name="rtmeter-look-up", daemon=True)
    asking.start()
    asking.join(_LOOKED_UP_S)
    if not found:
        why = f"was not looked up within {_LOOKED_UP_S} s"
        raise failed[0] if failed else TimeoutError(errno.ETIMEDOUT, why)
    return found


def _remedy(remedies: Sequence[tuple[str, str]], said: str, otherwise: str) -> str:
    return next((remedy for sign, remedy in remedies if sign in said.lower()), otherwise)


def _program() -> list[str]:
    asked = os.environ.get(PROGRAM, "")
    try:
        return shlex.split(asked) or ["ssh"]
    except ValueError as error:
        message = f"cannot be read as a command: {str(error).lower()}"
        remedy = "quote it as for a shell, e.g. ssh -F robot.conf"
        raise RtmeterError(message, field=PROGRAM, value=asked, remedy=remedy) from None
