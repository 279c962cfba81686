"""Runs the probes of one cell: starts them in order, watches them, ends them."""

from __future__ import annotations

import os
import selectors
import signal
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Protocol

from rtmeter.conditions import NOT_JOINED, Launchers
from rtmeter.conditions.target import target_of
from rtmeter.errors import RtmeterError
from rtmeter.host.affinity import away_from
from rtmeter.host.ssh import Ssh
from rtmeter.measure.probe import beside
from rtmeter.measure.probe.addresses import interoperating, meeting, own_address
from rtmeter.measure.probe.end_configs import client_config, server_config
from rtmeter.measure.probe.guard import Guard
from rtmeter.measure.probe.places import Here, Place, There
from rtmeter.measure.probe.probe_process import ProbeProcess
from rtmeter.measure.probe.probes import Probe
from rtmeter.measure.probe.reported import reported_error
from rtmeter.model import LOCAL, TARGET, Cell, Outcome

_START_S = 60  # besides the connect timeout: from start to `ready`
_SILENCE_S = 60  # between status lines of a probe that measures; it sends four a second
_STALL_S = 60  # besides the grace and eleven periods: between releases that it settles
_GRACE_S = 10  # besides the loss timeout: from SIGTERM to the end
_CATCH_UP_S = 5  # of a publisher that was held up; it gives up after a second
_MOST_SHOWN = 100  # progress at once; a probe sends four a second
_STDERR_REMEDY = "see what it printed in the cell's probe.stderr"

OnProgress = Callable[[dict[str, Any]], None]
"""Called with every `progress` status line of the probe that measures."""


class Stop:
    """Asked once, a run ends cleanly and keeps what was measured; asked again, it is killed."""

    def __init__(self) -> None:
        self.asked = 0
        self.heeded = 0  # who looks at it often, so that nothing else need be done
        self.keeping = False  # nothing runs any more, and what was measured is being stored
        self.fd = os.eventfd(0, os.EFD_NONBLOCK | os.EFD_CLOEXEC)

    def ask(self) -> None:
        """May be called from a signal handler."""
        self.asked += 1
        os.eventfd_write(self.fd, 1)

    @contextmanager
    def being_heeded(self) -> Iterator[None]:
        """While the block runs, it is looked at several times a second."""
        self.heeded += 1
        try:
            yield
        finally:
            self.heeded -= 1


def run_probes(
    cell: Cell,
    probe: Probe,
    server: Probe | None,
    folder: Path,
    stop: Stop,
    on_progress: OnProgress,
    launchers: Launchers = Launchers(),  # noqa: B008
) -> Outcome:
    """Measures the cell; the sample logs are then in ``folder``.

    ``server`` is the probe of the round trip's server process, if it has one; the launchers say what the
    probe and its server are started through. Nothing is left running.
    """
    return supervised(
        cell, stop, lambda guard: _Run(cell, (probe, server), folder, stop, on_progress, launchers, guard)
    )


class Supervised(Protocol):
    """Processes that measure a cell; ``failure``: what went wrong first."""

    failure: RtmeterError | None

    def measure(self) -> None:
        """Raises RtmeterError for what fails."""

    def close(self) -> None:
        """Leaves nothing running."""

    def outcome(self) -> Outcome:
        """How it ended; only once it is closed."""


def supervised(cell: Cell, stop: Stop, run_with: Callable[[Guard], Supervised]) -> Outcome:
    """Measures the cell, with a second pair of eyes on it; whatever happens, it is closed."""
    with Guard({} if TARGET in cell.hosts else cell.config) as guard:
        run = run_with(guard)
        try:
            with stop.being_heeded():
                run.measure()
        except RtmeterError as error:
            run.failure = run.failure or error
        finally:
            run.close()
    return run.outcome()


