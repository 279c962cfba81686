"""The commands of docs/discovery.md work as they stand."""

from __future__ import annotations

from pathlib import Path

from pages import ROOT, run_page

from rtmeter.results import store


def test_the_page_lets_participants_find_each_other(tmp_path: Path) -> None:
    printed = run_page(ROOT / "docs" / "discovery.md", tmp_path, cwd=tmp_path)
    for name, others in (("together", "cold"), ("joining", "present")):
        cell = store.read_cell(tmp_path / name)
        assert cell.summary is not None and cell.config["others"] == others
        assert cell.summary.counts["released"] == 10 and cell.summary.identity in printed
        views = {name: views.as_served for name, views in cell.summary.quantities.items()}
        matched, first = views["time_to_matched"], views["time_to_first"]
        assert matched is not None and first is not None and matched.n == first.n > 0
