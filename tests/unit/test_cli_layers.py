"""`rtmeter layers`: which cell is whose floor, and what is added to it."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from rtmeter import cli
from rtmeter.cli import exit_codes
from synthetic import Made, write_cell
from wakeups import draw, write_wakeups

Captured = pytest.CaptureFixture[str]
RUN = Path("run")


@pytest.fixture(autouse=True)
def _in_an_empty_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


def layers(line: str, capsys: Captured) -> tuple[int, str]:
    code = cli.invoke(["layers", *line.split()])
    said = capsys.readouterr()
    return code, said.out + said.err


def as_json(line: str, capsys: Captured) -> Any:
    cli.invoke(["layers", *line.split(), "--json"])
    return json.loads(capsys.readouterr().out)


def add(name: str, adapter: str, offset_ns: int = 0, **changes: Any) -> None:
    """Three repeats of a cell that is so much later than the floor, on a machine that wanders."""
    for repeat in (1, 2, 3):
        values = draw(repeat, 5000) + 100_000 * repeat + offset_ns
        write_wakeups(RUN / f"{name}-r{repeat}", values, repeat=repeat, adapter=adapter, changes=changes)


def test_each_middleware_is_its_floor_and_what_it_adds(capsys: Captured) -> None:
    other = {"scheduling": {"policy": "other"}}
    for policy, config in {"fifo": {}, "other": other}.items():
        add(f"posix-{policy}", "posix", config=config)
        add(f"ros2-{policy}", "ros2", 7_000, config=config | {"options": {"executor": "single"}})
        add(f"rcl-{policy}", "rcl", 3_000, config=config | {"drive": "poll"})
    found = as_json("run", capsys)
    added = {cell["id"]: cell["shifts"][0]["difference"] for cell in found["cells"] if cell["pairs"] == 3}
    assert added == {
        "posix-fifo → rcl-fifo": 3_000,
        "posix-fifo → ros2-fifo": 7_000,
        "posix-other → rcl-other": 3_000,
        "posix-other → ros2-other": 7_000,
    }
    assert found["without_floor"] == []
    code, said = layers("run", capsys)
    assert code == exit_codes.PASS and "ros2-fifo" in said and "= posix-fifo + X" in said


def test_any_adapter_or_cell_can_be_the_floor(capsys: Captured) -> None:
    add("posix", "posix")
    add("rcl", "rcl", 3_000)
    add("ros2", "ros2", 7_000, config={"scheduling": {"policy": "other"}})
    found = as_json("run --floor rcl", capsys)
    assert [cell["id"] for cell in found["cells"]] == ["rcl → posix"]
    assert found["without_floor"] == ["ros2"]
    assert (
        "no floor of the same measurement, settings, drive and threads: ros2"
        in layers("run --floor rcl", capsys)[1]
    )
    write_wakeups(RUN / "one", draw(1, 5000), adapter="rcl", changes={"config": {"options": {"a": "1"}}})
    found = as_json("run --floor one", capsys)
    assert [cell["id"] for cell in found["cells"]] == ["one → posix", "one → rcl", "one → ros2"]


def test_the_floor_with_the_fewest_other_settings_is_taken(capsys: Captured) -> None:
    for drive in ("spin", "poll"):
        add(f"posix-{drive}", "posix", config={"drive": drive})
    add("ros2", "ros2", 5_000, config={"drive": "poll", "options": {"executor": "single"}})
    assert [cell["id"] for cell in as_json("run", capsys)["cells"]] == ["posix-poll → ros2"]


def test_a_floor_under_another_load_is_none_however_alike_the_rest(capsys: Captured) -> None:
    def measured(name: str, adapter: str, load: str) -> None:
        conditions = {"asked": {"load": load}, "effective": {}, "achieved": {}}
        changes = {"conditions": conditions}
        write_cell(RUN / name, Made(id=name, adapter=adapter, samples=100, changes=changes))

    measured("posix-idle", "posix", "idle")
    measured("rcl", "rcl", "idle")
    measured("ros2", "ros2", "cpu80")
    found = as_json("run", capsys)
    assert ([cell["id"] for cell in found["cells"]], found["without_floor"]) == (
        ["posix-idle → rcl"],
        ["ros2"],
    )
    measured("posix-busy", "posix", "cpu80")
    found = [cell["id"] for cell in as_json("run", capsys)["cells"]]
    assert found == ["posix-idle → rcl", "posix-busy → ros2"]


def test_floors_that_fit_alike_have_to_be_chosen_from(capsys: Captured) -> None:
    for transport in ("udp", "unix"):
        add(f"posix-{transport}", "posix", config={"options": {"transport": transport}})
    add("ros2", "ros2")
    code, said = layers("run", capsys)
    assert code == exit_codes.ERROR
    assert "fits ros2 in 2 cells: posix-udp, posix-unix; name one of these cells" in said
    assert layers("run --floor posix-udp", capsys)[0] == exit_codes.PASS


def test_a_floor_that_is_not_there_is_refused(capsys: Captured) -> None:
    add("ros2", "ros2")
    code, said = layers("run", capsys)
    assert code == exit_codes.ERROR
    assert "--floor = 'posix': is neither an adapter of the cells nor one of them" in said
    assert "(ros2)" in said


def test_the_floor_of_another_measurement_is_none(capsys: Captured) -> None:
    add("ros2", "ros2")
    write_cell(RUN / "posix", Made(id="posix", measurement="cycle", samples=100))
    code, said = layers("run", capsys)
    assert code == exit_codes.ERROR and "has no other cell of the same measurement" in said


def test_a_cell_that_is_the_floor_is_one_of_its_own_measurement_only(capsys: Captured) -> None:
    add("bare", "posix")
    add("ros2", "ros2")
    write_cell(RUN / "other", Made(id="other", measurement="cycle", adapter="ros2", samples=100))
    found = as_json("run --floor bare", capsys)
    assert [cell["id"] for cell in found["cells"]] == ["bare → ros2"]
    assert found["without_floor"] == ["other"]
