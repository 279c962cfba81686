"""What iperf3 says, in JSON, of what it carried."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any, Literal

from rtmeter.values import from_json

Report = dict[str, Any]
"""What one end printed; empty if it did not get to that."""

_SUMS = ("seconds", "bytes", "packets", "lost_packets", "retransmits")


@dataclass(frozen=True, slots=True)
class CarriedTraffic:
    """``rate`` in bit/s, ``seen_by`` the receiver, or by the sender where the receiver is not ours; the share
    of datagrams lost (UDP), and segments sent again (TCP). None: not known."""

    rate: float | None = None
    lost_ratio: float | None = None
    retransmits: int | None = None
    seen_by: Literal["receiver", "sender"] | None = None

    def to_json(self) -> dict[str, Any]:
        """As cell.json has it."""
        return asdict(self)


def parse(printed: str) -> Report:
    """The report in what was printed: a login shell may have spoken before it."""
    try:
        report = from_json(printed[max(printed.find("{"), 0) :] or "{}")
    except ValueError:
        return {}
    return report if isinstance(report, dict) else {}


def carried(sender: Report, receiver: Report, protocol: str, settled_s: float) -> CarriedTraffic:
    """Of the intervals that began after ``settled_s``; of all, if none did."""
    sent, received = _totals(sender, settled_s), _totals(receiver, settled_s)
    seen = received or sent
    packets = received.get("packets", 0)
    return CarriedTraffic(
        rate=round(seen["bytes"] * 8 / seen["seconds"], 1) if seen else None,
        lost_ratio=received["lost_packets"] / packets if protocol == "udp" and packets else None,
        retransmits=sent.get("retransmits") if protocol == "tcp" else None,
        seen_by="receiver" if received else "sender" if sent else None,
    )


def _totals(report: Report, settled_s: float) -> dict[str, Any]:
    """Sums of the figures; empty if there is none."""
    intervals = [part for one in report.get("intervals", ()) if (part := one["sum"])["seconds"] > 0]
    counted = [part for part in intervals if part["start"] >= settled_s] or intervals
    return {key: sum(part[key] for part in counted) for key in _SUMS if counted and key in counted[0]}
