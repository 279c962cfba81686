"""What happened in a run, on its plots over time: marked when it was, and nothing that is not known."""

from __future__ import annotations

import json
import re
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from rtmeter.errors import RtmeterError
from rtmeter.model import Requirement
from rtmeter.plots.picture import write_picture
from rtmeter.plots.plots import PlotOptions, draw
from rtmeter.results.overview import cell_entries
from synthetic import T0_NS
from wakeups import MS, write_wakeups
from wakeups import draw as exponential


def spec_of(cell: Path, kind: str, **asked: Any) -> dict[str, Any]:
    return draw(kind, cell_entries(cell), PlotOptions(**asked))


def test_events_of_a_run_are_marked_when_they_were(tmp_path):
    latency = np.concatenate([exponential(1, 10_000), 4 * exponential(2, 10_000)])
    cell = write_wakeups(tmp_path / "cell", latency, requirement=Requirement(MS, 0.5))
    seconds = np.arange(1, 21, dtype=np.int64)
    watched = {
        "at_ns": T0_NS + seconds * 1_000 * MS,
        "load_workers": np.where(seconds < 15, 8, 6),
        "traffic_streams": np.full(20, 2),
        "cpu0_steal": np.where(seconds == 4, 0.25, 0.0),
        "cpu1_steal": np.full(20, 0.01),
    }
    pq.write_table(pa.table(watched), cell / "monitor.parquet")
    text = json.dumps(spec_of(cell, "time"), ensure_ascii=False)
    marked = re.findall(r'"values": (\[\{"t".*?\}\])', text)
    times = {row["what"]: row["t"] for rows in marked for row in json.loads(rows)}
    findings = json.loads((cell / "cell.json").read_text())["verdict"]["support"]["findings"]
    (change,) = [finding for finding in findings if finding["at"]]
    assert change["at"] == [pytest.approx(10_000, abs=200)]
    assert f"the tail changes at {change['at'][0] / 1000:g} s" in change["message"]
    assert times.pop("tail changes") == change["at"][0] / 1000
    assert times == {"load: 8 to 6": 15, "cpu0: 25% stolen": 4}
    (cell / "monitor.parquet").unlink()
    assert "stolen" not in json.dumps(spec_of(cell, "time"))


def test_a_damaged_file_of_what_happened_is_named(tmp_path):
    cell = write_wakeups(tmp_path / "cell", exponential(1, 10_000))
    file = cell / "monitor.parquet"
    file.write_bytes(b"PAR1")
    with pytest.raises(RtmeterError, match="cannot be read") as raised:
        spec_of(cell, "time")
    assert raised.value.where == str(file) and "measure the cell again" in str(raised.value.remedy)


def lanes_of(spec: dict[str, Any]) -> dict[str, list[tuple[float, float, int]]]:
    """Name and number of each row of bars above a plot → the spans of its bars, and the times in each."""
    layers = [layer for layer in found_layers(spec) if isinstance(layer.get("mark"), dict)]
    lanes = {}
    for bars, name in pairwise(layers):
        rows = bars.get("data", {}).get("values", [{}])
        if "times" in rows[0]:
            lanes[name["mark"]["text"]] = [(row["t"], row["end"], row["times"]) for row in rows]
    return lanes


def found_layers(spec: Any) -> list[dict[str, Any]]:
    """Every layer of a specification, in the order they are drawn in."""
    if isinstance(spec, list):
        return [layer for one in spec for layer in found_layers(one)]
    inner = [spec[name] for name in ("vconcat", "hconcat", "layer", "spec") if name in spec]
    return [spec] if not inner else [layer for one in inner for layer in found_layers(one)]


def test_throttling_is_marked_when_it_was_and_nowhere_else(tmp_path):
    """Each row of monitor.parquet is of the second before it; the first began before the first release."""
    cell = write_wakeups(tmp_path / "cell", exponential(1, 20_000))
    seconds = np.arange(1, 21, dtype=np.int64)
    begun = np.where(seconds == 1, 3, 1)
    watched = {
        "at_ns": T0_NS + seconds * 1_000 * MS,
        "interval_ns": begun * 1_000 * MS,
        "quota_throttles": np.select([seconds == 1, seconds == 5, seconds == 6], [2, 4, 3], 0),
        "thermal_throttles": np.where(seconds == 20, 1, 0),
    }
    pq.write_table(pa.table(watched), cell / "monitor.parquet")
    heat = {"heat 1": [(19, 20, 1)]}
    quota = {"quota 9": [(0, 1, 2), (4, 6, 7)]}
    for kind in ("time", "maxima"):
        assert lanes_of(spec_of(cell, kind)) == quota | heat
    assert lanes_of(spec_of(cell, "time", zoom_s=(3, 8))) == {"quota 7": [(4, 6, 7)]}
    assert lanes_of(spec_of(cell, "time", zoom_s=(7, 8))) == {}
    write_picture(spec_of(cell, "time"), tmp_path / "x.svg")
    assert "quota 9" in (tmp_path / "x.svg").read_text()
    none = {name: np.zeros(20) if name.endswith("throttles") else v for name, v in watched.items()}
    pq.write_table(pa.table(none), cell / "monitor.parquet")
    assert lanes_of(spec_of(cell, "time")) == {}
