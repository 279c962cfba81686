"""`rtmeter attach --all --explain`: one recording of the kernel's events, and causes for every cell."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest
from attached import compiled, here, left_instances, names_of, records, switches, takes_programs
from explained_attached import assert_explained

from front import ended, rtmeter, running
from rigs_here import URL, board_at, traceable
from rtmeter.judge.explained import explained
from rtmeter.results import store
from rtmeter.results.cells import find_cells
from rtmeter.trace.table import open_trace
from waiting import until

pytestmark = [here, pytest.mark.skipif(not traceable(), reason="in a PID namespace")]

LOOPS = {"fast", "middle", "slow"}


@contextmanager
def three_loops(folder: Path) -> Iterator[subprocess.Popen[bytes]]:
    process = subprocess.Popen(["nice", "-n", "-20", compiled("three_loops", folder)])
    try:
        until(lambda: names_of(process.pid).keys() >= LOOPS, of=process)
        yield process
        assert process.poll() is None
    finally:
        process.kill()
        process.wait(60)


@pytest.fixture(scope="module")
def cells(tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[str, Path]]:
    """Of three threads, by name; ended by SIGINT in the midst of it."""
    folder = tmp_path_factory.mktemp("explained")
    out = folder / "cells"
    with three_loops(folder) as process:
        tids = [tid for name, tid in names_of(process.pid).items() if name in LOOPS]
        room = ("--explain-with", "size=8GiB")  # for all of it, however busy the machine is
        asked = ("--all", "--explain", *room, "--duration", "1h", "--deadline", "1us", "--out", out)
        with running("attach", "--pid", process.pid, *asked) as front:
            until(lambda: any(out.glob(".rows-*")) and records(front), of=front)  # it has looked at them
            before = {tid: switches(process.pid, tid) for tid in tids}
            until(lambda: all(switches(process.pid, tid) >= before[tid] + 60 for tid in tids), of=front)
            front.send_signal(signal.SIGINT)
            done = ended(front)
    found = {store.read_cell(cell).adapter_facts["thread"]: cell for cell in out.iterdir()}
    assert (done.code, found.keys()) == (1, LOOPS), done.err  # nothing but cells is there
    yield found


def test_every_cell_has_the_one_recording_and_says_the_same_of_it(cells: dict[str, Path]) -> None:
    records = [store.read_cell(cell) for cell in cells.values()]
    assert {(record.status, record.valid) for record in records} == {("interrupted", True)}
    [traced] = {str(record.conditions["achieved"]["trace"]) for record in records}
    assert "'kept': None" in traced
    told = {doubt.type for record in records for doubt in record.warnings}
    assert "trace_incomplete" not in told, "all of it is there"
    assert len({(cell / "trace.parquet").stat().st_ino for cell in cells.values()}) == 1
    assert not [name for name in left_instances() if not Path("/proc", name.split("-")[2]).exists()]


@pytest.mark.parametrize("name", sorted(LOOPS))
def test_every_late_release_of_each_thread_is_explained(cells: dict[str, Path], name: str) -> None:
    assert_explained(cells[name])


def test_the_recording_is_of_all_of_them(cells: dict[str, Path]) -> None:
    records = [store.read_cell(cell) for cell in cells.values()]
    threads = {one["tid"] for record in records for one in record.threads.client}
    assert len(threads) == len(LOOPS)
    for cell in cells.values():
        seen = pc.unique(pq.read_table(cell / "trace.parquet", columns=["target"])["target"]).to_pylist()
        assert threads <= {*seen}


def test_report_export_and_archive_read_such_a_cell_as_any_other(
    cells: dict[str, Path], tmp_path: Path
) -> None:
    cell = cells["middle"]
    done = rtmeter("report", cell, "--out", tmp_path / "report.html")
    assert done.code == 0, done.err
    causes = rtmeter("explain", cell, "--json").json["causes"]  # none where a busy machine lost events
    assert ("late releases" in (tmp_path / "report.html").read_text()) == bool(causes)
    done = rtmeter("export", cell, "--format", "perfetto", "--out", tmp_path / "trace")
    assert done.code == 0 and (tmp_path / "trace").stat().st_size > 0, done.err
    done = rtmeter("archive", "add", cell, "--to", tmp_path / "archive")
    assert done.code == 0, done.err


PING_PONG = """
import os
(here, there), (their, ours) = os.pipe(), os.pipe()
read, write = (here, ours) if os.fork() else (their, there)
os.write(write, b".")
while os.write(write, os.read(read, 1)):
    pass
"""


@contextmanager
def many_events() -> Iterator[None]:
    processes = subprocess.Popen([sys.executable, "-c", PING_PONG], start_new_session=True)
    try:
        yield
    finally:
        os.killpg(processes.pid, signal.SIGKILL)
        processes.wait(60)


@pytest.mark.skipif(not takes_programs(), reason="this kernel takes no programs of ours")
@pytest.mark.parametrize("which", ["--all", "--thread=middle"])
def test_of_a_long_recording_what_surrounds_late_releases_stays(which: str, tmp_path: Path) -> None:
    out = tmp_path / "out"
    asked = (which, "--explain", "--explain-with", "size=16MiB", "--duration", "1h", "--deadline", "1us")
    with (
        three_loops(tmp_path) as process,
        many_events(),
        running("attach", "--pid", process.pid, *asked, "--out", out) as front,
    ):
        until(lambda: any(file.stat().st_size for file in tmp_path.rglob("trace.cpu*.kept")), of=front)
        front.send_signal(signal.SIGINT)
        done = ended(front)
    cells = [one.parent for one in (out / "cell.json", *out.glob("*/cell.json")) if one.is_file()]
    assert (done.code, len(cells)) == (1, 3 if which == "--all" else 1), done.err
    times = open_trace(cells[0] / "trace.parquet").kept_ns or frozenset()
    rows, known = set[int](), 0
    for cell in cells:
        traced = store.read_cell(cell).conditions["achieved"]["trace"]
        assert traced["bytes"] > 12 << 20 and traced["kept"]["releases"] >= len(times) > 0
        rows |= {*pq.read_table(cell / "samples.parquet", columns=["release_ns"])["release_ns"].to_pylist()}
        told = explained(find_cells(cell)[0])
        kept = [one for one in told.found.releases if one.release.release_ns in times]
        late = [one for one in told.found.releases if one.release.late]
        assert len(late) - told.unrecorded == sum(one.release.late for one in kept)
        known += sum(one.cause is not None for one in kept)
    assert times <= rows and known > 0


def test_threads_of_a_target_have_one_recording_too(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    asked = ("--on", URL, "--all", "--explain", "--deadline", "1us", "--duration", "1s")
    out = tmp_path / "cells"
    with three_loops(tmp_path) as process, board_at(tmp_path, monkeypatch):
        done = rtmeter("attach", *asked, "--pid", process.pid, "--out", out)
    found = {store.read_cell(cell).adapter_facts["thread"]: cell for cell in out.iterdir()}
    assert (done.code, found.keys()) == (2, LOOPS), done.err
    assert len({(cell / "trace.parquet").stat().st_ino for cell in found.values()}) == 1
    for cell in found.values():
        assert_explained(cell)
