"""Chains that really run: every row of random null graphs as plain loops have it; stages over processes."""

from __future__ import annotations

import json
import os
import random
import re
import signal
import subprocess
import uuid
from collections.abc import Sequence
from contextlib import nullcontext
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from namespaces import multicast_network
from probe_runs import LONG, probe, refusal

from chains import Row, Spec, accounted, random_graph, simulate, ways_of
from front import ended, probes_of, rtmeter, running
from rtmeter.cli import invoke
from rtmeter.measure.probe.probes import find, find_probes
from rtmeter.model import ABSENT, STATUS_NAMES
from rtmeter.samples import LogReader
from rtmeter.statistics.chain import COLUMNS, analyse
from rtmeter.statistics.chain_graph import Graph, Stage
from rtmeter.statistics.views import LATER
from waiting import until

T0 = 1 << 40
SAMPLES, WARM_UP, LOSS_NS, OVERDUE_NS = 12, 2, 700, 3000


def config_of(specs: list[Spec], drain_ns: int, folder: Path) -> dict[str, Any]:
    ways = ways_of(specs)
    stages = []
    for spec in specs:
        stage: dict[str, Any] = {"name": spec.name, "fusion": spec.kind == "fusion"}
        stage["inputs"] = [{"stage": name, "ways": len(ways[name])} for name in spec.inputs]
        if spec.period_ns is not None:
            stage |= {"period_ns": spec.period_ns, "offset_ns": spec.offset_ns}
        if not spec.inputs:
            stage["samples"] = SAMPLES
        stages.append(stage)
    return {
        "version": 1,
        "measurement": "chain",
        "role": "client",
        "log": str(folder / "chain.rtlog"),
        "period_ns": 1000,
        "samples": SAMPLES,
        "payload_bytes": 8 + 16 * 256,
        "options": {"script": str(folder / "delays.csv")},
        "chain": {"stages": stages, "drain_ns": drain_ns},
    }


def rows_of(log: Path, specs: list[Spec]) -> dict[str, dict[str, Any]]:
    reader = LogReader(log)
    assert reader.problems == [] and reader.meta["counters"]["overflow"] == 0
    frames = [columns for _, columns in reader.frames()]
    whole = {name: np.concatenate([frame[name] for frame in frames]) for name in ("stage", *COLUMNS)}
    found = {}
    for number, spec in enumerate(specs):
        found[spec.name] = {name: whole[name][whole["stage"] == number] for name in COLUMNS}
    return found


def as_rows(columns: dict[str, Any]) -> list[Row]:
    lists = [columns[name].tolist() for name in COLUMNS]
    absent = [[None if value == ABSENT else value for value in one] for one in lists[:5]]
    return list(zip(*absent, (STATUS_NAMES[code] for code in lists[5]), strict=True))


