"""The ROS 1 adapter over the real roscpp and rosmaster: every measurement and option, and what goes wrong."""

from __future__ import annotations

import os
import shutil
import signal
import socket
import subprocess
import time
import uuid
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
from daemons import alive, watches
from dds_runs import (
    audited,
    in_order,
    refuses_a_listener_that_comes_to_run_otherwise,
    settled,
    threads_in_proc,
    threads_of,
)
from probe_runs import (
    LONG,
    MS,
    SAMPLES,
    Config,
    Probe,
    accounts,
    client_and_server,
    counts,
    measure,
    needs_fifo,
    only,
    probe,
    read,
    refusal,
    shots,
)
from ros1_runs import CYCLE, PERIOD, ROS1, at, master_of

from front import sleeps_of
from rtmeter.measure.probe.probes import find_probes
from rtmeter.model import ABSENT, SERVED
from waiting import until

pytestmark = pytest.mark.skipif("ros1" not in find_probes(), reason="the adapter ros1 is not built here")

ENDLESS: Config = {"samples": 1_000_000, "loss_timeout_ns": 20 * MS, "period_ns": 5 * MS}
TIMERS = ("Timer", "SteadyTimer", "WallTimer")
DRIVES = (("spin", "single"), ("spin", "async"), ("sleep_then_spin_some", "single"), ("poll", "single"))
ROWS = [(kind, *row) for kind in TIMERS for row in DRIVES if kind != "Timer" or row[0] == "spin"]
"""Timer is the default, which check-adapter drives in every way."""


def timer(kind: str, drive: str, spinner: str, **more: object) -> Config:
    options = {"timer": kind, "spinner": spinner}
    return ROS1 | {"measurement": "timer", "mode": "periodic", "drive": drive, "options": options} | more


@pytest.fixture(scope="module")
def master() -> Iterator[tuple[str, int]]:
    """A rosmaster that is not the adapter's: its address and its process."""
    program = shutil.which("rosmaster")
    assert program
    with socket.socket() as kept:  # nobody else is given its port before it listens there
        kept.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        kept.bind(("127.0.0.1", 0))
        port = kept.getsockname()[1]
        environment = os.environ | {"ROS_IP": "127.0.0.1", "ROS_LOG_DIR": "/dev/null/none"}
        command = [program, "--core", "-p", str(port)]
        with subprocess.Popen(command, env=environment, stderr=subprocess.DEVNULL) as daemon:
            try:

                def listens() -> bool:
                    with socket.socket() as one:
                        return one.connect_ex(("127.0.0.1", port)) == 0

                until(listens, of=daemon)
                yield f"http://127.0.0.1:{port}/", daemon.pid
            finally:
                daemon.terminate()


@pytest.mark.parametrize(("before", "threads"), [("init", 0), ("init_and_node", 4)])
def test_wakeup_beside_its_threads(
    tmp_path: Path, master: tuple[str, int], before: str, threads: int
) -> None:
    reader, columns = measure(tmp_path, ROS1 | at(master[0]) | {"measurement": "wakeup", "before": before})
    assert counts(columns)["served"] == SAMPLES
    found = threads_of(reader.meta)
    assert len([t for t in found.values() if t["name"] != "ros-watch"]) == threads


@pytest.mark.parametrize(("kind", "drive", "spinner"), ROWS)
def test_one_shot_fires_as_often_as_it_is_armed(
    tmp_path: Path, master: tuple[str, int], kind: str, drive: str, spinner: str
) -> None:
    config = timer(kind, drive, spinner, mode="one_shot", timeout_ns=PERIOD, samples=50) | at(master[0])
    reader, columns = shots(tmp_path, config)
    found = counts(columns)
    assert found["served"] == found["released"] == 50
    assert reader.meta["adapter"]["timer"] == kind
    on_its_clock = "monotonic" if kind == "SteadyTimer" else "time_of_day"
    assert reader.meta["adapter"]["reported_clock"] == on_its_clock
    assert reader.meta["adapter"]["spinner"] == spinner
    assert np.all(columns["reported_expected_ns"] != ABSENT)
    assert np.all(columns["reported_actual_ns"] >= columns["reported_expected_ns"])
    if kind == "SteadyTimer":  # the clock of the stamps: it was armed between two of them
        assert np.all(columns["reported_expected_ns"] >= columns["armed_before_ns"] + PERIOD)
        assert np.all(columns["reported_expected_ns"] <= columns["armed_after_ns"] + PERIOD)
        assert np.all(columns["reported_actual_ns"] <= columns["callback_ns"])
    else:  # the time of day
        assert np.all(np.abs(columns["reported_actual_ns"] - time.time_ns()) < 600_000 * MS)


