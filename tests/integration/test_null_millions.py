"""Ten million releases of the null adapter, every row compared, and runs that are interrupted."""

from __future__ import annotations

import math
import signal
import subprocess
from pathlib import Path
from typing import Any

import pytest
from null_blocks import Block, repeating_run
from null_runs import KINDS, assert_same_summary, chunks_of, probe_command, run_probe

import definitions
from rtmeter.samples import LogReader
from rtmeter.statistics.summary import summarise

BLOCKS = 100


def facts(config: dict[str, Any], counters: dict[str, int]) -> dict[str, Any]:
    missing = {"mode": None, "in_flight": None, "deadline_ns": None, "timeout_ns": None}
    return missing | config | {"counters": counters}


def repeated(summary: dict[str, Any], times: int) -> dict[str, Any]:
    """The summary of a block, for so many of it: shares stay, counts do not."""
    quantities = {
        name: {view: None if of is None else repeated_view(of, times) for view, of in views.items()}
        for name, views in summary["quantities"].items()
        # no definition fixes what a timer reports
        if name not in ("reported", "difference", "difference_after", "dispatch")
    }
    return {"counts": {name: n * times for name, n in summary["counts"].items()}, "quantities": quantities}


def repeated_view(view: dict[str, Any], times: int) -> dict[str, Any]:
    n, stddev = view["n"], view["stddev_ns"]
    if stddev is not None:
        stddev *= math.sqrt(times * (n - 1) / (times * n - 1))
    return view | {"n": n * times, "stddev_ns": stddev}


@pytest.mark.timeout(900)
@pytest.mark.parametrize("kind", KINDS)
def test_millions(kind: str, tmp_path: Path, sized: Any) -> None:
    releases = sized("releases", reduced=200_000, full=10_000_000)
    config, script = repeating_run(kind, f"millions {kind}", releases, releases // BLOCKS)
    reader = run_probe(tmp_path, config, script)
    block = Block.of(config, script, reader)
    assert block.assert_repeated(reader) == releases
    got = summarise(facts(config, reader.meta["counters"]), lambda: chunks_of(reader))
    wanted = definitions.summary(facts(config, block.counters), block.rows)
    assert got["problems"] == []
    assert_same_summary(got, repeated(wanted, BLOCKS))


@pytest.mark.parametrize("kind", KINDS)
def test_interrupted(kind: str, tmp_path: Path) -> None:
    config, script = repeating_run(kind, f"interrupted {kind}", 10**10, 1_000)
    command = probe_command(tmp_path, config, script)
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True) as probe:
        assert probe.stdout is not None
        next(line for line in probe.stdout if '"progress"' in line)
        probe.send_signal(signal.SIGINT)
        probe.stdout.read()
        assert probe.wait(timeout=60) == 4
    reader = LogReader(tmp_path / "run.rtlog")
    assert reader.problems == []
    assert reader.meta["outcome"] == "interrupted"
    # What was under way at the end is in flight; releases that had passed by then are skipped.
    assert Block.of(config, script, reader).assert_repeated(reader, end=reader.rows - 50) == reader.rows
    got = summarise(facts(config, reader.meta["counters"]), lambda: chunks_of(reader))
    assert got["problems"] == []
    assert got["counts"].get("armed", got["counts"].get("released")) == reader.rows
    assert got["counts"].get("in_flight", 0) <= 50
