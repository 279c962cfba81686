"""Discoveries that really run: every row of scripted ones as plain loops have it; participants in processes
of their own, and what becomes of a run in which one of them cannot go on."""

from __future__ import annotations

import json
import os
import random
import signal
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from discovery_runs import ASKED, measured, served
from namespaces import multicast_network

from front import ended, probes_of, rtmeter, running
from rtmeter.cli import invoke
from rtmeter.errors import RtmeterError
from rtmeter.measure.probe.probes import find, find_probes
from rtmeter.model import ABSENT, LOST, SERVED, WARM_UP_FLAG
from rtmeter.samples import LogReader
from waiting import until

T0 = 1 << 40
PERIOD_NS, LOSS_NS, WARM_UP, SAMPLES = 200_000, 90_000, 2, 9

Script = list[dict[str, Any]]
Rows = list[tuple[int | None, ...]]


def draw_script(draw: random.Random, n: int) -> Script:
    """Delays of matches by pair, and of messages; None: never."""
    most = draw.choice((1_000, 60_000, 100_000))
    pairs = [f"p{a}>p{b}" for a in range(n) for b in range(n) if a != b and draw.random() < 0.8]
    rows = []
    for _ in range(draw.randint(1, 5)):
        never = draw.random() < 0.3
        row: dict[str, Any] = {"match_delay_ns": draw.randint(0, most)}
        row |= {pair: None if never and draw.random() < 0.1 else draw.randint(0, most) for pair in pairs}
        row["message_delay_ns"] = None if draw.random() < 0.1 else draw.randint(0, 5_000)
        row["fate"] = draw.choice(("ok", "ok", "ok", "duplicate", "corrupt"))
        rows.append(row)
    return rows


def simulated(script: Script, n: int, *, cold: bool) -> Iterator[tuple[int | None, ...]]:
    """Matched: the last pair's match. First: each sends once it is matched with all that hear it, again and
    again; a message comes over a pair if that is matched then, which it is."""
    stayers = [] if cold else range(n - 1)

    def delay(row: dict[str, Any], a: int, b: int) -> int | None:
        found: int | None = row.get(f"p{a}>p{b}", row["match_delay_ns"])
        return found

    there = all(delay(script[0], a, b) is not None for a in stayers for b in stayers if a != b)
    for k in range(WARM_UP + SAMPLES):
        row, release = script[k % len(script)], T0 + k * PERIOD_NS
        pairs = [(a, b) for a in range(n) for b in range(n) if a != b and (cold or n - 1 in (a, b))]
        delays = [delay(row, a, b) for a, b in pairs]
        matched = None
        if there and all(d is not None and d <= LOSS_NS for d in delays):
            matched = max(d for d in delays if d is not None)
        under_way = row["message_delay_ns"]
        first = None
        sends = matched is not None and matched < LOSS_NS  # else all have left
        if sends and under_way is not None and row["fate"] != "corrupt":
            first = matched + under_way if matched + under_way <= LOSS_NS else None
        served = matched is not None and first is not None
        status = (SERVED if served else LOST) | (WARM_UP_FLAG if k < WARM_UP else 0)
        yield release, release, *(None if t is None else release + t for t in (matched, first)), status


