"""The wake-up measurement that is to see the disturbances."""

from __future__ import annotations

import secrets
import select
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from rtmeter.errors import RtmeterError
from rtmeter.host.affinity import away_from
from rtmeter.machine import Intent
from rtmeter.measure.probe import probes
from rtmeter.measure.probe.places import Here
from rtmeter.measure.probe.probe_process import ProbeProcess

PERIOD_NS = 1_000_000

_PATIENCE_S = 60
_LONGEST_SAMPLES = 600_000
"""Ten minutes: it is ended before that."""


@dataclass(frozen=True, slots=True)
class RunningMeasurement:
    """The measurement under way: what is intended, on one CPU, and the probe's process id."""

    intent: Intent
    cpu: int
    pid: int


@contextmanager
def measuring(intent: Intent, cpu: int, log: Path) -> Iterator[RunningMeasurement]:
    """From when the CPU is measured, this process out of its way, until the log is whole.

    Raises RtmeterError if the probe is not there, does not start or fails.
    """
    config = {
        "version": 1,
        "measurement": "wakeup",
        "role": "single",
        "log": str(log),
        "period_ns": PERIOD_NS,
        "samples": _LONGEST_SAMPLES,
        "scheduling": intent.scheduling.to_probe(),
        "cpus": [cpu],
        "session": f"rtm{secrets.token_hex(4)}",
        "watch_stdin": True,
    }
    process = ProbeProcess(probes.require("posix", "wakeup"), config, log.parent, Here())
    try:
        _listen(process, lambda: process.event("ready") is not None)
        ready = process.event("ready")
        if ready is None:
            raise _error(process)
        with away_from({cpu}):
            yield RunningMeasurement(intent, cpu, int(ready["pid"]))
        process.ask_to_end()
        _listen(process, lambda: False)
        if not process.ended_well:
            raise _error(process)
    finally:
        process.close()


def _listen(process: ProbeProcess, until: Callable[[], bool]) -> None:
    """Until it is so, or the process has ended, or all patience."""
    limit = time.monotonic() + _PATIENCE_S
    while process.exit_code is None and not until() and time.monotonic() < limit:
        select.select([process.exited_fd, process.status_fd], [], [], 0.25)
        process.read_events()
    process.read_events()


def _error(process: ProbeProcess) -> RtmeterError:
    """In the probe's own words, if it said any."""
    said = process.event("error") or {}
    return RtmeterError(
        str(said.get("message", "the measurement did not run")),
        field=said.get("field") or "probe",
        value=said.get("value"),
        remedy=said.get("remedy") or "see whether rtmeter measure wakeup --adapter posix runs",
    )
