"""What goes wrong between eCAL's ends: nobody there, other layers, too large, cut off, silent, badly set.

That two runs do not hear each other, and that a server which is killed or stands still costs replies only,
shows rtmeter check-adapter for the options' defaults.
"""

from __future__ import annotations

import signal
import uuid
from dataclasses import replace
from pathlib import Path

import pytest
from dds_runs import MS, SECOND, settled
from namespaces import ip, lose_link_for_a_while, quiet_network, two_namespaces
from probe_runs import LONG, Config, Probe, accounts, client_and_server, probe, read, refusal

from rtmeter.measure.probe.probes import find_probes
from rtmeter.samples import LogReader
from waiting import until

pytestmark = pytest.mark.skipif("ecal" not in find_probes(), reason="the adapter ecal is not built here")

ECAL: Config = {"adapter": "ecal"}
ALONE: Config = ECAL | {"measurement": "roundtrip", "role": "client", "loss_timeout_ns": LONG}
PATIENT: Config = ECAL | {"connect_timeout_ns": 3600 * SECOND}
"""For what registration tells: it ends the wait by itself, however slow the machine."""
ENDLESS: Config = ECAL | {"samples": 1_000_000, "loss_timeout_ns": 20 * MS, "period_ns": 5 * MS}

layers = pytest.mark.parametrize("transport", ["shm", "udp"])


def told(client: Probe) -> dict[str, str]:
    """The error of a client that gets no answer."""
    assert client.end() == 1
    return next(event for event in client.events if event["event"] == "error")


def interrupted_with_losses(client: Probe) -> None:
    """A client that is ended by SIGTERM after some replies were lost; its accounts are whole."""
    client.process.send_signal(signal.SIGTERM)
    assert client.end() == 4
    found = accounts(client)
    assert found["lost"] > 0


@layers
def test_a_server_that_is_not_there_is_told_with_what_was_looked_for(tmp_path: Path, transport: str) -> None:
    session = f"test-{uuid.uuid4()}"
    config = {"session": session, "connect_timeout_ns": SECOND, "options": {"transport": transport}}
    error = refusal(tmp_path, ALONE | config)
    assert (error["field"], error["value"]) == ("server", session)
    looked_for = (f"registration, {transport}, this host", "found 0 subscribers of", "0 publishers of")
    for part in ("within 1000 ms", *looked_for, "/ping", "/pong"):
        assert part in error["message"], error
    assert error["remedy"]


def test_a_server_of_another_session_is_not_found(tmp_path: Path) -> None:
    with client_and_server(
        tmp_path, ECAL | {"connect_timeout_ns": 3 * SECOND}, {"session": f"test-{uuid.uuid4()}"}
    ) as (client, server):
        assert "found 0 subscribers of" in told(client)["message"]
        assert server.end() == 0
    assert "found 0 subscribers of" in LogReader(server.log).meta["adapter"]["discovery"]


@pytest.mark.parametrize(("ours", "theirs"), [("shm", "udp"), ("udp", "shm")])
def test_ends_of_different_layers_are_told_apart(tmp_path: Path, ours: str, theirs: str) -> None:
    """They count each other as connected, and hear nothing."""
    config = PATIENT | {"options": {"transport": ours}}
    with client_and_server(tmp_path, config, {"options": {"transport": theirs}}) as (client, _):
        error = told(client)
    assert error["field"] == "incompatible_qos"
    assert error["value"] in ("transport (publisher of ping)", "transport (subscriber of pong)")
    assert error["remedy"]


def test_a_handshake_is_the_senders_alone(tmp_path: Path) -> None:
    config = ECAL | {"reliability": "reliable", "period_ns": 4 * MS, "samples": 25}
    with client_and_server(tmp_path, config, {"reliability": "best_effort"}) as (client, server):
        assert settled(client, server)["lost"] == 0
    qos = [read(end.log)[0].meta["adapter"]["qos"]["history"] for end in (client, server)]
    assert qos == ["wait_for_reader", "keep_last"]


@pytest.mark.parametrize("beyond", [False, True])
def test_a_payload_is_held_against_the_buffer_that_the_sockets_have(tmp_path: Path, beyond: bool) -> None:
    """By UDP; eCAL asks for 5 MiB, of which the system gives what it may, and counts twice as much."""
    granted = min(5 << 20, int(Path("/proc/sys/net/core/rmem_max").read_text()))
    payload = 2 * granted + beyond
    config = ALONE | {"session": f"test-{uuid.uuid4()}", "options": {"transport": "udp"}}
    error = refusal(tmp_path, config | {"payload_bytes": payload, "connect_timeout_ns": SECOND})
    assert error["field"] == "server"
    held = f"a payload of {payload} bytes is more than the receive buffer of its sockets holds, {2 * granted}"
    assert (held in error["message"]) == beyond, error


