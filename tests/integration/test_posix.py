"""Every measurement and option of the posix adapter over the real probe.

Nothing here depends on how fast the machine is: counts, identities, orderings and settings read back.
"""

from __future__ import annotations

import itertools
import os
import re
import signal
import stat
from pathlib import Path

import numpy as np
import pytest
from probe_runs import (
    LONG,
    MS,
    PERIOD,
    SAMPLES,
    WARM_UP,
    Columns,
    Config,
    accounts,
    client_and_server,
    counts,
    has,
    measure,
    needs_fifo,
    only,
    probe,
    read,
    refusal,
    shots,
)

from rtmeter.model import ABSENT, SERVED, SKIPPED

TIMERS = ("clock_nanosleep", "timerfd", "posix")
DRIVES = ("spin", "sleep_then_spin_some", "poll")
TRANSPORTS = ("udp", "unix", "shm_futex", "shm_poll")
RECEIVES = ("spin", "spin_once", "poll")
COMPONENTS = ("two_threads", "one_thread")

CYCLE: Config = {"measurement": "cycle", "loss_timeout_ns": LONG}


def timer(make: str, **more: object) -> Config:
    return {"measurement": "timer", "mode": "periodic", "options": {"timer": make}, **more}


def all_served(columns: Columns) -> None:
    assert counts(columns) == {
        "released": SAMPLES,
        "warm_up": WARM_UP,
        "served": SAMPLES,
        "skipped": 0,
        "lost": 0,
        "in_flight": 0,
    }


@pytest.mark.parametrize(("make", "drive"), [*itertools.product(TIMERS, DRIVES)])
def test_periodic_timer_serves_every_tick(tmp_path: Path, make: str, drive: str) -> None:
    reader, columns = measure(tmp_path, timer(make, drive=drive))
    all_served(columns)
    assert reader.meta["adapter"]["timer"] == make
    assert reader.meta["effective"]["drive"] == drive
    assert reader.meta["effective"]["overrun"] == "catch_up"
    assert np.all(np.diff(columns["release_ns"]) == PERIOD)
    if drive != "sleep_then_spin_some":  # there the grid is that of the sleep
        assert np.array_equal(columns["reported_expected_ns"], columns["release_ns"])
    assert np.all(columns["callback_ns"] >= columns["reported_expected_ns"])


@pytest.mark.parametrize(("make", "drive"), [*itertools.product(TIMERS, ("spin", "poll"))])
def test_a_timer_too_fast_for_the_machine_skips_and_accounts_for_it(
    tmp_path: Path, make: str, drive: str
) -> None:
    config = timer(make, drive=drive, overrun="skip", period_ns=200, samples=20_000)
    reader, columns = measure(tmp_path, config)
    found = counts(columns)
    assert found["released"] == found["served"] + found["skipped"] == 20_000
    assert found["skipped"] > 0
    assert reader.meta["effective"]["overrun"] == "skip"
    served, skipped = only(columns, SERVED), only(columns, SKIPPED)
    assert np.array_equal(served["reported_expected_ns"], served["release_ns"])
    assert np.all(served["callback_ns"] >= served["release_ns"])
    assert np.all(skipped["free_ns"] >= skipped["release_ns"])
    assert np.all(skipped["callback_ns"] == ABSENT)


@pytest.mark.parametrize(("make", "drive"), [*itertools.product(TIMERS, DRIVES)])
def test_one_shot_fires_as_often_as_it_is_armed(tmp_path: Path, make: str, drive: str) -> None:
    _, columns = shots(tmp_path, timer(make, mode="one_shot", timeout_ns=PERIOD, drive=drive))
    all_served(columns)
    assert np.array_equal(columns["reported_expected_ns"], columns["armed_before_ns"] + PERIOD)
    assert np.all(columns["callback_ns"] >= columns["reported_expected_ns"])
    assert np.all(columns["armed_after_ns"] >= columns["armed_before_ns"])
    assert np.all(columns["armed_before_ns"][1:] >= columns["callback_ns"][:-1])


