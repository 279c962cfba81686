"""The CPUs that the tests may run on, of those that the machine has."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from rtmeter.host.threads import cpu_set

ONLINE = cpu_set(Path("/sys/devices/system/cpu/online").read_text())
OWN = os.sched_getaffinity(0)

takes_deadline = pytest.mark.skipif(
    OWN != ONLINE, reason=f"SCHED_DEADLINE takes threads that may run on every CPU; these are on {OWN}"
)
two_cpus = pytest.mark.skipif(len(OWN) < 2, reason="there is one CPU")
