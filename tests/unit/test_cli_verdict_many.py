"""`rtmeter verdict` of many conditions: a row each, then each thing once, with those that it holds for."""

from __future__ import annotations

import re
import shlex
from pathlib import Path

import numpy as np
import pytest

from rtmeter.cli import exit_codes
from rtmeter.model import Requirement
from stored import write_run
from verdicts import Captured, as_json, verdict
from wakeups import MS, draw, late_at, write_wakeups

ASKED = Requirement(MS, 0.001)


@pytest.fixture(autouse=True)
def _in_an_empty_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


def _twelve() -> None:
    """Of twelve conditions of two repeats four pass, four fail, and the tail of four changes."""
    changed = draw(3)
    changed[5_000:10_000] *= 2
    for number in range(4):
        of = {"good": draw(1), "late": late_at(*range(1000, 19_000, 200 + 10 * number)), "torn": changed}
        for name, values in of.items():
            for repeat in (1, 2):
                folder = Path(f"r/{name}-{number}-r{repeat}")
                write_wakeups(folder, values, repeat=repeat, requirement=ASKED)


def _kinds(said: str) -> dict[str, list[str]]:
    """What stands below the table, by what it is of."""
    found: dict[str, list[str]] = {}
    kind = ""
    for line in said.splitlines():
        if re.match("  (because|next|meanwhile|virtual|holds|whole|  )", line):
            kind = line[2:19].strip() or kind
            found.setdefault(kind, []).append(line[19:])
    return found


def test_many_conditions_have_a_row_each_the_worst_first(capsys: Captured) -> None:
    _twelve()
    code, said = verdict("r", capsys)
    assert code == exit_codes.FAIL and len(said.splitlines()) <= 30
    outcomes = re.findall(r"^ *(\w+)-\d +(fail|inconclusive|pass) ", said, re.MULTILINE)
    assert [outcome for _, outcome in outcomes] == ["fail"] * 4 + ["inconclusive"] * 4 + ["pass"] * 4
    rows = re.findall(r"^ *late-(\d) ", said, re.MULTILINE)
    assert rows == ["0", "1", "2", "3"], "of those that fail the one that missed most first"


def test_the_same_reason_and_step_are_said_once(capsys: Captured) -> None:
    _twelve()
    told = _kinds(verdict("r", capsys)[1])
    fails, torn, passes = "the 4 that fail", "the 4 that are inconclusive", "the 4 that pass"
    assert [one.partition(":")[0] for one in told["next"]] == [fails, torn]
    ratios = [one for one in told["because"] if "the miss ratio is at" in one or "without a further" in one]
    assert [one.startswith(f"{fails}, as in late-0: ") for one in ratios] == [True, False]
    assert ratios[1].startswith(f"{passes}: with 95 % confidence")
    (change,) = (one for one in told["because"] if "the tail changes" in one)
    assert change.startswith(f"{torn}: ")
    (shared,) = told["virtual machine"]
    assert shared.startswith("measured in a virtual machine")
    assert "wake-up of posix" in told["holds for"][0]


def test_reasons_that_differ_are_said_of_each(capsys: Captured) -> None:
    for name, values in {"a": draw(1), "b": draw(2), "c": draw(3, 300), "d": draw(4, 300)}.items():
        write_wakeups(Path(f"r/{name}"), values, requirement=Requirement(MS, 0.001))
    write_wakeups(Path("r/e"), draw(5) + 300 * np.arange(20_000), requirement=Requirement(9 * MS, 0.1))
    told = _kinds(verdict("r", capsys)[1])
    assert [one.partition(":")[0] for one in told["next"]] == ["c, d", "e"]


