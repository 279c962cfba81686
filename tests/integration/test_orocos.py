"""The OROCOS adapter over the real RTT: every activity, connection and option, and what goes wrong. That a
component which throws ends the run is tested in adapters/orocos/tests."""

from __future__ import annotations

import os
import signal
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from dds_runs import audited, in_order, threads_in_proc, threads_of
from probe_runs import (
    LONG,
    MS,
    SAMPLES,
    Columns,
    Config,
    Probe,
    counts,
    measure,
    needs_fifo,
    only,
    probe,
    read,
    refusal,
)

from front import rtmeter
from rtmeter.measure.probe.probes import find_probes
from rtmeter.model import ABSENT, SERVED, SKIPPED

pytestmark = pytest.mark.skipif("orocos" not in find_probes(), reason="the adapter orocos is not built here")

PERIOD = 2 * MS
TIMER: Config = {"adapter": "orocos", "period_ns": PERIOD, "measurement": "timer", "mode": "periodic"}
CYCLE: Config = {
    "adapter": "orocos",
    "period_ns": PERIOD,
    "measurement": "cycle",
    "loss_timeout_ns": LONG,
    "history_depth": 8,
}
FIFO: Config = {"scheduling": {"policy": "fifo", "priority": 20}}


def with_options(config: Config, **options: str) -> Config:
    return config | {"options": options}


@pytest.mark.parametrize(("before", "threads"), [("init", 0), ("init_and_node", 1)])
def test_wakeup_beside_its_threads(tmp_path: Path, before: str, threads: int) -> None:
    reader, columns = measure(tmp_path, TIMER | {"measurement": "wakeup", "mode": None, "before": before})
    assert counts(columns)["served"] == SAMPLES
    assert len(threads_of(reader.meta)) == threads


@pytest.mark.parametrize("activity", ["Activity", "PeriodicActivity"])
@pytest.mark.parametrize("wait", ["absolute", "relative"])
def test_every_tick_is_served(tmp_path: Path, activity: str, wait: str) -> None:
    reader, columns = measure(tmp_path, with_options(TIMER, activity=activity, wait=wait))
    found = counts(columns)
    assert found["served"] == found["released"] == SAMPLES
    assert reader.meta["effective"]["overrun"] == "catch_up"
    assert reader.meta["adapter"]["wait"] == wait
    assert f": {activity}, every {PERIOD} ns, " in reader.meta["adapter"]["activities"]
    reports = activity == "PeriodicActivity" and wait == "absolute"
    assert reader.meta["ticks"] == ("reported" if reports else "every_tick")
    assert reader.meta["grid"]["t0_from"] == ("reported" if reports else "inferred")
    if reports:
        assert np.array_equal(columns["reported_expected_ns"], columns["release_ns"])
        assert np.all(columns["callback_ns"] >= columns["release_ns"])
    else:
        assert np.all(columns["reported_expected_ns"] == ABSENT)


def test_a_slave_activity_runs_when_the_measured_thread_wakes(tmp_path: Path) -> None:
    reader, columns = measure(tmp_path, TIMER | {"drive": "sleep_then_spin_some"})
    assert counts(columns)["served"] == SAMPLES
    assert np.all(columns["callback_ns"] >= columns["release_ns"])
    assert reader.meta["adapter"]["activities"] == "timer: SlaveActivity"
    assert not threads_of(reader.meta)


@pytest.mark.parametrize("activity", ["Activity", "PeriodicActivity"])
def test_what_was_missed_runs_late_and_nothing_is_skipped(tmp_path: Path, activity: str) -> None:
    """A process that stands still for 50 periods has 50 ticks to make up for."""
    with probe(tmp_path, with_options(TIMER, activity=activity) | {"samples": 1_000_000}) as one:
        one.until("ready")
        one.until_released()
        one.stand_still(50 * PERIOD)
        while ((late := one.until("progress"))["max_ns"] or 0) < 40 * PERIOD:
            pass
        while one.until("progress")["released"] < late["released"] + 50:
            pass
        one.process.send_signal(signal.SIGINT)
        assert one.end() == 4
    columns = read(one.log)[1]
    served, skipped = only(columns, SERVED), only(columns, SKIPPED)
    assert np.all(skipped["release_ns"] > served["release_ns"].max()), "only those due when it was ended"
    assert np.count_nonzero(served["callback_ns"] - served["release_ns"] > PERIOD) >= 40


