"""What only zenoh has: how its sessions meet, its channels and callbacks, and what is refused."""

from __future__ import annotations

import tempfile
from pathlib import Path

import pytest
from dds_runs import settled
from probe_runs import LONG, MS, Config, client_and_server, counts, measure, read, refusal

from rtmeter.measure.probe.probes import find_probes

pytestmark = pytest.mark.skipif("zenoh" not in find_probes(), reason="the adapter zenoh is not built here")

ZENOH: Config = {"adapter": "zenoh"}
ROUNDTRIP: Config = {"measurement": "roundtrip", "loss_timeout_ns": LONG}
SHORT: Config = ZENOH | {"period_ns": 4 * MS, "samples": 25, "warm_up": 5}


@pytest.mark.parametrize(
    ("options", "found"),
    [
        ({}, "1 peers and 0 routers"),
        ({"transport": "unixsock-stream"}, "1 peers and 0 routers"),
        ({"lowlatency": "yes", "express": "no"}, "1 peers and 0 routers"),
        ({"via": "router"}, "0 peers and 1 routers"),
        ({"via": "router", "transport": "unixsock-stream"}, "0 peers and 1 routers"),
    ],
)
def test_ends_meet_as_the_options_say(tmp_path: Path, options: dict[str, str], found: str) -> None:
    with client_and_server(tmp_path, SHORT | {"options": options}) as (client, server):
        assert settled(client, server)["lost"] == 0
    meta = read(client.log)[0].meta
    facts = meta["adapter"]
    in_effect = {"transport": "tcp", "via": "peer", "lowlatency": "no"} | options
    express = in_effect.pop("express", "yes")
    assert {key: facts[key] for key in in_effect} == in_effect
    assert facts["qos"]["express"] == express
    assert found in facts["discovery"]
    assert server.events[0]["endpoint"].startswith(f"{in_effect['transport']}/")
    left = f"rtmeter-{meta['config']['session']}.zenoh*"  # other tests run beside this one
    assert not list(Path(tempfile.gettempdir()).glob(left))


@pytest.mark.parametrize("transport", ["tcp", "unixsock-stream"])
def test_a_router_that_runs_already_says_what_carries_messages(tmp_path: Path, transport: str) -> None:
    """zenoh takes its low-latency transport only if both ends have it, and says nothing if not."""

    def folder(name: str) -> Path:
        (tmp_path / name).mkdir()
        return tmp_path / name

    has_router = SHORT | {"options": {"via": "router", "transport": transport}}
    with client_and_server(folder("theirs"), has_router) as (asks, with_router):
        router = with_router.events[0]["endpoint"]
        over = {"via": "router", "router": router}
        with client_and_server(folder("ours"), SHORT | {"options": over}) as (client, server):
            assert settled(client, server)["lost"] == 0
        facts = read(client.log)[0].meta["adapter"]
        assert (facts["transport"], facts["lowlatency"], facts["router"]) == (transport, "no", router)
        for key, value in (("lowlatency", "yes"), ("transport", transport)):
            asked = {"role": "server", "session": "test-refused", "options": over | {key: value}}
            error = refusal(folder(key), SHORT | ROUNDTRIP | asked)  # its socket's file is still there
            assert error["field"] == f"option {key}"
        assert settled(asks, with_router)["lost"] == 0


@pytest.mark.parametrize(("options", "consolidation"), [({}, "auto"), ({"consolidation": "none"}, "none")])
def test_replies_are_consolidated_as_asked(
    tmp_path: Path, options: dict[str, str], consolidation: str
) -> None:
    with client_and_server(tmp_path, SHORT | {"measurement": "request", "options": options}) as both:
        assert settled(*both)["lost"] == 0
    qos = read(both[0].log)[0].meta["adapter"]["qos"]
    assert qos["consolidation"] == consolidation
    assert (qos["reliability"], qos["congestion_control"]) == ("reliable", "block")
    assert (qos["history"], qos["depth"]) == ("wait_for_room", "256")


def test_consolidation_is_of_requests(tmp_path: Path) -> None:
    error = refusal(tmp_path, SHORT | {"role": "server", "options": {"consolidation": "none"}} | ROUNDTRIP)
    assert error["field"] == "option consolidation"


@pytest.mark.parametrize(
    ("asked", "qos"),
    [
        ({}, ("best_effort", "drop", "keep_last", "1")),
        ({"history_depth": 7}, ("best_effort", "drop", "keep_last", "7")),
        ({"reliability": "reliable"}, ("reliable", "block", "wait_for_room", "256")),
        ({"reliability": "reliable", "history_depth": 3}, ("reliable", "block", "wait_for_room", "3")),
    ],
)
def test_a_cycle_stays_in_the_session(tmp_path: Path, asked: Config, qos: tuple[str, ...]) -> None:
    reader, columns = measure(tmp_path, ZENOH | {"measurement": "cycle", "loss_timeout_ns": LONG} | asked)
    found = counts(columns)
    assert found["served"] == found["released"]
    facts = reader.meta["adapter"]
    assert "transport" not in facts
    names = ("reliability", "congestion_control", "history", "depth")
    assert tuple(facts["qos"][name] for name in names) == qos


def test_a_listener_has_no_queue(tmp_path: Path) -> None:
    with client_and_server(tmp_path, SHORT | {"receive": "listener"}) as (client, server):
        assert settled(client, server)["lost"] == 0
    qos = read(client.log)[0].meta["adapter"]["qos"]
    assert (qos["history"], "depth" in qos) == ("none", False)


@pytest.mark.parametrize(
    ("asked", "field"),
    [
        ({"role": "server", "payload_bytes": 1 << 20, "options": {"lowlatency": "yes"}}, "payload_bytes"),
        ({"role": "server", "options": {"address": "192.0.2.1"}}, "option address"),
        ({"role": "server", "options": {"router": "tcp/127.0.0.1:7447"}}, "option router"),
        ({"role": "client"}, "option endpoint"),
        ({"role": "client", "options": {"endpoint": "nowhere"}}, "option endpoint"),
    ],
)
def test_what_cannot_be_is_refused_by_name(tmp_path: Path, asked: Config, field: str) -> None:
    round_trip: Config = {"measurement": "roundtrip", "session": "test-refused", "loss_timeout_ns": LONG}
    error = refusal(tmp_path, ZENOH | round_trip | asked)
    assert error["field"] == field
    assert error["remedy"]


@pytest.mark.parametrize(
    "asked",
    [
        {"measurement": "discovery", "discovery": {"participants": 2, "participant": 0}},
        {
            "measurement": "chain",
            "role": "client",
            "chain": {"stages": [{"name": "a", "period_ns": MS, "samples": 1}]},
        },
    ],
)
def test_without_a_server_no_router_can_be_in_its_process(tmp_path: Path, asked: Config) -> None:
    asked = asked | {"period_ns": 400 * MS, "loss_timeout_ns": 200 * MS, "options": {"via": "router"}}
    error = refusal(tmp_path, SHORT | asked)
    assert error["field"] == "option router" and "router=tcp/HOST:7447" in error["remedy"]
