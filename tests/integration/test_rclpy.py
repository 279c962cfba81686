"""The rclpy adapter over a real ROS 2: its executors, the interpreter around them, and what goes wrong."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import uuid
from pathlib import Path

import pytest
import ros_runs
from dds_runs import settled, threads_of
from pages import ROOT
from probe_runs import (
    LONG,
    SAMPLES,
    Config,
    accounts,
    client_and_server,
    counts,
    has,
    measure,
    probe,
    read,
    refusal,
)
from ros_runs import MS, cycle, timer, with_environment

from rtmeter.measure.probe.probes import find_probes
from rtmeter.model import SERVED
from waiting import LIMIT_S

pytestmark = pytest.mark.skipif("rclpy" not in find_probes(), reason="the adapter rclpy is not built here")

RCLPY = ros_runs.of("rclpy", 4 * MS)
EXECUTORS = ("single", "multi", "events")
CLASSES = {"single": "SingleThreadedExecutor", "multi": "MultiThreadedExecutor", "events": "EventsExecutor"}
each_executor = pytest.mark.parametrize("executor", EXECUTORS)


def steady(executor: str) -> Config:
    return ros_runs.of("rclpy", 4 * MS, executor=executor, clock="steady")


@each_executor
def test_periodic_accounts_for_every_release(tmp_path: Path, executor: str) -> None:
    """The EventsExecutor of rclpy 9.1.2 now and then calls a timer again before its time."""
    ros_runs.periodic_of_a_steady_clock(tmp_path, steady(executor), "spin", never_early=executor != "events")


@pytest.mark.parametrize("drive", ["sleep_then_spin_some", "poll"])
def test_periodic_of_other_drives(tmp_path: Path, drive: str) -> None:
    ros_runs.periodic_of_a_steady_clock(tmp_path, steady("single"), drive)


@each_executor
def test_one_shot_fires_as_often_as_it_is_armed(tmp_path: Path, executor: str) -> None:
    ros_runs.one_shot_of_a_steady_clock(tmp_path, steady(executor), "spin", never_early=executor != "events")


def test_ticks_that_are_passed_over_are_counted(tmp_path: Path) -> None:
    found = ros_runs.skips_of_a_stall(tmp_path, steady("single"))
    assert found["skipped"] > 0
    assert found["released"] == found["served"] + found["skipped"] > 0


ENDING = """
import sys, threading, types
types_of_messages = types.SimpleNamespace(Message=None, Call=None, Errand=None)
for name in ("rtmeter_msgs", "rtmeter_msgs.msg", "rtmeter_msgs.srv", "rtmeter_msgs.action"):
    sys.modules[name] = types_of_messages
from rtmeter_rclpy import Adapter
adapter = Adapter(sys.argv[1], True, 0, False, False)
adapter.create_node("ending")
of_its_class = adapter._executor.can_execute
def can_execute(entity):
    adapter._executor.can_execute = of_its_class
    other = threading.Thread(target=adapter.interrupt)
    other.start()
    other.join()
    return of_its_class(entity)