def served_in_order(columns: Columns, t0_from: str) -> bool:
    served = only(columns, SERVED)
    if t0_from == "inferred":  # a later run through the grid may come before the one that it is taken from
        served["release_ns"] = served["start_ns"]
    return in_order(served)


@pytest.mark.parametrize("drive", ["spin", "sleep_then_spin_some"])
@pytest.mark.parametrize(
    ("components", "lock"),
    [
        ("two_threads", "lock_free"),
        ("two_threads", "locked"),
        ("one_thread", "lock_free"),
        ("one_thread", "unsync"),
    ],
)
@pytest.mark.parametrize("connection", ["data", "buffer", "circular_buffer"])
def test_cycle(tmp_path: Path, drive: str, components: str, lock: str, connection: str) -> None:
    config = with_options(CYCLE, lock=lock, connection=connection) | {"components": components}
    # Else what is sent may replace, or be refused for, what was not read yet.
    none_waits = components == "one_thread" or drive == "sleep_then_spin_some"
    config |= {"drive": drive, "samples": 100, "loss_timeout_ns": LONG if none_waits else 500 * MS}
    reader, columns = measure(tmp_path, config)
    found = counts(columns)
    assert found["served"] + found["lost"] == found["released"] == 100
    assert served_in_order(columns, reader.meta["grid"]["t0_from"])
    if none_waits:
        assert found["lost"] == reader.meta["counters"]["refused_calls"] == 0
    kind = "DATA" if connection == "data" else f"{connection.upper()}[8]"
    policy = f"PUSH PerConnection {lock.upper()} {kind}"
    assert reader.meta["adapter"]["connections"] == [f"{end}: {policy}" for end in ("request", "response")]
    threads = (drive == "spin") + (components == "two_threads")
    assert len(threads_of(reader.meta)) == threads
    assert reader.meta["effective"]["components"] == components
    assert reader.meta["effective"]["grid"] == ("inferred" if drive == "spin" else "core")


def test_a_periodic_activity_is_not_triggered(tmp_path: Path) -> None:
    """Its component sees the response when its next period comes."""
    config = with_options(CYCLE, activity="PeriodicActivity", connection="buffer")
    _, columns = measure(tmp_path, config | {"loss_timeout_ns": 500 * MS})
    served = only(columns, SERVED)
    assert len(served["release_ns"]) > 0
    assert np.all(served["response_received_ns"] >= served["release_ns"] + PERIOD)


def roles(ready: dict[str, Any]) -> dict[str, tuple[str, int, list[int]]]:
    return {
        t["name"]: (t["policy"], t["priority"], t["cpus"])
        for t in ready["threads"]
        if t["role"] == "middleware"
    }


@needs_fifo
def test_priority_and_cpu_go_through_rtt_and_are_read_back(tmp_path: Path) -> None:
    """Audit, RTT's own words and ps agree; a's priority differs from the one that it would inherit."""
    cpus = sorted(os.sched_getaffinity(0))
    a, b = cpus[0], cpus[-1]
    options = {"threads": "orocos-a=fifo:30,orocos-b=rr:10", "cpus": f"orocos-a={a},orocos-b={b}"}
    with probe(tmp_path, CYCLE | FIFO | {"samples": 1_000_000, "options": options}) as one:
        ready = one.until("ready")
        assert roles(ready) == {"orocos-a": ("fifo", 30, [a]), "orocos-b": ("rr", 10, [b])}
        described = ready["adapter"]["activities"]
        assert [words.partition(", ")[2].partition(", ")[2] for words in described] == [
            f"fifo:30, CPU {a}",
            f"rr:10, CPU {b}",
        ]
        assert ready["adapter"]["threads"]["set_by_system"] == ""
        assert audited(ready) == threads_in_proc(ready["pid"])
        interrupted(one)


