"""A planted campaign over the null adapter, from its file to the effects of its factors: a known effect, a
known interaction, and none; named cells are factors by the settings that they make."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from front import rtmeter

CAMPAIGN = """
name: planted
repeat: {repeat}
interleave: true
defaults:
  {{measurement: wakeup, adapter: "null", period: 1ms, samples: {samples}, warm_up: 0s,
   requirement: {{deadline: 60us, miss_ratio: 1e-2}}}}
cells:
- {{name: slow-idle, script: slow-idle.csv, lock_memory: false, prefault_heap: 0}}
- {{name: slow-busy, script: slow-busy.csv, lock_memory: false, prefault_heap: 8MiB}}
- {{name: fast-idle, script: fast-idle.csv, lock_memory: true, prefault_heap: 0}}
- {{name: fast-busy, script: fast-busy.csv, lock_memory: true, prefault_heap: 8MiB}}
"""
"""The scripts stand for what the settings do: what a factor does is what is scripted for its levels."""


def measured(folder: Path, scale: dict[str, float], sized: Any) -> Path:
    samples = sized("releases of a planted cell", reduced=2_000, full=200_000)
    generator = np.random.default_rng(5)
    delays = np.rint(generator.exponential(10_000, samples)).astype(np.int64)
    for name, factor in scale.items():
        rows = "\n".join(map(str, np.rint(delays * factor).astype(np.int64)))
        (folder / f"{name}.csv").write_text(f"wake_delay_ns\n{rows}\n")
    (folder / "planted.yaml").write_text(CAMPAIGN.format(repeat=2, samples=samples))
    done = rtmeter("run", "planted.yaml", "--out", "r", cwd=folder)
    assert done.code in (0, 2, 3), done.err
    return folder / "r"


def effects(run: Path, factor: str) -> tuple[int, dict[str, Any]]:
    done = rtmeter("compare", run, "--factor", factor, "--json")
    assert done.code in (0, 2, 3), done.err
    (level,) = done.json["levels"]
    return done.code, level | {"by": {one["quantity"]: one for one in level["effects"]}, "all": done.json}


PLANTED = {
    "effect": {"slow-idle": 1.0, "slow-busy": 4.0, "fast-idle": 0.25, "fast-busy": 1.0},
    "interaction": {"slow-idle": 1.0, "slow-busy": 4.0, "fast-idle": 4.0, "fast-busy": 1.0},
    "none": {"slow-idle": 1.0, "slow-busy": 4.0, "fast-idle": 1.0, "fast-busy": 4.0},
}


@pytest.mark.parametrize("planted", PLANTED)
def test_what_is_planted_is_found(planted: str, tmp_path: Path, sized: Any) -> None:
    run = measured(tmp_path, PLANTED[planted], sized)
    code, found = effects(run, "lock_memory")
    p50 = found["by"]["p50"]
    assert (found["level"], found["matched"], found["pairs"]) == ("yes", 2, 4)
    assert found["all"]["others"] == ["prefault_heap"]
    depends = {(one["quantity"], one["factor"], one["at"]) for one in found["interactions"]}
    if planted == "effect":
        assert (code, p50["said"]) == (0, "better") and p50["times"] == pytest.approx(0.25, rel=1e-3)
        assert p50["upper"] < 1 and depends == set()
        assert found["by"]["miss_ratio"]["said"] == "better"
    elif planted == "interaction":
        assert p50["times"] == pytest.approx(1.0, rel=1e-3) and p50["said"] != "better"
        assert (code, found["said"]) == (2, "worse"), "it is, on the idle machine"
        by_level = {one["at"]: one for one in found["interactions"] if one["quantity"] == "p50"}
        assert {at: one["times"] for at, one in by_level.items()} == {
            "0": pytest.approx(4.0, rel=1e-3),
            "8MiB": pytest.approx(0.25, rel=1e-3),
        }
        said = rtmeter("compare", run, "--factor", "lock_memory").out
        assert "worse; it depends on prefault_heap: worse at 0, better at 8MiB" in said
    else:
        assert (code, p50["said"]) == (0, "no difference") and depends == set()
    code, heap = effects(run, "prefault_heap")
    assert heap["by"]["p50"]["times"] == pytest.approx(4.0 if planted != "interaction" else 1.0, rel=1e-3)
    assert (code, heap["said"]) == (2, "worse")
