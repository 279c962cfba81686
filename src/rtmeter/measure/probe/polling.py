"""Threads of real-time priority that poll keep a CPU each: a cell that has none for each cannot run."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import product
from typing import Any

from rtmeter.errors import RtmeterError
from rtmeter.host.root import Root
from rtmeter.host.threads import cpu_set
from rtmeter.measure.probe.probes import Probe
from rtmeter.model import LOCAL, TWO_ENDS, Cell
from rtmeter.values import format_cpus

_THROTTLING = "/proc/sys/kernel/sched_rt_runtime_us"
_REAL_TIME = re.compile(r"(?:fifo|rr):(\d+)")


@dataclass(frozen=True, slots=True)
class PollingThread:
    """A thread, or several that can do with one CPU: whether it polls, and the CPUs that it may run on."""

    name: str
    polls: bool
    cpus: frozenset[int]


@dataclass(frozen=True, slots=True)
class _End:
    """One process of the cell: its probe, what it was asked for, its part, and its CPUs."""

    probe: Probe
    config: Mapping[str, Any]
    options: Mapping[str, str]
    role: str
    cpus: frozenset[int]

    @property
    def polls(self) -> bool:
        """Whether whoever waits for messages, or for a timer, looks all the time instead."""
        measurement = self.config["measurement"]
        for key, declared in (("drive", "drives"), ("receive", "receives")):
            offered = self.probe.facts.get(declared, {}).get(measurement) or [None]
            if (self.config.get(key) or offered[0]) == "poll":
                return True
        waits = measurement in (*TWO_ENDS, "cycle")
        values: Mapping[str, Sequence[str]] = self.probe.facts.get("poll", {})
        return waits and any(self.options.get(option) in some for option, some in values.items())

    def threads(self) -> Iterator[PollingThread]:
        """Those that must run for the cell to get on."""
        config, polls = self.config, self.polls
        if self.role == "client" and config.get("in_flight") == "open":
            yield PollingThread("client's sender", False, self.cpus)
            yield PollingThread("client's receiver", polls, self.cpus)
        else:
            yield PollingThread("measured thread" if self.role == "single" else self.role, polls, self.cpus)
        if self._is_background_needed and not self._is_background_above:
            cpus = config.get("child_cpus")
            yield PollingThread("threads of the middleware", False, frozenset(cpus) if cpus else self.cpus)

    @property
    def _is_background_needed(self) -> bool:
        for declared in self.probe.facts.get("background", ()):
            measurement, _, condition = declared.partition(" ")
            key, _, value = condition.partition("=")
            asked = self._components if key == "components" else self._option(key)
            if measurement == self.config["measurement"] and (not condition or asked == value):
                return True
        return False

    @property
    def _components(self) -> str | None:
        """The threads of a cycle's components, by default the adapter's first."""
        default: str | None = next(iter(self.probe.facts.get("components", ())), None)
        return self.config.get("components") or default

    def _option(self, name: str) -> str | None:
        """The option's value, by default the first that it has."""
        default = re.split("[|:]", self.probe.facts.get("option", {}).get(name, ""), maxsplit=1)[0]
        return self.options.get(name, default)

    @property
    def _is_background_above(self) -> bool:
        """Whether the middleware's threads come before the measured one; of some of them who knows."""
        asked = self.config.get("child_threads") or {}
        own = self.config["scheduling"]["priority"]
        if int(asked.get("priority", 0)) > own:
            return True
        threads = self.options.get("threads", "")
        found = _REAL_TIME.fullmatch(threads)
        return "=" in threads or (found is not None and int(found[1]) > own)


def check(
    cell: Cell,
    probe: Probe,
    server: Probe | None,
    root: Root = Root(),  # noqa: B008
    *,
    alike: int = 1,
) -> None:
    """Raises RtmeterError if threads of the cell that poll at real-time priority would keep each other, or
    what they wait for, from running. ``alike``: as many processes as the client are there, of a chain or a
    discovery."""
    policy = cell.config["scheduling"]["policy"]
    if policy not in ("fifo", "rr") or probe.scripted:
        return
    allowed = frozenset(root.cpus())
    here, there = _ends(cell, probe, server, allowed)
    asked = cell.conditions.get("settings", {}).get("rt_throttling")
    throttled = root.read(_THROTTLING) != "-1" if asked is None else asked != "off"
    # Ordinary priority, on any CPU: also further subscribers and nodes, and the second topic's threads.
    ours = [] if throttled else [PollingThread("rtmeter", False, allowed)]
    _check(cell, [thread for end in here * alike for thread in end.threads()] + ours)
    _check(cell, [thread for end in there for thread in end.threads()])