@pytest.mark.parametrize("make", TIMERS[1:])
def test_sigterm_ends_a_timer_that_waits(tmp_path: Path, make: str) -> None:
    hour = {"period_ns": 3_600_000 * MS, "samples": 10}
    with probe(tmp_path, timer(make, **hour)) as one:
        assert one.until("ready")["event"] == "ready"
        one.process.send_signal(signal.SIGTERM)
        assert one.end() == 4
    assert one.events[-1]["outcome"] == "interrupted"


@pytest.mark.parametrize(
    ("transport", "receive", "in_flight"),
    [
        (transport, receive, in_flight)
        for transport, receive, in_flight in itertools.product(TRANSPORTS, RECEIVES, ("one", "open"))
        if (transport != "shm_poll" or receive == "poll") and (transport, in_flight) != ("udp", "one")
    ],
)
def test_round_trip_accounts_for_every_release(
    tmp_path: Path, transport: str, receive: str, in_flight: str
) -> None:
    config = {"options": {"transport": transport}, "receive": receive, "in_flight": in_flight}
    with client_and_server(tmp_path, config | {"period_ns": 2 * MS}) as (client, server):
        assert client.end() == 0, client.events
        assert server.end() == 0, server.events
    reader, columns = read(client.log)
    found = counts(columns)
    assert found["released"] == SAMPLES
    assert found["served"] + found["lost"] + found["skipped"] == SAMPLES
    assert has(columns, SERVED)
    counters = reader.meta["counters"]
    assert counters["corrupted"] == counters["duplicate"] == counters["out_of_order"] == 0
    if in_flight == "one":
        assert found["lost"] == counters["refused_calls"] == 0
    assert reader.meta["adapter"]["transport"] == transport
    assert reader.meta["adapter"]["qos"]["reliability"] == (
        "best_effort" if transport == "udp" else "reliable"
    )

    # The server heard each ping that was answered, between its sending and its answer.
    _, heard = read(server.log)
    k = np.flatnonzero((columns["status"] & 15) == SERVED)
    where = np.searchsorted(heard["sequence"], k)
    assert np.array_equal(heard["sequence"][where], k)
    assert np.all(heard["server_received_ns"][where] >= columns["sent_ns"][k])
    assert np.all(heard["server_sent_ns"][where] >= heard["server_received_ns"][where])
    assert np.all(columns["received_ns"][k] >= heard["server_sent_ns"][where])


def test_a_mebibyte_travels_through_shared_memory(tmp_path: Path) -> None:
    config = {"options": {"transport": "shm_futex"}, "payload_bytes": 1 << 20, "period_ns": 10 * MS}
    with client_and_server(tmp_path, config | {"samples": 30, "warm_up": 2}) as (client, server):
        assert client.end() == 0, client.events
        assert server.end() == 0
    reader, columns = read(client.log)
    found = counts(columns)
    assert found["served"] + found["skipped"] == 30
    assert reader.meta["counters"]["corrupted"] == 0


@pytest.mark.parametrize("transport", TRANSPORTS[1:])
def test_a_server_that_is_killed_costs_replies_and_nothing_else(tmp_path: Path, transport: str) -> None:
    config = {"options": {"transport": transport}, "samples": 1_000_000, "loss_timeout_ns": 20 * MS}
    with client_and_server(tmp_path, config) as (client, server):
        assert client.until("ready")["event"] == "ready"
        server.kill()
        while client.until("progress")["lost"] == 0:
            pass
        client.process.send_signal(signal.SIGTERM)
        assert client.end() == 4
    found = accounts(client)
    assert found["lost"] > 0


def test_greetings_that_are_refused_are_no_refused_calls(tmp_path: Path) -> None:
    """A queue is soon full of them, as long as the server does not look: nothing is measured yet."""
    config = {"options": {"transport": "unix"}, "receive": "poll", "in_flight": "one", "period_ns": 2 * MS}
    with client_and_server(tmp_path, config) as (client, server):
        server.stand_still(2_500 * MS)
        assert client.end() == 0, client.events
        assert server.end() == 0, server.events
    meta = read(client.log)[0].meta
    assert meta["counters"]["refused_calls"] == 0
    assert "middleware_refused_calls" not in [doubt["type"] for doubt in meta["warnings"]]


