"""The kernel's files under a root that tests can plant: /sys, /proc and the like."""

from __future__ import annotations

import errno
import glob
import os
import shutil
import subprocess
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

from rtmeter.host.ending import run_within
from rtmeter.host.trust import require_trusted
from rtmeter.model import LOCAL

_PROGRAM_LIMIT_S = 20


@dataclass(frozen=True, slots=True)
class Root:
    """A machine's state as files; names are absolute as the kernel has them (``/proc/sys/...``).

    ``path`` is where the machine's ``/`` is: another folder than ``/`` holds a whole machine for a test.
    """

    path: Path = Path("/")

    @property
    def host(self) -> str:
        """Where the machine is: this one, or ssh://user@host."""
        return LOCAL

    def at(self, name: str) -> Path:
        """The file of that name under this root."""
        return self.path / name.lstrip("/")

    def exists(self, name: str) -> bool:
        """Whether there is such a file or folder."""
        return self.at(name).exists()

    def read(self, name: str) -> str | None:
        """The text of the file, without the white space around it; None if it cannot be read."""
        content = self.read_bytes(name)
        return None if content is None else content.decode(errors="replace").strip()

    def read_bytes(self, name: str) -> bytes | None:
        """What the file holds; None if it cannot be read."""
        try:
            return self.at(name).read_bytes()
        except OSError:
            return None

    def read_all(self, names: Iterable[str]) -> dict[str, str]:
        """Name → text as read() has it, of the files that can be read."""
        return {name: text for name in names if (text := self.read(name)) is not None}

    def write(self, name: str, text: str) -> None:
        """Writes the text by one call, as the kernel's files want it, to a file that exists.

        Raises OSError for what the kernel refuses.
        """
        descriptor = os.open(self.at(name), os.O_WRONLY | os.O_TRUNC)
        try:
            os.write(descriptor, text.encode())
        finally:
            os.close(descriptor)

    def append(self, name: str, text: str) -> None:
        """Writes the text at the end of a file by one call, as some of the kernel's files want it.

        Raises OSError for what the kernel refuses.
        """
        descriptor = os.open(self.at(name), os.O_WRONLY | os.O_APPEND | os.O_CLOEXEC)
        try:
            os.write(descriptor, text.encode())
        finally:
            os.close(descriptor)

    def make_folder(self, name: str) -> None:
        """Makes a folder: a cgroup. Raises OSError."""
        self.at(name).mkdir()

    def remove_folder(self, name: str) -> None:
        """Removes a cgroup. Raises OSError, as long as it has members."""
        self.at(name).rmdir()

    def set_policy(self, tid: int, policy: str, priority: int) -> None:
        """Gives a thread a policy (other, fifo, rr, batch, idle). Raises OSError."""
        os.sched_setscheduler(tid, getattr(os, f"SCHED_{policy.upper()}"), os.sched_param(priority))

    def set_affinity(self, tid: int, cpus: Iterable[int]) -> None:
        """Gives a thread its CPUs. Raises OSError."""
        os.sched_setaffinity(tid, cpus)

    def glob(self, pattern: str) -> list[str]:
        """The names that match, sorted; ``*`` matches within one part of a name."""
        found = glob.iglob(pattern.lstrip("/"), root_dir=self.path)  # noqa: PTH207 (folders of /proc vanish)
        return sorted("/" + name for name in found)

    def real_path(self, name: str) -> str:
        """What the name leads to over symbolic links."""
        return str(self.at(name).resolve())

    def cpus(self) -> list[int]:
        """Those that programs may run on which rtmeter starts there."""
        return sorted(os.sched_getaffinity(0))

    def has_program(self, name: str) -> bool:
        """Whether the machine has a program of that name."""
        return shutil.which(name) is not None

    def run(self, command: Sequence[str]) -> tuple[int, str]:
        """The exit code of a program of the machine, and what it said. Raises OSError if it cannot be run,
        RtmeterError if root must not."""
        if self.path != Path("/"):
            raise OSError(errno.ENODEV, "a planted machine runs no programs")
        path = shutil.which(command[0])
        if path is not None:
            require_trusted(Path(path), field="PATH", value=command[0], verb="run")
        try:
            pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.STDOUT}
            done = run_within(_PROGRAM_LIMIT_S, command, text=True, **pipes)
        except subprocess.TimeoutExpired:
            message = f"{command[0]} did not end within {_PROGRAM_LIMIT_S} s"
            raise TimeoutError(errno.ETIMEDOUT, message) from None
        return done.returncode, str(done.stdout)

    def head(self, name: str, count: int) -> bytes:
        """The first bytes of the file; none if it cannot be read."""
        try:
            with self.at(name).open("rb") as file:
                return file.read(count)
        except OSError:
            return b""

    def link(self, name: str) -> str:
        """What a symbolic link says; nothing if it is none, or cannot be read."""
        try:
            return str(self.at(name).readlink())
        except OSError:
            return ""

    def own_pid(self) -> int:
        """The process there that lives as long as this one reaches the machine."""
        return os.getpid()

    def is_superuser(self) -> bool:
        """Whether changes are made by root."""
        return os.geteuid() == 0
