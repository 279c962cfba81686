"""The machine that a cell runs on: this one, or a target that is reached by a shell alone."""

from __future__ import annotations

import math
import re
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress

from rtmeter.conditions.component import is_same, keep_off
from rtmeter.conditions.restore import Restored, restore, restore_before_a_run
from rtmeter.conditions.strain import measured_cpus
from rtmeter.errors import RtmeterError
from rtmeter.host import lock, remote_lock
from rtmeter.host.remote_root import RemoteRoot
from rtmeter.host.remote_shell import Shell
from rtmeter.host.root import Root
from rtmeter.host.ssh import Ssh, parse_target
from rtmeter.model import TARGET, Cell, Doubt
from rtmeter.results.words import span
from rtmeter.values import visible

FIELD = "on"
_HELD: set[str] = set()
"""Targets whose lock this process holds."""

_OFF_S = 60
"""By how much the clocks of two machines may differ before it is said."""


def parse_on(text: str) -> str:
    """The URL of ``--on``. Raises RtmeterError if it is none."""
    try:
        return parse_target(text)
    except ValueError as error:
        message, remedy = error.args
        raise RtmeterError(message, field="--on", value=text, remedy=remedy) from None


def target_of(cell: Cell) -> Ssh | None:
    """The machine that all of the cell runs on; None if it is this one."""
    url = cell.hosts.get(TARGET)
    return None if url is None else Ssh(url, FIELD)


@contextmanager
def reached(url: str) -> Iterator[RemoteRoot]:
    """The machine there, to be looked at. Raises RtmeterError if it cannot be reached."""
    shell = Shell(Ssh(url, FIELD))
    try:
        yield RemoteRoot(shell=shell, keeps_journal=True)
    finally:
        shell.close()


@contextmanager
def held(url: str, say: Callable[[str], None] | None = None) -> Iterator[RemoteRoot]:
    """The machine there and its lock, which may be this process's own already. Raises RtmeterError if it
    cannot be reached, or is measured already; with ``say`` who measures there is waited for, and said."""
    with reached(url) as root:
        if url in _HELD or (lock.is_ours() and is_same(root, Root())):
            yield root
            return
        remote_lock.take(root.shell, say)
        _HELD.add(url)
        try:
            yield root
        finally:
            _HELD.discard(url)


@contextmanager
def machine_of(cell: Cell) -> Iterator[Root]:
    """The machine that the cell runs on: this one, whose lock is held by who runs cells; or its target,
    locked. Either is as it was before any run that was killed, and before a cell whose settings could not be
    undone. Raises RtmeterError."""
    url = cell.hosts.get(TARGET)
    if url is None:
        here = Root()
        if lock.is_ours():
            _put_back(here, "rtmeter: left by an earlier cell")
        yield here
        return
    with held(url) as root:
        _put_back(root, f"rtmeter: {url}: after a run that was killed")
        keep_off(root, measured_cpus(cell))
        yield root


def _put_back(root: Root, left: str) -> None:
    for undone in restore_before_a_run(root):
        if undone.ending in ("restored", "changed_since"):
            with suppress(OSError):  # whoever looks has gone: no reason to end a measurement
                print(visible(f"{left}: {undone}"), file=sys.stderr)


def restore_on(url: str, *, set_aside: bool = False, say: Callable[[str], None] | None = None) -> Restored:
    """restore() of a target, by the journal there; ``say``: as of held(). Raises RtmeterError if it cannot be
    reached."""
    with held(url, say) as root:
        return restore(root, set_aside=set_aside)


def clock_doubt(root: Root) -> Doubt | None:
    """``target_clock_off``, where the time of day there is another one: what it says of itself bears it."""
    if not isinstance(root, RemoteRoot):
        return None
    before = time.time()
    code, said = root.shell.run("date +%s")
    off_s = math.nan
    with suppress(ValueError):
        off_s = float(said) - (before + time.time()) / 2
    if code == 0 and abs(off_s) <= _OFF_S:
        return None
    way = "behind" if off_s < 0 else "ahead"
    known = f": it is {span(abs(off_s))} {way}" if math.isfinite(off_s) else ""
    message = f"the time of day of {root.host} is not the one here{known}"
    hint = "the cell's times are this machine's; set the clock there if others rely on it"
    return Doubt("target_clock_off", message, hint)


def monotonic_ns(root: Root) -> int:
    """CLOCK_MONOTONIC of the machine. Raises RtmeterError where that is not told."""
    if not isinstance(root, RemoteRoot):
        return time.monotonic_ns()
    _, said = root.run(["grep", "-m", "1", "now at", "/proc/timer_list"])
    ahead = re.search(r"^monotonic +(-?\d+) +(\d+)", root.read("/proc/self/timens_offsets") or "", re.M)
    ahead_ns = int(ahead[1]) * 10**9 + int(ahead[2]) if ahead else 0
    if (now := re.search(r"now at (\d+) nsecs", said)) is None:
        message = (
            "does not tell its clock, by which all are to begin together: /proc/timer_list is root's alone"
        )
        raise root.shell.ssh.error(message, "log in there as root")
    return int(now[1]) + ahead_ns


def uptime_shift_ns(root: Root) -> int | None:
    """What to add to CLOCK_MONOTONIC here to have CLOCK_BOOTTIME there, to some 10 ms; None: not told."""
    before = time.monotonic_ns()
    said = root.read("/proc/uptime") or ""
    here = (before + time.monotonic_ns()) // 2
    with suppress(ValueError, IndexError):
        return round(float(said.split()[0]) * 1e9) - here
    return None
