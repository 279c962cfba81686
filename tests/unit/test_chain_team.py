"""The processes of a chain: how much each measures, how long it is listened to, what all say together."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from log_frames import header
from sample_logs import FILE_HEAD, json_frame, row_frame

from memory import PEAK_KIB
from rtmeter.campaign.chain_option import graph_of
from rtmeter.campaign.rules import settle
from rtmeter.cli import invoke
from rtmeter.errors import RtmeterError
from rtmeter.measure.team import chain_record
from rtmeter.measure.team.chain_processes import (
    DRAIN_MARGIN_NS,
    ChainProcess,
    drain_ns,
    overdue_ns,
    probe_config,
    processes_of,
    quiet_ns,
    released,
    warm_ups,
)
from rtmeter.model import ABSENT, SERVED, Outcome
from rtmeter.results.store import STAGES, TEAM, read_cell
from rtmeter.samples.meta import LogMeta
from rtmeter.statistics.chain import COLUMNS
from stored import record

MS = 1_000_000
GRAPH = {
    "stages": {
        "slow": {"period": "8ms"},
        "fast": {"period": "2ms", "process": "sensors"},
        "gyro": {"period": "3ms", "process": "sensors", "offset": "1ms"},
        "filter": {"inputs": "fast", "period": "10ms", "offset": "4ms"},
        "control": {"inputs": ["filter", "gyro"], "fusion": True},
        "motor": {"inputs": ["control", "slow"], "period": "5ms"},
    },
    "judge": "fast > filter > control > motor",
}
ASKED = {"measurement": "chain", "adapter": "null", "graph": GRAPH, "samples": 100, "warm_up": "9ms"}


@pytest.fixture(scope="module")
def config() -> dict[str, Any]:
    return settle(ASKED | {"deadline": "80ms", "loss_timeout": "100ms"}).probe_config()


def test_each_source_releases_as_long_as_that_of_the_judged_path(config: dict[str, Any]) -> None:
    """Five of warm-up and a hundred of 2 ms: 10 and 210 ms."""
    assert (config["warm_up"], config["period_ns"]) == (5, 2 * MS)
    graph = graph_of(config)
    assert released(config, graph) == {"slow": 27, "fast": 105, "gyro": 70}
    assert warm_ups(config, graph) == {"slow": 2, "fast": 5, "gyro": 4}


def test_it_is_listened_as_long_as_a_sample_may_take_on_the_slowest_path(config: dict[str, Any]) -> None:
    assert drain_ns(config, graph_of(config)) == 100 * MS + (10 + 5) * MS + DRAIN_MARGIN_NS
    late = GRAPH | {
        "stages": GRAPH["stages"] | {"motor": {"inputs": ["control"], "period": "5ms", "offset": "3s"}}
    }
    config = settle(ASKED | {"loss_timeout": "100ms", "graph": late}).probe_config()
    assert drain_ns(config, graph_of(config)) == 100 * MS + (10 + 3000) * MS + DRAIN_MARGIN_NS


def test_overdue_is_past_the_deadline_on_the_judged_path_and_past_the_wait_on_others(
    config: dict[str, Any],
) -> None:
    found, drain = overdue_ns(config, graph_of(config)), drain_ns(config, graph_of(config))
    judged = ("fast", "filter", "control", "motor")
    assert found == {
        judged: 80 * MS,
        ("gyro", "control", "motor"): drain + 3 * MS,
        ("slow", "motor"): drain + 8 * MS,
    }
    config = settle(ASKED | {"loss_timeout": "100ms"}).probe_config()
    assert overdue_ns(config, graph_of(config))[judged] == drain + 2 * MS


def test_a_process_is_quiet_for_periods_of_its_slowest_source_and_while_the_rest_is_under_way(
    config: dict[str, Any],
) -> None:
    """Of the sources slow (8 ms), fast (2 ms) and gyro (3 ms, from 1 ms on), and the drain."""
    drain = drain_ns(config, graph_of(config))
    assert quiet_ns(config, graph_of(config)) == 11 * 8 * MS + drain
    late = settle(
        ASKED
        | {
            "graph": GRAPH
            | {
                "stages": GRAPH["stages"]
                | {"gyro": {"period": "3ms", "process": "sensors", "offset": "60ms"}}
            }
        }
    )
    assert quiet_ns(late.probe_config(), graph_of(late.probe_config())) > (60 + 33) * MS + 15 * MS


def test_each_process_is_told_its_stages_their_times_and_how_many_its_sources_release(
    config: dict[str, Any],
) -> None:
    processes = {process.name: process for process in processes_of(config, together=False)}
    clients = {name for name, one in processes.items() if one.role == "client"}
    assert clients == {"slow", "sensors"} and len(processes) == 5
    sensors = probe_config(config, processes["sensors"])
    assert sensors["samples"] == 105
    assert [
        (s["name"], s["period_ns"], s["offset_ns"], s["samples"]) for s in sensors["chain"]["stages"]
    ] == [
        ("fast", 2 * MS, 0, 105),
        ("gyro", 3 * MS, 1 * MS, 70),
    ]
    (filtered,) = probe_config(config, processes["filter"])["chain"]["stages"]
    assert (filtered["period_ns"], filtered["offset_ns"]) == (10 * MS, 4 * MS)


def test_a_payload_has_room_for_every_sample_of_the_widest_message(config: dict[str, Any]) -> None:
    assert max(graph_of(config).ways.values()) == 3 and config["payload_bytes"] >= 8 + 3 * 16
    assert settle(ASKED | {"payload": "56B"}).probe_config()["payload_bytes"] == 8 + 3 * 16
    with pytest.raises(RtmeterError, match="too small for the samples"):
        settle(ASKED | {"payload": "55B"})


def test_without_a_word_the_longest_path_is_judged() -> None:
    given = {
        "stages": {"b": {"inputs": "a"}, "a": {"period": "2ms"}, "c": {"inputs": "b"}, "x": {"inputs": "a"}}
    }
    assert settle(ASKED | {"graph": given}).probe_config()["graph"]["judged"] == ["a", "b", "c"]


def columns(**stamps: list[int]) -> dict[str, np.ndarray]:
    return {name: np.array(values, np.int64) for name, values in stamps.items()}


def test_a_run_that_broke_off_was_listened_to_until_its_last_stamp(
    config: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    rows = {
        "a": columns(sent_ns=[10, 70], received_ns=[5, 60]),
        "b": columns(sent_ns=[20, 40], received_ns=[]),
    }
    assert chain_record._last_ns(rows) == 70 and chain_record._last_ns({}) == 0
    monkeypatch.setattr(chain_record, "_last_ns", lambda _rows: 12345)
    monkeypatch.setattr(chain_record, "analyse", lambda *_given, **about: about["ended_ns"])
    ended: dict[str, Any] = {
        status: chain_record._result(config, Outcome(status, None, ()), {})
        for status in ("complete", "interrupted")
    }
    assert ended["interrupted"] == 12345 and ended["complete"] > 10**18


@pytest.mark.parametrize(
    ("missing", "overflow", "whole"), [([], 0, {}), ([[2, None]], 0, {"slow": 15}), ([], 3, {"slow": 0})]
)
def test_a_log_that_lacks_rows_is_whole_until_the_last_stamp_before_them(
    config: dict[str, Any],
    monkeypatch: pytest.MonkeyPatch,
    missing: list[list[int | None]],
    overflow: int,
    whole: dict[str, int],
) -> None:
    def frame(first: int) -> tuple[int, dict[str, np.ndarray]]:
        nothing = {name: [0, 0] for name in ("stage", *COLUMNS)}
        return first, columns(**nothing | {"sent_ns": [10 + first, 15 + first]})

    reader = SimpleNamespace(frames=lambda: iter([frame(0), frame(5)]), missing=missing, rows=4)
    process = ChainProcess("slow", ("slow",), True)
    metas: Any = {process: (reader, LogMeta(counters={"overflow": overflow}))}
    monkeypatch.setattr(chain_record, "analyse", lambda *_given, **about: about["whole_until_ns"])
    assert chain_record._result(config, Outcome("complete", None, ()), metas) == whole


def test_the_rows_of_a_process_of_several_stages_are_each_stages_own_in_their_order(
    config: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    draw = np.random.default_rng(1)
    frames = [{name: draw.integers(0, 3, n) for name in ("stage", *COLUMNS)} for n in (7, 1, 12)]
    reader = SimpleNamespace(frames=lambda: enumerate(frames), missing=[], rows=25)
    metas: Any = {ChainProcess("sensors", ("fast", "gyro"), True): (reader, LogMeta())}
    monkeypatch.setattr(chain_record, "analyse", lambda _graph, rows, **_about: rows)
    found: Any = chain_record._result(config, Outcome("complete", None, ()), metas)
    for number, stage in enumerate(("fast", "gyro")):
        for name in COLUMNS:
            expected = [v for f in frames for v, s in zip(f[name], f["stage"], strict=True) if s == number]
            assert found[stage][name].tolist() == expected


def test_reading_takes_the_memory_of_the_rows_once() -> None:
    """Whole arrays of eight bytes a value, of frames that are gone by then."""
    code = f"""
