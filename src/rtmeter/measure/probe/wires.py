"""Which adapters can be the two ends of one run: those that say that they speak one wire (spec/probe.md)."""

from __future__ import annotations

from rtmeter.errors import RtmeterError
from rtmeter.measure.probe import probes
from rtmeter.measure.probe.probes import Probe


def check(client: Probe, server: Probe, measurement: str) -> None:
    """Raises RtmeterError if neither would ever hear the other; not if one of the two does not say."""
    if client.wire is None or server.wire is None or client.wire == server.wire:
        return
    others = [name for name in answering(client, measurement) if name != client.name]
    what = f"speaks {server.wire}; the client's adapter, {client.name}, speaks {client.wire}"
    message = f"{what}: neither would hear the other"
    remedy = f"choose {' or '.join(others)}, or leave it out" if others else "leave it out"
    raise RtmeterError(message, field="server_adapter", value=server.name, remedy=remedy)


def answering(client: Probe, measurement: str) -> list[str]:
    """The adapters here that say that they speak the wire of ``client``, by name; it is one of them."""
    return [] if client.wire is None else [p.name for p in _measuring(measurement) if p.wire == client.wire]


def _measuring(measurement: str) -> list[Probe]:
    """The probes that were found and can do it; one that does not answer is passed over."""
    able = []
    for name, path in probes.find_probes().items():
        try:
            probe = probes.describe(name, path)
        except RtmeterError:
            continue
        if measurement in probe.measures:
            able.append(probe)
    return able
