"""What is asked of a machine, asked of two: made, watched and undone on both, whatever happens."""

from __future__ import annotations

import signal
from pathlib import Path

import pyarrow.parquet as pq
from runs import MEASURE, measured, restore, wait_for_samples
from two_hosts import ADDRESS, DEVICE, Hosts

from front import ended, rtmeter, running
from stored import cell_json

LONG = [*MEASURE, "--samples", "100000", "--loss-timeout", "50ms"]
LITTLE = "cpu=1,cpu_percent=10"
QDISC = ["--condition", f"qdisc.{DEVICE}=pfifo limit 77"]


def test_conditions_are_made_and_undone_on_both_hosts(hosts: Hosts, tmp_path: Path) -> None:
    before = hosts.qdiscs()
    load = [
        "--load",
        "cpu=1,cpu_percent=20",
        "--traffic",
        "rate=2Mbit/s,reverse_rate=1Mbit/s",
        "--monitor",
        "200ms",
    ]
    arguments = [*LONG, "--host", f"component={hosts.url}", *QDISC, *load]
    with running(*arguments, "--out", tmp_path / "cell", **hosts.near_end()) as process:
        wait_for_samples(tmp_path / "cell", process)
        programs, during = hosts.programs(), hosts.qdiscs()
        process.send_signal(signal.SIGTERM)
        ended(process)
    assert all("pfifo" in qdisc and "limit 77p" in qdisc for qdisc in during)
    assert {"stress-ng", "stress-ng-cpu", "iperf3", "rtmeter-probe-p"} <= set(programs)
    assert hosts.qdiscs() == before
    hosts.wait_until_ended()
    assert list(hosts.temporary.iterdir()) == []
    cell = cell_json(tmp_path / "cell")
    assert (cell["status"], cell["valid"]) == ("interrupted", True)
    here, there = cell["conditions"], cell["conditions"]["server"]
    assert there["same_machine"] is False
    assert there["asked"] == {part: here["asked"][part] for part in ("settings", "load")}
    assert there["effective"]["settings"] == here["effective"]["settings"]
    assert list(there["effective"]["settings"][f"qdisc.{DEVICE}"]) == [f"root qdisc of {DEVICE}"]
    assert there["effective"]["load"]["workers"] == {"cpu": 1}
    assert there["effective"]["load"]["version"] == here["effective"]["load"]["version"] is not None
    assert there["achieved"]["load"]["operations"]["cpu"] > 0
    assert there["achieved"]["load"]["own"] > 0
    assert there["achieved"]["machine"]["load_workers_max"] == 1
    rows = pq.read_table(tmp_path / "cell" / "server_monitor.parquet").to_pylist()
    assert len(rows) >= 2
    assert all(row["cpu0_busy"] is not None for row in rows)
    for direction in ("forward", "reverse"):
        assert ADDRESS in here["effective"]["traffic"]["arguments"][direction]
        assert here["achieved"]["traffic"][direction]["rate"] > 0
    assert {finding["id"] for finding in cell["server_findings"]} >= {"kernel_not_preempt_rt"} & {
        finding["id"] for finding in cell["findings"]
    }
    assert len(cell["server_findings"]) > 3


def test_the_servers_host_may_be_asked_for_something_else(hosts: Hosts, tmp_path: Path) -> None:
    cell = measured(
        hosts, tmp_path / "cell", "--samples", "50", *QDISC, "--load", LITTLE, "--server-load", "idle"
        , "--server-condition", f"qdisc.{DEVICE}=pfifo limit 5"
    )  # fmt: skip
    there = cell["conditions"]["server"]
    assert there["asked"]["load"] == {"preset": "idle"}
    assert "load" not in there["effective"]
    assert "limit 5" in str(there["effective"]["settings"][f"qdisc.{DEVICE}"])
    assert "limit 77" in str(cell["conditions"]["effective"]["settings"][f"qdisc.{DEVICE}"])


