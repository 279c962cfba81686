"""What is beside the two ends of a round trip: further processes, subscribers, publishers and idle nodes."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from rtmeter.campaign.beside_options import BESIDE
from rtmeter.errors import RtmeterError
from rtmeter.measure.probe.probe_process import ProbeProcess
from rtmeter.measure.probe.probes import Probe
from rtmeter.model import LOCAL, Cell
from rtmeter.results.store import STAGES

_AS_THE_SERVER = (
    *("version", "measurement", "period_ns", "warm_up", "loss_timeout_ns", "payload_bytes", "reliability"),
    *("history_depth", "receive", "options", "session", "connect_timeout_ns", "watch_stdin"),
)
"""Of the server's config; what it is given beside, policy, memory and CPUs, is of the measured ends alone."""


def asked(config: Mapping[str, Any]) -> dict[str, int]:
    """How many there are of each kind that needs further processes, both ends' own among them; no probe has
    these options: `beside` derives from them."""
    return {name: config[name] for name, least in BESIDE.items() if config.get(name, least) > least}


def of_the_ends(config: Mapping[str, Any]) -> dict[str, Any]:
    """The config of a cell as the probes of its two ends take it."""
    own = {key: value for key, value in config.items() if key not in BESIDE}
    return own | {"beside": dict(found)} if (found := asked(config)) else own


def check(cell: Cell, server: Probe, *, inline: bool, options: Mapping[str, str]) -> None:
    """Raises RtmeterError naming the first option that cannot be had; ``server``: whose subscribers they
    are, with these ``options``; ``inline``: it has no process of its own."""
    for name, count in asked(cell.config).items():
        if inline and not server.scripted:
            message = (
                f"needs a server process, which the adapter {cell.adapter} has none of with these options"
            )
            raise RtmeterError(message, field=name, value=count, remedy="leave it out")
        if (there := cell.hosts.get("component", LOCAL)) != LOCAL:
            message = f"cannot be had with a component on {there}: further processes run on one host"
            remedy = "leave one of the two out, or measure all of it there (on)"
            raise RtmeterError(message, field=name, value=count, remedy=remedy)
        _check_adapter(name, count, server, options)


def _check_adapter(name: str, count: int, server: Probe, options: Mapping[str, str]) -> None:
    """Raises RtmeterError if the adapter cannot have them with these options."""
    known = [entry.partition(" ") for entry in server.facts.get("beside", ())]
    needs = [condition for what, _, condition in known if what == name]
    if "" in needs or any(options.get(key) == value for key, _, value in (n.partition("=") for n in needs)):
        return
    message = f"cannot be had of the adapter {server.name}"
    if needs:
        remedy = f"choose option {' or '.join(needs)}"
        raise RtmeterError(f"{message} with these options", field=name, value=count, remedy=remedy)
    remedy = "leave it out, or choose an adapter that `rtmeter adapters` shows with it"
    raise RtmeterError(message, field=name, value=count, remedy=remedy)


@dataclass(frozen=True, slots=True)
class FurtherProcess:
    """One further process: its name, and what the probe is told that it is."""

    name: str
    as_: Literal["subscriber", "publisher", "node"]
    number: int

    def log(self, folder: Path) -> Path:
        """Its sample log, of a cell in ``folder``."""
        return folder / STAGES / f"{self.name}.rtlog"


def members(config: Mapping[str, Any]) -> list[FurtherProcess]:
    """All of them; the server is the first subscriber, the client the first publisher."""
    found = asked(config)
    hearing = range(2, found.get("subscribers", 1) + 1)
    talking = range(2, found.get("publishers", 1) + 1)
    idle = range(1, found.get("background_nodes", 0) + 1)
    return [
        *(FurtherProcess(f"background{n}", "node", n) for n in idle),
        *(FurtherProcess(f"subscriber{n}", "subscriber", n) for n in hearing),
        *(FurtherProcess(f"publisher{n}", "publisher", n) for n in talking),
    ]


class FurtherProcesses:
    """The further processes of a run, once they are started."""

    def __init__(self) -> None:
        self.processes: list[ProbeProcess] = []
        self._members: list[FurtherProcess] = []
        self._told = False

    def start(
        self,
        cell: Cell,
        server: Mapping[str, Any],
        folder: Path,
        launch: Callable[[dict[str, Any]], ProbeProcess],
    ) -> None:
        """All of them; ``server``: the server's config. Raises RtmeterError."""
        self._members, publishers = members(cell.config), asked(cell.config).get("publishers")
        if self._members:
            (folder / STAGES).mkdir()
        alike = {key: server[key] for key in _AS_THE_SERVER if key in server}
        for one in self._members:
            about = {"as": one.as_, "number": one.number}
            if publishers and one.as_ == "subscriber":
                about["publishers"] = publishers
            config = alike | {"role": "beside", "beside": about, "log": str(one.log(folder))}
            self.processes.append(launch(config | {"samples": cell.config["samples"]}))

    @property
    def publishing(self) -> list[ProbeProcess]:
        """Further publishers: who hears them ends before them, since what is under way may need them."""
        return self._of("publisher")

    def fall_silent(self) -> None:
        """Lets further publishers publish nothing more."""
        for one in self.publishing:
            one.tell("go -1\n")

    @property
    def silent(self) -> bool:
        """Whether all further publishers have published what was due, or have ended."""
        return all(one.event("silent") or one.exit_code is not None for one in self.publishing)

    def tell(self, client: ProbeProcess, server: ProbeProcess | None) -> None:
        """Lets the publishers begin, once all that are to hear them have."""
        hearing = self._of("subscriber")
        if self.publishing and server is not None:
            hearing = [*hearing, server]
        if hearing and not self._told and all(one.event("greeted") for one in hearing):
            self._told = True
            for one in [*self.publishing, client]:
                one.tell("go 1\n")

    def _of(self, kind: str) -> list[ProbeProcess]:
        pairs = zip(self._members, self.processes, strict=False)  # one may not have started
        return [process for member, process in pairs if member.as_ == kind]


def ended_early(processes: Sequence[ProbeProcess]) -> ProbeProcess | None:
    """One that has ended, of those that are to be there."""
    return next((one for one in processes if one.exit_code is not None), None)
