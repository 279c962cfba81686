"""Further subscribers and idle nodes beside a round trip: exact over the null adapter, counted over real
middleware, and gone when the run is over, whatever becomes of it."""

from __future__ import annotations

import json
import os
import signal
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, nullcontext
from pathlib import Path
from typing import Any

import pytest
from namespaces import multicast_network
from ros2_runs import EXECUTORS, needs_ros2

from front import ended, probes_of, rows_of, rtmeter, running
from rtmeter.cli import invoke
from rtmeter.measure.probe.beside import FurtherProcesses
from rtmeter.measure.probe.probe_process import ProbeProcess
from rtmeter.measure.probe.probes import find_probes
from waiting import until

REPLY_NS, EACH_NS = 100_000, 50_000
LIMIT = 1 + (500_000 - REPLY_NS) // EACH_NS
"""Of a deadline of 500 us: the reply comes when all others have had the ping."""
TRIP = ("measure", "roundtrip", "--period", "5ms", "--loss-timeout", "20s", "--warm-up", "50ms")


def cell_in(folder: Path) -> dict[str, Any]:
    cell: dict[str, Any] = json.loads((folder / "cell.json").read_text())
    return cell


def subscribers_of(cell: dict[str, Any]) -> dict[str, tuple[int, int]]:
    """Of each what it received and lost."""
    return {one["name"]: (one["received"], one["lost"]) for one in cell["beside"]["subscribers"]}


@pytest.fixture(scope="module")
def law(tmp_path_factory: pytest.TempPathFactory) -> Path:
    made = tmp_path_factory.mktemp("law")
    (made / "grows.csv").write_text(f"reply_delay_ns,subscriber_delay_ns\n{REPLY_NS},{EACH_NS}\n")
    # one ping in four never comes to the third; one release in 100 is late
    rows = "".join(f"{700_000 if k % 100 == 37 else 1_000},{'' if k % 4 == 1 else 7}\n" for k in range(100))
    (made / "loses.csv").write_text(f"reply_delay_ns,ping>subscriber3\n{rows}")
    return made


def test_scripted_receipts_are_counted_exactly(law: Path, tmp_path: Path) -> None:
    script = ("--adapter", "null", "--script", str(law / "loses.csv"), "--samples", "400")
    assert invoke([*TRIP, *script, "--subscribers", "4", "--out", str(tmp_path / "cell")]) == 0
    cell = cell_in(tmp_path / "cell")
    assert subscribers_of(cell) == {
        "subscriber2": (400, 0),
        "subscriber3": (300, 100),
        "subscriber4": (400, 0),
    }
    assert cell["beside"]["identity"] == "sent 400 x 3 subscribers = received 1,100 + lost 100"
    assert cell["config"]["subscribers"] == 4 and "subscribers_lost" in [w["type"] for w in cell["warnings"]]
    assert (cell["summary"]["counts"]["lost"], cell["valid"]) == (0, True)


