"""Traffic, load and the sampling of both around one run of probes."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from contextlib import ExitStack, suppress
from pathlib import Path
from typing import Any, Self

from rtmeter.conditions import heat
from rtmeter.conditions.counters import files_of
from rtmeter.conditions.load import Load, workers
from rtmeter.conditions.monitor import FILE, Gauge, Monitor
from rtmeter.conditions.others import OWN, Others
from rtmeter.conditions.traffic import Elsewhere, Traffic, is_any
from rtmeter.errors import RtmeterError
from rtmeter.host.remote_shell import ConnectionLostError
from rtmeter.host.root import Root
from rtmeter.host.ssh import Ssh
from rtmeter.host.threads import cpu_set
from rtmeter.model import LOCAL, MONITOR_NS, Cell, Doubt
from rtmeter.results import condition_words

NOT_REACHED = (
    "load_died",
    "load_not_reached",
    condition_words.NOT_IDLE,
    "traffic_died",
    "traffic_not_reached",
)
"""Types of doubts that are errors where the campaign is strict."""

LOAD_WORKERS, TRAFFIC_STREAMS = "load_workers", "traffic_streams"
LOAD_PROGRAM, TRAFFIC_PROGRAM = "stress-ng", "iperf3"
IDLE = "idle"


class Strain:
    """A part of what stands (conditions.Part): what other programs do to the machine meanwhile.

    ``asked``: as Cell.conditions; ``folder``: of the cell; ``measured_cpus``, of this machine, are kept free
    of the sampling where there are others; ``expected_s``: about how long the probes will run; ``elsewhere``:
    the cell's other host, if it has one; ``root``: the machine that is measured; ``real_time``: as in
    conditions.applied.
    """

    def __init__(
        self,
        asked: Mapping[str, Any],
        folder: Path,
        measured_cpus: set[int],
        expected_s: float,
        root: Root,
        elsewhere: Elsewhere | None = None,
        monitor_file: str = FILE,
        *,
        real_time: bool = True,
    ) -> None:
        load, traffic = asked.get("load", {}), asked.get("traffic", {})
        self._strict = bool(asked.get("strict"))
        self._load = Load(load, folder, root) if workers(load) else None
        self._traffic = Traffic(traffic, expected_s, root, elsewhere) if is_any(traffic) else None
        gauges: dict[str, Gauge] = {}
        if self._load is not None:
            gauges[LOAD_WORKERS] = self._load.workers_alive
        if self._traffic is not None:
            gauges[TRAFFIC_STREAMS] = self._traffic.streams_alive
        interval_ns = asked.get("monitor_ns", MONITOR_NS)
        made = {LOAD_PROGRAM: self._load, TRAFFIC_PROGRAM: self._traffic}
        others = Others(root, (OWN, *(name for name, part in made.items() if part is not None)))
        self._monitor = Monitor(
            folder, root.read_all, interval_ns, measured_cpus, gauges, monitor_file, files_of(root), others
        )
        self._idle = real_time and load.get("preset") == IDLE
        self._root, self._temperatures = root, dict[str, float]()
        self._stack = ExitStack()

    def __enter__(self) -> Self:
        self._feel("begin")
        with ExitStack() as stack:
            for part in (self._traffic, self._load, self._monitor):
                if part is not None:
                    stack.callback(part.stop)
                    part.start()
            self._stack = stack.pop_all()
        return self

    def __exit__(self, *_: object) -> None:
        self._stack.close()
        with suppress(ConnectionLostError):  # then it is not known
            self._feel("end")

    def _feel(self, when: str) -> None:
        temperature_c = heat.temperature_c(self._root)
        if temperature_c is not None:
            self._temperatures[f"{heat.TEMPERATURE}_{when}"] = temperature_c

    def facts(self) -> dict[str, Any]:
        """How load and traffic were made; what the machine did, and what they came to."""
        monitored = self._monitor.achieved() | self._temperatures
        effective: dict[str, Any] = {}
        achieved: dict[str, Any] = {"machine": monitored}
        if self._load is not None:
            effective["load"], achieved["load"] = self._load.effective(), self._load.achieved(monitored)
        if self._traffic is not None:
            effective["traffic"], achieved["traffic"] = self._traffic.effective(), self._traffic.achieved()
        return {"effective": effective, "achieved": achieved}

    def doubts(self) -> list[Doubt]:
        """What was asked and did not come about."""
        doubts = list(self._monitor.doubts())
        if self._idle:
            doubts += not_idle(self._monitor.achieved())
        if self._load is not None:
            doubts += self._load.doubts(self._monitor.achieved(), self._monitor.least(LOAD_WORKERS))
        if self._traffic is not None:
            doubts += self._traffic.doubts()
        return doubts

    def failure(self) -> RtmeterError | None:
        """Where the campaign is strict: the first condition that was not reached."""
        return self._error_of(doubt for doubt in self.doubts() if doubt.type in NOT_REACHED)

    def check(self) -> None:
        """While the probes run. Raises RtmeterError where the campaign is strict and load or traffic has
        ended: it would be measured on for nothing."""
        for part in (self._load, self._traffic):
            error = self._error_of(part.deaths()) if part is not None else None
            if error is not None:
                raise error

    def _error_of(self, doubts: Iterable[Doubt]) -> RtmeterError | None:
        first = next(iter(doubts), None) if self._strict else None
        if first is None:
            return None
        field = first.type.partition("_")[0]
        return RtmeterError(first.message, field=field, remedy=f"{first.hint}, or leave out strict")


def not_idle(monitored: Mapping[str, Any]) -> Iterator[Doubt]:
    """``load_not_idle``: an idle machine was asked, and others worked; ``monitored``: Monitor.achieved()."""
    _, taken = condition_words.taken_much({"achieved": {"machine": monitored}})
    if taken:
        message = f"an idle machine was asked, but {taken}"
        yield Doubt(condition_words.NOT_IDLE, message, "end that work, or ask for the load that is meant")


def strain_of(cell: Cell, folder: Path, root: Root, *, real_time: bool = True) -> Strain:
    """What the cell asks for; the machine is monitored in any case. Raises RtmeterError for no address."""
    config = cell.config
    tick_ns = config.get("timeout_ns") if config.get("mode") == "one_shot" else config.get("period_ns")
    expected_s = (config.get("samples", 0) + config.get("warm_up", 0)) * (tick_ns or 0) / 1e9
    target = cell.hosts.get("component", LOCAL)
    elsewhere = None
    if target != LOCAL and is_any(cell.conditions.get("traffic", {})):
        ssh = Ssh(target, "hosts.component")
        elsewhere = Elsewhere(ssh.address(), ssh)
    measured = measured_cpus(cell)
    return Strain(cell.conditions, folder, measured, expected_s, root, elsewhere, real_time=real_time)


def measured_cpus(cell: Cell) -> set[int]:
    """Those that are kept free of the front where there are others."""
    isolated = cpu_set(cell.conditions.get("settings", {}).get("isolate"))
    return {*(cell.config.get("cpus") or ()), *(cell.server_cpus or ()), *isolated}
