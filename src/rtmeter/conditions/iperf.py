"""One direction of traffic: an iperf3 client and its server, and what they report."""

from __future__ import annotations

import ipaddress
import re
import signal
import socket
import time
from collections.abc import Sequence
from dataclasses import dataclass, field

from rtmeter.conditions.companion import Companion, require_program
from rtmeter.conditions.companion_there import CompanionThere
from rtmeter.conditions.iperf_report import CarriedTraffic, Report, carried, parse
from rtmeter.errors import RtmeterError
from rtmeter.host.remote_root import RemoteRoot
from rtmeter.host.root import Root
from rtmeter.host.ssh import Ssh, look_up

_CONNECT_S = 20
_FLOWING_S = 0.3  # from the connection to the first data
_ESTABLISHED = "01"
_TRIES = 5  # to find a free port where it cannot be asked for


@dataclass(frozen=True, slots=True)
class Flow:
    """What is sent from where to where: ``rate`` in bit/s, by ``protocol`` udp or tcp.

    ``to``: address where the server listens; ``port``: None: a free one; ``reverse``: the server sends;
    ``from_namespace``, ``to_namespace``: network namespaces of the two ends; ``root``: the machine of the
    client; ``starts_server``: whether the server is ours to start, on this machine or on that which
    ``server_ssh`` reaches; ``cpus``: of the client's machine; ``interval_s``: between iperf3's own figures.
    """

    rate: int
    protocol: str
    to: str
    port: int | None = None
    reverse: bool = False
    from_namespace: str | None = None
    to_namespace: str | None = None
    starts_server: bool = True
    root: Root = field(default_factory=Root)
    server_ssh: Ssh | None = None
    datagram_bytes: int | None = None
    cpus: Sequence[int] | None = None
    interval_s: int = 1

    @property
    def client_ssh(self) -> Ssh | None:
        """What reaches the client's machine, if that is not this one."""
        return self.root.shell.ssh if isinstance(self.root, RemoteRoot) else None

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
        return [*command, *self._common(port)]

    def start_client(self, port: int) -> Companion:
        """Raises RtmeterError."""
        return _started(self.client(port), self.client_ssh, self.cpus)

    def start_server(self, port: int) -> Companion:
        """Raises RtmeterError."""
        beside_client = self.server_ssh == self.client_ssh
        return _started(self.server(port), self.server_ssh, self.cpus if beside_client else None)

    def require_programs(self) -> None:
        """Raises RtmeterError where one is missing; those of a cell's other host are not looked for."""
        machines = [self.root]
        if self.starts_server and self.server_ssh is None and self.client_ssh is not None:
            machines.append(Root())
        for root in machines:
            require_program("iperf3", "traffic", root)
        if self.from_namespace is not None or self.to_namespace is not None:
            require_program("ip", "traffic", self.root)

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
        self.flow.require_programs()
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
            self._server = flow.start_server(port)
        limit = time.monotonic() + _CONNECT_S
        while True:
            if self._client is None:
                self._client = flow.start_client(port)
            if _is_connected(self._client.program_pid, port, flow.root):
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


def is_own(root: Root, address: str) -> bool:
    """Whether the IP address is that machine's, as its kernel tells."""
    asked = ipaddress.ip_address(address)
    if asked.version == 4:
        known = root.read("/proc/net/fib_trie") or ""
        return asked.is_loopback or bool(re.search(rf"-- {re.escape(address)}\n\s+/32 host LOCAL", known))
    return asked.packed.hex() in (root.read("/proc/net/if_inet6") or "").split()


def _started(command: list[str], ssh: Ssh | None, cpus: Sequence[int] | None) -> Companion:
    if ssh is None:
        return Companion(command, field="traffic", cpus=cpus)
    return CompanionThere(ssh, command, field="traffic", cpus=cpus)


def _within(namespace: str | None) -> list[str]:
    return [] if namespace is None else ["ip", "netns", "exec", namespace]


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("", 0))
        return int(probe.getsockname()[1])


def _is_connected(pid: int | None, port: int, root: Root) -> bool:
    """Whether the network namespace of the process has an established connection to the port."""
    if pid is None:
        return False
    for table in root.read_all(f"/proc/{pid}/net/{name}" for name in ("tcp", "tcp6")).values():
        for line in table.splitlines()[1:]:
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
