"""Wake-up cells made of latencies: folders as spec/results.md has them, without a loop over releases."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict
from pathlib import Path
from typing import Any

import numpy as np

from rtmeter.judge.verdict import judge
from rtmeter.model import ABSENT, LOST, SERVED, SKIPPED, Requirement
from rtmeter.statistics.summary import summarise
from synthetic import T0_NS, Made, cell_json, meta_of, write_samples

MS = 1_000_000


def draw(seed: int, n: int = 20_000, scale_ns: float = 50_000.0) -> np.ndarray:
    """Exponential latencies."""
    return np.rint(np.random.default_rng(seed).exponential(scale_ns, n)).astype(np.int64)


def write_wakeups(
    folder: Path,
    latency_ns: np.ndarray,
    *,
    repeat: int | None = None,
    status: np.ndarray | None = None,
    requirement: Requirement | None = None,
    changes: Mapping[str, Any] | None = None,
    **made: Any,
) -> Path:
    """Writes the cell into the folder, whose name is its id, and returns it.

    ``status`` is SERVED where it is not given; SKIPPED releases became free after ``latency_ns``.
    ``changes`` of a mapping in cell.json are put over it, others replace it.
    """
    axes = dict(made.pop("axes", {})) | ({} if repeat is None else {"repeat": repeat})
    about = Made(
        id=folder.name,
        samples=len(latency_ns),
        warm_up=0,
        axes=axes,
        deadline_ns=requirement.deadline_ns if requirement else None,
        **made,
    )
    meta = meta_of(about)
    codes = np.full(len(latency_ns), SERVED) if status is None else status
    release = T0_NS + about.period_ns * np.arange(len(latency_ns), dtype=np.int64)
    then = release + latency_ns
    columns = {
        "k": np.arange(len(latency_ns), dtype=np.int64),
        "release_ns": release,
        "wake_ns": np.where(codes == SERVED, then, ABSENT),
        "free_ns": np.where(codes == SKIPPED, then, ABSENT),
        "status": codes.astype(np.int64),
    }
    assert LOST not in codes, "a wake-up is never lost"
    folder.mkdir(parents=True)
    write_samples(folder / "samples.parquet", columns, meta)
    summary = summarise(meta, lambda: [columns])
    assert summary.pop("problems") == []
    verdict = asdict(judge(meta, lambda: [columns], requirement)) if requirement else None
    cell = cell_json(about, meta, summary, requirement and asdict(requirement), verdict)
    for key, value in (changes or {}).items():
        cell[key] = cell[key] | value if isinstance(cell.get(key), dict) else value
    (folder / "cell.json").write_text(json.dumps(cell))
    return folder


def late_at(*at: int, n: int = 20_000) -> np.ndarray:
    """20,000 usual values, but those."""
    values = draw(1, n)
    values[list(at)] = 2 * MS
    return values
