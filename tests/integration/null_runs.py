"""Random runs of the null adapter: what is asked of the probe, and the script."""

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
from null_simulator import Script, ticks_of

from rtmeter.measure.probe.probes import find_probes
from rtmeter.samples import LogReader

KINDS = (
    "wakeup",
    "periodic",
    "one_shot",
    "roundtrip_one",
    "roundtrip_open",
    "request_one",
    "request_open",
    "cycle",
)
MS = 1_000_000


def random_run(
    kind: str, rng: random.Random, samples: int, script_rows: int | None = None
) -> tuple[dict[str, Any], Script]:
    """A config and a script with every kind of delay that the measurement knows, ties included."""
    period = rng.choice((1_000, 100_000, MS))
    loss = period * rng.choice((1, 2, 5)) + rng.choice((0, 1, 333))
    config: dict[str, Any] = {
        "measurement": kind.partition("_")[0],
        "samples": samples,
        "warm_up": rng.choice((0, 1, 20)),
        "overrun": rng.choice(("catch_up", "skip", None)),
        "period_ns": period,
    }
    columns: dict[str, list[int | None]]
    if kind == "one_shot":
        patience = 9 * period + 1_000_000_000  # beyond the timeout
        late = [None, patience - 1, patience, patience + 1, patience + period]
        config |= {"measurement": "timer", "mode": kind, "timeout_ns": period, "overrun": None}
        columns = {"fire_delay_ns": delays(rng, period, early=period, rare=late)}
    elif kind == "periodic":
        config |= {"measurement": "timer", "mode": kind} | random_timer(rng, config["overrun"], period)
        # Ticks that never come: not where the sleep ends the run and the timer is said to lose none.
        all_come = config["drive"] == "sleep_then_spin_some" and ticks_of(config) == "every_tick"
        never = [None] * rng.choice((0, 0 if all_come else 4))
        columns = {"fire_delay_ns": delays(rng, period, early=period, rare=never)}
    else:
        columns = {"wake_delay_ns": delays(rng, period, early=period)}
    answered = kind.startswith(("roundtrip", "request"))
    if answered:
        config |= {
            "role": "client",
            "in_flight": kind.partition("_")[2],
            "loss_timeout_ns": loss,
            "deadline_ns": rng.choice((None, period, period // 8)),
            "receive": rng.choice(("spin", "spin_once", "poll")),
        }
        late = [None, loss, loss + 1, loss + period, 3 * loss]
        columns["reply_delay_ns"] = delays(rng, period, rare=late)
    if kind.startswith("request"):
        config["interface"] = rng.choice(("service", "action"))
        if config["in_flight"] == "one":
            config["receive"] = rng.choice(("spin", "spin_once", "poll", "call"))
        columns["accept_delay_ns"] = delays(rng, period // 2, rare=[None])
        columns["feedback_delay_ns"] = delays(rng, period, rare=[None])
    if kind == "cycle":
        config["drive"] = rng.choice(("sleep_then_spin_some", "spin", None))  # spin by itself
        columns["fire_delay_ns"] = columns["wake_delay_ns"]
        config["loss_timeout_ns"] = loss
        columns["request_delay_ns"] = delays(rng, period // 2, rare=[None, loss, loss - 1])
        columns["respond_delay_ns"] = delays(rng, period // 2, rare=[None, loss, loss + 1])
    length = script_rows or rng.choice((1, 7, max(samples // 3, 1), config["warm_up"] + samples))
    script: Script = [{name: rng.choice(pool) for name, pool in columns.items()} for _ in range(length)]
    if answered:
        for row in script:
            row["fate"] = rng.choices(("ok", "duplicate", "corrupt"), (20, 2, 1))[0]
    if kind == "periodic" and script[0]["fire_delay_ns"] is None:
        script[0]["fire_delay_ns"] = 0  # a script of empty cells alone is a timer that never fires
    return config, script


def random_timer(rng: random.Random, overrun: str | None, period: int) -> dict[str, Any]:
    """How a periodic timer is driven and what it says of its ticks."""
    drive = rng.choice(("spin", "poll", "sleep_then_spin_some"))
    ticks = {"ticks": "jumps"} if overrun != "skip" and rng.random() < 0.5 else {}
    options = {"report": rng.choice(("monotonic", "none"))} | ticks
    if drive != "sleep_then_spin_some":
        return {"drive": drive, "options": options}
    offset = rng.choice((None, 0, 1, period - 1, rng.randrange(period)))
    return {"drive": drive, "sleep_offset_ns": offset, "options": options}


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


def write_script(folder: Path, script: Script) -> Path:
    path = folder / "script.csv"
    with path.open("w", newline="") as file:
        writer = csv.DictWriter(file, list(script[0]))
        writer.writeheader()
        writer.writerows(script)
    return path


def probe_command(folder: Path, config: dict[str, Any], script: Script) -> list[str | Path]:
    """What starts the probe; it will write ``run.rtlog`` into the folder."""
    log, settings, table = folder / "run.rtlog", folder / "config.json", write_script(folder, script)
    given = {key: value for key, value in config.items() if value is not None}
    given["options"] = {"script": str(table)} | given.get("options", {})
    settings.write_text(json.dumps({"version": 1, "log": str(log), **given}))
    return [find_probes()["null"], "--config", settings]


def run_probe(folder: Path, config: dict[str, Any], script: Script) -> LogReader:
    """A whole run, and the log that it left."""
    command = probe_command(folder, config, script)
    done = subprocess.run(command, capture_output=True, text=True, timeout=250, check=False)
    assert done.returncode == 0, done.stdout[-2000:] + done.stderr[-2000:]
    reader = LogReader(folder / "run.rtlog")
    assert reader.problems == []
    assert reader.meta["counters"]["overflow"] == 0
    return reader


def anchor_of(config: dict[str, Any], reader: LogReader) -> int:
    """The moment of the log that the simulator starts from."""
    name = "release_ns"
    if config.get("mode") == "one_shot":
        name = "armed_before_ns"
    elif config.get("mode") == "periodic" and config["drive"] != "sleep_then_spin_some":
        name = "callback_ns"
    return int(next(reader.frames())[1][name][0])


def chunks_of(reader: LogReader) -> Iterator[dict[str, np.ndarray]]:
    """The rows as a summary reads them."""
    for first, columns in reader.frames():
        yield {"k": np.arange(first, first + len(columns["status"])), **columns}


def assert_same_summary(got: dict[str, Any], wanted: dict[str, Any]) -> None:
    """Equal, but for the rounding that docs/method.md grants mean and deviation."""
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