adapter._executor.can_execute = can_execute
while not adapter.spin(): pass
adapter.stop()
print("ended")
"""


@pytest.mark.parametrize("executor", ["single", "multi"])
def test_an_executor_that_is_about_to_wait_is_ended(tmp_path: Path, executor: str) -> None:
    """It collects what it will wait for after it looked whether it shall end."""
    where = {"PYTHONPATH": str(ROOT / "adapters" / "rclpy"), "PYTHONDONTWRITEBYTECODE": "1"}
    done = subprocess.run(
        [sys.executable, "-c", ENDING, executor],
        env=os.environ | ros_runs.surroundings(tmp_path) | where,
        capture_output=True,
        text=True,
        timeout=LIMIT_S,
    )
    assert (done.stdout, done.returncode) == ("ended\n", 0), done.stderr


def test_a_nodes_own_clock_is_the_time_of_day(tmp_path: Path) -> None:
    """What it reports is on another clock than the stamps: the releases are inferred."""
    reader, columns = measure(tmp_path, timer(RCLPY))
    found = counts(columns)
    assert found["served"] + found["skipped"] == found["released"] == SAMPLES
    assert reader.meta["adapter"]["reported_clock"] == "time_of_day"
    assert reader.meta["grid"]["t0_from"] == "inferred"


@each_executor
@pytest.mark.parametrize("receive", ["spin", "spin_once"])
def test_round_trip_accounts_for_every_release(tmp_path: Path, executor: str, receive: str) -> None:
    """The callbacks of spin() are on its thread, or on those of an executor that has several."""
    config = ros_runs.of("rclpy", 4 * MS, executor=executor) | {"samples": 100}
    if receive != "spin":  # the default
        config |= {"receive": receive}
    with client_and_server(tmp_path, config) as (client, server):
        assert settled(client, server)["released"] == 100
    assert {read(end.log)[0].meta["effective"]["receive"] for end in (client, server)} == {receive}
    names = {thread["name"] for thread in ros_runs.stamps(client.log)}
    roles = {thread["role"] for thread in ros_runs.stamps(client.log)}
    if executor == "multi":
        assert roles == {"middleware"}
    else:
        assert roles == {"measured"}
        assert (names == {"rtm-receiver"}) == (receive == "spin")
    described = read(client.log)[0].meta["adapter"]
    assert described["executor"] == CLASSES[executor]
    assert described["python"].startswith(f"{sys.version_info.major}.{sys.version_info.minor}.")
    assert described["rmw"].startswith("rmw_")
    wanted = {"reliability": "best_effort", "history": "keep_last", "depth": "1", "durability": "volatile"}
    assert {policy: described["qos"][policy] for policy in wanted} == wanted


@pytest.mark.parametrize("in_flight", ["one", "open"])
def test_rcl_answers_rclpy(tmp_path: Path, in_flight: str) -> None:
    config = RCLPY | {"reliability": "reliable", "history_depth": 20, "samples": 100, "in_flight": in_flight}
    config |= {"loss_timeout_ns": 1_000 * MS}  # more than the history holds may be under way
    with client_and_server(tmp_path, config, {"adapter": "rcl"}) as (client, server):
        assert settled(client, server)["released"] == 100


@pytest.mark.parametrize(
    ("executor", "drive"), [("single", "sleep_then_spin_some"), ("multi", "spin"), ("events", "poll")]
)
def test_cycle_of_two_nodes(tmp_path: Path, executor: str, drive: str) -> None:
    config = cycle(steady(executor), drive=drive, samples=100, reliability="reliable", history_depth=100)
    if drive == "poll":
        config["options"] = {"executor": executor}  # no timer, so no clock to choose
    _, columns = measure(tmp_path, config)
    found = counts(columns)
    assert found["served"] + found["skipped"] == found["released"] == 100
    assert has(columns, SERVED)


@pytest.mark.parametrize(
    ("gc", "before", "said"), [("on", "init_and_node", "on, thresholds"), ("off", "init", "off")]
)
def test_wakeup_with_the_garbage_collector_as_asked(tmp_path: Path, gc: str, before: str, said: str) -> None:
    config = ros_runs.of("rclpy", MS, gc=gc) | {"measurement": "wakeup", "before": before}
    reader, columns = measure(tmp_path, config)
    assert counts(columns)["served"] == SAMPLES
    assert reader.meta["adapter"]["gc"].startswith(said)
    assert threads_of(reader.meta)


def test_an_executor_that_rclpy_lacks_is_refused_by_name(tmp_path: Path) -> None:
    error = refusal(tmp_path, timer(RCLPY) | {"options": {"executor": "psychic"}})
    assert (error["field"], error["value"]) == ("option executor", "psychic")
    assert "single" in error["remedy"] and "multi" in error["remedy"]


def test_an_rmw_that_is_not_there_is_told_by_name(tmp_path: Path) -> None:
    error = refusal(tmp_path, with_environment(timer(RCLPY), RMW_IMPLEMENTATION="rmw_of_nobody_cpp"))
    assert (error["field"], error["value"]) == ("RMW_IMPLEMENTATION", "rmw_of_nobody_cpp")


def test_a_server_that_is_not_there_is_told_with_what_was_looked_for(tmp_path: Path) -> None:
    session = f"test-{uuid.uuid4()}"
    config = RCLPY | {"measurement": "roundtrip", "role": "client", "loss_timeout_ns": LONG}
    error = refusal(tmp_path, config | {"connect_timeout_ns": 300 * MS, "session": session})
    assert (error["field"], error["value"]) == ("server", session)
    for part in ("within 300 ms", "found 0 other nodes", "publisher of ping matched 0"):
        assert part in error["message"], error


def test_a_policy_that_does_not_match_is_named(tmp_path: Path) -> None:
    config = RCLPY | {"connect_timeout_ns": 3_600_000 * MS, "options": {"durability": "transient_local"}}
    with client_and_server(tmp_path, config, {"options": {}}) as (client, _):
        assert client.end() == 1
    error = next(event for event in client.events if event["event"] == "error")
    assert error["field"] == "incompatible_qos"
    assert "durability" in error["value"]


@pytest.mark.parametrize("executor", EXECUTORS)
def test_an_interrupted_spin_ends_and_keeps_what_was_measured(tmp_path: Path, executor: str) -> None:
    with probe(tmp_path, timer(steady(executor), samples=1_000_000)) as one:
        one.until_released()
        one.process.send_signal(signal.SIGINT)
        assert one.end() == 4, one.events
    found = accounts(one)
    assert found["released"] == found["served"] + found["skipped"] > 0
