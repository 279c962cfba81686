"""A target: all of a cell runs on a machine that has sshd, and the front stays here."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import time
from pathlib import Path

import pyarrow.parquet as pq
import pytest
from two_hosts import DEVICE, PLANTED_NS, Hosts

from front import Done, ended, rows_of, rtmeter, running
from stored import cell_json
from waiting import until

WAKEUP = ["measure", "wakeup", "--adapter", "posix", "--period", "2ms", "--warm-up", "0"]
QDISC = ["--condition", f"qdisc.{DEVICE}=pfifo limit 77"]
LONG = [*WAKEUP, "--samples", "100000", *QDISC]


def measured(hosts: Hosts, folder: Path, *arguments: object) -> Done:
    return rtmeter(*arguments, "--on", hosts.url, "--out", folder, **hosts.near_end())


def restored(hosts: Hosts) -> Done:
    return rtmeter("restore", "--on", hosts.url, **hosts.near_end())


def script(folder: Path) -> Path:
    """Delays of the null adapter; every fourth wake-up is late by 3 ms."""
    rows = [f"{1000 * (k % 7) + (3_000_000 if k % 4 == 0 else 0)}" for k in range(28)]
    file = folder / "script.csv"
    file.write_text("wake_delay_ns\n" + "\n".join(rows) + "\n")
    return file


def test_a_target_run_equals_a_local_one(hosts: Hosts, tmp_path: Path) -> None:
    asked = [
        "measure",
        "wakeup",
        "--adapter",
        "null",
        "--period",
        "1ms",
        "--samples",
        "200",
        "--warm-up",
        "0",
    ]
    asked += ["--script", script(tmp_path), "--deadline", "2ms"]
    left = set(hosts.temporary.iterdir())
    here = rtmeter(*asked, "--out", tmp_path / "here", **hosts.near_end())
    there = measured(hosts, tmp_path / "there", *asked)
    assert (there.code, here.code) == (2, 2), there.err
    one, other = (pq.read_table(tmp_path / name / "samples.parquet") for name in ("here", "there"))
    assert one.num_rows == 200 and one.equals(other)
    mine, theirs = cell_json(tmp_path / "here"), cell_json(tmp_path / "there")
    for key in ("summary", "verdict", "counters", "grid", "config", "adapter", "status", "valid", "missing"):
        assert mine[key] == theirs[key], key
    assert (mine["hosts"], theirs["hosts"]) == ({}, {"target": hosts.url})
    assert theirs["machine"]["machine_id"] == mine["machine"]["machine_id"]  # the namespace has the same file
    hosts.wait_until_ended()
    assert set(hosts.temporary.iterdir()) == left


def test_what_a_login_shell_prints_is_no_answer(hosts: Hosts, tmp_path: Path) -> None:
    profile = hosts.folder / "home" / ".profile"
    profile.write_text("echo 'Welcome to the lab'; echo 'folder /etc'\n")
    try:
        done = measured(hosts, tmp_path / "cell", *WAKEUP, "--samples", "20")
        listed = rtmeter("adapters", "posix", "--on", hosts.url, "--json", **hosts.near_end())
    finally:
        profile.unlink()
    assert (done.code, listed.code) == (0, 0), done.err + listed.err
    assert pq.read_table(tmp_path / "cell" / "samples.parquet").num_rows == 20
    assert [entry.get("error") for entry in listed.json["adapters"]] == [None]


def test_both_ends_settings_and_load_are_there(hosts: Hosts, tmp_path: Path) -> None:
    before = hosts.qdiscs()
    asked = ["measure", "roundtrip", "--adapter", "posix", "--period", "2ms", "--samples", "100000"]
    load = ["--load", "cpu=1,cpu_percent=10", "--monitor", "200ms", "--loss-timeout", "50ms", *QDISC]
    out = tmp_path / "cell"
    left = hosts.logs()
    with running(*asked, *load, "--on", hosts.url, "--out", out, **hosts.near_end()) as process:
        until(lambda: hosts.programs().count("rtmeter-probe-p") == 2, of=process)
        hosts.wait_for_samples(left, process)
        programs, during = hosts.programs(), hosts.qdiscs()
        assert (hosts.state / "journal").exists()
        process.send_signal(signal.SIGTERM)
        ended(process)
    assert {"stress-ng", "stress-ng-cpu", "rtmeter-probe-p"} <= set(programs)
    assert during[0] == before[0] and "limit 77p" in during[1]
    assert hosts.qdiscs() == before
    assert not (hosts.state / "journal").exists()
    cell = cell_json(out)
    assert (cell["status"], cell["valid"]) == ("interrupted", True), cell["error"]
    assert "limit 77" in str(cell["conditions"]["effective"]["settings"][f"qdisc.{DEVICE}"])
    assert cell["conditions"]["achieved"]["load"]["operations"]["cpu"] > 0
    assert cell["server_config"] is not None
    assert len(cell["findings"]) > 3
    first = cell["grid"]["t0_ns"]
    assert first > PLANTED_NS
    at_ns = pq.read_table(out / "monitor.parquet").column("at_ns").to_pylist()
    assert at_ns and all(abs(at - first) < PLANTED_NS // 10 for at in at_ns)  # by the target's clock


def test_what_a_killed_front_left_is_put_back_by_the_journal_there(hosts: Hosts, tmp_path: Path) -> None:
    before, left = hosts.qdiscs(), hosts.logs()
    with running(*LONG, "--on", hosts.url, "--out", tmp_path / "cell", **hosts.near_end()) as process:
        hosts.wait_for_samples(left, process)
        process.send_signal(signal.SIGKILL)
        process.wait()
    hosts.wait_until_ended()
    assert "limit 77p" in hosts.qdiscs()[1]
    lines = (hosts.state / "journal").read_bytes().splitlines()
    assert [json.loads(line.partition(b" ")[2])["setting"] for line in lines] == [f"qdisc.{DEVICE}"]
    done = restored(hosts)
    assert done.code == 0, done.err
    assert f"root qdisc of {DEVICE}: " in done.out
    assert hosts.qdiscs() == before
    assert not (hosts.state / "journal").exists()
    again = restored(hosts)
    assert (again.code, again.out) == (0, "nothing was to be put back\n")


def test_a_cut_link_fails_the_cell_and_the_next_one_restores(hosts: Hosts, tmp_path: Path) -> None:
    before, left = hosts.qdiscs(), hosts.logs()
    with running(*LONG, "--on", hosts.url, "--out", tmp_path / "cell", **hosts.near_end()) as process:
        hosts.wait_for_samples(left, process)
        hosts.kill("sshd")
        done = ended(process)
    assert done.code == 1
    assert "the connection is lost" in done.err or "cannot be reached" in done.err or "died" in done.err
    hosts.wait_until_ended()
    assert "limit 77p" in hosts.qdiscs()[1]
    next_one = measured(hosts, tmp_path / "next", *WAKEUP, "--samples", "20")
    assert next_one.code == 0, next_one.err
    assert f"{hosts.url}: after a run that was killed: root qdisc of {DEVICE}" in next_one.err
    assert hosts.qdiscs() == before


def test_what_a_target_has_is_told_and_nothing_stays_there(hosts: Hosts) -> None:
    left = set(hosts.temporary.iterdir())
    listed = rtmeter("adapters", "--on", hosts.url, "--json", **hosts.near_end())
    (posix,) = [entry for entry in listed.json["adapters"] if entry["name"] == "posix"]
    assert "wakeup" in posix["measures"]
    assert set(hosts.temporary.iterdir()) == left
    looked = rtmeter("check", "--on", hosts.url, "--json", **hosts.near_end())
    assert looked.code in (0, 2, 3)
    assert len(looked.json["findings"]) > 3
    refused = rtmeter("check", "--on", "board")
    assert (refused.code, "--on" in refused.err) == (1, True)


def test_a_chain_begins_by_the_clock_there_and_ends_with_the_front(hosts: Hosts, tmp_path: Path) -> None:
    graph, left = tmp_path / "graph.yaml", hosts.logs()
    graph.write_text("stages:\n  camera: {period: 5ms}\n  motor: {inputs: camera}\n")
    asked = ["measure", "chain", "--adapter", "posix", "--graph", graph, "--warm-up", "0"]
    done = measured(hosts, tmp_path / "cell", *asked, "--samples", "20")
    assert done.code == 0, done.err
    first = cell_json(tmp_path / "cell")["grid"]["t0_ns"]
    assert PLANTED_NS < first < PLANTED_NS + time.monotonic_ns()
    long = [*asked, "--samples", "1000000", "--on", hosts.url, "--out", tmp_path / "long"]
    with running(*long, **hosts.near_end()) as process:
        until(lambda: hosts.programs().count("rtmeter-probe-p") == 2, of=process)
        until(lambda: any(rows_of(log) > 10 for log in hosts.temporary.glob("*/*.rtlog") if log not in left))
        process.send_signal(signal.SIGKILL)
        process.wait()
    hosts.wait_until_ended()


@pytest.fixture
def traceable_target(one_machine: Hosts) -> Hosts:
    """Whose clocks are those of the kernel's events."""
    if str(Path("/proc/self/ns/pid").readlink()) != "pid:[4026531836]":
        pytest.skip("in a PID namespace")
    if "tracefs" not in Path("/proc/filesystems").read_text().split():
        pytest.skip("needs tracefs")
    return one_machine


