"""The rcl adapter over a real ROS 2: every measurement, and what goes wrong."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import uuid
from pathlib import Path

import pytest
import ros_runs
from dds_runs import audited, settled, threads_in_proc, threads_of
from namespaces import quiet_network
from probe_runs import (
    LONG,
    SAMPLES,
    Config,
    client_and_server,
    counts,
    measure,
    needs_fifo,
    probe,
    read,
    refusal,
)
from ros_runs import MS, cycle, timer, with_environment

from front import rtmeter
from rtmeter.measure.probe.probes import find_probes

pytestmark = pytest.mark.skipif("rcl" not in find_probes(), reason="the adapter rcl is not built here")

RCL = ros_runs.of("rcl", 2 * MS)
ROOT = Path(__file__).parents[2]
ALONE: Config = RCL | {"measurement": "roundtrip", "role": "client", "loss_timeout_ns": LONG}


def test_wakeup_beside_its_threads(tmp_path: Path) -> None:
    """Its libraries may bring threads (of a tracer) when they are loaded, a node those of the RMW."""
    threads = {}
    for before in ("none", "init", "init_and_node"):
        (tmp_path / before).mkdir()
        reader, columns = measure(tmp_path / before, RCL | {"measurement": "wakeup", "before": before})
        assert counts(columns)["served"] == SAMPLES
        threads[before] = len(threads_of(reader.meta))
    assert threads["none"] <= threads["init"] < threads["init_and_node"]


def test_one_shot_fires_as_often_as_it_is_armed(tmp_path: Path) -> None:
    ros_runs.one_shot_of_a_steady_clock(tmp_path, RCL, "spin")


def test_periodic_accounts_for_every_release(tmp_path: Path) -> None:
    ros_runs.periodic_of_a_steady_clock(tmp_path, RCL, "spin")


def test_ticks_that_rcl_passes_over_are_counted(tmp_path: Path) -> None:
    found = ros_runs.skips_of_a_stall(tmp_path, RCL)
    assert found["skipped"] > 0
    assert found["released"] == found["served"] + found["skipped"]


@pytest.mark.parametrize(("in_flight", "reliability"), [("one", "best_effort"), ("open", "reliable")])
def test_quality_of_service_is_read_back(tmp_path: Path, in_flight: str, reliability: str) -> None:
    config = RCL | {"in_flight": in_flight, "reliability": reliability, "history_depth": 5}
    config |= {"loss_timeout_ns": 1_000 * MS}  # more than the history holds may be under way
    with client_and_server(tmp_path, config) as (client, server):
        assert settled(client, server)["released"] == SAMPLES
    described = read(client.log)[0].meta["adapter"]
    assert described["rmw"].startswith("rmw_")
    assert ".so." in described["rmw_library"]
    wanted = {"reliability": reliability, "history": "keep_last", "depth": "5", "durability": "volatile"}
    assert {policy: described["qos"][policy] for policy in wanted} == wanted


def test_a_payload_of_many_datagrams_travels_whole(tmp_path: Path) -> None:
    config = RCL | {"payload_bytes": 131_072, "samples": 20, "reliability": "reliable"}
    with client_and_server(tmp_path, config) as (client, server):
        settled(client, server)


def test_the_domain_is_the_users(tmp_path: Path) -> None:
    config = with_environment(RCL, ROS_DOMAIN_ID="82") | {"measurement": "wakeup", "before": "init"}
    described = measure(tmp_path, config)[0].meta["adapter"]
    assert (described["domain"], described["environment"]["ROS_DOMAIN_ID"]) == ("82", "82")


@pytest.mark.parametrize(("transports", "way"), [("", "shared_memory"), ("UDPv4", "udp")])
def test_the_way_of_the_messages_is_told(tmp_path: Path, transports: str, way: str) -> None:
    """By what went through sockets, for there are settings enough that nobody thinks of."""
    set_here = {"FASTDDS_BUILTIN_TRANSPORTS": transports} if transports else {}
    config = with_environment(RCL, ROS_DISABLE_LOANED_MESSAGES="1", **set_here) | {"payload_bytes": 1000}
    with client_and_server(tmp_path, config) as both:
        settled(*both)
    for end in both:
        meta = read(end.log)[0].meta
        if meta["adapter"]["rmw"] != "rmw_fastrtps_cpp":
            pytest.skip("the RMW that is loaded here is another")
        assert meta["adapter"]["environment"]["ROS_DISABLE_LOANED_MESSAGES"] == "1"
        path = meta["path"]
        assert (path["carried_by"], path["payload_bytes"]) == (way, 1000 * path["messages"])
        sent_bytes = path["sockets"].get("udp", {"bytes": 0})["bytes"]
        assert (sent_bytes >= path["payload_bytes"]) == (way == "udp")
        assert any("fast" in one["name"] for one in path["shared_memory"]) == (way == "shared_memory")


def test_profiles_of_fast_dds_hold(tmp_path: Path) -> None:
    """With UDP as the only transport no shared memory is opened, which is the default's."""
    profiles = tmp_path / "profiles.xml"
    profiles.write_text(
        '<?xml version="1.0" encoding="UTF-8"?>'
        '<profiles xmlns="http://www.eprosima.com/XMLSchemas/fastRTPS_Profiles">'
        "<transport_descriptors><transport_descriptor><transport_id>u</transport_id><type>UDPv4</type>"
        "</transport_descriptor></transport_descriptors>"
        '<participant profile_name="p" is_default_profile="true"><rtps>'
        "<userTransports><transport_id>u</transport_id></userTransports>"
        "<useBuiltinTransports>false</useBuiltinTransports></rtps></participant></profiles>"
    )
    old, new = "FASTRTPS_DEFAULT_PROFILES_FILE", "FASTDDS_DEFAULT_PROFILES_FILE"  # until 2.14, and from 3.0
    shared_memory = {}
    for name, variables in (("without", {}), ("with", {old: str(profiles), new: str(profiles)})):
        (tmp_path / name).mkdir()
        config = with_environment(cycle(RCL, samples=1_000_000), **variables)
        with probe(tmp_path / name, config) as one:
            ready = one.until("ready")
            if ready["adapter"]["rmw"] != "rmw_fastrtps_cpp":
                pytest.skip("the RMW that is loaded here is another")
            mapped = Path(f"/proc/{ready['pid']}/maps").read_text()
            shared_memory[name] = "/dev/shm/fastdds_" in mapped or "/dev/shm/fastrtps_" in mapped
            environment = ready["adapter"].get("environment", {})
            assert {variable: environment.get(variable, "") for variable in (old, new)} == {
                old: "",
                new: "",
            } | variables
    assert shared_memory == {"without": True, "with": False}


