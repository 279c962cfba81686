"""Runs of the probe that is checked: started by a config, heard, and always ended."""

from __future__ import annotations

import contextlib
import json
import signal
import subprocess
import time
import uuid
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from rtmeter.campaign.rules import RECEIVED_IN_CYCLES
from rtmeter.host.ending import STARTED, kill_group, reap
from rtmeter.measure.probe.probes import Probe
from rtmeter.model import TWO_ENDS
from rtmeter.values import from_json, visible

MS = 1_000_000
PERIOD_NS = 2 * MS
SAMPLES, WARM_UP = 60, 10
LOSS_NS = 2_000 * MS
"""A loss timeout that an ordinary stall of the machine does not reach."""
READY_S = 60.0
RUN_S = 90.0
"""Until a run of some tenths of a second must be over, however slow the machine is."""
END_S = 15.0
"""Until an interrupted run must have ended; the probe itself gives an adapter up after 10."""
_LOOK_S = 0.01
_MOST_QUOTED = 60  # characters of a line that is none
_LEFT_ALONE = "does not end; the probe ends without it"
"""What a probe prints whose adapter does not come back from stop()."""

RunConfig = dict[str, Any]


class UnexpectedError(Exception):
    """A run went otherwise than any run of a sound adapter: why, and what to do."""

    def __init__(self, reason: str, remedy: str) -> None:
        super().__init__(reason)
        self.reason, self.remedy = reason, remedy


@dataclass(frozen=True, slots=True)
class Way:
    """One way to measure: ``name`` is made of the parts that the config gives."""

    name: str
    config: RunConfig = field(hash=False)

    @property
    def measurement(self) -> str:
        """wakeup, timer, roundtrip, request or cycle."""
        return str(self.config["measurement"])