@pytest.mark.parametrize(("kind", "drive", "spinner"), ROWS)
def test_periodic_accounts_for_every_release(
    tmp_path: Path, master: tuple[str, int], kind: str, drive: str, spinner: str
) -> None:
    for place in map(str, range(5)):  # one stall may pass over all of a short run
        (tmp_path / place).mkdir()
        reader, columns = measure(tmp_path / place, timer(kind, drive, spinner, samples=100) | at(master[0]))
        found = counts(columns)
        assert found["served"] + found["skipped"] == found["released"] == 100
        if found["served"]:
            break
    assert found["served"] > 0
    assert reader.meta["effective"]["overrun"] == "skip"
    assert reader.meta["ticks"] == ("reported" if kind == "SteadyTimer" else "jumps")
    if drive != "sleep_then_spin_some":
        assert reader.meta["grid"]["t0_from"] == ("reported" if kind == "SteadyTimer" else "inferred")


@pytest.mark.parametrize(("drive", "receive"), [("sleep_then_spin_some", "spin_once"), ("spin", "listener")])
def test_cycle_of_one_process(tmp_path: Path, master: tuple[str, int], drive: str, receive: str) -> None:
    reader, columns = measure(tmp_path, CYCLE | at(master[0]) | {"drive": drive, "receive": receive})
    assert reader.meta["adapter"]["spinner"] == ("async" if receive == "listener" else "single")
    found = counts(columns)
    assert found["served"] + found["skipped"] + found["lost"] == SAMPLES
    assert found["lost"] == 0
    served = only(columns, SERVED)
    if drive == "spin":  # the grid is an estimate: the timer does not report one on the stamps' clock
        served["release_ns"] = served["start_ns"]
    assert in_order(served)
    ends = {f"{way} {topic}" for way in "io" for topic in ("request", "response")}
    assert set(reader.meta["adapter"]["connections"]) == {f"{end}: INTRAPROCESS" for end in ends}
    assert reader.meta["counters"]["refused_calls"] == 0


TRANSPORTS = {"tcp": ("reliable", "TCPROS", 0)}
TRANSPORTS |= {"tcp_nodelay": ("reliable", "TCPROS", 1), "udp": ("best_effort", "UDPROS", 0)}
RECEIVES = ("spin", "spin_once", "listener", "poll")


@pytest.mark.parametrize(
    ("transport", "reliability", "protocol", "undelayed", "receive"),
    [(t, *TRANSPORTS[t], r) for t in TRANSPORTS for r in RECEIVES if t != "tcp" or r == "spin"],
)
def test_round_trip(
    tmp_path: Path,
    transport: str,
    reliability: str,
    protocol: str,
    undelayed: int,
    receive: str,
) -> None:
    config = ROS1 | {"options": {"transport": transport}, "receive": receive}
    with client_and_server(tmp_path, config | {"samples": 50, "warm_up": 5, "period_ns": 4 * MS}) as both:
        found = settled(*both)
    if transport != "udp":
        assert found["lost"] == 0
    meta = read(both[0].log)[0].meta
    described = meta["adapter"]
    assert meta["effective"]["receive"] == receive
    assert len([thread for thread in meta["threads"] if thread["stamps"]]) == 1
    assert described["transport"] == transport
    assert described["qos"] == {"reliability": reliability, "history": "keep_last", "depth": "1"}
    assert sorted(described["connections"]) == [f"i pong: {protocol}", f"o ping: {protocol}"]
    assert described["sockets_with_tcp_nodelay"] == str(undelayed)


