"""Names of lines above a plot, as a picture has them."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from rtmeter import cli
from rtmeter.plots.picture import write_picture
from rtmeter.plots.plots import PlotOptions, draw
from rtmeter.results.overview import cell_entries
from synthetic import Made, write_cell
from wakeups import draw as exponential
from wakeups import write_wakeups


def test_six_names_stand_in_lines_above_their_plot(tmp_path: Path) -> None:
    """Not in a row that makes the picture wider than was asked."""
    for repeat in range(1, 7):
        axes = {"load": "cpu80-and-much-traffic", "repeat": repeat}
        write_cell(tmp_path / f"loop-r{repeat}", Made(id=f"loop-r{repeat}", samples=50, axes=axes))
    spec = draw("ccdf", cell_entries(tmp_path), PlotOptions(width=900))
    out = tmp_path / "six.svg"
    write_picture(spec, out)
    drawn = re.search(r'<svg[^>]* width="(\d+)', out.read_text())
    assert drawn and int(drawn[1]) < 1_000


def test_more_cells_than_colours_are_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    for number in range(9):
        write_wakeups(tmp_path / "many" / f"n{number}", exponential(number, 50))
    monkeypatch.chdir(tmp_path)
    assert cli.invoke(["plot", "many", "--kind", "ccdf", "-o", "x.svg"]) == 1
    remedy = "at most 8 are told apart in one: spread them with --by"
    assert f"rtmeter: 9 are too many in one panel; {remedy}" in capsys.readouterr().err