def interrupted(one: Probe) -> None:
    one.process.send_signal(signal.SIGINT)
    one.end()
    assert one.events[-1]["outcome"] == "interrupted"


@needs_fifo
@pytest.mark.parametrize(("apply", "expected"), [("before_init", ("fifo", 20)), ("after_init", ("other", 0))])
@pytest.mark.parametrize("activity", ["Activity", "PeriodicActivity"])
def test_its_threads_have_the_policy_of_who_makes_them(
    tmp_path: Path, apply: str, expected: tuple[str, int], activity: str
) -> None:
    config = with_options(CYCLE, activity=activity) | FIFO | {"apply": apply, "samples": 1_000_000}
    with probe(tmp_path, config) as one:
        ready = one.until("ready")
        assert {(policy, priority) for policy, priority, _ in roles(ready).values()} == {expected}
        assert audited(ready) == threads_in_proc(ready["pid"])
        interrupted(one)


@pytest.mark.parametrize(
    ("config", "field"),
    [
        (with_options(TIMER, activity="Sundial"), "option activity"),
        (with_options(TIMER, wait="never"), "option wait"),
        (with_options(TIMER, activity="Activity") | {"drive": "sleep_then_spin_some"}, "option activity"),
        (with_options(TIMER, wait="relative") | {"drive": "sleep_then_spin_some"}, "option wait"),
        (with_options(TIMER, connection="data"), "option connection"),
        (TIMER | {"overrun": "skip"}, "overrun"),
        (TIMER | {"mode": "one_shot", "timeout_ns": PERIOD}, "measurement"),
        (with_options(CYCLE, lock="unsync"), "option lock"),
        (CYCLE | {"reliability": "reliable"}, "reliability"),
        (with_options(CYCLE, responder="slave"), "option responder"),  # components says it
        (with_options(CYCLE, cpus="many"), "option cpus"),
        (with_options(CYCLE, cpus="31"), "option cpus"),
        pytest.param(with_options(CYCLE, threads="orocos-c=fifo:10"), "option threads", marks=needs_fifo),
        (with_options(CYCLE, cpus="orocos-c=0"), "option cpus"),
    ],
)
def test_what_cannot_be_is_refused_by_name(tmp_path: Path, config: Config, field: str) -> None:
    if config.get("options") == {"cpus": "31"} and 31 in os.sched_getaffinity(0):
        pytest.skip("this machine has a CPU 31")
    error = refusal(tmp_path, config)
    assert error["field"] == field
    assert error["message"]
    assert error["remedy"]


def support_of(out: Path, *arguments: str) -> dict[str, Any]:
    """What a verdict says of the delay of a run of the command line."""
    done = rtmeter("measure", *arguments, "--adapter=orocos", "--deadline=1ms", "--json", f"--out={out}")
    assert done.code in (0, 2, 3), done.err
    support = done.json["verdict"]["support"]
    assert isinstance(support, dict)
    return support


def test_a_relative_wait_grows_and_is_named(tmp_path: Path) -> None:
    timer = ("timer", "--mode=periodic", "--period=1ms", "--samples=4000", "--warm-up=20ms")
    found = support_of(tmp_path / "relative", *timer, "--option=wait=relative")
    assert (found["growth"], found["causes"]) == ("drifting", ["relative_rearming"])


def test_work_that_does_not_fit_its_period_is_named(tmp_path: Path) -> None:
    """On any machine it takes longer than half a millisecond to copy four megabytes four times."""
    cycle = ("cycle", "--drive=sleep_then_spin_some", "--period=500us", "--samples=200", "--warm-up=5ms")
    found = support_of(tmp_path / "work", *cycle, "--loss-timeout=20s", "--payload=4MiB")
    assert (found["growth"], found["causes"]) == ("overloaded", ["work_longer_than_period"])
