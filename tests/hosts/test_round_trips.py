"""Round trips between two hosts over a real sshd: the log comes home, the clocks are compared, and what
goes wrong between the machines is said."""

from __future__ import annotations

import html
import json
import signal
import time
from pathlib import Path

import pyarrow.parquet as pq
import pytest
from runs import MEASURE, measured, wait_for_samples
from two_hosts import ADDRESS, NEAR_ADDRESS, PLANTED_NS, Hosts

from front import ended, rtmeter, running
from rtmeter.measure.probe.probes import find_probes
from rtmeter.results import store
from rtmeter.values import format_duration
from stored import cell_json

PATIENT = ("--connect-timeout", "30s", "--loss-timeout", "20s")
"""No stall makes the first reply so late that it counts as lost, and all other releases are passed over."""


def test_a_server_on_another_host(hosts: Hosts, tmp_path: Path) -> None:
    cell = measured(hosts, tmp_path / "cell", "--samples", "500", "--server-cpus", "0")
    counts = cell["summary"]["counts"]
    assert counts["released"] == 500
    assert counts["replied_in_time"] > 0
    assert cell["hosts"] == {"controller": "local", "component": hosts.url}
    assert cell["server_config"]["options"]["address"] == ADDRESS
    assert cell["server_config"]["cpus"] == [0]
    assert [thread["cpus"] for thread in cell["threads"]["server"] if thread["role"] == "measured"] == [[0]]
    assert cell["server_machine"]["time_namespace"] != cell["machine"]["time_namespace"]
    assert list(hosts.temporary.iterdir()) == []


def test_the_planted_offset_of_the_clocks_is_found_within_its_error(hosts: Hosts, tmp_path: Path) -> None:
    cell = measured(hosts, tmp_path / "cell", "--samples", "500")
    offset = cell["clock_offset"]
    assert offset["same_clock"] is False
    assert offset["exchanges"] == cell["summary"]["counts"]["served"]
    length_ns = 499 * 2_000_000
    for at_ns in (0, length_ns):  # of the whole run
        assert abs(offset["offset_ns"] + offset["drift"] * at_ns - PLANTED_NS) <= offset["error_ns"]
    assert [doubt["type"] for doubt in cell["warnings"]].count("clock_offset") == 1
    rows = pq.read_table(tmp_path / "cell" / store.SAMPLES).to_pydict()
    served = [i for i, status in enumerate(rows["status"]) if status == "served"]
    for i in served:  # on the client's clock, to within the error, the server is between send and reply
        assert rows["server_received_ns"][i] >= rows["sent_ns"][i] - 2 * offset["error_ns"]
        assert rows["server_sent_ns"][i] <= rows["received_ns"][i] + 2 * offset["error_ns"]
    assert cell["summary"]["quantities"]["ping"]["as_served"]["n"] == len(served)
    error = format_duration(round(offset["error_ns"]))
    assert rtmeter("report", tmp_path / "cell", "--out", tmp_path / "report.html").code == 0
    page = html.unescape((tmp_path / "report.html").read_text())
    assert page.count(f"±{error}") >= 2
    assert f"server on {hosts.url} (" in page
    assert "What the server's machine had wrong" in page


def test_late_round_trips_between_hosts_are_explained_to_the_border(hosts: Hosts, tmp_path: Path) -> None:
    cell = tmp_path / "cell"
    stored = measured(hosts, cell, "--samples", "100", "--deadline", "1us", "--explain", code=2)
    assert stored["conditions"]["achieved"]["trace"]["events"] > 0
    found = rtmeter("explain", cell, "--json").json
    served = stored["summary"]["counts"]["served"]
    assert sum(cause["releases"] for cause in found["causes"]) == served > 0
    for release in found["releases"]:
        assert sum(one["end_ns"] - one["start_ns"] for one in release["segments"]) == release["lateness_ns"]


