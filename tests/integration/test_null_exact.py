"""The proof of the instrument: whole runs of the null adapter against an independent simulator.

A random script goes through the probe, the sample log, the reader and the summary; every row, count and
statistic must be what ``null_simulator`` and ``definitions`` say.
"""

from __future__ import annotations

import random
from pathlib import Path
from typing import Any

import pytest
from null_runs import KINDS, MS, anchor_of, assert_same_summary, chunks_of, random_run, run_probe
from null_simulator import Row, Script, report, simulate

import definitions
from rtmeter.judge.verdict import judge
from rtmeter.model import ABSENT, STATUS_NAMES, WARM_UP_FLAG, Requirement
from rtmeter.samples import LogReader
from rtmeter.statistics.summary import summarise

ON_THE_WAY = ("accepted_ns", "first_feedback_ns")
SAMPLES = (1, 10, 300, 2000)


def assert_same_rows(reader: LogReader, wanted: list[Row]) -> None:
    k = 0
    for chunk in chunks_of(reader):
        lists = {name: column.tolist() for name, column in chunk.items()}
        for i in range(len(lists["k"])):
            row = wanted[k]
            code = STATUS_NAMES.index(row["status"]) + (WARM_UP_FLAG if row["warm_up"] else 0)
            assert (lists["k"][i], lists["status"][i]) == (row["k"], code), (k, row)
            for name in lists.keys() - {"k", "status"}:
                on_the_way = (name.startswith("re") and "start_ns" in row) or name in ON_THE_WAY
                # How far a lost cycle or goal came is not defined.
                if name in row or row["status"] != "lost" or not on_the_way:
                    assert lists[name][i] == row.get(name, ABSENT), (name, row)
            k += 1
    assert k == len(wanted)


def prove(folder: Path, kind: str, seed: int, samples: int) -> None:
    rng = random.Random(f"{kind} {seed}")
    config, script = random_run(kind, rng, samples)
    deadline = rng.choice((config["period_ns"] // 8, config["period_ns"], 3 * config["period_ns"]))
    prove_run(folder, config, script, deadline)


def prove_run(folder: Path, config: dict[str, Any], script: Script, deadline: int) -> None:
    reader = run_probe(folder, config, script)
    rows, counters = simulate(config, script, anchor_of(config, reader))
    assert_same_rows(reader, report(config, rows))
    if config["measurement"] in ("roundtrip", "request"):
        assert {name: reader.meta["counters"][name] for name in counters} == counters
    if config["measurement"] in ("roundtrip", "request", "cycle"):
        sent = sum(row["status"] != "skipped" for row in rows)  # in a cycle a request and its answer
        assert reader.meta["path"]["messages"] == sent * (2 if config["measurement"] == "cycle" else 1)
    meta = {
        "mode": None,
        "in_flight": None,
        "interface": None,
        "deadline_ns": None,
        "timeout_ns": None,
        **config,
        "counters": reader.meta["counters"],
    }
    wanted = definitions.summary(meta | {"counters": counters}, rows)
    got = summarise(meta, lambda: chunks_of(reader))
    assert got["problems"] == []
    assert_same_summary(got, wanted)
    verdict = judge(meta, lambda: chunks_of(reader), Requirement(deadline, 1e-3))
    found = {"n": verdict.n, "late": verdict.late, "skipped": verdict.skipped, "lost": verdict.lost}
    assert found == definitions.misses(meta, rows, deadline)


@pytest.mark.timeout(1800)
@pytest.mark.parametrize("kind", KINDS)
def test_random_scripts(kind: str, tmp_path: Path, sized: Any) -> None:
    for seed in range(sized("scripts", reduced=25, full=500)):
        folder = tmp_path / str(seed)
        folder.mkdir()
        prove(folder, kind, seed, samples=random.Random(seed).choice(SAMPLES))


@pytest.mark.parametrize(("kind", "seed"), [("periodic", 75), ("periodic", 106), ("request_one", 26)])
def test_scripts_that_once_differed(kind: str, seed: int, tmp_path: Path) -> None:
    """A timer that is looked at after a sleep to what had passed; a loss that is found out on the grid."""
    prove(tmp_path, kind, seed, samples=random.Random(seed).choice(SAMPLES))


def test_more_pings_under_way_than_there_was_room_for(tmp_path: Path) -> None:
    """A stall of 50 ms at 1 us makes a burst of 50,000 pings at one instant, answered after it."""
    config = {
        "measurement": "roundtrip",
        "role": "client",
        "in_flight": "open",
        "samples": 60_000,
        "warm_up": 0,
        "overrun": "catch_up",
        "period_ns": 1_000,
        "loss_timeout_ns": 1_000,
        "deadline_ns": None,
        "receive": "spin",
    }
    stalled = {"wake_delay_ns": 50 * MS, "reply_delay_ns": 100, "fate": "ok"}
    script = [stalled] + [stalled | {"wake_delay_ns": 0}] * 59_999
    prove_run(tmp_path, config, script, deadline=1_000)
