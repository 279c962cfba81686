"""The kernel's counters of what a machine is busy with, and throttled by."""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import NamedTuple

from rtmeter.conditions import drops, heat, throttling
from rtmeter.host.root import Root

ReadFiles = Callable[[Iterable[str]], Mapping[str, str]]
"""Reads files of the kernel (``Root.read_all``); without those that are not there, or cannot be read."""

_PRESSURES = {f"/proc/pressure/{resource}": resource for resource in ("cpu", "memory", "io")}
_FILES = ("/proc/stat", "/proc/vmstat", "/proc/diskstats", *_PRESSURES, *drops.FILES)

_TICKS_PER_S = 100  # USER_HZ, which every architecture's /proc has
_SECTOR_BYTES = 512  # of /proc/diskstats, whatever the disk's own
_PSI = re.compile(r"^(some|full) .*\btotal=(\d+)$", re.MULTILINE)
_WHOLE_DISK = re.compile(r"(?:(?:sd|vd|hd|xvd)[a-z]+|(?:nvme\d+n|mmcblk)\d+)")


@dataclass(frozen=True, slots=True)
class Counters:
    """One look at the machine. ``at_ns``: CLOCK_MONOTONIC.

    ``busy_s``, ``steal_s``, ``idle_s`` and ``interrupts_s``: seconds since boot that each CPU was not idle
    (steal included), that the hypervisor took, that it was idle (also while a disk was waited for), and that
    interrupts took (soft ones included); ``totals``: what only grows, by name; ``now``: what is momentary.
    What the kernel does not tell is absent.
    """

    at_ns: int
    busy_s: Mapping[int, float]
    steal_s: Mapping[int, float]
    totals: Mapping[str, float]
    now: Mapping[str, float]
    idle_s: Mapping[int, float] = field(default_factory=dict)
    interrupts_s: Mapping[int, float] = field(default_factory=dict)


class Spent(NamedTuple):
    """Processor time of all CPUs between two looks: what tasks took, and what interrupts did."""

    tasks_s: float
    interrupts_s: float


NOTHING = Spent(0.0, 0.0)


def spent(before: Counters, after: Counters) -> Spent:
    """Between the two.

    What a CPU does the kernel finds out at its ticks, where it does not measure it: a task that is released
    in step with them is there at each, or at none. How long it was idle it measures as a rule, so that tasks
    took what else is left of the time, and no more than the ticks tell where they tell less.
    """
    elapsed_s = (after.at_ns - before.at_ns) / 1e9
    tasks_s = interrupts_s = 0.0
    for cpu in after.idle_s.keys() & before.idle_s.keys():
        busy, idle, steal, interrupts = (
            now[cpu] - then[cpu]
            for now, then in (
                (after.busy_s, before.busy_s),
                (after.idle_s, before.idle_s),
                (after.steal_s, before.steal_s),
                (after.interrupts_s, before.interrupts_s),
            )
        )
        tasks_s += max(min(busy, elapsed_s - idle) - steal - interrupts, 0.0)
        interrupts_s += interrupts
    return Spent(tasks_s, interrupts_s)


def files_of(root: Root) -> list[str]:
    """What look() reads besides where the machine has it."""
    return [*throttling.files(root), *heat.frequency_files(root)]


def look(read: ReadFiles, more_files: Iterable[str] = ()) -> Counters:
    """Reads all counters; ``more_files``: files_of()."""
    at_ns = time.monotonic_ns()
    texts = read([*_FILES, *more_files])
    stat = texts.get("/proc/stat", "")
    busy_s, steal_s, idle_s, interrupts_s = {}, {}, {}, {}
    totals: dict[str, float] = {}
    now: dict[str, float] = {}
    for line in stat.splitlines():
        name, *fields = line.split()
        if name.startswith("cpu") and name != "cpu":
            user, nice, system, idle, iowait, irq, softirq, steal = map(int, fields[:8])
            number = int(name[3:])
            busy_s[number] = (user + nice + system + irq + softirq + steal) / _TICKS_PER_S
            steal_s[number] = steal / _TICKS_PER_S
            idle_s[number] = (idle + iowait) / _TICKS_PER_S
            interrupts_s[number] = (irq + softirq) / _TICKS_PER_S
        elif name in ("ctxt", "intr"):
            totals[{"ctxt": "context_switches", "intr": "interrupts"}[name]] = int(fields[0])
        elif name in ("procs_running", "procs_blocked"):
            now[name.removeprefix("procs_")] = int(fields[0])
    now |= heat.frequencies(texts)
    totals |= _memory(texts) | _disks(texts) | _pressure(texts)
    totals |= throttling.totals(texts) | drops.totals(texts)
    return Counters(at_ns, busy_s, steal_s, totals, now, idle_s, interrupts_s)


def _memory(texts: Mapping[str, str]) -> dict[str, float]:
    lines = (line.split() for line in texts.get("/proc/vmstat", "").splitlines())
    values = {name: int(value) for name, value in lines}
    if not {"pgfault", "pgmajfault"} <= values.keys():
        return {}
    return {"faults": values["pgfault"], "major_faults": values["pgmajfault"]}


def _disks(texts: Mapping[str, str]) -> dict[str, float]:
    """Bytes read from and written to the disks themselves: partitions and layers above count twice."""
    text = texts.get("/proc/diskstats")
    if text is None:
        return {}
    disks = [f for line in text.splitlines() if _WHOLE_DISK.fullmatch((f := line.split())[2])]
    read_sectors, written_sectors = sum(int(f[5]) for f in disks), sum(int(f[9]) for f in disks)
    return {
        "disk_read_bytes": read_sectors * _SECTOR_BYTES,
        "disk_written_bytes": written_sectors * _SECTOR_BYTES,
    }


def _pressure(texts: Mapping[str, str]) -> dict[str, float]:
    """Seconds in which some, or all, tasks waited for a resource: pressure stall information (PSI)."""
    found = {}
    for file, resource in _PRESSURES.items():
        for share, total_us in _PSI.findall(texts.get(file, "")):
            if (resource, share) != ("cpu", "full"):  # of the whole machine it means nothing
                found[f"psi_{resource}_{share}"] = int(total_us) / 1e6
    return found
