"""docs/notebook.md: its Python runs as it stands, on made-up cells, and so do its commands."""

from __future__ import annotations

import re
import shlex
from pathlib import Path
from typing import Any

import pytest

import rtmeter
from rtmeter import cli
from synthetic import Made, write_cell
from traced_cells import LATE_NS, write_traced

PAGE = (Path(__file__).resolve().parents[2] / "docs" / "notebook.md").read_text(encoding="utf-8")


def blocks(language: str) -> list[str]:
    return re.findall(rf"```{language}\n(.*?)```", PAGE, flags=re.DOTALL)


@pytest.fixture
def folders(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    for folder, more in (("results", 0), ("before", 0), ("after", 50_000)):
        for name in ("a", "b", "c", "d"):
            delays = lambda k, more=more: (40_000 + more + k * 7919 % 101,)  # noqa: E731
            made = Made(id=name, samples=1000, axes={"load": name}, delays=delays)
            write_cell(tmp_path / folder / name, made)
    write_traced(tmp_path / "traced", "driver")
    return tmp_path


def test_its_python(folders: Path, capsys: pytest.CaptureFixture[str]) -> None:
    pytest.importorskip("pandas")
    names: dict[str, Any] = {}
    for code in blocks("python"):
        exec(compile(code, "docs/notebook.md", "exec"), names)
    names["test_the_loop_meets_its_deadline"]()
    said = capsys.readouterr().out.splitlines()
    assert said[:2] == ["<rtmeter results: 4 cells>", "['a', 'b', 'c', 'd']"]
    assert [line for line in said if line.startswith("a ")] == [
        "a 1000 40100",
        f"a pass {names['results'].verdict(deadline='1ms', miss_ratio=0.01)[0].reason}",
        "a worse ['fail']",
    ]
    assert f"displaced driver 8 late, {8 * LATE_NS} ns" in said
    assert said[-1].count("'latency_ns': 40100") == 3


def test_its_table_has_every_column(folders: Path) -> None:
    rows = PAGE.partition("| columns |")[2].partition("\n\n")[0]
    documented = set(re.findall(r"`(\w+)`", " ".join(row.split("|")[1] for row in rows.splitlines()[2:])))
    axes = {"axis_load"}
    assert set(rtmeter.read(folders / "results").cells.column_names) - axes == documented


def test_its_commands(folders: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (commands,) = blocks("sh")
    for line in commands.splitlines():
        words = shlex.split(line)
        assert words[0] == "rtmeter"
        assert cli.invoke(words[1:]) == 0, line
    assert (folders / "latency.parquet").is_file()
