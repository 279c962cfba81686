"""Load by real stress-ng: made, watched, killed in mid-run; and by one that is missing or too weak."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest
from strained import strain, stray

from front import ended, rows_of, rtmeter, running
from rtmeter.campaign.matrix import cell_from
from rtmeter.campaign.rules import settle
from rtmeter.conditions.monitor import FILE
from rtmeter.conditions.processes import everyone, members
from rtmeter.errors import RtmeterError
from rtmeter.host.root import Root
from rtmeter.measure.cell import run_cell
from rtmeter.measure.probe.supervise import Stop
from rtmeter.model import Doubt
from rtmeter.results import store
from stored import cell_json
from waiting import LIMIT_S, until

SMALL = {"cpu": 1, "cpu_percent": 10, "vm": 1, "vm_bytes": 1 << 24, "io": 1, "hdd": 1, "hdd_bytes": 1 << 20}


def in_group(group: int) -> list[int]:
    """Living processes of the process group."""
    listed = subprocess.run(["ps", "-eo", "pid,pgid,stat"], capture_output=True, text=True, check=True).stdout
    rows = [line.split() for line in listed.splitlines()[1:]]
    return [int(pid) for pid, pgid, state in rows if int(pgid) == group and state[0] != "Z"]


def all_have_worked() -> bool:
    """Whether workers of each kind of SMALL have taken processor time enough for what stress-ng counts."""
    took_s = {member.pid: member.cpu_s for member in members(leader(), Root())}
    kinds = [[pid for pid, _ in stray(f"stress-ng-{kind}")] for kind in ("cpu", "vm", "io", "hdd")]
    return all(sum(took_s.get(pid, 0) for pid in pids) > 0.2 for pids in kinds)


def leader() -> int:
    """The stress-ng that this process started."""
    return min(pid for pid, args in stray("stress-ng") if "--temp-path" in args)


def test_workers_of_every_kind_work(tmp_path: Path) -> None:
    with strain(tmp_path, load=SMALL) as strained:
        group = leader()
        until(all_have_worked)
        assert len(in_group(group)) >= 5
    assert in_group(group) == []
    facts = strained.facts()
    assert facts["effective"]["load"]["workers"] == {"cpu": 1, "vm": 1, "io": 1, "hdd": 1}
    assert facts["effective"]["load"]["version"]
    done = facts["achieved"]["load"]
    assert done["died"] is None
    assert all(done["operations"][kind] > 0 for kind in ("cpu", "vm", "io", "hdd"))
    assert 0 < done["own"] <= 1
    seen = pq.read_table(tmp_path / FILE)
    assert seen["load_workers"].to_pylist()[0] == 4
    assert facts["achieved"]["machine"]["load_workers_max"] == 4
    assert [path.name for path in tmp_path.iterdir()] == [FILE]


def test_it_stays_on_the_cpus_that_are_given(tmp_path: Path) -> None:
    cpu = max(os.sched_getaffinity(0))
    with strain(tmp_path, load={"cpu": 0, "cpu_percent": 10, "cpus": [cpu]}) as strained:
        group = leader()
        assert {cpu for pid in in_group(group) for cpu in os.sched_getaffinity(pid)} == {cpu}
    assert strained.facts()["effective"]["load"]["workers"] == {"cpu": 1}


def test_it_does_not_inherit_a_priority(tmp_path: Path) -> None:
    try:
        os.sched_setscheduler(0, os.SCHED_FIFO, os.sched_param(1))
    except PermissionError:
        pytest.skip("needs the right to real-time priorities")
    try:
        with strain(tmp_path, load={"cpu": 1, "cpu_percent": 5}):
            assert {os.sched_getscheduler(pid) for pid in in_group(leader())} == {os.SCHED_OTHER}
    finally:
        os.sched_setscheduler(0, os.SCHED_OTHER, os.sched_param(0))


@pytest.mark.parametrize("strict", [False, True])
@pytest.mark.parametrize(("victim", "type_"), [("leader", "load_died"), ("worker", "load_not_reached")])
def test_it_is_killed_in_mid_run(tmp_path: Path, victim: str, type_: str, strict: bool) -> None:
    with strain(tmp_path, load=SMALL, strict=strict) as strained:
        group = leader()
        until(all_have_worked)
        workers = [pid for pid, args in stray("stress-ng-io")]
        os.kill(group if victim == "leader" else workers[0], signal.SIGKILL)
        words = "SIGKILL" if victim == "leader" else "3 of 4 workers"
        until(lambda: any(words in doubt.message for doubt in strained.doubts()))
    assert in_group(group) == []
    (doubt,) = [doubt for doubt in strained.doubts() if doubt.type == type_]
    assert words in doubt.message
    failure = strained.failure()
    assert (failure is not None) == strict
    assert failure is None or failure.field == "load"


@pytest.mark.parametrize("strict", [False, True])
def test_an_idle_machine_that_others_keep_busy(tmp_path: Path, strict: bool) -> None:
    """They are this test's, not rtmeter's."""
    cell, busy = tmp_path / "cell", [sys.executable, "-c", "while True: pass"]
    asked = ["wakeup", "--adapter=posix", "--samples=1500", "--load=idle", f"--out={cell}"]
    with ExitStack() as stack:
        for _ in os.sched_getaffinity(0):
            one = stack.enter_context(subprocess.Popen(busy))
            stack.callback(one.kill)
        done = rtmeter("measure", *asked, *(["--strict"] if strict else []))
    assert done.code == int(strict)
    record = cell_json(cell)
    assert "load_not_idle" in [doubt["type"] for doubt in record["warnings"]]
    machine = record["conditions"]["achieved"]["machine"]
    assert machine["others"] > 0.1
    assert machine["others_most"][0]["share"] > 0
    assert (done.err + done.out).count("an idle machine was asked") == 1, "with --strict the error says it"
    assert "others took" in done.err + done.out
    assert (record["error"] is not None) == strict


def test_on_a_scripted_clock_nobody_minds_a_busy_machine(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    busy = Doubt("load_not_idle", "others took 64% of the CPUs", "end that work")
    monkeypatch.setattr("rtmeter.conditions.strain.not_idle", lambda _: iter([busy]))
    asked = {"measurement": "wakeup", "adapter": "null", "samples": 1000, "load": "idle", "strict": True}
    record = run_cell(cell_from(settle(asked), "cell", {}), tmp_path / "cell", Stop(), lambda _: None)
    assert (record.status, record.warnings) == ("complete", [])


def test_an_idle_machine_that_short_processes_keep_busy(tmp_path: Path) -> None:
    """Each ends before anybody looks at it; the shells that start them know what they took in all."""
    with ExitStack() as stack:
        shells = [orphan("while :; do /bin/true; done") for _ in os.sched_getaffinity(0)]
        for shell in shells:
            stack.callback(os.kill, shell, signal.SIGKILL)
        strained = stack.enter_context(strain(tmp_path, load={"preset": "idle"}, strict=True))
        before_s = reaped_s(shells)
        until(lambda: reaped_s(shells) - before_s > 1)
        took_s = reaped_s(shells) - before_s
    machine = strained.facts()["achieved"]["machine"]
    cpu_s = machine["seconds"] * len(machine["busy_cpus"])
    unnamed = machine.get("others_unnamed", machine.get("others_unseen"))
    assert unnamed * cpu_s > took_s / 2
    assert machine["others"] >= unnamed
    failure = strained.failure()
    assert failure is not None and "by processes that ended too soon" in failure.message


def orphan(script: str) -> int:
    """A shell that is not below this process."""
    start = ["sh", "-c", 'sh -c "$0" >/dev/null 2>&1 & echo $!', script]
    return int(subprocess.run(start, stdout=subprocess.PIPE, check=True).stdout)


def reaped_s(shells: list[int]) -> float:
    """Processor time that all that ended below them took."""
    return sum(one.with_children_s - one.cpu_s for one in everyone(Root()) if one.pid in shells)


def test_a_load_that_is_too_weak(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Workers that sleep: others on this machine may keep it busy, but then it was not the load."""
    fake(tmp_path / "bin", "sleep 60 & sleep 60 & wait", monkeypatch)
    (tmp_path / "cell").mkdir()
    with strain(tmp_path / "cell", load={"cpu": 2, "cpu_percent": 80}, strict=True) as strained:
        until(lambda: strained.facts()["achieved"]["machine"].get("seconds", 0) > 1)  # enough to judge by
    (doubt,) = strained.doubts()
    assert doubt.type == "load_not_reached"
    assert "busy" in doubt.message
    failure = strained.failure()
    assert failure is not None
    assert failure.message == doubt.message


