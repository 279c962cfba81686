"""A mutilated cell.json or run.json: refused with file, field and remedy, by every command alike."""

from __future__ import annotations

import json
import random
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from cell_commands import Tried
from mutilated import Mutilation, is_valid, mutilations
from rtmeter import cli
from rtmeter.errors import RtmeterError
from rtmeter.results import store
from rtmeter.results.record import read_cell_file, read_run_file
from stored import PROVENANCE, json_of, write_run
from synthetic import Made, write_cell

Sized = Callable[..., int]

FAILURE = {"field": "adapter", "value": "posix", "message": "broke", "remedy": "mend it", "where": None}
FINDING = {"id": "rt_throttling", "grade": "high", "value": "on", "why": "w", "source": "s", "fix": ""}
SIDES = {"asked": {"load": {"cpu": 2}}, "effective": {"settings": {"rt_runtime": {"cpu": "1"}}}}
HOST = SIDES | {"achieved": {"machine": {"busy": 0.5}}, "left_out": {"governor": "no"}}
RICH: dict[str, Any] = {
    "axes": {"repeat": 1, "load": "none"},
    "hosts": {"component": "ssh://pi"},
    "server_config": {"period_ns": 1_000_000, "warm_up": 100},
    "server_machine": {"hostname": "pi", "cpus_online": 4},
    "second_topic": {"client": {"sent": 1, "refused": 0, "received": 2}, "server": None},
    "path": {"client": {"carried_by": "udp", "messages": 3}},
    "clock_offset": {"same_clock": False, "offset_ns": 5, "drift": 0.0, "error_ns": 7.5, "origin_ns": 1},
    "conditions": HOST | {"server": HOST | {"host": "pi", "same_machine": False}},
    "findings": [FINDING | {"at_worst": "high", "items": [{"pid": 1}]}],
    "server_findings": [],
    "warnings": [{"type": "steal", "message": "m", "hint": "h"}],
    "missing": [[5, None]],
    "published": [
        {
            "table": "ros1_timer_2014",
            "where": {"scheduling": ["other"]},
            "kernel": {"column": "kernel", "preempt_rt": "3.4.0-rt17", "ordinary": "3.4.0"},
            "tables": ["kernel"],
            "values": {"min_us": "latency min"},
            "also": [],
            "not_comparable": {},
            "conditions": [{"condition": "memory", "was": "locked", "where": {}, "least": 1}],
            "notes": ["n"],
        }
    ],
}


