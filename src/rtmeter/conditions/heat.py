"""How fast a machine's CPUs ran, and how hot it was."""

from __future__ import annotations

import re
from collections.abc import Mapping

from rtmeter.host.root import Root

TEMPERATURE = "temperature_c"

_FREQUENCY = "/sys/devices/system/cpu/cpu{}/cpufreq/scaling_cur_freq"
_CPU = re.compile(re.escape(_FREQUENCY).replace(r"\{\}", r"(\d+)"))
_ZONES = "/sys/class/thermal/thermal_zone[0-9]*/temp"
_ASKS_NO_CPU = (5, 19)
"""Since this version x86 keeps a CPU's frequency at its ticks; before it interrupted the CPU to read it."""


def frequency_files(root: Root) -> list[str]:
    """Those to be read while a CPU is measured: none where reading would interrupt it."""
    release = re.match(r"(\d+)\.(\d+)", root.read("/proc/sys/kernel/osrelease") or "")
    old = release is None or (int(release[1]), int(release[2])) < _ASKS_NO_CPU
    if old and "vendor_id" in (root.read("/proc/cpuinfo") or ""):  # x86 alone has that line
        return []
    return root.glob(_FREQUENCY.format("[0-9]*"))


def frequencies(texts: Mapping[str, str]) -> dict[str, float]:
    """``cpuN_mhz``, of the files' texts."""
    matches = ((_CPU.fullmatch(name), text) for name, text in texts.items())
    return {f"cpu{match[1]}_mhz": int(text) / 1000 for match, text in matches if match and text.isdecimal()}


def temperature_c(root: Root) -> float | None:
    """Of the hottest zone; None if the machine tells none. Asking may take the firmware's time: it is for
    before and after a measurement."""
    texts = root.read_all(root.glob(_ZONES)).values()
    known = [int(text) / 1000 for text in texts if text.lstrip("-").isdecimal()]
    return max(known, default=None)
