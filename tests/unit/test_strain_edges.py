"""Load, traffic and the sampling of both where one could be taken for another."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from rtmeter.campaign.matrix import cell_from
from rtmeter.campaign.rules import settle
from rtmeter.conditions import iperf, strain
from rtmeter.conditions.counters import look
from rtmeter.conditions.iperf import Flow
from rtmeter.conditions.load import Load
from rtmeter.conditions.monitor import Monitor
from rtmeter.conditions.traffic import Elsewhere, flows
from rtmeter.host.root import Root
from rtmeter.host.ssh import Ssh

STAT = """cpu  300 0 100 9000 50 0 0 20 0 0
cpu0 100 10 50 4500 25 3 7 10 0 0
cpu3 200 0 50 4000 75 0 0 10 0 0
"""
BOARD = Ssh("ssh://board", "hosts.component")


def plant(folder: Path, **files: str) -> Root:
    for name, text in files.items():
        (folder / "proc").mkdir(exist_ok=True)
        (folder / "proc" / name).write_text(text)
    return Root(folder)


def asked(**given: Any) -> dict[str, Any]:
    return settle({"measurement": "wakeup", "adapter": "posix"} | given).conditions_asked


def test_a_cpu_that_waits_for_a_disk_is_idle_and_soft_interrupts_are_some(tmp_path: Path) -> None:
    seen = look(plant(tmp_path, stat=STAT).read_all)
    assert seen.idle_s == {0: 45.25, 3: 40.75}
    assert seen.interrupts_s == {0: 0.1, 3: 0.0}


def test_a_counter_that_comes_later_has_not_grown_by_all_that_it_is(tmp_path: Path) -> None:
    monitored = Monitor(tmp_path, plant(tmp_path, stat=STAT).read_all, 0, set())
    plant(tmp_path, vmstat="pgfault 1000\npgmajfault 7")
    assert monitored._row()["faults"] == 0
    plant(tmp_path, vmstat="pgfault 1003\npgmajfault 7")
    assert monitored._row()["faults"] == 3


def test_momentary_values_have_their_mean_their_largest_and_of_clocks_the_least(tmp_path: Path) -> None:
    values = {"load_workers": iter([4.0, 3.0, 3.0]), "cpu0_mhz": iter([2000.0, 1200.0, 1600.0])}
    gauges = {name: lambda of=of: next(of) for name, of in values.items()}
    monitored = Monitor(tmp_path, plant(tmp_path, stat=STAT).read_all, 0, set(), gauges)
    for _ in range(3):
        monitored._row()
    found = monitored.achieved()
    assert (found["load_workers_mean"], found["load_workers_max"]) == (3.33, 4.0)
    assert (found["cpu0_mhz_mean"], found["cpu0_mhz_max"], found["cpu0_mhz_min"]) == (1600.0, 2000.0, 1200.0)
    assert "load_workers_min" not in found


@pytest.mark.parametrize(("more", "types"), [({}, ["load_exceeded"]), ({"io": 1}, [])])
def test_only_a_load_of_cpu_workers_alone_has_a_level_that_can_be_exceeded(
    more: dict[str, int], types: list[str]
) -> None:
    load = Load({"cpu": 1, "cpu_percent": 50, "cpus": [0]} | more, Path("nowhere"))
    load._started, load._ended = (0.0, 0.0), (10.0, 5.0)
    monitored = {"seconds": 10.0, "busy_cpus": {"0": 0.9}}
    assert [doubt.type for doubt in load.doubts(monitored, None)] == types


@pytest.mark.parametrize(
    ("given", "names"),
    [
        ({}, ("rtmeter",)),
        ({"load": "cpu80"}, ("rtmeter", "stress-ng")),
        ({"traffic": "1Mbit/s"}, ("rtmeter", "iperf3")),
        ({"load": "cpu80", "traffic": "1Mbit/s"}, ("rtmeter", "stress-ng", "iperf3")),
    ],
)
def test_programs_that_make_load_are_our_own_only_where_it_is_asked_for(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, given: dict[str, str], names: tuple[str, ...]
) -> None:
    seen: list[tuple[str, ...]] = []
    monkeypatch.setattr(strain, "Others", lambda root, own: seen.append(own))
    cell = cell_from(settle({"measurement": "wakeup", "adapter": "posix"} | given), "cell", {})
    strain.strain_of(cell, tmp_path, Root(tmp_path))
    assert seen == [names]


def test_traffic_goes_to_the_other_host_unless_it_is_to_go_elsewhere() -> None:
    there = Elsewhere("192.0.2.7", BOARD)
    usual = flows(asked(traffic="1Mbit/s")["traffic"], elsewhere=there)
    assert {(flow.to, flow.starts_server, flow.server_ssh) for flow in usual.values()} == {
        ("192.0.2.7", True, BOARD)
    }
    other = flows(asked(traffic={"rate": "1Mbit/s", "to": "192.0.2.1"})["traffic"], elsewhere=there)
    assert {(flow.to, flow.starts_server, flow.server_ssh) for flow in other.values()} == {
        ("192.0.2.1", False, None)
    }


@pytest.mark.parametrize(("server", "cpus"), [(None, [2, 3]), (BOARD, None)])
def test_cpus_of_traffic_are_of_the_clients_machine(
    monkeypatch: pytest.MonkeyPatch, server: Ssh | None, cpus: list[int] | None
) -> None:
    started = SimpleNamespace(cpus=[])
    monkeypatch.setattr(iperf, "_started", lambda command, ssh, cpus: started.cpus.append(cpus))
    flow = Flow(1_000_000, "udp", "192.0.2.7", server_ssh=server, cpus=[2, 3])
    flow.start_server(5201)
    flow.start_client(5201)
    assert started.cpus == [cpus, [2, 3]]
