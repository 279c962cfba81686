"""The program beside real-time probes: a silent front gets a CPU, and a dead one leaves no probe behind."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from rtmeter.host.affinity import away_from
from rtmeter.host.ending import affinities, put_back
from rtmeter.host.root import Root
from rtmeter.measure.probe import guard as module
from rtmeter.measure.probe.guard import Guard
from waiting import until

DEAF = (
    "import signal, time; signal.signal(signal.SIGTERM, signal.SIG_IGN); print(flush=True); time.sleep(600)"
)
as_root = pytest.mark.skipif(os.geteuid() != 0, reason="needs the right to give real-time priority")
FIFO = {"scheduling": {"policy": "fifo", "priority": 80}}


@contextmanager
def sleeper(code: str = DEAF) -> Iterator[subprocess.Popen[bytes]]:
    process = subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE, start_new_session=True)
    assert process.stdout is not None
    process.stdout.readline()
    try:
        yield process
    finally:
        process.kill()
        process.communicate()


@contextmanager
def guarding(front: int, patience_s: float, look_every_s: float = 0.02) -> Iterator[subprocess.Popen[bytes]]:
    words = (front, 0, "", look_every_s, patience_s)
    command = [sys.executable, "-m", "rtmeter.measure.probe.guarding", *map(str, words)]
    process = subprocess.Popen(command, stdin=subprocess.PIPE, bufsize=0)
    try:
        yield process
    finally:
        process.kill()
        process.communicate()


def test_what_a_dead_front_had_started_is_killed() -> None:
    with sleeper() as probe, sleeper() as other, guarding(os.getpid(), 0) as guard:
        assert guard.stdin is not None
        guard.stdin.write(b".\n+%d\n" % probe.pid)
        guard.stdin.close()
        assert probe.wait(120) == -signal.SIGKILL
        assert guard.wait(120) == 0
        assert other.poll() is None


def test_it_ends_with_the_front_and_does_not_wait_for_who_takes_note_of_ended_probes() -> None:
    """A killed front's output is at its end then: whoever reads it, as a pipe does, need not wait."""
    with sleeper("print(flush=True)") as ended, guarding(os.getpid(), 3600, look_every_s=3600) as guard:
        os.waitid(os.P_PID, ended.pid, os.WEXITED | os.WNOWAIT)
        assert guard.stdin is not None
        guard.stdin.write(b"+%d\n" % ended.pid)
        guard.stdin.close()
        assert guard.wait(120) == 0
        os.killpg(ended.pid, 0)  # its exit code is there still


@as_root
def test_a_silent_front_gets_priority_until_it_is_heard() -> None:
    with sleeper() as front, guarding(front.pid, 0.2) as guard:
        assert guard.stdin is not None
        until(lambda: os.sched_getscheduler(front.pid) == os.SCHED_FIFO)
        assert front.poll() is None
        guard.stdin.write(b".\n")
        until(lambda: os.sched_getscheduler(front.pid) == os.SCHED_OTHER)


@as_root
def test_a_front_that_was_helped_and_has_ended_since_leaves_no_probe_behind() -> None:
    with sleeper() as front, sleeper() as probe, guarding(front.pid, 0) as guard:
        until(lambda: os.sched_getscheduler(front.pid) == os.SCHED_FIFO)
        front.kill()
        front.wait()
        assert guard.stdin is not None
        guard.stdin.write(b".\n+%d\n" % probe.pid)
        guard.stdin.close()
        assert probe.wait(120) == -signal.SIGKILL
        assert guard.wait(120) == 0


@as_root
def test_a_front_that_was_helped_is_as_before_once_the_run_ends(monkeypatch: pytest.MonkeyPatch) -> None:
    """Also its other threads, and one that was begun meanwhile: each on its own CPUs."""
    monkeypatch.setattr(module, "_LOOK_EVERY_S", 0.02)
    monkeypatch.setattr(module, "_PATIENCE_S", 0)
    own, first = os.getpid(), min(os.sched_getaffinity(0))
    done = threading.Event()
    other, later = (threading.Thread(target=done.wait, daemon=True) for _ in range(2))
    other.start()
    before = affinities(own)
    try:
        with away_from(os.sched_getaffinity(0) - {first}):
            assert other.native_id is not None
            with Guard({"scheduling": {"policy": "fifo", "priority": 1}}):
                until(lambda: all(os.sched_getscheduler(tid) == os.SCHED_FIFO for tid in affinities(own)))
                later.start()
            assert {os.sched_getscheduler(tid) for tid in affinities(own)} == {os.SCHED_OTHER}
            assert later.native_id is not None
            assert affinities(own) == before | {own: {first}, later.native_id: {first}}
    finally:
        done.set()
        put_back(own, before)


def throttling(folder: Path, runtime_us: str) -> Root:
    file = folder / "proc/sys/kernel/sched_rt_runtime_us"
    file.parent.mkdir(parents=True)
    file.write_text(runtime_us + "\n")
    return Root(folder)


def test_it_is_there_for_real_time_probes_only(tmp_path: Path) -> None:
    with Guard({"scheduling": {"policy": "other"}}) as none:
        none.beat()
        assert none._popen is None
    with Guard(FIFO, throttling(tmp_path, "950000")) as guard:
        guard.beat()
        assert guard._popen is not None and guard._popen.poll() is None
        assert guard._own == 0
    assert guard._popen.poll() == -signal.SIGKILL


@pytest.mark.parametrize(
    ("config", "own"), [(FIFO, 81), (FIFO | {"child_threads": {"policy": "rr", "priority": 99}}, 99)]
)
def test_it_is_above_the_probes_where_nothing_throttles_them(
    tmp_path: Path, config: dict[str, dict[str, object]], own: int
) -> None:
    assert Guard(config, throttling(tmp_path, "-1"))._own == own
