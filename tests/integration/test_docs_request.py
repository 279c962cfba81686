"""The commands of docs/request.md work as they stand."""

from __future__ import annotations

from pathlib import Path

from pages import ROOT, run_page

from rtmeter.results import store


def test_the_page_calls_a_service(tmp_path: Path) -> None:
    printed = " ".join(run_page(ROOT / "docs" / "request.md", tmp_path, cwd=tmp_path).split())
    cell = store.read_cell(tmp_path / "call")
    assert cell.summary is not None and cell.verdict is not None
    assert cell.summary.counts["released"] == 1000 and cell.summary.identity in printed
    assert cell.verdict.quantity == "response" and cell.verdict.outcome != "error"
    assert {"response", "round_trip", "request", "respond"} <= cell.summary.quantities.keys()
    assert ("exit code" in printed) == (cell.verdict.outcome != "pass")
