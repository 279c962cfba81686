"""The growing logs of the processes that measure one cell together → the rows that it will have."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np

from rtmeter.campaign.chain_option import graph_of
from rtmeter.measure.probe.together import log_of
from rtmeter.measure.team.chain_processes import processes_of, warm_ups
from rtmeter.measure.team.discovery_record import joined
from rtmeter.model import SERVED, WARM_UP_FLAG
from rtmeter.results.store import STAGES, TEAM
from rtmeter.samples.follow import Follower
from rtmeter.statistics.quantities import Columns
from rtmeter.statistics.views import OUTCOME_BITS
from rtmeter.values import from_json


def team_of(folder: Path) -> ChainFollower | DiscoveryFollower | None:
    """What follows the cell that several processes measure in ``folder``; None if none do yet."""
    try:
        team = from_json((folder / STAGES / TEAM).read_bytes())
    except (OSError, ValueError):  # there is none, or it is being written
        return None
    of = ChainFollower if team["config"]["measurement"] == "chain" else DiscoveryFollower
    return of(folder, team["config"], team["members"])


class ChainFollower:
    """Follows the judged path of a chain as Follower does a log. A sample is settled by the first output that
    rests on it or on a later one (statistics/chain.py): what is lost is known at the end."""

    def __init__(self, folder: Path, config: Mapping[str, Any], members: list[str]) -> None:
        graph, judged = graph_of(config), config["graph"]["judged"]
        path = next(path for path in graph.paths() if [stage.name for stage, _ in path] == judged)
        (source, _), (last, self._way) = path[0], path[-1]
        processes = processes_of(config, together=members == ["all"])
        process = next(one for one in processes if last.name in one.stages)
        self._stage = process.stages.index(last.name)
        self._period_ns, self._warm_up = source.period_ns or 0, warm_ups(config, graph)[source.name]
        self._settled, self._first_ns = 0, 0
        self._config, self._log = config, Follower(log_of(folder, process.name))
        self.path = self._log.path

    @property
    def header(self) -> dict[str, Any]:
        """That of the log, with the cell's config; empty until it is there."""
        return self._log.header and self._log.header | {"config": self._config}

    @property
    def damaged(self) -> int:
        """How many places were passed over."""
        return self._log.damaged

    def new(self) -> Iterator[Columns]:
        """As Follower.new(): the samples that were settled since."""
        for rows in self._log.new():
            served = (rows["status"] & OUTCOME_BITS) == SERVED
            mine = served & (rows["stage"] == self._stage) & (rows["way"] == self._way)
            at, release_ns, sent_ns = (rows[n][mine] for n in ("sample", "sample_release_ns", "sent_ns"))
            if not self._settled and len(at):
                self._first_ns = int(release_ns[0] - at[0] * self._period_ns)
            # What a stage re-stamped is on another grid, or from the future.
            true = (release_ns == self._first_ns + at * self._period_ns) & (release_ns <= sent_ns)
            at, sent_ns = at[true], sent_ns[true]
            before = np.maximum.accumulate(np.concatenate([[self._settled - 1], at]))
            k = np.arange(self._settled, before[-1] + 1)
            self._settled += len(k)
            release_ns = self._first_ns + k * self._period_ns
            yield {
                "k": k,
                "release_ns": release_ns,
                "before_ns": release_ns - self._period_ns,
                "output_ns": np.repeat(sent_ns, np.diff(before)),
                "status": np.where(k < self._warm_up, SERVED | WARM_UP_FLAG, SERVED),
            }


class DiscoveryFollower:
    """Follows the participants of a discovery as Follower does a log: a release is settled when it is for
    all of them."""

    def __init__(self, folder: Path, config: Mapping[str, Any], members: list[str]) -> None:
        self._config, self._logs = config, [Follower(log_of(folder, name)) for name in members]
        self._waiting: list[list[Columns]] = [[] for _ in members]
        self.path = self._logs[-1].path

    @property
    def header(self) -> dict[str, Any]:
        """That of the last one's log, with the cell's config; empty until it is there."""
        return self._logs[-1].header and self._logs[-1].header | {"config": self._config}

    @property
    def damaged(self) -> int:
        """How many places of all logs were passed over."""
        return sum(log.damaged for log in self._logs)

    def new(self) -> Iterator[Columns]:
        """As Follower.new(): the releases that were settled since."""
        for log, waiting in zip(self._logs, self._waiting, strict=True):
            waiting += log.new()
        if not all(self._waiting):
            return
        whole = [
            {name: np.concatenate([rows[name] for rows in waiting]) for name in waiting[0]}
            for waiting in self._waiting
        ]
        first, end = (pick(rows["k"][at] for rows in whole) for pick, at in ((min, 0), (min, -1)))
        now = [{name: column[rows["k"] <= end] for name, column in rows.items()} for rows in whole]
        rest = [{name: column[rows["k"] > end] for name, column in rows.items()} for rows in whole]
        self._waiting = [[rows] if len(rows["k"]) else [] for rows in rest]
        warm_up = int(self._config["warm_up"]) - int(first)
        rows = joined([(rows["k"] - first, rows) for rows in now], warm_up)
        yield {"k": first + np.arange(len(rows["status"])), **rows}
