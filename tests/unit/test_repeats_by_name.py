"""The repeats of a cell are `X` in every command, where nothing lies at that path."""

from __future__ import annotations

from pathlib import Path

import pytest

from rtmeter import cli
from wakeups import draw as exponential
from wakeups import write_wakeups


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
