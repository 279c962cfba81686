"""Requests in the front: what they can be asked with, and where their quantities are shown."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from rtmeter.campaign.rules import settle
from rtmeter.cli import invoke
from rtmeter.errors import RtmeterError
from synthetic import Made, write_cell

MS = 1_000_000
REQUEST = {"measurement": "request", "adapter": "posix"}
PHASES = ("accepted", "first_feedback", "result")


def test_defaults_are_those_of_the_round_trip() -> None:
    config = settle(REQUEST).probe_config()
    assert config["interface"] == "service"
    wanted = {"period_ns": 10 * MS, "deadline_ns": 10 * MS, "loss_timeout_ns": 500 * MS, "samples": 60_000}
    assert {key: config[key] for key in wanted} == wanted
    assert not {"reliability", "history_depth", "second_topic"} & config.keys()


@pytest.mark.parametrize(
    ("given", "field", "words"),
    [
        ({"reliability": "reliable"}, "reliability", "request"),
        ({"history_depth": 4}, "history_depth", "request"),
        ({"second_topic": "same_node"}, "second_topic", "request"),
        ({"receive": "call", "in_flight": "open"}, "receive", "contradicts in_flight open"),
        ({"server_receive": "call"}, "server_receive", "client alone"),
        ({"measurement": "roundtrip", "receive": "call"}, "receive", "client alone"),
        ({"measurement": "cycle", "receive": "call"}, "receive", "client alone"),
        ({"measurement": "roundtrip", "interface": "action"}, "interface", "roundtrip"),
        ({"receive": "spin", "scheduling": "deadline:1ms/2ms/5ms"}, "receive", "cannot start one that spins"),
        ({"loss_timeout": "9ms"}, "loss_timeout", "is shorter than one period"),
    ],
)
def test_what_cannot_be_asked(given: dict[str, Any], field: str, words: str) -> None:
    with pytest.raises(RtmeterError) as refused:
        settle(REQUEST | given)
    assert refused.value.field == field
    assert words in str(refused.value)


@pytest.fixture(scope="module")
def results(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A cell of an action's goals, of which release 7 is lost."""
    folder = tmp_path_factory.mktemp("requests")

    def delays(k: int) -> tuple[float | None, ...]:
        return (50_000, 20_000, None if k == 107 else 30_000 + k % 5)

    made = Made(measurement="request", samples=400, delays=delays, skip=True, loss_timeout_ns=2 * MS)
    write_cell(folder / "a", made)
    return folder


def test_the_summary_states_each_phase_from_the_release(results: Path) -> None:
    found = json.loads((results / "a" / "cell.json").read_text())["summary"]
    counts = found["counts"]
    assert (counts["released"], counts["lost"], counts["skipped"]) == (400, 1, 2)
    assert counts["released"] == counts["served"] + 3
    views = found["quantities"]
    assert (
        views["response"]["per_release"]["max_ns"] == "lost" or views["response"]["per_release"]["n"] == 400
    )
    served = {name: views[name]["as_served"] for name in (*PHASES, "request", "respond", "response")}
    assert {view["n"] for view in served.values()} == {397}
    assert served["accepted"]["max_ns"] == 70_000
    assert served["first_feedback"]["max_ns"] == 70_200
    assert served["result"] == served["response"]
    assert served["request"]["max_ns"] == 20_000
    assert served["respond"]["max_ns"] == 30_004


def test_it_is_judged_shown_and_exported_like_a_round_trip(
    results: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert invoke(["verdict", str(results / "a"), "--deadline", "1ms"]) == 2
    assert (
        "3 of 400 releases missed the deadline of 1,000 us on response (2 late, 1 lost)"
        in capsys.readouterr().out
    )
    page = tmp_path / "report.html"
    invoke(["report", str(results), "-o", str(page)])
    text = page.read_text()
    assert "Response: from the release, the moment a service should be called" in text
    assert all(phase in text for phase in ("first feedback", "accepted (release to"))
    for kind in ("triptych", "ccdf"):
        assert invoke(["plot", str(results / "a"), "--kind", kind, "-o", str(tmp_path / f"{kind}.svg")]) == 0
    assert "respond" in (tmp_path / "triptych.svg").read_text()
    for name in ("perfetto", "csv", "markdown"):
        assert invoke(["export", str(results / "a"), "--format", name, "-o", str(tmp_path / name)]) == 0
    assert "first_feedback_ns" in (tmp_path / "csv").read_text()[:500]
    assert b"request and response" in (tmp_path / "perfetto").read_bytes()
    capsys.readouterr()
    assert invoke(["summary", str(results / "a")]) == 0
    assert "first_feedback" in capsys.readouterr().out
