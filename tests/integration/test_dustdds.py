"""What only Dust DDS has: threads that names do not tell apart, multicast alone, waits that are put aside."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest
from dds_runs import CYCLE, MS, built, settled, threads_of
from namespaces import two_namespaces
from probe_runs import LONG, Config, client_and_server, counts, measure, probe, read, refusal

from waiting import until

pytestmark = built["dustdds"]

DUST: Config = {"adapter": "dustdds"}
NAMES = ["Dust DDS Execut", "SomethingOnDefa", "SomethingOnMeta", "SomethingOnMeta"]
HEARD = """
import socket, sys
group, port, interface = sys.argv[1:]
with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as ear:
    ear.bind((group, int(port)))
    member = socket.inet_aton(group) + socket.inet_aton(interface)
    ear.setsockopt(socket.IPPROTO_IP, socket.IP_ADD_MEMBERSHIP, member)
    print("listens", flush=True)
    sys.stdin.read()
    ear.setblocking(False)
    try:
        ear.recv(65536)
        print("heard")
    except BlockingIOError:
        print("silence")
"""


def test_the_audit_names_its_threads(tmp_path: Path) -> None:
    reader, _ = measure(tmp_path, CYCLE | DUST)
    assert sorted(t["name"] for t in threads_of(reader.meta).values()) == NAMES


@pytest.mark.parametrize("in_flight", ["one", "open"])
def test_nothing_is_lost_but_what_a_history_replaces(tmp_path: Path, in_flight: str) -> None:
    """With room for every message, and repeats where the system dropped one, each gets its reply."""
    config = DUST | {"reliability": "reliable", "history_depth": 1_000, "in_flight": in_flight}
    with client_and_server(tmp_path, config) as (client, server):
        assert settled(client, server)["lost"] == 0


def test_waits_that_time_out_amid_its_calls_hold_nothing_up(tmp_path: Path) -> None:
    """A loss timeout about as long as a round trip: many waits end while Dust DDS answers one of theirs."""
    short = {"loss_timeout_ns": MS // 4, "period_ns": MS // 4, "overrun": "skip", "samples": 1_500}
    with client_and_server(tmp_path, DUST | short) as (client, server):
        assert client.end() == 0, client.events
        assert server.end() == 0, server.events
    reader, columns = read(client.log)
    assert reader.meta["counters"]["refused_calls"] == reader.meta["counters"]["corrupted"] == 0
    found = counts(columns)
    assert found["released"] == found["served"] + found["lost"] + found["skipped"] == 1_500


@pytest.mark.parametrize(("transport", "heard"), [("udp", "silence"), ("vendor", "heard")])
def test_it_keeps_to_its_interface(tmp_path: Path, transport: str, heard: str) -> None:
    """A run on lo is not heard beside it; Dust DDS's own transport multicasts on every interface."""
    domain = 83
    with two_namespaces() as pair:
        inside = ["ip", "netns", "exec", pair.right, sys.executable, "-c", HEARD]
        where = ["239.255.0.1", str(7400 + 250 * domain), pair.right_address]
        pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "text": True}
        with subprocess.Popen([*inside, *where], **pipes) as ear:  # type: ignore[call-overload]
            try:
                assert ear.stdout.readline() == "listens\n"
                options = {"domain": str(domain), "transport": transport}
                config = CYCLE | DUST | {"options": options, "samples": 20, "warm_up": 0}
                with probe(tmp_path, config | {"inside": ["ip", "netns", "exec", pair.left]}) as one:
                    assert one.end() == 0, one.events
                assert ear.communicate()[0] == f"{heard}\n"
            finally:
                ear.kill()


@pytest.mark.parametrize(
    ("options", "field"),
    [
        ({"peers": "127.0.0.1"}, "option peers"),
        ({"loan": "no"}, "option loan"),
        ({"threads": "SomethingOnMeta=fifo:5"}, "option threads"),
        ({"transport": "shm"}, "option transport"),
    ],
)
def test_what_it_does_not_have_is_refused_by_name(tmp_path: Path, options: Config, field: str) -> None:
    error = refusal(tmp_path, CYCLE | DUST | {"options": options})
    assert error["field"] == field
    assert error["remedy"]


def test_a_message_of_several_datagrams_arrives(tmp_path: Path) -> None:
    """One datagram is too small for it, and the buffer that the system gives a socket by default is too."""
    if int(Path("/proc/sys/net/core/rmem_max").read_text()) < 1 << 20:
        pytest.skip("the system grants no buffer of 1 MiB (net.core.rmem_max)")
    config = DUST | {"payload_bytes": 512 << 10, "period_ns": 50 * MS, "samples": 10, "warm_up": 1}
    with client_and_server(tmp_path, config | {"overrun": "catch_up"}) as ends:  # one lost is not all
        settled(*ends)


def test_dust_dds_that_dies_in_mid_run_ends_it_with_its_words(tmp_path: Path) -> None:
    """Version 0.16 panics where more than 256 datagrams of a message are missing and shall come again."""
    with two_namespaces() as pair:  # its own transport multicasts on every interface
        config = DUST | {"inside": ["ip", "netns", "exec", pair.left], "options": {"transport": "vendor"}}
        config |= {"reliability": "reliable", "payload_bytes": 1 << 20, "connect_timeout_ns": LONG}
        config |= {"samples": 1_000_000, "period_ns": 10 * MS, "loss_timeout_ns": 10 * MS}
        with client_and_server(tmp_path, config) as (client, server):
            until(lambda: client.process.poll() is not None or server.process.poll() is not None)
            dead = client if server.process.poll() is None else server
            assert dead.end() == 1
    error = next(event for event in dead.events if event["event"] == "error")
    assert (error["field"], error["value"]) == ("middleware", "dustdds")
    assert "thread Dust DDS Executor panicked: index out of bounds" in error["message"]
