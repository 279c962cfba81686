"""Graphs of other tools as those of chains: what is taken over, what differs, and what is refused."""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import Any

import pytest
import yaml

from rtmeter.campaign.rules import settle
from rtmeter.cli import invoke
from rtmeter.errors import RtmeterError
from rtmeter.importers.graphs import read


def pub(topic: str, **more: Any) -> dict[str, Any]:
    return {"topic_name": topic, "msg_type": "stamped10b", **more}


ROBOT = {
    "nodes": [
        {"node_name": "base", "publishers": [pub("wheels", period_ms=10), pub("bump", freq_hz=64)]},
        {
            "node_name": "slam",
            "subscribers": [pub("wheels"), pub("goal")],
            "publishers": [pub("map", period_ms=12.5)],
        },
        {
            "node_name": "plan",
            "subscribers": [pub("map"), pub("/ui/tap")],
            "publishers": [pub("goal", period_ms=500)],
        },
        {"node_name": "log", "subscribers": [pub("map"), pub("bump")], "number": 2},
        {"node_name": "help", "servers": [{"service_name": "s"}]},
    ]
}


LONG = [
    {"node_name": f"n{at}", "subscribers": [pub(f"t{at}")], "publishers": [pub(f"t{at + 1}", period_ms=1)]}
    for at in range(5_000)
]


def robot(folder: Path, **changes: Any) -> Path:
    path = folder / "robot.json"
    path.write_text(json.dumps(ROBOT | changes))
    return path


def test_a_topology_has_a_stage_for_each_publisher_in_its_nodes_process(tmp_path: Path) -> None:
    found = read(robot(tmp_path))
    assert yaml.safe_load(found.yaml())["stages"] == {
        "wheels": {"period": "10ms", "process": "base"},
        "bump": {"period": "15625000ns", "process": "base"},
        "map": {"inputs": ["wheels"], "period": "12500000ns", "process": "slam"},
        "goal": {"inputs": ["map"], "period": "500ms", "process": "plan"},
        "log_1": {"inputs": ["map", "bump"]},
        "log_2": {"inputs": ["map", "bump"]},
    }
    assert found.differs == [
        "plan does not hear ui_tap, which nobody publishes",
        "help has no servers",
        "map does not hear goal, which would close a circle",
    ]
    assert all(f"# Not as there: {one}." in found.yaml() for one in found.differs)


def test_copies_of_a_node_that_publishes_are_told_and_of_two_rates_the_frequency_is_taken(
    tmp_path: Path,
) -> None:
    publishers = [pub("a", period_ms=10, freq_hz=50), pub("b", period_ms=1_234_567)]
    found = read(robot(tmp_path, nodes=[{"node_name": "n", "publishers": publishers, "number": 3}]))
    assert found.stages == {
        "a": {"period": "20ms", "process": "n"},
        "b": {"period": "1234567ms", "process": "n"},
    }
    assert found.differs == ["n is there once, not 3 times"]


def test_who_hears_none_but_what_comes_back_hears_nothing(tmp_path: Path) -> None:
    ring = [
        {"node_name": name, "subscribers": [pub(other)], "publishers": [pub(name, period_ms=10)]}
        for name, other in ("ab", "ba")
    ]
    found = read(robot(tmp_path, nodes=ring))
    assert found.stages == {
        "a": {"period": "10ms", "process": "a"},
        "b": {"inputs": ["a"], "period": "10ms", "process": "b"},
    }


def hears(name: str, topic: str, **more: Any) -> dict[str, Any]:
    return {"node_name": name, "subscribers": [pub(topic)], **more}


@pytest.mark.parametrize("turned", [False, True])
def test_each_node_that_only_hears_has_a_stage_whatever_the_others_are_called(
    tmp_path: Path, turned: bool
) -> None:
    log = [hears("log_1", "t"), hears("log", "t", number=2), hears("log_1", "t"), hears("t", "t")]
    source = {"node_name": "s", "publishers": [pub("t", period_ms=10)]}
    found = read(robot(tmp_path, nodes=[source, *(reversed(log) if turned else log)]))
    assert [stage.get("inputs") for stage in found.stages.values()] == [None] + [["t"]] * 5


def test_topics_that_differ_only_in_what_no_stage_is_called_by_are_not_one(tmp_path: Path) -> None:
    nodes = [{"node_name": "s", "publishers": [pub("x/y", period_ms=10)]}]
    found = read(robot(tmp_path, nodes=[*nodes, hears("a", "x_y"), hears("b", "/x/y")]))
    assert found.stages["b"] == {"inputs": ["x_y"]} and "a" not in found.stages
    assert found.differs == ["a does not hear x_y, which nobody publishes"]