def test_random_null_graphs_are_logged_and_told_as_plain_loops_have_it(sized: Any, tmp_path: Path) -> None:
    probe = find("null").path
    graphs = sized("random graphs of the null adapter", reduced=20, full=10_000)
    overtaken = 0
    for number in range(graphs):
        draw = random.Random(f"null chain {number}")
        specs = random_graph(draw, 20, 1000)
        edges = [(name, spec.name) for spec in specs for name in spec.inputs]
        most = draw.choice((300, 1000, 4000))
        script = [
            {edge: None if draw.random() < 0.05 else draw.randint(0, most) for edge in edges}
            for _ in range(draw.randint(1, 7))
        ]
        lines = [",".join(f"{a}>{b}" for a, b in edges)]
        lines += [",".join("" if row[edge] is None else str(row[edge]) for edge in edges) for row in script]
        (tmp_path / "delays.csv").write_text("\n".join(lines) + "\n")
        drain_ns = draw.randint(0, 9000)
        config = config_of(specs, drain_ns, tmp_path)
        if not edges:
            config["options"] = {}
        (tmp_path / "config.json").write_text(json.dumps(config))
        done = subprocess.run(
            [probe, "--config", tmp_path / "config.json"], capture_output=True, text=True, check=False
        )
        assert done.returncode == 0, done.stdout
        last = max(s.offset_ns + (SAMPLES - 1) * (s.period_ns or 0) for s in specs if not s.inputs)
        until_ns = T0 + last + drain_ns
        wanted = simulate(specs, lambda a, b, k, s=script: s[k % len(s)][a, b], T0, SAMPLES, until_ns)
        logs = rows_of(tmp_path / "chain.rtlog", specs)
        assert {name: as_rows(columns) for name, columns in logs.items()} == wanted, number
        graph = Graph(tuple(Stage(s.name, s.kind, s.inputs, s.period_ns, s.offset_ns) for s in specs))  # type: ignore[arg-type]
        warm = {stage.name: WARM_UP for stage in graph.sources}
        overdue = {tuple(stage.name for stage, _ in path): OVERDUE_NS for path in graph.paths()}
        result = analyse(
            graph,
            logs,
            warm_up=warm,
            loss_timeout_ns=LOSS_NS,
            ended_ns=until_ns,
            overdue_ns=overdue,
            whole_until_ns={},
        )
        assert result.problems == ()
        by_loops = accounted(specs, wanted, WARM_UP, LOSS_NS, until_ns, OVERDUE_NS)
        for path in result.paths:
            loops = by_loops[path.stages]
            assert {k: v for k, v in path.counts.items() if k != "warm_up"} == loops["counts"]
            assert list(zip(path.age_k.tolist(), path.age_ns.tolist(), strict=True)) == loops["ages"]
            mine = zip(path.k.tolist(), path.reaction_ns.tolist(), strict=True)
            assert {k: None if v == LATER else v for k, v in mine} == loops["reactions"]
            overtaken += path.counts["overtaken"]
        (tmp_path / "chain.rtlog").unlink()
    assert overtaken > 0


def test_a_source_that_begins_after_another_has_ended_is_heard_by_that_ones_process(tmp_path: Path) -> None:
    graph = "stages:\n  a: {period: 10ms, process: p}\n  y: {inputs: a}\n"
    graph += "  b: {period: 10ms, offset: 400ms, process: q}\n  z: {inputs: b, process: p}\n"
    cell = measured(tmp_path, graph, "--samples", 20, "--loss-timeout", "50ms")
    assert [path["counts"]["lost"] for path in cell["chain"]["paths"]] == [0, 0]
    assert cell["counters"]["refused_calls"] == 0


def graph_file(folder: Path, text: str) -> Path:
    path = folder / "graph.yaml"
    path.write_text(text)
    return path


def measured(
    folder: Path,
    graph: str,
    *more: object,
    adapter: str = "posix",
    code: int = 0,
    inside: Sequence[str] = (),
) -> dict[str, Any]:
    out = folder / "cell"
    done = rtmeter(
        *("measure", "chain", "--adapter", adapter, "--graph", graph_file(folder, graph)),
        *("--warm-up", "50ms", "--out", out, "--keep-log", *more),
        inside=inside,
    )
    assert done.code == code, done.err + done.out
    found: dict[str, Any] = json.loads((out / "cell.json").read_text())
    return found


def test_20_stages_over_processes_account_for_every_sample(tmp_path: Path) -> None:
    stages = [f"  s{n}: {{inputs: s{n - 1}{', period: 7ms' if n in (6, 13) else ''}}}" for n in range(1, 20)]
    graph = "stages:\n  s0: {period: 10ms}\n" + "\n".join(stages) + "\n"
    cell = measured(tmp_path, graph, "--samples", 100)
    assert cell["valid"] and cell["status"] == "complete"
    assert cell["chain"]["processes"] == {f"s{n}": [f"s{n}"] for n in range(20)}
    (path,) = cell["chain"]["paths"]
    assert path["stages"] == cell["chain"]["judged"] == [f"s{n}" for n in range(20)]
    counts = path["counts"]
    assert counts["released"] == 100 and counts["warm_up"] == 5 and counts["in_flight"] == 0
    assert counts["released"] == counts["arrived"] + counts["overtaken"] + counts["lost"]
    assert cell["summary"]["counts"]["released"] == path["reaction"]["n"] == 100
    logs = sorted((tmp_path / "cell" / "stages").glob("*.rtlog"))
    assert len(logs) == 20, "every process has a log of its own"
    rows = {log.stem: rows_of(log, [Spec("only", "event")])["only"] for log in logs}
    for n in range(1, 20):  # nothing is older than what it rests on
        assert (rows[f"s{n}"]["received_ns"] > rows[f"s{n}"]["sample_release_ns"]).all()
        assert set(rows[f"s{n}"]["sample"].tolist()) <= set(rows[f"s{n - 1}"]["sample"].tolist())
    assert len({cell_thread["tid"] for cell_thread in cell["threads"]["client"]}) >= 20