def test_the_recording_of_a_killed_front_ends_there_with_its_files_and_instance(
    traceable_target: Hosts, tmp_path: Path
) -> None:
    hosts = traceable_target
    assert hosts.daemon is not None
    asked = [*WAKEUP, "--samples", "100000", "--explain", "--on", hosts.url, "--out", tmp_path / "cell"]
    with running(*asked, **hosts.near_end()) as process:
        hosts.wait_for_samples(set(), process)
        (mine,) = re.findall(r"[^\"]+/rtmeter-[0-9]+-[0-9a-f]{12}", (hosts.state / "journal").read_text())
        instance = Path(f"/proc/{hosts.daemon.pid}/root{mine}")
        assert instance.is_dir()
        until(lambda: any(path.stat().st_size for path in hosts.temporary.glob("*/cpu0")), of=process)
        process.send_signal(signal.SIGKILL)
        process.wait()
    hosts.wait_until_ended()
    assert not instance.exists()
    assert list(hosts.temporary.glob("*/cpu*")) == []
    done = restored(hosts)
    assert done.code == 0 and f"{mine}: was not there" in done.out, done.out + done.err
    assert not (hosts.state / "journal").exists()


@pytest.mark.parametrize("killed", ["the front", "the link"])
def test_what_is_attached_to_there_ends_with_the_front_and_with_the_link(
    traceable_target: Hosts, tmp_path: Path, killed: str
) -> None:
    hosts = traceable_target
    asked = ["attach", "--on", hosts.url, "--thread", "sleep", "--duration", "1h", "--out", tmp_path / "cell"]
    with running(*asked, "--", "sleep", "10000", **hosts.near_end()) as process:
        until(lambda: any(path.stat().st_size for path in hosts.temporary.glob("*/cpu0")), of=process)
        words = {argument(pid, -2).decode() for pid in hosts.sessions()}  # a shell's fork has the shell's
        (name,) = (word for word in words if "rtmeter-attach-" in word)
        assert name in instances() and "sleep" in hosts.programs()
        if killed == "the link":
            for connection in hosts.connections():
                os.kill(connection, signal.SIGKILL)
            done = ended(process)
            assert done.code == 1 and "attach" in done.err, done.err
        else:
            process.send_signal(signal.SIGKILL)
            process.wait()
    hosts.wait_until_ended()
    assert list(hosts.temporary.iterdir()) == []
    assert name not in instances()


def instances() -> list[str]:
    """Of tracefs, looked at where nobody else sees it."""
    at = "/sys/kernel/tracing"
    look = f"[ -d {at}/instances ] || mount -t tracefs tracefs {at}; ls {at}/instances"
    private = ["unshare", "--mount", "--propagation", "private", "sh", "-c", look]
    return subprocess.run(private, capture_output=True, text=True, check=True, timeout=60).stdout.split()


def argument(pid: int, place: int) -> bytes:
    """Of a process; nothing if it has none there, or has ended."""
    try:
        return Path(f"/proc/{pid}/cmdline").read_bytes().split(b"\0")[:-1][place]
    except (OSError, IndexError):
        return b""