def logged(folder: Path, script: Script, n: int, *, cold: bool) -> Rows:
    names = list(script[0])
    lines = [",".join(names), *(",".join("" if r[c] is None else str(r[c]) for c in names) for r in script)]
    (folder / "delays.csv").write_text("\n".join(lines) + "\n")
    config = {
        "version": 1,
        "measurement": "discovery",
        "log": str(folder / "discovery.rtlog"),
        "period_ns": PERIOD_NS,
        "samples": SAMPLES,
        "warm_up": WARM_UP,
        "loss_timeout_ns": LOSS_NS,
        "options": {"script": str(folder / "delays.csv")},
        "discovery": {"participants": n, "others": "cold" if cold else "present"},
    }
    (folder / "config.json").write_text(json.dumps(config))
    done = subprocess.run(
        [find("null").path, "--config", folder / "config.json"], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stdout
    reader = LogReader(folder / "discovery.rtlog")
    assert reader.problems == []
    wanted = ("release_ns", "started_ns", "matched_ns", "first_ns", "status")
    columns = [whole_column(reader, name).tolist() for name in wanted]
    (folder / "discovery.rtlog").unlink()
    return [tuple(None if v == ABSENT else v for v in row) for row in zip(*columns, strict=True)]


def test_random_scripts_are_logged_as_plain_loops_have_it(sized: Any, tmp_path: Path) -> None:
    seen = set()
    for number in range(sized("random scripts of the null adapter", reduced=24, full=2_000)):
        draw = random.Random(f"null discovery {number}")
        n, cold = draw.randint(2, 6), draw.random() < 0.5
        script = draw_script(draw, n)
        wanted = list(simulated(script, n, cold=cold))
        assert logged(tmp_path, script, n, cold=cold) == wanted, number
        seen |= {(cold, row[4]) for row in wanted}
    assert {(cold, status) for cold in (True, False) for status in (SERVED, LOST)} <= seen


def over(adapter: str, *more: object, id: str | None = None) -> Any:
    built = adapter in find_probes()
    mark = pytest.mark.skipif(not built, reason=f"the adapter {adapter} is not built here")
    return pytest.param((adapter, *more), marks=mark, id=id or adapter)


PRESENT = ("--others", "present")


@pytest.mark.parametrize(
    "asked",
    [
        over("posix", "--samples", 2, "--participants", 3, *PRESENT, id="posix, present"),
        over("cyclonedds", "--samples", 1, "--participants", 3),
        over("cyclonedds", "--samples", 2, *PRESENT, id="cyclonedds, others present"),
        over("fastdds", "--samples", 1),
        over("rcl", "--samples", 1),
        over("rclpy", "--samples", 1),
        over("ecal", "--samples", 1, "--participants", 3),
        over("zenoh", "--samples", 1, "--participants", 3),
        over("zenoh", "--samples", 2, *PRESENT, id="zenoh, others present"),
        over("iceoryx2", "--samples", 2, "--participants", 3),
        over("ros1", "--samples", 2, "--participants", 3),
        over("iceoryx2", "--samples", 2, "--participants", 3, *PRESENT, id="iceoryx2, others present"),
    ],
)
def test_participants_in_processes_of_their_own_find_each_other(tmp_path: Path, asked: Any) -> None:
    adapter, *more = asked
    cell, folder = served(tmp_path, "--adapter", adapter, "--keep-log", *more)
    summary = cell["summary"]
    n = cell["config"]["samples"]
    assert cell["valid"] and summary["identity"].endswith(f": {n} = {n} + 0 + 0")
    views = {name: views["as_served"] for name, views in summary["quantities"].items()}
    assert views["time_to_matched"]["min_ns"] > 0 and views["start_delay"]["min_ns"] >= 0
    assert views["time_to_first"]["max_ns"] >= views["time_to_matched"]["min_ns"]
    assert views["time_to_first"]["max_ns"] < cell["config"]["loss_timeout_ns"]
    assert not {w["type"] for w in cell["warnings"]} & {"too_many_matches", "too_early", "mostly_lost"}
    assert cell["counters"]["corrupted"] == cell["counters"]["refused_calls"] == 0
    assert "discovery" in cell["adapter_facts"]["chosen"], "who compares is told of the session"
    n = cell["config"]["participants"]
    logs = [LogReader(folder / "stages" / f"p{one}.rtlog") for one in range(n)]
    for reader in logs:  # all on one grid, in which who stays has started before
        release_ns, started_ns = (whole_column(reader, name) for name in ("release_ns", "started_ns"))
        assert np.diff(release_ns).tolist() == [cell["config"]["period_ns"]] * (cell["config"]["samples"] - 1)
        assert release_ns[0] == logs[0].meta["grid"]["t0_ns"]
        stays = cell["config"]["others"] == "present" and reader is not logs[-1]
        assert (started_ns == release_ns).all() == stays


@pytest.mark.skipif("lcm" not in find_probes(), reason="the adapter lcm is not built here")
@pytest.mark.parametrize("others", ["cold", "present"])
def test_where_the_middleware_tells_of_no_matches_they_hear_each_other(tmp_path: Path, others: str) -> None:
    given = ("--participants", 3, "--others", others, "--samples", 2, "--keep-log")
    with multicast_network() as inside:
        cell, folder = served(tmp_path, "--adapter", "lcm", *given, inside=inside)
    summary = cell["summary"]
    assert cell["valid"] and summary["identity"].endswith(": 2 = 2 + 0 + 0")
    assert "matches" not in cell["adapter_facts"] and "time_to_matched" not in summary["quantities"]
    first = summary["quantities"]["time_to_first"]["per_release"]
    assert 0 < first["min_ns"] <= first["max_ns"] < cell["config"]["loss_timeout_ns"]
    for one in range(3):
        columns = LogReader(folder / "stages" / f"p{one}.rtlog")
        assert (whole_column(columns, "matched_ns") == ABSENT).all()
        assert (whole_column(columns, "first_ns") > whole_column(columns, "started_ns")).all()


def whole_column(reader: LogReader, name: str) -> Any:
    return np.concatenate([np.empty(0, dtype=np.int64), *(columns[name] for _, columns in reader.frames())])


def all_found_each_other(logs: Path, n: int) -> bool:
    """Whether, in logs that are being written, each participant was served in one release."""
    try:
        statuses = [whole_column(LogReader(logs / f"p{one}.rtlog"), "status") for one in range(n)]
    except RtmeterError:
        return False  # one has just been begun, or not yet
    return any(set(release) == {SERVED} for release in zip(*statuses, strict=False))


def test_the_first_message_over_every_pair_is_what_a_deadline_is_for(tmp_path: Path) -> None:
    script = tmp_path / "delays.csv"
    script.write_text("match_delay_ns,message_delay_ns\n1000,500\n1000,500\n1000,501\n,500\n")
    given = ("--adapter", "null", "--script", script, "--samples", 4, "--participants", 3)
    cell = measured(tmp_path / "late", *given, "--deadline", "1500ns", code=2)
    assert cell["verdict"]["quantity"] == "time_to_first"
    assert (cell["verdict"]["late"], cell["verdict"]["lost"], cell["verdict"]["n"]) == (1, 1, 4)
    views = cell["summary"]["quantities"]
    assert views["time_to_first"]["per_release"]["max_ns"] == "lost"
    assert views["time_to_first"]["as_served"]["max_ns"] == 1501
    assert views["time_to_matched"]["as_served"]["max_ns"] == 1000


def test_one_line_measures_several_numbers_of_participants(tmp_path: Path) -> None:
    given = ("--adapter", "null", "--samples", "2", "--participants", "2..20")
    done = rtmeter(*ASKED, *given, "--out", tmp_path)
    assert done.code == 0 and "rtmeter: participants: 2, 5, 10, 20" in done.err
    cells = [json.loads(path.read_text()) for path in tmp_path.rglob("cell.json")]
    assert sorted(cell["config"]["participants"] for cell in cells) == [2, 5, 10, 20]


def test_a_participant_that_is_killed_ends_the_run_and_what_was_measured_is_kept(tmp_path: Path) -> None:
    given = ("--adapter", "posix", "--samples", 500, "--participants", 3, "--out", tmp_path / "cell")
    with running(*ASKED, *given) as front:
        logs = tmp_path / "cell.partial" / "stages"
        until(lambda: all_found_each_other(logs, 3), of=front)
        probes = probes_of(front.pid)
        victim = next(p for p in probes if "/p1/" in Path(f"/proc/{p}/cmdline").read_text())
        os.kill(victim, signal.SIGKILL)
        done = ended(front)
    assert done.code == 1 and "SIGKILL" in done.err
    assert not any(Path(f"/proc/{pid}").exists() for pid in probes)
    cell = json.loads((tmp_path / "cell" / "cell.json").read_text())
    counts = cell["summary"]["counts"]
    assert cell["status"] == "failed" and counts["served"] > 0
    assert counts["released"] == counts["served"] + counts["lost"] + counts["in_flight"]


def udp_sockets(pid: int) -> int:
    inodes = {line.split()[9] for line in Path("/proc/net/udp").read_text().splitlines()[1:]}
    links = [str(link.readlink()) for link in Path(f"/proc/{pid}/fd").iterdir()]
    return sum(link.removeprefix("socket:[").rstrip("]") in inodes for link in links)


def test_an_interruption_keeps_what_was_measured(tmp_path: Path) -> None:
    given = ("--adapter", "posix", "--samples", 500, "--others", "present", "--out", tmp_path / "cell")
    with running(*ASKED, *given) as front:
        logs = tmp_path / "cell.partial" / "stages"
        until(lambda: all_found_each_other(logs, 2), of=front)
        stays = next(p for p in probes_of(front.pid) if "/p0/" in Path(f"/proc/{p}/cmdline").read_text())
        assert udp_sockets(stays) == 2, "of one participant: its own and the group's"
        front.send_signal(signal.SIGINT)
        done = ended(front)
    cell = json.loads((tmp_path / "cell" / "cell.json").read_text())
    assert cell["status"] == "interrupted" and cell["valid"], done.err
    counts = cell["summary"]["counts"]
    assert counts["served"] > 0 and counts["released"] == sum(
        counts[n] for n in ("served", "lost", "in_flight")
    )


def test_a_participant_that_finds_nobody_says_whom_it_looked_for(tmp_path: Path) -> None:
    config = {
        "version": 1,
        "measurement": "discovery",
        "log": str(tmp_path / "alone.rtlog"),
        "period_ns": 400_000_000,
        "samples": 1,
        "loss_timeout_ns": 200_000_000,
        "connect_timeout_ns": 100_000_000,
        "session": f"alone{os.getpid()}",
        "discovery": {"participants": 3, "participant": 1},
    }
    (tmp_path / "config.json").write_text(json.dumps(config))
    done = subprocess.run(
        [find("posix").path, "--config", tmp_path / "config.json"],
        capture_output=True,
        text=True,
        check=False,
    )
    (error,) = (one for one in map(json.loads, done.stdout.splitlines()) if one["event"] == "error")
    assert done.returncode == 1 and (error["field"], error["value"]) == ("participant", "p1")
    assert "0 of 2 others within 100 ms" in error["message"] and "239.255." in error["message"]


def test_an_adapter_that_tells_of_no_matches_is_refused_by_name(capsys: pytest.CaptureFixture[str]) -> None:
    assert invoke(["measure", "discovery", "--adapter", "attached"]) == 1
    assert "does not measure discovery" in capsys.readouterr().err


@pytest.mark.parametrize("edge", ["p0>q1", "p>p1", "p0>", "p0>p0", "participant0>participant1"])
def test_a_script_of_a_pair_that_no_participants_can_be_is_refused(tmp_path: Path, edge: str) -> None:
    (tmp_path / "script.csv").write_text(f"{edge}\n7\n")
    line = ("measure", "discovery", "--adapter", "null", "--participants", "3", "--script", "script.csv")
    done = rtmeter(*line, "--samples", "5", cwd=tmp_path)
    assert done.code == 1 and f"script {edge} = '{edge}': " in done.err and "is not a column" in done.err


def test_a_script_that_says_nothing_of_discoveries_is_refused(tmp_path: Path) -> None:
    (tmp_path / "script.csv").write_text("wake_delay_ns\n7\n")
    line = ("measure", "discovery", "--adapter", "null", "--script", "script.csv", "--samples", "1")
    done = rtmeter(*line, cwd=tmp_path)
    said = (
        "has no column of this measurement; give match_delay_ns, message_delay_ns, fate, or a pair's: p0>p1"
    )
    assert done.code == 1 and said in done.err
