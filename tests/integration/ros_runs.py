"""What the tests of the ROS 2 adapters share. Each run has a domain and names of its own."""

from __future__ import annotations

import os
import signal
import sys
import tempfile
from pathlib import Path
from typing import Any

import numpy as np
from probe_runs import (
    LONG,
    SAMPLES,
    Config,
    accounts,
    client_and_server,
    counts,
    has,
    measure,
    only,
    probe,
    read,
    shots,
)

from rtmeter.model import SERVED

MS = 1_000_000
_logs = tempfile.TemporaryDirectory()  # removed when the tests end
ENVIRONMENT = {"ROS_DOMAIN_ID": "", "RMW_IMPLEMENTATION": "", "ROS_LOG_DIR": _logs.name}


def of(adapter: str, period_ns: int, **options: str) -> Config:
    """What every run of the adapter has."""
    return {"adapter": adapter, "period_ns": period_ns, "environment": ENVIRONMENT, "options": options}


def timer(config: Config, drive: str = "spin", **more: object) -> Config:
    return config | {"measurement": "timer", "mode": "periodic", "drive": drive} | more


def cycle(config: Config, **more: object) -> Config:
    return config | {"measurement": "cycle", "loss_timeout_ns": LONG} | more


def with_environment(config: Config, **variables: str) -> Config:
    return config | {"environment": config["environment"] | variables}


def periodic_of_a_steady_clock(folder: Path, config: Config, drive: str, *, never_early: bool = True) -> None:
    """A periodic timer whose releases are those that the middleware reports, each accounted for."""
    reader, columns = measure(folder, timer(config, drive))
    found = counts(columns)
    assert found["served"] + found["skipped"] == found["released"] == SAMPLES
    assert has(columns, SERVED)
    assert (reader.meta["ticks"], reader.meta["effective"]["overrun"]) == ("reported", "skip")
    assert reader.meta["adapter"]["reported_clock"] == "monotonic"
    served = only(columns, SERVED)
    if never_early:
        assert np.all(served["reported_actual_ns"] >= served["reported_expected_ns"])
    assert np.all(served["callback_ns"] >= served["reported_actual_ns"])
    if drive != "sleep_then_spin_some":  # there the releases are those of the sleep
        assert np.array_equal(served["reported_expected_ns"], served["release_ns"])


def one_shot_of_a_steady_clock(folder: Path, config: Config, drive: str, *, never_early: bool = True) -> None:
    """A one-shot that fires once for each time it is armed, no earlier than it may."""
    timeout_ns = config["period_ns"]
    _, columns = shots(folder, timer(config, drive, mode="one_shot", timeout_ns=timeout_ns, samples=30))
    found = counts(columns)
    assert found["served"] == found["released"] == 30
    assert np.all(columns["reported_expected_ns"] >= columns["armed_before_ns"] + timeout_ns)
    assert np.all(columns["reported_expected_ns"] <= columns["armed_after_ns"] + timeout_ns)
    if never_early:
        assert np.all(columns["reported_actual_ns"] >= columns["reported_expected_ns"])
    assert np.all(columns["callback_ns"] >= columns["reported_actual_ns"])


def skips_of_a_stall(folder: Path, config: Config) -> dict[str, int]:
    """Stops the process until ticks were missed; the counts of the run, which is then interrupted."""
    with probe(folder, timer(config, samples=1_000_000, warm_up=0)) as one:
        one.until("ready")
        while one.until("progress")["skipped"] == 0:
            one.stand_still(5 * config["period_ns"])
        one.process.send_signal(signal.SIGTERM)
        assert one.end() == 4, one.events
    return accounts(one)


def losses_of_a_silent_server(folder: Path, config: Config, how: signal.Signals) -> None:
    """Kills or stops the server in mid-run: its replies are lost, and every release is accounted for."""
    config = config | {"samples": 1_000_000, "loss_timeout_ns": 20 * MS, "period_ns": 5 * MS}
    with client_and_server(folder, config) as (client, server):
        client.until_released()
        os.kill(server.process.pid, how)
        while client.until("progress")["lost"] == 0:
            pass
        client.process.send_signal(signal.SIGTERM)
        assert client.end() == 4, client.events
    found = accounts(client)
    assert found["lost"] > 0


def stamps(log: Path) -> list[dict[str, Any]]:
    """The threads that stamped what is judged, as an end's log tells them."""
    return [thread for thread in read(log)[0].meta["threads"] if thread.get("stamps")]


def has_rclcpp() -> bool:
    """Whether a ROS 2 with rclcpp is sourced."""
    prefixes = os.environ.get("AMENT_PREFIX_PATH", "").split(os.pathsep)
    return any(Path(prefix, "share", "rclcpp").is_dir() for prefix in prefixes if prefix)


def surroundings(logs: Path) -> dict[str, str]:
    """The environment of a program over rclpy, alone; PyPI's packages load each other's libraries by where
    the loader looks."""
    about = {"ROS_LOG_DIR": str(logs), "ROS_AUTOMATIC_DISCOVERY_RANGE": "OFF"}
    if "AMENT_PREFIX_PATH" not in os.environ:
        folders = [Path(sys.prefix, "lib"), *Path(sys.prefix, "lib").glob("python*/site-packages/ros_*.libs")]
        about |= {"AMENT_PREFIX_PATH": sys.prefix, "LD_LIBRARY_PATH": os.pathsep.join(map(str, folders))}
    return about
