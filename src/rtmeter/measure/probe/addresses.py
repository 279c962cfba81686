"""What the two ends of a round trip are told so that they meet: on two hosts, or of two adapters."""

from __future__ import annotations

import socket
from collections.abc import Mapping

from rtmeter.errors import RtmeterError

_ANY_PORT = 9  # nothing is sent


def own_address(other: str) -> str:
    """The address of this machine from which it reaches the other. Raises RtmeterError if it does not."""
    family = socket.AF_INET6 if ":" in other else socket.AF_INET
    with socket.socket(family, socket.SOCK_DGRAM) as probe:
        try:
            probe.connect((other, _ANY_PORT))
        except OSError as error:
            message = f"cannot be reached: {(error.strerror or '').lower()}"
            remedy = "check the network and the address"
            raise RtmeterError(message, field="hosts.component", value=other, remedy=remedy) from None
        return str(probe.getsockname()[0])


def meeting(known: Mapping[str, str], own: str, other: str, *, listens: bool) -> dict[str, str]:
    """Of the options that an adapter has (``known``), those that say where this end is and where the other.

    An adapter that finds its other end by discovery needs both at both ends; one whose ends are told of each
    other, by a master, its own at both; one with a server that ``listens`` needs no more than the server's.
    """
    if "interface" in known:
        return {"interface": own} | ({"peers": other} if "peers" in known else {})
    return {"address": own} if listens and "address" in known else {}


def interoperating(known: Mapping[str, str]) -> dict[str, str]:
    """Of the options that an adapter has (``known``), what lets it match another adapter's end."""
    return {"interoperable": "yes"} if "interoperable" in known else {}
