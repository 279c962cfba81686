"""Long runs of the null adapter: a block of random rows that ends quietly, over and over.

What the simulator says of one block then holds for all, moved by the block's duration.
"""

from __future__ import annotations

import random
from dataclasses import dataclass
from typing import Any

import numpy as np
from null_runs import anchor_of, chunks_of, random_run
from null_simulator import Row, Script, report, simulate

from rtmeter.model import ABSENT, IN_FLIGHT, STATUS_NAMES
from rtmeter.samples import LogReader

QUIET_ROWS = 100


def repeating_run(kind: str, seed: str, releases: int, block_rows: int) -> tuple[dict[str, Any], Script]:
    """A config and a script at whose end every release is on time, until nothing is under way."""
    config, script = random_run(kind, random.Random(seed), releases, block_rows)
    for row in script[-QUIET_ROWS:]:
        row |= {name: "ok" if name == "fate" else 0 for name in row}
    config |= {"warm_up": 0}
    if kind == "periodic":
        config |= {"drive": "spin", "options": {}}
        config.pop("sleep_offset_ns", None)
    return config, script


@dataclass(frozen=True, slots=True)
class Block:
    """The simulated rows of the first block, its reply counters, and how long it takes."""

    rows: list[Row]
    counters: dict[str, int]
    duration_ns: int

    @classmethod
    def of(cls, config: dict[str, Any], script: Script, reader: LogReader) -> Block:
        anchor = anchor_of(config, reader)
        rows, counters = simulate(config | {"samples": len(script)}, script, anchor)
        duration = len(script) * config["period_ns"]
        if config.get("mode") == "one_shot":
            duration = rows[-1]["callback_ns"] - anchor
        return cls(report(config, rows), counters, duration)

    def moved(self, k: int) -> Row:
        """Row k of the run."""
        blocks, at = divmod(k, len(self.rows))
        by_ns = blocks * self.duration_ns
        row = {
            name: value + by_ns if name.endswith("_ns") else value for name, value in self.rows[at].items()
        }
        return row | {"k": k}

    def assert_repeated(self, reader: LogReader, end: int | None = None) -> int:
        """Compares all rows, or those before ``end`` and not in flight; returns how many there are."""
        names = list(reader.columns)
        table = {name: np.array([row.get(name, ABSENT) for row in self.rows]) for name in names[:-1]}
        table["status"] = np.array([STATUS_NAMES.index(row["status"]) for row in self.rows])
        cycle, seen = "start_ns" in names, 0
        for chunk in chunks_of(reader):
            k = chunk["k"]
            assert np.array_equal(k, np.arange(seen, seen + len(k)))
            seen += len(k)
            compared = np.ones(len(k), bool) if end is None else (k < end) & (chunk["status"] != IN_FLIGHT)
            at, moved = k % len(self.rows), k // len(self.rows) * self.duration_ns
            for name in names:
                expected = table[name][at]
                there = expected != ABSENT
                if name != "status":
                    expected = np.where(there, expected + moved, ABSENT)
                which = compared & there if cycle else compared  # how far a lost cycle came is not defined
                assert np.array_equal(chunk[name][which], expected[which]), (name, int(k[0]))
        return seen
