"""`rtmeter plan --find-max` over the null adapter: a planted limit, and what is said where there is none."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from front import Done, rtmeter
from rtmeter.campaign.file import read_campaign

REPLY_NS = 700_000
"""A reply that takes longer than a period makes the next ping late by twice as much: beyond the deadline."""
LIMIT_HZ = 10**9 // REPLY_NS


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    made = tmp_path_factory.mktemp("search")
    (made / "constant.csv").write_text(f"reply_delay_ns,wake_delay_ns\n{REPLY_NS},0\n")
    # one in 100 late: at 1 % allowed neither shown to pass nor to fail
    rows = "".join(f"{2_000_000 if k % 100 == 37 else 100_000},0\n" for k in range(100))
    (made / "undecided.csv").write_text(f"reply_delay_ns,wake_delay_ns\n{rows}")
    return made


def search(folder: Path, script: str, *options: str, shown: str = "--json") -> Done:
    line = ("plan", "--find-max", "rate", "--adapter", "null", "--script", script, "--warm-up", "0s")
    return rtmeter(*line, "--deadline", "1ms", "--miss-ratio", "1e-2", *options, *shown.split(), cwd=folder)


def cells(done: Done) -> dict[str, int]:
    """Each cell of the search with the moment it was written."""
    return {str(file): file.stat().st_mtime_ns for file in Path(done.json["run"]).glob("*/cell.json")}


@pytest.fixture(scope="module")
def found(folder: Path) -> Done:
    options = ("--rate", "1424..1433Hz", "--repeat", "2", "--out", str(folder / "r"))
    return search(folder, "constant.csv", *options)


def test_a_planted_limit_is_found_exactly(found: Done) -> None:
    document = found.json
    assert (found.code, document["outcome"], document["unit"]) == (0, "pass", "Hz")
    assert (document["passes"], document["fails"]) == (LIMIT_HZ, LIMIT_HZ + 1)
    by_value = {one["value"]: one for one in document["tried"]}
    assert {value: one["outcome"] for value, one in by_value.items()} == {
        value: "pass" if value <= LIMIT_HZ else "fail" for value in by_value
    }
    assert max(by_value) == 1433


def test_each_value_has_the_evidence_of_a_verdict_and_a_cell_each(found: Done) -> None:
    for one in found.json["tried"]:
        if one["outcome"] == "pass":
            assert (one["n"], len(one["cells"])) == (2_000, 2)  # in each run enough to look at dependence
        else:  # what is lost already is not measured to its end
            assert (one["n"], len(one["cells"])) == (1_000, 1)
    listed = [cell for one in found.json["tried"] for cell in one["cells"]]
    run = json.loads((Path(found.json["run"]) / "run.json").read_text())
    assert sorted(run["cells"]) == sorted(listed) == sorted(Path(cell).parent.name for cell in cells(found))
    again = read_campaign(Path(found.json["run"], "campaign.yaml"))
    assert {cell.config["samples"] for cell in again.cells} == {1_000}
    assert len(again.cells) == 2 * len(found.json["tried"])
    judged = rtmeter("verdict", found.json["run"], "--json")
    outcomes = {one["id"]: one["outcome"] for one in judged.json["cells"]}
    assert outcomes[f"roundtrip-null-rate-{LIMIT_HZ}"] == "pass"
    assert outcomes[f"roundtrip-null-rate-{LIMIT_HZ + 1}-r1"] == "fail"


def test_what_was_measured_is_not_measured_again(found: Done, folder: Path) -> None:
    before = cells(found)
    options = ("--rate", "1424..1433Hz", "--repeat", "2", "--out", str(folder / "r"), "--resume")
    again = search(folder, "constant.csv", *options)
    assert again.json == found.json
    assert cells(again) == before
    assert again.err.count("done before") == len(before)
    run = json.loads((Path(again.json["run"]) / "run.json").read_text())
    assert sorted(run["cells"]) == sorted(Path(cell).parent.name for cell in before)
    said = search(folder, "constant.csv", *options, shown="").out
    asked = "deadline 1ms, at most 1 % missed, 95 % confidence"
    assert f"largest rate that passes: {LIMIT_HZ:,} Hz ({asked})\n" in said


def test_too_little_evidence_is_inconclusive(folder: Path) -> None:
    done = search(folder, "undecided.csv", "--rate", "100..101Hz", "--repeat", "1", "--most-repeats", "2")
    assert (done.code, done.json["outcome"]) == (3, "inconclusive")
    assert (done.json["passes"], done.json["fails"]) == (None, None)
    (tried,) = done.json["tried"]
    assert (tried["value"], tried["outcome"], tried["n"], tried["misses"]) == (101, "inconclusive", 2_000, 20)


def test_fewer_runs_at_most_than_each_value_has_are_refused(folder: Path) -> None:
    done = search(folder, "constant.csv", "--repeat", "5", "--most-repeats", "2")
    assert done.code == 1 and "--most-repeats = 2: is less than --repeat 5; " in done.err


def test_of_more_than_ten_runs_each_there_are_no_further_ones(folder: Path) -> None:
    done = search(folder, "constant.csv", "--samples", "50", "--repeat", "12")
    assert (done.code, done.json["outcome"]) == (3, "inconclusive")
    assert done.json["tried"][0]["reason"] == "600 releases cannot pass, it takes 12,000"


def test_releases_that_cannot_pass_are_not_measured(folder: Path) -> None:
    done = search(folder, "constant.csv", "--samples", "50")
    assert (done.code, done.json["outcome"], cells(done)) == (3, "inconclusive", {})
    assert "150 releases cannot pass" in done.json["tried"][0]["reason"]


def test_where_none_passes_and_where_all_do(folder: Path) -> None:
    none = search(folder, "constant.csv", "--rate", "1999..2000", "--repeat", "1")
    assert (none.code, none.json["outcome"]) == (2, "fail")
    assert (none.json["passes"], none.json["fails"]) == (None, 1999)
    all_ = search(folder, "constant.csv", "--rate", "9..10Hz", "--repeat", "1")
    assert (all_.code, all_.json["outcome"]) == (0, "pass")
    assert (all_.json["passes"], all_.json["fails"]) == (10, None)
