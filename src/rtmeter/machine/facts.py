"""What a machine says of itself, in the words of a probe's record (spec/probe.md)."""

from __future__ import annotations

import os
import re
from typing import Any

from rtmeter.host.root import Root
from rtmeter.machine.reading import Intent, Machine
from rtmeter.machine.surroundings import hypervisor


def facts_of(root: Root) -> dict[str, Any]:
    """Of this machine, without a probe that asks its processor."""
    names = os.uname()
    model = re.search(r"^(?:model name|Model|Hardware)\s*:\s*(.+)$", root.read("/proc/cpuinfo") or "", re.M)
    board = (root.read("/proc/device-tree/model") or "").rstrip("\0\n")
    return {
        "hostname": names.nodename,
        "kernel": names.release,
        "kernel_version": names.version,
        "architecture": names.machine,
        "cpu_model": model[1] if model else board or "unknown",
        "cpus_online": os.sysconf("SC_NPROCESSORS_ONLN"),
        "boot_id": (root.read("/proc/sys/kernel/random/boot_id") or "unknown").strip(),
        "virtual_machine": hypervisor(Machine(root, Intent())),
    }
