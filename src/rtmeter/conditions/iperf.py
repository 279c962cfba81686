"""One direction of traffic: an iperf3 client and its server, and what they report."""

from __future__ import annotations

import signal
import socket
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from rtmeter.conditions.companion import Companion, find_program
from rtmeter.conditions.iperf_report import CarriedTraffic, Report, carried, parse
from rtmeter.errors import RtmeterError
from rtmeter.host.ssh import look_up

Through = Callable[[list[str]], list[str]]
_CONNECT_S = 20
_IDLE_S = 60  # after which a server on another machine ends that no client has come to
_FLOWING_S = 0.3  # from the connection to the first data
_ESTABLISHED = "01"
_TRIES = 5  # to find a free port where it cannot be asked for


@dataclass(frozen=True, slots=True)
class Flow:
    """What is sent from where to where: ``rate`` in bit/s, by ``protocol`` udp or tcp.

    ``to``: address where the server listens; ``port``: None: a free one; ``reverse``: the server sends;
    ``from_namespace``, ``to_namespace``: network namespaces of the two ends; ``starts_server``: whether
    the server is ours to start; ``through``: what makes of its command one that starts it on another
    machine; ``interval_s``: between iperf3's own figures.
    """

    rate: int
    protocol: str
    to: str
    port: int | None = None
    reverse: bool = False
    from_namespace: str | None = None
    to_namespace: str | None = None
    starts_server: bool = True
    through: Through | None = None
    datagram_bytes: int | None = None
    cpus: Sequence[int] | None = None
    interval_s: int = 1

    @property
    def namespaces(self) -> bool:
        """Whether an end is in a network namespace of its own."""
        return self.from_namespace is not None or self.to_namespace is not None

    def client(self, port: int) -> list[str]:
        """The client's command line."""
        command = [*_within(self.from_namespace), "iperf3", "--client", self.to]
        command += ["--bitrate", str(self.rate), "--time", "0", "--connect-timeout", "5000"]
        command += ["--udp"] if self.protocol == "udp" else []
        command += ["--reverse"] if self.reverse else []
        command += ["--length", str(self.datagram_bytes)] if self.datagram_bytes is not None else []
        return [*command, *self._common(port)]

    def server(self, port: int) -> list[str]:
        """The server's command line."""
        command = [*_within(self.to_namespace), "iperf3", "--server", "--one-off", "--bind", self.to]
        command += self._common(port)
        if self.through is None:
            return command
        return self.through([*command, "--idle-timeout", str(_IDLE_S)])

    def _common(self, port: int) -> list[str]:
        return ["--port", str(port), "--json", "--interval", str(self.interval_s)]


