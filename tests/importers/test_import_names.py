"""What a file is called, and what it says of itself: neither harms the terminal, or the cells' folder."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from rtmeter.cli import invoke
from rtmeter.results import store
from tool_files import cyclictest, rttest


def test_what_a_file_says_is_shown_without_what_a_terminal_would_heed(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "hostile.json"
    system = {"nodename": "h\x1b[31mred", "release": "6.1\u202e"}
    said = {"cmdline:": "cyclictest -i 1000 -h 100 \x1b]0;evil\x07"}
    file.write_text(json.dumps(cyclictest() | said | {"sysinfo": system}))
    assert invoke(["import", str(file), "--out", str(tmp_path / "out")]) == 0
    shown = capsys.readouterr().out
    assert not {"\x1b", "\x07", "\u202e"} & set(shown)
    assert r"h\x1b[31mred" in shown and r"\x1b]0;evil\x07" in shown


@pytest.mark.parametrize("name", ["测量.txt", "....txt"])
def test_a_file_whose_name_makes_none_becomes_a_cell_of_its_tools_name(name: str, tmp_path: Path) -> None:
    file = tmp_path / name
    file.write_text(rttest([5] * 200))
    assert invoke(["import", str(file), "--out", str(tmp_path / "out")]) == 0
    assert store.cell_folders(tmp_path / "out") == [tmp_path / "out" / "rttest"]
    assert store.read_cell(tmp_path / "out" / "rttest").id == "rttest"