@pytest.mark.parametrize(
    ("transport", "payload_bytes"), [("tcp", 4 << 20), ("tcp_nodelay", 128 << 10), ("udp", 100_000)]
)
def test_large_payloads(tmp_path: Path, transport: str, payload_bytes: int) -> None:
    config = ROS1 | {"options": {"transport": transport}, "payload_bytes": payload_bytes}
    with client_and_server(tmp_path, config | {"period_ns": 50 * MS, "samples": 10, "warm_up": 2}) as both:
        settled(*both)


@pytest.mark.parametrize(("transport", "payload"), [("udp", 65_535 * 1_492), ("tcp", 1_000_000_000)])
def test_a_payload_beyond_the_limit_is_an_error(tmp_path: Path, transport: str, payload: int) -> None:
    config = ROS1 | {"measurement": "roundtrip", "role": "server", "loss_timeout_ns": LONG}
    error = refusal(tmp_path, config | {"payload_bytes": payload, "options": {"transport": transport}})
    assert (error["field"], error["value"]) == ("payload_bytes", str(payload))
    assert "at most" in error["message"]


def test_a_master_that_runs_already_is_used_and_left_alone(tmp_path: Path, master: tuple[str, int]) -> None:
    with client_and_server(tmp_path, ROS1 | at(master[0]) | {"samples": 20}) as (client, server):
        settled(client, server)
    for end in (client, server):
        assert master_of(read(end.log)[0].meta) == ("ran already", master[1])
    assert alive(master[1])


@pytest.mark.parametrize("receive", ["spin_once", "listener"])
def test_a_master_that_dies_ends_the_run_with_an_error(tmp_path: Path, receive: str) -> None:
    with client_and_server(tmp_path, ROS1 | ENDLESS | {"receive": receive}) as both:
        client, server = both
        _, pid = master_of(client.until("ready"))
        client.until_released()
        os.kill(pid, signal.SIGKILL)
        assert client.end() == 1
        until(lambda: not watches(server.process.pid, "ros-watch"))  # it knows, before it is asked to end
        assert server.end() == 1
    for end in both:
        error = next(event for event in end.events if event["event"] == "error")
        assert (error["field"], error["value"]) == ("middleware", "ros1")
        assert f"(process {pid}) died" in error["message"]
    assert accounts(client)["released"] > 0


@needs_fifo
def test_a_listener_that_comes_to_run_otherwise_is_refused(tmp_path: Path) -> None:
    refuses_a_listener_that_comes_to_run_otherwise(tmp_path, ROS1)


def test_no_message_wakes_a_server_whose_spinner_calls_back(tmp_path: Path, master: tuple[str, int]) -> None:
    """Its main thread sleeps on while the spinner's serves."""
    config = ROS1 | ENDLESS | at(master[0])
    with client_and_server(tmp_path, config, {"receive": "listener"}) as (client, server):
        first = client.until("progress")["released"]
        before = sleeps_of(server.process.pid)
        while (released := client.until("progress")["released"]) < first + 200:
            pass
        woken = sleeps_of(server.process.pid) - before
        interrupted(client)
        assert server.end() == 0, server.events
    assert woken < (released - first) / 2


def interrupted(one: Probe) -> None:
    one.process.send_signal(signal.SIGTERM)
    assert one.end() == 4, one.events


@pytest.mark.parametrize(
    ("transport", "how"),
    [("tcp", signal.SIGSTOP), ("udp", signal.SIGKILL), ("udp", signal.SIGSTOP)],
)
def test_replies_that_never_come_are_lost_and_nothing_else(
    tmp_path: Path, master: tuple[str, int], transport: str, how: signal.Signals
) -> None:
    config = ROS1 | at(master[0]) | ENDLESS | {"options": {"transport": transport}}
    with client_and_server(tmp_path, config) as (client, server):
        assert client.until("ready")["event"] == "ready"
        os.kill(server.process.pid, how)
        while client.until("progress")["lost"] == 0:
            pass
        interrupted(client)
    found = accounts(client)
    assert found["lost"] > 0


