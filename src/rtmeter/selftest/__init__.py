"""Planted disturbances → whether a measurement saw each, and whether a check of the machine names it.

Nothing is changed that would have to be put back: what disturbs are processes that end by themselves.
"""

from __future__ import annotations

import os
import tempfile
import time
from dataclasses import replace
from pathlib import Path

from rtmeter.errors import RtmeterError
from rtmeter.machine import Intent
from rtmeter.samples import read_log
from rtmeter.selftest.measuring import PERIOD_NS, measuring
from rtmeter.selftest.plants import stopped, task_above, throttled
from rtmeter.selftest.sight import Planted, Sight, sights

__all__ = ["Planted", "Sight", "self_test"]

_PAUSE_S = 0.3
"""Between disturbances, so that one is over before the next."""


def self_test(intent: Intent) -> list[Sight]:
    """Measures wake-ups on the first of the intended CPUs (by default the last of this process) with each
    disturbance in turn; takes some five seconds.

    Raises RtmeterError if the intended policy is neither fifo nor rr, or the measurement fails.
    """
    if intent.scheduling.policy not in ("fifo", "rr"):
        raise RtmeterError(
            "has no priority that a task could be above",
            field="--scheduling",
            value=str(intent.scheduling),
            remedy="choose fifo:P or rr:P for the self-test",
        )
    cpu = intent.cpus[0] if intent.cpus else max(os.sched_getaffinity(0))
    with tempfile.TemporaryDirectory(prefix="rtmeter-") as folder:
        log = Path(folder) / "probe.rtlog"
        planted = []
        with measuring(replace(intent, cpus=(cpu,)), cpu, log) as running:
            for plant in (task_above, stopped, throttled):
                time.sleep(_PAUSE_S)
                planted.append(plant(running))
            time.sleep(_PAUSE_S)
        return sights(read_log(log).columns, PERIOD_NS, planted)
