"""What goes wrong between DDS ends: nobody there, no match, too large, cut off, silent."""

from __future__ import annotations

import signal
import uuid
from pathlib import Path

import pytest
from dds_runs import AMONG_OTHERS, MS, SECOND, each_adapter, pairs, settled
from namespaces import ip, lose_link_for_a_while, quiet_network, two_namespaces
from probe_runs import LONG, Config, Probe, accounts, client_and_server, probe, read, refusal

from rtmeter.measure.probe.probes import find_probes
from waiting import until

PATIENT: Config = {"connect_timeout_ns": 3600 * SECOND}
"""For what discovery tells: it ends the wait by itself, however slow the machine."""

ALONE: Config = {"measurement": "roundtrip", "loss_timeout_ns": LONG, "connect_timeout_ns": SECOND}


def no_answer(folder: Path, config: Config, server_changes: Config) -> dict[str, str]:
    """The error of a client that runs beside a server which does not answer it."""
    with client_and_server(folder, {"connect_timeout_ns": SECOND} | config, server_changes) as (client, _):
        assert client.end() == 1
    return next(event for event in client.events if event["event"] == "error")


@each_adapter
def test_a_server_that_is_not_there_is_told_with_what_was_looked_for(tmp_path: Path, adapter: str) -> None:
    session = f"test-{uuid.uuid4()}"
    config = {"adapter": adapter, "role": "client", "session": session, "options": {"domain": "77"}}
    with quiet_network() as inside:
        error = refusal(tmp_path, ALONE | config | {"inside": inside})
    assert (error["field"], error["value"]) == ("server", session)
    for part in ("within 1000 ms", "domain 77", "udp on lo", "found 0 other participants", "ping", "pong"):
        assert part in error["message"], error
    assert error["remedy"]


@each_adapter
def test_a_server_in_another_domain_is_not_found(tmp_path: Path, adapter: str) -> None:
    config = {"adapter": adapter, "options": {"domain": "78"}}
    with quiet_network() as inside:
        error = no_answer(tmp_path, config | {"inside": inside}, {"options": {"domain": "79"}})
    assert error["field"] == "server"
    assert "found 0 other participants" in error["message"]


@pairs(
    ("cyclonedds", "cyclonedds"),
    ("fastdds", "fastdds"),
    ("cyclonedds", "fastdds"),
    ("fastdds", "cyclonedds"),
    ("cyclonedds", "dustdds"),
    ("dustdds", "fastdds"),
)
@pytest.mark.parametrize(
    ("client", "server", "at"),
    [("reliable", "best_effort", "reader of pong"), ("best_effort", "reliable", "writer of ping")],
)
def test_a_policy_that_does_not_match_is_named(
    tmp_path: Path, client_adapter: str, server_adapter: str, client: str, server: str, at: str
) -> None:
    config = PATIENT | AMONG_OTHERS | {"adapter": client_adapter, "reliability": client}
    error = no_answer(tmp_path, config, {"adapter": server_adapter, "reliability": server})
    assert error["field"] == "incompatible_qos"
    assert error["value"] == f"reliability ({at})"
    assert error["remedy"]


@pairs(("dustdds", "fastdds"))
def test_finite_durations_are_for_interoperation_alone(
    tmp_path: Path, client_adapter: str, server_adapter: str
) -> None:
    """Without them Dust DDS does not match Fast DDS; with them it does (test_dds.py)."""
    error = no_answer(tmp_path, PATIENT | {"adapter": client_adapter}, {"adapter": server_adapter})
    assert (error["field"], error["value"]) == ("incompatible_qos", "deadline (writer of ping)")


@each_adapter
def test_a_payload_that_no_socket_can_hold_is_told(tmp_path: Path, adapter: str) -> None:
    limit = int(Path("/proc/sys/net/core/rmem_max").read_text())
    payload = max(16 << 20, 4 * limit)
    if payload > 128 << 20:
        pytest.skip(f"sockets may hold {limit} bytes here")
    error = no_answer(tmp_path, {"adapter": adapter, "payload_bytes": payload}, {})
    assert error["field"] == "server"
    assert f"a payload of {payload} bytes" in error["message"]
    assert f"net.core.rmem_max = {limit}" in error["message"]


