"""The ROS 2 adapter over a real rclcpp: every measurement, executor and call of its."""

from __future__ import annotations

import signal
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from dds_runs import in_order, settled, threads_in_proc, threads_of
from probe_runs import (
    LONG,
    MS,
    SAMPLES,
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
    shots,
)
from ros2_runs import CYCLE, EXECUTORS, HAS_TLSF, PERIOD, RMWS, ROS2, needs_ros2, with_options, with_rmw
from ros_runs import losses_of_a_silent_server, stamps

from rtmeter.model import ABSENT, SERVED

pytestmark = needs_ros2

CALLS = [("spin", "spin"), ("spin", "spin_once")]
WITHOUT_WAITING = ("spin_some", "spin_all", "spin_once")
CALLS += [(drive, call) for drive in ("sleep_then_spin_some", "poll") for call in WITHOUT_WAITING]
BY_CALL = [("single_threaded", *call) for call in CALLS]
BY_EXECUTOR = [(e, *CALLS[n]) for e in EXECUTORS if e != "single_threaded" for n in (0, 1, 2)]
LTTNG = "-ust"
"""How the names of LTTng's threads end: two in each process that loads a tracetools with it, as in ROS's own
packages."""
RUNS = 20
"""At most so many for what a race decides to be seen once."""
ROUND_TRIP: Config = ROS2 | {"samples": 50, "warm_up": 5, "period_ns": 5 * MS}


def timer(mode: str, executor: str, drive: str, call: str, **more: object) -> Config:
    of = {"measurement": "timer", "mode": mode, "drive": drive}
    return ROS2 | of | with_options(executor=executor, spin=call) | more


@pytest.mark.parametrize("rmw", RMWS)
def test_wakeup_beside_its_threads(tmp_path: Path, rmw: str) -> None:
    """Initialised, ROS has a thread of its logging's at most, which gives itself no name, and LTTng's where
    tracetools is compiled with it; a node brings the RMW's."""
    names = {}
    for before in ("init", "init_and_node"):
        (tmp_path / before).mkdir()
        config = ROS2 | with_rmw(rmw) | {"measurement": "wakeup", "before": before}
        reader, columns = measure(tmp_path / before, config)
        assert counts(columns)["served"] == SAMPLES
        assert reader.meta["adapter"]["rmw"] == rmw
        [unnamed] = threads_of(reader.meta, "measured").values()
        all_names = [thread["name"] for thread in threads_of(reader.meta).values()]
        names[before] = [name for name in all_names if not name.endswith(LTTNG)]
    assert names["init"] in ([], [unnamed["name"]])
    assert len(names["init_and_node"]) > len(names["init"])


@pytest.mark.parametrize(
    ("executor", "drive", "call"), [row for row in BY_CALL + BY_EXECUTOR if row[1:] != ("spin", "spin")]
)
def test_one_shot_fires_as_often_as_it_is_armed(tmp_path: Path, executor: str, drive: str, call: str) -> None:
    """With drive spin each shot is waited for by spin_once: there is nothing to choose."""
    config = timer("one_shot", executor, drive, call, timeout_ns=PERIOD, samples=50)
    if drive == "spin":
        config |= with_options(executor=executor)
    reader, columns = shots(tmp_path, config)
    found = counts(columns)
    assert found["served"] == found["released"] == 50
    facts = reader.meta["adapter"]
    assert (facts["executor"], facts["spin"]) == (executor, call)
    assert facts["reported_clock"] == "monotonic"
    assert np.all(columns["reported_expected_ns"] >= columns["armed_before_ns"] + PERIOD)
    assert np.all(columns["reported_expected_ns"] <= columns["armed_after_ns"] + PERIOD)
    assert np.all(columns["reported_actual_ns"] >= columns["reported_expected_ns"])
    assert np.all(columns["reported_actual_ns"] <= columns["callback_ns"])


@pytest.mark.parametrize(("executor", "drive", "call"), BY_CALL + BY_EXECUTOR)
def test_periodic_accounts_for_every_release(tmp_path: Path, executor: str, drive: str, call: str) -> None:
    reader, columns = measure(tmp_path, timer("periodic", executor, drive, call, samples=100))
    found = counts(columns)
    assert found["served"] + found["skipped"] == found["released"] == 100
    assert has(columns, SERVED)
    assert reader.meta["effective"]["overrun"] == "skip"
    assert reader.meta["ticks"] == "reported"
    assert reader.meta["grid"]["t0_from"] == ("core" if drive == "sleep_then_spin_some" else "reported")
    served = only(columns, SERVED)
    if drive != "sleep_then_spin_some":  # the grid is the timer's own
        assert np.array_equal(served["release_ns"], served["reported_expected_ns"])
    assert np.all(served["reported_actual_ns"] >= served["reported_expected_ns"])
    assert np.all(served["callback_ns"] >= served["reported_actual_ns"])