FAN = """
stages:
  camera: {period: 10ms}
  imu: {period: 4ms, process: sensors}
  gps: {period: 20ms, process: sensors}
  left: {inputs: camera}
  right: {inputs: camera}
  fused: {inputs: [left, right], fusion: true}
  control: {inputs: [fused, imu, gps], period: 5ms}
  motor: {inputs: control}
  log: {inputs: control}
judge: camera > right > fused > control > motor
"""


FEW = ("posix", "cyclonedds", "ecal", "fastdds", "iceoryx2", "lcm", "rcl", "ros1", "zeromq")
OTHERS = [pytest.param(x, marks=pytest.mark.full_only("over others")) for x in ("dustdds", "rclpy", "zenoh")]


@pytest.mark.parametrize("adapter", [*FEW, *OTHERS])
def test_fan_in_and_fan_out_have_a_result_for_every_path(tmp_path: Path, adapter: str) -> None:
    if adapter not in find_probes():
        pytest.skip(f"the adapter {adapter} is not built here")
    with multicast_network() if adapter == "lcm" else nullcontext([]) as inside:
        every_path_has_a_result(tmp_path, adapter, inside=inside)


def every_path_has_a_result(
    folder: Path, adapter: str, *more: object, inside: Sequence[str] = ()
) -> dict[str, Any]:
    """The cell of a chain that fans out and in, one of its processes with two stages; its sums agree."""
    cell = measured(folder, FAN, "--samples", 50, *more, adapter=adapter, inside=inside)
    assert cell["valid"], cell["warnings"]
    assert cell["chain"]["processes"]["sensors"] == ["imu", "gps"]
    paths = {" > ".join(path["stages"]): path for path in cell["chain"]["paths"]}
    assert len(paths) == 8
    released = {"camera": 50, "imu": 125, "gps": 25}
    for name, path in paths.items():
        counts = path["counts"]
        assert counts["released"] == released[name.split()[0]], name
        assert counts["released"] == sum(counts[n] for n in ("arrived", "overtaken", "lost", "in_flight"))
        assert path["data_age"]["n"] >= counts["arrived"] > 0
    assert cell["chain"]["judged"] == ["camera", "right", "fused", "control", "motor"]
    assert cell["config"]["period_ns"] == 10_000_000
    return cell


TOGETHER = """
stages:
  camera: {period: 5ms}
  left: {inputs: camera, process: both}
  right: {inputs: [camera, left], period: 7ms, process: both}
  motor: {inputs: [left, right], fusion: true, process: both}
  log: {inputs: left}
judge: camera > left > right > motor
"""


@pytest.mark.parametrize("reliability", ["best_effort", "reliable"])
@pytest.mark.parametrize("adapter", ["iceoryx2", "zeromq"])
def test_stages_of_one_process_hear_each_other_and_others(
    tmp_path: Path, adapter: str, reliability: str
) -> None:
    if adapter not in find_probes():
        pytest.skip(f"the adapter {adapter} is not built here")
    more = ("--samples", 60, "--reliability", reliability, "--history-depth", 200, "--loss-timeout", "3s")
    cell = measured(tmp_path, TOGETHER, *more, adapter=adapter)
    assert cell["valid"], cell["warnings"]
    assert cell["chain"]["processes"]["both"] == ["left", "right", "motor"]
    assert len(cell["chain"]["paths"]) == 4
    for path in cell["chain"]["paths"]:
        counts = path["counts"]
        assert counts["released"] == 60 and counts["lost"] == 0
        assert counts["released"] == sum(counts[n] for n in ("arrived", "overtaken", "in_flight"))
    assert cell["counters"]["refused_calls"] == cell["counters"]["corrupted"] == 0


