"""What is found in an archive, as tables and as JSON."""

from __future__ import annotations

import math
from collections.abc import Sequence
from datetime import datetime
from typing import TYPE_CHECKING, Any

from rtmeter.cli.output import console
from rtmeter.errors import RtmeterError
from rtmeter.values import harmless, utc

if TYPE_CHECKING:
    from rtmeter.archive.groups import ArchiveGroup
    from rtmeter.archive.trend import FleetCause, FleetTrend

_MOST = 3


def groups_json(groups: Sequence[ArchiveGroup], by: Sequence[str]) -> list[dict[str, Any]]:
    """Times in ns; a quantile as its bin's first value and the first one above it, or ``lost``."""
    from dataclasses import asdict

    from rtmeter.archive.groups import OF, PERCENTS

    return [
        {
            "key": dict(zip(by, group.key, strict=False)),
            "of": dict(zip(OF, group.of, strict=True)),
            "cells": group.cells,
            "rigs": group.rigs,
            "invalid": group.invalid,
            "without_distribution": group.without,
            "n": group.distribution.n,
            "lost": group.distribution.lost,
            "quantiles": {f"p{percent}": group.distribution.quantile(percent) for percent in PERCENTS},
            "maximum": _maximum_json(group.maximum) if group.maximum else None,
            "verdict": asdict(group.verdict) if group.verdict else None,
        }
        for group in groups
    ]


def _maximum_json(maximum: tuple[int | None, str, int | None, str]) -> dict[str, Any]:
    value, rig, k, cell = maximum
    return {"max_ns": "lost" if value is None else value, "rig": rig, "k": k, "cell": cell}


def print_groups(groups: Sequence[ArchiveGroup], by: Sequence[str]) -> None:
    """A row a group, quantiles in us as the edges of their bins."""
    from rich import box
    from rich.table import Table

    from rtmeter.archive.groups import PERCENTS, between, invalid_in_words, without_in_words
    from rtmeter.cli.columns import print_table

    table = Table(box=box.SIMPLE_HEAD, pad_edge=False)
    for name in (*by, "quantity", "cells", "rigs", "releases", *(f"p{percent}, us" for percent in PERCENTS)):
        table.add_column(harmless(name), overflow="fold")
    for name in ("maximum, us", "of", "verdict"):
        table.add_column(name, overflow="fold")
    for group in groups:
        key = [harmless(value or "-") for value in group.key[: len(by)]]
        cells = f"{group.cells:,}" + (f", {group.invalid:,} invalid" if group.invalid else "")
        counts = [harmless(group.what), cells, f"{group.rigs:,}", f"{group.distribution.n:,}"]
        quantiles = [between(group.distribution, percent) or "-" for percent in PERCENTS]
        top = group.maximum
        maximum = ["-", "-"]
        if top:
            value, rig, k, _ = top
            at = "" if k is None else f", release {k}"
            maximum = ["lost" if value is None else f"{value / 1000:,.1f}", harmless(f"{rig}{at}")]
        said = harmless(f"{group.verdict.outcome}: {group.verdict.reason}") if group.verdict else "-"
        table.add_row(*key, *counts, *quantiles, *maximum, said)
    print_table(console(), table)
    if invalid := sum(group.invalid for group in groups):
        print(f"{invalid_in_words(invalid)}: in no number but that of cells and of rigs")
    if left := sum(group.without for group in groups):
        print(without_in_words(left))


def _us(value_ns: float) -> str:
    return "lost" if math.isinf(value_ns) else f"{value_ns / 1000:,.1f} us"


def day_of(text: str | None) -> datetime | None:
    """The beginning of a day, UTC. Raises RtmeterError if it is none."""
    try:
        return None if text is None else utc(text)
    except ValueError:
        remedy = "write it like 2026-11-22"
        raise RtmeterError("is no day", field="--since", value=text, remedy=remedy) from None


def causes_json(causes: Sequence[FleetCause]) -> list[dict[str, Any]]:
    """What changed with what, and each series' change; times in ns."""
    from rtmeter.archive.trend import SERIES

    return [
        {
            "with": [dict(zip(("condition", "before", "after"), fact, strict=True)) for fact in cause.facts],
            "rose": cause.rose,
            "rigs": cause.rigs,
            "ratio": cause.ratio,
            "changes": [
                {
                    **dict(zip(SERIES, change.series, strict=True)),
                    "when": change.when.isoformat(),
                    "before_ns": change.before_ns,
                    "after_ns": change.after_ns,
                }
                for change in cause.changes
            ],
        }
        for cause in causes
    ]


def print_causes(found: FleetTrend, quantile: str) -> None:
    """A line for what changed with what, the rigs that changed most below it."""
    print(f"{found.series:,} series looked at, {found.short:,} too short; {found.changed:,} changed")
    for left in found.left_out(quantile):
        print(f"{left}: in no series")
    for cause in found.causes():
        print(harmless(cause.in_words(quantile)))
        for change in sorted(cause.changes, key=lambda one: -abs(one.by_ns))[:_MOST]:
            values = f"{_us(change.before_ns)} to {_us(change.after_ns)}"
            rig, _, name, *_ = change.series
            print(harmless(f"  {rig}, {name}: {values} from {change.when:%Y-%m-%d} on"))
        if len(cause.changes) > _MOST:
            print(f"  and {len(cause.changes) - _MOST:,} more")
