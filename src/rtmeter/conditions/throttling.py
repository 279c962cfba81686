"""The kernel's counters of throttling: CPU quotas of control groups, and heat. Of real-time throttling it
has none."""

from __future__ import annotations

import re
from collections.abc import Mapping

from rtmeter.host import cgroups
from rtmeter.host.root import Root

QUOTA, THERMAL = "quota_throttles", "thermal_throttles"

_STAT = "cpu.stat"
_NR_THROTTLED = re.compile(r"^nr_throttled (\d+)$", re.MULTILINE)
_HEAT = "/sys/devices/system/cpu/cpu[0-9]*/thermal_throttle/{}_throttle_count"


def files(root: Root) -> list[str]:
    """Those that count it: of the control groups that this process is in, and of each CPU of an x86."""
    groups = cgroups.find("cpu", root)
    quotas = [f"{group}/{_STAT}" for group in groups.above()] if groups else []
    return [*quotas, *(name for part in ("core", "package") for name in root.glob(_HEAT.format(part)))]


def totals(texts: Mapping[str, str]) -> dict[str, float]:
    """How often a quota stopped a group for the rest of its period (Documentation/scheduler/sched-bwc.rst),
    and how often a CPU was slowed because it or its package was too hot, since boot."""
    found: dict[str, float] = {}
    for name, text in texts.items():
        if name.endswith(f"/{_STAT}") and (match := _NR_THROTTLED.search(text)):
            found[QUOTA] = found.get(QUOTA, 0) + int(match[1])
        elif name.endswith("_throttle_count") and text.isdecimal():
            found[THERMAL] = found.get(THERMAL, 0) + int(text)
    return found
