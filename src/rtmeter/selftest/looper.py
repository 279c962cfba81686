"""A program that is measured while something in it makes it late, and who does that to it.

    looper.py loop SHARED PRIORITY CPU PERIOD_NS         wakes each period on that CPU, does what it is asked,
                                                         and stamps; a server of its own answers it
    looper.py hold LOCK SHARED PRIORITY CPU LENGTH_NS    takes a lock that the loop then waits for, while a
                                                         task between the two keeps the CPU busy that long

SHARED is an open file of BYTES: two locks, what the loop is to do, and for how long. Both speak as
disturber.py does. The loop begins at the first line, ends when it is asked to, or after ROWS, and then
writes its rows: releases and stamps in turn, 64 bits each. If who has started it is gone, it is killed.
"""

from __future__ import annotations

import ctypes
import gc
import mmap
import os
import signal
import socket
import sys
import time
from array import array
from collections.abc import Callable
from pathlib import Path

BYTES, ROWS = 4096, 600_000
"""Of the shared file; at the most."""

LOCKS = {"plain": 0, "inheriting": 64}
"""Where they lie: each takes less than 64 bytes."""

ASKED_AT = 128
NOTHING, PLAIN, INHERITING, FAULTS, WORK, ASK, END = range(7)
"""What the loop is asked; once each, but for ASK: with every release until it is asked for another."""

FAULT_BYTES, HELD_NS, WORK_NS = 32 << 20, 5_000_000, 3_000_000
"""Memory that is touched for the first time; processor time that a lock is held, and that work takes."""

_INHERIT, _SHARED, _ABSOLUTE, _MONOTONIC, _LOCK_NOW, _DIE_WITH = 1, 1, 1, 1, 1, 1
_LIBC = ctypes.CDLL(None, use_errno=True)


class Timespec(ctypes.Structure):
    """struct timespec."""

    _fields_ = (("seconds", ctypes.c_long), ("ns", ctypes.c_long))


def called(code: int) -> None:
    """Raises OSError if a call of the C library failed."""
    if code != 0:
        number = code if code > 0 else ctypes.get_errno()
        raise OSError(number, os.strerror(number))


def prepare(name: str, priority: int, cpu: int | None) -> None:
    """Name, policy and place; and an end with its parent's."""
    _LIBC.prctl(_DIE_WITH, signal.SIGKILL)
    Path("/proc/self/comm").write_text(name)
    if cpu is not None:
        os.sched_setaffinity(0, {cpu})
    os.sched_setscheduler(0, os.SCHED_FIFO, os.sched_param(priority))


