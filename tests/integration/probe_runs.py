"""Runs of one adapter's probe: processes that are always ended, status lines, and the logs they leave."""

from __future__ import annotations

import json
import os
import resource
import signal
import subprocess
import time
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from leftovers import remove_segments
from rtmeter.measure.probe.probes import find_probes
from rtmeter.model import IN_FLIGHT, LOST, SERVED, SKIPPED, WARM_UP_FLAG
from rtmeter.samples import LogReader
from waiting import until

MS = 1_000_000
PERIOD, WARM_UP, SAMPLES = MS, 20, 200
LONG = 20_000 * MS
"""A loss timeout that no stall of the machine reaches."""

may_set_fifo = os.geteuid() == 0 or resource.getrlimit(resource.RLIMIT_RTPRIO)[0] >= 20
needs_fifo = pytest.mark.skipif(not may_set_fifo, reason="no privilege for SCHED_FIFO (ulimit -r)")

Config = dict[str, Any]
Columns = dict[str, NDArray[np.int64]]


class Probe:
    """One process, its status lines and its log.

    Of the config, ``adapter`` (posix by default), ``inside`` (a command that runs another, such as
    ``ip netns exec``) and ``environment`` say how to start it.
    """

    def __init__(self, folder: Path, config: Config) -> None:
        config = dict(config)
        adapter = config.pop("adapter", "posix")
        inside = config.pop("inside", [])
        environment = os.environ | config.pop("environment", {})
        name = config.get("role", "single")
        self.log = folder / f"{name}.rtlog"
        settings = folder / f"{name}.json"
        defaults = {"version": 1, "log": str(self.log), "period_ns": PERIOD, "watch_stdin": name == "server"}
        defaults["session"] = f"test-{uuid.uuid4()}"  # tests of other files run at the same time
        settings.write_text(json.dumps(defaults | config))
        self.process = subprocess.Popen(
            [*inside, find_probes()[adapter], "--config", settings],
            env=environment,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        self.events: list[dict[str, Any]] = []

    def until(self, *names: str) -> dict[str, Any]:
        """The next status line of one of these names, or of the name ``error``."""
        assert self.process.stdout is not None
        for line in self.process.stdout:
            self.events.append(json.loads(line))
            if self.events[-1]["event"] in (*names, "error"):
                return self.events[-1]
        raise AssertionError(f"the probe ended without {names}: {self.events}")

    def until_released(self, releases: int = 1) -> int:
        """Until it has told of so many measured releases, or more; how many it told of. Its first progress
        may tell of none."""
        while (told := self.until("progress"))["released"] - told["warm_up"] < releases:
            pass
        return int(told["released"] - told["warm_up"])

    def stand_still(self, for_ns: int) -> None:
        """It stands still for so long, or longer: what is planted, not what is waited for."""
        self.process.send_signal(signal.SIGSTOP)
        stat = Path(f"/proc/{self.process.pid}/stat")
        until(lambda: stat.read_text().rpartition(") ")[2][0] == "T")
        time.sleep(for_ns / 1e9)
        self.process.send_signal(signal.SIGCONT)

    def end(self) -> int:
        """Waits for its end; the exit code. A server ends when its standard input closes."""
        assert self.process.stdin is not None and self.process.stdout is not None
        self.process.stdin.close()
        # Not by communicate(), which passes over what until() has read ahead.
        self.events += [json.loads(line) for line in self.process.stdout]
        return self.process.wait()

    def kill(self) -> None:
        """Kills it and waits for its end. Of several all are killed (``process.kill``) before one is waited
        for: it may need the other's CPU to end on."""
        self.process.kill()
        with self.process:  # closes its pipes
            pass
        if self.process.returncode < 0:  # by this or another signal: it could not do so itself
            remove_segments()


@contextmanager
def probe(folder: Path, config: Config) -> Iterator[Probe]:
    """A started probe that is killed if it still runs at the end."""
    started = Probe(folder, config)
    try:
        yield started
    finally:
        started.kill()


def measure(folder: Path, config: Config) -> tuple[LogReader, Columns]:
    """A complete run of one process."""
    with probe(folder, {"samples": SAMPLES, "warm_up": WARM_UP} | config) as one:
        assert one.end() == 0, one.events
    return read(one.log)


def shots(folder: Path, config: Config) -> tuple[LogReader, Columns]:
    """A complete run of one-shots. One that stands still for as long as a shot is waited for (a second, and
    ten timeouts) loses that shot, as it should: it is made again."""
    for place in map(str, range(5)):
        (folder / place).mkdir()
        reader, columns = measure(folder / place, config)
        if not has(columns, LOST):
            break
    return reader, columns


def refusal(folder: Path, config: Config) -> dict[str, Any]:
    """The error that ends a run which cannot be."""
    with probe(folder, {"samples": SAMPLES, "warm_up": WARM_UP} | config) as one:
        assert one.end() == 1
    return next(event for event in one.events if event["event"] == "error")


@contextmanager
def client_and_server(
    folder: Path, config: Config, server_changes: Config | None = None
) -> Iterator[tuple[Probe, Probe]]:
    """A round trip under way: client and server of a session of its own."""
    both = {"measurement": "roundtrip", "loss_timeout_ns": LONG, "session": f"test-{uuid.uuid4()}"} | config
    counts = {key: both.pop(key, value) for key, value in (("samples", SAMPLES), ("warm_up", WARM_UP))}
    with probe(folder, {"role": "server"} | both | (server_changes or {})) as server:
        ready = server.until("ready")
        assert ready["event"] == "ready", ready
        found = {} if ready["endpoint"] is None else {"endpoint": ready["endpoint"]}
        options = both.get("options", {}) | found
        with probe(folder, counts | both | {"role": "client", "options": options}) as client:
            try:
                yield client, server
            finally:
                client.process.kill()
                server.process.kill()


def read(log: Path) -> tuple[LogReader, Columns]:
    """A whole log."""
    reader = LogReader(log)
    assert reader.problems == []
    assert reader.missing == []
    assert reader.meta["counters"]["overflow"] == 0
    frames = [columns for _, columns in reader.frames()]
    return reader, {name: np.concatenate([f[name] for f in frames]) for name in reader.columns}


def counts(columns: Columns) -> dict[str, int]:
    """Measured releases by their outcome."""
    status = columns["status"]
    measured = status[(status & WARM_UP_FLAG) == 0] & 15
    names = {"served": SERVED, "skipped": SKIPPED, "lost": LOST, "in_flight": IN_FLIGHT}
    found = {name: int((measured == code).sum()) for name, code in names.items()}
    assert sum(found.values()) == len(measured), "a status that is none"
    return found | {"released": len(measured), "warm_up": len(status) - len(measured)}


def accounts(of: Probe) -> dict[str, int]:
    """The same of a probe that has ended, whose log has each release that it says it recorded."""
    _, columns = read(of.log)
    said = of.events[-1]
    assert (said["event"], said["rows"]) == ("end", len(columns["status"])), said
    return counts(columns)


def has(columns: Columns, code: int) -> bool:
    """Whether there is a row of that outcome. Warm-up counts: a stall after it may skip all the rest."""
    return bool(np.any((columns["status"] & 15) == code))


def only(columns: Columns, code: int) -> Columns:
    """The rows of one outcome, warm-up included."""
    chosen = (columns["status"] & 15) == code
    return {name: values[chosen] for name, values in columns.items()}
