"""Stops an emulated machine as a whole, as a hypervisor may: its clock runs on."""

from __future__ import annotations

import os
import random
import signal
import time
from contextlib import suppress
from pathlib import Path
from threading import Event

STOPS = int(os.environ.get("STOPS", "100"))
STOPPED_MS, PERIOD_MS, DEADLINE_MS = 225, 200, 20
"""A stop is longer than a period and a deadline: some release of it is late. What it finds in the kernel is
blamed on the kernel, by right: the fewer releases, the less of the CPU's time is the kernel's."""
BETWEEN_MS = (50, 50 + PERIOD_MS)
"""Drawn at random over a whole period: a stop begins at any moment of it alike."""
RELEASES = STOPS * (STOPPED_MS + sum(BETWEEN_MS) // 2) // PERIOD_MS
KERNEL = "nohz_full=1 rcu_nocbs=1 irqaffinity=0 tsc=reliable clocksource=tsc"
"""Of the guest: on CPU 1 no tick while one thread runs there, and clocks that are read without the kernel."""


def stop_often(out: Path, ended: Event) -> None:
    """The emulator that shares ``out``, STOPS times, once its guest says that it measures; until it ended."""
    while not (out / "measures").exists():
        if ended.wait(0.05):
            return
    emulator = emulator_of(out)
    drawn = random.Random(0)
    for _ in range(STOPS):
        if ended.wait(drawn.uniform(*BETWEEN_MS) / 1000):
            return
        with suppress(ProcessLookupError):  # it ends meanwhile
            os.kill(emulator, signal.SIGSTOP)
            time.sleep(STOPPED_MS / 1000)
            os.kill(emulator, signal.SIGCONT)


def emulator_of(out: Path) -> int:
    for process in Path("/proc").glob("[0-9]*"):
        with suppress(OSError):
            words = (process / "cmdline").read_text().split("\0")
            if words[0].startswith("qemu-system") and any(f"path={out}," in word for word in words):
                return int(process.name)
    raise AssertionError(f"no emulator shares {out}")