class Stream:
    """The flow, running from start() to stop()."""

    def __init__(self, flow: Flow) -> None:
        self.flow = flow
        self._death: str | None = None
        self.carried = CarriedTraffic()
        self.port = 0
        self._client: Companion | None = None
        self._server: Companion | None = None
        self._settled_s = 0.0

    def start(self) -> None:
        """Returns when the two are connected. Raises RtmeterError if iperf3 is missing, or they cannot."""
        for program in ("iperf3", "ip") if self.flow.namespaces else ("iperf3",):
            find_program(program, "traffic")
        tries = 1 if self.flow.port or not self.flow.starts_server else _TRIES
        for last in [False] * (tries - 1) + [True]:
            self.port = self.flow.port or _free_port()
            try:
                self._connect()
                return
            except RtmeterError as error:
                self._close()
                if last or "in use" not in error.message:
                    raise

    def stop(self) -> None:
        """Ends both, and takes what they report."""
        self._death = self.died
        if self._client is not None:
            self._client.end(signal.SIGINT)
        if self._server is not None:
            self._server.wait(3)
            self._server.end(signal.SIGINT)
        reports = (_report(self._client), _report(self._server))
        sender, receiver = reversed(reports) if self.flow.reverse else reports
        if any(reports):
            self.carried = carried(sender, receiver, self.flow.protocol, self._settled_s)
        self._close()

    @property
    def died(self) -> str | None:
        """How iperf3 ended, if an end of it did so by itself."""
        processes = (p for p in (self._client, self._server) if p is not None)
        return next((_end_of(p) for p in processes if p.exit_code is not None), self._death)

    def is_alive(self) -> bool:
        """Whether both ends run; also notices when one ends."""
        codes = [p.exit_code for p in (self._client, self._server) if p is not None]
        return bool(codes) and all(code is None for code in codes)

    def _connect(self) -> None:
        flow, port = self.flow, self.port
        if flow.starts_server:
            self._server = Companion(flow.server(port), field="traffic", cpus=flow.cpus)
        limit = time.monotonic() + _CONNECT_S
        while True:
            if self._client is None:
                self._client = Companion(flow.client(port), field="traffic", cpus=flow.cpus)
            if _is_connected(self._client.pid, port):
                time.sleep(_FLOWING_S)
                if self.is_alive():
                    self._settled_s = self._client.ran_s
                    return
            time.sleep(0.05)
            if self._server is not None and self._server.exit_code is not None:
                remedy = "see that iperf3 is installed there, and that the address is that machine's own"
                raise _error(self._server, f"cannot serve at {flow.to}", remedy)
            late = time.monotonic() > limit
            if self._client.exit_code is not None or late:
                if late or self._server is None or "refused" not in _words(self._client):
                    raise self._unreachable(self._client)
                self._client.close()  # the server does not listen yet
                self._client = None

    def _unreachable(self, client: Companion) -> RtmeterError:
        remedy = "see that there is a route to it, and that no firewall is in the way"
        if self._server is None:
            remedy = f"start `iperf3 --server --port {self.port}` there, and {remedy}"
        return _error(client, f"cannot reach {self.flow.to} port {self.port}", remedy)

    def _close(self) -> None:
        for process in (self._client, self._server):
            if process is not None:
                process.close()
        self._client = self._server = None


def is_local(address: str) -> bool:
    """Whether the address is this machine's, in the network namespace of this process.

    Raises RtmeterError if it is no address.
    """
    try:
        family, kind, _, _, target = look_up(address, socket.SOCK_STREAM)[0]
    except OSError as error:
        remedy = "give an IP address, or a name that this machine can look up"
        raise RtmeterError(str(error.strerror), field="traffic.to", value=address, remedy=remedy) from None
    with socket.socket(family, kind) as probe:
        try:
            probe.bind(target)
        except OSError:
            return False
    return True


def _within(namespace: str | None) -> list[str]:
    return [] if namespace is None else ["ip", "netns", "exec", namespace]


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("", 0))
        return int(probe.getsockname()[1])


def _is_connected(pid: int, port: int) -> bool:
    """Whether the network namespace of the process has an established connection to the port."""
    for table in ("tcp", "tcp6"):
        try:
            lines = Path(f"/proc/{pid}/net/{table}").read_text().splitlines()[1:]
        except OSError:
            continue
        for line in lines:
            _, _, remote, state, *_ = line.split()
            if state == _ESTABLISHED and int(remote.rpartition(":")[2], 16) == port:
                return True
    return False


def _report(process: Companion | None) -> Report:
    return {} if process is None else parse(process.stdout())


def _end_of(process: Companion) -> str:
    """How it ended, without the JSON that it may have printed."""
    error = _report(process).get("error")
    return f"after {process.ran_s:.1f} s; it said: {error}" if error else process.how_it_ended


def _words(process: Companion) -> str:
    said = _report(process).get("error") or process.last_words()
    return f"; it said: {said}" if said else ""


def _error(process: Companion, message: str, remedy: str) -> RtmeterError:
    return RtmeterError(f"iperf3 {message}{_words(process)}", field="traffic", remedy=remedy)