class _Run:
    """The client, or the only probe there is, the server if there is one, and what is beside the two."""

    def __init__(
        self,
        cell: Cell,
        probes: tuple[Probe, Probe | None],
        folder: Path,
        stop: Stop,
        on_progress: OnProgress,
        launchers: Launchers,
        guard: Guard,
    ) -> None:
        self.failure: RtmeterError | None = None
        self._probes, self._launchers, self._guard = probes, launchers, guard
        self._cell, self._folder, self._stop, self._on_progress = cell, folder, stop, on_progress
        host = cell.hosts.get("component", LOCAL)
        self._component = None if host == LOCAL else Ssh(host, "hosts.component")
        self._target = target_of(cell)
        self._client: ProbeProcess | None = None
        self._server: ProbeProcess | None = None
        self._server_wanted = True  # and what is beside it
        self._beside = beside.FurtherProcesses()
        self._kill_at: float | None = None  # once it was asked to end
        self._start_s = _START_S + cell.config.get("connect_timeout_ns", 0) / 1e9
        self._grace_s = _GRACE_S + cell.config.get("loss_timeout_ns", 0) / 1e9
        tick_ns = cell.config.get("timeout_ns") or cell.config.get("period_ns", 0)
        self._stall_s = _STALL_S + self._grace_s + 11 * tick_ns / 1e9  # a shot is lost after ten timeouts

    def measure(self) -> None:
        """Raises RtmeterError for what fails, unless it is noted as the failure already."""
        probe, server = self._probes
        config = client_config(self._cell, self._folder)
        if server is not None:
            of_server = server_config(self._cell, config, self._folder)
            place = self._server_place()
            self._introduce(probe, config, server, of_server)
            if server.name != probe.name:
                for end, own in ((probe, config), (server, of_server)):
                    own["options"] = interoperating(_options_of(end)) | own["options"]
            self._server = ProbeProcess(server, of_server, self._folder, place)
            self._guard.watch(self._server.pid)
            self._until_peer_ready(self._server)
            endpoint = (self._server.event("ready") or {}).get("endpoint")
            if endpoint is not None:
                if given := config["options"].get("endpoint"):
                    message = "means nothing where the server is started here: it says where it is itself"
                    field = "options.endpoint"
                    raise RtmeterError(message, field=field, value=given, remedy="leave it out")
                config["options"] = {"endpoint": str(endpoint)} | config["options"]
                of_server["options"] = {"endpoint": str(endpoint)} | of_server["options"]
            self._start_beside(server, of_server)
        if self._kill_at is not None:  # asked to end before there was a client
            for peer in self._peers():
                peer.ask_to_end()
                self._until_ended(peer)
            return
        place = self._place(self._launchers.client(None), self._target, told=bool(self._beside.processes))
        self._client = ProbeProcess(probe, config, self._folder, place)
        self._guard.watch(self._client.pid)
        with out_of_the_way(None if self._target else config.get("cpus")):
            self._until_ready(self._client)
            self._until_ended(self._client)
            self._server_wanted = False
            self._beside.fall_silent()
            self._until_silent()
            for processes in self._endings():
                self._end(processes)

    def _until_silent(self) -> None:
        """Who hears further publishers ends once they have published what was due, or cannot for long."""
        limit = time.monotonic() + _CATCH_UP_S
        self._kill_at = limit + _GRACE_S  # the client has ended: whatever it was given for that is over
        while not self._beside.silent and time.monotonic() < limit:
            self._listen()

    def _end(self, processes: list[ProbeProcess]) -> None:
        """Asks all to end, and waits until they have."""
        running = [process for process in processes if process.exit_code is None]
        for process in running:
            self._ask_to_end(process, _GRACE_S)
        for process in running:
            self._until_ended(process)

    def _start_beside(self, server: Probe, config: dict[str, Any]) -> None:
        """Further processes of the server's adapter, at ordinary priority and on any CPU."""

        def launch(own: dict[str, Any]) -> ProbeProcess:
            told = own["beside"]["as"] == "publisher"
            place = self._place(self._launchers.client(None), self._target, told=told)
            process = ProbeProcess(server, own, self._folder, place)
            self._guard.watch(process.pid)
            return process

        self._beside.start(self._cell, config, self._folder, launch)
        for process in self._beside.processes:
            self._until_peer_ready(process)

    def _peers(self) -> list[ProbeProcess]:
        """What runs until the client has ended."""
        return [*self._beside.processes, *([] if self._server is None else [self._server])]

    def _endings(self) -> list[list[ProbeProcess]]:
        """The peers in the order in which they end: further publishers after all who hear them, the server
        after all others of these: its master or router may be theirs too."""
        publishing = self._beside.publishing
        others = [process for process in self._beside.processes if process not in publishing]
        return [others, [] if self._server is None else [self._server], publishing]

    def _all(self) -> list[ProbeProcess]:
        return [*([] if self._client is None else [self._client]), *self._peers()]

    def _server_place(self) -> Place:
        through = self._launchers.server(self._cell.server_cpus)
        return self._place(through, self._component or self._target)

    def _place(self, through: list[str], host: Ssh | None, *, told: bool = False) -> Place:
        return Here(through) if host is None else There(host, through, told=told)

    def _introduce(
        self, probe: Probe, config: dict[str, Any], server: Probe, of_server: dict[str, Any]
    ) -> None:
        """Tells the ends on two hosts where they are, unless the cell does."""
        if self._component is None:
            return
        theirs = self._component.address()
        ours = own_address(theirs)
        client_is = meeting(_options_of(probe), ours, theirs, listens=False)
        server_is = meeting(_options_of(server), theirs, ours, listens=True)
        for own, where in ((config, client_is), (of_server, server_is)):
            if offered := sorted(where.keys() - own["options"].keys()):
                own["offered"] = offered
            own["options"] = where | own["options"]

    def outcome(self) -> Outcome:
        """How it ended; only once it is closed."""
        processes = self._all()
        warnings = tuple(doubt for process in processes for doubt in process.doubts())
        failure = self.failure or next((e for p in processes if (e := exit_error(p))), None)
        if failure is not None:
            return Outcome("failed", failure, warnings)
        complete = self._client is not None and self._client.exit_code == 0  # not 4: interrupted
        return Outcome("complete" if complete else "interrupted", None, warnings)

    def close(self) -> None:
        """Leaves nothing running. All are killed before one is waited for: it may need the other's CPU to
        end on."""
        processes = self._all()
        died = {process: exit_error(process) for process in processes if process.exit_code is not None}
        for process in processes:
            process.kill()
        for process in processes:
            try:
                process.close()
            except RtmeterError as error:  # its log could not be brought
                self.failure = self.failure or _without_its_log(died.get(process), error)

    def _until_ready(self, process: ProbeProcess) -> None:
        limit, late = time.monotonic() + self._start_s, False
        while process.event("ready") is None and process.exit_code is None:
            if late:
                raise _probe_error(process, f"did not get ready within {self._start_s:.0f} s")
            late = time.monotonic() > limit  # this process may have stood still: what was said is heard first
            self._listen()

    def _until_peer_ready(self, peer: ProbeProcess) -> None:
        """Raises what ended it instead: whoever were started after it would be for nothing."""
        self._until_ready(peer)
        self._heed_peers()
        if self.failure is not None:
            raise self.failure

    def _until_ended(self, process: ProbeProcess) -> None:
        while process.exit_code is None:
            self._listen()
            if time.monotonic() - process.heard_at > _SILENCE_S + self._grace_s:
                raise _probe_error(process, f"has not been heard of for {_SILENCE_S + self._grace_s:.0f} s")
            if process is self._client and time.monotonic() - process.advanced_at > self._stall_s:
                raise _probe_error(process, f"has settled no release for {self._stall_s:.0f} s")

    def _listen(self) -> None:
        """Waits a little for what happens next, and sees to it."""
        processes = [process for process in self._all() if process.exit_code is None]
        with selectors.DefaultSelector() as selector:
            for process in processes:
                if not process.silent:
                    selector.register(process.status_fd, selectors.EVENT_READ)
                selector.register(process.exited_fd, selectors.EVENT_READ)
            if not self._stop.asked:
                selector.register(self._stop.fd, selectors.EVENT_READ)
            selector.select(timeout=0.25)
        self._guard.beat()
        for process in processes:
            progress = [event for event in process.read_events() if event["event"] == "progress"]
            if process is self._client:
                for event in progress[-_MOST_SHOWN:]:
                    self._on_progress(event)
                    self._check_progress(process, event)
        if self._client is not None:
            self._beside.tell(self._client, self._server)
        self._heed_peers()
        self._heed_stop()

    def _check_progress(self, process: ProbeProcess, event: dict[str, Any]) -> None:
        """A probe that goes on beyond its end would be listened to for ever."""
        released, planned = event.get("released", 0), event.get("of", 0)
        if isinstance(released, int) and isinstance(planned, int) and released > planned:
            raise _probe_error(process, f"says that it has settled {released} of {planned} releases")

    def _heed_peers(self) -> None:
        """One that ends before the client does ends the run."""
        peer = beside.ended_early(self._peers())
        if peer is None or not self._server_wanted or self._kill_at is not None:
            return
        peer.read_events()  # what it wrote since it was last listened to, and before it ended
        self.failure = reported_error(peer) or _probe_error(
            peer, f"died in mid-run ({_how(peer)})", peer.role
        )
        if self._client is not None:
            self._ask_to_end(self._client, self._grace_s)

    def _heed_stop(self) -> None:
        process = self._client or self._server
        assert process is not None
        if self._stop.asked and self._kill_at is None:
            self._ask_to_end(process, self._grace_s)
        late = self._kill_at is not None and time.monotonic() > self._kill_at
        if late or self._stop.asked > 1:
            why = "did not end when it was asked to" if late else "was killed at the second interruption"
            raise _probe_error(process, why)

    def _ask_to_end(self, process: ProbeProcess, grace_s: float) -> None:
        process.ask_to_end()
        self._kill_at = time.monotonic() + grace_s