def test_two_runs_at_once_do_not_hear_each_other(tmp_path: Path, master: tuple[str, int]) -> None:
    """Even at one master: a reply to another run's ping would be a duplicate or out of range."""
    folders = [tmp_path / "first", tmp_path / "second"]
    for folder in folders:
        folder.mkdir()
    config = ROS1 | at(master[0]) | {"period_ns": 4 * MS}
    with (
        client_and_server(folders[0], config | {"samples": 100}) as one,
        client_and_server(folders[1], config | {"samples": 50}) as other,
    ):
        assert settled(*one)["released"] == 100
        assert settled(*other)["released"] == 50
    assert read(other[1].log)[1]["sequence"].max() < 100  # 50, and the warm-up


def test_a_server_that_is_not_there_is_told_with_what_was_looked_for(
    tmp_path: Path, master: tuple[str, int]
) -> None:
    session = f"test-{uuid.uuid4()}"
    config = ROS1 | at(master[0]) | {"measurement": "roundtrip", "role": "client", "loss_timeout_ns": LONG}
    error = refusal(tmp_path, config | {"connect_timeout_ns": 300 * MS, "session": session})
    assert (error["field"], error["value"]) == ("server", session)
    for part in ("within 300 ms", master[0], "0 subscribers of /rtmeter/", "0 publishers of /rtmeter/"):
        assert part in error["message"], error


@pytest.mark.parametrize("endpoint", ["", "http://127.0.0.1:9/"])
def test_a_client_without_a_master_says_so(tmp_path: Path, endpoint: str) -> None:
    options = {"endpoint": endpoint} if endpoint else {}
    config = ROS1 | {"measurement": "roundtrip", "role": "client", "loss_timeout_ns": LONG}
    error = refusal(tmp_path, config | {"options": options})
    assert (error["field"], error["value"]) == ("option endpoint", endpoint)
    assert "ROS_MASTER_URI" in error["remedy"]


@needs_fifo
@pytest.mark.parametrize(("apply", "expected"), [("before_init", "fifo"), ("after_init", "other")])
def test_its_threads_inherit_as_asked_and_the_audit_is_whole(
    tmp_path: Path, apply: str, expected: str
) -> None:
    fifo = {"scheduling": {"policy": "fifo", "priority": 20}, "apply": apply}
    config = CYCLE | fifo | {"drive": "sleep_then_spin_some", "receive": "listener"}  # roscpp's timers: none
    with probe(tmp_path, config | {"samples": 1_000_000}) as one:
        ready = one.until("ready")
        assert audited(ready) == threads_in_proc(ready["pid"])
        middleware = [t["policy"] for t in ready["threads"] if t["role"] == "middleware"]
        assert set(middleware) == {expected}
        _, master_pid = master_of(ready)
        assert {policy for _, policy, _ in threads_in_proc(master_pid).values()} == {"other"}
        interrupted(one)


@pytest.mark.parametrize(
    ("config", "field"),
    [
        (timer("Sundial", "spin", "single"), "option timer"),
        (timer("Timer", "poll", "async"), "drive"),
        (timer("Timer", "sleep_then_spin_some", "async"), "drive"),
        (timer("Timer", "spin", "many"), "option spinner"),
        (CYCLE | {"options": {"spinner": "async"}}, "option spinner"),
        (CYCLE | {"options": {"spinner_threads": "2"}}, "option spinner_threads"),
        (timer("Timer", "spin", "single", overrun="catch_up"), "overrun"),
        (CYCLE | {"options": {"transport": "udp"}}, "option transport"),
    ],
)
def test_what_cannot_be_is_refused_by_name(
    tmp_path: Path, master: tuple[str, int], config: Config, field: str
) -> None:
    error = refusal(tmp_path, config | at(master[0]))
    assert error["field"] == field
    assert error["message"]
    assert error["remedy"]
