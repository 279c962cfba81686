"""What a machine says of itself, in the words of a probe's record (spec/probe.md)."""

from __future__ import annotations

import os
import re
from typing import Any

from rtmeter.host.root import Root
from rtmeter.host.threads import cpu_set
from rtmeter.machine.reading import Intent, Machine
from rtmeter.machine.surroundings import hypervisor
from rtmeter.model import LOCAL


def facts_of(root: Root) -> dict[str, Any]:
    """Of the machine, without a probe that asks its processor."""
    model = re.search(r"^(?:model name|Model|Hardware)\s*:\s*(.+)$", root.read("/proc/cpuinfo") or "", re.M)
    board = (root.read("/proc/device-tree/model") or "").rstrip("\0\n")
    return {
        **_names(root),
        "cpu_model": model[1] if model else board or "unknown",
        "cpus_online": len(cpu_set(root.read("/sys/devices/system/cpu/online"))) or len(root.cpus()),
        "boot_id": (root.read("/proc/sys/kernel/random/boot_id") or "unknown").strip(),
        "virtual_machine": hypervisor(Machine(root, Intent())),
    }


def _names(root: Root) -> dict[str, str]:
    """As uname(2) has them."""
    if root.host == LOCAL:
        names = os.uname()
        said = [names.nodename, names.release, names.version, names.machine]
    else:
        said = [root.run(["uname", option])[1].strip() for option in ("-n", "-r", "-v", "-m")]
    return dict(zip(("hostname", "kernel", "kernel_version", "architecture"), said, strict=True))
