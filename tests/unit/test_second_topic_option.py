"""The option ``second_topic``: how it is written, what it defaults to, and what it cannot be."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from refused import refused
from rtmeter.campaign.file import read_campaign
from rtmeter.campaign.rules import settle
from rtmeter.errors import RtmeterError
from rtmeter.judge.conditions import facts as facts_of
from rtmeter.judge.conditions import settings
from rtmeter.results.record import read_cell_file
from synthetic import Made, write_cell

MS = 1_000_000
TRIP = {"measurement": "roundtrip", "adapter": "cyclonedds", "payload": "1KiB", "period": "4ms"}


def asked(written: Any) -> Any:
    return settle(TRIP | {"second_topic": written}).probe_config()["second_topic"]


@pytest.mark.parametrize("written", ["same_node", "place=same_node", {"place": "same_node"}])
def test_its_messages_are_by_default_those_of_the_round_trip(written: Any) -> None:
    assert asked(written) == {"place": "same_node", "payload_bytes": 1_024, "period_ns": 4 * MS}


def test_payload_and_period_may_be_others() -> None:
    wanted = {"place": "same_process", "payload_bytes": 5_000, "period_ns": MS}
    assert asked("place=same_process,payload=5000B,period=1ms") == wanted
    assert asked({"place": "same_process", "payload": "5000", "period": "1ms"}) == wanted


def test_without_it_there_is_none() -> None:
    assert "second_topic" not in settle(TRIP).probe_config()


@pytest.mark.parametrize(
    ("written", "field", "words"),
    [
        ("nowhere", "second_topic.place", "choose 'same_node' or 'same_process'"),
        ("payload=1KiB", "second_topic", "does not say where"),
        ("place=same_node,payload=4", "second_topic.payload", "greater than or equal to 8"),
        ("place=same_node,period=0ms", "second_topic.period", "longer than zero"),
        ("place=same_node,period=1", "second_topic.period", "has no unit"),
        ("place=same_node,rate=1", "second_topic", "give the period instead"),
        ("place=same_node,colour=1", "second_topic", "choose one of place, payload, period"),
    ],
)
def test_what_cannot_be_is_refused_by_name(written: str, field: str, words: str) -> None:
    _, _, key = field.partition(".")
    refused(asked, written, field, words, f"--second-topic {key}".rstrip())


def test_it_means_nothing_but_for_round_trips() -> None:
    with pytest.raises(RtmeterError, match="means nothing for cycle"):
        settle(TRIP | {"measurement": "cycle", "second_topic": "same_node"})


def test_its_keys_are_axes_of_a_campaign(tmp_path: Path) -> None:
    path = tmp_path / "two.yaml"
    path.write_text(
        "cells:\n  - name: t\n    measurement: roundtrip\n    adapter: cyclonedds\n"
        "    second_topic: {place: [same_node, same_process], period: [1ms, 2ms]}\n"
        "    only: not (second_topic.place == same_node and second_topic.period == 2ms)\n"
    )
    cells = {cell.id: cell.config["second_topic"] for cell in read_campaign(path).cells}
    assert list(cells) == ["t-same_node-period-1ms", "t-same_process-period-1ms", "t-same_process-period-2ms"]
    assert cells["t-same_process-period-2ms"]["period_ns"] == 2 * MS


def test_the_report_says_what_came_of_it_at_each_end(tmp_path: Path) -> None:
    asked = {"place": "same_node", "payload_bytes": 5_000, "period_ns": MS}
    ends = {
        "client": asked | {"sent": 4_000, "refused": 0, "received": 465},
        "server": asked | {"sent": 4_100, "refused": 2, "received": 3_999},
    }
    config = {"period_ns": 4 * MS, "second_topic": asked}
    facts = {"second_topic": ["same_node", "same_process"]}
    changes = {"config": config, "second_topic": ends, "adapter_facts": facts}
    folder = write_cell(tmp_path / "cell", Made(measurement="roundtrip", changes=changes))
    file = read_cell_file(folder / "cell.json")
    [shown] = [one for one in settings(file) if one.name == "second_topic"]
    assert shown.asked == "place = same_node, payload_bytes = 5,000 B, period_ns = 1ms"
    assert shown.effective == "client sent 4,000, received 465; server sent 4,100, refused 2, received 3,999"
    assert not shown.differs
    assert "second_topic" not in {
        name for name, _ in facts_of(file.adapter_facts)
    }  # what the adapter could do
