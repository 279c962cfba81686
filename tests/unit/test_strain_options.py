"""How load and traffic are written, in campaigns and on the command line, and what is refused."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from rtmeter.campaign.file import read_campaign
from rtmeter.campaign.rules import settle
from rtmeter.cli.cell_options import as_flag
from rtmeter.conditions.iperf import Flow
from rtmeter.conditions.iperf_report import CarriedTraffic
from rtmeter.conditions.load import Load, arguments, level_doubts, workers
from rtmeter.conditions.traffic import Traffic, flows, stream_doubts
from rtmeter.errors import RtmeterError

CELL = {"measurement": "wakeup", "adapter": "posix"}


def asked(**given: Any) -> dict[str, Any]:
    return settle(CELL | given).conditions_asked


@pytest.mark.parametrize(
    ("preset", "counts"),
    [
        ("idle", {}),
        ("cpu80", {"cpu": 0}),
        ("erle_pc", {"cpu": 8, "vm": 8, "io": 8, "hdd": 8}),
        ("erle_device", {"cpu": 2, "vm": 2, "io": 2, "hdd": 2}),
        ("stress10", {"cpu": 10, "vm": 10, "io": 10, "hdd": 10}),
    ],
)
def test_presets_are_workers(preset: str, counts: dict[str, int]) -> None:
    load = asked(load=preset)["load"]
    assert load["preset"] == preset
    assert workers(load) == counts


@pytest.mark.parametrize(
    "written",
    [
        "cpu=8,vm=8,vm_bytes=64MiB,io=8,hdd=8,cpu_percent=80,stressors.timer=2",
        {
            "cpu": 8,
            "vm": 8,
            "vm_bytes": "64MiB",
            "io": 8,
            "hdd": 8,
            "cpu_percent": 80,
            "stressors": {"timer": 2},
        },
    ],
)
def test_free_form_becomes_stress_ngs_options(written: Any) -> None:
    load = asked(load=written)["load"]
    given = arguments(load, workers(load))
    assert given == [
        *("--cpu", "8", "--vm", "8", "--io", "8", "--hdd", "8", "--timer", "2"),
        *("--cpu-load", "80", "--vm-bytes", "67108864B"),
    ]


def test_a_preset_may_be_changed() -> None:
    load = asked(load={"preset": "cpu80", "cpu_percent": 50, "cpus": "0-1"})["load"]
    assert load == {"preset": "cpu80", "cpu": 0, "cpu_percent": 50, "cpus": [0, 1]}


@pytest.mark.parametrize(
    ("load", "level"),
    [
        ({"cpu": 0, "cpu_percent": 80, "cpus": [0, 1]}, 0.8),
        ({"cpu": 1, "cpu_percent": 80, "cpus": [0, 1]}, 0.4),
        ({"cpu": 8, "cpus": [0, 1]}, 1.0),
        ({"vm": 8, "cpus": [0, 1]}, None),
    ],
)
def test_the_level_is_of_the_cpus_it_runs_on(load: dict[str, Any], level: float | None) -> None:
    assert Load(load, Path("nowhere")).level == level


@pytest.mark.parametrize(
    ("busy", "own", "only_cpu", "types"),
    [
        (0.80, 0.80, True, []),
        (0.73, 0.41, True, []),
        (0.71, 0.71, True, ["load_not_reached"]),
        (0.80, 0.39, True, ["load_not_reached"]),
        (0.95, 0.80, True, []),
        (0.96, 0.80, True, ["load_exceeded"]),
        (0.96, 0.80, False, []),
    ],
)
def test_a_level_is_reached_or_doubted(busy: float, own: float, only_cpu: bool, types: list[str]) -> None:
    assert [doubt.type for doubt in level_doubts(0.8, busy, own, only_cpu=only_cpu)] == types


def test_each_doubt_of_a_level_has_a_remedy_of_its_own() -> None:
    """Asking for less helps neither a load that others made nor one that they went beyond."""
    shares = ((0.71, 0.71), (0.80, 0.39), (0.96, 0.80))
    hints = [doubt.hint for one in shares for doubt in level_doubts(0.8, *one, only_cpu=True)]
    assert len(set(hints)) == len(shares) and "less" not in "".join(hints)


def over(load: dict[str, Any], elapsed_s: float, took_s: float, *metrics: dict[str, Any]) -> Load:
    """A load that has ended: how long it was, what processor time it took, and what stress-ng says it did."""
    made = Load(load, Path("nowhere"))
    made._started, made._ended = (7.0, 1.0), (7.0 + elapsed_s, 1.0 + took_s)
    made._report = {"metrics": list(metrics)}
    return made


def test_what_came_of_a_load_is_of_its_own_cpus() -> None:
    monitored = {"seconds": 10.0, "busy_cpus": {"0": 1.0, "1": 0.5, "2": 0.7}}
    load = over({"cpu": 0, "cpus": [1, 2]}, 10.0, 11.0)
    achieved = load.achieved(monitored)
    assert (achieved["level"], achieved["busy"], achieved["own"]) == (1.0, 0.6, 0.55)
    assert [doubt.type for doubt in load.doubts(monitored, None)] == ["load_not_reached"]
    assert over({"cpu": 0, "cpus": [1, 2]}, 0.99, 1.0).own_share is None, "ticks tell no level"


def test_workers_that_end_or_do_nothing_are_doubted() -> None:
    did = {"stressor": "cpu", "bogo-ops": 5}, {"stressor": "io", "bogo-ops": 0}
    load = over({"cpu": 1, "io": 1, "cpus": [0]}, 10.0, 10.0, *did)
    monitored = {"seconds": 10.0, "busy_cpus": {"0": 1.0}}
    fewer, idle = load.doubts(monitored, 1)
    assert fewer.type == idle.type == "load_not_reached"
    assert "only 1 of 2 workers" in fewer.message and "workers io did nothing" in idle.message
    assert list(load.doubts(monitored, 2)) == [idle]


@pytest.mark.parametrize(
    ("carried", "died", "types"),
    [
        (CarriedTraffic(9e6, 0.0, None, "receiver"), None, []),
        (CarriedTraffic(8.9e6, 0.0, None, "receiver"), None, ["traffic_not_reached"]),
        (CarriedTraffic(), None, ["traffic_not_reached"]),
        (CarriedTraffic(9e6, None, None, "sender"), None, ["traffic_loss_unknown"]),
        (CarriedTraffic(8.9e6, None, None, "sender"), None, ["traffic_not_reached", "traffic_loss_unknown"]),
        (CarriedTraffic(9e6, None, None, "sender"), "killed by SIGKILL", ["traffic_died"]),
    ],
)
def test_a_rate_is_reached_or_doubted(carried: CarriedTraffic, died: str | None, types: list[str]) -> None:
    flow = Flow(10_000_000, "udp", "192.0.2.1")
    assert [doubt.type for doubt in stream_doubts("forward", flow, carried, died)] == types


def test_what_tcp_loses_it_sends_again() -> None:
    carried = CarriedTraffic(9e6, None, None, "sender")
    assert list(stream_doubts("forward", Flow(10_000_000, "tcp", "192.0.2.1"), carried, None)) == []


def test_traffic_that_ends_is_told_at_once_and_what_was_not_reached_at_the_end() -> None:
    traffic, flow = Traffic({}, 1.0), Flow(10_000_000, "tcp", "192.0.2.1")
    ends = {"forward": "killed by SIGKILL", "reverse": None}
    traffic._streams = {
        name: SimpleNamespace(flow=flow, carried=CarriedTraffic(), died=died) for name, died in ends.items()
    }
    assert [doubt.type for doubt in traffic.deaths()] == ["traffic_died"]
    assert [doubt.type for doubt in traffic.doubts()] == ["traffic_died", "traffic_not_reached"]


def test_traffic_flows_both_ways_unless_said() -> None:
    both = flows(asked(traffic="40Mbit/s")["traffic"])
    assert {name: (flow.rate, flow.reverse) for name, flow in both.items()} == {
        "forward": (40_000_000, False),
        "reverse": (40_000_000, True),
    }
    one = flows(asked(traffic="rate=1Mbit/s,reverse_rate=0,protocol=tcp,port=7000")["traffic"])
    assert [(flow.protocol, flow.port) for flow in one.values()] == [("tcp", 7000)]
    assert flows(asked(traffic="none")["traffic"]) == {}


def test_a_server_elsewhere_is_not_ours_to_start() -> None:
    there = flows(asked(traffic={"rate": "1kbit/s", "to": "192.0.2.1"})["traffic"])
    assert [(flow.starts_server, flow.port) for flow in there.values()] == [(False, 5201), (False, 5202)]
    here = flows(asked(traffic={"rate": "1kbit/s", "to": "192.0.2.1", "to_namespace": "x"})["traffic"])
    assert all(flow.starts_server and flow.port is None for flow in here.values())


@pytest.mark.parametrize(
    ("given", "field", "words"),
    [
        ({"load": "cpu81"}, "load", "choose idle, cpu80"),
        ({"load": "cpu="}, "load", "no key=value"),
        ({"load": "cpu=1,cpu=2"}, "load", "twice"),
        ({"load": {"cpus": 1, "cpuu": 2}}, "load", "did you mean cpu"),
        ({"load": {"cpu": -1}}, "load.cpu", "greater than or equal to 0"),
        ({"load": {"cpu": 1, "cpu_percent": 101}}, "load.cpu_percent", "less than or equal to 100"),
        ({"load": {"cpu_percent": 80}}, "load", "no cpu workers"),
        ({"load": {"vm_bytes": "64MiB"}}, "load", "no vm workers"),
        ({"load": {"vm": 1, "vm_bytes": "64 apples"}}, "load.vm_bytes", "apples"),
        ({"load": {"stressors": {"--exec": 1}}}, "load.stressors", "match"),
        ({"load": 7}, "load", ""),
        ({"load": "cpus=9"}, "load", "has cpus but no workers"),
        ({"traffic": "to=192.0.2.1"}, "traffic", "has no rate"),
        ({"traffic": "40Mbps"}, "traffic.rate", "40Mbit/s"),
        ({"traffic": "40"}, "traffic.rate", "no unit"),
        ({"traffic": {"rate": "2000Gbit/s"}}, "traffic.rate", "more than 1000"),
        ({"traffic": {"rate": "1Mbit/s", "protocol": "sctp"}}, "traffic.protocol", "udp"),
        ({"traffic": {"rate": "1Mbit/s", "port": 65535}}, "traffic.port", "65534"),
        ({"traffic": {"rate": "1Mbit/s", "to_namespace": "a b"}}, "traffic.to_namespace", "match"),
        ({"traffic": {"rate": "1Mbit/s", "speed": 1}}, "traffic", "choose one of"),
    ],
)
def test_what_means_nothing_is_refused(given: dict[str, Any], field: str, words: str) -> None:
    with pytest.raises(RtmeterError) as raised:
        asked(**given)
    assert (raised.value.field or "").startswith(field)
    assert words in str(raised.value)
    assert raised.value.remedy


def test_errors_name_the_key_on_the_command_line() -> None:
    for given, field in (({"load": "cpu=-1"}, "--load cpu"), ({"traffic": "40Mbps"}, "--traffic rate")):
        with pytest.raises(RtmeterError) as raised:
            asked(**given)
        assert as_flag(raised.value).field == field


@pytest.mark.parametrize("part", ["load", "traffic"])
def test_cpus_that_are_not_there_are_named_before_anything_starts(tmp_path: Path, part: str) -> None:
    given = {"load": "cpu=1,cpus=0-4095", "traffic": "rate=1Mbit/s,cpus=0-4095"}[part]
    made = asked(**{part: given})[part]
    started = Load(made, tmp_path) if part == "load" else Traffic(made, 1)
    with pytest.raises(RtmeterError, match="4095 does not exist here, or is off") as raised:
        started.start()
    assert (raised.value.field, raised.value.value) == (f"{part}.cpus", "0-4095")
    assert "choose among 0" in str(raised.value.remedy)


def test_they_make_the_matrix_like_any_option(tmp_path: Path) -> None:
    (tmp_path / "c.yaml").write_text(
        "defaults: {measurement: wakeup, adapter: posix, duration: 1s}\n"
        "cells:\n"
        "- name: x\n"
        "  load: [idle, cpu80, {cpu: 2, vm: 1}]\n"
        "  traffic: [none, 40Mbit/s]\n"
        "  only: not (load == cpu80 and traffic == 40Mbit/s)\n"
        "- name: y\n"
        "  load: {cpu: [1, 2], cpu_percent: 50}\n"
    )
    cells = read_campaign(tmp_path / "c.yaml").cells
    assert [cell.id for cell in cells] == [
        "x-idle-none",
        "x-idle-traffic-40Mbit-s",
        "x-cpu80-none",
        "x-cpu-2-vm-1-none",
        "x-cpu-2-vm-1-traffic-40Mbit-s",
        "y-cpu-1",
        "y-cpu-2",
    ]
    assert cells[4].conditions["load"] == {"cpu": 2, "vm": 1}
    assert cells[6].conditions["load"] == {"cpu": 2, "cpu_percent": 50}


def test_nothing_is_asked_by_default() -> None:
    assert asked() == {}
    assert asked(monitor="0", strict=True) == {"monitor_ns": 0, "strict": True}
