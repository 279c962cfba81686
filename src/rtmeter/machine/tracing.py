"""What watches the kernel while it runs: tracers, trace events, lockup detectors."""

from __future__ import annotations

from collections.abc import Iterator

from rtmeter.host.threads import cpu_set
from rtmeter.machine.finding import KERNEL_CONFIGURATION, Finding, Kind
from rtmeter.machine.reading import Machine, switch

TRACER = Kind(
    "tracer_on",
    "high",
    "a tracer that is on adds work to every function or switch that it records",
    KERNEL_CONFIGURATION,
    "echo nop > /sys/kernel/tracing/current_tracer",
)
TRACE_EVENTS = Kind(
    "trace_events_on",
    "medium",
    "each trace event that is on adds its recording to the path it is on",
    KERNEL_CONFIGURATION,
    "echo > /sys/kernel/tracing/set_event",
)
NMI_WATCHDOG = Kind(
    "nmi_watchdog",
    "high",
    "the hard lockup detector interrupts every CPU that it watches, and nothing can mask that",
    f"{KERNEL_CONFIGURATION}, CONFIG_LOCKUP_DETECTOR",
    "sysctl -w kernel.nmi_watchdog=0",
)
SOFT_WATCHDOG = Kind(
    "soft_watchdog",
    "high",
    "the soft lockup detector runs a timer in interrupt context, and a task at the highest priority, on "
    "every CPU each few seconds",
    f"{KERNEL_CONFIGURATION}, CONFIG_LOCKUP_DETECTOR",
    "sysctl -w kernel.soft_watchdog=0",
)

KINDS = (TRACER, TRACE_EVENTS, NMI_WATCHDOG, SOFT_WATCHDOG)

_FOLDERS = ("/sys/kernel/tracing", "/sys/kernel/debug/tracing")
_FEW = 5
_WATCHED = "/proc/sys/kernel/watchdog_cpumask"


def check(machine: Machine) -> Iterator[Finding]:
    """Tracers and watchdogs that are on."""
    if machine.built_with("TRACING") is not False:
        yield from _tracing(machine)
    watched = cpu_set(machine.text(_WATCHED))
    if not watched or not watched.isdisjoint(machine.cpus):
        for kind in (NMI_WATCHDOG, SOFT_WATCHDOG):
            yield from switch(machine, kind, "LOCKUP_DETECTOR")


def _tracing(machine: Machine) -> Iterator[Finding]:
    tracers = {folder: machine.text(f"{folder}/current_tracer") for folder in _FOLDERS}
    folder = next((folder for folder, tracer in tracers.items() if tracer is not None), None)
    if folder is None:
        fix = "mount -t tracefs none /sys/kernel/tracing (as root)"
        for kind in (TRACER, TRACE_EVENTS):
            yield kind.unknown(machine.why_not(f"{_FOLDERS[0]}/current_tracer"), fix=fix)
        return
    # what is off with tracing_on is the writing alone (ftrace.rst)
    paused = "; tracing_on is 0, and still it costs" if machine.text(f"{folder}/tracing_on") == "0" else ""
    if tracers[folder] != "nop":
        fix = TRACER.fix.replace(_FOLDERS[0], folder)
        yield TRACER.found(f"current_tracer is {tracers[folder]}{paused}", fix=fix)
    events = (machine.text(f"{folder}/set_event") or "").split()
    if events:
        more = f" and {len(events) - _FEW} more" if len(events) > _FEW else ""
        fix = TRACE_EVENTS.fix.replace(_FOLDERS[0], folder)
        yield TRACE_EVENTS.found(", ".join(events[:_FEW]) + more + paused, fix=fix)
