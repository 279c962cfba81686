"""A program that disturbs the machine once, for a given time, and then ends, whatever became of others.

    disturber.py hog POLICY PRIORITY CPU LENGTH_NS     keeps the CPU busy at that policy and priority
    disturber.py stop PID LENGTH_NS                    stops a process and lets it go on

It prints ``ready`` (or ``error`` and why), waits for a line on standard input, disturbs, and prints when
that began and ended (CLOCK_MONOTONIC, nanoseconds). Without the line it does nothing.
"""

from __future__ import annotations

import os
import signal
import sys
import time
from pathlib import Path


def prepare(kind: str, arguments: list[str]) -> None:
    """Takes policy and place, and a name by which the kernel's events tell it; raises OSError if they are
    refused."""
    Path("/proc/self/comm").write_text(f"rtm-{kind}")
    if kind == "hog":
        policy, priority, cpu, _ = arguments
        os.sched_setaffinity(0, {int(cpu)})
        os.sched_setscheduler(0, getattr(os, f"SCHED_{policy.upper()}"), os.sched_param(int(priority)))


def disturb(kind: str, arguments: list[str]) -> tuple[int, int]:
    """Disturbs; returns from when to when."""
    begin_ns = time.monotonic_ns()
    end_ns = begin_ns + int(arguments[-1])
    if kind == "hog":
        while time.monotonic_ns() < end_ns:
            pass
    else:
        pid = int(arguments[0])
        os.kill(pid, signal.SIGSTOP)
        try:
            time.sleep(int(arguments[-1]) / 1e9)
        finally:
            os.kill(pid, signal.SIGCONT)
    return begin_ns, time.monotonic_ns()


def main(kind: str, arguments: list[str]) -> None:
    """The program."""
    try:
        prepare(kind, arguments)
    except OSError as error:
        print("error", error.strerror, flush=True)
        return
    print("ready", flush=True)
    if sys.stdin.readline():
        print(*disturb(kind, arguments), flush=True)


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2:])