@pytest.mark.parametrize("name", ["yes", "no", "on", "null", "true", "N", "nan"])
def test_what_yaml_takes_for_no_text_is_quoted(tmp_path: Path, name: str) -> None:
    nodes = [{"node_name": name, "publishers": [pub(name, period_ms=10)]}, hears("log", name)]
    text = read(robot(tmp_path, nodes=nodes)).yaml()
    assert yaml.safe_load(text)["stages"] == {
        name: {"period": "10ms", "process": name},
        "log": {"inputs": [name]},
    }
    (tmp_path / "graph.yaml").write_text(text)
    settle({"measurement": "chain", "adapter": "null", "graph": str(tmp_path / "graph.yaml")})


NODE = "nodes.emplace_back(std::make_shared<typename SystemType::{}>(nodes::{}Settings{{{}}}));\n"


def node(kind: str, keys: str) -> str:
    return NODE.format(kind, kind, keys)


def car(folder: Path, *more: str) -> Path:
    times = folder / "system" / "timing"
    times.mkdir(parents=True, exist_ok=True)
    one = "static constexpr time_t {} = milliseconds({});\n"
    first = "struct Default {\n" + one.format("LIDAR", 100) + one.format("CYCLE", 50) + "};\n"
    (times / "default.hpp").write_text(first + "struct Fast {\n" + one.format("LIDAR", 1) + "};\n")
    keys = '.node_name = "{}",\n .input_topic = "{}", .output_topic = "{}", .number_crunch_limit = T::X'
    path = folder / "builder.hpp"
    path.write_text(
        node("Sensor", '.node_name = "Front", .topic_name = "points", .cycle_time = TimingConfig::LIDAR')
        + node("Transform", keys.format("Left", "points", "left"))
        + node("Transform", keys.format("Right", "points", "right"))
        + node(
            "Fusion", '.node_name = "Fuse", .input_0 = "left", .input_1 = "right", .output_topic = "fused"'
        )
        + node(
            "Intersection",
            '.node_name = "Cross", .connections = {{.input_topic = "fused", .output_topic = "A"}, '
            '{.input_topic = "left", .output_topic = "B"}}',
        )
        + node(
            "Cyclic",
            '.node_name = "Plan", .inputs = {"A", "B",\n "right"}, .output_topic = "plan", '
            ".cycle_time = T::CYCLE",
        )
        + node("Command", '.node_name = "Wheels", .input_topic = "plan"')
        + "".join(more)
    )
    return path


def test_a_reference_system_has_a_stage_for_each_node(tmp_path: Path) -> None:
    found = read(car(tmp_path))
    assert yaml.safe_load(found.yaml())["stages"] == {
        "Front": {"period": "100ms"},
        "Left": {"inputs": ["Front"]},
        "Right": {"inputs": ["Front"]},
        "Fuse": {"inputs": ["Left", "Right"], "fusion": True},
        "A": {"inputs": ["Fuse"], "process": "Cross"},
        "B": {"inputs": ["Left"], "process": "Cross"},
        "Plan": {"inputs": ["A", "B", "Right"], "period": "50ms"},
        "Wheels": {"inputs": ["Plan"]},
    }
    assert "the nodes do no work (number_crunch_limit)" in found.differs


def test_nodes_in_comments_are_none(tmp_path: Path) -> None:
    keys = '.node_name = "Old", .inputs = {"//points"}, .output_topic = "old", .cycle_time = T::CYCLE'
    old = node("Cyclic", keys)
    found = read(car(tmp_path, f"// {old}", f"/* {old}{old} */\n", old))
    assert list(found.stages) == [*read(car(tmp_path)).stages, "Old"]
    assert "Old does not hear //points, which nobody publishes" in found.differs
    (tmp_path / "builder.hpp").write_text(f"// {old}")
    with pytest.raises(RtmeterError, match="no graph that is known"):
        read(tmp_path / "builder.hpp")


FUSION = '.node_name = "F", .input_0 = "left", .input_1 = "{}", .output_topic = "f"'
BACK = node("Transform", '.node_name = "Back", .input_topic = "f", .output_topic = "back"')


