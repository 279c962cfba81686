"""Discoveries on this machine, until every release was served."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from front import rtmeter

_DISCOVERY = ("measure", "discovery", "--warm-up", "0")
ASKED = (*_DISCOVERY, "--period", "400ms")
_PERIODS_S = (4, 7, 20)
"""Ends that are announced once a second find each other within three, or on a busy machine within ten."""


def measured(out: Path, *more: object, code: int = 0, inside: Sequence[str] = ()) -> dict[str, Any]:
    done = rtmeter(*(_DISCOVERY if "--period" in more else ASKED), *more, "--out", out, inside=inside)
    assert done.code == code, done.out + done.err
    cell: dict[str, Any] = json.loads((out / "cell.json").read_text())
    return cell


def served(folder: Path, *more: object, inside: Sequence[str] = ()) -> tuple[dict[str, Any], Path]:
    """The first cell that has lost nothing, else the last, and where it lies: each has more time than the one
    before."""
    for period_s in _PERIODS_S:
        out = folder / f"{period_s}s"
        within = ("--period", f"{period_s}s", "--loss-timeout", f"{period_s - 1}s")
        cell = measured(out, *within, *more, inside=inside)
        if cell["summary"]["counts"]["lost"] == 0:
            break
    return cell, out