class ProbeRun:
    """One process of the probe, with the status lines that came so far; ``server``: a client's."""

    def __init__(self, probe: Probe, folder: Path, config: RunConfig, verb: str = "--config") -> None:
        name, self._began = uuid.uuid4().hex, time.monotonic()
        self.log = folder / f"{name}.rtlog"
        self.server: ProbeRun | None = None
        self._out, self._err = folder / f"{name}.out", folder / f"{name}.err"
        settings = folder / f"{name}.json"
        settings.write_text(json.dumps({"version": 1, "log": str(self.log), "watch_stdin": True} | config))
        with self._out.open("wb") as out, self._err.open("wb") as err:
            self._popen = subprocess.Popen(
                [probe.path, verb, settings],
                stdin=subprocess.PIPE,
                stdout=out,
                stderr=err,
                start_new_session=True,
            )
        STARTED.add(self._popen.pid)

    def events(self) -> list[dict[str, Any]]:
        """All whole status lines. Raises UnexpectedError for what is none."""
        text = self._out.read_text(errors="replace")
        return [_event(line) for line in text.splitlines(keepends=True) if line.endswith("\n")]

    def until(
        self, kind: str, limit_s: float = READY_S, least: tuple[str, int] | None = None
    ) -> dict[str, Any]:
        """The first status line of the kind (and with at least so many of something)."""
        return self._until(
            kind, limit_s, lambda e: e["event"] == kind and (least is None or e[least[0]] >= least[1])
        )

    def until_either(self, *kinds: str) -> dict[str, Any]:
        """The first status line of one of these kinds."""
        return self._until(" or ".join(kinds), READY_S, lambda event: event["event"] in kinds)

    def _until(self, what: str, limit_s: float, is_it: Callable[[dict[str, Any]], bool]) -> dict[str, Any]:
        end = time.monotonic() + limit_s
        while True:
            over = self._popen.poll() is not None
            for event in self.events():
                if is_it(event):
                    return event
            if over or time.monotonic() > end:
                came = "it ended" if over else f"{limit_s:g} s went by"
                raise UnexpectedError(
                    f"{came} without {what!r}: {self.last_words()}",
                    "run `rtmeter measure` with the same settings and look at what it prints",
                )
            time.sleep(_LOOK_S)

    def progresses(self) -> list[dict[str, Any]]:
        """All its reports so far; a probe makes four a second."""
        return [event for event in self.events() if event["event"] == "progress"]

    def pause(self) -> None:
        """Until it is worth looking again; no longer than any run may take."""
        if time.monotonic() - self._began > RUN_S:
            raise UnexpectedError(
                f"for {RUN_S:g} s nothing happened: {self.last_words()}",
                "a message without an answer is lost after the loss timeout, and the run goes on",
            )
        time.sleep(_LOOK_S)

    def end(self, limit_s: float) -> int:
        """Waits for its end; the exit code."""
        try:
            code = self._popen.wait(limit_s)
        except subprocess.TimeoutExpired:
            raise UnexpectedError(
                f"the run had not ended after {limit_s:g} s: {self.last_words()}",
                "a call of the adapter's does not come back: interrupt() ends each, and so does its timeout",
            ) from None
        if _LEFT_ALONE in self._err.read_text(errors="replace"):
            raise UnexpectedError(
                "the middleware does not end: the probe ended without it",
                "stop() (the destructor) undoes everything, and waits for nobody but threads that it ends",
            )
        return code

    def end_unless_silent(self, kind: str, limit_s: float) -> int | None:
        """Waits for its end, the exit code; None: no further status line of the kind came for so long."""
        said, since = -1, time.monotonic()
        while self._popen.poll() is None:
            if said != (said := sum(event["event"] == kind for event in self.events())):
                since = time.monotonic()
            elif time.monotonic() - since > limit_s:
                return None
            self.pause()
        return self.end(0)

    def tell(self, line: str) -> None:
        """Writes to its standard input."""
        assert self._popen.stdin is not None
        self._popen.stdin.write(line.encode())
        self._popen.stdin.flush()

    def signal(self, number: int) -> None:
        """Sends a signal to the probe alone."""
        self._popen.send_signal(number)

    def stop_asleep(self) -> None:
        """Stops it while all its threads sleep: one of a middleware with shared memory that is stopped amid a
        delivery keeps a lock that all share."""
        tasks = Path(f"/proc/{self._popen.pid}/task")
        while any(_runs(task) for task in tasks.iterdir()):
            self.pause()
        self.signal(signal.SIGSTOP)

    def finish(self, limit_s: float = END_S) -> int:
        """Ends a server: closes its standard input."""
        assert self._popen.stdin is not None
        self._popen.stdin.close()
        return self.end(limit_s)

    def error(self) -> dict[str, Any] | None:
        """What it said was wrong."""
        return next((e for e in self.events() if e["event"] == "error"), None)

    def frame(self) -> dict[str, Any]:
        """The last status line of a whole run."""
        return self.until("end", 0)

    def last_words(self) -> str:
        """The error, or what it printed last."""
        error = self.error()
        if error is not None:
            return f"{error.get('field')} = {error.get('value')!r}: {error.get('message')}"
        lines = self._err.read_text(errors="replace").strip().splitlines()
        return lines[-1] if lines else "it printed nothing"

    def close(self) -> None:
        """Kills what is left of it."""
        kill_group(self._popen.pid)
        reap(self._popen)
        STARTED.remove(self._popen.pid)
        if self._popen.stdin is not None and not self._popen.stdin.closed:
            self._popen.stdin.close()


def _runs(task: Path) -> bool:
    with contextlib.suppress(OSError):  # it has ended
        return ") S " not in (task / "stat").read_text()
    return False


def _event(line: str) -> dict[str, Any]:
    with contextlib.suppress(ValueError):
        event = from_json(line)
        if isinstance(event, dict) and isinstance(event.get("event"), str):
            return event
    raise UnexpectedError(
        f"{visible(line.rstrip()[:_MOST_QUOTED])!r} is no status line",
        "standard output is for status lines alone (spec/probe.md)",
    )


