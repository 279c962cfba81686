"""The processes of a chain: which stages each runs, and their probe configs."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from rtmeter.campaign.chain_option import graph_of
from rtmeter.statistics.chain_graph import Graph

DRAIN_MARGIN_NS = 50_000_000
"""Beyond the loss timeout and one release of every sampled stage on the way: for the stages' own lateness."""


@dataclass(frozen=True, slots=True)
class ChainProcess:
    """One process: the stages that it runs, in the order of the graph."""

    name: str
    stages: tuple[str, ...]
    has_source: bool

    @property
    def role(self) -> str:
        """A client is told the end and comes to it by itself, a server is asked to end."""
        return "client" if self.has_source else "server"


def processes_of(config: Mapping[str, Any], *, together: bool) -> list[ChainProcess]:
    """The processes of a cell; ``together``: one for all, as on a scripted clock."""
    found: dict[str, list[Mapping[str, Any]]] = {}
    for stage in config["graph"]["stages"]:
        found.setdefault("all" if together else stage["process"], []).append(stage)
    return [
        ChainProcess(name, tuple(s["name"] for s in stages), any(not s["inputs"] for s in stages))
        for name, stages in found.items()
    ]


def released(config: Mapping[str, Any], graph: Graph) -> dict[str, int]:
    """How many samples each source releases, the warm-up included: as long as the judged path's."""
    lasts_ns = (config["warm_up"] + config["samples"]) * config["period_ns"]
    return {source.name: max(1, -(-lasts_ns // (source.period_ns or 1))) for source in graph.sources}


def warm_ups(config: Mapping[str, Any], graph: Graph) -> dict[str, int]:
    """How many samples of each source come before the measured ones."""
    warm_ns = config["warm_up"] * config["period_ns"]
    return {source.name: -(-warm_ns // (source.period_ns or 1)) for source in graph.sources}


def drain_ns(config: Mapping[str, Any], graph: Graph) -> int:
    """How long a sample may be under way on the slowest path once its source has sent it."""
    slowest = max(sum(max(s.period_ns or 0, s.offset_ns) for s, _ in path[1:]) for path in graph.paths())
    return int(config["loss_timeout_ns"]) + slowest + DRAIN_MARGIN_NS


def overdue_ns(config: Mapping[str, Any], graph: Graph) -> dict[tuple[str, ...], int]:
    """By path, how long a reaction that had not come at the end must have taken to be lost: longer than the
    deadline, of the judged one if it has one, else than samples are waited for."""
    found = {}
    for path in graph.paths():
        named = tuple(stage.name for stage, _ in path)
        found[named] = drain_ns(config, graph) + (path[0][0].period_ns or 0)
        if list(named) == config["graph"]["judged"] and config.get("deadline_ns") is not None:
            found[named] = int(config["deadline_ns"])
    return found


def quiet_ns(config: Mapping[str, Any], graph: Graph) -> int:
    """How long a process with a source may settle no release once all have begun, as the probe counts it."""
    longest = max(source.offset_ns + 11 * (source.period_ns or 0) for source in graph.sources)
    return longest + drain_ns(config, graph)


_OF_THE_CELL = ("graph", "samples", "warm_up", "deadline_ns")
"""Keys that mean something for the cell, not for one process."""


def probe_config(config: Mapping[str, Any], process: ChainProcess) -> dict[str, Any]:
    """The probe config of a process, without its log and session."""
    graph, count = graph_of(config), released(config, graph_of(config))
    planted = {s["name"] for s in config["graph"]["stages"] if s["re_stamps"]}
    stages = []
    for name in process.stages:
        stage = graph.by_name[name]
        asked: dict[str, Any] = {"name": name}
        if stage.kind == "fusion":
            asked["fusion"] = True
        if stage.period_ns is not None:
            asked |= {"period_ns": stage.period_ns, "offset_ns": stage.offset_ns}
        if stage.is_source:
            asked["samples"] = count[name]
        else:
            asked["inputs"] = [{"stage": one, "ways": graph.ways[one]} for one in stage.inputs]
        if name in planted:
            asked["re_stamps"] = True
        stages.append(asked)
    own = {key: value for key, value in config.items() if key not in _OF_THE_CELL}
    if process.has_source:
        own["samples"] = max(count[name] for name in process.stages if name in count)
    return own | {
        "version": 1,
        "role": process.role,
        "chain": {"stages": stages, "drain_ns": drain_ns(config, graph)},
        "watch_stdin": True,
    }
