"""Cells that cyclictest measures: real runs, one that is interrupted, and what it cannot do or does wrong."""

from __future__ import annotations

import os
import signal
import subprocess
from pathlib import Path

import pytest

from front import ended, rtmeter, running
from rtmeter.cli import exit_codes, invoke
from rtmeter.results import store
from stored import cell_json
from waiting import until

MEASURE = ["measure", "wakeup", "--adapter", "cyclictest", "--scheduling", "other"]


def test_a_cell_has_cyclictests_values_and_the_conditions(tmp_path: Path) -> None:
    text = "cells: [{measurement: wakeup, adapter: cyclictest, samples: 300, deadline: 1s, load: {cpu: 1}}]"
    (tmp_path / "c.yaml").write_text(text)
    done = rtmeter("run", tmp_path / "c.yaml", "--out", tmp_path / "out")
    [folder] = store.cell_folders(tmp_path / "out")
    cell = cell_json(folder)
    assert (cell["id"], cell["status"], cell["valid"]) == ("wakeup-cyclictest", "complete", True), done.err
    assert cell["summary"]["counts"]["released"] == 300 and cell["config"]["period_ns"] == 1_000_000
    assert cell["summary"]["quantities"]["latency"]["per_release"]["max_ns"] > 0
    assert "--policy=other" in cell["imported"]["facts"]["command"]
    assert cell["effective"] == {"cpu_dma_latency": None}
    assert cell["conditions"]["achieved"]["load"]["operations"]["cpu"] > 0
    assert cell["findings"] is not None and cell["verdict"]["outcome"] in ("pass", "inconclusive", "fail")
    assert rtmeter("report", tmp_path / "out").code == exit_codes.PASS


def tools_of(front: int) -> list[str]:
    """The cyclictests that the process started, by pid."""
    listed = subprocess.run(["ps", "-eo", "pid,ppid,comm"], capture_output=True, text=True, check=True).stdout
    rows = [line.split() for line in listed.splitlines()[1:]]
    return [pid for pid, parent, name, *_ in rows if int(parent) == front and name == "cyclictest"]


def wakeups_of(front: int) -> int:
    """How often the measuring threads of the cyclictest that the process started have slept so far; its main
    thread sleeps before, too."""
    tasks = [(pid, task) for pid in tools_of(front) for task in Path(f"/proc/{pid}/task").iterdir()]
    statuses = [(task / "status").read_text() for pid, task in tasks if task.name != pid]
    lines = [line for status in statuses for line in status.splitlines()]
    return max((int(line.split()[1]) for line in lines if line.startswith("voluntary_ctxt")), default=0)


@pytest.mark.skipif(os.geteuid() != 0, reason="holding /dev/cpu_dma_latency takes root")
@pytest.mark.parametrize("asked", [False, True])
def test_idle_states_are_limited_as_in_every_other_cell(tmp_path: Path, asked: bool) -> None:
    """By itself it holds /dev/cpu_dma_latency at 0."""
    given = ["--cpu-dma-latency"] if asked else []
    with running(*MEASURE, *given, "--samples", "1000000", "--out", tmp_path / "cell") as front:
        until(lambda: wakeups_of(front.pid) > 10, of=front)
        [tool] = tools_of(front.pid)
        opened = [str(fd.readlink()) for fd in Path(f"/proc/{tool}/fd").iterdir()]
        front.send_signal(signal.SIGINT)
        ended(front)
    assert ("/dev/cpu_dma_latency" in opened) == asked
    assert cell_json(tmp_path / "cell")["effective"] == {"cpu_dma_latency": 0 if asked else None}


def test_an_interrupted_run_keeps_what_was_measured(tmp_path: Path) -> None:
    out = tmp_path / "cell"
    with running(*MEASURE, "--samples", "1000000", "--out", out) as front:
        until(lambda: wakeups_of(front.pid) > 100, of=front)
        front.send_signal(signal.SIGINT)
        done = ended(front)
    assert done.code == exit_codes.ERROR
    cell = cell_json(out)
    assert cell["status"] == "interrupted" and 0 < cell["summary"]["counts"]["released"] < 1_000_000


def test_it_does_not_outlive_rtmeter(tmp_path: Path) -> None:
    with running(*MEASURE, "--samples", "1000000", "--out", tmp_path / "cell") as front:
        until(lambda: wakeups_of(front.pid) > 10, of=front)
        [tool] = tools_of(front.pid)
        front.kill()
        until(lambda: not Path(f"/proc/{tool}").exists())
    Path(f"/dev/shm/cyclictest{tool}").unlink(missing_ok=True)  # it could not do so itself


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["measure", "timer"], "--adapter = 'cyclictest': does not measure timer; it measures wakeup"),
        (["measure", "wakeup", "--before", "init"], "--before = 'init': is not for cyclictest; leave it out"),
        (["measure", "wakeup", "--period", "1500ns"], "--period = '1.5us': is not for cyclictest"),
        (["measure", "wakeup", "--option", "a=b"], "is not for cyclictest"),
        (
            ["measure", "wakeup", "--explain"],
            "--explain = True: is not for cyclictest, which does not say when",
        ),
        (["measure", "wakeup", "--explain-with", "size=1GiB"], "--explain = True: is not for cyclictest"),
        (
            ["measure", "wakeup", "--prefault-heap", "8MiB"],
            "--prefault-heap = 8388608: is not for cyclictest",
        ),
    ],
)
def test_what_cyclictest_does_not_do_is_refused(
    arguments: list[str], said: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert invoke([*arguments, "--adapter", "cyclictest", "--samples", "10"]) == exit_codes.ERROR
    assert said in capsys.readouterr().err


def test_without_cyclictest_its_cells_are_skipped(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.chdir(tmp_path)
    Path("c.yaml").write_text("cells: [{measurement: wakeup, adapter: cyclictest, samples: 3}]")
    assert invoke(["run", "c.yaml"]) == exit_codes.INCONCLUSIVE
    [folder] = store.cell_folders(tmp_path / "results")
    cell = cell_json(folder)
    assert (cell["status"], cell["error"]["remedy"]) == ("skipped", "install it: apt-get install rt-tests")


def test_one_that_fails_is_a_failed_cell(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    fake = tmp_path / "cyclictest"
    fake.write_text("#!/bin/sh\necho 'Unable to change scheduling policy!' >&2\nexit 1\n")
    fake.chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}{os.pathsep}{os.environ['PATH']}")
    monkeypatch.chdir(tmp_path)
    Path("c.yaml").write_text("cells: [{measurement: wakeup, adapter: cyclictest, samples: 3}]")
    assert invoke(["run", "c.yaml"]) == exit_codes.ERROR
    [folder] = store.cell_folders(tmp_path / "results")
    error = cell_json(folder)["error"]
    assert error["message"] == "ended with exit code 1: Unable to change scheduling policy!"
    assert (folder / store.STDERR).exists()
