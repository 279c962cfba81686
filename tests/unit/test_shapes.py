"""Drive, threads, idle states and grid: which cells are never set side by side as if only the middleware
differed, and how those that are told apart are called."""

from __future__ import annotations

import math
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from rtmeter import cli
from rtmeter.campaign.published import names
from rtmeter.cli import exit_codes
from rtmeter.judge.conditions import in_one_line
from rtmeter.judge.published.held import held_here
from rtmeter.plots.floors import X
from rtmeter.results import words
from rtmeter.results.record import read_cell_file
from rtmeter.statistics.quantities import KNOWN_QUANTITIES
from stored import record
from wakeups import draw, write_wakeups

Captured = pytest.CaptureFixture[str]

SPIN = {"drive": "spin", "components": "one_thread", "cpu_dma_latency": None}
DIFFERENT = [
    ({"drive": "sleep_then_spin_some"}, "another drive (effective.drive: spin, sleep_then_spin_some)"),
    (
        {"components": "two_threads"},
        "other threads of the components (effective.components: one_thread, two_threads)",
    ),
    (
        {"cpu_dma_latency": 0},
        "another limit of idle states (effective.cpu_dma_latency: not held, held at 0)",
    ),
]
INFERRED = {"grid": {"t0_from": "inferred"}}


@pytest.fixture(autouse=True)
def _in_an_empty_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


def invoke(line: str, capsys: Captured) -> tuple[int, str]:
    code = cli.invoke(line.split())
    said = capsys.readouterr()
    return code, said.out + said.err


def one(name: str, adapter: str, effective: Mapping[str, Any] | None = None, **changes: Any) -> None:
    effective = {**SPIN, **(effective or {})}
    write_wakeups(
        Path("run") / name, draw(1, 5000), adapter=adapter, changes={"effective": effective} | changes
    )


@pytest.mark.parametrize(("other", "refusal"), DIFFERENT)
def test_two_middlewares_of_other_shapes_are_not_compared(
    other: Mapping[str, Any], refusal: str, capsys: Captured
) -> None:
    one("a", "ros2")
    one("b", "orocos", other)
    code, said = invoke("compare run/a run/b", capsys)
    assert code == exit_codes.ERROR and refusal in said
    code, said = invoke("compare run/a run/b --force", capsys)
    assert code == exit_codes.PASS and f"forced: compared although A and B are of {refusal}" in said


@pytest.mark.parametrize(("other", "refusal"), DIFFERENT)
def test_of_one_middleware_the_shape_may_be_what_is_compared(
    other: Mapping[str, Any], refusal: str, capsys: Captured
) -> None:
    one("a", "ros2")
    one("b", "ros2", other)
    code, said = invoke("compare run/a run/b", capsys)
    assert code == exit_codes.PASS and f"differs: effective.{next(iter(other))}: " in said
    one("c", "ros2", other, adapter_facts={"rmw": "rmw_zenoh_cpp"})
    assert invoke("compare run/a run/c", capsys)[0] == exit_codes.ERROR  # another RMW is another middleware


def test_a_drive_that_was_asked_for_and_is_the_default_is_no_difference(capsys: Captured) -> None:
    one("a", "ros2")
    one("b", "orocos", config={"drive": "spin"})
    code, said = invoke("compare run/a run/b", capsys)
    assert code == exit_codes.PASS and "drive" not in said


@pytest.mark.parametrize("adapter", ["posix", "orocos"])
def test_an_inferred_grid_stands_beside_no_known_one(adapter: str, capsys: Captured) -> None:
    one("known", adapter)
    one("reported", "ros2", grid={"t0_from": "reported"})
    one("inferred", "orocos", **INFERRED)
    one("too", "ros1", **INFERRED)
    code, said = invoke("compare run/known run/inferred", capsys)
    assert code == exit_codes.ERROR
    assert "a grid inferred from callbacks against a known one (effective.grid: core, inferred)" in said
    code, said = invoke("compare run/inferred run/too", capsys)
    assert code == exit_codes.PASS and "inferred_grids: both grids are inferred" in said
    assert invoke("compare run/known run/reported", capsys)[0] == exit_codes.PASS