@pytest.mark.parametrize(
    ("line", "column", "remedy"),
    [
        ("roundtrip --subscribers 3", "ping>subscriber9", "choose among ping>subscriber2, ping>subscriber3"),
        ("roundtrip --subscribers 3", "ping>subscriber1", "choose among ping>subscriber2, ping>subscriber3"),
        ("roundtrip", "ping>subscriber2", "leave the column out: it has none"),
        ("discovery --participants 2", "p0>p7", "choose among p0>p1, p1>p0"),
        (
            "discovery --participants 4 --others present",
            "p0>p7",
            "choose among p0>p1, p0>p2, p0>p3, p1>p0, p1>p2, p1>p3, p2>p0, p2>p1 and 4 more",
        ),
    ],
)
def test_a_script_of_an_edge_that_is_not_there_is_refused(
    line: str, column: str, remedy: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    script = tmp_path / "script.csv"
    script.write_text(f"reply_delay_ns,{column}\n1,7\n")
    asked = ["measure", *line.split(), "--adapter", "null", "--script", str(script), "--samples", "5"]
    assert invoke([*asked, "--out", str(tmp_path / "cell")]) == 1
    said = f"script {column} = '{column}': {script}:1: is no edge of this run; {remedy}\n"
    assert said in capsys.readouterr().err


def search(law: Path, script: str, *more: str, what: str = "subscribers") -> dict[str, Any]:
    line = ("plan", "--find-max", what, "--adapter", "null", "--script", script, "--rate", "1kHz")
    asked = ("--warm-up", "0s", "--deadline", "500us", "--miss-ratio", "1e-2", "--repeat", "1", "--json")
    done = rtmeter(*line, *asked, *more, "--out", "results", cwd=law)
    return {"code": done.code} | done.json


def test_a_planted_limit_of_subscribers_is_found_exactly(law: Path) -> None:
    found = search(law, "grows.csv", "--subscribers", "8..12")
    assert (found["code"], found["outcome"], found["unit"]) == (0, "pass", None)
    assert (found["passes"], found["fails"]) == (LIMIT, LIMIT + 1)
    for one in found["tried"]:
        assert one["outcome"] == ("pass" if one["value"] <= LIMIT else "fail")
    cell = cell_in(law / found["run"] / f"roundtrip-null-subscribers-{LIMIT}-r1")
    assert cell["summary"]["quantities"]["response"]["per_release"]["max_ns"] == 500_000


def test_a_planted_limit_of_background_nodes_is_found_exactly(law: Path) -> None:
    rows = f"reply_delay_ns,background_delay_ns\n{REPLY_NS},{EACH_NS}\n"
    (law / "crowd.csv").write_text(rows)
    found = search(law, "crowd.csv", "--background-nodes", "7..10", what="background_nodes")
    assert (found["outcome"], found["passes"], found["fails"]) == ("pass", LIMIT - 1, LIMIT)


def test_a_planted_limit_of_publishers_is_found_exactly(law: Path) -> None:
    (law / "talk.csv").write_text(f"reply_delay_ns,publisher_delay_ns\n{REPLY_NS},{EACH_NS}\n")
    found = search(law, "talk.csv", "--publishers", "8..12", what="publishers")
    assert (found["outcome"], found["passes"], found["fails"]) == ("pass", LIMIT, LIMIT + 1)


def test_too_little_evidence_finds_no_limit(law: Path) -> None:
    undecided = search(law, "loses.csv", "--most-repeats", "1")
    assert (undecided["code"], undecided["outcome"]) == (3, "inconclusive")
    assert (undecided["passes"], undecided["fails"]) == (None, None)


SLOW, ELSE = {"dustdds", "rclpy", "zenoh"}, pytest.mark.full_only("the same over the others")


def over(adapter: str, *more: str, id: str | None = None) -> Any:
    mark = pytest.mark.skipif(adapter not in find_probes(), reason=f"the adapter {adapter} is not built here")
    marks = [mark, *([ELSE] if adapter in SLOW else [])]
    return pytest.param((adapter, *more), marks=marks, id=id or adapter)


def over_ros2(*more: str) -> list[Any]:
    """By each of its executors."""
    by = [(name, ("ros2", *more, "--option", f"executor={name}")) for name in EXECUTORS]
    return [pytest.param(given, marks=needs_ros2, id=f"ros2-{name}") for name, given in by]


@contextmanager
def network_for(adapter: str) -> Iterator[Sequence[str]]:
    with multicast_network() if adapter == "lcm" else nullcontext([]) as inside:
        yield inside


def measured(given: tuple[str, ...], folder: Path, *more: str) -> dict[str, Any]:
    """The cell of a round trip over the adapter, with its options."""
    adapter, *options = given
    with network_for(adapter) as inside:
        line = (*TRIP, "--adapter", adapter, *options, *more)
        done = rtmeter(*line, "--out", folder / "cell", inside=inside)
    assert done.code == 0, done.err
    return cell_in(folder / "cell")


PATIENT = ("--reliability", "reliable", "--history-depth", "5000")
"""A reader of several publishers that gets no CPU for seconds loses nothing."""
RELIABLE = ("--reliability", "reliable", "--history-depth", "100")


TOPICS, ROUTER = ("--option", "transport=topics"), ("--option", "via=router")


@pytest.mark.parametrize(
    "given",
    [
        over("posix", *TOPICS),
        over("cyclonedds", *RELIABLE),
        over("fastdds", *RELIABLE),
        over("dustdds", *RELIABLE),
        over("iceoryx2", *RELIABLE),
        over("lcm", "--history-depth", "100"),
        over("rcl", *RELIABLE),
        over("rclpy", *RELIABLE),
        over("ros1", "--history-depth", "100"),
        *over_ros2(*RELIABLE),
        over("zenoh", *RELIABLE, *ROUTER),
        over("zeromq", *RELIABLE),
    ],
)
def test_every_subscriber_receives_what_the_server_does(tmp_path: Path, given: tuple[str, ...]) -> None:
    for attempt in range(5):  # a machine that stands still for all that is measured skips it all
        cell = measured(given, tmp_path / str(attempt), "--samples", "60", "--subscribers", "3")
        counts, sent = cell["summary"]["counts"], cell["beside"]["sent"]
        if sent > 0:
            break
    assert counts["released"] == 60 and sent == counts["served"] + counts["lost"] > 0
    assert set(subscribers_of(cell)) == {"server", "subscriber2", "subscriber3"}
    assert set(subscribers_of(cell).values()) == {(sent, 0)}
    assert not list(tmp_path.rglob("*.rtlog"))


TELL = {"cyclonedds", "fastdds", "dustdds", "rcl", "rclpy", "ros2"}
"""Those that tell whom they have found."""


@pytest.mark.parametrize(
    "given",
    [
        over("posix", *TOPICS),
        over("cyclonedds"),
        over("fastdds"),
        over("dustdds"),
        over("iceoryx2"),
        over("lcm"),
        over("rcl"),
        over("rclpy"),
        over("ros1"),
        *over_ros2(),
        over("zenoh", *ROUTER),
        over("zeromq"),
    ],
)
def test_background_nodes_are_there_and_the_client_has_found_them(
    tmp_path: Path, given: tuple[str, ...]
) -> None:
    cell = measured(given, tmp_path, "--samples", "20", "--background-nodes", "2")
    found = cell["beside"]
    assert [one["name"] for one in found["background_nodes"]] == ["background1", "background2"]
    assert (found["sent"], found["identity"], found["subscribers"]) == (None, None, [])
    assert found["knew"] >= 3 if given[0] in TELL else found["knew"] is None
    has_threads = given[0] not in {"posix", "iceoryx2"}
    assert all((one["threads"] > 0) == has_threads for one in found["background_nodes"])
    assert cell["config"]["background_nodes"] == 2 and cell["summary"]["counts"]["released"] == 20


@pytest.mark.parametrize(
    "given",
    [
        over("cyclonedds", *PATIENT),
        over("fastdds", *PATIENT),
        over("dustdds", *PATIENT),
        over("iceoryx2", *PATIENT),
        over("iceoryx2", *PATIENT, "--receive", "spin_once", id="iceoryx2, by spin_once"),
        over("rcl", *PATIENT),
        over("rclpy", *PATIENT),
        over("ros1", "--history-depth", "5000"),
        *over_ros2(*PATIENT),
        over("zenoh", *PATIENT, *ROUTER),
        over("zeromq", *PATIENT),
        over("zeromq", *PATIENT, "--option", "transport=ipc", id="zeromq, ipc"),
    ],
)
def test_every_subscriber_receives_what_further_publishers_send(
    tmp_path: Path, given: tuple[str, ...]
) -> None:
    cell = measured(given, tmp_path, "--samples", "60", "--subscribers", "2", "--publishers", "3")
    publishers = cell["beside"]["publishers"]
    assert [one["name"] for one in publishers] == ["publisher2", "publisher3"]
    for one in publishers:
        assert one["sent"] >= 60  # from before the client's first release until after its last
        assert (one["received"], one["lost"], one["corrupted"]) == (2 * one["sent"], 0, 0)
        of_all = f"sent {one['sent']:,} x 2 subscribers = received {one['received']:,} + lost 0"
        assert one["identity"] == of_all
    counts = cell["summary"]["counts"]
    assert counts["released"] == 60 and cell["counters"]["corrupted"] == 0  # nobody answered them
    assert set(subscribers_of(cell).values()) == {(cell["beside"]["sent"], 0)}
    assert cell["config"]["publishers"] == 3 and not list(tmp_path.rglob("*.rtlog"))


@pytest.mark.skipif("zeromq" not in find_probes(), reason="the adapter zeromq is not built here")
def test_who_hears_publishers_ends_once_they_have_published_what_was_due(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Else what one catches up with that stood still at the end is lost."""
    told: list[FurtherProcesses] = []
    silent_when_asked: list[bool] = []
    fall_silent, ask_to_end = FurtherProcesses.fall_silent, ProbeProcess.ask_to_end

    def falls_silent(them: FurtherProcesses) -> None:
        told.append(them)
        fall_silent(them)

    def asks_to_end(process: ProbeProcess) -> None:
        silent_when_asked.extend(them.silent for them in told)
        ask_to_end(process)

    monkeypatch.setattr(FurtherProcesses, "fall_silent", falls_silent)
    monkeypatch.setattr(ProbeProcess, "ask_to_end", asks_to_end)
    asked = (*PATIENT, "--samples", "20", "--subscribers", "2", "--publishers", "3")
    assert invoke([*TRIP, "--adapter", "zeromq", *asked, "--out", str(tmp_path / "cell")]) == 0
    assert silent_when_asked == [True] * 4, "the server, the subscriber and both further publishers"


def test_the_server_ends_after_all_else_that_hears(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """It may have started a master or a router that they cannot be without, who hear on where a ping was
    lost."""
    asked: list[ProbeProcess] = []
    ended_before: dict[str, list[str]] = {}
    ask_to_end = ProbeProcess.ask_to_end

    def asks_to_end(process: ProbeProcess) -> None:
        ended_before[process.role] = [one.role for one in asked if one.exit_code is not None]
        asked.append(process)
        ask_to_end(process)

    monkeypatch.setattr(ProbeProcess, "ask_to_end", asks_to_end)
    line = (*TRIP, "--adapter", "posix", *TOPICS, "--samples", "20", "--subscribers", "3")
    assert invoke([*line, "--background-nodes", "1", "--out", str(tmp_path / "cell")]) == 0
    assert ended_before["server"] == ["beside"] * 3


LONG = (
    *TRIP,
    "--adapter",
    "posix",
    "--option",
    "transport=topics",
    "--samples",
    "4000",
    "--subscribers",
    "3",
)


def started(front: Any, out: Path, releases: int = 0) -> list[int]:
    """Client, server and both further subscribers, once the client has recorded more than that many."""
    log = out.with_name(f"{out.name}.partial") / "probe.rtlog"
    until(lambda: rows_of(log) > releases, of=front)
    probes = probes_of(front.pid)
    assert len(probes) == 4
    return probes


def test_a_subscriber_that_is_killed_ends_the_run(tmp_path: Path) -> None:
    with running(*LONG, "--out", tmp_path / "cell") as front:
        probes = started(front, tmp_path / "cell")
        victim = next(p for p in probes if "/subscriber3." in Path(f"/proc/{p}/cmdline").read_text())
        os.kill(victim, signal.SIGKILL)
        done = ended(front)
    assert done.code == 1 and "SIGKILL" in done.err and "beside" in done.err
    assert not any(Path(f"/proc/{pid}").exists() for pid in probes)
    assert cell_in(tmp_path / "cell")["status"] == "failed"


def test_an_interruption_counts_what_came(tmp_path: Path) -> None:
    with running(*LONG, "--out", tmp_path / "cell") as front:
        started(front, tmp_path / "cell", 200)  # by then each has received some
        front.send_signal(signal.SIGINT)
        done = ended(front)
    cell = cell_in(tmp_path / "cell")
    assert cell["status"] == "interrupted", done.err
    sent, seen = cell["beside"]["sent"], subscribers_of(cell)
    assert len(seen) == 3
    assert all(0 < received <= sent and lost == sent - received for received, lost in seen.values()), seen


def test_nothing_outlives_a_front_that_is_killed(tmp_path: Path) -> None:
    with running(*LONG, "--out", tmp_path / "cell") as front:
        probes = started(front, tmp_path / "cell")
        front.kill()
        ended_at_last = lambda: not any(Path(f"/proc/{pid}").exists() for pid in probes)  # noqa: E731
        until(ended_at_last)


@pytest.mark.parametrize("edge", ["ping>subscriber", "pong>subscriber2", "ping>subscribers2"])
def test_a_script_of_an_edge_that_no_subscriber_can_be_at_is_refused(tmp_path: Path, edge: str) -> None:
    (tmp_path / "script.csv").write_text(f"reply_delay_ns,{edge}\n7,7\n")
    done = rtmeter(*TRIP, "--adapter", "null", "--script", "script.csv", "--samples", "5", cwd=tmp_path)
    assert done.code == 1 and f"script {edge} = '{edge}': " in done.err and "is not a column" in done.err