def test_legs_go_by_a_clock_that_both_hosts_have(hosts: Hosts, tmp_path: Path) -> None:
    cell = measured(hosts, tmp_path / "cell", "--samples", "100", "--shared-clock", "tai", "--kernel-stamps")
    offset = cell["clock_offset"]
    assert offset["by"] == "CLOCK_TAI"  # one kernel's, whatever its time namespaces: it is known exactly
    assert abs(offset["offset_ns"] - PLANTED_NS) <= offset["error_ns"] < offset["witness"]["error_ns"]
    assert offset["exchanges"] == offset["witness"]["exchanges"] == cell["summary"]["counts"]["served"]
    rows = pq.read_table(tmp_path / "cell" / store.SAMPLES).to_pydict()
    legs = [
        leg
        for i, status in enumerate(rows["status"])
        if status == "served"
        for leg in (
            rows["server_received_ns"][i] - rows["sent_ns"][i],
            rows["received_ns"][i] - rows["server_sent_ns"][i],
        )
    ]
    assert min(legs) == offset["witness"]["least_leg_ns"] > 0
    off_ns = offset["error_ns"] + sum(one["error_ns"] for one in cell["kernel_stamps"].values())
    wires = [cell["summary"]["quantities"][name]["as_served"] for name in ("wire_ping", "wire_pong")]
    for wire in wires:  # of a veth pair: within the leg, on a clock that is another's
        assert wire["n"] == offset["exchanges"]
        assert -off_ns <= wire["min_ns"] <= max(legs)
    doubts = [doubt["type"] for doubt in cell["warnings"]]
    assert "shared_clock" in doubts and "clock_offset" not in doubts
    if time.clock_gettime_ns(time.CLOCK_TAI) - time.time_ns() < 10**9:  # of the client, and of the server
        assert doubts.count("tai_offset_unset") == 2
    said = rtmeter("summary", tmp_path / "cell").out
    assert f"ping ±{format_duration(round(offset['error_ns']))} by CLOCK_TAI" in " ".join(said.split())


def test_a_clock_that_the_other_host_has_not_is_named(hosts: Hosts, tmp_path: Path) -> None:
    given = ["--samples", "9", "--shared-clock", "tai", "--server-shared-clock", "/dev/ptp99"]
    asked = [*given, "--host", f"component={hosts.url}", "--out", tmp_path / "cell"]
    done = rtmeter(*MEASURE, *asked, **hosts.near_end())
    assert done.code == 1
    assert "/dev/ptp99" in done.err and "there is no such PTP hardware clock" in done.err


def test_hosts_that_read_one_clock(one_machine: Hosts, tmp_path: Path) -> None:
    cell = measured(one_machine, tmp_path / "cell", "--samples", "50")
    assert cell["clock_offset"] == {"same_clock": True}
    assert "clock_offset" not in [doubt["type"] for doubt in cell["warnings"]]


@pytest.mark.parametrize(
    ("adapter", "server_adapter"), [("cyclonedds", "fastdds"), ("fastdds", "cyclonedds")]
)
def test_ends_that_find_each_other_by_discovery(
    hosts: Hosts, tmp_path: Path, adapter: str, server_adapter: str
) -> None:
    if not {adapter, server_adapter} <= find_probes().keys():
        pytest.skip("the adapters are not built here")
    given = ["--adapter", adapter, "--server-adapter", server_adapter, *PATIENT]
    cell = measured(hosts, tmp_path / "cell", *given, "--samples", "100", "--reliability", "reliable")
    counts = cell["summary"]["counts"]
    assert counts["released"] == 100
    assert counts["replied_in_time"] + counts["missed"] > 0
    between = {} if adapter == server_adapter else {"interoperable": "yes"}
    assert cell["server_config"]["options"] == {"interface": ADDRESS, "peers": NEAR_ADDRESS} | between
    assert cell["server_adapter"] == server_adapter
    assert cell["clock_offset"]["exchanges"] > 0


@pytest.mark.parametrize("transport", ["tcp", "udp"])
def test_ends_that_find_each_other_by_a_master(hosts: Hosts, tmp_path: Path, transport: str) -> None:
    if "ros1" not in find_probes():
        pytest.skip("the adapter is not built here")
    given = ["--adapter", "ros1", "--option", f"transport={transport}", *PATIENT]
    cell = measured(hosts, tmp_path / "cell", *given, "--samples", "100")
    counts = cell["summary"]["counts"]
    assert counts["released"] == 100
    assert counts["replied_in_time"] + counts["missed"] > 0
    assert cell["server_config"]["options"] == {"transport": transport, "interface": ADDRESS}
    assert f"ran already, http://{ADDRESS}:" in cell["adapter_facts"]["master"]  # the server started it
    assert cell["clock_offset"]["exchanges"] > 0


