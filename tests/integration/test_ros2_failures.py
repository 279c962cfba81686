"""What goes wrong with a ROS 2: none, another one, an RMW that is not there, ends that do not match."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

import pytest
from namespaces import quiet_network
from probe_runs import LONG, MS, Config, client_and_server, probe, refusal
from ros2_runs import CYCLE, EXECUTORS, HAS_TLSF, RMWS, ROS2, library, needs_ros2, with_options, with_rmw

from rtmeter.errors import RtmeterError
from rtmeter.measure.probe.probes import describe, find_probes

pytestmark = needs_ros2

TIMER: Config = ROS2 | {"measurement": "timer", "mode": "periodic"}
REQUEST: Config = ROS2 | {"measurement": "request", "role": "server"}
ALONE: Config = ROS2 | {"measurement": "roundtrip", "role": "client", "loss_timeout_ns": LONG}
ONE_STAGE = {"stages": [{"name": "a", "period_ns": MS, "samples": 1}]}
CHAIN: Config = ROS2 | {"measurement": "chain", "role": "client", "chain": ONE_STAGE}
ALL_EXECUTORS = ("single_threaded", "multi_threaded", "static_single_threaded", "events", "events_cbg")


def searched_first(folder: Path) -> Config:
    """Libraries of the folder come before those of the ROS 2 that is sourced."""
    return {"environment": {"LD_LIBRARY_PATH": f"{folder}:{os.environ['LD_LIBRARY_PATH']}"}}


def test_no_ros_2_sourced(tmp_path: Path) -> None:
    error = refusal(tmp_path, TIMER | {"environment": {"AMENT_PREFIX_PATH": ""}})
    assert error["field"] == "AMENT_PREFIX_PATH"
    assert "setup.bash" in error["remedy"]


def test_libraries_that_the_loader_does_not_find(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """As where it is installed and no ROS 2 is sourced: a probe that knows no folder of libraries."""
    installed = tmp_path / "rtmeter-probe-ros2"
    shutil.copy(find_probes()["ros2"], installed)
    folder = str(library("librclcpp.so").parent).encode()
    installed.write_bytes(installed.read_bytes().replace(folder, b"/none".ljust(len(folder), b"-")))
    monkeypatch.delenv("LD_LIBRARY_PATH")
    with pytest.raises(RtmeterError) as caught:
        describe("ros2", installed)
    assert "cannot open shared object file" in str(caught.value)
    assert caught.value.remedy
    assert "source its setup.bash" in caught.value.remedy


@pytest.mark.parametrize("how", ["option rmw", "RMW_IMPLEMENTATION"])
def test_an_rmw_that_is_not_installed(tmp_path: Path, how: str) -> None:
    asked = with_options(rmw="rmw_none_cpp") if how.startswith("option") else with_rmw("rmw_none_cpp")
    error = refusal(tmp_path, TIMER | asked)
    assert (error["field"], error["value"]) == (how, "rmw_none_cpp")
    assert "is loaded" in error["message"] or "librmw_none_cpp.so" in error["message"]
    for name in RMWS:
        assert name in error["remedy"]


def test_another_rmw_than_was_asked_for(tmp_path: Path) -> None:
    """A library that has the one's name and is the other."""
    if len(RMWS) < 2:
        pytest.skip("one RMW is installed only")
    asked, other = RMWS[:2]
    (tmp_path / f"lib{asked}.so").symlink_to(library(f"lib{other}.so"))
    error = refusal(tmp_path, TIMER | with_options(rmw=asked) | searched_first(tmp_path))
    assert (error["field"], error["value"]) == ("option rmw", asked)
    assert f"what is loaded is {other}" in error["message"]


def test_a_workspace_built_against_another_distro(tmp_path: Path) -> None:
    """The library is this one's, and the package beside it another's: it is refused before it is used."""
    for folder in ("lib", "share/rclcpp"):
        (tmp_path / folder).mkdir(parents=True)
    shutil.copy(library("librclcpp.so"), tmp_path / "lib")
    (tmp_path / "share/rclcpp/package.xml").write_text("<package><version>99.0.1</version></package>")
    error = refusal(tmp_path, TIMER | searched_first(tmp_path / "lib"))
    assert (error["field"], error["value"]) == ("rclcpp", "99.0.1")
    assert str(tmp_path / "lib/librclcpp.so") in error["message"]
    assert "build it again" in error["remedy"]