def test_a_stall_is_one_late_call_and_skipped_ticks(tmp_path: Path) -> None:
    """rcl passes over what it missed: it neither calls it late nor lets it vanish."""
    config = timer("periodic", "single_threaded", "spin", "spin", samples=1_000_000)
    with probe(tmp_path, config) as one:
        while one.until("progress")["skipped"] == 0:
            one.stand_still(50 * PERIOD)
        one.process.send_signal(signal.SIGINT)
        assert one.end() == 4
    _, columns = read(one.log)
    found = counts(columns)
    assert found["skipped"] > 0
    assert found["served"] + found["skipped"] == found["released"]
    served = only(columns, SERVED)
    assert np.max(served["callback_ns"] - served["release_ns"]) > PERIOD


@pytest.mark.parametrize("group", ["node", "own"])
@pytest.mark.parametrize("intra_process", ["no", "yes"])
@pytest.mark.parametrize("drive", ["sleep_then_spin_some", "spin"])
@pytest.mark.parametrize("components", ["one_thread", "two_threads"])
def test_cycle_of_two_nodes(
    tmp_path: Path, group: str, intra_process: str, drive: str, components: str
) -> None:
    options = with_options(intra_process=intra_process, callback_group=group)
    room = {"history_depth": SAMPLES}  # a late callback finds its request all the same
    reader, columns = measure(tmp_path, CYCLE | {"drive": drive, "components": components} | options | room)
    found = counts(columns)
    assert found["served"] + found["skipped"] + found["lost"] == SAMPLES
    assert found["lost"] == 0
    assert in_order(only(columns, SERVED))
    facts = reader.meta["adapter"]
    assert (facts["intra_process"], facts["callback_group"]) == (intra_process, group)
    assert reader.meta["counters"]["refused_calls"] == 0
    names = {thread["name"] for thread in threads_of(reader.meta).values()}
    assert ("ros2-background" in names) == (group == "own" or components == "two_threads")
    assert reader.meta["effective"]["components"] == components


@pytest.mark.parametrize("executor", EXECUTORS)
@pytest.mark.parametrize("rmw", RMWS)
def test_round_trip_between_processes(tmp_path: Path, rmw: str, executor: str) -> None:
    config = ROUND_TRIP | with_rmw(rmw) | with_options(executor=executor) | {"reliability": "reliable"}
    with client_and_server(tmp_path, config) as both:
        assert settled(*both)["lost"] == 0
    for end in both:
        facts = read(end.log)[0].meta["adapter"]
        assert facts["rmw"] == rmw
        assert facts["rmw_library"].startswith({"rmw_cyclonedds_cpp": "libddsc.so."}.get(rmw, "lib"))
        assert facts["executor"] == executor
        assert facts["qos"]["reliability"] == "reliable"
        assert facts["qos"]["history"] == "keep_last"
        assert facts["qos"]["depth"] == "1"


@pytest.mark.parametrize("executor", EXECUTORS)
@pytest.mark.parametrize("receive", ["spin", "spin_once"])
def test_requests_are_received_by_the_executors_own_call(tmp_path: Path, executor: str, receive: str) -> None:
    """spin(), by default, on a thread of its own, and on several where the executor has several."""
    threads = {"executor_threads": "3"} if executor == "multi_threaded" else {}
    config = ROUND_TRIP | with_options(executor=executor, **threads) | {"reliability": "reliable"}
    if receive != "spin":
        config |= {"receive": receive}
    several = executor == "multi_threaded" and receive == "spin"
    config |= {"samples": 400} if several else {}
    stamping: list[dict[str, Any]] = []
    for attempt in range(RUNS if several else 1):  # one may serve a whole run: who takes the next is a race
        (folder := tmp_path / str(attempt)).mkdir()
        with client_and_server(folder, config) as both:
            assert settled(*both)["lost"] == 0
        for end in both:
            assert read(end.log)[0].meta["adapter"]["spin"] == receive
        stamping = stamps(both[0].log)
        if len(stamping) > 1:
            break
    if several:
        assert len(stamping) > 1, "they are listed though they ended with the spin"
        assert {thread["policy"] for thread in stamping} == {"other"}
    elif not executor.startswith("events_cbg"):
        [one] = stamping
        assert (one["name"] == "rtm-receiver") == (receive == "spin")


@pytest.mark.parametrize("receive", ["spin_once", "poll"])
def test_option_rmw_stands_above_the_environment(tmp_path: Path, receive: str) -> None:
    for rmw, other in zip(RMWS, reversed(RMWS), strict=True):
        config = ROUND_TRIP | with_rmw(other) | with_options(rmw=rmw) | {"receive": receive}
        folder = tmp_path / rmw
        folder.mkdir()
        with client_and_server(folder, config) as both:
            settled(*both)
        facts = read(both[0].log)[0].meta["adapter"]
        assert facts["rmw"] == facts["environment"]["RMW_IMPLEMENTATION"] == rmw


