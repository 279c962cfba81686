"""Which cells a factor is told by: what counts as a level, and what cells are to be alike in."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from rtmeter.judge.matching import _matched_over, _with_setting


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
