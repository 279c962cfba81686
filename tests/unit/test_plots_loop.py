"""Plots over time of an attached program's jobs, which come when they come."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from rtmeter.model import ABSENT, SERVED
from rtmeter.plots.figures import time_of
from rtmeter.samples.rows import Samples
from stored import record
from synthetic import write_samples

MS = 1_000_000


def test_jobs_stand_where_they_were_released_not_on_a_grid_of_their_period(tmp_path: Path) -> None:
    release = np.array([0, 10, 20, 500, 510, 9_000], dtype=np.int64) * MS
    absent = np.full(len(release), ABSENT)
    columns = {"k": np.arange(len(release)), "release_ns": release + 7, "wake_ns": release + 9}
    columns |= {"free_ns": release + MS, "busy_ns": absent, "interval_ns": absent}
    columns["status"] = np.full(len(release), SERVED)
    write_samples(tmp_path / "samples.parquet", columns, {})
    config = {"period_ns": 10 * MS, "warm_up": 1}
    loop = record(measurement="loop", adapter="attached", config=config)
    time = time_of(Samples(tmp_path / "samples.parquet"), loop, np.array([1, 3, 4]))
    assert time.begins_s.tolist() == [0, 0.49, 0.5] and time.end_s == 9.0
