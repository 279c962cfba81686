"""The commands of docs/import.md work as they stand."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest
from pages import ROOT, run_page

from rtmeter.results import store
from stored import cell_json
from tool_files import CSV, TIMERLAT, jitterdebugger, log2014, rttest

FILES = {
    "jitterdebugger.json": jitterdebugger(),
    "rtla.txt": TIMERLAT,
    "performance_test.csv": CSV,
    "timer2014.log": log2014({40: 90, 41: 10}, 100, 40, 41),
    "rttest.txt": rttest([50_000 + 7 * k for k in range(500)]),
    "timer2020_timeseries.csv": "idx,latency\n" + "".join(f"{k},{5000 + k}\n" for k in range(500)),
}


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder in which the page's commands were run."""
    if not (shutil.which("cyclictest") and shutil.which("oslat")):
        pytest.skip("cyclictest and oslat (rt-tests) are not installed")
    folder = tmp_path_factory.mktemp("import")
    for name, text in FILES.items():
        (folder / name).write_text(text)
    run_page(ROOT / "docs" / "import.md", folder, cwd=folder)
    return folder


def test_every_series_of_every_file_is_a_cell(folder: Path) -> None:
    tools = {cell_json(cell)["imported"]["tool"] for cell in store.cell_folders(folder / "cells")}
    named = {"cyclictest", "oslat", "jitterdebugger", "rtla timerlat", "performance_test", "rttest"}
    assert tools == named | {"ros_realtime_tests", "ros2_timer_latency_measurement"}
    assert len(store.cell_folders(folder / "cells" / "more")) == 7  # a CPU, four columns, a log, a test


def test_what_is_exported_comes_back(folder: Path) -> None:
    exported, back = (
        cell_json(folder / "cells" / name)["summary"] for name in ("rttest/rttest", "back/rttest")
    )
    first, second = (found["quantities"]["latency"]["per_release"] for found in (exported, back))
    assert first["n"] == second["n"] == 500
    for name in ("min_ns", "p50_ns", "p99_ns", "max_ns"):
        assert first[name] // 1000 * 1000 == second[name]
    document = json.loads((folder / "cells.json").read_text())
    (samples,) = (cell for cell in document["cells"] if cell["cell"] == "rttest/rttest")
    assert (samples["data"], len(samples["rows"])) == ("samples", 500)
