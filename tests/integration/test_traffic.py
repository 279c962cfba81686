"""Traffic by real iperf3: on loopback, between namespaces, cut off, and where it cannot be had."""

from __future__ import annotations

import os
import signal
import subprocess
from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest
from namespaces import Pair, two_namespaces
from strained import strain, stray, written

from rtmeter.conditions.monitor import FILE
from rtmeter.conditions.strain import strain_of
from rtmeter.errors import RtmeterError
from rtmeter.host import ssh
from rtmeter.host.root import Root
from rtmeter.model import Cell
from waiting import until

MBIT = 1_000_000


def asked(rate: int, reverse_rate: int, **more: Any) -> dict[str, Any]:
    return {"rate": rate, "reverse_rate": reverse_rate, "protocol": "udp"} | more


@pytest.mark.parametrize("protocol", ["udp", "tcp"])
def test_both_directions_flow_at_rates_of_their_own(tmp_path: Path, protocol: str) -> None:
    with strain(tmp_path, traffic=asked(4 * MBIT, MBIT, protocol=protocol, datagram=1000)) as strained:
        until(lambda: written("--client") > 1_500_000 and written("--server") > 375_000)  # of three seconds
    carried = strained.facts()["achieved"]["traffic"]
    assert 0 < carried["reverse"]["rate"] < 2 * MBIT < carried["forward"]["rate"] < 6 * MBIT
    for one in carried.values():
        assert (one["lost_ratio"] is None) == (protocol == "tcp")
        assert (one["retransmits"] is None) == (protocol == "udp")
        assert one["died"] is None
    assert pq.read_table(tmp_path / FILE)["traffic_streams"].to_pylist()[0] == 2
    assert stray("iperf3") == []


def test_one_direction_alone(tmp_path: Path) -> None:
    with strain(tmp_path, traffic=asked(0, MBIT)) as strained:
        until(lambda: written("--server") > 200_000)
    assert list(strained.facts()["achieved"]["traffic"]) == ["reverse"]
    assert "--reverse" in strained.facts()["effective"]["traffic"]["arguments"]["reverse"]


def test_between_two_namespaces(tmp_path: Path) -> None:
    """Seen by the devices at both ends, not by what iperf3 says of itself."""
    with two_namespaces() as pair:
        ends = {"from_namespace": pair.left, "to_namespace": pair.right, "to": pair.right_address}
        with strain(tmp_path, traffic=asked(2 * MBIT, MBIT, datagram=1000, **ends)) as strained:
            until(lambda: written("--client") > 500_000 and written("--server") > 250_000)
            until(lambda: leads(pair))  # as long as both flow: one ends before the other
    carried = strained.facts()["achieved"]["traffic"]
    assert carried["forward"]["rate"] > carried["reverse"]["rate"] > 0
    assert stray("iperf3") == []


def leads(pair: Pair) -> bool:
    """Whether the device at the left end sent more than it received, and the other received more."""
    sent, received = transferred(pair.left, pair.left_device)
    sent_back, arrived = transferred(pair.right, pair.right_device)
    return sent > 1.5 * received > 100_000 and arrived > 1.5 * sent_back > 100_000


def transferred(namespace: str, device: str) -> tuple[int, int]:
    """Bytes that the device sent and received."""
    command = ["ip", "netns", "exec", namespace, "cat", "/proc/net/dev"]
    listed = subprocess.run(command, check=True, capture_output=True, text=True).stdout
    (line,) = (line for line in listed.splitlines() if line.strip().startswith(f"{device}:"))
    fields = line.partition(":")[2].split()
    return int(fields[8]), int(fields[0])


@pytest.mark.parametrize("strict", [False, True])
@pytest.mark.parametrize("end", ["--client", "--server"])
def test_iperf3_is_killed_in_mid_run(tmp_path: Path, end: str, strict: bool) -> None:
    with strain(tmp_path, traffic=asked(MBIT, 0), strict=strict) as strained:
        until(lambda: written("--client") > 100_000)
        (victim,) = [pid for pid, args in stray("iperf3") if end in args]
        os.kill(victim, signal.SIGKILL)
        until(lambda: "traffic_died" in [doubt.type for doubt in strained.doubts()])
    (doubt,) = strained.doubts()
    assert doubt.type == "traffic_died"
    assert "after " in doubt.message
    failure = strained.failure()
    assert (failure is not None) == strict
    assert failure is None or (failure.field, failure.message) == ("traffic", doubt.message)
    assert strained.facts()["achieved"]["traffic"]["forward"]["died"]
    assert stray("iperf3") == []