class CheckedProbe:
    """The probe that is checked, a folder for its files, and how runs of it are made."""

    def __init__(self, probe: Probe, folder: Path) -> None:
        self.probe, self.folder = probe, folder

    @property
    def facts(self) -> dict[str, Any]:
        """What it says of itself before the start."""
        return self.probe.facts

    @property
    def one_process(self) -> bool:
        """Whether its round trips need no server."""
        return self.probe.serves_inline({})

    @contextmanager
    def run(self, config: RunConfig, verb: str = "--config") -> Iterator[ProbeRun]:
        """A started probe, in a session of its own if none is given."""
        one = ProbeRun(self.probe, self.folder, {"session": f"check-{uuid.uuid4().hex[:12]}"} | config, verb)
        try:
            yield one
        finally:
            one.close()

    @contextmanager
    def pair(self, config: RunConfig) -> Iterator[tuple[ProbeRun, ProbeRun | None]]:
        """The client of round trips or requests with its server, if it needs one; else the one process."""
        if config["measurement"] not in TWO_ENDS or self.one_process:
            role = {"role": "client"} if config["measurement"] in TWO_ENDS else {}
            with self.run(config | role) as one:
                yield one, None
            return
        both: RunConfig = {"session": f"check-{uuid.uuid4().hex[:12]}"} | config
        dropped = ("samples", "warm_up", "loss_timeout_ns", "in_flight", "connect_timeout_ns")
        with self.run({k: v for k, v in both.items() if k not in dropped} | {"role": "server"}) as server:
            endpoint = server.until("ready")["endpoint"]
            options = both.get("options", {}) | ({} if endpoint is None else {"endpoint": endpoint})
            with self.run(both | {"role": "client", "options": options}) as client:
                client.server = server
                yield client, server

    def complete(self, config: RunConfig) -> tuple[dict[str, Any], ProbeRun]:
        """The end frame of a run that must be complete, and the run."""
        with self.pair(counted(config)) as (one, server):
            if one.end(RUN_S) != 0:
                raise UnexpectedError(
                    f"the run failed: {one.last_words()}", "take from describe what cannot be, or mend it"
                )
            if server is not None and server.finish() != 0:
                raise UnexpectedError(
                    f"the server failed: {server.last_words()}", "a server ends when it is asked to"
                )
            return one.frame(), one


def counted(config: RunConfig) -> RunConfig:
    """With what a short run needs."""
    more = {"period_ns": PERIOD_NS, "samples": SAMPLES, "warm_up": WARM_UP}
    if config["measurement"] in (*TWO_ENDS, "cycle"):
        more["loss_timeout_ns"] = LOSS_NS
    if config["measurement"] == "cycle":
        more["history_depth"] = SAMPLES + WARM_UP  # ticks that are caught up replace none of each other's
    if config["measurement"] in TWO_ENDS:
        more["warm_up"] = 0  # a fault of the first message counts
    return more | config


def ways(facts: dict[str, Any]) -> list[Way]:
    """Every way to measure that the adapter lists."""
    found = []
    for measure in facts.get("measures", ()):
        kind, _, mode = measure.partition(".")
        for part in _PARTS[kind](facts):
            config: RunConfig = {"measurement": kind} | part
            if kind == "timer":
                config |= {"mode": mode} | ({"timeout_ns": PERIOD_NS} if mode == "one_shot" else {})
            found.append(Way(".".join([measure, *part.values()]), config))
    return found


def _roundtrip(facts: dict[str, Any]) -> list[dict[str, str]]:
    receives = facts.get("receives", {}).get("roundtrip", ("spin", "spin_once", "poll"))
    return [{"receive": receive} for receive in receives]


def _request(facts: dict[str, Any]) -> list[dict[str, str]]:
    receives = facts.get("receives", {}).get("request", ("spin", "spin_once", "poll"))
    interfaces = facts.get("interfaces", ())
    return [{"interface": interface, "receive": way} for interface in interfaces for way in receives]


def _timer(facts: dict[str, Any]) -> list[dict[str, str]]:
    return [{"drive": drive} for drive in facts.get("drives", {}).get("timer", ("spin",))]


def _cycle(facts: dict[str, Any]) -> list[dict[str, str]]:
    drives = facts.get("drives", {}).get("cycle", ("sleep_then_spin_some",))
    receives = facts.get("receives", {}).get("cycle", ("spin", "spin_once", "poll"))
    return [
        {"drive": drive, "receive": receive}
        for drive in drives
        for receive in RECEIVED_IN_CYCLES[drive]
        if receive in receives
    ]


def _several(_: dict[str, Any]) -> list[dict[str, str]]:
    """A chain's parts, topics that are published and waited for, are those of a round trip; discoveries have
    checks of their own."""
    return []


_PARTS = {
    "wakeup": lambda facts: [{"before": before} for before in ("none", "init", "init_and_node")],
    "timer": _timer,
    "roundtrip": _roundtrip,
    "request": _request,
    "cycle": _cycle,
    "chain": _several,
    "discovery": _several,
}
