"""Two machines of one host name are two wherever results are told apart; without an id the name decides."""

from __future__ import annotations

import json
import re
import socket
from pathlib import Path

import pytest

from rtmeter import cli
from rtmeter.errors import RtmeterError
from rtmeter.judge.environment import differences
from rtmeter.measure.source.record import _known
from rtmeter.results import store
from rtmeter.results.machines import names_of
from rtmeter.results.record import CellRecord, RunRecord
from stored import record
from synthetic import Made, write_cell

ONE, TWO = "f83208d98faa4b06b6d06051081ab5d8", "0a1b2c3d4e5f40718293a4b5c6d7e8f9"


def a_run(out: Path, number: int, machine_id: str | None, machine: str = "robot") -> Path:
    folder = out / machine / "day" / f"202611{number:02}T090000Z"
    started = f"2026-11-{number:02}T09:00:00Z"
    facts = {"hostname": machine} | ({"machine_id": machine_id} if machine_id else {})
    write_cell(folder / "wakeup", Made(id="wakeup", samples=50, changes={"machine": facts}))
    about: dict[str, object] = {
        "campaign": "day",
        "description": "",
        "started": started,
        "ended": None,
        "scale": 1.0,
    }
    about |= {"scale": 1.0, "host": None, "cells": ["wakeup"], "rtmeter": "0.1.0", "machine_id": machine_id}
    store.write_run(folder, RunRecord.model_validate(about), None)
    return folder


@pytest.fixture
def here(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(socket, "gethostname", lambda: "robot")
    monkeypatch.setattr(store, "machine_id", lambda root: ONE)


def test_a_name_has_its_id_only_where_it_is_needed() -> None:
    assert names_of([("a", ONE), ("a", None), ("b", TWO)]) == {
        ("a", ONE): "a",
        ("a", None): "a",
        ("b", TWO): "b",
    }
    assert names_of([("a", ONE), ("a", TWO), ("a", None)]) == {
        ("a", ONE): "a (f83208d9)",
        ("a", TWO): "a (0a1b2c3d)",
        ("a", None): "a",
    }


def histories_of(results: Path, out: Path) -> list[str]:
    assert cli.invoke(["site", str(results), "-o", str(out), "--no-reports"]) == 0
    return sorted(re.sub(r"\.html$", "", page.name) for page in (out / "cells").iterdir())


def test_the_site_has_a_history_for_each_of_two_clones(tmp_path: Path) -> None:
    results, out = tmp_path / "results", tmp_path / "site"
    a_run(results, 1, None)
    a_run(results, 2, ONE)
    assert histories_of(results, out) == ["robot~day~wakeup"]
    a_run(results, 3, TWO)
    found = histories_of(results, out)
    assert len(found) == 3 and sum("f83208d9" in name for name in found) == 1
    assert "robot (0a1b2c3d)" in (out / "index.html").read_text()


def of(machine_id: str | None, hostname: str = "robot") -> CellRecord:
    facts = {"hostname": hostname} | ({"machine_id": machine_id} if machine_id else {})
    changed: CellRecord = record().model_copy(update={"machine": facts})
    return changed


def test_two_ids_are_a_difference_and_one_that_is_not_known_is_none() -> None:
    assert [found.name for found in differences(of(ONE), of(TWO))] == ["machine.machine_id"]
    assert differences(of(ONE), of(None)) == differences(of(None), of(TWO)) == []
    assert differences(of(ONE), of(ONE)) == []


@pytest.mark.parametrize(("other", "said"), [(TWO, True), (ONE, False), (None, False)])
def test_a_comparison_doubts_two_machines_of_one_name(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], other: str | None, said: bool
) -> None:
    a, b = a_run(tmp_path / "a", 1, ONE), a_run(tmp_path / "b", 1, other)
    assert cli.invoke(["compare", str(a), str(b)]) == 0
    printed = " ".join(capsys.readouterr().out.split())
    assert (f"other_host: two machines of one host name: {ONE}, {other}" in printed) == said


@pytest.mark.usefixtures("here")
def test_the_folder_of_another_machine_of_the_name_is_not_taken(tmp_path: Path) -> None:
    assert store.own_machine(tmp_path) == "robot"
    a_run(tmp_path, 1, None)
    assert store.own_machine(tmp_path) == "robot"  # of an older rtmeter: the name decides
    a_run(tmp_path, 2, TWO)
    assert store.own_machine(tmp_path) == "robot-f83208d9"
    assert store.latest_run(tmp_path, "day") is None
    assert store.new_run_folder(tmp_path, "day").parent == tmp_path / "robot-f83208d9" / "day"
    assert store.new_run_folder(tmp_path, "day", "machine").parent == tmp_path / "machine" / "day"


@pytest.mark.usefixtures("here")
def test_what_goes_on_is_the_last_run_of_this_machine(tmp_path: Path) -> None:
    own = a_run(tmp_path, 1, ONE)
    a_run(tmp_path, 2, TWO)
    assert store.own_machine(tmp_path) == "robot"
    assert store.latest_run(tmp_path, "day") == own
    older = a_run(tmp_path, 3, None)
    assert store.latest_run(tmp_path, "day") == older


@pytest.mark.usefixtures("here")
def test_a_damaged_run_is_told_where_it_may_be_the_last(tmp_path: Path) -> None:
    runs = [a_run(tmp_path, day, ONE) for day in (1, 2)]
    assert store.latest_run(tmp_path, "day") == runs[1]
    (runs[0] / store.RUN).write_text("{")
    assert store.latest_run(tmp_path, "day") == runs[1]
    (runs[1] / store.RUN).write_text("{")
    with pytest.raises(RtmeterError, match="is no rtmeter-run"):
        store.latest_run(tmp_path, "day")
    runs.append(a_run(tmp_path, 3, ONE))
    assert store.latest_run(tmp_path, "day") == runs[2]


def test_a_run_of_an_older_rtmeter_has_no_id(tmp_path: Path) -> None:
    folder = a_run(tmp_path, 1, ONE)
    content = json.loads((folder / store.RUN).read_text())
    assert content.pop("machine_id") == ONE
    (folder / store.RUN).write_text(json.dumps(content))
    assert store.read_run(folder).machine_id is None


def test_a_record_says_which_machine_it_is_of_where_a_probe_told_of_one() -> None:
    assert _known({"hostname": "robot"}, ONE) == {"hostname": "robot", "machine_id": ONE}
    assert _known({"hostname": "robot"}, None) == {"hostname": "robot"}
    assert _known({}, ONE) == {}