@pytest.fixture(scope="module")
def results(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A run with a rich cell and a plain one, both whole."""
    root = tmp_path_factory.mktemp("mutilated") / "results"
    run = root / store.machine_name() / "c" / "20261121T050000Z"
    campaign = "name: c\ncells:\n  - {measurement: wakeup, adapter: posix, samples: 300}\n"
    write_run(run, {"cells": ["wakeup-posix", "plain"], "started": "2026-11-21T05:00:00Z"}, campaign)
    for name, changes in (("wakeup-posix", RICH), ("plain", {})):
        cell = write_cell(run / name, Made(id=name, samples=300, warm_up=10, changes=changes))
        (cell / store.CELL).write_text(json.dumps(json_of(store.read_cell(cell))))
    return root


@pytest.fixture
def cell(results: Path) -> Path:
    return next(results.rglob("wakeup-posix"))


def contents(cell: Path) -> dict[str, dict[str, Any]]:
    """cell.json of a measured, an imported and a failed cell: between them they have every key filled."""
    measured = json.loads((cell / store.CELL).read_text())
    imported = measured | {"measurement": "imported", "imported": PROVENANCE}
    return {
        "measured": measured,
        "imported": imported,
        "failed": measured | {"status": "failed", "error": FAILURE},
    }


def written(path: Path, content: dict[str, Any]) -> Path:
    path.write_text(json.dumps(content))
    return path


def refusal(read: Callable[[Path], object], path: Path) -> RtmeterError | None:
    try:
        read(path)
    except RtmeterError as error:
        assert error.where == str(path) and error.remedy
        return error
    return None


@pytest.mark.parametrize("kind", ["measured", "imported", "failed"])
def test_what_the_schema_refuses_is_refused_with_its_field(cell: Path, tmp_path: Path, kind: str) -> None:
    """And what it does not is read, but for what contradicts itself."""
    content, seen = contents(cell)[kind], 0
    assert is_valid(content, "cell.schema.json")
    own = {"imported": ("imported",), "failed": ("error", "status")}.get(kind, tuple(content))
    for one in mutilations(content):
        if one.path[0] not in own:  # as in one that was measured
            continue
        broken = one.of(content)
        error = refusal(read_cell_file, written(tmp_path / store.CELL, broken))
        if is_valid(broken, "cell.schema.json"):
            contradicts = error is not None and ("needs" in error.message or "neither" in error.message)
            assert error is None or contradicts, f"{one}: {error}"
            continue
        seen += 1
        assert error is not None and error.field, f"{one} is accepted"
        if len(one.path) == 1:
            assert str(error.field).split(".")[0] == one.path[0], f"{one}: {error}"
    assert seen > {"measured": 200, "imported": 10, "failed": 5}[kind]


def test_every_key_at_the_top_must_be_there_and_of_its_type(cell: Path, tmp_path: Path) -> None:
    for content in contents(cell).values():
        for one in mutilations(content):
            broken = one.of(content)
            later = ("factors", "chain", "rig", "kernel_stamps", "beside", "data_crc32c")
            later += ("server_adapter_facts",)
            # one that may be missing may be another map, too
            may_be = one.path[0] in later and is_valid(broken, "cell.schema.json")
            if len(one.path) == 1 and not may_be:
                error = refusal(read_cell_file, written(tmp_path / store.CELL, broken))
                assert error is not None and str(error.field).split(".")[0] == one.path[0], str(one)


def test_a_run_is_refused_alike(results: Path, tmp_path: Path) -> None:
    content = json.loads(next(results.rglob(store.RUN)).read_text())
    for one in mutilations(content):
        broken = one.of(content)
        error = refusal(read_run_file, written(tmp_path / store.RUN, broken))
        assert (error is None) == is_valid(broken, "run.schema.json"), str(one)
        assert error is None or error.field


def commands(results: Path, cell: Path, tmp_path: Path) -> dict[str, list[str]]:
    """Every command that reads cells, on the cell or on what it lies in."""
    return Tried(results, cell, cell.parent / "plain", tmp_path).of_both()


def chosen(found: list[Mutilation], number: int) -> list[Mutilation]:
    return found if number >= len(found) else random.Random(13).sample(found, number)


@pytest.mark.usefixtures("fake_probe")
def test_no_command_accepts_what_another_refuses(
    results: Path, cell: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str], sized: Sized
) -> None:
    whole = (cell / store.CELL).read_text()
    content = json.loads(whole)
    broken = [one for one in mutilations(content) if not is_valid(one.of(content), "cell.schema.json")]
    always = [one for one in broken if one.path in (("verdict",), ("summary", "counts"), ("version",))]
    number = sized("mutilated cells", reduced=4, full=len(broken))
    try:
        for one in [*always, *chosen(broken, number)]:
            written(cell / store.CELL, one.of(content))
            error = refusal(read_cell_file, cell / store.CELL)
            assert error is not None
            for name, command in commands(results, cell, tmp_path).items():
                if name == "run --resume" and one.path != ("version",):
                    continue  # it measures the cell again
                code, said = cli.invoke(command), capsys.readouterr()
                assert code == 1, f"{name} accepts {one}: {said.out}{said.err}"
                assert str(cell / store.CELL) in said.err, f"{name}, {one}: {said.err}"
                assert str(error.field) in said.err, f"{name}, {one}: {said.err}"
    finally:
        (cell / store.CELL).write_text(whole)


@pytest.mark.usefixtures("fake_probe")
def test_what_is_accepted_is_shown_by_every_command(
    results: Path, cell: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str], sized: Sized
) -> None:
    """Maps of somebody else's words may hold anything: no command falls over it."""
    whole = (cell / store.CELL).read_text()
    content = json.loads(whole)
    accepted = [one for one in mutilations(content) if is_valid(one.of(content), "cell.schema.json")]
    assert len(accepted) > 20
    writing = {"measure", "run --resume", "recover"}
    try:
        for one in chosen(accepted, sized("odd cells", reduced=2, full=len(accepted))):
            written(cell / store.CELL, one.of(content))
            for name, command in commands(results, cell, tmp_path).items():
                if name not in writing:
                    cli.invoke(command)  # ends in a traceback if the command does
                    assert "Traceback" not in capsys.readouterr().err, f"{name}: {one}"
    finally:
        (cell / store.CELL).write_text(whole)


@pytest.mark.parametrize("key", ["cells", "started", "version"])
def test_no_command_over_a_run_accepts_a_mutilated_one(
    results: Path, cell: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str], key: str
) -> None:
    path = cell.parent / store.RUN
    whole = path.read_text()
    all_commands = commands(results, cell, tmp_path)
    within = {str(results), str(cell.parent)}
    over_runs = {name for name, command in all_commands.items() if within & set(command)}
    assert over_runs >= {"summary", "verdict --repeats", "layers", "report", "site", "watch", "run --resume"}
    try:
        for one in mutilations(json.loads(whole)):
            if one.path == (key,):
                written(path, one.of(json.loads(whole)))
                for name in sorted(over_runs):
                    code, said = cli.invoke(all_commands[name]), capsys.readouterr()
                    assert code == 1 and str(path) in said.err and key in said.err, f"{name}, {one}: {said}"
    finally:
        path.write_text(whole)