def test_a_floor_has_drive_and_threads_of_what_stands_on_it(capsys: Captured) -> None:
    for drive in ("spin", "sleep_then_spin_some"):
        for components in ("one_thread", "two_threads"):
            one(f"bare-{drive}-{components}", "posix", {"drive": drive, "components": components})
    one("ros2", "ros2", config={"components": "one_thread"})
    one("orocos", "orocos", {"drive": "sleep_then_spin_some", "components": "two_threads"})
    one("rcl", "rcl", {"components": "middleware_threads"})
    code, said = invoke("layers run", capsys)
    assert code == exit_codes.PASS
    assert "= bare-spin-one_thread + X" in said and "= bare-sleep_then_spin_some-two_threads + X" in said
    assert "no floor of the same measurement, settings, drive and threads: rcl" in said
    code, said = invoke("layers run --floor bare-spin-two_threads", capsys)
    assert code == exit_codes.ERROR and "other threads of the components" in said


def test_a_report_says_shape_and_grid_of_each_cell() -> None:
    one("a", "orocos", {"components": "two_threads"}, **INFERRED)
    found = read_cell_file(Path("run/a/cell.json"))
    assert "each component on its thread" in in_one_line(found)
    assert "grid inferred: constant delays are not seen" in in_one_line(found)
    timer = {"measurement": "timer", "mode": "periodic"}
    assert words.shape(timer, SPIN) == ["started by its own trigger", "both components on one thread"]
    one_shot = timer | {"mode": "one_shot"}
    assert words.shape(one_shot, SPIN) == ["both components on one thread"], "each is armed anew"
    assert words.shape(one_shot, {"drive": "poll"}) == ["polled"]
    assert words.shape(timer | {"t0_from": "estimated"}, {}) == [
        "grid inferred: constant delays are not seen"
    ]


def test_what_is_counted_from_an_inferred_release_is_called_so() -> None:
    meta = {"measurement": "cycle", "mode": None, "t0_from": "inferred"}
    on_grid = [
        name for name in KNOWN_QUANTITIES if words.quantity(meta, name).endswith(", on an inferred grid")
    ]
    assert sorted(on_grid) == ["completion", "cycle_delay", "latency"]
    assert "inferred" not in words.quantity(meta | {"t0_from": "reported"}, "completion")


def test_published_values_tell_drive_and_threads_exactly() -> None:
    asked = {"condition": "drive", "was": "a trigger of its own", "matches": "spin"}
    assert held_here(record(effective={"drive": "spin"}), asked) == ("spin", True)
    assert held_here(record(effective={"drive": "sleep_then_spin_some"}), asked) == (
        "sleep_then_spin_some",
        False,
    )
    assert held_here(record(effective={}), asked) == ("not known", None)
    not_published = {"condition": "components", "was": "not published"}
    assert held_here(record(effective={"components": "one_thread"}), not_published) == ("one_thread", None)
    assert "orocos_ros2_cycle_2021" in names()


NAN = math.nan


@pytest.mark.parametrize(
    ("ends", "known", "said"),
    [
        ((-37_000, 2_000), True, "-37.00 to 2.000"),
        ((-37_000, NAN), True, "-37.00 at least; too short a run for the upper end"),
        ((NAN, 2_000), True, "2.000 at most; too short a run for the lower end"),
        ((-1, math.inf), True, "-0.001 to lost"),
        ((NAN, NAN), False, None),
    ],
)
def test_an_interval_without_an_end_says_so(ends: tuple[float, float], known: bool, said: str | None) -> None:
    x = X(-20_000, *ends)
    assert x.known == known
    assert said is None or x.interval == said
    assert words.us(NAN) == words.NONE and words.us(-math.inf) == "-lost"