def test_a_campaign_names_its_hosts(hosts: Hosts, tmp_path: Path) -> None:
    campaign = {
        "name": "two",
        "cells": [
            {"measurement": "roundtrip", "adapter": "posix", "samples": 30, "period": "2ms", "warm_up": "0s"}
            | {"hosts": {"controller": "local", "component": ["local", hosts.url]}}
        ],
    }
    (tmp_path / "two.yaml").write_text(json.dumps(campaign))
    done = rtmeter("run", tmp_path / "two.yaml", "--out", tmp_path / "results", **hosts.near_end())
    assert done.code == 0, done.err
    cells = [cell_json(folder) for folder in store.cell_folders(tmp_path / "results")]
    assert [cell["clock_offset"]["same_clock"] for cell in cells] == [True, False]
    assert [cell["hosts"]["component"] for cell in cells] == ["local", hosts.url]


@pytest.mark.parametrize(
    ("ssh", "url", "message", "remedy"),
    [
        ({"known": "empty"}, "", "Host key verification failed", "accept it"),
        ({"key": "stranger"}, "", "Permission denied", "log in with a key"),
        ({}, f"ssh://root@{ADDRESS}:1", "Connection refused", "start sshd there"),
        ({}, "ssh://root@no.such.host.invalid", "cannot be reached", "give its IP address"),
        ({}, "telnet://there", "is no host", "ssh://user@host"),
        ({}, "ssh://-oProxyCommand=x", "is no host", "ssh://user@host"),
    ],
)
def test_a_host_that_cannot_be_had(
    hosts: Hosts, tmp_path: Path, ssh: dict[str, str], url: str, message: str, remedy: str
) -> None:
    asked = ["--samples", "9", "--host", f"component={url or hosts.url}", "--out", tmp_path / "cell"]
    done = rtmeter(*MEASURE, *asked, **hosts.near_end(**ssh))
    assert done.code == 1
    assert "--host component" in done.err
    assert message in done.err
    assert remedy in done.err
    assert not (tmp_path / "cell").exists()


def test_a_server_that_is_a_part_of_the_client_has_no_other_host(hosts: Hosts, tmp_path: Path) -> None:
    given = ["--adapter", "null", "--period", "2ms", "--samples", "9", "--host", f"component={hosts.url}"]
    done = rtmeter("measure", "roundtrip", *given, "--out", tmp_path / "cell", **hosts.near_end())
    assert done.code == 1
    assert "--host component" in done.err
    assert "its server is a part of the client; leave it out" in done.err


def test_a_connection_that_is_cut_in_mid_run(hosts: Hosts, tmp_path: Path) -> None:
    arguments = [*MEASURE, "--samples", "100000", "--loss-timeout", "50ms", "--out", tmp_path / "cell"]
    with running(*arguments, "--host", f"component={hosts.url}", **hosts.near_end()) as process:
        wait_for_samples(tmp_path / "cell", process)
        hosts.kill("sshd")
        done = ended(process)
    assert done.code == 1
    assert "server" in done.err
    cell = cell_json(tmp_path / "cell")
    assert (cell["status"], cell["valid"]) == ("failed", False)
    assert cell["summary"]["counts"]["released"] > 0  # what the client measured is kept
    hosts.wait_until_ended()  # the server by itself


def test_an_interruption_ends_both_ends(hosts: Hosts, tmp_path: Path) -> None:
    arguments = [*MEASURE, "--samples", "100000", "--out", tmp_path / "cell"]
    with running(*arguments, "--host", f"component={hosts.url}", **hosts.near_end()) as process:
        wait_for_samples(tmp_path / "cell", process)
        process.send_signal(signal.SIGTERM)
        ended(process)
    cell = cell_json(tmp_path / "cell")
    assert (cell["status"], cell["valid"], cell["error"]) == ("interrupted", True, None)
    assert cell["clock_offset"]["exchanges"] > 0  # the server's log came home
    hosts.wait_until_ended()