def _options_of(probe: Probe) -> dict[str, str]:
    return dict(probe.facts.get("option", {}))


def _how(process: ProbeProcess) -> str:
    code = process.exit_code or 0
    return f"killed by {signal.Signals(-code).name}" if code < 0 else f"exit code {code}"


def _probe_error(process: ProbeProcess, message: str, field: str = "probe") -> RtmeterError:
    """What the front saw a probe do wrong."""
    return RtmeterError(message, field=field, value=process.probe.name, remedy=_STDERR_REMEDY)


def _without_its_log(died: RtmeterError | None, error: RtmeterError) -> RtmeterError:
    """Why a probe ended, if that is known, comes before why its log is not here."""
    if died is None:
        return error
    died.message = f"{died.message}; its log on {error.value}: {error.message}"
    died.remedy = error.remedy
    return died


def exit_error(process: ProbeProcess) -> RtmeterError | None:
    """None if the probe ended as it should."""
    if process.ended_well:
        return None
    if process.exit_code == NOT_JOINED:
        return _probe_error(process, "could not be put into its cgroup", "conditions")
    return reported_error(process) or _probe_error(process, f"died in mid-run ({_how(process)})")


@contextmanager
def out_of_the_way(measured_cpus: list[int] | None) -> Iterator[None]:
    """The front at normal priority, and on other CPUs than the measured ones where there are any."""
    if os.sched_getscheduler(0) != os.SCHED_OTHER:
        os.sched_setscheduler(0, os.SCHED_OTHER, os.sched_param(0))
    with away_from(measured_cpus or ()):
        yield