@pytest.mark.parametrize("intra_process", ["no", "yes"])
@pytest.mark.parametrize("in_flight", ["one", "open"])
def test_round_trip_between_two_nodes_of_one_process(
    tmp_path: Path, intra_process: str, in_flight: str
) -> None:
    config = ROUND_TRIP | {"measurement": "roundtrip", "role": "client", "loss_timeout_ns": LONG}
    config |= {"reliability": "reliable", "history_depth": 100}
    options = with_options(server="inline", intra_process=intra_process)
    reader, columns = measure(tmp_path, config | options | {"in_flight": in_flight})
    found = counts(columns)
    assert found["served"] + found["skipped"] == found["released"]
    assert has(columns, SERVED)
    assert reader.meta["adapter"]["server"] == "inline"
    assert reader.meta["counters"]["corrupted"] == reader.meta["counters"]["refused_calls"] == 0


@pytest.mark.parametrize("payload_bytes", [8, 128 << 10])
def test_tlsf_allocates(tmp_path: Path, payload_bytes: int) -> None:
    """The bytes of payloads apart, which the result says."""
    if not HAS_TLSF:
        pytest.skip("this ROS 2 has no tlsf_cpp")
    config = ROUND_TRIP | with_options(allocator="tlsf") | {"payload_bytes": payload_bytes}
    with client_and_server(tmp_path, config) as both:
        settled(*both)
    described = read(both[0].log)[0].meta["adapter"]
    assert (described["allocator"], described["payload_allocator"]) == ("tlsf", "std")
    measure(tmp_path, CYCLE | with_options(allocator="tlsf", intra_process="yes"))


def test_tlsf_where_it_is_there(tmp_path: Path) -> None:
    """As the real-time cells of the campaign of 2018 ask for it."""
    described = measure(tmp_path, CYCLE | with_options(allocator="tlsf_or_std"))[0].meta["adapter"]
    assert described["allocator"] == ("tlsf" if HAS_TLSF else "std")


@pytest.mark.parametrize("rmw", RMWS)
def test_the_way_of_the_messages_is_told(tmp_path: Path, rmw: str) -> None:
    with client_and_server(tmp_path, ROUND_TRIP | with_rmw(rmw)) as both:
        found = settled(*both)
    expected = {"rmw_cyclonedds_cpp": "udp", "rmw_fastrtps_cpp": "shared_memory"}
    for end in both:
        path = read(end.log)[0].meta["path"]
        assert path["carried_by"] == expected.get(rmw, path["carried_by"])
        assert path["messages"] >= max(found["served"], 1)


def test_a_bare_node_has_fewer_ends(tmp_path: Path) -> None:
    """What it has is seen by whoever spins it: it is measured all the same."""
    reader, columns = measure(
        tmp_path, timer("periodic", "single_threaded", "spin", "spin") | with_options(node="bare")
    )
    assert has(columns, SERVED)
    assert reader.meta["adapter"]["node"] == "bare"


@needs_fifo
@pytest.mark.parametrize("rmw", RMWS)
def test_priorities_of_the_middlewares_threads(tmp_path: Path, rmw: str) -> None:
    config = ROUND_TRIP | with_rmw(rmw) | {"samples": 1_000_000} | with_options(threads="fifo:17")
    with client_and_server(tmp_path, config) as (client, server):
        ready = client.until("ready")
        brought = [t for t in ready["threads"] if t["role"] == "middleware" and not t["name"].endswith(LTTNG)]
        named: dict[int, Any] = {t["tid"]: t for t in brought}
        in_proc = threads_in_proc(client.process.pid)
        assert named
        for tid, thread in named.items():
            assert in_proc[tid][1:] == ("fifo", 17)
            assert (thread["policy"], thread["priority"]) == ("fifo", 17)
        client.process.send_signal(signal.SIGINT)
        assert client.end() == 4
        assert server.end() == 0


@needs_fifo
@pytest.mark.parametrize("children", ["other", "rr", "fifo"])
def test_children_at_any_policy(tmp_path: Path, children: str) -> None:
    policy = {"policy": children} | ({} if children == "other" else {"priority": 9})
    config = ROS2 | {"measurement": "wakeup", "before": "init_and_node", "child_threads": policy}
    reader, _ = measure(tmp_path, config | {"scheduling": {"policy": "fifo", "priority": 9}})
    assert {t["policy"] for t in threads_of(reader.meta).values()} == {children}


@pytest.mark.parametrize("how", [signal.SIGKILL, signal.SIGSTOP])
@pytest.mark.parametrize("rmw", RMWS)
def test_replies_that_never_come_are_lost_and_nothing_else(
    tmp_path: Path, rmw: str, how: signal.Signals
) -> None:
    losses_of_a_silent_server(tmp_path, ROS2 | with_rmw(rmw), how)


def test_an_end_by_ctrl_c_keeps_what_was_measured(tmp_path: Path) -> None:
    for drive, executor in (("spin", EXECUTORS[-1]), ("spin", "multi_threaded"), ("poll", "single_threaded")):
        folder = tmp_path / f"{drive}-{executor}"
        folder.mkdir()
        config = timer("periodic", executor, drive, "spin" if drive == "spin" else "spin_some", samples=10**7)
        with probe(folder, config) as one:
            one.until_released()
            one.process.send_signal(signal.SIGINT)
            assert one.end() == 4
        found = accounts(one)
        assert found["served"] + found["skipped"] == found["released"] > 0
        assert ABSENT not in only(read(one.log)[1], SERVED)["reported_expected_ns"]