@pytest.mark.parametrize("adapter", ["posix", "iceoryx2", "zeromq"])
def test_a_stage_is_woken_by_each_of_its_inputs(tmp_path: Path, adapter: str) -> None:
    if adapter not in find_probes():
        pytest.skip(f"the adapter {adapter} is not built here")
    graph = "stages:\n  slow: {period: 400ms}\n  fast: {period: 20ms}\n  both: {inputs: [slow, fast]}\n"
    cell = measured(tmp_path, graph, "--samples", 4, adapter=adapter)
    assert cell["valid"], cell["warnings"]
    rows = rows_of(tmp_path / "cell" / "stages" / "both.rtlog", [Spec("only", "event")])["only"]
    released, received, way = (rows[name] for name in ("sample_release_ns", "received_ns", "way"))
    t0 = released[way == 0].min()
    of_slow = t0 - (t0 - released) // 400_000_000 * 400_000_000  # its release at or after each
    assert (received[way == 1] < of_slow[way == 1]).any(), "fast is heard only when slow wakes the stage"


@pytest.mark.parametrize("adapter", ["posix", "lcm"])
def test_a_stage_whose_name_is_too_long_for_the_middleware_is_refused(tmp_path: Path, adapter: str) -> None:
    if adapter not in find_probes():
        pytest.skip(f"the adapter {adapter} is not built here")
    with multicast_network() if adapter == "lcm" else nullcontext([]) as inside:
        graph = graph_file(tmp_path, f"stages:\n  a: {{period: 5ms}}\n  {'b' * 100}: {{inputs: a}}\n")
        done = rtmeter("measure", "chain", "--adapter", adapter, "--graph", graph, inside=inside)
        told = re.search(r"topic = 'b{100}': .*name the stage by at most (\d+) characters", done.err)
        assert done.code == 1 and told, done.err
        longest = "b" * (int(told[1]) - 1)  # the next session's name may have one more
        heard = f"stages:\n  a: {{period: 5ms}}\n  {longest}: {{inputs: a}}\n  c: {{inputs: {longest}}}\n"
        cell = measured(tmp_path, heard, "--samples", 20, adapter=adapter, inside=inside)
    assert [path["counts"]["arrived"] > 0 for path in cell["chain"]["paths"]] == [True]


@pytest.mark.parametrize(("adapter", "longest"), [("posix", 96), ("lcm", 53)])
def test_a_session_that_leaves_a_topic_no_room_is_refused(tmp_path: Path, adapter: str, longest: int) -> None:
    """The longest leaves the names of stages one character, and "pong" too few."""
    if adapter not in find_probes():
        pytest.skip(f"the adapter {adapter} is not built here")
    session = str(uuid.uuid4()).ljust(longest, "s")
    specs = [Spec("a", "event", period_ns=5_000_000), Spec("b", "event", ("a",))]
    with multicast_network() if adapter == "lcm" else nullcontext([]) as inside:
        common = {"adapter": adapter, "inside": inside, "session": session}
        chain = config_of(specs, 100_000_000, tmp_path) | common | {"options": {}}
        with probe(tmp_path, chain) as one:
            assert one.until("ready")["event"] == "ready", one.events
        options = {"transport": "topics"} if adapter == "posix" else {}
        trip = {"measurement": "roundtrip", "role": "server", "loss_timeout_ns": LONG, "options": options}
        longer = {"session": session + "s", "log": str(tmp_path / "longer.rtlog")}
        for config in (chain | longer, common | trip):
            error = refusal(tmp_path, config)
            told = (error["field"], error["value"], error["remedy"])
            assert told == ("session", config["session"], "choose a shorter session")


