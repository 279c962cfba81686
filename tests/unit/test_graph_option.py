"""What is wrong with a chain's graph is told by the stage, with what to write instead."""

from __future__ import annotations

from pathlib import Path

import pytest

from rtmeter import cli

TWO = "stages: {s: {period: 1ms}, a: {inputs: s}}"


@pytest.mark.parametrize(
    ("text", "said"),
    [
        (
            "stages: {s: {period: 1ms, delay: 3}}",
            "--graph stages.s = 'delay': is not known; choose one of inputs,",
        ),
        (
            "stages: {s: {period: 1ms, perod: 3}}",
            "--graph stages.s = 'perod': is not known; did you mean period",
        ),
        (f"{TWO}\nfoo: 1", "--graph = 'foo': is not known; choose one of stages, judge"),
        ("stages: {}", "has no stages; give a mapping with the key stages"),
        (
            "stages: {s: {period: 1ms}, a: {inputs: 3}}",
            "stages.a.inputs = 3: is no list of stages; write the name",
        ),
        (
            "stages: {s: {period: 1ms}, a: {inputs: {s: 1}}}",
            "stages.a.inputs = {'s': 1}: is no list of stages",
        ),
        (
            "stages: {s: {period: 1ms}, a: {inputs: [s, 1]}}",
            "stages.a.inputs = ['s', 1]: is no list of stages",
        ),
        (f"{TWO}\njudge: [s, a]", "judge = ['s', 'a']: should be a valid string; write it like a > b"),
        (
            "stages: {s: {period: 1ms, re_stamps: true}}",
            "has the source s with re_stamps; give it to a stage that",
        ),
        ("stages: {s: {period: soon}}", "--graph stages.s.period = 'soon': "),
    ],
)
def test_what_is_wrong_with_it(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], text: str, said: str
) -> None:
    assert measured(tmp_path, text) == 1
    assert said in capsys.readouterr().err


@pytest.mark.parametrize(
    ("option", "value", "said"), [("--rate", "100Hz", "the period 10ms is"), ("--period", "10ms", "is")]
)
def test_a_period_beside_it(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], option: str, value: str, said: str
) -> None:
    assert measured(tmp_path, TWO, option, value) == 1
    said = f"{option} = {value!r}: {said} the graph's to say, of each source; leave it out"
    assert said in capsys.readouterr().err


def measured(folder: Path, text: str, *more: str) -> int:
    file = folder / "graph.yaml"
    file.write_text(text)
    asked = ["measure", "chain", "--adapter", "null", "--graph", str(file), "--samples", "10"]
    return cli.invoke([*asked, "--out", str(folder / "out"), *more])
