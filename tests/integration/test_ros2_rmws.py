"""What a ROS 2 with real RMWs shows: which DDS is really below each, a campaign over all of them, and the
priorities that each vendor's own file gives its threads."""

from __future__ import annotations

import json
import signal
from pathlib import Path
from typing import Any

import pytest
from dds_runs import settled, threads_in_proc
from probe_runs import MS, Config, client_and_server, measure, needs_fifo, probe, read
from ros2_runs import RMWS, ROS2, library, needs_ros2, with_options, with_rmw

from front import rtmeter
from rtmeter.results import store
from stored import cell_json

pytestmark = needs_ros2

LIBRARIES = {
    "rmw_cyclonedds_cpp": ("libddsc.so",),
    "rmw_fastrtps_cpp": ("libfastrtps.so", "libfastdds.so"),  # until 2.14, and from 3.0
}
NODE: Config = ROS2 | {"measurement": "wakeup", "before": "init_and_node"}

CYCLONE = """
<CycloneDDS><Domain><Threads>
  <Thread Name="recv"><Scheduling><Class>realtime</Class><Priority>18</Priority></Scheduling></Thread>
  <Thread Name="tev"><Scheduling><Class>realtime</Class><Priority>17</Priority></Scheduling></Thread>
</Threads></Domain></CycloneDDS>
"""
FAST = """<?xml version="1.0" encoding="UTF-8"?>
<profiles xmlns="http://www.eprosima.com/XMLSchemas/fastRTPS_Profiles">
  <transport_descriptors><transport_descriptor>
    <transport_id>udp</transport_id>
    <type>UDPv4</type>
    <default_reception_threads>
      <scheduling_policy>1</scheduling_policy><priority>18</priority>
    </default_reception_threads>
  </transport_descriptor></transport_descriptors>
  <participant profile_name="real_time" is_default_profile="true"><rtps>
    <timed_events_thread><scheduling_policy>1</scheduling_policy><priority>17</priority></timed_events_thread>
    <useBuiltinTransports>false</useBuiltinTransports>
    <userTransports><transport_id>udp</transport_id></userTransports>
  </rtps></participant>
</profiles>
"""
VENDORS: dict[str, tuple[str, str, dict[str, int]]] = {
    "rmw_cyclonedds_cpp": ("CYCLONEDDS_URI", CYCLONE, {"tev": 17, "recv": 18}),
    "rmw_fastrtps_cpp": ("FASTRTPS_DEFAULT_PROFILES_FILE", FAST, {"dds.ev.": 17, "dds.udp.": 18}),
}
"""The variable that says where a vendor's settings are, such settings, and the threads that they are of."""


def installed(name: str) -> Any:
    """A parameter that is skipped where this RMW is not."""
    return pytest.param(name, marks=pytest.mark.skipif(name not in RMWS, reason=f"{name} is not installed"))


each_rmw = pytest.mark.parametrize("rmw", [installed(name) for name in LIBRARIES])


@each_rmw
def test_the_version_is_that_of_the_file_that_is_loaded(tmp_path: Path, rmw: str) -> None:
    reader, _ = measure(tmp_path, NODE | with_rmw(rmw))
    facts = reader.meta["adapter"]
    assert facts["rmw"] == rmw
    assert facts["rmw_library"] in {file.name for file in real_files(LIBRARIES[rmw])}
    assert [part for part in facts["rmw_library"].split(".") if part.isdigit()], "it holds a version"


@each_rmw
def test_no_interpreter_is_loaded_into_the_measured_process(tmp_path: Path, rmw: str) -> None:
    """ROS 2's CMake targets name the Python libraries of every message; nothing measured calls them."""
    with probe(tmp_path, NODE | with_rmw(rmw) | {"samples": 1_000_000}) as one:
        assert one.until("ready")["event"] == "ready"
        loaded = Path(f"/proc/{one.process.pid}/maps").read_text()
    assert "librcl.so" in loaded
    assert "libpython" not in loaded


def real_files(names: tuple[str, ...]) -> list[Path]:
    """The files behind the links of these names, of the ROS 2 that is sourced."""
    found = []
    for name in names:
        try:
            found.append(library(name).resolve())
        except StopIteration:
            continue
    return found


