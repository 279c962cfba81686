"""Ranges on the command line: the cells of a sweep, and what is refused."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import yaml

from rtmeter import cli
from rtmeter.cli.sweeps import at_rate, sweep
from rtmeter.errors import RtmeterError

GIVEN = {"measurement": "roundtrip", "adapter": "null", "samples": "10"}
Captured = pytest.CaptureFixture[str]


def test_a_sweep_is_a_campaign_of_all_combinations(capsys: Captured) -> None:
    planned = sweep(GIVEN | {"payload": "16B..1KiB", "options": {"report": "none"}}, "10..100Hz")
    said = capsys.readouterr().err
    assert "payload: 16 B, 64 B, 256 B, 1 KiB\n" in said
    assert "rate: 10 Hz, 20 Hz, 50 Hz, 100 Hz\n" in said
    found = [(cell.config["payload_bytes"], cell.config["period_ns"]) for cell in planned.cells]
    periods = (10**8, 5 * 10**7, 2 * 10**7, 10**7)
    assert found == [(size, period) for size in (16, 64, 256, 1024) for period in periods]
    assert all(cell.factors.keys() == {"payload", "period"} for cell in planned.cells)
    assert all(cell.config["options"] == {"report": "none"} for cell in planned.cells)
    assert planned.name == "roundtrip-null-by-payload-and-rate"


def test_its_file_says_the_same_cells() -> None:
    planned = sweep(GIVEN | {"payload": "500,16B"}, None)
    (block,) = yaml.safe_load(planned.source)["cells"]
    assert block["payload"] == ["16B", "500B"]
    assert [cell.id for cell in planned.cells] == [f"roundtrip-null-payload-{size}B" for size in (16, 500)]


def test_one_rate_is_no_sweep_but_a_period() -> None:
    assert at_rate(GIVEN, "500Hz") == GIVEN | {"period": "2ms"}
    assert at_rate(GIVEN, None) == GIVEN
    planned = sweep(GIVEN | {"payload": "16B,500"}, "2kHz")
    assert {cell.config["period_ns"] for cell in planned.cells} == {500_000}


@pytest.mark.parametrize(
    ("given", "rate", "field"),
    [
        ({"payload": "2B..64B"}, None, "--payload"),
        ({"payload": "16B..64B", "period": "1ms"}, "10Hz", "--period"),
        ({"payload": "16B..64B", "timeout": "1ms"}, None, "--timeout"),
        ({}, "10..5", "--rate"),
    ],
)
def test_what_is_no_sweep_is_refused_without_a_file_of_its_own(
    given: dict[str, Any], rate: str | None, field: str
) -> None:
    with pytest.raises(RtmeterError) as refused:
        sweep(GIVEN | given, rate)
    assert refused.value.field == field
    assert refused.value.where is None


@pytest.mark.parametrize(
    ("line", "said"),
    [
        (
            "measure timer --mode one_shot --timeout 1ms --rate 100",
            "--rate = '100': the period 10ms contradicts",
        ),
        (
            "measure timer --mode one_shot --timeout 1ms --rate 5,9",
            "--rate = '5,9': the period 200ms contradicts",
        ),
        ("measure timer --mode one_shot --timeout 1ms --period 10ms", "--period = '10ms': contradicts mode"),
        (
            "plan timer --mode one_shot --timeout 1ms --find-max rate --rate 1..9",
            "--rate = '1..9': the period 1s contradicts",
        ),
        (
            "plan timer --mode one_shot --timeout 1ms --find-max rate",
            "--rate = '10Hz..10kHz': the period 100ms contradicts",
        ),
        (
            "plan chain --graph g --find-max payload --period 10ms",
            "--period = '10ms': is the graph's to say",
        ),
    ],
)
def test_what_a_rate_rules_out_is_told_of_the_rate(
    line: str, said: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: Captured
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("g").write_text("stages: {s: {period: 1ms}, a: {inputs: [s]}}")
    assert cli.invoke([*line.split(), "--adapter", "null", "--deadline", "1ms"]) == 1
    assert f"rtmeter: {said}" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("line", "said"),
    [
        ("--find-max subscribers --adapter posix --deadline 1ms", "--subscribers = 16: cannot"),
        ("--find-max publishers --adapter posix --deadline 1ms", "--publishers = 16: cannot"),
        ("--find-max subscribers --adapter null --deadline 1ms --subscribers 0..4", "begins at 0"),
        ("--find-max rate --adapter null", "--deadline: is missing"),
        ("--find-max rate --adapter null --deadline 1ms --period 1ms", "--period = '1ms'"),
        ("--find-max rate --adapter null --deadline 1ms --rate 5", "--rate = '5': is no range"),
        ("--find-max payload --adapter null --deadline 1ms --payload 1..2", "--payload"),
        ("--find-max=rate --deadline 1ms", "--adapter: is missing"),
        ("--find-max rate --adapter null --deadline 1ms --resume", "finds no such search"),
    ],
)
def test_what_cannot_be_searched_is_refused_by_name(
    line: str, said: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: Captured
) -> None:
    monkeypatch.chdir(tmp_path)
    assert cli.invoke(["plan", *line.split()]) == 1
    assert said in capsys.readouterr().err
    assert not list(tmp_path.iterdir())
