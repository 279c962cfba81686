"""Ten million releases of the null adapter, every row compared, and runs that are interrupted."""

from __future__ import annotations

import json
import math
import signal
import subprocess
from pathlib import Path
from typing import Any

import pytest
from null_blocks import Block, repeating_run
from null_runs import KINDS, assert_same_summary, chunks_of, probe_command, run_probe
from null_simulator import Row

import definitions
from rtmeter.model import ABSENT, STATUS_NAMES
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
        told = map(json.loads, probe.stdout)
        next(one for one in told if one["event"] == "progress" and one["released"] > 2 * len(script))
        probe.send_signal(signal.SIGINT)
        probe.stdout.read()
        assert probe.wait(timeout=60) == 4
    reader = LogReader(tmp_path / "run.rtlog")
    assert reader.problems == []
    assert reader.meta["outcome"] == "interrupted"
    # What was under way at the end is in flight; releases that had passed by then are skipped.
    end, block = reader.rows - 50, Block.of(config, script, reader)
    assert block.assert_repeated(reader, end=end) == reader.rows
    got = summarise(facts(config, reader.meta["counters"]), lambda: chunks_of(reader))
    assert got["problems"] == []
    blocks = end // len(script)
    first = blocks * len(script)
    assert blocks > 0
    tail = [row if row["k"] >= end else settled(row, block) for row in rows_from(reader, first)]
    assert sum(row["status"] == "in_flight" for row in tail) <= 50
    meta = facts(config, {})  # of replies that are none, it is not known when they came
    of_blocks, of_tail = definitions.counts(meta, block.rows), definitions.counts(meta, tail)
    wanted = {name: blocks * of_blocks[name] + of_tail[name] for name in of_blocks}
    assert (
        got["counts"].keys()
        == wanted.keys() | (block.counters if kind.startswith(("roundtrip", "request")) else {}).keys()
    )
    assert {name: got["counts"][name] for name in wanted} == wanted


def rows_from(reader: LogReader, first: int) -> list[Row]:
    """The log's rows from that one on, as the simulator has them."""
    rows: list[Row] = []
    for chunk in chunks_of(reader):
        lists = {name: column[chunk["k"] >= first].tolist() for name, column in chunk.items()}
        for values in zip(*lists.values(), strict=True):
            row = {name: value for name, value in zip(lists, values, strict=True) if value != ABSENT}
            rows.append(row | {"status": STATUS_NAMES[row["status"]], "warm_up": False})
    return rows


def settled(row: Row, block: Block) -> Row:
    """What the simulator says of a row of the log; one in flight never came to that."""
    return row if row["status"] == "in_flight" else block.moved(row["k"])
