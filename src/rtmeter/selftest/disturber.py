"""A program that disturbs the machine for a given time as often as it is told, and ends when it is told no
more, whatever became of others.

    disturber.py hog POLICY PRIORITY CPU LENGTH_NS     keeps the CPU busy at that policy and priority
    disturber.py nice NICE CPU LENGTH_NS               keeps the CPU busy as a normal task
    disturber.py move PID BACK CPU PRIORITY LENGTH_NS  moves a thread there, where it keeps the CPU busy at
                                                       that priority (fifo), and back
    disturber.py stop PID LENGTH_NS                    stops a process and lets it go on
    disturber.py syscall CPU LENGTH_NS                 sits there in system calls that yield to nobody
    disturber.py interrupt CPU LENGTH_NS               has thousands of timers expire there in one interrupt
    disturber.py softirq CPU LENGTH_NS                 sends what thousands of sockets get, in a network of
                                                       its own

It prints ``ready`` (or ``error`` and why). For each line on standard input it disturbs, and prints when that
began and ended (CLOCK_MONOTONIC, nanoseconds).
"""

from __future__ import annotations

import contextlib
import ctypes
import fcntl
import os
import random
import resource
import signal
import socket
import struct
import sys
import time
from collections.abc import Callable
from pathlib import Path

Disturb = Callable[[int], int]
"""Disturbs for so many nanoseconds, and says since when."""

MOST_GROUPS, TIMERS, SOCKETS = 65_536, 20_000, 8_000
SIOCSIFFLAGS, IFF_UP_RUNNING, CLONE_NEWNET = 0x8914, 0x41, 0x40000000
MONOTONIC, ABSOLUTE, BY_SIGNAL = 1, 1, 0
RUNS_THERE_S, MOST_ARMED = 0.002, 5
LIBC = ctypes.CDLL(None, use_errno=True)


def prepare(kind: str, arguments: list[str]) -> None:
    """Takes policy and place, and a name by which the kernel's events tell it; raises OSError if they are
    refused."""
    Path("/proc/self/comm").write_text(f"rtm-{kind}")
    if kind == "hog":
        policy, priority, cpu, _ = arguments
        os.sched_setaffinity(0, {int(cpu)})
        os.sched_setscheduler(0, getattr(os, f"SCHED_{policy.upper()}"), os.sched_param(int(priority)))
    elif kind == "nice":
        os.sched_setaffinity(0, {int(arguments[1])})
        os.setpriority(os.PRIO_PROCESS, 0, int(arguments[0]))
        with contextlib.suppress(OSError):  # kernels may share the CPU between sessions first (sched(7))
            Path("/proc/self/autogroup").write_text(arguments[0])
    elif kind == "move":
        os.sched_setaffinity(0, {int(arguments[2])})
        os.sched_setscheduler(0, os.SCHED_FIFO, os.sched_param(int(arguments[3])))
    elif kind != "stop":
        os.sched_setaffinity(0, {int(arguments[0])})
        MADE[kind] = MAKERS[kind]()


def called(code: int) -> None:
    """Raises OSError if a call of the C library failed."""
    if code != 0:
        raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()))


def shuffled() -> Disturb:
    """The kernel sorts a process's groups without a pause: milliseconds for as many as there may be."""
    groups = list(range(MOST_GROUPS))
    random.Random(0).shuffle(groups)
    given = (ctypes.c_uint * MOST_GROUPS)(*groups)

    def disturb(length_ns: int) -> int:
        begin_ns = time.monotonic_ns()
        while time.monotonic_ns() < begin_ns + length_ns:
            called(LIBC.setgroups(ctypes.c_size_t(MOST_GROUPS), given))
        return begin_ns

    return disturb


def timers() -> Disturb:
    """Timers of this process, whose signals it does not take, to expire at one time."""
    signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGUSR1})
    with contextlib.suppress(OSError, ValueError):  # for who may not raise it, it may suffice
        resource.setrlimit(resource.RLIMIT_SIGPENDING, (resource.RLIM_INFINITY,) * 2)
    event = struct.pack("Pii48x", 0, signal.SIGUSR1, BY_SIGNAL)
    made = [ctypes.c_void_p() for _ in range(TIMERS)]
    started_ns = time.monotonic_ns()
    for one in made:
        called(LIBC.timer_create(MONOTONIC, event, ctypes.byref(one)))
    arming_ns = 100_000_000 + 4 * (time.monotonic_ns() - started_ns)

    def armed(ahead_ns: int) -> int:
        """When all of them expire; those that were armed too late for it did so one by one."""
        at_ns = time.monotonic_ns() + ahead_ns
        expiry = struct.pack("4q", 0, 0, *divmod(at_ns, 10**9))
        for one in made:
            called(LIBC.timer_settime(one, ABSOLUTE, expiry, None))
        return at_ns

    def disturb(length_ns: int) -> int:
        expired: list[int] = []
        for doubled in range(MOST_ARMED):
            expired.append(armed(arming_ns << doubled))
            if time.monotonic_ns() < expired[-1]:
                break
        begin_ns = max(expired[-1], time.monotonic_ns())
        while time.monotonic_ns() < begin_ns + length_ns:
            pass  # an idle CPU's timers may go elsewhere
        left = ctypes.create_string_buffer(64)
        for one in made:  # the kernel puts off what takes too long
            while LIBC.timer_gettime(one, left) == 0 and any(left.raw):
                pass
        return expired[0]  # those that were armed in time for an earlier round expired then

    return disturb


def sockets() -> Disturb:
    """Raw sockets, which all get a copy of each datagram: the network's softirq makes one after another."""
    called(LIBC.unshare(CLONE_NEWNET))
    resource.setrlimit(resource.RLIMIT_NOFILE, (SOCKETS + 64,) * 2)
    KEPT.extend(socket.socket(socket.AF_INET, socket.SOCK_RAW, socket.IPPROTO_UDP) for _ in range(SOCKETS))
    sender = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    fcntl.ioctl(sender, SIOCSIFFLAGS, struct.pack("16sh14x", b"lo", IFF_UP_RUNNING))
    KEPT.append(sender)
    sender.bind(("127.0.0.1", 0))

    def disturb(length_ns: int) -> int:
        begin_ns = time.monotonic_ns()
        while time.monotonic_ns() < begin_ns + length_ns:
            sender.sendto(b"all", sender.getsockname())
        return begin_ns

    return disturb


KEPT: list[socket.socket] = []
MAKERS = {"syscall": shuffled, "interrupt": timers, "softirq": sockets}
MADE: dict[str, Disturb] = {}


def busy_until(end_ns: int) -> None:
    while time.monotonic_ns() < end_ns:
        pass


def disturb(kind: str, arguments: list[str]) -> tuple[int, int]:
    """Disturbs; returns from when to when."""
    begin_ns = time.monotonic_ns()
    end_ns = begin_ns + int(arguments[-1])
    if kind in MADE:
        begin_ns = MADE[kind](int(arguments[-1]))
    elif kind in ("hog", "nice"):
        busy_until(end_ns)
    elif kind == "move":
        pid, back, there = map(int, arguments[:3])
        os.sched_setaffinity(pid, {there})
        try:
            busy_until(end_ns)
            time.sleep(RUNS_THERE_S)
        finally:
            os.sched_setaffinity(pid, {back})
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
    while sys.stdin.readline():
        print(*disturb(kind, arguments), flush=True)


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2:])
