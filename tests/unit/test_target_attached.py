"""A program of a target: found or started there, recorded there, measured here, and nothing of it stays."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest

from rigs_here import URL, board_at, program, traceable
from rtmeter.campaign.matrix import cell_from
from rtmeter.campaign.rules import settle
from rtmeter.conditions.target import held, reached
from rtmeter.errors import RtmeterError
from rtmeter.host import remote_lock, state
from rtmeter.host.identity import machine_id
from rtmeter.host.root import Root
from rtmeter.measure.cell import need_the_machine, run_cell, source_of
from rtmeter.measure.probe.supervise import Stop
from rtmeter.measure.programs import attaching, looking
from rtmeter.measure.programs.attached_all import Together
from rtmeter.measure.programs.program import is_there
from rtmeter.model import Cell
from rtmeter.results import store
from rtmeter.results.record import CellRecord
from waiting import until

INSTANCES = Path("/sys/kernel/tracing/instances")
PERIOD_NS, NAMED = 5_000_000, "in-its-loop"
LOOP = f"""
import ctypes, os, sys, time
c = ctypes.CDLL(None)
spec = ctypes.c_long * 2
c.prctl(15, b"{NAMED}", 0, 0, 0)  # PR_SET_NAME: from here on it is in its loop
due, rows = time.monotonic_ns() + {PERIOD_NS}, []
try:
    while True:
        c.clock_nanosleep(1, 1, spec(*divmod(due, 10**9)), None)
        rows.append((due, time.monotonic_ns()))
        due += {PERIOD_NS}
except KeyboardInterrupt:
    open(sys.argv[1], "w").write("".join(f"{{due}} {{stamp}}\\n" for due, stamp in rows))
    print("asked as by Ctrl-C", flush=True)
"""


@pytest.fixture
def board(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """The folder of a target that answers, where root has no journal; nothing of what was recorded there is
    left afterwards."""
    if not traceable():
        pytest.skip("needs root and tracefs, and no PID namespace")
    monkeypatch.setattr(state, "SYSTEM", tmp_path / "roots")
    made: list[str] = []
    helped = attaching._helped
    monkeypatch.setattr(attaching, "_helped", lambda name, *more: (made.append(name), helped(name, *more))[1])
    with board_at(tmp_path, monkeypatch) as board:
        yield board
    assert not [name for name in made if (INSTANCES / name).exists()]


def asked(**more: Any) -> Cell:
    given: dict[str, Any] = {"measurement": "loop", "adapter": "attached", "on": URL, "monitor": "1h"}
    given |= {"duration": "500ms", "warm_up": "0"} if more.keys() & {"pid", "command"} else {}
    return cell_from(settle(given | more), "cell", {})


def ran(folder: Path, **more: Any) -> CellRecord:
    return run_cell(asked(**more), folder, Stop(), lambda event: None)


def ran_awake(folder: Path, **more: Any) -> tuple[CellRecord, Path]:
    """For half a second; where the program stood still meanwhile, for longer. And the cell's folder."""
    for duration in ("500ms", "8s"):
        cell = folder / duration
        record = ran(cell, duration=duration, **more)
        if record.summary is not None and record.summary.counts["served"] > 20:
            break
    return record, cell


def command(folder: Path) -> str:
    (folder / "loop.py").write_text(LOOP)
    return f"{sys.executable} {folder / 'loop.py'} {folder / 'own.txt'}"


def test_a_program_is_started_there_and_its_releases_are_its_own(board: Path, tmp_path: Path) -> None:
    cpu = min(os.sched_getaffinity(0))
    more = {"scheduling": "fifo:10", "cpus": str(cpu), "deadline": "1s"}
    record, cell = ran_awake(tmp_path, command=command(tmp_path), thread=NAMED, **more)
    assert record.status == "complete" and record.valid, record.error
    rows = pq.read_table(cell / "samples.parquet")
    served = [row for row in rows.to_pylist() if row["status"] == "served"]
    own = dict(tuple(map(int, line.split())) for line in (tmp_path / "own.txt").read_text().splitlines())
    assert len(served) > 20
    assert all(row["wake_ns"] <= own[row["release_ns"]] <= row["free_ns"] for row in served)
    assert record.grid["period_ns"] == PERIOD_NS
    (thread,) = record.threads.client
    assert (thread["policy"], thread["priority"]) == ("fifo", 10)
    assert record.instrument["by"] == "tracefs" and record.instrument["event_ns"] is None
    assert record.clock["anchors"]["monotonic_ns"] > served[0]["release_ns"]
    assert (cell / store.STDERR).read_text() == "asked as by Ctrl-C\n"
    if Path("/etc/machine-id").exists():
        assert record.machine["machine_id"] not in (None, machine_id(Root()))