from types import SimpleNamespace
import numpy as np
from rtmeter.measure.team import chain_record
from rtmeter.measure.team.chain_processes import ChainProcess
from rtmeter.model import Outcome
from rtmeter.samples.meta import LogMeta
{PEAK_KIB}
COUNT, ROWS, NAMES = 4000, 500, ("stage", *chain_record.COLUMNS)
def frames():
    for number in range(COUNT):
        yield number * ROWS, dict(zip(NAMES, np.zeros((len(NAMES), ROWS), np.int64)))
reader = SimpleNamespace(frames=frames, missing=[], rows=COUNT * ROWS)
chain_record.graph_of = chain_record.warm_ups = chain_record.overdue_ns = lambda *_: None
chain_record.analyse = lambda _, rows, **about: rows
config = {{"graph": {{"stages": [{{"name": "a"}}]}}, "loss_timeout_ns": 1}}
before = peak_kib()
metas = {{ChainProcess("a", ("a",), True): (reader, LogMeta())}}
rows = chain_record._result(config, Outcome("complete", None, ()), metas)
print((peak_kib() - before << 10) / sum(column.nbytes for column in rows["a"].values()))
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert 0.9 < float(done.stdout) < 1.3


def left_alone(folder: Path, measurement: str, config: Any, logs: dict[str, tuple[Any, str | None]]) -> None:
    """What is there once the front was killed: by process its columns, and the outcome it ended with."""
    (folder / STAGES).mkdir(parents=True)
    (folder / STAGES / TEAM).write_text(json.dumps({"config": config, "members": [*logs]}))
    for name, (rows, outcome) in logs.items():
        named = [{"name": column, "unit": "ns"} for column in rows]
        head = json_frame(b"H", 0, header(measurement=measurement, mode=None, columns=named))
        frames = [head, row_frame(0, np.array([*rows.values()], np.int64))]
        if outcome:
            frames.append(json_frame(b"E", len(rows["status"]), {"outcome": outcome, "counters": {}}))
        whole = FILE_HEAD + b"".join(frame.data for frame in frames)
        (folder / STAGES / f"{name}.rtlog").write_bytes(whole)


