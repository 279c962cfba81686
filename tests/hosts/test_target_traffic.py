"""Traffic of a target: its client is there, its server there or here, and both end with the connection."""

from __future__ import annotations

import signal
import subprocess
from pathlib import Path

import pytest
from two_hosts import DEVICE, NEAR_ADDRESS, Hosts, name_of

from front import ended, rtmeter, running
from rtmeter.conditions.iperf import Flow, is_own
from rtmeter.conditions.target import reached
from rtmeter.errors import RtmeterError
from rtmeter.host.root import Root
from rtmeter.host.ssh import PROGRAM
from stored import cell_json
from waiting import until

LONG = ["measure", "wakeup", "--adapter", "posix", "--period", "2ms", "--warm-up", "0", "--samples", "100000"]
ENOUGH = 300_000
"""Bytes: more than a second of either direction."""


def sent(hosts: Hosts, namespace: str, device: str) -> int:
    """Bytes, by a device of one of the two hosts."""
    told = ["ip", "netns", "exec", namespace, "cat", "/proc/net/dev"]
    listed = subprocess.run(told, check=True, capture_output=True, text=True).stdout
    (line,) = (line for line in listed.splitlines() if line.strip().startswith(f"{device}:"))
    return int(line.partition(":")[2].split()[8])


def traffic(to: str = "") -> list[str]:
    return ["--traffic", f"rate=2Mbit/s,reverse_rate=1Mbit/s,datagram=1000B{to}"]


def carried(folder: Path) -> dict[str, dict[str, float]]:
    """What arrived in each direction, of a cell that was ended."""
    cell = cell_json(folder)
    assert (cell["status"], cell["valid"]) == ("interrupted", True), cell["error"]
    found: dict[str, dict[str, float]] = cell["conditions"]["achieved"]["traffic"]
    assert all(one["died"] is None and one["lost_ratio"] is not None for one in found.values())
    assert found["forward"]["rate"] > found["reverse"]["rate"] > 0
    return found


def test_between_the_target_and_this_machine(hosts: Hosts, tmp_path: Path) -> None:
    left = hosts.logs()
    asked = [*LONG, *traffic(f",to={NEAR_ADDRESS}"), "--on", hosts.url, "--out", tmp_path / "cell"]
    with running(*asked, **hosts.near_end()) as process:
        until(lambda: hosts.programs().count("iperf3") == 2, of=process)
        hosts.wait_for_samples(left, process)
        for host in (hosts.near, hosts.far):
            before = sent(hosts, host, DEVICE)
            until(lambda host=host, before=before: sent(hosts, host, DEVICE) - before > ENOUGH, of=process)
        process.send_signal(signal.SIGTERM)
        ended(process)
    carried(tmp_path / "cell")
    hosts.wait_until_ended()


def test_within_the_target_where_nothing_else_is_said(hosts: Hosts, tmp_path: Path) -> None:
    left = hosts.logs()
    asked = [*LONG, *traffic(), "--on", hosts.url, "--out", tmp_path / "cell"]
    with running(*asked, **hosts.near_end()) as process:
        hosts.wait_for_samples(left, process)
        before = sent(hosts, hosts.far, "lo")
        until(lambda: sent(hosts, hosts.far, "lo") - before > 3 * ENOUGH, of=process)
        assert hosts.programs().count("iperf3") == 4
        process.send_signal(signal.SIGTERM)
        ended(process)
    carried(tmp_path / "cell")
    hosts.wait_until_ended()


@pytest.mark.parametrize("cut", ["front", "link"])
def test_it_ends_with_the_front_and_with_the_link(hosts: Hosts, tmp_path: Path, cut: str) -> None:
    left = hosts.logs()
    asked = [*LONG, *traffic(f",to={NEAR_ADDRESS}"), "--on", hosts.url, "--out", tmp_path / "cell"]
    with running(*asked, **hosts.near_end()) as process:
        until(lambda: hosts.programs().count("iperf3") == 2, of=process)
        hosts.wait_for_samples(left, process)
        if cut == "front":
            process.send_signal(signal.SIGKILL)
            process.wait()
        else:
            hosts.kill("sshd")
            assert ended(process).code == 1
    hosts.wait_until_ended()
    until(lambda: "iperf3" not in near_programs(hosts))


def near_programs(hosts: Hosts) -> list[str]:
    pids = subprocess.run(["ip", "netns", "pids", hosts.near], check=True, capture_output=True, text=True)
    return [name_of(int(pid)) for pid in pids.stdout.split()]


def test_where_nobody_listens_it_is_said_what_to_start(hosts: Hosts, tmp_path: Path) -> None:
    asked = [*LONG, *traffic(",to=10.83.0.77"), "--on", hosts.url, "--out", tmp_path / "cell"]
    done = rtmeter(*asked, **hosts.near_end())
    assert done.code == 1 and "start `iperf3 --server --port 5201` there" in done.err, done.err
    hosts.wait_until_ended()


def test_an_address_of_its_own_is_known(hosts: Hosts, monkeypatch: pytest.MonkeyPatch) -> None:
    own = f"ip netns exec {hosts.near} {hosts.ssh()}"
    monkeypatch.setenv(PROGRAM, own)
    addresses = ["10.83.0.2", "127.0.0.1", "::1", "10.83.0.1", "10.83.0.255", "10.83.0.77", "fe80::1"]
    with reached(hosts.url) as root:
        assert [is_own(root, one) for one in addresses] == [True] * 3 + [False] * 4
    assert is_own(Root(), "127.0.0.1") and not is_own(Root(), "10.83.0.2")


def test_a_target_without_iperf3_is_named(hosts: Hosts, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(PROGRAM, f"ip netns exec {hosts.near} {hosts.ssh()}")
    with reached(hosts.url) as root:
        monkeypatch.setattr(type(root), "has_program", lambda self, name: name != "iperf3")
        flow = Flow(1, "udp", NEAR_ADDRESS, root=root)
        with pytest.raises(RtmeterError, match="iperf3, which is not in the PATH of ssh://") as refused:
            flow.require_programs()
    assert refused.value.field == "traffic" and "install it" in (refused.value.remedy or "")
