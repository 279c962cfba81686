"""What the tests of load and traffic share: a strain as a cell has it, and what is left running of one."""

from __future__ import annotations

import os
import subprocess
from contextlib import suppress
from pathlib import Path
from typing import Any

from rtmeter.conditions.strain import Strain
from rtmeter.host.root import Root

MONITOR_NS = 200_000_000


def strain(folder: Path, **asked: Any) -> Strain:
    """The strain that is asked for, sampled five times a second."""
    return Strain({"monitor_ns": MONITOR_NS} | asked, folder, set(), 3, Root())


def written(end: str) -> int:
    """Bytes that the iperf3 of that end (``--client``, ``--server``) has written into its sockets."""
    total = 0
    for pid, args in stray("iperf3"):
        with suppress(OSError):  # it has ended
            io = Path(f"/proc/{pid}/io").read_text() if end in args else "wchar: 0"
            total += int(io.partition("wchar: ")[2].split()[0])
    return total


def stray(program: str) -> list[tuple[int, str]]:
    """Living processes of that program that this one started, as (pid, command line)."""
    listed = subprocess.run(
        ["ps", "-ww", "-eo", "pid,ppid,stat,args"], capture_output=True, text=True, check=True
    )
    rows = [line.split(None, 3) for line in listed.stdout.splitlines()[1:]]
    living = {int(pid): (int(parent), args) for pid, parent, state, args in rows if state[0] != "Z"}

    def is_ours(pid: int) -> bool:
        while pid in living and pid != os.getpid():
            pid = living[pid][0]
        return pid == os.getpid()

    others = living.keys() - {os.getpid()}  # a worker of pytest's is named after the test that it runs
    return [(pid, living[pid][1]) for pid in sorted(others) if program in living[pid][1] and is_ours(pid)]
