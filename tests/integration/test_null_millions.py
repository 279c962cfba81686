"""Ten million releases of the null adapter, each row compared.

The script is a block of random rows that ends quietly, so that the run is that block over and over: what
the simulator says of one holds for all, moved by the block's duration.
"""

from __future__ import annotations

import math
import random
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from null_runs import KINDS, assert_same_summary, chunks_of, random_run, run_probe
from null_simulator import Row, Script, simulate

import definitions
from rtmeter.model import ABSENT, STATUS_NAMES
from rtmeter.samples import LogReader
from rtmeter.statistics.summary import summarise

QUIET_ROWS = 100


def quiet(script: Script) -> None:
    """Lets every release of the block's end be on time, until nothing of the block is under way."""
    for row in script[-QUIET_ROWS:]:
        row |= {name: 0 for name in row if name != "fate"} | ({"fate": "ok"} if "fate" in row else {})


def table_of(rows: list[Row], names: tuple[str, ...]) -> dict[str, np.ndarray]:
    table = {name: np.array([row.get(name, ABSENT) for row in rows]) for name in names if name != "status"}
    return table | {"status": np.array([STATUS_NAMES.index(row["status"]) for row in rows])}


def assert_same_rows(reader: LogReader, block: list[Row], duration: int) -> int:
    """Compares every row; returns how many there were."""
    table = table_of(block, reader.columns)
    seen = 0
    for chunk in chunks_of(reader):
        at, moved = chunk["k"] % len(block), chunk["k"] // len(block) * duration
        for name, column in chunk.items():
            if name in table and not name.startswith("reported"):
                expected = table[name][at]
                stamps = name != "status"
                expected = np.where(expected == ABSENT, ABSENT, expected + moved) if stamps else expected
                compared = expected != ABSENT if "start_ns" in table else slice(None)
                assert np.array_equal(column[compared], expected[compared]), (name, int(chunk["k"][0]))
        assert np.array_equal(chunk["k"], np.arange(seen, seen + len(at)))
        seen += len(at)
    return seen


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
    releases, rng = sized("releases", reduced=200_000, full=10_000_000), random.Random(kind)
    length = releases // 100
    config, script = random_run(kind, rng, releases, length)
    quiet(script)
    config |= {"warm_up": 0, "options": {}}
    if "drive" in config:
        config["drive"] = "spin"
    reader = run_probe(tmp_path, config, script)
    first = next(reader.frames())[1]
    anchor = int(first["armed_before_ns" if kind == "one_shot" else "release_ns"][0])
    if kind == "periodic":
        anchor = int(first["callback_ns"][0])
    block, counters = simulate(config | {"samples": length}, script, anchor)
    duration = length * config["period_ns"]
    if kind == "one_shot":
        duration = block[-1]["callback_ns"] - block[0]["armed_before_ns"]
    assert assert_same_rows(reader, block, duration) == releases
    meta = {"mode": None, "in_flight": None, "deadline_ns": None, "timeout_ns": None, **config}
    got = summarise(meta | {"counters": reader.meta["counters"]}, lambda: chunks_of(reader))
    wanted = repeated(definitions.summary(meta | {"counters": counters}, block), 100)
    for name in ("reported", "difference", "difference_after", "dispatch"):
        wanted["quantities"].pop(name, None)  # no definition fixes what a timer reports
    assert got["problems"] == []
    assert_same_summary(got, wanted)
