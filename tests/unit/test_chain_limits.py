"""The front beside processes of a chain that never come to their end, shown on the fake probe."""

from __future__ import annotations

import os
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from rtmeter.campaign.matrix import cell_from
from rtmeter.campaign.rules import settle
from rtmeter.measure import cell as runner
from rtmeter.measure.probe import together
from rtmeter.measure.probe.supervise import OnProgress, Stop
from rtmeter.results.record import CellRecord
from rtmeter.results.store import TEAM
from waiting import until

pytestmark = pytest.mark.usefixtures("fake_probe")


@pytest.mark.parametrize(
    ("behave", "samples", "limit", "said"),
    [
        ("stuck", 10**5, "_STALL_S", "has settled no release for 1 s"),
        ("see_saw", 10**5, "_STALL_S", "has settled no release for 1 s"),
        ("beyond", 100, "_MORE_S", "goes on beyond its end: it has not ended after 3 s"),
        ("silent", 10**5, "_SILENCE_S", "has not been heard of for 1 s"),
    ],
)
def test_a_process_that_never_ends_is_ended_and_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, behave: str, samples: int, limit: str, said: str
) -> None:
    monkeypatch.setattr(together, limit, 1)
    record = run(tmp_path, behave, samples)
    assert record.error is not None and said in record.error.message


@pytest.mark.parametrize(("behave", "limit"), [("complete", "_START_S"), ("slow", "_MORE_S")])
def test_processes_that_have_ended_before_they_are_listened_to_are_heard_all_the_same(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, behave: str, limit: str
) -> None:
    """Also where a limit has passed while the front stood still: before they were ready, or after that."""
    listen = together._Run._listen

    def late(self: together._Run) -> None:
        if behave == "complete" or all(one.event("ready") for _, one in self._running):
            until(lambda: all(one.exit_code is not None for _, one in self._running))
        listen(self)

    monkeypatch.setattr(together._Run, "_listen", late)
    monkeypatch.setattr(together, limit, -1000)
    told: list[object] = []
    record = run(tmp_path, behave, 100, told.append)
    assert record.error is not None and record.error.field == "log"  # the fake's is no chain's
    assert told


def test_who_measures_is_told_to_whoever_looks_on_as_long_as_they_do(tmp_path: Path) -> None:
    seen: list[int] = []
    run(tmp_path, "complete", 100, lambda _: seen.append(len([*tmp_path.rglob(TEAM)])))
    assert set(seen) == {1} and not [*tmp_path.rglob(TEAM)]


def test_a_source_that_has_measured_may_stay_until_the_others_have_ended(tmp_path: Path) -> None:
    """It may hold what they need, such as the ROS master that it started."""
    graph = {"stages": {"a": {"period": "1ms"}, "b": {"inputs": "a"}}}
    record = run(tmp_path, "keeper", 100, graph=graph)
    assert record.error is not None and record.error.field == "log"  # the fake's is no chain's


@pytest.mark.skipif(len(os.sched_getaffinity(0)) < 2, reason="needs two CPUs")
def test_the_front_keeps_off_the_measured_cpus_meanwhile(tmp_path: Path) -> None:
    every, seen = os.sched_getaffinity(0), []
    run(tmp_path, "complete", 100, lambda _: seen.append(os.sched_getaffinity(0)), cpus=str(max(every)))
    assert seen and all(one == every - {max(every)} for one in seen)
    assert os.sched_getaffinity(0) == every


def run(
    tmp_path: Path, behave: str, samples: int, on_progress: OnProgress = lambda _: None, **more: object
) -> CellRecord:
    options = {
        "measurement": "chain",
        "adapter": "fake",
        "graph": {"stages": {"a": {"period": "1ms"}}},
        "samples": samples,
        "warm_up": "3ms",
    }
    options |= {"loss_timeout": "1ms", "options": {"behave": behave}}
    cell = cell_from(settle(options | more), "cell", {})
    return runner.run_cell(cell, tmp_path / "cell", Stop(), on_progress)


def test_a_log_that_is_no_chains_is_named(tmp_path: Path) -> None:
    record = run(tmp_path, "complete", 100)
    assert record.error is not None and record.error.message.startswith("is no log of a chain: it lacks ")
    assert (record.status, record.valid) == ("failed", False)


def test_the_end_is_told_once_by_the_last_of_all_that_were_sent() -> None:
    """Who has no source is told nothing, and nobody anything before all sources have sent their last."""
    since: dict[str, int] = {}
    told: list[tuple[str, str]] = []

    def process(name: str) -> SimpleNamespace:
        event = lambda _: {"since_ns": since[name]} if name in since else None  # noqa: E731
        return SimpleNamespace(event=event, tell=lambda line: told.append((name, line)))

    running = [(SimpleNamespace(ends=name != "y"), process(name)) for name in ("p", "q", "y")]
    run: Any = SimpleNamespace(_running=running, _drain_ns=70, _told_end=False)
    for name, ns in (("p", 500), ("q", 300)):
        together._Run._tell_end(run)
        assert told == []
        since[name] = ns
    for _ in range(2):
        together._Run._tell_end(run)
        assert told == [("p", "go 570\n"), ("q", "go 570\n")]
