"""The disturbances that are planted, and what a check of the machine says of each."""

from __future__ import annotations

from dataclasses import replace

from rtmeter.errors import RtmeterError
from rtmeter.host.root import Root
from rtmeter.machine import Finding, findings
from rtmeter.selftest.disturbance import Disturbance
from rtmeter.selftest.measuring import RunningMeasurement
from rtmeter.selftest.sight import Planted

BLOW_NS = 200_000_000
"""How long the task above runs, and the measured process is stopped."""

STARVING_NS = 2_500_000_000
"""How long tasks want all of the CPU to be throttled: two periods of it and some."""

_SEEN = 0.8
"""Share of a blow that must be seen at least: the first release after its beginning comes a little later."""

_FAIR_SERVER_NS = 50_000_000
"""What starving normal tasks get of each second, unless it was changed."""


def task_above(running: RunningMeasurement) -> Planted:
    """A task that waits at its priority while the machine is checked, and then keeps the CPU busy."""
    priority = min(99, running.intent.scheduling.priority + 1)
    done = f"a task at fifo:{priority} kept CPU {running.cpu} busy for {BLOW_NS // 1_000_000} ms"
    planted = Planted("task_above", done, int(_SEEN * BLOW_NS), "task_at_or_above")
    try:
        with Disturbance("hog", "fifo", priority, running.cpu, length_ns=BLOW_NS) as task:
            finding = _found(running).get("task_at_or_above")
            named = finding is not None and task.pid in {item["pid"] for item in finding.items}
            task.go()
            return replace(planted, was_named=named, windows=(task.window_ns(),))
    except RtmeterError as error:
        return replace(planted, problem=error.message)


def stopped(running: RunningMeasurement) -> Planted:
    """The measured process stands still; no check can name that."""
    done = f"SIGSTOP kept the measured process from running for {BLOW_NS // 1_000_000} ms"
    planted = Planted("stopped", done, int(_SEEN * BLOW_NS))
    try:
        with Disturbance("stop", running.pid, length_ns=BLOW_NS) as stop:
            stop.go()
            return replace(planted, windows=(stop.window_ns(),))
    except RtmeterError as error:
        return replace(planted, problem=error.message)


def throttled(running: RunningMeasurement) -> Planted:
    """A real-time task below and a normal one want the CPU, until the kernel stops all real-time tasks, or
    its fair server runs before them: then the measured thread waits too."""
    done = f"a task at fifo:1 and a normal one kept CPU {running.cpu} busy for {STARVING_NS / 1e9:g} s"
    finding = _throttling(running)
    planted = Planted("throttled", done, _throttled_ns() // 2, finding.id if finding else None)
    if finding is None:
        return replace(planted, problem="throttling is off")
    if running.intent.scheduling.priority == 1:
        return replace(planted, problem="no task is below fifo:1; give --scheduling a priority above 1")
    try:
        with (
            Disturbance("hog", "other", 0, running.cpu, length_ns=STARVING_NS) as normal,
            Disturbance("hog", "fifo", 1, running.cpu, length_ns=STARVING_NS) as real_time,
        ):
            normal.go()
            real_time.go()
            return replace(planted, was_named=True, windows=(real_time.window_ns(),))
    except RtmeterError as error:
        return replace(planted, problem=error.message)


def _found(running: RunningMeasurement) -> dict[str, Finding]:
    return {finding.id: finding for finding in findings(Root(), running.intent)}


def _throttling(running: RunningMeasurement) -> Finding | None:
    """The finding that says that real-time tasks may be made to wait; None if they are not."""
    found = _found(running)
    throttling = found.get("rt_throttling")
    return throttling if throttling is not None and throttling.grade != "info" else found.get("fair_server")


def _throttled_ns() -> int:
    """How long real-time tasks are made to wait in each period."""
    runtime, period = (Root().read(f"/proc/sys/kernel/sched_rt_{name}_us") for name in ("runtime", "period"))
    rest_us = int(period or 0) - int(runtime or 0)
    return 1000 * rest_us if 0 < rest_us < int(period or 0) else _FAIR_SERVER_NS
