"""A campaign that goes on: a chain's graph lies in a file of its own, which may have changed meanwhile."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from rtmeter.errors import RtmeterError
from rtmeter.measure.run import Run
from rtmeter.model import Campaign, Cell
from rtmeter.results import store
from stored import record

GRAPH = {"stages": {"eye": {"kind": "sampled", "period_ns": 1_000_000}, "hand": {"kind": "event"}}}
SLOWER = {"stages": GRAPH["stages"] | {"eye": {"kind": "sampled", "period_ns": 2_000_000}}}


def campaign(graph: dict[str, Any]) -> Campaign:
    cells = [Cell(f"chain-{n}", "posix", None, {}, {"measurement": "chain", "graph": graph}) for n in (1, 2)]
    return Campaign("c", tuple(cells), "", "cells: []", None, ())


def test_a_graph_that_changed_meanwhile_is_not_mixed_with_what_it_was(tmp_path: Path) -> None:
    run = Run.start(tmp_path, campaign(GRAPH), 1.0)
    assert [cell.id for cell in Run.last(tmp_path, campaign(SLOWER), 1.0).remaining()] == [
        "chain-1",
        "chain-2",
    ]
    with store.NewCell(run.folder / "chain-1") as new:
        config = {"period_ns": 1_000_000, "samples": 10, "graph": GRAPH}
        new.finish(record(id="chain-1", status="complete", valid=True, config=config))
    assert [cell.id for cell in Run.resume(tmp_path, campaign(GRAPH), 1.0).remaining()] == ["chain-2"]
    with pytest.raises(RtmeterError, match="finds a chain of another graph") as caught:
        Run.resume(tmp_path, campaign(SLOWER), 1.0)
    assert caught.value.value == str(run.folder / "chain-1")


def test_a_chain_that_is_measured_again_may_be_of_another_graph(tmp_path: Path) -> None:
    run = Run.start(tmp_path, campaign(GRAPH), 1.0)
    with store.NewCell(run.folder / "chain-1") as new:
        config = {"period_ns": 1_000_000, "samples": 10, "graph": GRAPH}
        new.finish(record(id="chain-1", status="interrupted", valid=True, config=config))
    assert len(Run.resume(tmp_path, campaign(SLOWER), 1.0).remaining()) == 2