def test_a_unix_path_is_removed(tmp_path: Path) -> None:
    path = tmp_path / "server.socket"
    config = {"options": {"transport": "unix", "address": str(path)}}
    with client_and_server(tmp_path, config) as (client, server):
        assert stat.S_ISSOCK(path.stat().st_mode)
        assert client.end() == 0, client.events
        assert server.end() == 0
    assert not path.exists()


@pytest.mark.parametrize("components", COMPONENTS)
@pytest.mark.parametrize("drive", [None, "sleep_then_spin_some", "poll"])
def test_cycle_of_two_components(tmp_path: Path, components: str, drive: str | None) -> None:
    """Without a drive its own timer starts the cycles."""
    reader, columns = measure(tmp_path, CYCLE | {"drive": drive, "components": components})
    all_served(columns)
    effective = reader.meta["effective"]
    assert effective["drive"] == drive or (drive is None and effective["drive"] == "spin")
    assert effective["components"] == components
    assert effective["grid"] == reader.meta["grid"]["t0_from"] == ("core" if drive else "reported")
    assert np.all(np.diff(columns["release_ns"]) == PERIOD)
    order = ("release", "start", "request_sent", "request_received", "response_sent", "response_received")
    for earlier, later in itertools.pairwise(order):
        assert np.all(columns[f"{later}_ns"] >= columns[f"{earlier}_ns"]), (earlier, later)
    names = [t["name"] for t in reader.meta["threads"] if t["role"] == "middleware"]
    assert names == (["posix-b"] if components == "two_threads" else [])


@needs_fifo
@pytest.mark.parametrize(
    ("apply", "child_threads", "expected"),
    [
        ("before_init", None, ("fifo", 20)),
        ("after_init", None, ("other", 0)),
        ("before_init", {"policy": "rr", "priority": 5}, ("rr", 5)),
        ("after_init", {"policy": "fifo", "priority": 7}, ("fifo", 7)),
    ],
)
def test_the_second_component_runs_as_its_thread_was_told(
    tmp_path: Path, apply: str, child_threads: Config | None, expected: tuple[str, int]
) -> None:
    config = CYCLE | {"components": "two_threads"}
    config |= {"scheduling": {"policy": "fifo", "priority": 20}, "apply": apply}
    reader, columns = measure(tmp_path, config | {"child_threads": child_threads})
    all_served(columns)
    threads = {t["role"]: (t["policy"], t["priority"]) for t in reader.meta["threads"]}
    assert threads["measured"] == ("fifo", 20)
    assert threads["middleware"] == expected


@pytest.mark.parametrize(
    ("config", "field"),
    [
        (timer("timerfd") | {"options": {"transport": "udp"}}, "option transport"),
        ({"measurement": "wakeup", "before": "init", "options": {"timer": "posix"}}, "option timer"),
        ({"measurement": "cycle", "loss_timeout_ns": LONG, "options": {"timer": "posix"}}, "option timer"),
        ({"measurement": "cycle", "loss_timeout_ns": LONG, "components": "three_threads"}, "components"),
        (timer("timerfd") | {"drive": "spin", "sleep_offset_ns": 1}, "sleep_offset_ns"),
    ],
)
def test_what_cannot_be_is_refused_by_name(tmp_path: Path, config: Config, field: str) -> None:
    error = refusal(tmp_path, config)
    assert error["field"] == field
    assert error["message"]
    assert error["remedy"]


@pytest.mark.parametrize(
    ("measurement", "transport"), [*(("roundtrip", one) for one in TRANSPORTS), ("request", "unix")]
)
def test_a_client_says_that_it_knows_no_server(tmp_path: Path, measurement: str, transport: str) -> None:
    config = {"measurement": measurement, "role": "client", "options": {"transport": transport}}
    config |= {"loss_timeout_ns": LONG, "connect_timeout_ns": 50 * MS, "session": f"test-{os.getpid()}-none"}
    error = refusal(tmp_path, config)
    assert error["field"] == ("server" if transport == "unix" else "option endpoint")
    if transport == "unix":
        refused = re.search(r"(\d+) of the messages were refused", error["message"])
        assert refused is not None and int(refused[1]) > 0
