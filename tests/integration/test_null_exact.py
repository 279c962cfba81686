"""The proof of the instrument: whole runs of the null adapter against an independent simulator.

A random script goes through the probe, the sample log, the reader and the summary; every row, count and
statistic must be what ``null_simulator`` and ``definitions`` say.
"""

from __future__ import annotations

import csv
import json
import random
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from null_simulator import Row, Script, simulate, ticks_of

import definitions
from rtmeter.model import ABSENT, STATUS_NAMES, WARM_UP_FLAG, Requirement
from rtmeter.probes import find_probes
from rtmeter.samples import LogReader
from rtmeter.statistics.summary import summarise
from rtmeter.verdict import judge

KINDS = ("wakeup", "periodic", "one_shot", "roundtrip_one", "roundtrip_open", "cycle")
MS = 1_000_000


def random_run(kind: str, rng: random.Random, samples: int) -> tuple[dict[str, Any], Script]:
    """A config and a script with every kind of delay that the measurement knows, ties included."""
    period = rng.choice((1_000, 100_000, MS))
    loss = period * rng.choice((1, 2, 5)) + rng.choice((0, 1, 333))
    config: dict[str, Any] = {
        "measurement": kind.partition("_")[0],
        "samples": samples,
        "warm_up": rng.choice((0, 1, 20)),
        "overrun": rng.choice(("catch_up", "skip")),
        "period_ns": period,
    }
    columns: dict[str, list[int | None]]
    if kind == "one_shot":
        patience = 9 * period + 1_000_000_000  # beyond the timeout
        late = [None, patience - 1, patience, patience + 1, patience + period]
        config |= {"measurement": "timer", "mode": kind, "timeout_ns": period, "overrun": None}
        columns = {"fire_delay_ns": delays(rng, period, early=period, rare=late)}
    elif kind == "periodic":
        config |= {"measurement": "timer", "mode": kind} | random_timer(rng, config["overrun"])
        # Ticks that never come: not where the sleep ends the run and the timer is said to lose none.
        all_come = config["drive"] == "sleep_then_spin_some" and ticks_of(config) == "every_tick"
        never = [None] * rng.choice((0, 0 if all_come else 4))
        columns = {"fire_delay_ns": delays(rng, period, early=period, rare=never)}
    else:
        columns = {"wake_delay_ns": delays(rng, period, early=period)}
    if kind.startswith("roundtrip"):
        config |= {
            "role": "client",
            "in_flight": kind.partition("_")[2],
            "loss_timeout_ns": loss,
            "deadline_ns": period,
        }
        late = [None, loss, loss + 1, loss + period, 3 * loss]
        columns["reply_delay_ns"] = delays(rng, period, rare=late)
    if kind == "cycle":
        config["drive"] = rng.choice(("sleep_then_spin_some", "spin"))
        columns["fire_delay_ns"] = columns["wake_delay_ns"]
        config["loss_timeout_ns"] = loss
        columns["request_delay_ns"] = delays(rng, period // 2, rare=[None, loss, loss - 1])
        columns["respond_delay_ns"] = delays(rng, period // 2, rare=[None, loss, loss + 1])
    length = rng.choice((1, 7, samples // 3, config["warm_up"] + samples))
    script: Script = [
        {name: rng.choice(pool) for name, pool in columns.items()} for _ in range(max(length, 1))
    ]
    if kind.startswith("roundtrip"):
        for row in script:
            row["fate"] = rng.choices(("ok", "duplicate", "corrupt"), (20, 2, 1))[0]
    if kind == "periodic" and script[0]["fire_delay_ns"] is None:
        script[0]["fire_delay_ns"] = 0  # a script of empty cells alone is a timer that never fires
    return config, script


def random_timer(rng: random.Random, overrun: str) -> dict[str, Any]:
    """How a periodic timer is driven and what it says of its ticks."""
    drive = rng.choice(("spin", "poll", "sleep_then_spin_some"))
    ticks = {"ticks": "jumps"} if overrun == "catch_up" and rng.random() < 0.5 else {}
    return {"drive": drive, "options": {"report": rng.choice(("monotonic", "none"))} | ticks}


def delays(
    rng: random.Random, period: int, *, early: int = 0, rare: list[int | None] | None = None
) -> list[int | None]:
    """The pool that a column draws from: mostly short, some long, few rare ones."""
    short = [rng.randrange(max(period // 4, 1)) for _ in range(30)]
    ahead = [-rng.randrange(early) for _ in range(3)] if early else []
    long = [rng.randrange(4 * period), period, 2 * period, period - 1, period + 1]
    return [
        *short,
        *ahead,
        *rng.sample(long, rng.randrange(len(long))),
        *rng.sample(rare or [], len(rare or []) // 2),
    ]


def run_probe(folder: Path, config: dict[str, Any], script: Script) -> LogReader:
    log, table, settings = folder / "run.rtlog", folder / "script.csv", folder / "config.json"
    with table.open("w", newline="") as file:
        writer = csv.DictWriter(file, list(script[0]))
        writer.writeheader()
        writer.writerows(script)
    given = {key: value for key, value in config.items() if value is not None}
    settings.write_text(json.dumps({"version": 1, "log": str(log), "script": str(table), **given}))
    done = subprocess.run(
        [find_probes()["null"], "--config", settings],
        capture_output=True,
        text=True,
        timeout=250,
        check=False,
    )
    assert done.returncode == 0, done.stdout[-2000:] + done.stderr[-2000:]
    reader = LogReader(log)
    assert reader.problems == []
    assert reader.meta["counters"]["overflow"] == 0
    return reader


def chunks_of(reader: LogReader) -> Iterator[dict[str, np.ndarray]]:
    for first, columns in reader.frames():
        yield {"k": np.arange(first, first + len(columns["status"])), **columns}


def anchor_of(reader: LogReader) -> int:
    """The first release, the moment the first shot was armed, or a periodic timer's first callback."""
    names = ("armed_before_ns", "callback_ns", "release_ns")
    name = next(name for name in names if name in reader.columns)
    return int(next(c[name][c[name] != ABSENT][0] for _, c in reader.frames()))


def assert_same_rows(reader: LogReader, wanted: list[Row]) -> None:
    k = 0
    for chunk in chunks_of(reader):
        lists = {name: column.tolist() for name, column in chunk.items()}
        for i in range(len(lists["k"])):
            row = wanted[k]
            code = STATUS_NAMES.index(row["status"]) + (WARM_UP_FLAG if row["warm_up"] else 0)
            assert (lists["k"][i], lists["status"][i]) == (row["k"], code), (k, row)
            for name in lists.keys() - {"k", "status", "reported_expected_ns", "reported_actual_ns"}:
                lost_cycle = name.startswith("re") and "start_ns" in row and row["status"] == "lost"
                if name in row or not lost_cycle:  # how far a lost cycle came is not defined
                    assert lists[name][i] == row.get(name, ABSENT), (name, row)
            k += 1
    assert k == len(wanted)


def with_reports(reader: LogReader, rows: list[Row]) -> list[Row]:
    """The rows with the times that the timer reported, which no definition fixes."""
    if "reported_actual_ns" in reader.columns:
        for chunk in chunks_of(reader):
            for name in ("reported_expected_ns", "reported_actual_ns"):
                for k, value in zip(chunk["k"].tolist(), chunk[name].tolist(), strict=True):
                    rows[k][name] = None if value == ABSENT else value
    return rows


def assert_same_summary(got: dict[str, Any], wanted: dict[str, Any]) -> None:
    assert got["problems"] == []
    assert got["counts"] == wanted["counts"]
    for name, views in wanted["quantities"].items():
        for view, numbers in views.items():
            found = got["quantities"][name][view]
            assert (found is None) == (numbers is None), (name, view)
            for number, value in (numbers or {}).items():
                exact = value is None or number not in ("mean_ns", "stddev_ns")
                assert found[number] == (value if exact else pytest.approx(value, rel=1e-12, abs=1e-9)), (
                    name,
                    view,
                    number,
                )


def prove(folder: Path, kind: str, seed: int, samples: int) -> None:
    rng = random.Random(f"{kind} {seed}")
    config, script = random_run(kind, rng, samples)
    reader = run_probe(folder, config, script)
    rows, counters = simulate(config, script, anchor_of(reader))
    assert_same_rows(reader, rows)
    if config["measurement"] == "roundtrip":
        assert {name: reader.meta["counters"][name] for name in counters} == counters
    meta = {
        "mode": None,
        "in_flight": None,
        "deadline_ns": None,
        "timeout_ns": None,
        **config,
        "counters": reader.meta["counters"],
    }
    rows = with_reports(reader, rows)
    wanted = definitions.summary(meta | {"counters": counters}, rows)
    assert_same_summary(summarise(meta, lambda: chunks_of(reader)), wanted)
    deadline = rng.choice((config["period_ns"] // 8, config["period_ns"], 3 * config["period_ns"]))
    verdict = judge(meta, lambda: chunks_of(reader), Requirement(deadline, 1e-3))
    found = {"n": verdict.n, "late": verdict.late, "skipped": verdict.skipped, "lost": verdict.lost}
    assert found == definitions.misses(meta, rows, deadline)


@pytest.mark.parametrize("kind", KINDS)
def test_random_scripts(kind: str, tmp_path: Path, sized: Any) -> None:
    for seed in range(sized("scripts", reduced=25, full=500)):
        folder = tmp_path / str(seed)
        folder.mkdir()
        prove(folder, kind, seed, samples=random.Random(seed).choice((1, 10, 300, 2000)))
