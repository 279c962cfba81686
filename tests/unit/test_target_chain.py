"""Chains and discoveries on a target: all processes and one begin there, the cell here."""

from __future__ import annotations

import itertools
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest

from rigs_here import URL, board_at, program
from rtmeter.campaign.matrix import cell_from
from rtmeter.campaign.rules import settle
from rtmeter.measure.cell import run_cell
from rtmeter.measure.probe.supervise import Stop
from rtmeter.results import store
from rtmeter.results.record import CellRecord

pytestmark = pytest.mark.skipif(os.geteuid() != 0, reason="needs root, for a namespace of its own")

GRAPH = """
stages:
  camera: {period: 10ms}
  detect: {inputs: camera}
  motor: {inputs: detect}
"""


@pytest.fixture
def board(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    (tmp_path / "graph.yaml").write_text(GRAPH)
    with board_at(tmp_path, monkeypatch) as board:
        yield board


def ran(folder: Path, **more: Any) -> CellRecord:
    """A chain there, or what else is asked."""
    given: dict[str, Any] = {"on": URL, "samples": 20, "warm_up": "0", "monitor": "1h"} | more
    if "measurement" not in more:
        given |= {"measurement": "chain", "graph": str(folder.parent / "graph.yaml")}
    return run_cell(cell_from(settle(given), "cell", {}), folder, Stop(), lambda event: None)


def test_a_scripted_chain_there_equals_one_here(board: Path, tmp_path: Path) -> None:
    script = tmp_path / "script.csv"
    script.write_text("camera>detect,detect>motor\n" + "".join(f"{1000 * k},{500 * k}\n" for k in range(20)))
    there = ran(tmp_path / "there", adapter="null", script=str(script))
    here = ran(tmp_path / "here", adapter="null", script=str(script), on="local")
    assert (there.status, here.status) == ("complete", "complete"), there.error
    one, other = (pq.read_table(tmp_path / name / store.SAMPLES) for name in ("there", "here"))
    assert one.num_rows == 20 and one.equals(other)
    assert (there.summary, there.chain) == (here.summary, here.chain)
    assert (there.hosts, here.hosts) == ({"target": URL}, {})


def test_its_processes_there_begin_together(board: Path, tmp_path: Path) -> None:
    record = ran(tmp_path / "cell", adapter="posix")
    assert record.status == "complete" and record.valid, record.error
    assert record.summary is not None and record.summary.counts["released"] == 20
    releases = pq.read_table(tmp_path / "cell" / store.SAMPLES).column("release_ns").to_pylist()
    assert [later - release for release, later in itertools.pairwise(releases)] == [10_000_000] * 19


def test_participants_there_find_each_other(board: Path, tmp_path: Path) -> None:
    more: dict[str, Any] = {"measurement": "discovery", "participants": 2, "period": "300ms", "samples": 2}
    record = ran(tmp_path / "cell", adapter="posix", **more)
    assert record.status == "complete" and record.valid, record.error
    assert record.summary is not None and record.summary.counts["released"] == 2


def test_a_target_that_does_not_tell_its_clock_is_named(board: Path, tmp_path: Path) -> None:
    program(board, "grep", 'case "$*" in *timer_list*) exit 1;; *) exec /bin/grep "$@";; esac')
    record = ran(tmp_path / "cell", adapter="posix")
    assert record.status == "failed" and record.error is not None
    assert "does not tell its clock" in record.error.message and record.error.value == URL
    assert record.error.remedy == "log in there as root"


@pytest.mark.parametrize("measurement", ["chain", "discovery"])
def test_the_machine_there_is_watched_by_its_own_clock(board: Path, tmp_path: Path, measurement: str) -> None:
    program(board, "cat", 'case "$*" in *proc/uptime) echo "1000000.00 1";; *) exec /bin/cat "$@";; esac')
    program(board, "date", "echo 0")
    found = {"measurement": "discovery", "participants": 2, "period": "300ms", "samples": 1}
    record = ran(tmp_path / "cell", adapter="posix", **(found if measurement == "discovery" else {}))
    assert record.status == "complete", record.error
    assert "target_clock_off" in [warning.type for warning in record.warnings]
    at_ns = pq.read_table(tmp_path / "cell" / "monitor.parquet").column("at_ns").to_pylist()
    assert at_ns and min(at_ns) > 999_000 * 10**9