def test_a_load_that_ends_at_once_is_quoted(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    fake(tmp_path / "bin", "echo no such worker >&2; exit 7", monkeypatch)
    (tmp_path / "cell").mkdir()
    with pytest.raises(RtmeterError) as raised, strain(tmp_path / "cell", load={"cpu": 1}):
        pass
    assert raised.value.field == "load"
    assert "exit code 7" in raised.value.message
    assert "it said: no such worker" in raised.value.message
    assert list((tmp_path / "cell").iterdir()) == []


def fake(folder: Path, script: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """A stress-ng that does as the shell script says."""
    folder.mkdir()
    (folder / "stress-ng").write_text(f"#!/bin/sh\n{script}\n")
    (folder / "stress-ng").chmod(0o755)
    monkeypatch.setenv("PATH", f"{folder}:{os.environ['PATH']}")


def test_an_unknown_stressor_is_refused_by_stress_ng(tmp_path: Path) -> None:
    with (
        pytest.raises(RtmeterError, match="unrecognized option"),
        strain(tmp_path, load={"stressors": {"nonesuch": 1}}),
    ):
        pass


def test_stress_ng_is_missing(tmp_path: Path) -> None:
    done = rtmeter(*measure(tmp_path / "cell"), "--load", "cpu80", PATH=str(tmp_path))
    assert done.code == 1
    assert "--load: needs stress-ng, which is not in PATH" in done.err
    assert "apt-get install stress-ng" in done.err
    assert not (tmp_path / "cell").exists()


def test_a_cell_under_load_says_so(tmp_path: Path) -> None:
    load = "cpu=1,cpu_percent=10,vm=1,vm_bytes=16MiB"
    done = rtmeter(*measure(tmp_path / "cell"), "--load", load, "--traffic", "1Mbit/s", "--monitor", "100ms")
    assert done.code == 0, done.err
    conditions = cell_json(tmp_path / "cell")["conditions"]
    assert conditions["asked"]["load"] == {"cpu": 1, "cpu_percent": 10, "vm": 1, "vm_bytes": 1 << 24}
    assert conditions["asked"]["traffic"]["reverse_rate"] == 1_000_000
    assert set(conditions["achieved"]) >= {"machine", "load", "traffic"}
    seen = pq.read_table(tmp_path / "cell" / FILE)
    samples = pq.read_table(tmp_path / "cell" / store.SAMPLES)
    began = min(samples["release_ns"].to_pylist())
    assert seen["at_ns"].to_pylist()[0] < began + 10**9  # one clock: the two can be joined
    assert seen["at_ns"].to_pylist()[-1] > max(samples["wake_ns"].to_pylist())


HEAVY = pytest.mark.full_only("loads of 8 and 10 workers of each kind")


@pytest.mark.parametrize(
    ("preset", "kinds"),
    [
        ("cpu80", 1),
        ("erle_device", 4),
        pytest.param("erle_pc", 4, marks=HEAVY),
        pytest.param("stress10", 4, marks=HEAVY),
    ],
)
def test_presets_run_and_end(tmp_path: Path, preset: str, kinds: int) -> None:
    done = rtmeter(*measure(tmp_path / "cell"), "--load", preset)
    assert done.code == 0, done.err
    assert f"load {preset} (CPUs " in " ".join(done.out.split())
    load = cell_json(tmp_path / "cell")["conditions"]["achieved"]["load"]
    assert (len(load["operations"]), load["died"]) == (kinds, None)
    assert sorted(path.name for path in (tmp_path / "cell").iterdir()) == sorted(
        [store.CELL, store.SAMPLES, FILE]
    )


@pytest.mark.parametrize("strict", ["true", "false"])
def test_a_strict_campaign_fails_where_its_load_is_too_weak(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, strict: str
) -> None:
    fake(tmp_path / "bin", "sleep 60 & wait", monkeypatch)
    (tmp_path / "c.yaml").write_text(
        f"defaults: {{measurement: wakeup, adapter: posix, samples: 150, warm_up: 0s, strict: {strict}}}\n"
        "cells:\n- {name: weak, period: 10ms, load: {cpu: 1}, deadline: 10s}\n"
    )
    done = rtmeter("run", tmp_path / "c.yaml", "--out", tmp_path / "results", PATH=os.environ["PATH"])
    (cell,) = store.cell_folders(tmp_path / "results")
    record = cell_json(cell)
    assert [doubt["type"] for doubt in record["warnings"] if doubt["type"].startswith("load")] == [
        "load_not_reached"
    ]
    if strict == "false":
        assert (done.code, record["status"], record["verdict"]["outcome"]) == (3, "complete", "inconclusive")
        return
    assert (done.code, record["status"], record["verdict"]["outcome"]) == (1, "failed", "error")
    assert record["error"]["field"] == "load"
    assert record["summary"]["counts"]["released"] == 150  # what was measured is kept


def measure(out: Path) -> list[object]:
    common = ["measure", "wakeup", "--adapter", "posix", "--period", "5ms", "--warm-up", "100ms"]
    return [*common, "--samples", "200", "--out", out]


def test_a_strict_cell_ends_with_its_load(tmp_path: Path) -> None:
    """It does not measure on for ten minutes; what it measured before is kept."""
    given = ["--load", "cpu=1,cpu_percent=5", "--strict", "--out", tmp_path / "cell"]
    with running("measure", "wakeup", "--adapter", "posix", "--duration", "10min", *given) as front:
        log = tmp_path / "cell.partial" / store.CLIENT_LOG
        until(lambda: rows_of(log) > 1500, of=front)
        os.kill(leader(), signal.SIGKILL)
        done = ended(front)
    assert done.code == 1
    assert "--load: stress-ng ended while it was needed: killed by SIGKILL" in done.err
    record = cell_json(tmp_path / "cell")
    assert (record["status"], record["error"]["field"]) == ("failed", "load")
    assert "load_died" in [doubt["type"] for doubt in record["warnings"]]
    assert record["summary"]["counts"]["released"] > 0


@pytest.mark.parametrize("how", [signal.SIGTERM, signal.SIGKILL])
def test_nothing_is_left_when_the_front_ends(tmp_path: Path, how: signal.Signals) -> None:
    command: list[Any] = ["measure", "wakeup", "--adapter", "posix", "--duration", "10min"]
    given = ["--load", "cpu=1,cpu_percent=5,io=1", "--traffic", "1Mbit/s", "--out", tmp_path / "cell"]
    with running(*command, *given) as front:
        log = tmp_path / "cell.partial" / store.CLIENT_LOG
        until(lambda: log.exists() and log.stat().st_size > 1000, of=front)
        programs = [pid for pid, args in stray("") if args.startswith(("stress-ng --", "iperf3 --"))]
        groups = [pid for pid in programs if os.getpgid(pid) == pid]  # a worker has that name at first, too
        assert len(groups) == 5
        front.send_signal(how)
        front.wait(LIMIT_S)
        until(lambda: not any(in_group(group) for group in groups))