@pytest.mark.parametrize(
    ("last", "status"), [("complete", "interrupted"), (None, "failed"), ("failed", "failed")]
)
def test_a_chain_whose_front_was_killed_is_recovered_from_its_folder(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], last: str | None, status: str
) -> None:
    graph = {"stages": {"a": {"period": "2ms"}, "b": {"inputs": "a"}}}
    config = settle(ASKED | {"graph": graph, "warm_up": "0s"}).probe_config()
    k, partial = np.arange(20), tmp_path / "cell.partial"
    rows = dict.fromkeys(("stage", "way"), 0 * k) | {"sample": k, "sample_release_ns": 2 * MS * k}
    source = rows | {"received_ns": k * 0 + ABSENT, "sent_ns": 2 * MS * k, "status": k * 0 + SERVED}
    event = source | {"received_ns": 2 * MS * k + 5, "sent_ns": 2 * MS * k + 7}
    left_alone(partial, "chain", config, {"a": (source, "interrupted"), "b": (event, last)})
    assert invoke(["recover", str(partial / STAGES / "a.rtlog")]) == 1
    assert "give the folder in which they were measured" in capsys.readouterr().err
    assert invoke(["recover", str(partial)]) == 0
    cell = read_cell(partial / "recovered")
    assert (cell.id, cell.status, cell.chain is not None) == ("cell", status, True)
    assert cell.chain and cell.chain.paths[0].counts["arrived"] == 20
    assert cell.valid == (status != "failed")


def test_a_discovery_whose_front_was_killed_is_recovered_from_its_folder(tmp_path: Path) -> None:
    config = settle({"measurement": "discovery", "adapter": "null"}).probe_config()
    k = np.arange(5)
    rows = {"release_ns": 1000 * k, "started_ns": 1000 * k + 1, "matched_ns": 1000 * k + 2}
    rows |= {"first_ns": 1000 * k + 3, "status": k * 0 + SERVED}
    left_alone(
        tmp_path / "cell.partial", "discovery", config, dict.fromkeys(("p0", "p1"), (rows, "interrupted"))
    )
    assert invoke(["recover", str(tmp_path / "cell.partial"), "-o", str(tmp_path / "cell")]) == 1
    assert invoke(["recover", str(tmp_path / "cell.partial")]) == 0
    cell = read_cell(tmp_path / "cell.partial" / "recovered")
    assert cell.summary is not None and cell.summary.counts["served"] == 4, "one of the five is warm-up"


def test_what_processes_count_is_summed_and_a_warning_of_several_is_one(tmp_path: Path) -> None:
    log, header = tmp_path / "log", {"measurement": "chain", "mode": None}
    first, second = (
        LogMeta.of(
            header | {"counters": {"duplicate": n, "corrupted": 1}, "warnings": [], "threads": []}, log
        )
        for n in (2, 3)
    )
    assert chain_record.of_all(first, [first, second]).counters == {"duplicate": 5, "corrupted": 2}


@pytest.mark.parametrize(("in_flight", "problems"), [(1, []), (0, ["samples_do_not_add_up"])])
def test_a_sample_in_flight_is_one_of_the_released(
    in_flight: int, problems: list[str], tmp_path: Path
) -> None:
    counts = {"released": 6, "arrived": 3, "overtaken": 1, "lost": 1, "in_flight": in_flight}
    path = SimpleNamespace(name="a > b", counts=counts, identity="released = …")
    result: Any = SimpleNamespace(paths=(path,), problems=())
    cell: Any = SimpleNamespace(requirement=None)
    found = chain_record._with_problems(cell, record(), result, tmp_path)
    assert ([doubt.type for doubt in found.warnings], found.valid) == (problems, not problems)
