"""Load by stress-ng: started before warm-up, watched, stopped with its children, compared with the level."""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

import yaml

from rtmeter.conditions.stress_ng import StressNg
from rtmeter.errors import RtmeterError
from rtmeter.host.online import require_online
from rtmeter.host.remote_shell import ConnectionLostError
from rtmeter.host.root import Root
from rtmeter.model import Doubt

_SETTLE_S = 10
_ENOUGH = 0.9  # of the level: the rest is within what stress-ng and /proc/stat promise
_OWN_ENOUGH = 0.5  # of the level by stress-ng itself: else somebody else made the load
_EXCESS = 0.15
_SHORTEST_S = 1  # below that, ticks of 10 ms tell no level


class Load:
    """stress-ng with the workers that ``asked`` names (strain_options.LoadAsked as JSON), until stop()."""

    def __init__(self, asked: Mapping[str, Any], folder: Path, root: Root = Root()) -> None:  # noqa: B008
        self._asked, self._root = asked, root
        self._folder = folder / "load.tmp"  # stress-ng's own files, among them those of hdd workers
        self._cpus: list[int] = asked.get("cpus") or root.cpus()
        self._workers = {name: count or len(self._cpus) for name, count in workers(asked).items()}
        self._process: StressNg | None = None
        self._started = self._ended = (0.0, 0.0)  # (moment, processor time), in seconds
        self._death: str | None = None
        self._report: dict[str, Any] = {}

    def start(self) -> None:
        """Returns when its workers run. Raises RtmeterError if stress-ng is missing or does not run, or a CPU
        that it is to run on is not there."""
        require_online(self._asked.get("cpus") or (), "load.cpus", self._root)
        options = arguments(self._asked, self._workers)
        self._process = StressNg(options, self._folder, self._asked.get("cpus"), self._root)
        limit = time.monotonic() + _SETTLE_S
        while self._process.workers() < self._expected and time.monotonic() < limit:
            if self._process.death is not None:
                remedy = "correct load, or see `stress-ng --help` for what this version can do"
                message = f"stress-ng ended at once: {self._process.death}"
                raise RtmeterError(message, field="load", remedy=remedy)
            time.sleep(0.05)
        self._started = (time.monotonic(), self._process.processor_s())

    def stop(self) -> None:
        """Ends stress-ng and all its children, and keeps what it says it did."""
        if self._process is not None:
            self._death = self.died
            with suppress(ConnectionLostError):  # then it is not known
                self._ended = (time.monotonic(), self._process.processor_s())
            process, self._process = self._process, None
            self._report = _parsed(process.end())

    @property
    def died(self) -> str | None:
        """How stress-ng ended, if it did so by itself."""
        return self._death if self._process is None else self._process.death

    def workers_alive(self) -> float:
        """How many of its workers run; also notices when stress-ng ends."""
        return 0 if self._process is None else self._process.workers()

    @property
    def _expected(self) -> int:
        return sum(self._workers.values())

    @property
    def level(self) -> float | None:
        """The share of its CPUs that the cpu workers are to keep busy; None without such workers."""
        if "cpu" not in self._workers:
            return None
        percent = self._asked.get("cpu_percent")
        each = 1.0 if percent is None else float(percent) / 100
        return min(self._workers["cpu"] * each / len(self._cpus), 1.0)

    @property
    def own_share(self) -> float | None:
        """The share of its CPUs' time that stress-ng itself took; None if it cannot be told."""
        elapsed_s = self._ended[0] - self._started[0]
        if elapsed_s < _SHORTEST_S or self.died is not None:
            return None
        return (self._ended[1] - self._started[1]) / elapsed_s / len(self._cpus)

    def effective(self) -> dict[str, Any]:
        """How it was made, JSON-ready."""
        version = self._report.get("system-info", {}).get("stress-ng-version")
        found = {"tool": "stress-ng", "version": version, "workers": self._workers, "cpus": self._cpus}
        return found | {"arguments": arguments(self._asked, self._workers)}

    def achieved(self, monitored: Mapping[str, Any]) -> dict[str, Any]:
        """What it came to, JSON-ready; ``monitored``: Monitor.achieved()."""
        busy, own = self._busy(monitored), self.own_share
        return {
            "level": self.level,
            "busy": None if busy is None else round(busy, 4),
            "own": None if own is None else round(own, 4),
            "operations": {m["stressor"]: m["bogo-ops"] for m in self._report.get("metrics") or ()},
            "died": self.died,
        }

    def deaths(self) -> Iterator[Doubt]:
        """``load_died``, as soon as stress-ng has ended by itself."""
        if self.died is not None:
            yield Doubt("load_died", f"stress-ng ended while it was needed: {self.died}", "measure again")

    def doubts(self, monitored: Mapping[str, Any], fewest_workers: float | None) -> Iterator[Doubt]:
        """``load_died`` and ``load_not_reached``: what was asked and did not come about."""
        yield from self.deaths()
        if self.died is not None:
            return
        if fewest_workers is not None and fewest_workers < self._expected:
            message = f"at times only {fewest_workers:.0f} of {self._expected} workers of stress-ng ran"
            yield Doubt("load_not_reached", message, "see the kernel's log (dmesg): memory may be short")
        idle = [m["stressor"] for m in self._report.get("metrics") or () if not m["bogo-ops"]]
        if idle:
            message = f"stress-ng's workers {', '.join(idle)} did nothing"
            yield Doubt("load_not_reached", message, "measure longer, or see what they lack")
        busy, own = self._busy(monitored), self.own_share
        if self.level is not None and busy is not None and own is not None:
            yield from level_doubts(self.level, busy, own, only_cpu=len(self._workers) == 1)

    def _busy(self, monitored: Mapping[str, Any]) -> float | None:
        if monitored.get("seconds", 0) < _SHORTEST_S:
            return None
        shares = [monitored["busy_cpus"].get(str(cpu)) for cpu in self._cpus if "busy_cpus" in monitored]
        known = [share for share in shares if share is not None]
        return sum(known) / len(known) if known else None


