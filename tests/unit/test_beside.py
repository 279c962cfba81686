"""What is beside a round trip's ends: how many are asked for, who can have them, and what they received."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from rtmeter.campaign.file import read_campaign
from rtmeter.campaign.matrix import cell_from
from rtmeter.campaign.ranges import in_words, named, option_of, values_of
from rtmeter.campaign.rules import settle
from rtmeter.errors import RtmeterError
from rtmeter.judge.conditions import in_one_line, settings
from rtmeter.judge.environment import differences
from rtmeter.measure.probe import beside, beside_record
from rtmeter.measure.probe.probes import Probe
from rtmeter.model import Cell
from rtmeter.results import words
from rtmeter.results.record import NodeSeen, SubscriberSeen, WasBeside, read_cell_file
from synthetic import Made, write_cell

TRIP = {"measurement": "roundtrip", "adapter": "posix"}


def cell_of(**more: Any) -> Cell:
    return cell_from(settle(TRIP | more), "cell", {})


def probe_that(*beside_it: str, **facts: Any) -> Probe:
    return Probe("posix", Path("/nowhere"), {"beside": list(beside_it)} | facts)


def at_the_server(received: int, of: int) -> SubscriberSeen:
    return SubscriberSeen(
        name="server", received=received, lost=of - received, duplicate=None, corrupted=None
    )


def heard(received: int, duplicate: int = 0) -> list[dict[str, Any]]:
    return [{"name": "subscriber2", "received": received, "duplicate": duplicate, "corrupted": 0}]


def test_one_subscriber_is_the_server_and_nothing_is_said_of_it() -> None:
    for given in ({}, {"subscribers": "1"}):
        config = cell_of(**given).config
        assert "subscribers" not in config
        assert beside.asked(config) == {} and beside.of_the_ends(config) == config
        assert beside.members(config) == []


def test_each_further_one_has_a_process_and_the_ends_are_told_how_many() -> None:
    config = cell_of(subscribers="4").config
    assert config["subscribers"] == 4
    told = beside.of_the_ends(config)
    assert told["beside"] == {"subscribers": 4} and "subscribers" not in told
    assert [one.name for one in beside.members(config)] == [f"subscriber{n}" for n in (2, 3, 4)]


@pytest.mark.parametrize("value", ["0", "1001", "some", "1.5"])
def test_a_number_that_cannot_be_is_refused_by_name(value: str) -> None:
    with pytest.raises(RtmeterError) as refused:
        cell_of(subscribers=value)
    assert refused.value.field == "subscribers" and refused.value.remedy


def test_they_mean_nothing_but_for_round_trips() -> None:
    with pytest.raises(RtmeterError, match="means nothing for cycle"):
        settle(TRIP | {"measurement": "cycle", "subscribers": 2})


CANNOT: list[tuple[Probe, dict[str, Any], dict[str, str], str]] = [
    (probe_that(), {}, {}, "cannot be had of the adapter posix; leave it out"),
    (probe_that("nodes"), {}, {}, "cannot be had of the adapter posix; leave it out"),
    (probe_that("subscribers transport=topics"), {}, {"transport": "udp"}, "choose option transport=topics"),
    (probe_that("subscribers transport=topics"), {}, {}, "choose option transport=topics"),
    (probe_that("subscribers"), {"hosts": {"component": "ssh://there"}}, {}, "further processes run on one"),
]


@pytest.mark.parametrize(("server", "more", "options", "said"), CANNOT)
def test_who_cannot_have_them_is_told_what_to_do(
    server: Probe, more: dict[str, Any], options: dict[str, str], said: str
) -> None:
    with pytest.raises(RtmeterError) as refused:
        beside.check(cell_of(subscribers=2, **more), server, inline=False, options=options)
    assert (refused.value.field, refused.value.value) == ("subscribers", 2)
    assert said in str(refused.value)
    beside.check(cell_of(**more), server, inline=False, options=options)  # nothing is asked


def test_who_can_have_them() -> None:
    two = cell_of(subscribers=2)
    for entry, options in (("subscribers", {}), ("subscribers transport=topics", {"transport": "topics"})):
        beside.check(two, probe_that(entry), inline=False, options=options)
    beside.check(two, probe_that("subscribers", clock="scripted"), inline=True, options={})
    with pytest.raises(RtmeterError, match="needs a server process"):
        beside.check(two, probe_that("subscribers"), inline=True, options={})


def test_every_ping_counts_once_for_each_subscriber() -> None:
    found = beside_record.told(100, [at_the_server(100, 100)], heard(97, 4))
    assert found.identity == "sent 100 x 2 subscribers = received 197 + lost 3"
    assert list(words.beside(found)) == [
        "pings received: server 100, subscriber2 97 (3 lost, 4 again)",
        found.identity,
    ]
    assert beside_record.problems(found) == []
    (doubt,) = beside_record.doubts(found)
    assert doubt.type == "subscribers_lost" and "subscriber2 lost 3 of 100" in doubt.message


def test_what_the_server_lost_is_a_lost_release_and_no_doubt_beside() -> None:
    found = beside_record.told(9, [at_the_server(7, 9)], heard(9))
    assert beside_record.doubts(found) == []
    assert beside_record.doubts(None) == [] and list(words.beside(None)) == []


def test_more_than_was_sent_cannot_be() -> None:
    found = beside_record.told(100, [at_the_server(100, 100)], heard(101))
    assert beside_record.problems(found) == ["subscriber2 received 101 different pings of 100"]


def test_ranges_of_them_are_numbers() -> None:
    assert values_of("subscribers", "1..16") == [1, 2, 5, 10, 16]
    assert option_of("subscribers", 4) == ("subscribers", "4")
    assert (in_words("subscribers", 1000), named("subscribers")) == ("1,000", "number of subscribers")
    assert named("rate") == "rate"


CAMPAIGN = """
cells:
- {name: fan, measurement: roundtrip, adapter: posix, subscribers: 1..4, payload: 16B..64B}
"""


def test_a_range_in_a_campaign_stands_for_its_values(tmp_path: Path) -> None:
    path = tmp_path / "fan.yaml"
    path.write_text(CAMPAIGN)
    cells = read_campaign(path).cells
    found = {(cell.config.get("subscribers", 1), cell.config["payload_bytes"]) for cell in cells}
    assert found == {(count, size) for count in (1, 2, 4) for size in (16, 64)}
    assert len(cells) == 6 and all(cell.factors.keys() == {"subscribers", "payload"} for cell in cells)
    path.write_text(CAMPAIGN.replace("1..4", "4..1"))
    with pytest.raises(RtmeterError) as refused:
        read_campaign(path)
    assert refused.value.field == "subscribers" and refused.value.where == f"{path}:3"


def test_they_are_conditions_that_are_shown_and_compared(tmp_path: Path) -> None:
    found = beside_record.told(50, [at_the_server(50, 50)], heard(49))
    config = {"period_ns": 10**6, "subscribers": 2}
    facts = {"beside": ["subscribers"]}
    changes = {"config": config, "beside": found.model_dump(), "adapter_facts": facts}
    made = Made(measurement="roundtrip", changes=changes)
    two = read_cell_file(write_cell(tmp_path / "two", made) / "cell.json")
    (shown,) = [one for one in settings(two) if one.name == "subscribers"]
    assert shown.asked == "2" and shown.effective.endswith(found.identity)
    assert "2 subscribers" in in_one_line(two)
    alone = replace(made, changes=changes | {"config": {"period_ns": 10**6}, "adapter_facts": {}})
    one = read_cell_file(write_cell(tmp_path / "one", alone) / "cell.json")
    (differs,) = differences(one, two)
    assert (differs.name, differs.b, differs.refusal) == ("config.subscribers", "2", None)


def test_idle_nodes_have_a_process_each_and_the_client_is_told_how_many() -> None:
    config = cell_of(background_nodes="2", subscribers=2).config
    assert beside.of_the_ends(config)["beside"] == {"subscribers": 2, "background_nodes": 2}
    members = [(one.name, one.as_, one.number) for one in beside.members(config)]
    assert members[:2] == [("background1", "node", 1), ("background2", "node", 2)]
    assert members[2:] == [("subscriber2", "subscriber", 2)]
    assert "background_nodes" not in cell_of(background_nodes=0).config
    with pytest.raises(RtmeterError) as refused:
        beside.check(cell_of(background_nodes=1), probe_that("subscribers"), inline=False, options={})
    assert refused.value.field == "background_nodes"


def test_none_is_a_number_of_idle_nodes_too() -> None:
    assert values_of("background_nodes", "0..8") == [0, 1, 2, 5, 8]
    assert values_of("background_nodes", "0,4") == [0, 4]
    for text in ("0..8/3", "8..0"):
        with pytest.raises(RtmeterError, match="--background_nodes"):
            values_of("background_nodes", text)


def test_what_is_there_of_them_is_said() -> None:
    there = [NodeSeen(name="background1", threads=4), NodeSeen(name="background2", threads=6)]
    found = WasBeside(background_nodes=there, knew=3)
    assert words.nodes(found).startswith("2 there to the end, up to 6 threads")
    assert words.nodes(found).endswith("the client knew 3 others")
    assert words.nodes(WasBeside(background_nodes=there)).endswith("each")
    assert words.nodes(None) == "" and list(words.beside(found)) == []
    assert beside_record.doubts(found) == [] and beside_record.problems(found) == []


def test_further_publishers_have_a_process_each_and_who_hears_them_knows_how_many() -> None:
    config = cell_of(publishers="3", subscribers=2).config
    assert beside.of_the_ends(config)["beside"] == {"subscribers": 2, "publishers": 3}
    members = [(one.name, one.as_, one.number) for one in beside.members(config)]
    assert members == [
        ("subscriber2", "subscriber", 2),
        ("publisher2", "publisher", 2),
        ("publisher3", "publisher", 3),
    ]
    assert "publishers" not in cell_of(publishers=1).config
    with pytest.raises(RtmeterError) as refused:
        beside.check(cell_of(publishers=2), probe_that("subscribers"), inline=False, options={})
    assert refused.value.field == "publishers"


def of_publisher(received: int, duplicate: int = 0) -> list[dict[str, Any]]:
    return [{"name": "publisher2", "received": received, "duplicate": duplicate, "corrupted": 0}]


def test_what_a_further_publisher_sent_counts_once_for_each_who_hears_it() -> None:
    said = {"name": "publisher2", "sent": 50}
    found = WasBeside(publishers=[beside_record.published(said, [of_publisher(50), of_publisher(48, 3)])])
    (one,) = found.publishers
    assert (one.received, one.lost, one.duplicate) == (98, 2, 3)
    assert words.publications(found) == [
        "publisher2 sent 50 x 2 subscribers = received 98 + lost 2",
    ]
    (doubt,) = beside_record.doubts(found)
    assert doubt.type == "publications_lost" and "publisher2 sent 50" in doubt.message
    assert beside_record.problems(found) == []
    more = WasBeside(publishers=[beside_record.published(said, [of_publisher(51)])])
    (problem,) = beside_record.problems(more)
    assert "publisher2" in problem and beside_record.doubts(more) == []


class Process:
    """What a further process, or an end, has said, and what it was told."""

    def __init__(self) -> None:
        self.said: set[str] = set()
        self.told: list[str] = []
        self.exit_code: int | None = None

    def event(self, kind: str) -> dict[str, Any] | None:
        return {"event": kind} if kind in self.said else None

    def tell(self, line: str) -> None:
        self.told.append(line)


def test_publishers_begin_once_all_who_are_to_hear_them_have_and_are_silent_if_they_ended(
    tmp_path: Path,
) -> None:
    further, started = beside.FurtherProcesses(), list[Any]()

    def launch(_: dict[str, Any]) -> Any:
        started.append(Process())
        return started[-1]

    further.start(cell_of(subscribers=2, publishers=2), {}, tmp_path, launch)
    subscriber, publisher = started
    client: Any = Process()
    server: Any = Process()
    for hearing in (subscriber, server):
        further.tell(client, server)
        assert (publisher.told, client.told) == ([], [])
        hearing.said.add("greeted")
    for _ in range(2):
        further.tell(client, server)
        assert (publisher.told, client.told, server.told) == (["go 1\n"], ["go 1\n"], [])
    assert not further.silent
    publisher.exit_code = 1
    assert further.silent


def test_pings_of_the_warm_up_are_none_that_were_sent(tmp_path: Path) -> None:
    lost = Made(
        measurement="roundtrip", samples=50, warm_up=5, delays=lambda k: (9, None if k == 7 else 5, 5)
    )
    assert beside_record._of_the_ends(write_cell(tmp_path / "cell", lost)) == (50, 49)
