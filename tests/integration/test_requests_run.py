"""Requests over each adapter that has services or actions: stamps in order, everything accounted for, and
what cannot be refused by name."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import pytest
from dds_runs import settled
from probe_runs import LONG, MS, Config, client_and_server, only, probe, read, refusal
from ros2_runs import EXECUTORS, INTERFACES, needs_ros2

from rtmeter.measure.probe.probes import find_probes
from rtmeter.model import ABSENT, SERVED

REQUEST: Config = {
    "measurement": "request",
    "samples": 40,
    "warm_up": 2,
    "period_ns": 5 * MS,
    "loss_timeout_ns": LONG,
    "connect_timeout_ns": 60_000 * MS,
}

OPEN: Config = {"in_flight": "open", "samples": 8}
"""No more in all than a service of ROS 2's keeps (the last ten): whoever stands still for as long as ten
periods finds that some were replaced."""


LARGE: Config = {"payload_bytes": 1 << 20, "receive": "poll", "overrun": "catch_up"}
"""No release is skipped, however long each takes: some of all have a feedback before their result, though a
poll that is pre-empted midway finds the result first."""


def over(adapter: str, *, id: str | None = None, **changes: Any) -> Any:
    built = adapter in find_probes()
    marks = [pytest.mark.skipif(not built, reason=f"the adapter {adapter} is not built here")]
    if adapter == "ros2":
        lacks = changes.get("interface", "service") not in INTERFACES
        marks += [needs_ros2, pytest.mark.skipif(lacks, reason="this ROS 2 has no rclcpp_action")]
    return pytest.param(REQUEST | {"adapter": adapter} | changes, marks=marks, id=id or adapter)


def over_rclcpp() -> list[Any]:
    """Services and actions, by each executor, and as a program may have them otherwise."""
    found = [over("ros2", id="ros2, service, own group", options={"callback_group": "own"}, **OPEN)]
    for interface in ("service", "action"):
        for executor in EXECUTORS:
            name = f"ros2, {interface}, {executor}"
            found.append(over("ros2", id=name, interface=interface, options={"executor": executor}))
    action = {"interface": "action"}
    return [
        *found,
        over("ros2", id="ros2, action, own group", options={"callback_group": "own"}, **action),
        over("ros2", id="ros2, action, open", receive="spin_once", **action, **OPEN),
        over("ros2", id="ros2, action, 1 MiB", **LARGE, **action),
    ]


@pytest.mark.parametrize(
    "config",
    [
        over("posix", id="posix tcp, open", options={"stream": "tcp"}, in_flight="open"),
        over("posix", id="posix, 1 MiB", payload_bytes=1 << 20, receive="spin_once"),
        over("rcl", id="rcl, service"),
        over("rcl", id="rcl, action", interface="action"),
        over("rcl", id="rcl, action, open", interface="action", **OPEN),
        over("rcl", id="rcl, action, 1 MiB", interface="action", **LARGE),
        over("rclpy", id="rclpy, service"),
        over("rclpy", id="rclpy, action", interface="action"),
        *over_rclcpp(),
        over("ros1", id="ros1, persistent", options={"persistent": "yes"}),
        over("zenoh"),
        over("zenoh", id="zenoh, open", in_flight="open", options={"consolidation": "none"}),
        over("zenoh", id="zenoh, callbacks, router", receive="listener", options={"via": "router"}),
        over("iceoryx2"),
        over("iceoryx2", id="iceoryx2, 1 MiB, open", payload_bytes=1 << 20, in_flight="open"),
        over("iceoryx2", id="iceoryx2, polled", receive="poll"),
    ],
)
def test_every_request_is_answered_and_its_stamps_come_in_order(tmp_path: Path, config: Config) -> None:
    with client_and_server(tmp_path, config) as (client, server):
        found = settled(client, server)
    assert found["lost"] == 0
    reader, columns = read(client.log)
    assert reader.meta["effective"]["interface"] == config.get("interface", "service")
    rows = only(columns, SERVED)
    assert (rows["release_ns"] <= rows["sent_ns"]).all()  # and the server's stamps between: settled()
    if config.get("interface") != "action":
        assert (rows["accepted_ns"] == ABSENT).all()
        assert (rows["first_feedback_ns"] == ABSENT).all()
        return
    assert ((rows["sent_ns"] <= rows["accepted_ns"]) & (rows["accepted_ns"] <= rows["received_ns"])).all()
    told = rows["first_feedback_ns"] != ABSENT
    assert told.any() or reader.meta["adapter"].get("may_drop") == "feedback"
    assert (rows["sent_ns"] <= rows["first_feedback_ns"])[told].all()
    assert (rows["first_feedback_ns"] <= rows["received_ns"])[told].all()


def between(asks: str, answers: str) -> Any:
    marks = [mark for adapter in (asks, answers) for mark in over(adapter, interface="action").marks]
    if "rclpy" in (asks, answers):
        sourced = "AMENT_PREFIX_PATH" in os.environ
        marks.append(pytest.mark.skipif(sourced, reason="rclpy is PyPI's, and rcl of what is sourced"))
    return pytest.param(asks, answers, marks=marks, id=f"{asks}, {answers}")


@pytest.mark.parametrize(
    ("asks", "answers"),
    [between("rcl", "rclpy"), between("rclpy", "rcl"), between("rcl", "ros2"), between("ros2", "rcl")],
)
def test_an_action_of_one_library_takes_anothers_goals(tmp_path: Path, asks: str, answers: str) -> None:
    config = REQUEST | {"adapter": asks, "interface": "action"}
    with client_and_server(tmp_path, config, {"adapter": answers}) as (client, server):
        assert settled(client, server)["lost"] == 0
    assert read(server.log)[0].meta["adapter"]["name"] == answers


@pytest.mark.parametrize(
    ("changes", "field", "words"),
    [
        ({"interface": "action"}, "interface", "the requests of this adapter go over service"),
        ({"receive": "call"}, "receive", "by spin, spin_once, poll"),
        ({"drive": "spin"}, "drive", "has no meaning in a request"),
        ({"measurement": "roundtrip", "interface": "service"}, "interface", "means nothing for roundtrip"),
        ({"adapter": "zeromq"}, "measurement", "this adapter does not measure it"),
    ],
)
def test_what_cannot_be_is_refused_by_its_name(
    tmp_path: Path, changes: Config, field: str, words: str
) -> None:
    if changes.get("adapter", "posix") not in find_probes():
        pytest.skip("not built here")
    error = refusal(tmp_path, REQUEST | {"role": "client"} | changes)
    assert error["field"] == field
    assert words in error["message"]
    assert error["remedy"]


def test_a_call_that_blocks_is_the_only_one(tmp_path: Path) -> None:
    config = REQUEST | {"adapter": "null", "role": "client", "receive": "call", "in_flight": "open"}
    assert refusal(tmp_path, config)["field"] == "receive"


def test_a_server_of_a_client_that_blocks_receives_in_another_way(tmp_path: Path) -> None:
    """The front gives both ends the same, and only a client calls."""
    with probe(tmp_path, {"measurement": "request", "role": "server", "receive": "call"}) as server:
        assert server.until("ready")["effective"]["receive"] == "spin"