@needs_fifo
def test_its_threads_take_the_priority_asked_for_and_the_audit_is_whole(tmp_path: Path) -> None:
    config = cycle(RCL, samples=1_000_000) | {"options": {"threads": "fifo:20"}}
    with probe(tmp_path, config) as one:
        ready = one.until("ready")
        assert audited(ready) == threads_in_proc(ready["pid"])
    set_so = [t for t in ready["threads"] if (t["policy"], t["priority"]) == ("fifo", 20)]
    assert len(set_so) == int(ready["adapter"]["threads"]["count"]) > 0  # all that came with rcl_init


@pytest.mark.parametrize(("variable", "field"), [(True, "RMW_IMPLEMENTATION"), (False, "option rmw")])
def test_an_rmw_that_is_not_there_is_told_by_name(tmp_path: Path, variable: bool, field: str) -> None:
    name = "rmw_of_nobody_cpp"
    config = with_environment(cycle(RCL), RMW_IMPLEMENTATION=name if variable else "")
    error = refusal(tmp_path, config if variable else config | {"options": {"rmw": name}})
    assert (error["field"], error["value"]) == (field, name)
    assert "rmw_" in error["remedy"]


def test_the_rmw_that_is_there_may_be_asked_for(tmp_path: Path) -> None:
    config = RCL | {"measurement": "wakeup", "before": "init", "samples": 20}
    loaded = measure(tmp_path, config)[0].meta["adapter"]["rmw"]
    (tmp_path / "again").mkdir()
    asked = with_environment(config, RMW_IMPLEMENTATION=loaded)
    assert measure(tmp_path / "again", asked)[0].meta["adapter"]["rmw"] == loaded


