"""Which cells a factor is told by: what counts as a level, and what cells are to be alike in."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from rtmeter.judge.matching import Matching, _besides, _matched_over, _with_setting
from rtmeter.results.cells import StoredCell


def records(**configs: dict[str, Any]) -> Any:
    return {name: SimpleNamespace(config=config) for name, config in configs.items()}


def test_a_setting_of_the_config_is_a_level_where_no_cell_has_such_a_factor() -> None:
    of = records(a={"period_ns": 1_000_000}, b={"period_ns": 2_000_000}, c={})
    layouts: dict[str, dict[str, str]] = {"a": {"load": "idle"}, "b": {}, "c": {}}
    found = _with_setting(layouts, of, "period_ns")
    assert found == {"a": {"load": "idle", "period_ns": "1ms"}, "b": {"period_ns": "2ms"}, "c": {}}


def test_a_factor_that_some_cell_has_is_taken_as_it_is() -> None:
    of = records(a={"load": "cpu80"}, b={"load": "cpu80"})
    layouts = {"a": {"load": "idle"}, "b": {}}
    assert _with_setting(layouts, of, "load") == layouts


def test_cells_that_differ_in_a_setting_of_the_config_only_are_told_by_it() -> None:
    cells = [
        cell(name, name, "idle", config={"period_ns": period_ns})
        for name, period_ns in (("a", 1_000_000), ("b", 2_000_000))
    ]
    assert Matching.of(cells, "period_ns").levels == {"a": "1ms", "b": "2ms"}


LAYOUTS = {
    f"{block}{load}{adapter}": {"block": block, "load": load, "adapter": adapter}
    for block in ("x", "y")
    for load in ("idle", "cpu80")
    for adapter in ("posix", "zenoh")
}


@pytest.mark.parametrize(
    ("factor", "axes", "others"),
    [
        ("load", set(), ("adapter",)),
        ("load", {"load"}, ("adapter", "block")),
        ("block", {"load"}, ("load",)),
        ("block", set(), ()),
    ],
)
def test_blocks_are_matched_over_where_the_factor_is_an_axis_of_them(
    factor: str, axes: set[str], others: tuple[str, ...]
) -> None:
    """A block stands for the options that it sets, where these are what is asked for."""
    found = _matched_over([*LAYOUTS.values()], factor, _besides(LAYOUTS, factor, axes))
    assert tuple(sorted(found)) == others


def cell(name: str, started: str, load: str, **about: Any) -> StoredCell:
    facts: dict[str, Any] = {"measurement": "timer", "mode": "periodic", "axes": {}, "config": {}}
    facts |= {"events_recorded": False, "usable": True, "repeat": 1, "factors": {"load": load}}
    record: Any = SimpleNamespace(id=name, name=name, started=started, **facts | about)
    return StoredCell(Path(name), record)


def test_cells_with_events_are_left_out_beside_others_and_told() -> None:
    plain = [cell("a", "1", "idle"), cell("b", "2", "cpu80")]
    traced = [cell("c", "3", "idle", events_recorded=True), cell("d", "4", "cpu80", events_recorded=True)]
    found = Matching.of([*plain, *traced], "load")
    assert (set(found.repeats), set(found.levels)) == ({"a", "b"}, {"a", "b"})
    assert found.left_out == ("c, d: the kernel's events were recorded, which takes time",)
    assert Matching.of(plain, "load").left_out == ()
    among_themselves = Matching.of(traced, "load")
    assert (set(among_themselves.repeats), among_themselves.left_out) == ({"c", "d"}, ())


def test_levels_stand_in_the_order_in_which_they_were_measured() -> None:
    found = Matching.of([cell("b", "2", "cpu80"), cell("c", "3", "io"), cell("a", "1", "idle")], "load")
    assert (list(found.levels), found.levels_in_turn) == (["a", "b", "c"], ["idle", "cpu80", "io"])


def test_a_level_of_which_no_run_can_be_compared_comes_last() -> None:
    broken = cell("a", "1", "idle", usable=False)
    found = Matching.of([broken, cell("b", "2", "cpu80")], "load")
    assert found.levels_in_turn == ["cpu80", "idle"]
    again = cell("a", "3", "idle", repeat=2)
    assert Matching.of([broken, cell("b", "2", "cpu80"), again], "load").levels_in_turn == ["idle", "cpu80"]


@pytest.mark.parametrize("unlike", [{"mode": "one_shot"}, {"measurement": "wakeup"}])
def test_cells_of_another_measurement_or_mode_are_not_alike(unlike: dict[str, str]) -> None:
    cells = [cell("a", "1", "idle"), cell("b", "2", "cpu80"), cell("c", "3", "idle", **unlike)]
    assert [names for _, names in Matching.of(cells, "load").alike] == [["a", "b"], ["c"]]


def changing(a: dict[str, str], b: dict[str, str], *others: dict[str, str]) -> tuple[list[str], list[str]]:
    """What two cells of another load are alike in, and what changes with it, beside other cells."""
    axes = {"adapter": "null"}
    cells = [
        cell(str(place), str(place), "", factors=one, axes=axes) for place, one in enumerate((a, b, *others))
    ]
    found = Matching.of(cells, "load")
    return list(found.others), found.changing("0", "1")


IDLE, BUSY = {"load": "idle", "kernel": "6.1"}, {"load": "cpu80", "kernel": "6.1"}


def test_what_changes_with_the_factor_is_told_and_not_matched_over() -> None:
    assert changing(IDLE | {"cpus": "0"}, BUSY | {"cpus": "1"}) == ([], ["cpus"])


def test_what_cells_without_the_factor_have_changes_not_with_it() -> None:
    """Nor does it keep apart those that have it."""
    assert changing(IDLE, BUSY, {"adapter": "null"}) == ([], [])
    without = {"adapter": "null", "cpus": "0"}
    assert changing(IDLE | {"cpus": "0"}, BUSY | {"cpus": "1"}, without, without | {"cpus": "1"})[0] == []


def test_what_changes_with_another_level_changes_not_with_this_one() -> None:
    assert changing(IDLE | {"cpus": "0"}, BUSY | {"cpus": "0"}, IDLE | {"load": "io", "cpus": "1"}) == (
        [],
        [],
    )


def test_a_name_does_not_change_with_the_factor() -> None:
    assert changing(IDLE | {"block": "a"}, BUSY | {"block": "b"})[1] == []