def _ends(
    cell: Cell, probe: Probe, server: Probe | None, allowed: frozenset[int]
) -> tuple[list[_End], list[_End]]:
    """The processes on this machine, and on another one, of which not more is known than what was asked."""
    config = cell.config
    isolated = cpu_set(cell.conditions.get("settings", {}).get("isolate"))
    asked = frozenset(config.get("cpus") or ())
    options = config.get("options", {})
    role = "client" if config["measurement"] in TWO_ENDS else "single"
    client = _End(probe, config, options, role, asked or isolated or allowed)
    if server is None:
        return [client], []
    own = cell.server_options
    if own is None:
        own = options if cell.server_adapter in (None, cell.adapter) else {}
    theirs = frozenset(cell.server_cpus or ()) or asked
    received = dict(config)
    if cell.server_receive is not None or cell.server_adapter not in (None, cell.adapter):
        received["receive"] = cell.server_receive
    if cell.hosts.get("component", LOCAL) == LOCAL:
        return [client, _End(server, received, own, "server", theirs or isolated or allowed)], []
    return [client], [_End(server, received, own, "server", theirs)] if theirs else []


def _check(cell: Cell, threads: Sequence[PollingThread]) -> None:
    polling = [thread for thread in threads if thread.polls]
    others = [thread for thread in threads if not thread.polls]
    if not polling or fits(polling, others):
        return
    cpus = frozenset[int]().union(*(thread.cpus for thread in polling))
    scheduling = cell.config["scheduling"]
    policy = f"{scheduling['policy']}:{scheduling['priority']}"
    names = ", ".join(thread.name for thread in polling)
    message = f"has no CPU for each thread that polls at {policy} ({names})"
    if others:
        message += f", and one for what else must run ({', '.join(thread.name for thread in others)})"
    message += (
        f": they may run on CPU {format_cpus(sorted(cpus))} only, and one that polls leaves it to nobody"
    )
    field = next((f for f in ("server_cpus", "cpus") if _given(cell, f) is not None), None)
    given = _given(cell, field) if field else None
    if field is None or given is None:
        field, value = _cause(cell)
    else:
        value = format_cpus(sorted(given))
    needed = len(polling) + bool(others)
    remedy = (
        f"give them {needed} CPUs (cpus, server_cpus, child_cpus), or let them wait instead of "
        "poll, or choose scheduling other"
    )
    raise RtmeterError(message, field=field, value=value, remedy=remedy)


def _given(cell: Cell, field: str) -> Sequence[int] | None:
    return cell.server_cpus if field == "server_cpus" else cell.config.get(field)


def _cause(cell: Cell) -> tuple[str, str]:
    """The option that makes them poll."""
    for field in ("drive", "receive"):
        if cell.config.get(field) == "poll":
            return field, "poll"
    options = cell.config.get("options", {})
    return "options", ", ".join(f"{name}={value}" for name, value in options.items())


def fits(polling: Sequence[PollingThread], others: Sequence[PollingThread]) -> bool:
    """Whether the polling threads can have a CPU each so that every other one has one left."""
    sets = {thread.cpus for thread in others}
    hardest = [cpus for cpus in sets if not any(other < cpus for other in sets)]  # which the rest contain
    return any(_each_has_one([thread.cpus - {*left} for thread in polling]) for left in product(*hardest))


def _each_has_one(allowed: Sequence[frozenset[int]]) -> bool:
    """A matching by augmenting paths (Kuhn, Naval Research Logistics Quarterly 2, 1955)."""
    whose: dict[int, int] = {}

    def gets_one(thread: int, tried: set[int]) -> bool:
        for cpu in allowed[thread]:
            if cpu not in tried:
                tried.add(cpu)
                if cpu not in whose or gets_one(whose[cpu], tried):
                    whose[cpu] = thread
                    return True
        return False

    return all(gets_one(thread, set()) for thread in range(len(allowed)))