def test_what_holds_for_all_or_nearly_all_names_no_others(capsys: Captured) -> None:
    for name in ("a", "b", "c", "d"):
        write_wakeups(Path(f"r/{name}"), draw(1, 300), requirement=ASKED)
    assert _kinds(verdict("r", capsys)[1])["next"][0].startswith("all 4 conditions: measure ")
    write_wakeups(Path("r/e"), draw(1) + 300 * np.arange(20_000), requirement=Requirement(9 * MS, 0.1))
    assert _kinds(verdict("r", capsys)[1])["next"][0].startswith("all but e: measure ")
    write_wakeups(Path("r/f"), draw(1, 400), requirement=ASKED)
    told = _kinds(verdict("r", capsys)[1])
    assert told["next"][0].startswith("all but e, as in a: measure ")
    write_wakeups(Path("r/g"), draw(1), requirement=ASKED)
    assert _kinds(verdict("r", capsys)[1])["next"][0].startswith("all but e and g, as in a: measure ")


def test_the_whole_verdict_of_one_is_asked_for_as_it_says(capsys: Captured) -> None:
    _twelve()
    (asks,) = _kinds(verdict("r --deadline 2ms --miss-ratio 1% --horizon 20", capsys)[1])["whole verdict"]
    program, command, *rest = shlex.split(asks.partition(": ")[2])
    assert (program, command) == ("rtmeter", "verdict")
    assert rest[1:] == ["--deadline", "2ms", "--miss-ratio", "1%", "--horizon", "20"]
    assert "--anew" in _kinds(verdict("r --deadline 2ms --anew", capsys)[1])["whole verdict"][0]
    whole = verdict(shlex.join(rest), capsys)[1]
    assert "  releases         n 40,000" in whole and "condition" not in whole


def test_json_and_repeats_are_whole_of_many_too(capsys: Captured) -> None:
    _twelve()
    found = as_json("r", capsys)["cells"]
    assert len(found) == 12 and [one["id"] for one in found] == sorted(one["id"] for one in found)
    said = verdict("r --repeats", capsys)[1]
    assert said.count("\n  releases ") == 12 and said.count("\n      releases ") == 24


def test_three_conditions_are_whole(capsys: Captured) -> None:
    for name in ("a", "b", "c"):
        write_wakeups(Path(f"r/{name}"), draw(1), requirement=ASKED)
    assert verdict("r", capsys)[1].count("  releases ") == 3
    write_wakeups(Path("r/d"), draw(1), requirement=ASKED)
    assert verdict("r", capsys)[1].count("  releases ") == 0


def test_conditions_of_one_name_are_told_apart(capsys: Captured) -> None:
    for run in ("one", "two", "three", "four"):
        interrupted = {"status": "interrupted"} if run == "two" else {}
        write_wakeups(Path(f"{run}/a"), draw(1), requirement=ASKED, changes=interrupted)
    said = verdict(".", capsys)[1]
    assert all(f" a in {run}/a" in said for run in ("one", "two", "three", "four"))
    assert "a in two/a (interrupted)" in said


@pytest.mark.parametrize(
    ("path", "lacking"),
    [("r", ["loop-r2", "other-r1", "other-r2", "third"]), ("r/loop", ["loop-r2"]), ("r/loop-r1", [])],
)
def test_what_a_run_lists_and_lacks_is_named_and_its_question_open(
    path: str, lacking: list[str], capsys: Captured
) -> None:
    """As after kill -9: the report says of the same that it is not finished."""
    write_wakeups(Path("r/loop-r1"), draw(1), repeat=1, requirement=ASKED)
    write_run(Path("r"), {"cells": ["loop-r1", "loop-r2", "other-r1", "other-r2", "third"]}, None)
    code, said = verdict(path, capsys)
    assert code == (exit_codes.INCONCLUSIVE if lacking else exit_codes.PASS)
    more = " and 1 more" if len(lacking) > 3 else ""
    whose = "cell, loop-r2; its" if len(lacking) == 1 else f"cells, {', '.join(lacking[:3])}{more}; their"
    words = f"not measured: {len(lacking)} planned {whose} question is open"
    assert (words in said) == bool(lacking)
    assert as_json(path, capsys).get("not_measured", []) == lacking