def test_a_rate_that_the_link_cannot_carry(tmp_path: Path) -> None:
    """A token bucket of 1 Mbit/s between the two."""
    with two_namespaces() as pair:
        bucket = ["root", "tbf", "rate", "1mbit", "burst", "16kbit", "latency", "50ms"]
        command = ["tc", "-n", pair.left, "qdisc", "add", "dev", pair.left_device, *bucket]
        if subprocess.run(command, check=False, capture_output=True).returncode:
            pytest.skip("this kernel has no tbf")
        ends = {"from_namespace": pair.left, "to_namespace": pair.right, "to": pair.right_address}
        with strain(tmp_path, traffic=asked(5 * MBIT, 0, datagram=1000, **ends), strict=True) as strained:
            until(lambda: written("--client") > 1_000_000)
    carried = strained.facts()["achieved"]["traffic"]["forward"]
    assert 0 < carried["rate"] < 2 * MBIT
    assert carried["lost_ratio"] > 0.3
    assert [doubt.type for doubt in strained.doubts()] == ["traffic_not_reached"]
    failure = strained.failure()
    assert failure is not None
    assert "5 were asked" in failure.message


def test_iperf3_is_missing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(RtmeterError, match="needs iperf3") as raised, strain(tmp_path, traffic=asked(1, 0)):
        pass
    assert (raised.value.field, "apt-get install iperf3" in str(raised.value.remedy)) == ("traffic", True)


@pytest.mark.parametrize(
    ("more", "field", "words"),
    [
        ({"to": "no-such-host.invalid"}, "traffic.to", "give an IP address"),
        ({"to_namespace": "no-such-namespace"}, "traffic", "no-such-namespace"),
        ({"to": "10.99.0.2", "from_namespace": "no-such-namespace"}, "traffic", "no-such-namespace"),
    ],
)
def test_an_end_that_is_not_there(tmp_path: Path, more: dict[str, Any], field: str, words: str) -> None:
    with pytest.raises(RtmeterError) as raised, strain(tmp_path, traffic=asked(MBIT, MBIT, **more)):
        pass
    assert raised.value.field == field
    assert words in str(raised.value)
    assert stray("iperf3") == []


def test_nobody_listens_at_the_other_end(tmp_path: Path) -> None:
    with two_namespaces() as pair:
        ends = {"from_namespace": pair.left, "to": pair.right_address}
        with pytest.raises(RtmeterError) as raised, strain(tmp_path, traffic=asked(MBIT, 0, **ends)):
            pass
        assert "start `iperf3 --server --port 5201` there" in str(raised.value)


def test_a_server_that_was_there_already(tmp_path: Path) -> None:
    """Its figures are not ours: UDP's loss is then not known."""
    with two_namespaces() as pair:
        server = subprocess.Popen(["ip", "netns", "exec", pair.right, "iperf3", "--server", "--one-off"])
        try:
            ends = {"from_namespace": pair.left, "to": pair.right_address}
            until(lambda: listens(pair.right), of=server)
            with strain(tmp_path, traffic=asked(MBIT, 0, **ends)) as strained:
                until(lambda: written("--client") > 200_000)
        finally:
            server.kill()
            server.wait()
    carried = strained.facts()["achieved"]["traffic"]["forward"]
    assert (carried["rate"] > 0, carried["lost_ratio"], carried["seen_by"]) == (True, None, "sender")
    assert "traffic_loss_unknown" in [doubt.type for doubt in strained.doubts()]


def listens(namespace: str) -> bool:
    """Whether iperf3 takes connections there."""
    command = ["ip", "netns", "exec", namespace, "ss", "-Hltn"]
    return ":5201" in subprocess.run(command, check=True, capture_output=True, text=True).stdout


def test_the_server_is_started_on_the_cells_other_host(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """By ssh, for which a script stands that runs what it is given in the other namespace."""
    with two_namespaces() as pair:
        script = tmp_path / "ssh"
        script.write_text(
            "#!/bin/sh\n"
            f'[ "$1" = -G ] && exec echo hostname {pair.right_address}\n'
            'for last; do :; done; echo "Welcome!"\n'
            f'exec ip netns exec {pair.right} sh -c "$last"\n'
        )
        script.chmod(0o755)
        monkeypatch.setenv(ssh.PROGRAM, str(script))
        ends = {"from_namespace": pair.left}
        cell = Cell("cell", "posix", None, {}, {}, hosts={"controller": "local", "component": "ssh://there"})
        cell = replace(cell, conditions={"traffic": asked(MBIT, MBIT, **ends), "monitor_ns": 0})
        with strain_of(cell, tmp_path, Root()) as strained:
            until(lambda: written("--client") > 200_000 and written("--server") > 200_000)
        sent, _ = transferred(pair.left, pair.left_device)
        assert sent > 50_000
    carried = strained.facts()["achieved"]["traffic"]
    assert all(one["rate"] > 0 and one["lost_ratio"] is not None for one in carried.values())
    assert all(one["died"] is None for one in carried.values())
    assert stray("iperf3") == []
