"""Another, non-critical topic beside a round trip, on the same node and on another of the process: by every
middleware that has it, and refused by the others."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import pytest
import ros2_runs
import ros_runs
from dds_runs import built, settled
from probe_runs import MS, Config, client_and_server, needs_fifo, read, refusal

from front import rtmeter
from rtmeter.measure.probe.probes import find_probes
from rtmeter.model import LOCAL

PLACES = ("same_node", "same_process")
HAVE_IT: dict[str, tuple[Config, pytest.MarkDecorator]] = {
    "cyclonedds": ({"adapter": "cyclonedds"}, built["cyclonedds"]),
    "fastdds": ({"adapter": "fastdds"}, built["fastdds"]),
    "dustdds": ({"adapter": "dustdds"}, built["dustdds"]),
    "rcl": (
        ros_runs.of("rcl", 5 * MS),
        pytest.mark.skipif("rcl" not in find_probes(), reason="the adapter rcl is not built here"),
    ),
    "ros2": (ros2_runs.ROS2, ros2_runs.needs_ros2),
}
each = pytest.mark.parametrize("name", [pytest.param(name, marks=HAVE_IT[name][1]) for name in HAVE_IT])
CAMPAIGN = Path(__file__).parents[2] / "campaigns" / "ros2-roundtrip-2018.yaml"


def second(place: str, payload_bytes: int = 2_000, period_ns: int = 5 * MS) -> Config:
    about = {"place": place, "payload_bytes": payload_bytes, "period_ns": period_ns}
    return {"second_topic": about, "period_ns": 5 * MS, "samples": 100, "warm_up": 5}


def heard(client: dict[str, Any], server: dict[str, Any]) -> None:
    """Both ends sent, and neither heard more than the other sent."""
    for own, other in ((client, server), (server, client)):
        assert own["sent"] > 0 and own["refused"] == 0
        assert 0 < own["received"] <= other["sent"]


@each
@pytest.mark.parametrize("place", PLACES)
def test_it_runs_beside_the_round_trip_and_every_release_is_accounted_for(
    tmp_path: Path, name: str, place: str
) -> None:
    with client_and_server(tmp_path, HAVE_IT[name][0] | second(place)) as (client, server):
        assert settled(client, server)["released"] == 100
    meta = {end: read(end.log)[0].meta for end in (client, server)}
    heard(meta[client]["second_topic"], meta[server]["second_topic"])
    for one in meta.values():
        assert one["second_topic"]["place"] == place
        assert [t["policy"] for t in one["threads"] if t["name"] == "rtm-second"] == ["other"]
        assert {t["role"] for t in one["threads"] if t["name"] == "rtm-second"} == {"service"}
        assert "second_topic_silent" not in {doubt["type"] for doubt in one["warnings"]}


@each
def test_its_messages_may_be_larger(tmp_path: Path, name: str) -> None:
    config = HAVE_IT[name][0] | second("same_node", payload_bytes=40_000) | {"payload_bytes": 8}
    with client_and_server(tmp_path, config) as (client, server):
        settled(client, server)
    heard(*(read(end.log)[0].meta["second_topic"] for end in (client, server)))


@pytest.mark.parametrize("receive", ["spin", "listener"])
@pytest.mark.parametrize("place", PLACES)
@built["cyclonedds"]
@built["fastdds"]
def test_one_implementation_hears_another(tmp_path: Path, place: str, receive: str) -> None:
    config: Config = {"adapter": "cyclonedds", "receive": receive}
    config |= {"in_flight": "open", "history_depth": 1_000}  # nothing is replaced
    with client_and_server(tmp_path, config | second(place), {"adapter": "fastdds"}) as (client, server):
        settled(client, server)
    heard(*(read(end.log)[0].meta["second_topic"] for end in (client, server)))


@needs_fifo
@each
def test_its_thread_is_ordinary_beside_real_time_ones(tmp_path: Path, name: str) -> None:
    """All on one CPU, where who waits for what an ordinary thread holds must let it run."""
    base: Config = HAVE_IT[name][0] | {"cpus": [min(os.sched_getaffinity(0))]}
    options = base.get("options", {}) | {"threads": "fifo:20"}
    real_time = {"scheduling": {"policy": "fifo", "priority": 30}, "options": options}
    often = {"samples": 1_000, "period_ns": MS}  # often enough that they meet
    config = base | second("same_process", 200, MS // 2) | often | real_time
    with client_and_server(tmp_path, config) as (client, server):
        settled(client, server)
    for end in (client, server):
        threads = read(end.log)[0].meta["threads"]
        assert "fifo" in {t["policy"] for t in threads if t["role"] == "middleware"}, threads
        assert [t["policy"] for t in threads if t["name"] == "rtm-second"] == ["other"]


@built["cyclonedds"]
def test_a_server_without_it_is_told(tmp_path: Path) -> None:
    # As long to find each other as to hear nothing.
    config: Config = {"adapter": "cyclonedds", "connect_timeout_ns": 12_000 * MS} | second("same_node")
    with client_and_server(tmp_path, config, {"second_topic": None}) as (client, _):
        assert client.end() == 1
    error = next(event for event in client.events if event["event"] == "error")
    assert (error["field"], error["value"]) == ("second_topic", "same_node")
    assert "within 12000 ms" in error["message"] and error["remedy"]


@pytest.mark.parametrize("name", ["posix", "ros1", "iceoryx", "rclpy"])
def test_who_has_none_refuses_it(tmp_path: Path, name: str) -> None:
    if name not in find_probes():
        pytest.skip(f"the adapter {name} is not built here")
    alone: Config = {"measurement": "roundtrip", "role": "server"}
    error = refusal(tmp_path, alone | {"adapter": name} | second("same_node"))
    assert (error["field"], error["value"]) == ("second_topic", "same_node")
    assert "no second topic" in error["message"]
    assert "rtmeter adapters" in error["remedy"]


def test_the_command_line_refuses_what_cannot_be(tmp_path: Path) -> None:
    run = ["measure", "roundtrip", "--samples", "5", "--out", tmp_path / "cell"]
    done = rtmeter(*run, "--adapter", "null", "--second-topic", "same_node")
    assert done.code == 1 and "needs a server process" in done.err
    done = rtmeter(*run, "--adapter", "posix", "--second-topic", "elsewhere")
    assert done.code == 1 and "choose 'same_node' or 'same_process'" in done.err
    done = rtmeter("measure", "cycle", "--adapter", "posix", "--second-topic", "same_node")
    assert done.code == 1 and "means nothing for cycle" in done.err


@built["cyclonedds"]
def test_the_result_says_what_came_of_it(tmp_path: Path) -> None:
    run = ["--period", "5ms", "--samples", "100", "--warm-up", "50ms", "--out", tmp_path / "cell"]
    asked = ["--second-topic", "place=same_process,payload=3KiB,period=2ms"]
    done = rtmeter("measure", "roundtrip", "--adapter", "cyclonedds", *asked, *run)
    assert done.code == 0, done.err
    cell = json.loads((tmp_path / "cell" / "cell.json").read_text())
    wanted = {"place": "same_process", "payload_bytes": 3_072, "period_ns": 2 * MS}
    assert cell["config"]["second_topic"] == cell["server_config"]["second_topic"] == wanted
    assert cell["hosts"].get("component", LOCAL) == LOCAL
    ends = cell["second_topic"]
    assert [ends[end] | wanted for end in ("client", "server")] == [ends["client"], ends["server"]]
    heard(ends["client"], ends["server"])


@needs_fifo
@built["cyclonedds"]
def test_the_cells_of_the_campaign_run(tmp_path: Path) -> None:
    chosen = "adapter == cyclonedds and variant in (Future.same_node, Future.same_process)"
    done = rtmeter("run", CAMPAIGN, "--scale", "0.002", "--only", chosen, "--out", tmp_path)
    assert done.code in (0, 2, 3), done.err  # whatever the verdicts
    cells = [json.loads(file.read_text()) for file in sorted(tmp_path.glob("**/cell.json"))]
    assert [cell["axes"]["variant"] for cell in cells] == ["Future.same_node", "Future.same_process"]
    for cell in cells:
        assert (cell["status"], cell["valid"]) == ("complete", True), cell["error"]
        heard(cell["second_topic"]["client"], cell["second_topic"]["server"])