@contextmanager
def running(folder: Path) -> Iterator[int]:
    process = subprocess.Popen(command(folder).split())
    try:
        until(lambda: Path(f"/proc/{process.pid}/comm").read_text() == f"{NAMED}\n")
        yield process.pid
    finally:
        process.kill()
        process.wait(60)


def test_a_running_program_is_looked_at_and_goes_on(
    board: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with running(tmp_path) as pid:
        with Together(asked(pid=pid), Stop()) as together:
            for look_s in (0.5, 8):  # it may stand still for half a second
                monkeypatch.setattr(looking, "LOOK_S", look_s)
                (seen,) = together.look()
                if seen.periodic:
                    break
            assert is_there(seen.task, together._root)
        assert (seen.task.pid, seen.periodic) == (pid, True)
        assert seen.loop is not None and seen.loop.period_ns == PERIOD_NS
        record, _ = ran_awake(tmp_path, pid=pid)
        assert record.status == "complete" and record.valid, record.error
        assert record.summary is not None and record.summary.counts["served"] > 20


def test_who_starts_a_program_there_to_look_at_it_has_the_machine(board: Path, tmp_path: Path) -> None:
    with Together(asked(command=command(tmp_path)), Stop()):
        with reached(URL) as other, pytest.raises(RtmeterError, match="is measured already"):
            remote_lock.take(other.shell)
        with held(URL):  # as the cells of its threads do
            pass
    with running(tmp_path) as pid, Together(asked(pid=pid), Stop()), reached(URL) as other:
        remote_lock.take(other.shell)


@pytest.mark.parametrize(
    ("more", "field", "words"),
    [
        ({"command": "nosuch-program --x"}, "command", "ended with exit code 127"),
        ({"command": "sh -c 'echo because >&2; exit 3'"}, "command", "ended with exit code 3: because"),
        ({"pid": 4_000_001}, "pid", "is no process here"),
    ],
)
def test_a_program_that_is_not_there_is_named(
    board: Path, tmp_path: Path, more: dict[str, Any], field: str, words: str
) -> None:
    record = ran(tmp_path / "cell", **more)
    assert record.status == "failed" and record.error is not None
    assert record.error.field == field and words in record.error.message, record.error
    assert record.error.remedy


def test_what_attaching_lacks_there_is_named(board: Path, tmp_path: Path) -> None:
    program(board, "id", "echo 1000")
    record = ran(tmp_path / "cell", pid=1)
    assert record.error is not None and record.error.field == "attach"
    assert (record.error.message, record.error.remedy) == (
        "needs root: tracefs is root's alone",
        "log in there as root",
    )


@pytest.mark.parametrize("step", ["unshare --mount", "per_cpu", "for piece in", "setsid"])
def test_a_link_that_is_cut_at_its_steps_leaves_nothing(board: Path, tmp_path: Path, step: str) -> None:
    text, ssh_here = (tmp_path / "ssh").read_text(), tmp_path / "ssh"
    cut = f'case "$last" in *"{step}"*) echo "ssh: Connection closed" >&2; exit 255;; esac\n'
    ssh_here.write_text(text.replace("exec unshare", cut + "exec unshare"))
    record = ran(tmp_path / "cell", command=command(tmp_path))
    assert record.status == "failed" and record.error is not None
    assert "Connection closed" in str(record.error.as_error) or "cannot be had" in record.error.message


@pytest.mark.parametrize(
    ("more", "needed"),
    [({}, False), ({"load": "idle"}, False), ({"load": {"cpu": 0}}, True), ({"traffic": "1Mbit/s"}, True)],
)
def test_a_scripted_cell_that_is_to_be_idle_needs_no_machine(more: dict[str, Any], needed: bool) -> None:
    given = {"measurement": "wakeup", "adapter": "null", "period": "1ms", "duration": "1s"} | more
    assert need_the_machine([cell_from(settle(given), "cell", {})]) == needed


def test_a_loop_there_needs_no_look_at_this_machine(tmp_path: Path) -> None:
    cell = asked(pid=4_000_001)
    source_of(cell).check()
    assert not need_the_machine([cell])
    with pytest.raises(RtmeterError):
        source_of(asked(pid=4_000_001, on="local")).check()