def test_another_distro_that_lacks_what_is_called(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The loader ends the probe before it can look at versions: here rclcpp is a library without rclcpp."""
    shutil.copy(library("librcutils.so"), tmp_path / "librclcpp.so")
    monkeypatch.setenv("LD_LIBRARY_PATH", f"{tmp_path}:{os.environ['LD_LIBRARY_PATH']}")
    moved = tmp_path / "rtmeter-probe-ros2"
    moved.symlink_to(find_probes()["ros2"])  # asked already, it would not be asked again
    with pytest.raises(RtmeterError) as caught:
        describe("ros2", moved)
    assert "undefined symbol" in str(caught.value)
    assert caught.value.remedy
    assert "another version than it was built with" in caught.value.remedy
    assert str(tmp_path) in caught.value.remedy
    assert "build it again" in caught.value.remedy


@pytest.mark.parametrize("name", [name for name in ALL_EXECUTORS if name not in EXECUTORS] + ["quick"])
def test_an_executor_that_this_rclcpp_lacks(tmp_path: Path, name: str) -> None:
    error = refusal(tmp_path, TIMER | with_options(executor=name))
    assert (error["field"], error["value"]) == ("option executor", name)
    if name in ALL_EXECUTORS:
        assert describe("ros2", find_probes()["ros2"]).facts["middleware_version"] in error["message"]
    for known in EXECUTORS:
        assert known in error["remedy"]


@pytest.mark.parametrize("rmw", RMWS)
def test_nobody_is_found(tmp_path: Path, rmw: str) -> None:
    config = ALONE | with_rmw(rmw) | with_options(domain="77") | {"connect_timeout_ns": 500 * MS}
    with quiet_network() as inside:
        error = refusal(tmp_path, config | {"inside": inside})
    assert error["field"] == "server"
    for part in ("domain 77", rmw, "found 0 other nodes", "publisher of ping matched 0"):
        assert part in error["message"], error


@pytest.mark.parametrize("rmw", RMWS)
@pytest.mark.parametrize(
    ("client", "server", "at"),
    [("reliable", "best_effort", "subscription of pong"), ("best_effort", "reliable", "publisher of ping")],
)
def test_a_policy_that_does_not_match_is_named(
    tmp_path: Path, rmw: str, client: str, server: str, at: str
) -> None:
    config = ROS2 | with_rmw(rmw) | {"reliability": client, "connect_timeout_ns": 3_600_000 * MS}
    with client_and_server(tmp_path, config, {"reliability": server}) as (one, _):
        assert one.end() == 1
    error = next(event for event in one.events if event["event"] == "error")
    assert error["field"] == "incompatible_qos"
    assert at in error["value"]
    assert "reliability" in error["value"].lower()


def test_intra_process_with_an_incompatible_policy(tmp_path: Path) -> None:
    error = refusal(tmp_path, CYCLE | with_options(intra_process="yes", history="keep_all"))
    assert error["field"] == "option intra_process"
    assert "history" in error["message"]
    assert "intra_process=no" in error["remedy"]


@pytest.mark.parametrize("rmw", RMWS)
def test_memory_that_is_not_lent(tmp_path: Path, rmw: str) -> None:
    """Each RMW either lends, and all releases are served, or the run is refused before it begins."""
    config = CYCLE | with_rmw(rmw) | with_options(loan="yes") | {"samples": 20, "warm_up": 5}
    with probe(tmp_path, config) as one:
        if one.end() == 0:
            return
    error = next(event for event in one.events if event["event"] == "error")
    assert (error["field"], error["value"]) == ("option loan", "yes")
    assert rmw in error["message"]


@pytest.mark.parametrize(
    ("config", "field"),
    [
        (TIMER | with_options(spin="spin_all"), "option spin"),
        (TIMER | {"drive": "poll"} | with_options(spin="spin"), "option spin"),
        (TIMER | with_options(executor_threads="2"), "option executor_threads"),
        (TIMER | with_options(executor="multi_threaded", executor_threads="many"), "option executor_threads"),
        (TIMER | with_options(callback_group="both"), "option callback_group"),
        (TIMER | with_options(node="small"), "option node"),
        (TIMER | {"overrun": "catch_up"}, "overrun"),
        (TIMER | {"environment": {"ROS_DOMAIN_ID": "300"}}, "ROS_DOMAIN_ID"),
        (CYCLE | with_options(loan="yes", intra_process="yes"), "option loan"),
        (CYCLE | with_options(loan="yes") | {"payload_bytes": 5 << 20}, "payload_bytes"),
        (ALONE | with_options(server="inlined"), "option server"),
        (CYCLE | with_options(server="inline"), "option server"),
        (TIMER | with_options(server="inline"), "option server"),
        (CYCLE | with_options(history="some"), "option history"),
        (REQUEST | {"interface": "errand"}, "interface"),
        (REQUEST | with_options(intra_process="yes"), "option intra_process"),
        (REQUEST | with_options(loan="yes"), "option loan"),
        (REQUEST | with_options(allocator="std"), "option allocator"),
        (REQUEST | with_options(history="keep_all"), "option history"),
        (REQUEST | with_options(server="inline"), "option server"),
        (CHAIN | with_options(server="inline"), "option server"),
        (CHAIN | {"receive": "spin"}, "receive"),
    ],
)
def test_what_cannot_be_is_refused_by_name(tmp_path: Path, config: Config, field: str) -> None:
    error = refusal(tmp_path, config)
    assert error["field"] == field
    assert error["message"]
    assert error["remedy"]


def test_the_allocator_is_there_or_refused(tmp_path: Path) -> None:
    if HAS_TLSF:
        pytest.skip("this ROS 2 has tlsf_cpp")
    assert refusal(tmp_path, CYCLE | with_options(allocator="tlsf"))["field"] == "option allocator"
