"""Traffic by iperf3 in both directions, compared with the rates asked."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import ExitStack
from dataclasses import dataclass
from typing import Any

from rtmeter.conditions.iperf import Flow, Stream, is_local, is_own
from rtmeter.conditions.iperf_report import CarriedTraffic
from rtmeter.host.online import require_online
from rtmeter.host.remote_root import RemoteRoot
from rtmeter.host.root import Root
from rtmeter.host.ssh import Ssh
from rtmeter.model import Doubt

_LOOPBACK = "127.0.0.1"
_PORT = 5201  # iperf3's own, of a server that is not ours to start; the next one for the other direction
_RATES = {"forward": "rate", "reverse": "reverse_rate"}
_ENOUGH = 0.9  # of the rate asked
_MOST_INTERVALS = 2000  # that iperf3 holds in memory until it ends


@dataclass(frozen=True, slots=True)
class Elsewhere:
    """Another host: its address, and what reaches it."""

    address: str
    ssh: Ssh


class Traffic:
    """What ``asked`` names (strain_options.TrafficAsked as JSON), from start() to stop().

    ``expected_s``: about how long that will be; ``root``: the machine that is measured; ``elsewhere``: the
    cell's other host, if it has one.
    """

    def __init__(
        self,
        asked: Mapping[str, Any],
        expected_s: float,
        root: Root = Root(),  # noqa: B008
        elsewhere: Elsewhere | None = None,
    ) -> None:
        self._root, self._elsewhere = root, elsewhere
        self._asked, self._interval_s = asked, 1 + int(expected_s / _MOST_INTERVALS)
        self._streams: dict[str, Stream] = {}

    def start(self) -> None:
        """Returns when all flows. Raises RtmeterError if iperf3 is missing or cannot connect, or a CPU for it
        is not there."""
        require_online(self._asked.get("cpus") or (), "traffic.cpus", self._root)
        asked = flows(self._asked, self._interval_s, self._root, self._elsewhere)
        with ExitStack() as undo:
            for direction, flow in asked.items():
                self._streams[direction] = Stream(flow)
                self._streams[direction].start()
                undo.callback(self._streams[direction].stop)
            undo.pop_all()

    def stop(self) -> None:
        """Ends it, and takes what iperf3 reports."""
        for stream in self._streams.values():
            stream.stop()

    def streams_alive(self) -> float:
        """How many directions flow; also notices when one ends."""
        return sum(stream.is_alive() for stream in self._streams.values())

    def effective(self) -> dict[str, Any]:
        """How it was made, JSON-ready."""
        commands = {name: stream.flow.client(stream.port) for name, stream in self._streams.items()}
        return {"tool": "iperf3", "arguments": commands}

    def achieved(self) -> dict[str, Any]:
        """What arrived in each direction, JSON-ready."""
        return {name: s.carried.to_json() | {"died": s.died} for name, s in self._streams.items()}

    def deaths(self) -> Iterator[Doubt]:
        """``traffic_died``, as soon as an end of a stream has ended by itself."""
        for name, stream in self._streams.items():
            if stream.died is not None:
                yield from stream_doubts(name, stream.flow, stream.carried, stream.died)

    def doubts(self) -> Iterator[Doubt]:
        """``traffic_died``, ``traffic_not_reached``, ``traffic_loss_unknown``: what was asked and did not
        come about, or is not known to have."""
        for name, stream in self._streams.items():
            yield from stream_doubts(name, stream.flow, stream.carried, stream.died)


def stream_doubts(name: str, flow: Flow, carried: CarriedTraffic, died: str | None) -> Iterator[Doubt]:
    """What is to be said of a direction; ``died``: how iperf3 ended, if it did."""
    if died is not None:
        message = f"iperf3's {name} stream ended while it was needed: {died}"
        yield Doubt("traffic_died", message, "measure again")
        return
    if carried.rate is None:
        message = f"iperf3 did not say what it carried ({name})"
        yield Doubt("traffic_not_reached", message, "measure longer")
    elif carried.rate < _ENOUGH * flow.rate:
        happened = "were sent" if carried.seen_by == "sender" else "arrived"
        message = f"{carried.rate / 1e6:.3g} Mbit/s {happened} ({name}), {flow.rate / 1e6:.3g} were asked"
        yield Doubt("traffic_not_reached", message, "ask for what the link and the machine can carry")
    if flow.protocol == "udp" and carried.seen_by == "sender":
        message = f"what of the {name} stream arrived is not known: rtmeter did not start its server"
        yield Doubt("traffic_loss_unknown", message, "see what that server says, or let rtmeter start one")


def is_any(asked: Mapping[str, Any]) -> bool:
    """Whether anything is asked for."""
    return any(asked.get(key) for key in _RATES.values())


def flows(
    asked: Mapping[str, Any],
    interval_s: int = 1,
    root: Root = Root(),  # noqa: B008
    elsewhere: Elsewhere | None = None,
) -> dict[str, Flow]:
    """The directions in which something is asked for, from the machine ``root``; without ``to``, they go to
    the host elsewhere.

    Raises RtmeterError if the other end's address is none.
    """
    if not is_any(asked):
        return {}
    there = elsewhere if "to" not in asked else None
    to = there.address if there else asked.get("to", _LOOPBACK)
    ours, server_ssh = (True, there.ssh) if there else _server(asked, to, root)
    first_port = asked.get("port") or (None if ours else _PORT)
    return {
        direction: Flow(
            rate=asked[key],
            protocol=asked["protocol"],
            to=to,
            port=first_port + (direction == "reverse") if first_port else None,
            reverse=direction == "reverse",
            from_namespace=asked.get("from_namespace"),
            to_namespace=asked.get("to_namespace"),
            starts_server=ours,
            root=root,
            server_ssh=server_ssh,
            datagram_bytes=asked.get("datagram"),
            cpus=asked.get("cpus"),
            interval_s=interval_s,
        )
        for direction, key in _RATES.items()
        if asked.get(key)
    }


def _server(asked: Mapping[str, Any], to: str, root: Root) -> tuple[bool, Ssh | None]:
    """Whether the server at that address is ours to start, and what reaches its machine, if that is not this
    one: an address that is the target's is not this one's."""
    within = asked.get("to_namespace") is not None
    if isinstance(root, RemoteRoot) and (within or is_own(root, to)):
        return True, root.shell.ssh
    return within or is_local(to), None