def test_a_stage_that_re_stamps_makes_the_cell_invalid_and_is_named(tmp_path: Path) -> None:
    graph = "stages:\n  a: {period: 5ms}\n  b: {inputs: a, re_stamps: true}\n  c: {inputs: b}\n"
    cell = measured(tmp_path, graph, "--samples", 20, "--deadline", "1s", code=1)
    assert not cell["valid"]
    (doubt,) = [one for one in cell["warnings"] if one["type"] == "re_stamped"]
    assert "stage b" in doubt["message"]
    assert re.search(r": (\d+) of \1 rows carry a sample that a had not sent", doubt["message"])
    assert cell["verdict"]["outcome"] == "error"


def test_a_stage_that_dies_ends_the_chain_and_leaves_nothing_running(tmp_path: Path) -> None:
    graph = graph_file(tmp_path, "stages:\n  a: {period: 5ms}\n  b: {inputs: a}\n  c: {inputs: b}\n")
    more = ("--duration", "10min", "--out", tmp_path / "cell", "--keep-log")
    with running("measure", "chain", "--adapter", "posix", "--graph", graph, *more) as front:
        logs = tmp_path / "cell.partial" / "stages"
        until(lambda: (logs / "c.rtlog").exists() and len(probes_of(front.pid)) == 3, of=front)
        probes = probes_of(front.pid)
        victim = next(p for p in probes if "/b/" in Path(f"/proc/{p}/cmdline").read_text())
        os.kill(victim, signal.SIGKILL)
        done = ended(front)
    assert done.code == 1 and "SIGKILL" in done.err and "re_stamped" not in done.err
    assert not any(Path(f"/proc/{pid}").exists() for pid in probes)


def test_a_chain_of_an_adapter_without_topics_is_refused(tmp_path: Path) -> None:
    graph = graph_file(tmp_path, "stages:\n  a: {period: 5ms}\n")
    done = rtmeter("measure", "chain", "--adapter", "attached", "--graph", graph)
    assert done.code == 1 and "does not measure chain" in done.err


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("stages: {}", "graph"),
        ("nothing", "has no stages"),
        ("stages: {a: {period: 5ms}, b: {inputs: x}}", "b.inputs (x) is no stage of the graph"),
        ("stages: {a: {}}", "a.period is missing"),
        ("stages: {a-b: {period: 5ms}}", "name stages by letters"),
        ("stages: {a: {period: 5ms, fusion: true}}", "with period and fusion"),
        ("stages: {a: {period: 5ms}}\njudge: a > b", "is no path"),
        ("stages: {a: {period: 5}}", "period"),
        ("stages: {a: {perod: 5ms}}", "perod"),
    ],
)
def test_a_wrong_graph_is_refused_by_name(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], text: str, said: str
) -> None:
    graph = str(graph_file(tmp_path, text))
    assert invoke(["measure", "chain", "--adapter", "null", "--graph", graph]) == 1
    assert said in capsys.readouterr().err


def test_a_script_that_says_nothing_of_chains_is_refused(tmp_path: Path) -> None:
    graph = graph_file(tmp_path, "stages: {a: {period: 5ms}, b: {inputs: a}}")
    (tmp_path / "script.csv").write_text("wake_delay_ns,fate\n7,ok\n")
    line = ("measure", "chain", "--adapter", "null", "--graph", graph, "--script", "script.csv")
    done = rtmeter(*line, "--samples", "5", cwd=tmp_path)
    said = "has no column of this measurement; give one for a stage and one that hears it: a>b\n"
    assert done.code == 1 and done.err.endswith(said)


@pytest.mark.parametrize("edge", ["b>a", "a>x", "a>b,x>b"])
def test_a_script_of_an_edge_that_the_graph_has_not_is_refused(tmp_path: Path, edge: str) -> None:
    graph = graph_file(tmp_path, "stages: {a: {period: 5ms}, b: {inputs: a}}")
    (tmp_path / "script.csv").write_text(f"{edge}\n{','.join('7' for _ in edge.split(','))}\n")
    line = ("measure", "chain", "--adapter", "null", "--graph", graph, "--script", "script.csv")
    done = rtmeter(*line, "--samples", "5", cwd=tmp_path)
    wrong, at = edge.split(",")[-1], tmp_path / "script.csv"
    assert done.code == 1
    assert f"script {wrong} = '{wrong}': {at}:1: is no edge of this run; choose among a>b\n" in done.err
