"""Which cells a factor is told by: what counts as a level, and what cells are to be alike in."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from rtmeter.judge.matching import Matching, _matched_over, _with_setting
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
    found, confounded = _matched_over(LAYOUTS, factor, axes)
    assert (tuple(sorted(found)), confounded) == (others, ())


def test_what_changes_with_the_factor_is_told_and_not_matched_over() -> None:
    layouts = {name: found | {"cpus": f"for {found['load']}"} for name, found in LAYOUTS.items()}
    others, confounded = _matched_over(layouts, "load", {"load"})
    assert sorted(others) == ["adapter", "block"] and confounded == ("cpus",)


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


def test_neither_a_name_nor_what_all_have_alike_changes_with_the_factor() -> None:
    layouts = {name: found | {"kernel": "6.1", "block": found["load"]} for name, found in LAYOUTS.items()}
    _, confounded = _matched_over(layouts, "load", {"load", "block", "kernel"})
    assert confounded == ()