class Shared:
    """What the loop, its disturbers and who plants have in common."""

    def __init__(self, descriptor: int) -> None:
        self._memory = mmap.mmap(descriptor, BYTES)
        self._asked = memoryview(self._memory).cast("q")

    @property
    def asked(self) -> int:
        """What the loop is to do with the next release."""
        return self._asked[ASKED_AT // 8]

    @asked.setter
    def asked(self, what: int) -> None:
        self._asked[ASKED_AT // 8] = what

    def make_locks(self) -> None:
        """Before anyone takes them."""
        for name, inherits in (("plain", 0), ("inheriting", _INHERIT)):
            attributes = ctypes.create_string_buffer(64)
            called(_LIBC.pthread_mutexattr_init(attributes))
            called(_LIBC.pthread_mutexattr_setpshared(attributes, _SHARED))
            called(_LIBC.pthread_mutexattr_setprotocol(attributes, inherits))
            called(_LIBC.pthread_mutex_init(self.lock(name), attributes))

    def lock(self, name: str) -> ctypes.Array[ctypes.c_char]:
        """A pthread_mutex_t."""
        return (ctypes.c_char * 64).from_buffer(self._memory, LOCKS[name])


def deeds(shared: Shared, client: socket.socket) -> dict[int, Callable[[], object]]:
    """What the loop can be asked to do."""

    def take(name: str) -> Callable[[], None]:
        lock = shared.lock(name)

        def taken() -> None:
            _LIBC.pthread_mutex_lock(lock)
            _LIBC.pthread_mutex_unlock(lock)

        return taken

    def touch() -> mmap.mmap:
        fresh = mmap.mmap(-1, FAULT_BYTES)
        fresh.madvise(mmap.MADV_NOHUGEPAGE)
        for at in range(0, FAULT_BYTES, mmap.PAGESIZE):
            fresh[at] = 1
        return fresh

    def ask() -> None:
        client.send(b"?")
        client.recv(1)

    return {
        PLAIN: take("plain"),
        INHERITING: take("inheriting"),
        FAULTS: touch,
        WORK: lambda: work(WORK_NS),
        ASK: ask,
    }


def work(length_ns: int) -> None:
    """Uses so much of a processor, however long that takes, and seldom asks how much that was."""
    end_ns = time.thread_time_ns() + length_ns
    while time.thread_time_ns() < end_ns:
        for _ in range(2000):
            pass


def loop(shared: Shared, client: socket.socket, period_ns: int) -> array[int]:
    """Its rows. Releases that have passed are served at once."""
    rows, n = array("q", bytes(16 * ROWS)), 0
    can, wait = deeds(shared, client), _LIBC.clock_nanosleep
    release_ns = time.monotonic_ns() + period_ns
    while n < 2 * ROWS:
        wait(_MONOTONIC, _ABSOLUTE, ctypes.byref(Timespec(*divmod(release_ns, 10**9))), None)
        if (asked := shared.asked) == END:
            break
        kept = can[asked]() if asked else None
        rows[n], rows[n + 1] = release_ns, time.monotonic_ns()
        if kept is not None or asked not in (NOTHING, ASK):
            del kept
            shared.asked = NOTHING
        release_ns += period_ns
        n += 2
    return rows[:n]


def answer(server: socket.socket) -> None:
    """Sends back what comes."""
    while message := server.recv(1):
        server.send(message)


def measured(priority: int, cpu: int, shared: Shared, period_ns: int) -> None:
    """The program that is measured."""
    client, server = socket.socketpair()
    shared.make_locks()
    if (pid := os.fork()) == 0:
        client.close()
        prepare("rtm-server", max(1, priority - 1), None)
        answer(server)
        os._exit(0)
    server.close()
    prepare("rtm-loop", priority, cpu)
    called(_LIBC.mlockall(_LOCK_NOW))
    gc.disable()
    print("ready", pid, flush=True)
    if sys.stdin.readline():
        sys.stdout.buffer.write(loop(shared, client, period_ns).tobytes())


def hold(lock: str, priority: int, cpu: int, shared: Shared, length_ns: int) -> None:
    """Holds a lock with less priority than who waits for it, and than who keeps it from the CPU."""
    begin, go = os.pipe()
    if os.fork() == 0:
        prepare("rtm-middle", max(1, priority - 1), cpu)
        os.close(go)
        while os.read(begin, 1):
            end_ns = time.monotonic_ns() + length_ns
            while time.monotonic_ns() < end_ns:
                pass
        os._exit(0)
    prepare("rtm-holder" if lock == "plain" else "rtm-lender", 1, cpu)
    taken = shared.lock(lock)
    print("ready", flush=True)
    while sys.stdin.readline():
        begin_ns = time.monotonic_ns()
        _LIBC.pthread_mutex_lock(taken)
        shared.asked = PLAIN if lock == "plain" else INHERITING
        os.write(go, b"!")
        work(HELD_NS)
        _LIBC.pthread_mutex_unlock(taken)
        while shared.asked != NOTHING:
            time.sleep(0.001)
        print(begin_ns, time.monotonic_ns(), flush=True)


def main(kind: str, arguments: list[str]) -> None:
    """The program."""
    try:
        if kind == "loop":
            file, priority, cpu, period_ns = map(int, arguments)
            measured(priority, cpu, Shared(file), period_ns)
        else:
            file, priority, cpu, length_ns = map(int, arguments[1:])
            hold(arguments[0], priority, cpu, Shared(file), length_ns)
    except OSError as error:
        print("error", error.strerror, flush=True)


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2:])
