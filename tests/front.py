"""The command line as a user runs it: a process of its own (see preloaded.py), on the real probes."""

from __future__ import annotations

import ctypes
import json
import os
import subprocess
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from preloaded import Preloaded
from rtmeter.errors import RtmeterError
from rtmeter.samples import LogReader
from waiting import LIMIT_S

PTRACE_ATTACH, PTRACE_DETACH, WALL = 16, 17, 0x40000000


@dataclass(frozen=True)
class Done:
    """What a command printed, and its exit code."""

    code: int
    out: str
    err: str

    @property
    def json(self) -> Any:
        return json.loads(self.out)


@contextmanager
def running(
    *arguments: object, inside: Sequence[str] = (), cwd: Path | None = None, **changes: str
) -> Iterator[subprocess.Popen[str]]:
    """The command, running; killed if it is still there at the end.

    ``inside`` is a command that runs another, such as ``ip netns exec NAME``; ``changes`` are environment
    variables. It is forked of a process that has imported all it needs, unless it is to run inside something
    else than a network namespace, something of Python's is changed, or everything is run in full.
    """
    in_network = tuple(inside[:3]) == ("ip", "netns", "exec") and len(inside) == 4
    start: Any = partial(Preloaded, namespace=inside[3]) if in_network else Preloaded
    command = list(map(str, arguments))
    afresh = os.environ.get("RTMETER_FULL") == "1" or any(name.startswith("PYTHON") for name in changes)
    if afresh or (inside and not in_network):
        start, command = subprocess.Popen, [*inside, sys.executable, "-m", "rtmeter", *command]
    process: subprocess.Popen[str] = start(
        command, cwd=cwd, env=os.environ | changes, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )
    try:
        yield process
    finally:
        process.kill()
        process.communicate()


def rtmeter(*arguments: object, inside: Sequence[str] = (), cwd: Path | None = None, **changes: str) -> Done:
    """The command, run to its end. A traceback is never what a user should see."""
    with running(*arguments, inside=inside, cwd=cwd, **changes) as process:
        return ended(process)


def ended(process: subprocess.Popen[str]) -> Done:
    """Waits for the command's end."""
    out, err = process.communicate(timeout=2 * LIMIT_S)
    assert "Traceback" not in err, err
    return Done(process.returncode, out, err)


def probes_of(front: int, role: str = "") -> list[int]:
    """The probes that the process started, by pid; those of one role if it is given."""
    children = {pid for listed in _texts(Path(f"/proc/{front}/task"), "*/children") for pid in listed.split()}
    arguments = {int(pid): "".join(_texts(Path(f"/proc/{pid}"), "cmdline")) for pid in children}
    return [pid for pid, said in sorted(arguments.items()) if f"{role}.config.json" in said]


def _texts(folder: Path, pattern: str) -> Iterator[str]:
    """Of files of /proc; what ends meanwhile has none."""
    for file in folder.glob(pattern):
        with suppress(OSError):
            yield file.read_text()


def rows_of(log: Path) -> int:
    """How many rows can be read of a log that is being written; 0 if there is none yet."""
    try:
        return LogReader(log).rows
    except RtmeterError:
        return 0


def sleeps_of(tid: int) -> int:
    """How often a thread has waited for something; not how often another took its CPU."""
    status = Path(f"/proc/{tid}/status").read_text()
    return int(status.partition("\nvoluntary_ctxt_switches:")[2].split()[0])


@contextmanager
def stopped(tid: int) -> Iterator[None]:
    """Stops one thread of another process while the block runs; its other threads go on."""
    libc = ctypes.CDLL(None, use_errno=True)

    def ptrace(request: int) -> None:
        if libc.ptrace(request, tid, None, None) != 0:
            pytest.skip(f"this system does not let a process be traced: {os.strerror(ctypes.get_errno())}")

    ptrace(PTRACE_ATTACH)
    os.waitpid(tid, WALL)
    try:
        yield
    finally:
        ptrace(PTRACE_DETACH)
