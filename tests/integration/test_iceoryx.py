"""The iceoryx adapter over the real daemon: every measurement and option, and what goes wrong."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import uuid
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
from daemons import alive, roudi_answers, roudi_of, watches, without_roudi
from dds_runs import in_order, settled, threads_in_proc, threads_of
from discovery_runs import served
from probe_runs import (
    LONG,
    MS,
    PERIOD,
    SAMPLES,
    Config,
    Probe,
    accounts,
    client_and_server,
    counts,
    measure,
    needs_fifo,
    probe,
    read,
    refusal,
)
from test_chains_run import every_path_has_a_result, measured

from cpus import ONLINE
from front import rtmeter
from rtmeter.measure.probe.probes import find_probes
from waiting import until

pytestmark = pytest.mark.skipif("iceoryx" not in find_probes(), reason="the adapter iceoryx is not built")

ICEORYX: Config = {"adapter": "iceoryx"}
CYCLE: Config = ICEORYX | {"measurement": "cycle", "loss_timeout_ns": LONG}
ENDLESS: Config = {"samples": 1_000_000, "loss_timeout_ns": 20 * MS, "period_ns": 5 * MS}
NAMES = ["KeepAlive", "iox-watch"]


def killed(one: Probe) -> None:
    """Kills the probe, and removes what iceoryx leaves of a killed process."""
    one.kill()
    for name in (f"rtmeter-{one.process.pid}", f"rtmeter-{one.process.pid}.lock"):
        Path("/tmp", name).unlink(missing_ok=True)


def send_when_idle(pid: int, number: signal.Signals) -> None:
    """Signals a process that waits: one that is cut off while it delivers keeps a lock that all share."""
    until(lambda: Path(f"/proc/{pid}/wchan").read_text().startswith("futex"))
    os.kill(pid, number)


@pytest.fixture
def no_roudi() -> Iterator[None]:
    with without_roudi():
        yield


@pytest.fixture
def foreign_roudi(no_roudi: None) -> Iterator[subprocess.Popen[bytes]]:
    """A RouDi that is not the adapter's, as iceoryx configures it."""
    program = shutil.which("iox-roudi")
    assert program
    with subprocess.Popen([program], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as daemon:
        try:
            until(roudi_answers)
            yield daemon
        finally:
            daemon.terminate()


@pytest.mark.parametrize("before", ["init", "init_and_node"])
def test_wakeup_beside_its_threads(tmp_path: Path, before: str) -> None:
    reader, columns = measure(tmp_path, ICEORYX | {"measurement": "wakeup", "before": before})
    assert counts(columns)["served"] == SAMPLES
    assert sorted(t["name"] for t in threads_of(reader.meta).values()) == NAMES


def test_participants_that_start_together_share_a_roudi_and_hear_each_other(tmp_path: Path) -> None:
    cell, _ = served(tmp_path, "--adapter", "iceoryx", "--participants", 3, "--samples", 1)
    summary = cell["summary"]
    assert summary["identity"].endswith(": 1 = 1 + 0 + 0")
    assert "time_to_matched" not in summary["quantities"]  # it tells not of how many


@pytest.mark.parametrize(
    ("asked", "receive"),
    [
        ({}, "spin_once"),
        ({"receive": "poll"}, "poll"),
        ({"drive": "poll"}, "poll"),
    ],
)
def test_cycle_serves_every_release(tmp_path: Path, asked: Config, receive: str) -> None:
    reader, columns = measure(tmp_path, CYCLE | asked)
    found = counts(columns)
    assert found["served"] == found["released"] == SAMPLES
    assert in_order(columns)
    assert np.all(np.diff(columns["release_ns"]) == PERIOD)
    assert reader.meta["effective"]["receive"] == receive
    assert reader.meta["counters"]["refused_calls"] == 0


@pytest.mark.parametrize(
    ("reliability", "queue_full"),
    [("best_effort", "discard_oldest_data"), ("reliable", "wait_for_consumer")],
)
@pytest.mark.parametrize("receive", ["spin", "spin_once", "poll"])
def test_round_trip(tmp_path: Path, receive: str, reliability: str, queue_full: str) -> None:
    config = ICEORYX | {"receive": receive, "reliability": reliability}
    with client_and_server(tmp_path, config | {"period_ns": 4 * MS, "samples": 50}) as (client, server):
        assert settled(client, server)["lost"] == 0
    meta = read(client.log)[0].meta
    described = meta["adapter"]
    assert meta["effective"]["receive"] == receive
    assert described["qos"] == {
        "reliability": reliability,
        "history": "keep_last",
        "depth": "1",
        "queue_full": queue_full,
    }


def test_round_trips_in_open_loop(tmp_path: Path) -> None:
    config = ICEORYX | {"in_flight": "open", "history_depth": 200, "period_ns": MS}
    with client_and_server(tmp_path, config) as (client, server):
        settled(client, server)


@pytest.mark.parametrize("payload_bytes", [500, 32 << 10, 128 << 10, 1 << 20, 4 << 20, 8 << 20])
def test_every_payload_lies_in_one_chunk(tmp_path: Path, payload_bytes: int) -> None:
    config = ICEORYX | {"payload_bytes": payload_bytes, "period_ns": 20 * MS, "samples": 10, "warm_up": 2}
    with client_and_server(tmp_path, config) as (client, server):
        assert settled(client, server)["lost"] == 0
    described = read(client.log)[0].meta["adapter"]
    assert int(described["chunk_bytes"]) >= payload_bytes + 16


def test_its_roudi_starts_and_ends_with_the_run(tmp_path: Path, no_roudi: None) -> None:
    with client_and_server(tmp_path, ICEORYX | {"samples": 20}) as (client, server):
        how, pid = roudi_of(server.events[-1])
        assert how == "started"
        assert Path(f"/proc/{pid}/comm").read_text() == "iox-roudi\n"
        assert roudi_of(client.until("ready")) == ("ran already", pid)
        settled(client, server)
    until(lambda: not alive(pid))
    until(lambda: not roudi_answers())


def test_its_roudi_ends_also_if_the_run_is_killed(tmp_path: Path, no_roudi: None) -> None:
    with probe(tmp_path, CYCLE | {"samples": 1_000_000}) as one:
        _, pid = roudi_of(one.until("ready"))
        killed(one)
    until(lambda: not alive(pid))


@needs_fifo
def test_its_roudi_inherits_nothing_of_the_measured_thread(tmp_path: Path, no_roudi: None) -> None:
    config = CYCLE | {"scheduling": {"policy": "fifo", "priority": 20}, "cpus": [0], "samples": 1_000_000}
    with probe(tmp_path, config) as one:
        _, pid = roudi_of(one.until("ready"))
        assert {policy for _, policy, _ in threads_in_proc(pid).values()} == {"other"}
        assert os.sched_getaffinity(pid) == ONLINE  # it serves other runs, too
        one.process.send_signal(signal.SIGTERM)
        assert one.end() == 4


def test_a_roudi_that_runs_already_is_used_and_left_alone(
    tmp_path: Path, foreign_roudi: subprocess.Popen[bytes]
) -> None:
    reader, columns = measure(tmp_path, CYCLE)
    assert counts(columns)["served"] == SAMPLES
    assert roudi_of(reader.meta) == ("ran already", foreign_roudi.pid)
    (tmp_path / "large").mkdir()
    error = refusal(tmp_path / "large", CYCLE | {"payload_bytes": 4 << 20})  # its largest chunk, without room
    assert (error["field"], error["value"]) == ("payload_bytes", str(4 << 20))
    assert "whoever started it" in error["message"]
    assert foreign_roudi.poll() is None


def test_a_missing_roudi_is_told_with_what_installs_it(tmp_path: Path, no_roudi: None) -> None:
    error = refusal(tmp_path, CYCLE | {"environment": {"PATH": str(tmp_path)}})
    assert error["field"] == "iox-roudi"
    assert "apt install iceoryx" in error["remedy"]


def test_a_roudi_that_does_not_start_is_told_in_its_words(tmp_path: Path, no_roudi: None) -> None:
    program = tmp_path / "iox-roudi"
    program.write_text("#!/bin/sh\necho no memory is left\nexit 1\n")
    program.chmod(0o755)
    error = refusal(tmp_path, CYCLE | {"environment": {"PATH": str(tmp_path)}})
    assert (error["field"], error["value"]) == ("iox-roudi", str(program))
    assert "no memory is left" in error["message"]


@pytest.mark.parametrize("receive", ["spin", "spin_once", "poll"])
def test_a_roudi_that_dies_ends_the_run_with_an_error(tmp_path: Path, no_roudi: None, receive: str) -> None:
    with client_and_server(tmp_path, ICEORYX | ENDLESS | {"receive": receive}) as both:
        client, server = both
        _, pid = roudi_of(client.until("ready"))
        client.until_released()
        os.kill(pid, signal.SIGKILL)
        assert client.end() == 1
        until(lambda: not watches(server.process.pid, "iox-watch"))  # it knows, before it is asked to end
        # Asked to end: one that polls may be between two looks at RouDi, and then ends soundly.
        assert server.end() in ((0, 1) if receive == "poll" else (1,))
    for end in [client, *([server] if server.process.returncode else [])]:
        error = next(event for event in end.events if event["event"] == "error")
        assert (error["field"], error["value"]) == ("middleware", "iceoryx")
        assert f"iox-roudi (process {pid}) died" in error["message"]
        assert error["remedy"]
    assert accounts(client)["released"] > 0


def test_two_runs_at_once_share_a_roudi_and_nothing_else(tmp_path: Path, no_roudi: None) -> None:
    """Even if the run that started it ends first."""
    folders = [tmp_path / "first", tmp_path / "second"]
    for folder in folders:
        folder.mkdir()
    with client_and_server(folders[0], ICEORYX | {"samples": 20, "period_ns": 4 * MS}) as first:
        how, pid = roudi_of(first[1].events[-1])
        assert how == "started"
        with client_and_server(folders[1], ICEORYX | ENDLESS) as second:
            assert roudi_of(second[0].until("ready")) == ("ran already", pid)
            assert settled(*first)["released"] == 20
            at_end = second[0].until("progress")["released"]
            while second[0].until("progress")["released"] < at_end + 50:
                pass
            assert alive(pid)
            second[0].process.send_signal(signal.SIGTERM)
            assert second[0].end() == 4
            assert second[1].end() == 0
    assert read(first[1].log)[1]["sequence"].max() < 40  # 20, and the warm-up
    assert read(second[1].log)[0].meta["counters"]["refused_calls"] == 0
    until(lambda: not alive(pid))


@pytest.mark.parametrize("how", [signal.SIGKILL, signal.SIGSTOP])
def test_replies_that_never_come_are_lost_and_nothing_else(tmp_path: Path, how: signal.Signals) -> None:
    with client_and_server(tmp_path, ICEORYX | ENDLESS | {"period_ns": 50 * MS}) as (client, server):
        while client.until("progress")["max_ns"] is None:  # nothing came back yet
            pass
        send_when_idle(server.process.pid, how)
        while client.until("progress")["lost"] == 0:
            pass
        client.process.send_signal(signal.SIGTERM)
        assert client.end() == 4
        killed(server)
    found = accounts(client)
    assert found["lost"] > 0


RELIABLE: Config = ICEORYX | ENDLESS | {"reliability": "reliable", "in_flight": "open"}


@pytest.mark.parametrize("how", [signal.SIGKILL, signal.SIGSTOP])
def test_a_publisher_waits_for_its_consumer_until_roudi_takes_it_away(
    tmp_path: Path, no_roudi: None, how: signal.Signals
) -> None:
    with client_and_server(tmp_path, RELIABLE | {"period_ns": 50 * MS}) as (client, server):
        while client.until("progress")["max_ns"] is None:  # nothing came back yet
            pass
        send_when_idle(server.process.pid, how)
        while client.until("progress")["lost"] < 40:  # more than were on their way
            pass
        client.process.send_signal(signal.SIGTERM)
        assert client.end() == 4
        killed(server)
    assert accounts(client)["lost"] >= 40


def test_a_publisher_that_waits_for_good_ends_the_run_with_an_error(tmp_path: Path, no_roudi: None) -> None:
    """The other end hangs, and so does the RouDi that would take it away."""
    with client_and_server(tmp_path, RELIABLE) as (client, server):
        _, roudi = roudi_of(client.until("ready"))
        while client.until("progress")["max_ns"] is None:  # nothing came back yet
            pass
        os.kill(roudi, signal.SIGSTOP)
        try:
            send_when_idle(server.process.pid, signal.SIGSTOP)
            seen = [client.until("progress")["released"]]
            while len(seen) < 12 or seen[-1] != seen[-12]:  # it has been waiting for three seconds
                seen.append(client.until("progress")["released"])
            client.process.send_signal(signal.SIGTERM)
            assert client.end() == 1
        finally:
            os.kill(roudi, signal.SIGCONT)
        killed(server)
        killed(client)
    error = next(event for event in client.events if event["event"] == "error")
    assert (error["field"], error["value"]) == ("middleware", "iceoryx")
    assert "has not come back from a call" in error["message"]
    assert error["remedy"]
    reader, columns = read(client.log)
    assert reader.meta["outcome"] == "failed"
    assert counts(columns)["served"] > 0


def test_a_server_that_is_not_there_is_told_with_what_was_looked_for(tmp_path: Path) -> None:
    session = f"test-{uuid.uuid4()}"
    config = ICEORYX | {"measurement": "roundtrip", "role": "client", "loss_timeout_ns": LONG}
    error = refusal(tmp_path, config | {"connect_timeout_ns": 300 * MS, "session": session})
    assert (error["field"], error["value"]) == ("server", session)
    for part in ("within 300 ms", f"instance {session}", "no subscriber of ping"):
        assert part in error["message"], error


def test_the_audit_lists_what_proc_does(tmp_path: Path) -> None:
    with probe(tmp_path, CYCLE | {"samples": 1_000_000}) as one:
        ready = one.until("ready")
        seen = threads_in_proc(ready["pid"])
        assert {t["tid"]: t["name"] for t in ready["threads"]} == {tid: t[0] for tid, t in seen.items()}
        one.process.send_signal(signal.SIGTERM)
        assert one.end() == 4


@pytest.mark.parametrize(
    ("change", "field"),
    [
        ({"receive": "listener"}, "receive"),
        ({"receive": "spin_once", "drive": "poll"}, "receive"),
        ({"history_depth": 257}, "history_depth"),
        ({"session": "s" * 101}, "session"),
        ({"options": {"transport": "udp"}}, "option transport"),
    ],
)
def test_what_cannot_be_is_refused_by_name(tmp_path: Path, change: Config, field: str) -> None:
    error = refusal(tmp_path, CYCLE | change)
    assert error["field"] == field
    assert error["message"]
    assert error["remedy"]


@pytest.mark.parametrize("payload_bytes", [500, 4 << 20, 8 << 20])
def test_a_receiver_is_given_the_memory_that_its_sender_wrote(
    tmp_path: Path, no_roudi: None, payload_bytes: int
) -> None:
    """The adapter in two processes: the same file of shared memory, at the same offset."""
    here, build = Path(__file__).parent, find_probes()["iceoryx"].parent.parent.parent
    adapter, program = here.parent.parent / "adapters" / "iceoryx", tmp_path / "addresses"
    headers = next(iter(sorted(Path("/usr/include/iceoryx").glob("v2*"))), None)
    core = build / "core" / "librtmeter_core.a"
    if headers is None or not core.exists():
        pytest.skip("needs iceoryx's headers of Debian's package and a build of this checkout")
    command = [
        "g++",
        "-std=c++17",
        "-isystem",
        headers,
        "-I",
        adapter,
        "-I",
        adapter.parent.parent / "core/include",
    ]
    command += [here / "iceoryx_addresses.cpp", adapter / "roudi.cpp", core, "-o", program]
    libraries = ["iceoryx_posh", "iceoryx_hoofs", "iceoryx_platform", "rt", "pthread", "atomic", "zstd"]
    subprocess.run([*command, *(f"-l{name}" for name in libraries)], check=True)
    asked = [program, str(payload_bytes), str(uuid.uuid4())]
    done = subprocess.run(asked, stdout=subprocess.PIPE, text=True, timeout=120, check=True)
    places = dict(
        line.split(" ", 1) for line in done.stdout.splitlines() if line.startswith(("sent ", "received "))
    )
    assert places["sent"] == places["received"]
    assert places["sent"].startswith("/dev/shm/")


def test_a_chain_has_a_result_for_every_path(tmp_path: Path, no_roudi: None) -> None:
    """Whoever of its processes is first starts RouDi, and whoever is last needs it."""
    every_path_has_a_result(tmp_path, "iceoryx")


def test_a_process_hears_twenty_topics(tmp_path: Path, no_roudi: None) -> None:
    names = [f"s{n}" for n in range(20)]
    graph = "stages:\n" + "".join(f"  {name}: {{period: 20ms, process: all}}\n" for name in names)
    fused = f"  fused: {{inputs: [{', '.join(names)}], fusion: true}}\n"
    assert len(measured(tmp_path, graph + fused, adapter="iceoryx")["chain"]["paths"]) == 20


def test_further_subscribers_and_nodes_are_beside_a_round_trip(tmp_path: Path, no_roudi: None) -> None:
    more = ("--samples", 60, "--subscribers", 3, "--background-nodes", 1, "--history-depth", 100)
    run = ("--adapter", "iceoryx", "--period", "5ms", "--loss-timeout", "20s", *more)
    done = rtmeter("measure", "roundtrip", *run, "--out", tmp_path / "cell")
    assert done.code == 0, done.err
    cell = json.loads((tmp_path / "cell" / "cell.json").read_text())
    counts, beside = cell["summary"]["counts"], cell["beside"]
    assert beside["sent"] == counts["served"] + counts["lost"] > 0
    assert [(one["received"], one["lost"]) for one in beside["subscribers"]] == [(beside["sent"], 0)] * 3
    assert [one["name"] for one in beside["background_nodes"]] == ["background1"]