def level_doubts(level: float, busy: float, own: float, *, only_cpu: bool) -> Iterator[Doubt]:
    """What the shares of its CPUs say: those they were to be busy, were, and that stress-ng took itself."""
    if busy < _ENOUGH * level:
        message = f"its CPUs were {busy:.0%} busy, {level:.0%} was asked"
        yield Doubt("load_not_reached", message, "see whether a cgroup limits its processor time")
    elif own < _OWN_ENOUGH * level:
        message = f"its CPUs were {busy:.0%} busy, but stress-ng itself took {own:.0%}: {level:.0%} was asked"
        yield Doubt("load_not_reached", message, "end the other work that kept stress-ng from its share")
    elif only_cpu and busy > level + _EXCESS:
        message = f"its CPUs were {busy:.0%} busy, more than the {level:.0%} asked"
        yield Doubt("load_exceeded", message, "end what else ran (see meanwhile), or ask for as much load")


def workers(asked: Mapping[str, Any]) -> dict[str, int]:
    """Workers by the name of their stressor; 0: one for each CPU."""
    own = {name: int(asked[name]) for name in ("cpu", "vm", "io", "hdd") if asked.get(name) is not None}
    return own | {name: int(count) for name, count in (asked.get("stressors") or {}).items()}


def arguments(asked: Mapping[str, Any], counts: Mapping[str, int]) -> list[str]:
    """stress-ng's options for the workers."""
    command = [part for name, count in counts.items() for part in (f"--{name}", str(count))]
    options = {"cpu_percent": "--cpu-load", "vm_bytes": "--vm-bytes", "hdd_bytes": "--hdd-bytes"}
    for key, option in options.items():
        if asked.get(key) is not None:
            command += [option, f"{asked[key]}{'' if key == 'cpu_percent' else 'B'}"]
    return command


def _parsed(report: str) -> dict[str, Any]:
    """What stress-ng says it did; empty if it was killed before."""
    try:
        parsed = yaml.safe_load(report)
    except yaml.YAMLError:
        return {}
    return parsed if isinstance(parsed, dict) else {}
