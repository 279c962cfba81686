"""The program beside a run of real-time probes: it gives the front a CPU where the probes leave it none, and
ends the probes if the front has died and they do not end by themselves.

On standard input the front says ``.`` while it lives and ``+N`` for each process group N that it starts.
"""

from __future__ import annotations

import contextlib
import os
import select
import signal
import sys
import time
from pathlib import Path

from rtmeter.host.affinity import keep_off
from rtmeter.host.ending import affinities, kill_group, put_back, put_first


def main(front: int, priority: int, avoid: str, look_every_s: float, patience_s: float) -> None:
    """Until it is killed, or the front and what it had started are gone.

    ``priority``: its own (fifo), above the probes'; 0: normal. ``avoid``: CPUs to keep off, as ``0,1``.
    ``patience_s``: how long the front may be silent, and probes without a front may take to end.
    """
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, signal.SIG_IGN)
    keep_off({int(cpu) for cpu in avoid.split(",") if cpu})
    if priority:
        with contextlib.suppress(PermissionError):
            os.sched_setscheduler(0, os.SCHED_FIFO, os.sched_param(priority))
    os.set_blocking(0, False)
    groups: set[int] = set()
    heard_at, cpus = time.monotonic(), None
    rest = b""
    dies = select.poll()
    dies.register(0, 0)  # of nothing but the front's end
    while True:
        dies.poll(1000 * look_every_s)
        try:
            said = os.read(0, 1 << 16)
        except BlockingIOError:
            if cpus is None and time.monotonic() - heard_at > patience_s:
                cpus = affinities(front) or None
                put_first(front, priority or 1)
            continue
        if not said:
            break
        *lines, rest = (rest + said).split(b"\n")
        groups |= {int(line[1:]) for line in lines if line.startswith(b"+")}
        heard_at = time.monotonic()
        if cpus is not None:
            put_back(front, cpus)
            cpus = None
    end(groups, patience_s)


def end(groups: set[int], patience_s: float) -> None:
    """Kills what is left of the groups once they have had time to end by themselves."""
    limit = time.monotonic() + patience_s
    while any(map(lives, groups)) and time.monotonic() < limit:
        time.sleep(0.1)
    for group in filter(lives, groups):
        kill_group(group)


def lives(group: int) -> bool:
    """Whether a process of the group is there, and not only its exit code, for which nobody has asked yet."""
    try:
        os.killpg(group, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        return True
    return any(_runs_in(group, file) for file in Path("/proc").glob("[0-9]*/stat"))


def _runs_in(group: int, stat: Path) -> bool:
    with contextlib.suppress(OSError):  # it has ended meanwhile
        state, _, its = stat.read_text(errors="replace").rpartition(")")[2].split()[:3]
        return int(its) == group and state not in ("Z", "X")
    return False


if __name__ == "__main__":
    main(int(sys.argv[1]), int(sys.argv[2]), sys.argv[3], float(sys.argv[4]), float(sys.argv[5]))
