"""What the front does about probes that die, hang, refuse or talk nonsense, shown on the fake probe."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest

import front
from cpus import two_cpus
from rtmeter.campaign.matrix import cell_from
from rtmeter.campaign.rules import settle
from rtmeter.conditions import Standing
from rtmeter.errors import RtmeterError
from rtmeter.measure import cell as runner
from rtmeter.measure.probe import supervise
from rtmeter.measure.probe.places import Here
from rtmeter.measure.probe.supervise import Stop
from rtmeter.model import Doubt
from rtmeter.results import store
from rtmeter.samples import LogReader
from stored import cell_json, json_of
from waiting import until

pytestmark = pytest.mark.usefixtures("fake_probe")
Watch = Callable[[dict[str, Any]], None]


def run(
    tmp_path: Path, behave: str, *, stop: Stop | None = None, watch: Watch | None = None, **given: Any
) -> dict[str, Any]:
    options = {"measurement": "wakeup", "adapter": "fake", "samples": 97, "warm_up": "3ms"}
    options |= {"options": {"behave": behave}}
    cell = cell_from(settle(options | given), "cell", {})
    return json_of(runner.run_cell(cell, tmp_path / "cell", stop or Stop(), watch or (lambda event: None)))


def roundtrip(tmp_path: Path, behave: str, **given: Any) -> dict[str, Any]:
    return run(tmp_path, behave, measurement="roundtrip", period="1ms", **given)


def rows(folder: Path) -> int:
    return int(pq.read_metadata(folder / store.SAMPLES).num_rows)


def running(folder: Path) -> list[str]:
    """Probes that still run for the folder."""
    listed = subprocess.run(["ps", "-eo", "args"], capture_output=True, text=True, check=True).stdout
    return [line for line in listed.splitlines() if "fake_probe" in line and str(folder) in line]


def test_a_cell_that_is_complete(tmp_path: Path) -> None:
    seen: list[dict[str, Any]] = []
    record = run(tmp_path, "complete", watch=seen.append, deadline="1s")
    assert (record["status"], record["valid"], record["error"]) == ("complete", True, None)
    assert record["summary"]["counts"]["released"] == 97
    assert (record["verdict"]["outcome"], record["verdict"]["more_samples"]) == ("inconclusive", 903)
    assert [event["released"] for event in seen] == list(range(10, 101, 10))
    assert sorted(p.name for p in (tmp_path / "cell").iterdir()) == [
        "cell.json",
        "monitor.parquet",
        "samples.parquet",
    ]
    assert cell_json(tmp_path / "cell") == record


def test_logs_are_kept_on_demand(tmp_path: Path) -> None:
    run(tmp_path, "complete", keep_log=True)
    assert (tmp_path / "cell" / store.CLIENT_LOG).is_file()


def test_a_probe_that_dies(tmp_path: Path) -> None:
    record = run(tmp_path, "die", deadline="1s")
    assert (record["status"], record["valid"]) == ("failed", False)
    assert "killed by SIGKILL" in record["error"]["message"]
    assert record["missing"] == [[50, None]]
    assert record["summary"]["counts"]["released"] == 47
    assert record["verdict"]["outcome"] == "error"
    assert rows(tmp_path / "cell") == 50
    assert (tmp_path / "cell" / store.CLIENT_LOG).is_file()


def test_a_probe_that_refuses_is_quoted(tmp_path: Path) -> None:
    record = run(tmp_path, "refuse")
    assert record["status"] == "failed"
    words = {key: record["error"][key] for key in ("field", "value", "message", "remedy")}
    assert words == {
        "field": "cpus",
        "value": "9",
        "message": "CPU 9 does not exist",
        "remedy": "choose 0-1",
    }


def test_status_lines_that_are_none_are_doubts(tmp_path: Path) -> None:
    record = run(tmp_path, "chatty")
    assert (record["status"], record["valid"]) == ("complete", True)
    assert [w["type"] for w in record["warnings"]] == ["malformed_status"]
    assert (tmp_path / "cell" / store.STDERR).read_text() == "middleware says hello\n"


def test_an_overflow_makes_the_result_invalid(tmp_path: Path) -> None:
    record = run(tmp_path, "overflow", deadline="1s")
    assert (record["status"], record["valid"]) == ("complete", False)
    assert "ring_overflow" in [w["type"] for w in record["warnings"]]
    assert record["verdict"]["outcome"] == "error"


def test_a_log_that_is_not_of_the_measurement(tmp_path: Path) -> None:
    record = run(tmp_path, "alien", deadline="1s")
    assert (record["status"], record["valid"], record["summary"]) == ("failed", False, None)
    assert record["error"]["value"] == "release_ns, wake_ns"
    assert not (tmp_path / "cell" / store.SAMPLES).exists()


def test_a_probe_that_does_not_get_ready(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(supervise, "_START_S", 1)
    record = run(tmp_path, "never_ready")
    assert "did not get ready within 1 s" in record["error"]["message"]
    assert running(tmp_path) == []


def test_a_probe_that_got_ready_while_the_front_stood_still_is_heard(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its limit has passed when it is first listened to."""
    listen, log = supervise._Run._listen, tmp_path / "cell.partial" / store.CLIENT_LOG

    def late(self: supervise._Run) -> None:
        until(lambda: log.is_file() and log.stat().st_size > 3000)  # it measures
        listen(self)

    monkeypatch.setattr(supervise._Run, "_listen", late)
    monkeypatch.setattr(supervise, "_START_S", -1)
    record = run(tmp_path, "slow")
    assert (record["status"], record["valid"]) == ("complete", True), record["error"]


