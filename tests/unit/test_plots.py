"""Pictures of plots: what their specifications hold, against plain counting, and the files they become."""

from __future__ import annotations

import json
import math
import re
import shlex
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy.stats import beta

from rtmeter import cli
from rtmeter.model import Requirement
from rtmeter.plots import factors
from rtmeter.plots.chart_compare import WaterfallLayer, shifts, waterfall
from rtmeter.plots.picture import write_picture
from rtmeter.plots.plots import PlotOptions, draw
from rtmeter.results import store
from rtmeter.results.overview import cell_entries
from rtmeter.statistics.compare import Shift
from synthetic import Made, usual, write_cell, write_failed_cell
from vega_lite import check_vega_lite
from wakeups import MS, write_wakeups
from wakeups import draw as exponential

SPIKE_NS = 4_321_000
SPIKE_AT = 7_777


@pytest.fixture(scope="module")
def root(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Cells of every kind that plots know."""
    root = tmp_path_factory.mktemp("plots") / "results"
    spiky = exponential(1, 10_000)
    spiky[SPIKE_AT] = SPIKE_NS
    asked = Requirement(MS, 1e-3)
    write_wakeups(root / "spiky", spiky, requirement=asked)
    write_wakeups(root / "early", exponential(2, 3_000) - 20_000, requirement=asked)
    for load, factor in (("none", 1), ("cpu80", 3)):
        for period_ns in (MS, 10 * MS):
            folder = root / "wakes" / f"{load}-{period_ns // MS}ms"
            axes = {"load": load, "period": f"{period_ns // MS}ms"}
            latency = factor * exponential(period_ns % 97, 3_000)
            write_wakeups(folder, latency, requirement=asked, axes=axes, period_ns=period_ns)
    for name, factor in (("posix", 1), ("dds", 2), ("executor", 3)):
        write_wakeups(root / "layers" / name, factor * exponential(factor, 6_000), adapter=name)
    for load in ("none", "stress10"):
        write_cell(
            root / "cycles" / load,
            Made(id=load, measurement="cycle", samples=900, delays=usual(4, 30), axes={"load": load}),
        )
    for size in (500, 131_072):
        made = Made(id=f"payload-{size}", measurement="roundtrip", skip=True, period_ns=10 * MS, samples=300)
        made.delays, made.axes = usual(size, 60 + size / 1000), {"payload": size}
        cell = write_cell(root / "payloads" / made.id, made) / "cell.json"
        record = json.loads(cell.read_text())
        cell.write_text(json.dumps(record | {"config": record["config"] | {"payload_bytes": size}}))
    lost = Made(id="lost", measurement="roundtrip", skip=True, delays=lambda k: (0, None, None), samples=50)
    write_cell(root / "lost", lost)
    write_cell(root / "one", Made(id="one", samples=1))
    error = {"field": "cpus", "value": "9", "message": "CPU 9 does not exist", "remedy": "choose 0-1"}
    write_failed_cell(root / "failed", Made(id="failed"), error)
    return root


def spec_of(path: Path, kind: str, **asked: Any) -> dict[str, Any]:
    spec = draw(kind, cell_entries(path), PlotOptions(**asked))
    check_vega_lite(spec)
    return spec


def latency_ns(cell: Path) -> np.ndarray:
    (rows,) = store.chunks(cell)()
    return rows["wake_ns"] - rows["release_ns"]


def datasets(spec: dict[str, Any], name: str) -> list[list[dict[str, Any]]]:
    """The datasets of that name, panel by panel."""
    return [rows for key, rows in spec["datasets"].items() if key.endswith(f"-{name}")]


def panels(part: Any) -> list[dict[str, Any]]:
    if "vconcat" not in part:
        return [part]
    return [panel for row in part["vconcat"] for panel in row["hconcat"]]


def domains(part: Any, channel: str) -> list[Any]:
    """The domains of the axes of that channel, in all layers of a panel, the picture in it left out."""
    if isinstance(part, list):
        return [domain for one in part for domain in domains(one, channel)]
    if not isinstance(part, dict):
        return []
    found = part.get("encoding", {}).get(channel, {}).get("scale", {})
    own = [found["domain"]] if "domain" in found and "range" not in found else []
    return own + domains(part.get("layer", []), channel)


def test_latency_over_time_keeps_every_extreme(root):
    (stretches,) = datasets(spec_of(root / "spiky", "time"), "stretches")
    latency = latency_ns(root / "spiky") / 1e3
    assert max(row["max"] for row in stretches) == SPIKE_NS / 1e3
    assert min(row["min"] for row in stretches) == latency.min()
    assert sum(row["n"] for row in stretches) == len(latency)
    (late,) = [row for row in stretches if row.get("late")]
    assert late["k"] <= SPIKE_AT < late["k"] + late["n"]


def test_a_part_of_a_run_has_the_whole_of_it_as_a_picture(root):
    spec = spec_of(root / "spiky", "time", zoom_s=(2.0, 3.0))
    (stretches,), (picture,) = datasets(spec, "stretches"), datasets(spec, "picture")
    assert (stretches[0]["k"], sum(row["n"] for row in stretches)) == (2000, 1000)
    assert max(row["max"] for row in stretches) == latency_ns(root / "spiky")[2000:3000].max() / 1e3
    assert max(row["max"] for row in picture) == SPIKE_NS / 1e3
    assert (picture[0]["t"], picture[-1]["end"]) == (0, 10)


def axes(part: dict[str, Any]) -> list[dict[str, Any]]:
    """What the axes of latencies of a plot are, its picture's apart."""
    y = part.get("encoding", {}).get("y", {})
    own = [y] if y.get("axis") and "domain" in y.get("scale", {}) else []
    return own + [one for layer in part.get("layer", []) for one in axes(layer)]


def test_room_for_the_picture_has_no_labels_of_what_was_never_measured(root):
    """A spike makes the axis logarithmic: the room above it would reach to many times as much."""
    first_s = SPIKE_AT / 1000 - 0.1
    (axis, *_) = axes(spec_of(root / "spiky", "time", zoom_s=(first_s, first_s + 1)))
    assert axis["scale"]["type"] == "log"
    assert axis["scale"]["domain"][1] > 100 * SPIKE_NS / 1e3
    assert SPIKE_NS / 1e4 <= max(axis["axis"]["values"]) <= SPIKE_NS / 100


def test_maxima_are_those_of_each_interval(root):
    (intervals,) = datasets(spec_of(root / "spiky", "maxima", interval_ns=1000 * MS), "intervals")
    expected = latency_ns(root / "spiky").reshape(10, 1000).max(axis=1) / 1e3
    assert [row["max"] for row in intervals] == expected.tolist()
    assert [row["missed"] for row in intervals] == [
        "with a miss" if late else "all in time" for late in expected > 1000
    ]


def test_the_label_of_a_histogram_has_least_mean_and_greatest(root):
    text = json.dumps(spec_of(root / "early", "histogram"), ensure_ascii=False)
    latency = latency_ns(root / "early") / 1e3
    assert latency.min() < 0
    assert f"min {latency.min():.2f} · avg {latency.mean():.2f} · max {latency.max():.1f}" in text
    assert "negative is early" in text


def test_overlaid_histograms_share_bins_and_tell_their_maxima(root):
    spec = spec_of(root / "wakes", "histogram")
    (bins,) = datasets(spec, "bins")
    text = json.dumps(spec, ensure_ascii=False)
    for place, cell in enumerate(cell_entries(root / "wakes")):
        latency = latency_ns(cell.folder)
        assert f"Max: {latency.max() / 1e3:,.1f} us" in text
        edges = [round(1e3 * row["x"]) for row in bins]
        width = min(b - a for a, b in pairwise(edges) if b > a)
        counted = sum(
            row[f"line{place}"] * round((end - start) / width)
            for row, start, end in zip(bins, edges, edges[1:], strict=False)
        )
        assert counted == np.count_nonzero((latency >= edges[0]) & (latency < edges[-1]))


def test_panels_over_axes_share_their_axes(root):
    spec = spec_of(root / "wakes", "ccdf", by=("load", "period"))
    found = panels(spec)
    assert [panel["title"]["text"] for panel in found] == [
        f"load {load}, period {period}" for load in ("cpu80", "none") for period in ("10ms", "1ms")
    ]
    for channel in ("x", "y"):
        assert len({str(domain) for panel in found for domain in domains(panel, channel)}) == 1
    assert len(spec_of(root / "wakes", "histogram", by=("load",))["vconcat"][0]["hconcat"]) == 2


def test_the_band_of_a_complementary_cdf_is_exact(root):
    spec = spec_of(root / "spiky", "ccdf")
    (shares,) = datasets(spec, "shares")
    latency, before = latency_ns(root / "spiky"), -np.inf
    effect = json.loads((root / "spiky" / "cell.json").read_text())["verdict"]["support"]["design_effect"]
    for row in shares[:-2]:
        share = np.count_nonzero(latency >= round(1e3 * row["x"])) / len(latency)
        if row["one_in"] is None:  # stands for points that were left out, as high as the first: of a bin
            beyond = latency[latency > before]
            shown = [np.count_nonzero(latency >= ns) for ns in beyond[beyond <= beyond.min() * (1 + 1 / 64)]]
            assert any(row["share"] == pytest.approx(n / len(latency)) for n in shown)
            assert row["share"] > share
            share = row["share"]
        before = round(1e3 * row["x"])
        n, misses = len(latency) / effect, share * len(latency) / effect
        assert row["share"] == pytest.approx(share, rel=1e-4)
        assert row["low"] == pytest.approx(beta.ppf(0.025, misses, n - misses + 1), rel=1e-4)
        if share < 1:
            assert row["high"] == pytest.approx(beta.ppf(0.975, misses + 1, n - misses), rel=1e-4)
    assert {row["one_in"] is None for row in shares[:-2]} == {False, True}


def test_a_triptych_shares_its_axes(root):
    spec = spec_of(root / "cycles", "triptych")
    found = panels(spec)
    assert [panel["title"]["text"] for panel in found] == [
        f"{load}, {name}"
        for load in ("load none", "stress10")
        for name in ("cycle delay", "request", "respond")
    ]
    assert len({str(domain) for panel in found for domain in domains(panel, "y")}) == 1
    assert len({str(domain) for panel in found for domain in domains(panel, "x")}) == 1
    whole = spec_of(root / "cycles", "triptych", zoom_s=(0.1, 0.2))
    assert len(datasets(whole, "picture")) == 6


def test_quantiles_against_a_factor_are_those_of_the_summary(root):
    (points,) = datasets(spec_of(root / "payloads", "against", over="payload"), "points")
    assert [row["at"] for row in points if row["line"] == "p99"] == [500, 131_072]
    for row in points:
        cell = json.loads((root / "payloads" / f"payload-{row['at']:.0f}" / "cell.json").read_text())
        judged = cell["summary"]["quantities"]["response"]["per_release"]
        assert row["us"] == judged[{"p99.9": "p99_9_ns"}.get(row["line"], f"{row['line']}_ns")] / 1e3
    rates = datasets(spec_of(root / "wakes", "against", over="rate", by=("load",)), "points")
    assert [sorted({row["at"] for row in points}) for points in rates] == [[100, 1000]] * 2


def test_return_levels_rise_and_end_with_the_verdicts(root):
    spec = spec_of(root / "spiky", "return-level")
    (curve,), (peaks,) = datasets(spec, "curve"), datasets(spec, "peaks")
    level = json.loads((root / "spiky" / "cell.json").read_text())["verdict"]["support"]["return_level"]
    assert peaks[0]["level"] == SPIKE_NS / 1e3
    if level["level_ns"] is None:
        assert curve == []
        assert "no level may be stated" in json.dumps(spec)
    clean = exponential(11, 20_000)
    folder = write_wakeups(root.parent / "clean", clean, requirement=Requirement(MS, 1e-3))
    (curve,) = datasets(spec_of(folder, "return-level"), "curve")
    level = json.loads((folder / "cell.json").read_text())["verdict"]["support"]["return_level"]
    assert level["level_ns"] is not None
    assert curve[-1]["level"] == pytest.approx(level["level_ns"] / 1e3, rel=1e-6)
    assert curve[-1]["high"] == pytest.approx(level["upper_ns"] / 1e3, rel=1e-3)
    assert all(a["level"] < b["level"] for a, b in pairwise(curve))
    assert all(row["low"] < row["level"] < row["high"] for row in curve)


LINES = [
    "spiky --kind time -o x.svg",
    "spiky --kind time --zoom 1s..2s -o x.svg",
    "wakes --kind time --by load,period -o x.svg",
    "spiky --kind maxima --interval 500ms -o x.svg",
    "wakes --kind histogram -o x.png",
    "wakes --kind ccdf --by load -o x.pdf",
    "cycles --kind triptych --zoom 100ms..200ms -o x.svg",
    "payloads --kind against --over payload -o x.svg",
    "layers/posix layers/executor --kind shift -o x.svg",
    "layers/posix layers/dds layers/executor --kind waterfall --at p90 -o x.svg",
    "spiky --kind return-level -o x.svg",
    "lost --kind time -o x.svg",
    "lost --kind ccdf -o x.svg",
    "one --kind time -o x.svg",
    "one --kind histogram -o x.svg",
    "one --kind maxima -o x.svg",
]
MAGIC = {".svg": b"<svg", ".png": b"\x89PNG", ".pdf": b"%PDF"}


@pytest.mark.parametrize("line", LINES)
def test_every_kind_becomes_a_file(line, root, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(root)
    *arguments, name = shlex.split(line)
    out = tmp_path / name
    assert cli.invoke(["plot", *arguments, str(out)]) == 0, capsys.readouterr().err
    content = out.read_bytes()
    assert content.startswith(MAGIC[out.suffix])
    assert capsys.readouterr().out.strip() == str(out)
    if out.suffix == ".svg":
        text = content.decode()
        assert "NaN" not in text
        assert "var(--" not in text
        assert "virtual machine (kvm): unfit for absolute claims" in " ".join(text.split())


def test_layers_and_shifts_are_those_of_the_comparison(root, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(root)
    assert cli.invoke(["compare", "layers/posix", "layers/executor", "--force", "--json"]) in (0, 2)
    shifts = {one["quantity"]: one for one in json.loads(capsys.readouterr().out)["cells"][0]["shifts"]}
    drawn: list[dict[str, Any]] = []
    monkeypatch.setattr("rtmeter.plots.picture.write_picture", lambda spec, out: drawn.append(spec))
    cli.invoke(shlex.split("plot layers/posix layers/executor --kind shift -o x.svg"))
    cli.invoke(shlex.split("plot layers/posix layers/dds layers/executor --kind waterfall --at p90 -o x.svg"))
    (rows,), (layers,) = datasets(drawn[0], "shifts"), datasets(drawn[1], "layers")
    assert {row["quantile"]: row["shift"] for row in rows} == {
        name: one["difference"] / 1e3
        for name, one in shifts.items()
        if name not in ("miss_ratio", "p99.99")  # of 6,000 releases that is the maximum
    }
    line = "plot layers/posix layers/executor --kind waterfall --at p99.99 -o x.svg"
    assert cli.invoke(shlex.split(line)) == 1
    assert "--at = 'p99.99': is the maximum of a run of 6,000 releases" in capsys.readouterr().err
    assert [row["layer"] for row in layers] == ["posix", "dds", "executor"]
    assert layers[0]["end"] == layers[1]["begin"] == shifts["p90"]["a"] / 1e3
    assert layers[1]["end"] == layers[2]["begin"]
    assert layers[2]["end"] == pytest.approx(shifts["p90"]["b"] / 1e3)


@pytest.mark.parametrize(
    ("least_ns", "domain_us"),
    [(0, (0, 345)), (-50_000, (0, 345)), (-150_000, (-50, 345)), (-9e9, (-300, 345)), (-math.inf, (0, 345))],
)
def test_an_interval_of_a_layer_that_reaches_far_down_leaves_the_bars_in_sight(least_ns, domain_us, tmp_path):
    """The interval is of what is added to 100 us, and reaches up to 300 us of the axis."""
    layers = [
        WaterfallLayer("floor", 100_000, 100_000),
        WaterfallLayer("dds", 150_000, 50_000, (least_ns, 200_000)),
    ]
    spec = waterfall(layers, 200)
    bars = spec["layer"][0]["encoding"]["y"]["scale"]["domain"]
    assert bars == [pytest.approx(end) for end in domain_us]
    write_picture(spec, tmp_path / "x.svg")
    height = re.search(r'viewBox="0 0 [\d.]+ ([\d.]+)"', (tmp_path / "x.svg").read_text())
    assert height is not None and float(height[1]) < 400


WRONG = [
    ("spiky --kind pie -o x.svg", "--kind = 'pie': is no choice; choose time or"),
    ("spiky --kind time -o x.gif", "-o = 'x.gif': is no format of a picture; end it with .png"),
    ("spiky --kind time -o none/x.svg", "-o = 'none/x.svg': cannot be written"),
    ("spiky --kind ccdf --zoom 1s..2s -o x.svg", "--zoom = '1s..2s': means nothing for ccdf; it is for time"),
    ("spiky --kind time --zoom 1s -o x.svg", "--zoom = '1s': is no span; write e.g. 12s..14s"),
    ("spiky --kind time --zoom 2s..1s -o x.svg", "is no span"),
    ("spiky --kind time --zoom 20s..30s -o x.svg", "holds no release of spiky, which lasts 10 s"),
    ("spiky --kind maxima --interval 5 -o x.svg", "--interval = '5': has no unit"),
    ("spiky --kind time --quantity request -o x.svg", "is no quantity of spiky; name latency"),
    ("wakes --kind time --by load -o x.svg", "--by = 'load cpu80': leaves several cells in one panel"),
    ("wakes --kind ccdf --by colour -o x.svg", "factor = 'colour': is no factor of"),
    ("wakes --kind ccdf --by a,b,c -o x.svg", "--by = 'a,b,c': is not one factor or two"),
    ("wakes --kind against -o x.svg", "--over: is missing; name a factor"),
    ("wakes --kind against --over load -o x.svg", "load = 'cpu80': several cells have the same"),
    ("spiky --kind triptych -o x.svg", "measurement = 'wakeup': has no triptych"),
    ("spiky --kind shift -o x.svg", "cell = 'spiky': a shift is between two; name A and B"),
    ("spiky --kind waterfall -o x.svg", "rtmeter: a waterfall has two layers at least; name the floor"),
    (
        "layers/posix layers/dds --kind waterfall --at p77 -o x.svg",
        "--at = 'p77': is not compared; choose p50",
    ),
    ("failed --kind time -o x.svg", "CPU 9 does not exist"),
    ("nowhere --kind time -o x.svg", "is no folder"),
    ("lost --kind return-level -o x.svg", "has no tail apart from the other releases"),
]


@pytest.mark.parametrize(("line", "says"), WRONG)
def test_what_cannot_be_drawn_is_said(line, says, root, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(root)
    assert cli.invoke(["plot", *shlex.split(line)]) == 1
    assert says in capsys.readouterr().err
    assert not list(root.glob("x.*"))


def test_hostile_names_stay_text_in_a_picture(tmp_path):
    name = "</text><script>alert(1)</script>"
    cell = write_wakeups(tmp_path / "cell", exponential(1, 100), adapter=name)
    write_picture(draw("time", cell_entries(cell), PlotOptions()), tmp_path / "x.svg")
    text = (tmp_path / "x.svg").read_text()
    assert "<script" not in text
    assert "&lt;script" in text


def test_a_bent_axis_has_labels_from_its_bend_to_its_ends() -> None:
    """78 us among shifts of up to 50 ms: between 0 and the largest stands every power of ten."""
    sizes = {"p50": 78e3, "p99": -5e6, "p99.9": 50e6}
    found = [Shift(name, 0.0, by, by, *sorted((0.9 * by, 1.1 * by))) for name, by in sizes.items()]
    spec = shifts(found, 300)
    y = spec["layer"][-1]["encoding"]["y"]
    assert y["scale"]["type"] == "symlog"
    powers = [100.0, 1_000.0, 10_000.0]
    assert y["axis"]["values"] == [*(-power for power in reversed(powers)), 0.0, *powers, 100_000.0]
    assert y["scale"]["domain"] == pytest.approx([-11_000.0, 110_000.0]), (
        "with room for the marks at its ends"
    )
    (columns,) = spec["datasets"].values()
    assert columns["text"] == ["+78.00", "-5,000.0", "+50,000.0"]


def test_repeats_have_names_of_their_own(tmp_path: Path) -> None:
    places = [("a", "one"), ("a", "two"), ("b", "one")]
    cells = [write_cell(tmp_path / of / folder, Made(id=of, samples=50)) for of, folder in places]
    records = [store.read_cell(cell) for cell in cells]
    assert factors.labels(records) == ["a, run 1", "a, run 2", "b"]


def test_a_legend_is_no_wider_than_its_panel(root: Path) -> None:
    spec = spec_of(root / "wakes", "ccdf", by=("load",))
    widths = {panel["width"] for row in spec["vconcat"] for panel in row["hconcat"]}
    legend = spec["config"]["legend"]
    assert legend["columns"] == 1
    assert legend["labelLimit"] < min(widths)