@pytest.mark.parametrize("beyond", [False, True])
@pytest.mark.parametrize("adapter", ["fastdds", "fastdds3", "lcm"])
def test_a_payload_is_held_against_the_buffer_that_the_sockets_have(
    tmp_path: Path, adapter: str, beyond: bool
) -> None:
    """These leave it to the system, which makes it smaller than it may be."""
    if adapter not in find_probes():
        pytest.skip(f"the adapter {adapter} is not built here")
    holds = int(Path("/proc/sys/net/core/rmem_default").read_text())
    payload = holds + 1 if beyond else holds
    config = {"adapter": adapter, "role": "client", "session": f"test-{uuid.uuid4()}"}
    error = refusal(tmp_path, ALONE | config | {"payload_bytes": payload})
    assert error["field"] == "server"
    told = f"a payload of {payload} bytes is more than the receive buffer of its sockets holds, {holds} bytes"
    assert (told in error["message"], "receive buffer" in error["message"]) == (beyond, beyond), error


@pairs(("cyclonedds", "fastdds"))
def test_two_runs_at_once_do_not_hear_each_other(
    tmp_path: Path, client_adapter: str, server_adapter: str
) -> None:
    """Even in one domain: a reply to another run's ping would be a duplicate or out of range."""
    config: Config = {"options": {"domain": "80"}, "period_ns": 4 * MS}
    folders = [tmp_path / "first", tmp_path / "second"]
    for folder in folders:
        folder.mkdir()
    first = config | {"adapter": client_adapter, "samples": 100}
    second = config | {"adapter": server_adapter, "samples": 50}
    with client_and_server(folders[0], first) as one, client_and_server(folders[1], second) as other:
        assert settled(*one)["released"] == 100
        assert settled(*other)["released"] == 50
    assert read(other[1].log)[1]["sequence"].max() < 100  # 50, and the warm-up


def in_namespace(name: str) -> list[str]:
    return ["ip", "netns", "exec", name]


def interrupted_with_losses(client: Probe, server: Probe) -> None:
    """A client that is ended by SIGTERM after some replies were lost; its accounts are whole."""
    client.process.send_signal(signal.SIGTERM)
    assert client.end() == 4
    found = accounts(client)
    assert found["lost"] > 0


@pairs(("cyclonedds", "fastdds"), ("fastdds", "cyclonedds"), ("dustdds", "dustdds"))
def test_a_link_that_goes_and_comes_back(tmp_path: Path, client_adapter: str, server_adapter: str) -> None:
    """Two hosts in miniature. Without multicast on their link, each is told where the other is."""
    with two_namespaces() as pair:
        left = {"interface": pair.left_device}
        right = {"interface": pair.right_device}
        if client_adapter != "dustdds":  # which finds others by multicast only
            ip("-n", pair.left, "link", "set", pair.left_device, "multicast", "off")
            ip("-n", pair.right, "link", "set", pair.right_device, "multicast", "off")
            left["peers"] = pair.right_address
            right["peers"] = pair.left_address
        config = {"adapter": client_adapter, "inside": in_namespace(pair.left), "options": left}
        config |= {"samples": 1_000_000, "loss_timeout_ns": 20 * MS, "period_ns": 5 * MS}
        changes = {"adapter": server_adapter, "inside": in_namespace(pair.right), "options": right}
        with client_and_server(tmp_path, config, changes) as (client, server):
            assert client.until("ready")["event"] == "ready"
            lose_link_for_a_while(pair, lambda: client.until("progress")["lost"])
            interrupted_with_losses(client, server)


@each_adapter
def test_an_interface_without_multicast_serves_one_host(tmp_path: Path, adapter: str) -> None:
    with two_namespaces() as pair:
        ip("-n", pair.left, "link", "set", pair.left_device, "multicast", "off")
        config = {
            "adapter": adapter,
            "inside": in_namespace(pair.left),
            "options": {"interface": pair.left_device},
        }
        if adapter == "dustdds":  # it knows no other way
            error = refusal(tmp_path, ALONE | config | {"role": "client", "session": "nobody"})
            assert (error["field"], error["value"]) == ("option interface", pair.left_device)
            assert "multicast" in error["message"]
            assert f"ip link set {pair.left_device} multicast on" in error["remedy"]
            return
        with client_and_server(tmp_path, config | {"period_ns": 2 * MS}) as (client, server):
            settled(client, server)
    assert pair.left_address in read(client.log)[0].meta["adapter"]["interface"]


@each_adapter
def test_a_client_that_waits_for_its_server_can_be_ended(tmp_path: Path, adapter: str) -> None:
    config = {"adapter": adapter, "role": "client", "samples": 10, "session": f"test-{uuid.uuid4()}"}
    with probe(tmp_path, ALONE | config | {"connect_timeout_ns": 600 * SECOND}) as one:
        tasks = Path(f"/proc/{one.process.pid}/task")
        until(lambda: len(list(tasks.iterdir())) >= 4, of=one.process)  # the middleware's came
        one.process.send_signal(signal.SIGTERM)
        assert one.end() == 4, one.events