@pytest.mark.skipif("rmw_fastrtps_cpp" not in RMWS, reason="rmw_fastrtps_cpp is not installed")
@pytest.mark.parametrize("payload_bytes", [8, 128 << 10])
def test_fast_dds_lends_its_memory(tmp_path: Path, payload_bytes: int) -> None:
    config = ROS2 | with_rmw("rmw_fastrtps_cpp") | with_options(loan="yes") | {"samples": 50, "warm_up": 5}
    config |= {"period_ns": 5 * MS, "reliability": "reliable", "payload_bytes": payload_bytes}
    with client_and_server(tmp_path, config) as both:
        assert settled(*both)["lost"] == 0
    assert read(both[0].log)[0].meta["adapter"]["loan"] == "yes"


def cells_over(tmp_path: Path, rmws: list[str]) -> tuple[int, dict[str, dict[str, Any]]]:
    """Runs a campaign over these RMWs: its exit code, and RMW → cell."""
    campaign = tmp_path / "rmws.yaml"
    campaign.write_text(
        f"""
name: rmws
defaults: {{adapter: ros2, period: 5ms, samples: 50, warm_up: 25ms}}
cells:
  - {{name: timer, measurement: timer, mode: periodic, options: {{rmw: {json.dumps(rmws)}}}}}
"""
    )
    done = rtmeter("run", campaign, "--out", tmp_path / "results")
    assert (tmp_path / "results").is_dir(), done.err
    cells = [cell_json(folder) for folder in store.cell_folders(tmp_path / "results")]
    return done.code, {cell["config"]["options"]["rmw"]: cell for cell in cells}


def test_a_campaign_is_a_matrix_over_rmws(tmp_path: Path) -> None:
    code, cells = cells_over(tmp_path, RMWS)
    assert code == 0
    assert sorted(cells) == RMWS
    for rmw, cell in cells.items():
        assert cell["status"] == "complete"
        assert cell["adapter_facts"]["rmw"] == rmw


def test_an_rmw_that_is_not_installed_fails_its_own_cell_alone(tmp_path: Path) -> None:
    code, cells = cells_over(tmp_path, [RMWS[0], "rmw_none_cpp"])
    assert code == 1
    assert cells[RMWS[0]]["status"] == "complete"
    assert cells["rmw_none_cpp"]["status"] == "failed"
    error = cells["rmw_none_cpp"]["error"]
    assert (error["field"], error["value"]) == ("option rmw", "rmw_none_cpp")
    assert RMWS[0] in error["remedy"]


@needs_fifo
@each_rmw
def test_the_audit_has_the_priorities_of_the_vendors_own_file(tmp_path: Path, rmw: str) -> None:
    """What the file says is in the result, and what came of it as the system has it."""
    variable, settings, priorities = VENDORS[rmw]
    file = tmp_path / "vendor.xml"
    file.write_text(settings)
    value = f"file://{file}" if variable == "CYCLONEDDS_URI" else str(file)
    config = NODE | {"environment": {"RMW_IMPLEMENTATION": rmw, variable: value}}
    with probe(tmp_path, config | {"samples": 1_000_000}) as one:
        ready = one.until("ready")
        in_proc = threads_in_proc(one.process.pid)
        one.process.send_signal(signal.SIGINT)
        assert one.end() == 4
    assert ready["adapter"]["environment"][variable] == value
    set_by_vendor = set()
    for thread in (t for t in ready["threads"] if t["role"] == "middleware"):
        name, policy, priority = in_proc[thread["tid"]]
        asked = [beginning for beginning in priorities if name.startswith(beginning)]
        if rmw == "rmw_cyclonedds_cpp":  # recvMC and recvUC are none of its names
            asked = [beginning for beginning in asked if beginning == name]
        expected = ("fifo", priorities[asked[0]]) if asked else ("other", 0)
        assert (policy, priority) == expected, name
        assert (thread["name"], thread["priority"]) == (name, priority)
        set_by_vendor.update(asked)
    assert set_by_vendor == set(priorities)
