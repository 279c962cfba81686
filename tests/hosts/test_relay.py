"""Round trips through a relay that drops, delays, reorders, doubles and damages messages by a script: what
rtmeter counts is what the relay did, message by message."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest
from relay import CORRUPT, DROP, PING, PONG, TWICE, Hold, Relay, Script
from runs import measured
from two_hosts import Hosts

from rtmeter.measure.probe.probes import find_probes
from rtmeter.results import store

PINGS = 400
PERIOD_MS, LOSS_S = 10, 2
# The reply is back for certain after it counts as lost, and well before the run ends.
LATE = Hold(until=PINGS - 100, least_s=1.2 * LOSS_S)
SCRIPT: Script = {
    (PING, 20): DROP,
    (PONG, 30): DROP,
    (PONG, 31): DROP,
    (PING, 40): LATE,
    (PONG, 41): LATE,
    (PING, 100): Hold(until=102),
    (PONG, 110): Hold(until=113),
    (PING, 120): TWICE,
    (PONG, 130): TWICE,
    (PING, 140): CORRUPT,
    (PONG, 150): CORRUPT,
}
DROPPED, LATE_ONES, REORDERED, CORRUPTED = {20, 30, 31}, {40, 41}, {100, 110}, {140, 150}
NUMBER_BEFORE = {"posix": 8, "cyclonedds": 12, "fastdds": 12, "ros1": 12}
OPTIONS = {"posix": ["transport=udp"], "ros1": ["transport=udp"]}
Ends = dict[str, set[int]]
"""The releases by how they ended."""


@pytest.fixture(scope="module")
def far(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Hosts]:
    hosts = Hosts(tmp_path_factory.mktemp("hosts"), cable=Relay.between)
    try:
        hosts.up(another_machine=False)
        yield hosts
    finally:
        hosts.down()


def run(
    far: Hosts, folder: Path, adapter: str, script: Script, *more: str, as_scripted: Callable[[Ends], bool]
) -> tuple[Any, Ends]:
    """The cell, and how its releases ended. A stall of the client, or of the relay, which is a thread of
    pytest, loses others than the script does: then it is run again, three times in all."""
    if adapter not in find_probes():
        pytest.skip(f"the adapter {adapter} is not built here")
    assert isinstance(far.relay, Relay)
    for attempt in ("first", "second", "third"):
        cell, ends = run_once(far, folder / attempt, adapter, script, *more)
        assert far.relay.dropped <= ends["lost"]
        if as_scripted(ends):
            break
    return cell, ends


def run_once(far: Hosts, folder: Path, adapter: str, script: Script, *more: str) -> tuple[Any, Ends]:
    far.relay.play(script, NUMBER_BEFORE[adapter])
    options = [part for option in OPTIONS.get(adapter, []) for part in ("--option", option)]
    given = ["--adapter", adapter, *options, "--period", f"{PERIOD_MS}ms", "--samples", PINGS, *more]
    given += ["--loss-timeout", f"{LOSS_S}s", "--history-depth", str(PINGS)]
    cell = measured(far, folder, *given, "--connect-timeout", "30s")
    rows = pq.read_table(folder / store.SAMPLES, columns=["status"]).to_pydict()["status"]
    ends = {"lost", *rows}
    return cell, {end: {k for k, status in enumerate(rows) if status == end} for end in ends}


def only(lost: set[int]) -> Callable[[Ends], bool]:
    """Whether no others were lost."""
    return lambda ends: ends["lost"] <= lost


def test_what_the_relay_did_is_what_is_counted(far: Hosts, tmp_path: Path) -> None:
    lost = DROPPED | LATE_ONES | CORRUPTED
    cell, ends = run(far, tmp_path, "posix", SCRIPT, "--in-flight", "open", as_scripted=only(lost))
    assert far.relay.done == {DROP: 3, TWICE: 2, CORRUPT: 2, "hold": 4}
    counts = cell["summary"]["counts"]
    assert ends["lost"] == lost
    assert ends["served"] == set(range(PINGS)) - ends["lost"]
    assert counts["released"] == PINGS == counts["replied_in_time"] + counts["missed"] + counts["lost"]
    assert counts["late_after_lost"] == len(LATE_ONES)
    assert counts["out_of_order"] == len(REORDERED)  # a reply that came too late is not one besides
    assert counts["duplicate"] == 2
    assert counts["corrupted"] == len(CORRUPTED)


@pytest.mark.parametrize(
    "adapter",
    ["cyclonedds", pytest.param("fastdds", marks=pytest.mark.full_only("the same over Fast DDS"))],
)
def test_best_effort_drops_what_was_overtaken(far: Hosts, tmp_path: Path, adapter: str) -> None:
    """A best-effort reader passes on no sample that comes after a later one (DDSI-RTPS 2.5, 8.4.12), nor one
    twice: the middleware loses them, and so it shows."""
    lost = DROPPED | LATE_ONES | REORDERED | CORRUPTED
    cell, ends = run(far, tmp_path, adapter, SCRIPT, "--in-flight", "open", as_scripted=only(lost))
    assert far.relay.done == {DROP: 3, TWICE: 2, CORRUPT: 2, "hold": 4}
    counts = cell["summary"]["counts"]
    assert ends["lost"] == lost
    assert counts["released"] == PINGS == counts["replied_in_time"] + counts["missed"] + counts["lost"]
    assert counts["corrupted"] == len(CORRUPTED)
    assert counts["late_after_lost"] == counts["out_of_order"] == counts["duplicate"] == 0


def test_with_one_in_flight_a_loss_passes_over_releases(far: Hosts, tmp_path: Path) -> None:
    # Of each stretch the first that is sent: a busy machine may pass over any one release.
    stretches = {PING: set(range(20, 100)), PONG: set(range(300, 380))}
    script: Script = {(way, k): DROP for way, stretch in stretches.items() for k in stretch}

    def one_of_each(ends: Ends) -> bool:
        return only(far.relay.dropped)(ends) and all(ends["lost"] & each for each in stretches.values())

    cell, ends = run(far, tmp_path, "posix", script, as_scripted=one_of_each)
    counts = cell["summary"]["counts"]
    assert ends["lost"] == far.relay.dropped
    assert len(ends["lost"]) == 2
    for lost in ends["lost"]:  # nothing is sent until the loss is known, two seconds later
        assert set(range(lost + 1, min(lost + 1000 * LOSS_S // PERIOD_MS, PINGS))) <= ends["skipped"]
    assert counts["released"] == PINGS == sum(map(len, ends.values()))
    assert counts["released"] == sum(
        counts[name] for name in ("replied_in_time", "missed", "lost", "skipped", "in_flight")
    )


@pytest.mark.full_only("a link that is lost for good")
def test_the_link_is_lost(far: Hosts, tmp_path: Path) -> None:
    """From ping 50 on nothing comes through any more."""
    gone: Script = {(PING, k): DROP for k in range(50, PINGS)}
    lost = set(range(50, PINGS))
    cell, ends = run(far, tmp_path, "posix", gone, "--in-flight", "open", as_scripted=only(lost))
    assert ends["lost"] == lost
    assert cell["summary"]["counts"]["lost"] == PINGS - 50
    assert cell["summary"]["quantities"]["response"]["per_release"]["max_ns"] == "lost"
