"""`rtmeter compare --gate` and `--junit`: what decides in continuous integration."""

from __future__ import annotations

import os
import re
import sys
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import pytest

from rtmeter import cli
from rtmeter.cli import exit_codes
from rtmeter.model import Requirement
from wakeups import draw, write_wakeups

Captured = pytest.CaptureFixture[str]
JUDGED = Requirement(200_000, 0.5)


@pytest.fixture(autouse=True)
def _in_an_empty_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


def compare(line: str, capsys: Captured) -> tuple[int, str]:
    code = cli.invoke(["compare", *line.split()])
    said = capsys.readouterr()
    return code, said.out + said.err


def one(name: str, seed: int, scale: float = 1.0, **more: Any) -> None:
    write_wakeups(Path(name) / "cell", draw(seed, scale_ns=50_000 * scale), requirement=JUDGED, **more)


@pytest.mark.parametrize(
    ("gates", "code"),
    [
        (["p50<+30%"], exit_codes.PASS),
        (["p50<+5%"], exit_codes.FAIL),
        (["p50<+20.5%"], exit_codes.INCONCLUSIVE),
        (["p50<+30%", "p99.5<+1ms"], exit_codes.PASS),
        (["p50<+30%", "p99.999<+1ms"], exit_codes.INCONCLUSIVE),
        (["p50<+5%", "p99.999<+1ms"], exit_codes.FAIL),
        (["miss_ratio<+0.05"], exit_codes.PASS),
        (["miss_ratio<+1e-6"], exit_codes.FAIL),
    ],
)
def test_gates_decide_the_exit_code(gates: list[str], code: int, capsys: Captured) -> None:
    one("a", 1)
    one("b", 2, 1.2)
    line = " ".join(f"--gate {gate}" for gate in gates)
    got, said = compare(f"a b {line}", capsys)
    assert got == code
    assert said.count("  gate p") + said.count("  gate miss_ratio") == len(gates)


def test_a_miss_ratio_is_in_per_cent_and_a_difference_of_two_in_points(capsys: Captured) -> None:
    one("a", 1)
    one("b", 2, 1.2)
    _, said = compare("a b --gate miss_ratio<+1e-6", capsys)
    number = r"[\d.e-]+"
    row = rf"miss ratio > \w+ +{number} % +{number} %( +{number} points){{3}} +\+{number} % "
    assert re.search(row, said), said
    excess = rf"B is {number} points above it \(interval {number} points to {number} points\)"
    assert re.search(f"gate miss_ratio<\\+1e-6: fail: {excess}", said), said


def test_a_share_of_an_early_release_is_no_gate(capsys: Captured) -> None:
    for side in "ab":
        write_wakeups(Path(side) / "cell", draw(1) - 100_000)
    code, said = compare("a b --gate p50<+5%", capsys)
    assert code == exit_codes.INCONCLUSIVE and "not above zero: give a time" in said
    assert compare("a b --gate p50<+5us", capsys)[0] == exit_codes.PASS


@pytest.mark.parametrize(
    ("gate", "message"),
    [
        ("p100<+5%", "--gate = 'p100<+5%': is a gate on an unknown quantile; write a quantile from p0.01"),
        ("max<+5%", "--gate = 'max<+5%': is no gate"),
        ("p50<+1_0%", "--gate = 'p50<+1_0%': has a limit that is not a number"),
        ("p99<+x", "--gate = 'p99<+x': has a limit that"),
    ],
)
def test_gates_on_what_is_not_known_are_refused(gate: str, message: str, capsys: Captured) -> None:
    one("a", 1)
    code, said = compare(f"a a --gate {gate}", capsys)
    assert code == exit_codes.ERROR and message in said


def test_a_gate_on_the_miss_ratio_needs_a_deadline(capsys: Captured) -> None:
    for side in "ab":
        write_wakeups(Path(side) / "cell", draw(1, 1000))
    code, said = compare("a b --gate miss_ratio<+1e-3", capsys)
    assert code == exit_codes.ERROR and "needs a deadline" in said and "give --deadline" in said


def test_junit_has_a_case_for_each_gate_of_each_cell(capsys: Captured) -> None:
    for name, scale in {"same": 1.0, "slow": 1.5}.items():
        write_wakeups(Path("a") / name, draw(1), axes={"load": name})
        write_wakeups(Path("b") / name, draw(2, scale_ns=50_000 * scale), axes={"load": name})
    write_wakeups(Path("a/gone"), draw(1), axes={"load": "gone"})
    code, _ = compare("a b --gate p50<+10% --gate p99.999<+10% --junit out.xml", capsys)
    assert code == exit_codes.FAIL
    suite = ElementTree.parse("out.xml").getroot()
    assert {name: suite.get(name) for name in ("tests", "failures", "errors")} == {
        "tests": "5",
        "failures": "1",
        "errors": "3",
    }
    cases = {(case.get("classname"), case.get("name")): [part.tag for part in case] for case in suite}
    assert cases == {
        ("same", "p50<+10%"): ["system-out"],
        ("same", "p99.999<+10%"): ["error"],
        ("slow", "p50<+10%"): ["failure"],
        ("slow", "p99.999<+10%"): ["error"],
        ("gone", "is measured"): ["error"],
    }


def test_junit_without_gates_has_a_case_for_each_cell(capsys: Captured) -> None:
    one("a", 1)
    one("b", 2, 1.3)
    compare("a b --junit out.xml", capsys)
    (case,) = ElementTree.parse("out.xml").getroot()
    failure = case.find("failure")
    assert case.get("name") == "is not worse" and failure is not None
    assert str(failure.get("message")).startswith("worse: p50, p90, p99")
    assert "--junit = 'none/out.xml': cannot be written" in compare("a b --junit none/out.xml", capsys)[1]


def test_junit_has_an_error_for_what_is_not_told(capsys: Captured) -> None:
    for side in "ab":
        write_wakeups(Path(side) / "cell", draw(ord(side), 150))
    code, said = compare("a b --junit out.xml", capsys)
    assert code == exit_codes.INCONCLUSIVE and "not told" in said
    suite = ElementTree.parse("out.xml").getroot()
    error = suite.find("testcase/error")
    assert suite.get("errors") == "1" and error is not None
    assert str(error.get("message")).startswith("not told: half or twice as much")


def test_junit_of_names_with_control_characters_is_xml(capsys: Captured) -> None:
    for side in ("a\x01<&>", "b"):
        write_wakeups(Path(side) / "cell", draw(1))
    assert cli.invoke(["compare", "a\x01<&>", "b", "--junit", "out.xml", "--gate", "p50<+5%\x0b"]) == 0
    assert ElementTree.parse("out.xml").getroot().get("name") == r"a\x01<&> against b"


@pytest.mark.parametrize("line", ["compare a b --gate p50<+5% --junit out.xml", "verdict a --deadline 1us"])
def test_who_has_seen_enough_still_gets_junit_and_the_exit_code(
    line: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    one("a", 1)
    one("b", 2, 1.2)
    reads, writes = os.pipe()
    os.close(reads)
    with os.fdopen(writes, "w") as nobody:
        monkeypatch.setattr(sys, "stdout", nobody)
        assert cli.invoke(line.split()) == exit_codes.FAIL
    if "--junit" in line:
        assert ElementTree.parse("out.xml").getroot().get("failures") == "1"
