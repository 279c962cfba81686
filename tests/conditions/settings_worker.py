"""A process that applies settings and undoes them, until it is killed."""

from __future__ import annotations

import ctypes
import multiprocessing
import os
import random
import time
from collections.abc import Callable
from multiprocessing.context import ForkServerContext
from pathlib import Path
from typing import Any

from rtmeter.campaign.condition_options import SystemSettings
from rtmeter.conditions.restore import restore, restore_before_a_run
from rtmeter.conditions.settings import Settings
from rtmeter.host.root import Root

STARTING, APPLYING, STANDING, UNDOING = range(4)

Phase = ctypes.c_int


def forks() -> ForkServerContext:
    """Processes that have all of this imported already."""
    here = str(Path(__file__).parent)
    if here not in os.environ.get("PYTHONPATH", ""):  # the server that forks does not know pytest's path
        os.environ["PYTHONPATH"] = os.pathsep.join([here, *filter(None, [os.environ.get("PYTHONPATH")])])
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload(["settings_worker", "planted_kernel"])
    return context


def once(make_root: Callable[[], Root], asked: dict[str, Any], state: Path) -> None:
    """Applies and undoes; the planted root kills it somewhere on the way."""
    os.environ["RTMETER_STATE_DIR"] = str(state)
    with Settings(SystemSettings.model_validate(asked), make_root()):
        pass


def restoring(make_root: Callable[[], Root], state: Path) -> None:
    """Restores; the planted root kills it on the way, if it comes so far."""
    os.environ["RTMETER_STATE_DIR"] = str(state)
    restore(make_root())


def forever(root: Root, asked: dict[str, Any], state: Path, phase: Phase) -> None:
    """Again and again, as runs do one after the other; ``phase`` tells how far it is."""
    os.environ["RTMETER_STATE_DIR"] = str(state)
    settings = SystemSettings.model_validate(asked)
    restore_before_a_run(root)
    while True:
        phase.value = APPLYING
        with Settings(settings, root):
            phase.value = STANDING
            time.sleep(random.uniform(0, 0.03))
            phase.value = UNDOING
