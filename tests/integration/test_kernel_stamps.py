"""The kernel's own stamps of a round trip's messages, over loopback, however fast it is."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pyarrow.parquet as pq
import pytest
from namespaces import two_namespaces
from probe_runs import LONG, MS, Config, client_and_server, refusal

from front import rtmeter
from rtmeter.results import store
from rtmeter.samples import write_parquet
from rtmeter.values import format_duration
from stored import cell_json

MEASURE = ("measure", "roundtrip", "--adapter", "posix", "--period", "2ms", "--warm-up", "0")
PARTS = {
    "send_path": ("kernel_sent_ns", "sent_ns"),
    "wire_ping": ("server_kernel_received_ns", "kernel_sent_ns"),
    "server_receive_path": ("server_received_ns", "server_kernel_received_ns"),
    "server_send_path": ("server_kernel_sent_ns", "server_sent_ns"),
    "wire_pong": ("kernel_received_ns", "server_kernel_sent_ns"),
    "receive_path": ("received_ns", "kernel_received_ns"),
}


@pytest.mark.parametrize("receive", ["spin", "spin_once"])
def test_a_round_trip_is_the_sum_of_its_parts(tmp_path: Path, receive: str) -> None:
    asked = [*MEASURE, "--kernel-stamps", "--receive", receive, "--samples", "200", "--loss-timeout", "20s"]
    done = rtmeter(*asked, "--out", tmp_path / "cell")
    assert done.code == 0, done.err
    cell = cell_json(tmp_path / "cell")
    ends = cell["kernel_stamps"]
    assert set(ends) == {"client", "server"}
    rows = pq.read_table(tmp_path / "cell" / store.SAMPLES).to_pylist()
    served = [row for row in rows if row["status"] == "served"]  # a busy machine skips some
    assert served
    for row in served:
        parts = {name: row[later] - row[earlier] for name, (later, earlier) in PARTS.items()}
        inside = row["server_sent_ns"] - row["server_received_ns"]
        assert sum(parts.values()) + inside == row["received_ns"] - row["sent_ns"]
        off_ns = ends["client"]["error_ns"] + ends["server"]["error_ns"]
        assert min(parts.values()) >= -off_ns, parts
    for name in PARTS:
        assert cell["summary"]["quantities"][name]["as_served"]["n"] == len(served)
    error = format_duration(round(ends["client"]["error_ns"]))
    assert f"send_path ±{error}" in " ".join(done.out.split())
    assert rtmeter("report", tmp_path / "cell", "--out", tmp_path / "report.html").code == 0
    assert f"receive path (driver to callback) ±{error}" in (tmp_path / "report.html").read_text()


def test_without_being_asked_nothing_is_stamped(tmp_path: Path) -> None:
    assert rtmeter(*MEASURE, "--samples", "5", "--out", tmp_path / "cell").code == 0
    cell = cell_json(tmp_path / "cell")
    assert cell["kernel_stamps"] is None
    assert not PARTS.keys() & cell["summary"]["quantities"].keys()


def test_a_stamp_that_comes_too_late_is_left_out_and_taken_for_no_others(tmp_path: Path) -> None:
    with two_namespaces() as pair:
        bucket = ("root", "tbf", "rate", "1mbit", "burst", "8000", "latency", "500ms")  # 5, then 12 ms each
        shaped = subprocess.run(
            ["tc", "-n", pair.left, "qdisc", "add", "dev", pair.left_device, *bucket], check=False
        )
        if shaped.returncode != 0:
            pytest.skip("this kernel has no tbf")
        config: Config = {"kernel_stamps": True, "payload_bytes": 1400, "period_ns": 5 * MS, "samples": 99}
        config |= {"warm_up": 0, "receive": "spin_once", "inside": ["ip", "netns", "exec", pair.left]}
        config["overrun"] = "catch_up"  # however slow the machine, one message comes upon the other
        there = {"inside": ["ip", "netns", "exec", pair.right], "options": {"address": pair.right_address}}
        with client_and_server(tmp_path, config, there) as (client, server):
            assert client.end() == 0, client.events
            assert server.end() == 0, server.events
    write_parquet(client.log, tmp_path / "out", server.log)
    served = [row for row in pq.read_table(tmp_path / "out").to_pylist() if row["status"] == "served"]
    assert served
    told = [row for row in served if row["kernel_sent_ns"] is not None]
    assert told
    assert len(told) < len(served)  # those that the bucket held back
    for row in told:  # its own stamp, not that of the message before
        assert row["sent_ns"] - 1_000 <= row["kernel_sent_ns"] <= row["server_received_ns"]
    for row in served:
        assert row["kernel_received_ns"] is not None and row["server_kernel_sent_ns"] is not None


@pytest.mark.parametrize("transport", ["unix", "shm_futex"])
def test_a_transport_without_stamps_is_refused(tmp_path: Path, transport: str) -> None:
    config = {"measurement": "roundtrip", "role": "server", "kernel_stamps": True, "loss_timeout_ns": LONG}
    error = refusal(tmp_path, config | {"options": {"transport": transport}})
    assert error["field"] == "kernel_stamps"
    assert "stamps no messages of this transport" in error["message"]
    assert "transport=udp" in error["remedy"]


def test_an_adapter_without_stamps_is_refused_before_anything_starts(tmp_path: Path) -> None:
    asked = ("measure", "roundtrip", "--adapter", "null", "--kernel-stamps", "--samples", "5")
    done = rtmeter(*asked, "--out", tmp_path / "cell")
    assert done.code == 1
    assert "--kernel-stamps" in done.err and "the adapter null" in done.err
