"""Clocks that a machine can have in common with others."""

from __future__ import annotations

from collections.abc import Iterator

from rtmeter.machine.finding import Finding, Kind
from rtmeter.machine.reading import Machine

PTP_CLOCKS = Kind(
    "ptp_clocks",
    "info",
    "a PTP hardware clock that another host's is synchronised with tells one-way legs of round trips between "
    "the two (shared_clock)",
    "Linux Documentation/driver-api/ptp.rst",
)

KINDS = (PTP_CLOCKS,)

_MOST = 16
"""Clocks that are looked for; the kernel numbers them from 0."""


def check(machine: Machine) -> Iterator[Finding]:
    """Which PTP hardware clocks there are."""
    names = {f"/dev/ptp{n}": machine.text(f"/sys/class/ptp/ptp{n}/clock_name") for n in range(_MOST)}
    if found := [f"{device} ({name})" for device, name in names.items() if name is not None]:
        yield PTP_CLOCKS.found(", ".join(found))