def test_a_probe_that_falls_silent(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(supervise, "_SILENCE_S", 1)
    monkeypatch.setattr(supervise, "_GRACE_S", 0)
    record = run(tmp_path, "silent")
    assert "has not been heard of for 1 s" in record["error"]["message"]
    assert running(tmp_path) == []


def test_a_probe_that_reports_and_gets_no_further(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(supervise, "_STALL_S", 1)
    monkeypatch.setattr(supervise, "_GRACE_S", 0)
    record = run(tmp_path, "stuck", samples=10**6)
    assert "has settled no release for 1 s" in record["error"]["message"]
    assert running(tmp_path) == []


def test_doubts_about_conditions_outlive_what_ends_a_cell_before_its_probes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def lost(*_: object) -> None:
        raise RtmeterError("the connection is lost")

    monkeypatch.setattr(runner, "_findings", lost)
    monkeypatch.setattr(Standing, "doubts", lambda standing: [Doubt("setting_not_put_back", "as it was not")])
    record = run(tmp_path, "complete")
    assert (record["status"], record["error"]["message"]) == ("failed", "the connection is lost")
    assert [warning["type"] for warning in record["warnings"]] == ["setting_not_put_back"]


def test_what_stays_where_the_probe_ran_is_a_warning_of_a_whole_cell(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Here, "collect", lambda place: [Doubt("folder_not_removed", "/tmp/rtmeter-1 stays")])
    record = run(tmp_path, "complete")
    assert (record["status"], record["valid"]) == ("complete", True)
    assert [warning["type"] for warning in record["warnings"]] == ["folder_not_removed"]


def test_a_run_that_is_stopped_keeps_what_it_measured(tmp_path: Path) -> None:
    stop = Stop()
    record = run(
        tmp_path,
        "slow",
        samples=10**6,
        stop=stop,
        watch=lambda event: stop.asked or stop.ask(),
        deadline="1s",
    )
    assert (record["status"], record["valid"], record["error"]) == ("interrupted", True, None)
    assert rows(tmp_path / "cell") == record["summary"]["counts"]["released"] + 3
    assert (record["verdict"]["outcome"], record["verdict"]["misses"]) == ("inconclusive", 0)  # so few


def test_a_probe_that_does_not_end_is_killed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(supervise, "_GRACE_S", 1)
    stop = Stop()
    record = run(tmp_path, "deaf", samples=10**6, stop=stop, watch=lambda event: stop.asked or stop.ask())
    assert record["status"] == "failed"
    assert "did not end when it was asked to" in record["error"]["message"]
    assert running(tmp_path) == []
    assert rows(tmp_path / "cell") > 0


def test_the_second_interruption_kills(tmp_path: Path) -> None:
    stop = Stop()
    record = run(tmp_path, "deaf", samples=10**6, stop=stop, watch=lambda event: stop.ask())
    assert record["status"] == "failed"
    assert "killed at the second interruption" in record["error"]["message"]
    assert running(tmp_path) == []


HANGING = ("deaf", "mute", "flood", "closed", "burn")
needs_priority = pytest.mark.skipif(os.geteuid() != 0, reason="needs the right to give real-time priority")
CPU = str(max(os.sched_getaffinity(0)))


@needs_priority
@pytest.mark.timeout(240)
@pytest.mark.parametrize("behave", HANGING)
def test_no_probe_outlives_an_interruption(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, behave: str
) -> None:
    """It ignores signals, closed pipes and readers, prints nothing or without end, keeps a CPU to itself."""
    monkeypatch.setattr(supervise, "_GRACE_S", 1)
    stop = Stop()

    def ask_once_it_is_deaf() -> None:
        until((tmp_path / "cell.partial" / "deaf").exists)
        stop.ask()

    asking = threading.Thread(target=ask_once_it_is_deaf)
    asking.start()
    record = run(tmp_path, behave, samples=10**6, stop=stop, cpus=CPU)
    asking.join()
    assert record["status"] == "failed"
    assert "did not end when it was asked to" in record["error"]["message"]
    assert running(tmp_path) == []


@needs_priority
@pytest.mark.timeout(240)
@pytest.mark.parametrize("behave", ["mute", "flood", "closed", "burn", "see_saw"])
def test_no_probe_hangs_for_ever_without_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, behave: str
) -> None:
    monkeypatch.setattr(supervise, "_START_S", 3)
    monkeypatch.setattr(supervise, "_SILENCE_S", 1)
    monkeypatch.setattr(supervise, "_STALL_S", 1)
    monkeypatch.setattr(supervise, "_GRACE_S", 0)
    record = run(tmp_path, behave, samples=10**6, cpus=CPU)
    assert record["status"] == "failed"
    said = ("did not get ready within 3 s", "has settled no release for 1 s", "has not been heard of for 1 s")
    assert any(words in record["error"]["message"] for words in said)
    assert running(tmp_path) == []


@pytest.mark.timeout(240)
@pytest.mark.parametrize(("samples", "settled"), [(17, "30 of 20"), (16, "20 of 19")])
def test_a_probe_that_goes_on_beyond_its_end(tmp_path: Path, samples: int, settled: str) -> None:
    record = run(tmp_path, "beyond", samples=samples)
    assert record["error"]["message"] == f"says that it has settled {settled} releases"
    assert running(tmp_path) == []


@pytest.mark.timeout(240)
def test_a_child_that_a_probe_leaves_is_ended(tmp_path: Path) -> None:
    assert run(tmp_path, "parent")["status"] == "complete"
    until(lambda: running(tmp_path) == [])


def test_numbers_that_are_none_are_no_progress(tmp_path: Path) -> None:
    seen: list[dict[str, Any]] = []
    record = run(tmp_path, "careless", watch=seen.append)
    assert seen == []
    assert [w["message"].partition(" status")[0] for w in record["warnings"]] == ["3"]


def test_a_pipe_in_the_place_of_the_log_is_not_waited_for(tmp_path: Path) -> None:
    record = run(tmp_path, "pipe")
    assert record["error"]["message"] == "cannot be read: It is no regular file"
    assert (record["error"]["field"], record["error"]["value"]) == ("log", store.CLIENT_LOG)
    assert (tmp_path / "cell" / store.CLIENT_LOG).is_fifo()


@needs_priority
@pytest.mark.timeout(240)
def test_ends_that_keep_each_other_from_running_are_killed_together(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The client waits for the CPU that its server keeps: killed, it needs that CPU to end on."""
    monkeypatch.setattr(supervise, "_START_S", 5)
    record = roundtrip(tmp_path, "burn", connect_timeout="1ms", cpus=CPU)
    assert "did not get ready within 5 s" in record["error"]["message"]
    assert running(tmp_path) == []


FRONT = """
import sys
from rtmeter.measure.probe import supervise
from rtmeter.cli import main
supervise._GRACE_S = {grace_s}
main()
"""


@pytest.mark.timeout(300)
@pytest.mark.parametrize(("number", "grace_s"), [(signal.SIGTERM, 1), (signal.SIGINT, 600)])
def test_the_front_ends_beside_a_deaf_probe(
    tmp_path: Path, fake_probe: Path, number: signal.Signals, grace_s: int
) -> None:
    """At SIGTERM after the time that the probe is given; at the second SIGINT at once."""
    command = ["measure", "wakeup", "--adapter", "fake", "--samples", "1000000", "--option", "behave=deaf"]
    process = subprocess.Popen(
        [sys.executable, "-c", FRONT.format(grace_s=grace_s), *command, "--out", "cell"],
        cwd=tmp_path,
        env=os.environ | {"RTMETER_PROBE_PATH": str(fake_probe.parent)},
        stderr=subprocess.PIPE,
        text=True,
    )
    log = tmp_path / "cell.partial" / store.CLIENT_LOG
    until(lambda: log.is_file() and log.stat().st_size > 3000, of=process)
    process.send_signal(number)
    assert process.stderr is not None
    while "ending" not in (line := process.stderr.readline()):
        assert line, "it ended without a word of it"
    if number == signal.SIGINT:
        process.send_signal(number)
    _, said = process.communicate()
    assert process.returncode == 1
    why = (
        "killed at the second interruption" if number == signal.SIGINT else "did not end when it was asked to"
    )
    assert why in said
    assert running(tmp_path) == []
    assert rows(tmp_path / "cell") > 0


@pytest.mark.parametrize(
    ("behave", "remedy"),
    [("die", "it printed nothing"), ("die_aloud", "see what it printed in the cell's probe.stderr")],
)
def test_nobody_is_sent_to_a_file_that_is_not_there(tmp_path: Path, behave: str, remedy: str) -> None:
    record = run(tmp_path, behave)
    assert record["error"]["remedy"] == remedy
    assert (tmp_path / "cell" / store.STDERR).exists() == ("stderr" in remedy)


@pytest.mark.skipif((os.cpu_count() or 1) < 2, reason="needs a CPU besides the measured one")
@two_cpus
def test_the_front_stands_aside_while_it_measures(tmp_path: Path) -> None:
    before = os.sched_getaffinity(0)
    measured = min(before)
    seen: set[frozenset[int]] = set()
    run(
        tmp_path,
        "complete",
        cpus=str(measured),
        watch=lambda e: seen.add(frozenset(os.sched_getaffinity(0))),
    )
    assert frozenset(before - {measured}) in seen
    assert os.sched_getaffinity(0) == before
    assert os.sched_getscheduler(0) == os.SCHED_OTHER


def test_probes_end_when_the_front_is_killed(tmp_path: Path, fake_probe: Path) -> None:
    command = ["measure", "wakeup", "--adapter", "fake", "--samples", "1000000", "--option", "behave=slow"]
    log = tmp_path / "cell.partial" / store.CLIENT_LOG
    probes = {"RTMETER_PROBE_PATH": str(fake_probe.parent)}
    with front.running(*command, "--out", "cell", cwd=tmp_path, **probes) as process:
        until(lambda: log.is_file() and log.stat().st_size > 3000, of=process)
        process.kill()
        process.wait()
    until(lambda: LogReader(log).ended)
    assert LogReader(log).meta["outcome"] == "interrupted"
    assert not (tmp_path / "cell").exists()


def test_a_stop_may_come_from_a_signal_handler(tmp_path: Path) -> None:
    stop = Stop()
    before = signal.signal(signal.SIGUSR1, lambda *_: stop.ask())
    try:
        asking = lambda event: stop.asked or os.kill(os.getpid(), signal.SIGUSR1)  # noqa: E731
        record = run(tmp_path, "slow", samples=10**6, stop=stop, watch=asking)
    finally:
        signal.signal(signal.SIGUSR1, before)
    assert record["status"] == "interrupted"
