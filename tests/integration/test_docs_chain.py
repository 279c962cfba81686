"""The commands of docs/chain.md work as they stand."""

from __future__ import annotations

from pathlib import Path

from pages import ROOT, run_page

from rtmeter.results import store


def test_the_page_measures_every_path_of_its_graph(tmp_path: Path) -> None:
    printed = run_page(ROOT / "docs" / "chain.md", tmp_path, cwd=tmp_path)
    chain = store.read_cell(tmp_path / "robot").chain
    assert chain is not None
    assert [path.stages for path in chain.paths] == [
        ["camera", "detect", "control", "motor"],
        ["imu", "localise", "control", "motor"],
        ["camera", "localise", "control", "motor"],
    ]
    assert [path.counts["released"] for path in chain.paths] == [100, 600, 100]
    for number, path in enumerate(chain.paths, 1):
        assert f"path {number}" in printed and path.identity in printed
    imu = chain.paths[1].counts
    assert imu["overtaken"] > imu["arrived"], "localise waits for the camera"
