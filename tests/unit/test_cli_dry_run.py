"""`rtmeter run --dry-run`: what would run, in which order, how long, what is missing; nothing is changed."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest

from rtmeter import cli
from rtmeter.campaign.file import read_campaign
from rtmeter.cli import exit_codes
from rtmeter.measure.run import Run
from rtmeter.results import store
from stored import record

CAMPAIGN = """
name: small
defaults: {measurement: wakeup, adapter: fake, samples: 2000, warm_up: 1s}
cells:
- {name: first, samples: 4000}
- {name: second%s}
- {name: third, period: 2ms, deadline: 1ms, miss_ratio: 1e-6}
"""


@pytest.fixture(autouse=True)
def _in_an_empty_folder(tmp_path: Path, fake_probe: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "here").mkdir()
    monkeypatch.chdir(tmp_path / "here")


def dry_run(capsys: pytest.CaptureFixture[str], change: str = "", *more: str) -> tuple[int, Any]:
    Path("small.yaml").write_text(CAMPAIGN % change)
    code = cli.invoke(["run", "small.yaml", "--dry-run", "--json", *more])
    assert [path.name for path in Path().iterdir()] == ["small.yaml"]
    return code, json.loads(capsys.readouterr().out)


def test_the_order_and_the_time(capsys: pytest.CaptureFixture[str]) -> None:
    code, found = dry_run(capsys)
    assert code == exit_codes.PASS
    assert [(c["id"], c["planned_ns"], c["lacks"]) for c in found["cells"]] == [
        ("first", 5_000_000_000, []),
        ("second", 3_000_000_000, []),
        ("third", 5_000_000_000, []),
    ]
    assert found["planned_ns"] == 13_000_000_000
    assert found["too_short"] == ["third"]


@pytest.mark.parametrize(
    ("change", "code", "field", "remedy"),
    [
        (", adapter: ros2", exit_codes.INCONCLUSIVE, "adapter", ""),
        (", adapter: fkae", exit_codes.ERROR, "adapter", "did you mean fake?"),
        (", measurement: cycle", exit_codes.ERROR, "adapter", "it measures wakeup"),
        (", load: cpu80", exit_codes.ERROR, "load", "apt-get install stress-ng"),
        (", traffic: 1Mbit/s", exit_codes.ERROR, "traffic", "apt-get install iperf3"),
        (", conditions: {irq_cpus: {nothing0: 0}}", exit_codes.ERROR, "conditions.irq_cpus.nothing0", ""),
        (", cpus: 1023", exit_codes.ERROR, "cpus", "choose among"),
        (", conditions: {isolate: 1023}", exit_codes.ERROR, "conditions.isolate", "choose among"),
    ],
)
def test_what_is_missing_and_how_to_get_it(
    change: str,
    code: int,
    field: str,
    remedy: str,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.setattr("rtmeter.host.root.shutil.which", lambda _: None)
    ended, found = dry_run(capsys, change)
    (lack,) = found["cells"][1]["lacks"]
    assert (lack["field"], ended) == (field, code)
    assert remedy in lack["remedy"]
    assert [cell["lacks"] for cell in found["cells"][::2]] == [[], []]


def test_what_is_mistyped_is_an_error_beside_what_is_not_built(capsys: pytest.CaptureFixture[str]) -> None:
    assert dry_run(capsys, ", adapter: [ros2, fkae]")[0] == exit_codes.ERROR


@pytest.mark.parametrize(
    ("given", "field"),
    [
        ("load: {cpu: 1, cpus: 1023}", "load.cpus"),
        ("traffic: {rate: 1Mbit/s, cpus: 1023}", "traffic.cpus"),
    ],
)
def test_programs_beside_need_cpus_that_are_there(
    given: str, field: str, capsys: pytest.CaptureFixture[str]
) -> None:
    _, found = dry_run(capsys, f", {given}")
    assert field in [lack["field"] for lack in found["cells"][1]["lacks"]]


@pytest.mark.parametrize(("hosts", "lacks"), [("", True), (", hosts: {component: ssh://robot}", False)])
def test_the_cpus_of_a_server_elsewhere_are_those_of_its_machine(
    hosts: str, lacks: bool, capsys: pytest.CaptureFixture[str]
) -> None:
    _, found = dry_run(capsys, f", measurement: roundtrip, server_cpus: 1023{hosts}")
    assert ("server_cpus" in [lack["field"] for lack in found["cells"][1]["lacks"]]) == lacks


def test_the_kernels_events_are_roots_alone(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("rtmeter.host.root.Root.is_superuser", lambda _: False)
    code, found = dry_run(capsys, ", explain: true")
    (lack,) = found["cells"][1]["lacks"]
    assert (lack["field"], lack["message"], code) == (
        "explain",
        "needs root: tracefs is root's alone",
        exit_codes.ERROR,
    )


def test_a_load_of_nothing_needs_no_program(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("rtmeter.host.root.shutil.which", lambda _: None)
    assert dry_run(capsys, ", load: idle")[0] == exit_codes.PASS


def test_settings_that_may_be_left_out_are_not_missing(capsys: pytest.CaptureFixture[str]) -> None:
    change = ", conditions: {irq_cpus: {nothing0: 0}, unavailable: leave_out}"
    assert dry_run(capsys, change)[0] == exit_codes.PASS


def test_in_words_each_thing_is_said_once(capsys: pytest.CaptureFixture[str]) -> None:
    Path("small.yaml").write_text(CAMPAIGN.replace("adapter: fake", "adapter: [fake, ros2]") % "")
    assert cli.invoke(["run", "small.yaml", "--dry-run"]) == exit_codes.INCONCLUSIVE
    said = capsys.readouterr()
    assert said.out.count("is not built here") == 1
    assert "missing for first-ros2, second-ros2, third-ros2: adapter = 'ros2'" in said.out
    assert "small: 6 cells, 26 s of releases in all" in said.out
    assert said.out.count("would be skipped") == 3
    assert "rtmeter: small: 6 cells\n" in said.err


def test_a_column_has_one_unit(capsys: pytest.CaptureFixture[str]) -> None:
    """Also where cells take from 2 ms to an hour."""
    lengths = CAMPAIGN.replace("samples: 2000", "samples: [2, 3600000]").replace("warm_up: 1s", "warm_up: 0")
    Path("small.yaml").write_text(lengths % "")
    assert cli.invoke(["run", "small.yaml", "--dry-run"]) == exit_codes.PASS
    out = capsys.readouterr().out
    assert re.search(r"begins after +takes", out) and re.search(r" s +ms ", out)
    assert re.search(r"first +4,000 +0 +4,000 +can run", out)
    assert re.search(r"second-samples-2 +2 +4 +2 +can run", out)
    assert re.search(r"second-samples-3600000 +3,600,000 +4 +3,600,000 +can run", out)
    assert re.search(r"third-samples-2 +2 +3,604 +4 +can run", out)


def test_resumed_only_what_is_left(capsys: pytest.CaptureFixture[str]) -> None:
    short = CAMPAIGN.replace("samples: 2000, warm_up: 1s", "samples: 97, warm_up: 3ms")
    Path("small.yaml").write_text(short % "")
    assert cli.invoke(["run", "small.yaml", "--only", "block==second"]) == exit_codes.PASS
    run = next(Path("results").rglob("run.json"))
    before, _ = run.read_bytes(), capsys.readouterr()
    assert cli.invoke(["run", "small.yaml", "--resume", "--dry-run", "--json"]) == exit_codes.PASS
    assert [c["id"] for c in json.loads(capsys.readouterr().out)["cells"]] == ["first", "third"]
    assert run.read_bytes() == before
    done = ["--only", "block==second"]
    assert cli.invoke(["run", "small.yaml", "--resume", "--dry-run", *done]) == exit_codes.PASS
    assert "small: 0 cells, " in capsys.readouterr().out, "nothing is left"


def test_what_is_left_of_repeats_is_no_shorter_than_all_of_them(capsys: pytest.CaptureFixture[str]) -> None:
    """Three runs of 2,000 can pass together, and the last one of them alone could not."""
    Path("small.yaml").write_text(
        "name: small\nrepeat: 3\ndefaults: {measurement: wakeup, adapter: fake, warm_up: 0, deadline: 1ms}\n"
        "cells:\n- {name: enough, samples: 2000, miss_ratio: 1e-3}\n"
        "- {name: short, samples: 2000, miss_ratio: 1e-4}\n- {name: done, samples: 7, miss_ratio: 1e-4}\n"
    )

    def too_short(*more: str) -> Any:
        cli.invoke(["run", "small.yaml", "--dry-run", "--json", *more])
        return json.loads(capsys.readouterr().out)["too_short"]

    assert too_short() == ["short", "done"]
    assert too_short("--only", "repeat==3") == ["enough", "short", "done"]
    campaign = read_campaign(Path("small.yaml"))
    run = Run.start(Path("results"), campaign, 1.0)
    for cell in campaign.cells:
        if cell.axes["repeat"] < 3 or "done" in cell.id:
            axes, config = dict(cell.axes), dict(cell.config)
            with store.NewCell(run.folder / cell.id) as new:
                new.finish(record(cell.id, axes=axes, config=config, status="complete"))
    assert too_short("--resume") == ["short"]