def test_another_rcl_than_the_one_it_was_built_with_is_refused(tmp_path: Path) -> None:
    with probe(tmp_path, cycle(RCL, samples=1_000_000)) as one:
        ready = one.until("ready")
        maps = Path(f"/proc/{ready['pid']}/maps").read_text()
    library = next(line.split()[-1] for line in maps.splitlines() if line.endswith("/librcl.so"))
    for folder in ("lib", "share/rcl", "run"):
        (tmp_path / folder).mkdir(parents=True)
    shutil.copy(library, tmp_path / "lib")
    (tmp_path / "share" / "rcl" / "package.xml").write_text("<package><version>0.7.1</version></package>")
    other = with_environment(cycle(RCL), LD_PRELOAD=str(tmp_path / "lib" / "librcl.so"))
    error = refusal(tmp_path / "run", other)
    assert (error["field"], error["value"]) == ("rcl", "0.7.1")
    assert str(tmp_path / "lib" / "librcl.so") in error["message"]
    assert "setup.bash" in error["remedy"]


def test_a_server_that_is_not_there_is_told_with_what_was_looked_for(tmp_path: Path) -> None:
    session = f"test-{uuid.uuid4()}"
    config = ALONE | {"connect_timeout_ns": 300 * MS, "session": session, "options": {"domain": "83"}}
    with quiet_network() as inside:
        error = refusal(tmp_path, config | {"inside": inside})
    assert (error["field"], error["value"]) == ("server", session)
    for part in ("within 300 ms", "domain 83", "found 0 other nodes", "publisher of ping matched 0"):
        assert part in error["message"], error


def test_a_policy_that_does_not_match_is_named(tmp_path: Path) -> None:
    config = RCL | {"connect_timeout_ns": 3_600_000 * MS, "options": {"durability": "transient_local"}}
    with client_and_server(tmp_path, config, {"options": {}}) as (client, _):
        assert client.end() == 1
    error = next(event for event in client.events if event["event"] == "error")
    assert error["field"] == "incompatible_qos"
    assert "subscription of pong" in error["value"] and "durability" in error["value"].lower()


@pytest.mark.parametrize(
    ("config", "field"),
    [
        (timer(RCL, overrun="catch_up"), "overrun"),
        (cycle(RCL) | {"options": {"domain": "233"}}, "option domain"),
        (with_environment(cycle(RCL), ROS_DOMAIN_ID="many"), "ROS_DOMAIN_ID"),
    ],
)
def test_what_cannot_be_is_refused_by_name(tmp_path: Path, config: Config, field: str) -> None:
    error = refusal(tmp_path, config)
    assert error["field"] == field
    assert error["message"] and error["remedy"]


def test_configure_says_what_is_missing_without_a_ros_2(tmp_path: Path) -> None:
    """Here with a Python that has no such packages, and nothing sourced."""
    environment = {name: value for name, value in os.environ.items() if name != "AMENT_PREFIX_PATH"}
    done = subprocess.run(
        [
            "cmake",
            "-S",
            ROOT / "adapters" / "rcl",
            "-B",
            tmp_path,
            f"-DPython3_EXECUTABLE={sys._base_executable}",
        ],
        env=environment,
        capture_output=True,
        text=True,
        check=True,
    )
    row = next(line for line in done.stdout.splitlines() if line.startswith("--   rcl "))
    assert "not built" in row and "setup.bash" in row and "PyPI" in row


def test_the_layers_of_a_timer_stand_in_one_table(tmp_path: Path) -> None:
    text = (ROOT / "campaigns" / "layers.yaml").read_text(encoding="utf-8")
    campaign = tmp_path / "layers.yaml"
    campaign.write_text(text.replace("repeat: 5", "repeat: 2").replace("warm_up: 1s", "warm_up: 0s"))
    only = "measurement == timer and (adapter == posix or adapter == rcl)"
    done = rtmeter("run", campaign, "--scale", "0.005", "--only", only, "--out", tmp_path, "--json")
    assert done.code != 1, done.err
    [folder] = (tmp_path).glob("*/layers/*")
    found = rtmeter("layers", folder, "--floor", "posix", "--json").json
    assert {(cell["id"], cell["pairs"]) for cell in found["cells"]} == {("timer-posix → timer-rcl", 2)}
    assert found["without_floor"] == []
