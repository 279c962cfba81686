"""rtmeter check --self-test for real: every disturbance is planted and seen, and none that is not made."""

from __future__ import annotations

import contextlib
import os
import subprocess
import sys
import uuid
from pathlib import Path

import pytest

from front import rtmeter, running
from rtmeter import cli, selftest
from rtmeter.cli import exit_codes
from rtmeter.errors import RtmeterError
from rtmeter.host.lock import machine_lock
from rtmeter.machine import Intent, Root, findings
from rtmeter.selftest import plants
from rtmeter.selftest.disturbance import Disturbance
from rtmeter.values import Scheduling
from waiting import until

CPU = max(os.sched_getaffinity(0))
HOUR_NS = 3_600_000_000_000

CLAIMER = """
import sys, time
print("ready", flush=True)
sys.stdin.readline()
begin_ns = time.monotonic_ns()
time.sleep(0.2)
print(begin_ns, time.monotonic_ns(), flush=True)
"""
"""A program that says that it disturbed, and did not."""

STOPS_LONG = """
import sys
from rtmeter import cli, selftest
from rtmeter.selftest import plants

def stopped(*running):
    plants.BLOW_NS = 6_000_000_000
    return plants.stopped(*running)

selftest.stopped = stopped
sys.exit(cli.invoke(sys.argv[sys.argv.index("rtmeter") + 1 :]))
"""
"""rtmeter, but that the measured process stands for 6 s: who looks sees it, however slow."""


def _may_be_real_time() -> bool:
    try:
        os.sched_setscheduler(0, os.SCHED_FIFO, os.sched_param(81))
    except PermissionError:
        return False
    os.sched_setscheduler(0, os.SCHED_OTHER, os.sched_param(0))
    return True


needs_priority = pytest.mark.skipif(not _may_be_real_time(), reason="priority 81 is refused here")


@pytest.fixture(autouse=True)
def _state(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A lock of its own: other tests measure here too."""
    monkeypatch.setenv("RTMETER_STATE_DIR", str(tmp_path))


def test_it_does_not_disturb_another_measurement(capsys: pytest.CaptureFixture[str]) -> None:
    with machine_lock("rtmeter run day.yaml"):
        assert cli.invoke(["check", "--self-test"]) == exit_codes.ERROR
    assert "one measures here already, rtmeter run day.yaml" in capsys.readouterr().err


@needs_priority
def test_every_disturbance_is_seen_and_named() -> None:
    done = rtmeter("check", "--self-test", "--cpus", CPU, "--json")
    seen = {sight["planted"]["name"]: sight for sight in done.json["self_test"]}
    found = {finding.id: finding.grade for finding in findings(Root(), Intent(cpus=(CPU,)))}
    throttles = found.get("rt_throttling") == "high" or "fair_server" in found
    assert {name: sight["outcome"] for name, sight in seen.items()} == {
        "task_above": "seen",
        "stopped": "seen",
        "throttled": "seen" if throttles else "not planted",
    }
    assert done.code == (exit_codes.PASS if throttles else exit_codes.INCONCLUSIVE)
    assert seen["task_above"]["planted"]["was_named"] is True
    assert seen["stopped"]["late_ns"] >= 160_000_000


@needs_priority
def test_killed_while_the_measured_process_is_stopped_it_leaves_nothing(tmp_path: Path) -> None:
    mark = f"RTMETER_SELFTEST_MARK={uuid.uuid4()}"
    environment = dict([mark.split("=")]) | {"TMPDIR": str(tmp_path)}
    (tmp_path / "stops_long.py").write_text(STOPS_LONG)
    stops_long = (sys.executable, str(tmp_path / "stops_long.py"))
    with running("check", "--self-test", "--cpus", CPU, inside=stops_long, **environment) as front:
        until(lambda: "T" in _states(mark).values(), of=front)
        front.kill()
        front.wait()
        until(lambda: not _states(mark))


@needs_priority
def test_a_disturbance_that_is_only_claimed_is_not_seen(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "claimer.py").write_text(CLAIMER)
    monkeypatch.setattr("rtmeter.selftest.disturbance._PROGRAM", tmp_path / "claimer.py")
    monkeypatch.setattr(selftest, "throttled", plants.stopped)  # its bound is near this machine's noise
    unseen: set[int] = set()
    for _ in range(3):  # a CPU that stands still meanwhile is seen
        sights = selftest.self_test(Intent(cpus=(CPU,)))
        assert [sight.planted.name for sight in sights] == ["task_above", "stopped", "stopped"]
        assert sights[0].planted.was_named is False
        unseen |= {n for n, sight in enumerate(sights) if sight.outcome == "not seen"}
        if len(unseen) == 3:
            return
    pytest.fail(f"seen, though nothing was planted: {sights}")


def test_what_is_refused_is_said() -> None:
    with (
        pytest.raises(RtmeterError, match="Invalid argument"),
        Disturbance("hog", "other", 0, 4095, length_ns=1),
    ):
        pass


def test_a_disturbance_lasts_as_long_as_it_is_told() -> None:
    with Disturbance("hog", "other", 0, CPU, length_ns=1_000_000) as hog:
        hog.go()
        begin_ns, end_ns = hog.window_ns()
    assert end_ns - begin_ns >= 1_000_000
    _assert_gone(hog)


def test_one_that_was_not_let_go_does_nothing() -> None:
    with Disturbance("hog", "other", 0, CPU, length_ns=HOUR_NS) as hog:
        pass
    _assert_gone(hog)


def test_a_process_that_was_stopped_goes_on() -> None:
    code = "import sys; sys.stdin.read()"
    with subprocess.Popen([sys.executable, "-c", code], stdin=subprocess.PIPE) as process:
        with Disturbance("stop", process.pid, length_ns=50_000_000) as stop:
            stop.go()
            stop.window_ns()
        process.communicate(timeout=60)
        assert process.returncode == 0


def test_a_policy_without_priorities_is_refused() -> None:
    with pytest.raises(RtmeterError, match="has no priority that a task could be above"):
        selftest.self_test(Intent(scheduling=Scheduling("other")))


def _states(mark: str) -> dict[str, str]:
    """The state of every living process whose environment has the mark."""
    states = {}
    for path in Path("/proc").glob("[0-9]*"):
        with contextlib.suppress(OSError):
            state = (path / "stat").read_text().rpartition(")")[2].split()[0]
            if state != "Z" and mark.encode() in (path / "environ").read_bytes():
                states[path.name] = state
    return states


def _assert_gone(disturbance: Disturbance) -> None:
    with pytest.raises(ProcessLookupError):
        os.kill(disturbance.pid, 0)
