"""The report of a long run: as much memory for a day at 1 kHz as for an hour, and no spike lost."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from memory import PEAK_KIB
from rtmeter.model import STATUS_NAMES
from synthetic import T0_NS, Made, cell_json, meta_of

DAY_AT_1_KHZ = 86_400_000
CHUNK = 1 << 20
SPIKE_NS = 1_234_567_891
ALLOWED_KIB = 1536 * 1024

REPORT = f"""
import sys
from pathlib import Path
from rtmeter import report
{PEAK_KIB}
report.write(Path(sys.argv[1]), Path(sys.argv[2]))
print(peak_kib())
"""


def write_wakeups(path: Path, rows: int, spike_at: int) -> None:
    """Wake-ups between 50 and 58 us late, but for one."""
    times = [(name, pa.int64()) for name in ("k", "release_ns", "wake_ns", "free_ns")]
    codes = pa.dictionary(pa.int8(), pa.string())
    schema = pa.schema([*times, ("status", codes), ("warm_up", pa.bool_())])
    with pq.ParquetWriter(path, schema, compression="zstd") as writer:
        for first in range(0, rows, CHUNK):
            k = np.arange(first, min(first + CHUNK, rows))
            release = T0_NS + k * 1_000_000
            wake = release + 50_000 + (k * 7919) % 8191
            wake[k == spike_at] = release[k == spike_at] + SPIKE_NS
            served = pa.DictionaryArray.from_arrays(np.ones(len(k), np.int8), list(STATUS_NAMES))
            absent = pa.nulls(len(k), pa.int64())
            columns = [pa.array(k), pa.array(release), pa.array(wake), absent, served, pa.array(k < 1000)]
            writer.write_table(pa.table(columns, schema=schema))


def test_a_day_at_1_khz_is_reported_in_bounded_memory(tmp_path, sized):
    rows = sized("releases", reduced=4_000_000, full=DAY_AT_1_KHZ)
    made = Made(samples=rows - 1000, warm_up=1000)
    cell = tmp_path / "cell"
    cell.mkdir()
    spike_at = rows * 2 // 3
    write_wakeups(cell / "samples.parquet", rows, spike_at)
    summary = {"counts": {"released": made.samples}, "identity": "", "quantities": {}}
    (cell / "cell.json").write_text(json.dumps(cell_json(made, meta_of(made), summary, None, None)))
    out = tmp_path / "report.html"
    run = subprocess.run(
        [sys.executable, "-c", REPORT, cell, out], capture_output=True, text=True, timeout=280, check=True
    )
    assert int(run.stdout) < ALLOWED_KIB
    assert out.stat().st_size < 10e6
    page = out.read_text(encoding="utf-8")
    assert re.search(rf"<td class=\"number\">{SPIKE_NS / 1000:,.1f}</td>.*{spike_at:,}</td>", page)
    assert f"n = {made.samples:,}" in page