@pytest.mark.parametrize(
    ("asked", "fits"),
    [
        ({"payload_bytes": 400_000}, True),
        ({"payload_bytes": 600_000}, False),
        ({"payload_bytes": 400_000, "history_depth": 2}, False),
    ],
)
def test_messages_that_shared_memory_has_no_room_for_are_refused(
    tmp_path: Path, asked: Config, fits: bool
) -> None:
    """A MiB of it: eCAL would be killed by SIGBUS at its first message."""
    with quiet_network() as inside:
        if not inside:
            pytest.skip("another /dev/shm needs root")
        small = 'mount -t tmpfs -o size=1m tmpfs /dev/shm && exec "$@"'
        config = ALONE | {"session": "small", "inside": [*inside, "unshare", "-m", "sh", "-c", small, "sh"]}
        error = refusal(tmp_path, config | {"connect_timeout_ns": SECOND} | asked)
    assert error["field"] == ("server" if fits else "payload_bytes")
    assert fits or f"/dev/shm has room for {1 << 20} bytes" in error["message"]
    assert error["remedy"]


@pytest.mark.parametrize("how", [signal.SIGKILL, signal.SIGSTOP])
@pytest.mark.parametrize(
    "asked",
    [
        {"options": {"transport": "udp"}},
        {"options": {"zero_copy": "yes"}},
        {"history_depth": 3},
        {"reliability": "reliable"},
    ],
    ids=["udp", "zero copy", "three files", "reliable"],
)
def test_replies_that_never_come_are_lost_and_nothing_else(
    tmp_path: Path, asked: Config, how: signal.Signals
) -> None:
    with client_and_server(tmp_path, ENDLESS | asked) as (client, server):
        while client.until("progress")["max_ns"] is None:  # nothing came back yet
            pass
        server.process.send_signal(how)
        before = client.until("progress")["lost"]
        while client.until("progress")["lost"] < before + 10:
            pass
        interrupted_with_losses(client)


def test_a_link_that_goes_and_comes_back(tmp_path: Path) -> None:
    """Of a host's own messages it is the loopback."""
    with two_namespaces() as pair:
        inside = ["ip", "netns", "exec", pair.left]
        config = ENDLESS | {"inside": inside, "options": {"transport": "udp"}}
        with client_and_server(tmp_path, config) as (client, _):
            assert client.until("ready")["event"] == "ready"
            lose_link_for_a_while(replace(pair, left_device="lo"), lambda: client.until("progress")["lost"])
            interrupted_with_losses(client)


@layers
def test_one_host_needs_no_multicast(tmp_path: Path, transport: str) -> None:
    with two_namespaces() as pair:
        for device in ("lo", pair.left_device):
            ip("-n", pair.left, "link", "set", device, "multicast", "off")
        inside = ["ip", "netns", "exec", pair.left]
        config = ECAL | {"inside": inside, "options": {"transport": transport}, "period_ns": 4 * MS}
        with client_and_server(tmp_path, config | {"samples": 25}) as (client, server):
            settled(client, server)


@layers
def test_a_client_that_waits_for_its_server_can_be_ended(tmp_path: Path, transport: str) -> None:
    config = {"session": f"test-{uuid.uuid4()}", "options": {"transport": transport}}
    with probe(tmp_path, ALONE | config | {"samples": 10, "connect_timeout_ns": 600 * SECOND}) as one:
        tasks = Path(f"/proc/{one.process.pid}/task")
        until(lambda: len(list(tasks.iterdir())) >= 4, of=one.process)  # the middleware's came
        one.process.send_signal(signal.SIGTERM)
        assert one.end() == 4, one.events


@pytest.mark.parametrize(
    "written",
    [
        "publisher: [1",
        "publisher:\n  layer:\n    shm:\n      zero_copy_mode: true\n      memfile_buffer_count: many\n",
    ],
)
def test_a_settings_file_that_cannot_be_read_is_refused(tmp_path: Path, written: str) -> None:
    """eCAL would go on with the sections before the wrong one."""
    yaml = tmp_path / "ecal.yaml"
    yaml.write_text(written)
    config = {"session": "badly-set", "environment": {"ECAL_DATA": str(tmp_path)}}
    error = refusal(tmp_path, ALONE | config)
    assert (error["field"], error["value"]) == ("ecal.yaml", str(yaml))
    assert "eCAL cannot read it: " in error["message"]
    assert "ECAL_DATA" in error["remedy"]
