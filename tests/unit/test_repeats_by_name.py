"""The repeats of a cell are `X` in every command, where nothing lies at that path; and what is no repeat."""

from __future__ import annotations

from pathlib import Path

import pytest
from report_page import Page

from rtmeter import cli
from rtmeter.cli import exit_codes
from rtmeter.model import Requirement
from wakeups import MS, write_wakeups
from wakeups import draw as exponential


@pytest.mark.parametrize("command", ["plot", "summary", "verdict --deadline 1ms", "report"])
def test_every_command_takes_the_repeats_of_a_cell_by_its_name(
    command: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    for repeat in (1, 2):
        write_wakeups(Path(f"r/a-r{repeat}"), exponential(repeat, 2_000), repeat=repeat)
    write_wakeups(Path("r/a-rest"), exponential(3, 2_000))
    written = ["--kind", "ccdf", "-o", "x.svg"] if command == "plot" else ["-o", "x.html"]
    more = written if command in ("plot", "report") else []
    code = cli.invoke([*command.split(), "r/a", *more])
    said = capsys.readouterr()
    assert code in (0, 3), said.err
    shown = Path(said.out.strip()).read_text() if more else said.out
    assert "a-rest" not in shown
    both = {"plot": ["repeat 1", "repeat 2"], "report": ["a-r1", "a-r2"]}.get(command, ["4,000"])
    assert all(words in shown for words in both)


def test_cells_measured_one_by_one_are_no_repeats_whatever_they_are_called(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    for name, scale, adapter in (("calm", 1, "posix"), ("loaded", 3_000, "cyclonedds")):
        asked = Requirement(MS, 0.01)
        changes = {"id": "wakeup"}
        latency = scale * exponential(1, 2_000, 300)
        write_wakeups(Path("r") / name, latency, requirement=asked, adapter=adapter, changes=changes)
    assert cli.invoke(["verdict", "r"]) == exit_codes.FAIL
    said = capsys.readouterr().out
    assert "wakeup in r/calm: pass" in said and "wakeup in r/loaded: fail" in said
    assert cli.invoke(["report", "r", "-o", "page.html"]) == 0
    page = Page(Path("page.html").read_text()).text
    assert "1 Fail" in page.replace("fail", "Fail") and "is there twice" in page
    assert cli.invoke(["export", "r", "--format", "markdown", "-o", "page.md"]) == 0
    rows = [line.split("|") for line in Path("page.md").read_text().splitlines() if line.startswith("| ")]
    assert [row[2].strip() for row in rows[1:]] == ["loaded", "calm"]
