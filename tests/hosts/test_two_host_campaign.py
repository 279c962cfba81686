"""The round trips of ros2-roundtrip-2018 on two hosts: load on both, traffic between them, and its table."""

from __future__ import annotations

from pathlib import Path

import pytest
from two_hosts import ADDRESS, Hosts

from front import rtmeter
from rtmeter.judge import published
from rtmeter.measure.probe.probes import find_probes
from rtmeter.results import store
from stored import cell_json

CAMPAIGN = Path(__file__).parents[2] / "campaigns" / "ros2-roundtrip-2018.yaml"


@pytest.mark.full_only("a campaign on two hosts")
@pytest.mark.skipif("fastdds" not in find_probes(), reason="the adapter fastdds is not built here")
def test_a_campaign_runs_on_two_hosts(hosts: Hosts, tmp_path: Path) -> None:
    only = "adapter == fastdds and variant == Test2.B"
    asked = ["--scale", "0.0005", "--only", only, "--host", f"component={hosts.url}", "--out", tmp_path]
    done = rtmeter("run", CAMPAIGN, *asked, **hosts.near_end())
    [folder] = store.cell_folders(tmp_path)
    cell = cell_json(folder)
    assert cell["status"] == "complete" and cell["valid"], done.err
    hosts.wait_until_ended()
    here, there = cell["conditions"], cell["conditions"]["server"]
    assert (here["asked"]["load"]["preset"], there["asked"]["load"]["preset"]) == ("erle_pc", "erle_device")
    assert there["achieved"]["load"]["operations"]
    for direction in ("forward", "reverse"):
        assert ADDRESS in here["effective"]["traffic"]["arguments"][direction]
        assert here["achieved"]["traffic"][direction]["rate"] > 0
    [beside] = published.beside([(cell["id"], store.read_cell(folder))])
    assert beside.parts[0].labels["table"] == "XV"
    unmet = {one.condition for one in beside.unmet}
    assert not {"second_host", "network"} & unmet and {"hardware", "releases"} <= unmet
