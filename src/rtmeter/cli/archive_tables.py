"""What is found in an archive, as tables and as JSON."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from rtmeter.cli.output import console
from rtmeter.values import harmless

if TYPE_CHECKING:
    from rtmeter.archive.groups import Group

PERCENTS = ("50", "99", "99.9", "99.999")


def groups_json(groups: Sequence[Group], by: Sequence[str]) -> list[dict[str, Any]]:
    """Times in ns; a quantile as its bin's first value and the first one above it, or ``lost``."""
    from dataclasses import asdict

    return [
        {
            "key": dict(zip(by, group.key, strict=False)),
            "cells": group.cells,
            "rigs": group.rigs,
            "without_distribution": group.without,
            "n": group.distribution.n,
            "lost": group.distribution.lost,
            "quantiles": {f"p{percent}": group.distribution.quantile(percent) for percent in PERCENTS},
            "maximum": dict(zip(("max_ns", "rig", "k", "cell"), group.maximum, strict=True))
            if group.maximum
            else None,
            "verdict": asdict(group.verdict) if group.verdict else None,
        }
        for group in groups
    ]


def print_groups(groups: Sequence[Group], by: Sequence[str]) -> None:
    """A row a group, quantiles in µs as the edges of their bins."""
    from rich import box
    from rich.table import Table

    from rtmeter.cli.columns import print_table

    table = Table(box=box.SIMPLE_HEAD, pad_edge=False)
    for name in (*by, "cells", "rigs", "releases", *(f"p{percent}, µs" for percent in PERCENTS)):
        table.add_column(harmless(name), overflow="fold")
    for name in ("maximum, µs", "of", "verdict"):
        table.add_column(name, overflow="fold")
    for group in groups:
        key = [harmless(value or "-") for value in group.key[: len(by)]]
        counts = [f"{group.cells:,}", f"{group.rigs:,}", f"{group.distribution.n:,}"]
        quantiles = [_between(group.distribution.quantile(percent)) for percent in PERCENTS]
        top = group.maximum
        maximum = ["lost" if group.distribution.lost else f"{top[0] / 1000:,.1f}" if top else "-"]
        maximum.append(harmless(f"{top[1]}, release {top[2]}") if top else "-")
        said = harmless(f"{group.verdict.outcome}: {group.verdict.reason}") if group.verdict else "-"
        table.add_row(*key, *counts, *quantiles, *maximum, said)
    print_table(console(), table, markup=False)
    left = sum(group.without for group in groups)
    if left:
        print(
            f"{left:,} cells have no distribution (imported histograms, failed cells): not in these quantiles"
        )


def _between(edges: tuple[int, int] | str | None) -> str:
    if edges is None or isinstance(edges, str):
        return edges or "-"
    return f"{edges[0] / 1000:,.1f}–{edges[1] / 1000:,.1f}"
