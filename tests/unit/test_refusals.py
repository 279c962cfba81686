"""Options that would do nothing are refused, by name and with what helps."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from rtmeter import cli
from rtmeter.cli.commands.plot import _span
from rtmeter.cli.refusals import refuse
from rtmeter.errors import RtmeterError
from rtmeter.results import store
from synthetic import Made, write_cell

LOOKS = "attach --pid {pid}"
LOOKED_AT = "means nothing where threads are only looked at; give a --duration too: then it is measured"
LINES = [
    ("plan --deadline 1ms --period 1ms --scale 0.001", "--scale = '0.001': means nothing without CAMPAIGN"),
    ("plan --deadline 1ms --period 1ms --only x==1", "--only = 'x==1': means nothing without CAMPAIGN"),
    ("plan some.yaml --period 1ms", "--period = '1ms': contradicts CAMPAIGN; leave it out"),
    ("check --wait", "--wait: means nothing without --self-test; leave it out"),
    ("check --self-test --on ssh://board", "--on = 'ssh://board': cannot be had with --self-test"),
    ("run some.yaml --dry-run --metrics a/b", "--metrics = 'a/b': means nothing with --dry-run; leave"),
    ("run some.yaml --dry-run --wait", "--wait: means nothing with --dry-run; leave"),
    ("run some.yaml --rigs some.yaml --metrics m", "--metrics = 'm': is of one machine's run, not of --rigs"),
    ("run some.yaml --rigs some.yaml --wait", "--wait: is of one machine's run, not of --rigs; leave it out"),
    (f"{LOOKS} --load cpu=2", f"--load = 'cpu=2': {LOOKED_AT}"),
    (f"{LOOKS} --explain", f"--explain: {LOOKED_AT}"),
    (f"{LOOKS} --out x", f"--out = 'x': {LOOKED_AT}"),
    (f"{LOOKS} --period 1ms", f"--period = '1ms': {LOOKED_AT}"),
    (f"{LOOKS} --ros2 --condition timer_migration=0", f"--condition = 'timer_migration=0': {LOOKED_AT}"),
    ("recover team --server-log x", "--server-log = 'x': means nothing for a folder; leave it out"),
    ("graph some.json --timing t.hpp", "--timing = 't.hpp': means nothing for some.json; leave it out"),
    ("summary cell --repeats", "--repeats: means nothing for one cell; leave it out"),
    ("summary . --repeats --json", "--repeats: means nothing with --json; leave it out"),
    ("compare . --factor x --gate p50<+5% --gate p9<+5%", "--gate = 'p50<+5%, p9<+5%': is not for --factor"),
    ("explain --times 3 cell", "--times = '3': goes with --self-test; leave it out"),
]


@pytest.mark.parametrize(("line", "said"), LINES)
def test_an_option_that_would_do_nothing_is_refused(
    line: str, said: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    write_cell(Path("cell"), Made(samples=20))
    campaign = "{name: some, cells: [{measurement: wakeup, adapter: 'null', samples: 3}]}"
    Path("some.yaml").write_text(campaign)
    Path("some.json").write_text('{"nodes": []}')
    Path("team", store.STAGES).mkdir(parents=True)
    Path("team", store.STAGES, store.TEAM).write_text("{}")
    there = sorted(tmp_path.rglob("*"))
    assert cli.invoke(line.replace("{pid}", str(os.getpid())).split()) == 1
    assert capsys.readouterr().err.startswith(f"rtmeter: {said}")
    assert sorted(tmp_path.rglob("*")) == there


@pytest.mark.parametrize(
    ("line", "said"),
    [
        ("verdict cell --deadline 1ms --deadline=2ms", "--deadline = '2ms': is given a second time; give it"),
        ("compare cell --factor load --factor block", "--factor = 'block': is given a second time"),
        ("export cell -o x --out y --format csv", "--out = 'y': is given a second time"),
        ("archive merge none --since 2020-01-01 --since 2021-01-01", "--since = '2021-01-01': is given"),
    ],
)
def test_what_can_be_said_once_is_refused_a_second_time(
    line: str, said: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert cli.invoke(line.split()) == 1
    assert capsys.readouterr().err.startswith(f"rtmeter: {said}")


def test_gates_are_as_many_as_are_given(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    cell = str(write_cell(tmp_path / "cell", Made(samples=200)))
    assert cli.invoke(["compare", cell, cell, "--gate", "p50<+5%", "--gate", "p90<+5%"]) == 0
    said = capsys.readouterr().out
    assert "gate p50<+5%: pass" in said and "gate p90<+5%: pass" in said


def test_what_was_not_given_is_not_refused() -> None:
    refuse({"--flag": False, "--text": None, "--pairs": []}, "means nothing", "leave it out")
    for value, said in ((0, "'0'"), (["a=1", "b=2"], "'a=1, b=2'"), (Path("x"), "'x'")):
        with pytest.raises(RtmeterError) as told:
            refuse({"--flag": False, "--text": value}, "means nothing", "leave it out")
        assert str(told.value) == f"--text = {said}: means nothing; leave it out"


@pytest.mark.parametrize("zoom", ["5s..5s", "5s..4s", "5s", "..", "5s..x"])
def test_a_part_of_a_plot_without_a_length_is_refused(zoom: str) -> None:
    with pytest.raises(RtmeterError, match="is no span") as refused:
        _span(zoom)
    assert (refused.value.field, refused.value.value) == ("--zoom", zoom)
    assert _span("..5s") == (0.0, 5.0)
