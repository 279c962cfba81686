"""Random scripts of a scheduler that keeps its own account: every segment and every cause is the same."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest
from simulated import said_and_true

from rtmeter import cli

CATEGORIES = {
    *("own", "own_kernel", "interrupt", "softirq", "displaced", "dispatch", "armed_later"),
    *("held_off", "outside", "timer_idle", "blocked", "unknown"),
}


@pytest.mark.parametrize("part", range(5))
def test_random_scripts_are_explained_as_they_were(
    part: int, tmp_path: Path, sized: Callable[..., int]
) -> None:
    seen = set()
    count = sized("random scripts", reduced=40, full=2000)
    for seed in range(part * count, (part + 1) * count):
        said, true = said_and_true(seed, tmp_path)
        assert said == true, f"script {seed}"
        seen |= {one["category"] for each in true["releases"] for one in each["segments"]}
    assert seen == CATEGORIES


def test_the_command_prints_the_same(tmp_path: Path, capsys) -> None:
    _, true = said_and_true(7, tmp_path, tid=103)
    files = ["--events", str(tmp_path / "events.csv"), "--releases", str(tmp_path / "releases.csv")]
    assert cli.invoke(["explain", *files, "--thread", "103", "--json"]) == 0
    assert json.loads(capsys.readouterr().out) == true
