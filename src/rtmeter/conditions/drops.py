"""The kernel's counters of what it dropped of messages: UDP datagrams, and fragments of IP.

No middleware here tells how many fragments of a large message came; the kernel tells which were in vain.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from rtmeter.model import Doubt

BUFFER, FRAGMENTS = "udp_buffer_drops", "ip_reassembly_failures"
NAMES = (BUFFER, FRAGMENTS)

FILES = _OF_4, _OF_6 = "/proc/net/snmp", "/proc/net/snmp6"
_COUNTERS_6 = {"Udp6RcvbufErrors": BUFFER, "Ip6ReasmFails": FRAGMENTS}
_COUNTERS_4 = {("Udp:", "RcvbufErrors"): BUFFER, ("Ip:", "ReasmFails"): FRAGMENTS}


def totals(texts: Mapping[str, str]) -> dict[str, float]:
    """Of the network namespace since it was made, IPv4 and IPv6 together: UDP datagrams for which a socket's
    receive buffer had no room (netstat's *receive buffer errors*), and failures to put a packet together
    from its fragments (ipSystemStatsReasmFails of RFC 4293). What the kernel does not tell is absent."""
    found: dict[str, float] = {}
    for name, value in (*_of_4(texts.get(_OF_4, "")), *_of_6(texts.get(_OF_6, ""))):
        found[name] = found.get(name, 0) + value
    return found


def _of_4(text: str) -> Iterator[tuple[str, int]]:
    """Of a line of names and a line of their values for each protocol."""
    lines = [line.split() for line in text.splitlines()]
    for names, values in zip(lines[::2], lines[1::2], strict=False):
        for name, value in zip(names, values, strict=False):
            if known := _COUNTERS_4.get((names[0], name)):
                yield known, int(value)


def _of_6(text: str) -> Iterator[tuple[str, int]]:
    for line in text.splitlines():
        name, value = line.split()
        if known := _COUNTERS_6.get(name):
            yield known, int(value)


def doubts(conditions: Mapping[str, Any], lost: int) -> Iterator[Doubt]:
    """``messages_dropped``, where messages were lost and the kernel of either host dropped any meanwhile;
    ``conditions``: the key of cell.json."""
    places = (("at the client", conditions), ("at the server", conditions.get("server") or {}))
    for where, of_host in places if lost else ():
        machine: Mapping[str, Any] = (of_host.get("achieved") or {}).get("machine") or {}
        dropped: Sequence[int] = [int(machine.get(name) or 0) for name in NAMES]
        said = [f"{count:,} {words}" for count, words in zip(dropped, _WORDS, strict=True) if count]
        if said:
            message = f"while {lost:,} messages were lost, the kernel {where} dropped {' and '.join(said)}"
            yield Doubt("messages_dropped", message, _REMEDY[dropped[0] > 0])


_WORDS = (
    "datagrams whose receive buffer was full (RcvbufErrors)",
    "packets whose fragments did not all come (ReasmFails)",
)
_REMEDY = {
    True: "give sockets more room (sysctl -w net.core.rmem_default=8388608 net.core.rmem_max=8388608), and "
    "by the middleware's own setting where it has one",
    False: "find where fragments are lost (a queue, the link), and give them room and time: "
    "sysctl net.ipv4.ipfrag_high_thresh net.ipv4.ipfrag_time",
}
