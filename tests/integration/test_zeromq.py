"""What only ZeroMQ has: who binds, by what, and queues of one message."""

from __future__ import annotations

import ctypes
import signal
from pathlib import Path

import pytest
from dds_runs import settled
from probe_runs import LONG, MS, Config, client_and_server, read, refusal
from test_chains_run import every_path_has_a_result

from rtmeter.measure.probe.probes import find_probes

pytestmark = pytest.mark.skipif("zeromq" not in find_probes(), reason="the adapter zeromq is not built here")

SHORT: Config = {"adapter": "zeromq", "period_ns": 4 * MS, "samples": 25, "warm_up": 5}
NO_IPV6 = (
    not Path("/proc/sys/net/ipv6").exists()
    or Path("/proc/sys/net/ipv6/conf/lo/disable_ipv6").read_text() == "1\n"
)


def at(address: str) -> Config:
    """Of a server on another host, as it is told."""
    return {"options": {"address": address}}


@pytest.mark.parametrize(
    ("transport", "server", "listens"),
    [
        ("tcp", {}, None),
        ("tcp", at("127.0.0.1"), "tcp://127.0.0.1:"),
        ("tcp", at("[::1]"), "tcp://[::1]:"),
        ("tcp", at("::1"), "tcp://[::1]:"),
        ("ipc", {}, None),
    ],
)
def test_the_server_binds_all_where_it_has_an_address_and_else_who_publishes(
    tmp_path: Path, transport: str, server: Config, listens: str | None
) -> None:
    if listens == "tcp://[::1]:" and NO_IPV6:
        pytest.skip("the loopback interface has no IPv6 here")
    own = {"transport": transport}
    changes = {"options": own | server["options"]} if server else {}
    with client_and_server(tmp_path, SHORT | {"options": own}, changes) as both:
        endpoint = both[1].events[0]["endpoint"]
        assert settled(*both)["lost"] == 0
    assert read(both[0].log)[0].meta["adapter"]["transport"] == transport
    places = endpoint.split(",") if server else []
    assert (endpoint is None) == (not server) and len({*places}) == len(places) == 2 * bool(server)
    assert all(place.startswith(listens or "-") for place in places)


@pytest.mark.parametrize(
    ("role", "options", "remedy"),
    [
        ("server", {"address": "192.0.2.1"}, "give an IP address of this machine"),
        ("server", {"address": "nobody"}, "give an IP address of this machine"),
        ("client", {"endpoint": "here,there"}, "give it as the server prints it"),
    ],
)
def test_where_it_cannot_bind_or_connect_it_says_what_to_do(
    tmp_path: Path, role: str, options: dict[str, str], remedy: str
) -> None:
    asked = {"measurement": "roundtrip", "role": role, "loss_timeout_ns": LONG, "options": options}
    error = refusal(tmp_path, SHORT | asked)
    assert error["field"] == f"option {next(iter(options))}"
    assert error["remedy"].startswith(remedy)


def test_a_session_too_long_for_ipc_is_refused(tmp_path: Path) -> None:
    asked = {"measurement": "roundtrip", "role": "server", "loss_timeout_ns": LONG, "session": "s" * 120}
    error = refusal(tmp_path, SHORT | asked | {"options": {"transport": "ipc"}})
    assert error["field"] == "session"
    assert error["remedy"].startswith("give the stage or the session a shorter name")


def test_a_chain_by_ipc_has_a_result_for_every_path(tmp_path: Path) -> None:
    cell = every_path_has_a_result(tmp_path, "zeromq", "--option", "transport=ipc")
    facts = cell["adapter_facts"]
    assert (facts["transport"], facts["qos"]["history"]) == ("ipc", "drop_new")


@pytest.mark.parametrize(
    ("conflate", "timeout_ns", "stalls", "qos"),
    [
        ("no", LONG, 3, {"history": "drop_new", "depth": "1000"}),
        ("yes", 1000 * MS, 200, {"history": "keep_last", "depth": "1"}),
    ],
)
def test_what_came_while_a_server_stood_still_waits_or_is_replaced(
    tmp_path: Path, conflate: str, timeout_ns: int, stalls: int, qos: dict[str, str]
) -> None:
    asked = SHORT | {"samples": 1_000_000, "in_flight": "open", "loss_timeout_ns": timeout_ns}
    with client_and_server(tmp_path, asked | {"options": {"conflate": conflate}}) as (client, server):
        client.until_released()
        for _ in range(stalls):
            server.stand_still(50 * MS)
            if client.until("progress")["lost"]:
                break
        client.process.send_signal(signal.SIGINT)
        found = settled(client, server, interrupted=True)
    assert (found["lost"] > 0) == (conflate == "yes")
    assert qos.items() <= read(client.log)[0].meta["adapter"]["qos"].items()


@pytest.mark.parametrize("asked", [{"reliability": "reliable"}, {"history_depth": 2}])
def test_a_queue_of_one_neither_refuses_nor_is_deeper(tmp_path: Path, asked: Config) -> None:
    more = {"measurement": "cycle", "loss_timeout_ns": LONG, "options": {"conflate": "yes"}}
    assert refusal(tmp_path, SHORT | more | asked)["field"] in asked


def publish_once(place: str, message: bytes) -> None:
    """As anybody may who can reach a subscriber: it is connected once it has said what it subscribes to."""
    zmq = ctypes.CDLL("libzmq.so.5")
    zmq.zmq_ctx_new.restype = zmq.zmq_socket.restype = ctypes.c_void_p
    context = ctypes.c_void_p(zmq.zmq_ctx_new())
    xpub, receive_timeout, linger = 9, 27, 17
    socket = ctypes.c_void_p(zmq.zmq_socket(context, xpub))
    for option, most_ms in ((receive_timeout, 60_000), (linger, 60_000)):
        assert zmq.zmq_setsockopt(socket, option, ctypes.byref(ctypes.c_int(most_ms)), 4) == 0
    assert zmq.zmq_connect(socket, place.encode()) == 0
    assert zmq.zmq_recv(socket, ctypes.create_string_buffer(64), 64, 0) >= 1
    assert zmq.zmq_send(socket, message, len(message), 0) == len(message)
    zmq.zmq_close(socket)
    zmq.zmq_ctx_term(context)


def test_a_message_too_short_to_be_one_is_nobodys(tmp_path: Path) -> None:
    """The server took it for one of 4 GiB."""
    tcp = {"options": {"transport": "tcp"}}
    here = {"options": {"transport": "tcp", "address": "127.0.0.1"}}
    with client_and_server(tmp_path, SHORT | {"samples": 250} | tcp, here) as (client, server):
        client.until_released()
        publish_once(server.events[0]["endpoint"].split(",")[1], b"4321")
        assert settled(client, server)["lost"] == 0