@pytest.mark.parametrize(
    ("more", "left_out"),
    [
        ([node("Fusion", FUSION.format("ghost"))], "ghost, which nobody publishes"),
        ([node("Fusion", FUSION.format("back")), BACK], "Back, which would close a circle"),
    ],
)
def test_a_fusion_with_one_input_left_passes_that_on_and_says_so(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], more: list[str], left_out: str
) -> None:
    assert invoke(["graph", str(car(tmp_path, *more))]) == 0
    written = capsys.readouterr().out
    assert yaml.safe_load(written)["stages"]["F"] == {"inputs": ["Left"]}
    assert f"# Not as there: F does not hear {left_out}.\n" in written
    told = "F passes on Left at once, where it would wait for the other input"
    assert f"# Not as there: {told}.\n" in written
    assert written.count("passes on") == 1  # Fuse has both


def test_what_is_written_can_be_measured(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for number, path in enumerate((robot(tmp_path), car(tmp_path))):
        out = tmp_path / f"{number}.yaml"
        assert invoke(["graph", str(path), "-o", str(out)]) == 0
        options = settle({"measurement": "chain", "adapter": "null", "graph": str(out)})
        assert options.graph is not None and options.graph.period_ns in (10_000_000, 100_000_000)
        assert invoke(["graph", str(path)]) == 0
        assert out.read_text() in capsys.readouterr().out


@pytest.mark.parametrize(
    ("changes", "field"),
    [
        ({"nodes": "none"}, "nodes"),
        ({"nodes": [{"node_name": "a", "publishers": [pub("t")]}]}, "t.period_ms"),
        ({"nodes": [{"node_name": "a", "publishers": [pub("t", period_ms=-1)]}]}, "t.period_ms"),
        ({"nodes": [{"node_name": "a", "publishers": "t"}]}, "publishers"),
        ({"nodes": [{"publishers": [pub("t", period_ms=1)]}]}, "nodes[0].node_name"),
        ({"nodes": [{"node_name": n, "publishers": [pub("t", period_ms=1)]} for n in "ab"]}, "topic_name"),
        ({"nodes": []}, None),
        ({"nodes": [{"node_name": "a", "publishers": [pub("t", period_ms=math.nan)]}]}, "t.period_ms"),
        ({"nodes": [{"node_name": "a", "publishers": [pub("t", period_ms=math.inf)]}]}, "t.period_ms"),
        ({"nodes": [{"node_name": "a", "publishers": [pub("t", freq_hz=1e-320)]}]}, "t.freq_hz"),
        ({"nodes": [{"node_name": "a", "publishers": [pub("t", period_ms=1)], "number": "2"}]}, "a.number"),
        ({"nodes": [{"node_name": "a", "subscribers": [pub("t")], "number": 10**9}]}, "a.number"),
        ({"nodes": [{"node_name": "a", "subscribers": [pub("t")], "number": 0}]}, "a.number"),
        ({"nodes": [{"node_name": "a", "publishers": [pub("t", period_ms=10**400)]}]}, "t.period_ms"),
        ({"nodes": LONG}, None),
    ],
)
def test_a_wrong_topology_is_refused_by_name(
    tmp_path: Path, changes: dict[str, Any], field: str | None
) -> None:
    with pytest.raises(RtmeterError) as refused:
        read(robot(tmp_path, **changes))
    assert refused.value.field == field and refused.value.remedy and refused.value.where


def test_a_wrong_reference_system_is_refused_by_name(tmp_path: Path) -> None:
    cycle = '.node_name = "X", .topic_name = "x", .cycle_time = TimingConfig::{}'
    for more, field in (
        (node("Sensor", cycle.format("NOWHERE")), "X.cycle_time"),
        (node("Fusion", FUSION.replace("left", "gost").format("ghost")), "F.input_topic"),
        (node("Transform", '.node_name = "T", .input_topic = "ghost", .output_topic = "t"'), "T.input_topic"),
        (BACK.replace('"f"', '"back"'), "name"),
        (node("Oracle", '.node_name = "Y", .input_topic = "x"'), "Y"),
        (node("Transform", '.node_name = "Left", .input_topic = "right", .output_topic = "x"'), "name"),
        (
            node("Transform", '.node_name = "Z", .input_topic = "points", .output_topic = "left"'),
            "Z.output_topic",
        ),
    ):
        with pytest.raises(RtmeterError) as refused:
            read(car(tmp_path, more))
        assert refused.value.field == field and refused.value.remedy
    with pytest.raises(RtmeterError, match="no graph that is known"):
        (tmp_path / "other").write_text("hello")
        read(tmp_path / "other")
    with pytest.raises(RtmeterError, match="cannot be read"):
        read(car(tmp_path), tmp_path / "nowhere.hpp")