def test_a_namespace_of_this_machine_has_its_conditions_already(one_machine: Hosts, tmp_path: Path) -> None:
    asked = [*QDISC, "--load", LITTLE, "--server-load", "cpu=2,cpu_percent=5"]
    cell = measured(one_machine, tmp_path / "cell", "--samples", "50", *asked)
    there = cell["conditions"]["server"]
    assert there["same_machine"] is True
    assert there["asked"] == {"load": {"cpu": 2, "cpu_percent": 5}}  # what it is asked for itself
    assert "settings" not in there["effective"]
    assert there["effective"]["load"]["workers"] == {"cpu": 2}


def test_what_a_killed_rtmeter_had_made_there(hosts: Hosts, tmp_path: Path) -> None:
    before = hosts.qdiscs()
    load = ["--load", "cpu=2,cpu_percent=10", "--traffic", "1Mbit/s"]
    asked = ["--host", f"component={hosts.url}", *QDISC, *load, "--out", tmp_path / "cell"]
    with running(*LONG, *asked, **hosts.near_end()) as process:
        wait_for_samples(tmp_path / "cell", process)
        process.send_signal(signal.SIGKILL)
        process.wait()
    hosts.wait_until_ended()
    assert all("limit 77p" in qdisc for qdisc in hosts.qdiscs())
    code, said = restore(hosts, known="empty")
    assert code == 1
    assert (
        f"{hosts.url}: it may not be as it was found: cannot be reached: Host key verification failed" in said
    )
    assert f"{hosts.url}: the journal is kept as " in said
    assert hosts.qdiscs()[0] == before[0]
    assert "limit 77p" in hosts.qdiscs()[1]
    code, said = restore(hosts)
    assert code == 0
    assert f"{hosts.url}: root qdisc of {DEVICE}: taken away" in said or "put back to" in said
    assert hosts.qdiscs() == before
    assert restore(hosts) == (0, "nothing was to be put back\n")


def test_what_a_cut_connection_leaves_is_undone_by_the_next_run(hosts: Hosts, tmp_path: Path) -> None:
    before = hosts.qdiscs()
    asked = ["--host", f"component={hosts.url}", *QDISC, "--load", LITTLE]
    with running(*LONG, *asked, "--out", tmp_path / "cell", **hosts.near_end()) as process:
        wait_for_samples(tmp_path / "cell", process)
        hosts.kill("sshd")
        done = ended(process)
    assert done.code == 1
    assert "rtmeter: setting_not_put_back: " in done.err
    cell = cell_json(tmp_path / "cell")
    assert (cell["status"], cell["valid"]) == ("failed", False)
    (doubt,) = [doubt for doubt in cell["warnings"] if doubt["type"] == "setting_not_put_back"]
    assert hosts.url in doubt["message"]
    assert "the connection is lost" in doubt["message"]
    assert doubt["hint"] == "run `rtmeter restore`"
    hosts.wait_until_ended()
    now = hosts.qdiscs()
    assert (now[0] == before[0], "limit 77p" in now[1]) == (True, True)
    measured(hosts, tmp_path / "next", "--samples", "20")
    assert hosts.qdiscs() == before


def test_one_rtmeter_measures_a_component(hosts: Hosts, tmp_path: Path) -> None:
    component = ["--host", f"component={hosts.url}"]
    with running(*LONG, *component, "--out", tmp_path / "one", **hosts.near_end()) as process:
        wait_for_samples(tmp_path / "one", process)
        near = hosts.near_end() | {"RTMETER_STATE_DIR": str(tmp_path / "state")}
        done = rtmeter(*LONG, *component, "--out", tmp_path / "two", **near)
        assert done.code == 1
        assert "is measured already, by rtmeter on " in done.err
        assert f"process {process.pid}" in done.err
        process.send_signal(signal.SIGTERM)
        ended(process)


def test_a_load_that_dies_there_fails_a_strict_cell(hosts: Hosts, tmp_path: Path) -> None:
    asked = ["--host", f"component={hosts.url}", "--server-load", LITTLE, "--strict"]
    with running(*LONG, *asked, "--out", tmp_path / "cell", **hosts.near_end()) as process:
        wait_for_samples(tmp_path / "cell", process)
        hosts.kill("stress-ng")
        done = ended(process)
    assert done.code == 1, done.err
    error = cell_json(tmp_path / "cell")["error"]
    assert error["field"] == "server_load"
    assert f"{hosts.url}: stress-ng ended while it was needed" in error["message"]
    hosts.wait_until_ended()
