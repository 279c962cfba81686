"""Stops an emulated machine as a whole, as a hypervisor may: its clock runs on."""

from __future__ import annotations

import os
import random
import signal
import time
from contextlib import suppress
from pathlib import Path
from threading import Event

STOPS = 200
STOPPED_S = 0.05


def stop_often(out: Path, ended: Event) -> None:
    """The emulator that shares ``out``, STOPS times, once its guest says that it measures; until it ended."""
    while not (out / "measures").exists():
        if ended.wait(0.05):
            return
    emulator = _emulator_of(out)
    drawn = random.Random(0)
    for _ in range(STOPS):
        if ended.wait(0.06 + 0.06 * drawn.random()):
            return
        with suppress(ProcessLookupError):  # it ends meanwhile
            os.kill(emulator, signal.SIGSTOP)
            time.sleep(STOPPED_S)
            os.kill(emulator, signal.SIGCONT)


def _emulator_of(out: Path) -> int:
    for process in Path("/proc").glob("[0-9]*"):
        with suppress(OSError):
            words = (process / "cmdline").read_text().split("\0")
            if words[0].startswith("qemu-system") and any(f"path={out}," in word for word in words):
                return int(process.name)
    raise AssertionError(f"no emulator shares {out}")
