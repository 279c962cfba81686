"""Chains over rclcpp: every path has its result, whichever executor waits for the inputs."""

from __future__ import annotations

from pathlib import Path

import pytest
from ros2_runs import EXECUTORS, needs_ros2
from test_chains_run import every_path_has_a_result, measured

pytestmark = [
    needs_ros2,
    pytest.mark.parametrize(
        ("option", "value"),
        [*(("executor", name) for name in EXECUTORS), ("callback_group", "own"), ("intra_process", "yes")],
    ),
]

ONE_PROCESS = """
stages:
  a: {period: 10ms, process: all}
  b: {inputs: a, process: all}
  c: {inputs: [a, b], process: all}
  d: {inputs: c, process: all}
"""


def test_a_chain_has_a_result_for_every_path(tmp_path: Path, option: str, value: str) -> None:
    cell = every_path_has_a_result(tmp_path, "ros2", "--option", f"{option}={value}")
    facts = cell["adapter_facts"]
    assert facts[option] == value and facts["spin"] == "spin_once"
    assert "server" not in facts


def test_stages_of_one_process_hear_each_other(tmp_path: Path, option: str, value: str) -> None:
    """A call of the executor's serves one of them, and while they meet all have something to serve."""
    room = ("--reliability", "reliable", "--history-depth", 100)  # d is sent two at once
    more = ("--samples", 50, *room, "--option", f"{option}={value}")
    cell = measured(tmp_path, ONE_PROCESS, *more, adapter="ros2")
    assert cell["valid"], cell["warnings"]
    assert cell["chain"]["processes"] == {"all": ["a", "b", "c", "d"]}
    paths = {" > ".join(path["stages"]): path["counts"] for path in cell["chain"]["paths"]}
    assert set(paths) == {"a > c > d", "a > b > c > d"}
    for counts in paths.values():
        assert counts["released"] == 50 >= counts["arrived"] > 0
        assert counts["released"] == sum(counts[n] for n in ("arrived", "overtaken", "lost", "in_flight"))
