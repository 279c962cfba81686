"""A report of more cells than it can show in full: which it shows, and what it says of the others."""

from __future__ import annotations

import re
from itertools import product
from pathlib import Path

import pytest

from rtmeter import report
from rtmeter.report import page
from synthetic import Made, usual, write_cell

CELLS, IN_FULL = 7, 3


@pytest.fixture
def cells(tmp_path: Path) -> Path:
    """Cells of which each is later than the one before; the last two miss their deadline."""
    for n in range(CELLS):
        late = usual(n, 50 + 200 * n)
        write_cell(tmp_path / "cells" / f"c{n}", Made(id=f"c{n}", samples=120, warm_up=0, delays=late))
    return tmp_path / "cells"


def test_the_worst_are_shown_in_full_and_all_in_the_table(
    cells: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    drawn: list[str] = []
    plain = page.panels
    monkeypatch.setattr(page, "MOST_IN_FULL", IN_FULL)
    monkeypatch.setattr(page, "panels", lambda cell, *a: (drawn.append(cell.id), plain(cell, *a))[1])
    text = report.write(cells, tmp_path / "report.html").read_text(encoding="utf-8")
    rows = re.findall(r'<th scope="row">(?:<a href="#([^"]+)">|<span id="([^"]+)">)(c\d)<', text)
    assert sorted(name for _, _, name in rows) == [f"c{n}" for n in range(CELLS)]
    shown = [name for anchor, _, name in rows if anchor]
    assert shown == drawn == [name for _, _, name in rows][:IN_FULL] == ["c6", "c5", "c4"]
    for anchor, in_table, name in rows:
        assert len(re.findall(f'id="{anchor or in_table}"', text)) == 1, name
    assert text.count('<section class="cell" id=') == IN_FULL
    said = " ".join(re.findall(r'id="left-out">(.*?)</p>', text, re.DOTALL)[0].split())
    assert f"{CELLS - IN_FULL} more cells" in said and f"the {IN_FULL} worst are shown" in said


def test_each_repeat_of_a_condition_that_is_not_shown_in_full_has_its_row(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for condition, repeat in product(range(4), (1, 2, 3)):
        name, late = f"c{condition}-r{repeat}", usual(10 * condition + repeat, 50 + 200 * condition)
        axes = {"load": f"cpu:{condition}", "repeat": repeat}
        write_cell(tmp_path / "cells" / name, Made(id=name, samples=120, warm_up=0, delays=late, axes=axes))
    monkeypatch.setattr(page, "MOST_IN_FULL", 4)
    text = report.write(tmp_path / "cells", tmp_path / "report.html").read_text(encoding="utf-8")
    rows = re.findall(r'<th scope="row">(?:<a href="#([^"]+)">|<span id="[^"]+">)(c\d(?:-r\d)?)<', text)
    names = [f"c{n}" for n in range(4)]
    assert sorted(name for _, name in rows) == sorted(
        [*names, *(f"{n}-r{r}" for n in names for r in (1, 2, 3))]
    )
    assert [bool(anchor) for anchor, name in rows if "-" not in name] == [True] * 4
    assert sum(bool(anchor) for anchor, name in rows if "-" in name) == 4
    places = set(re.findall(r'id="([^"]+)"', text))
    assert set(re.findall(r'href="#([^"]+)"', text)) <= places
    said = " ".join(re.findall(r'id="left-out">(.*?)</p>', text, re.DOTALL)[0].split())
    assert "8 more cells, each of which has a row in a table above, that of its condition:" in said


def test_nothing_is_left_out_of_few(cells: Path, tmp_path: Path) -> None:
    text = report.write(cells, tmp_path / "report.html").read_text(encoding="utf-8")
    assert text.count('<section class="cell" id=') == CELLS and "left-out" not in text


def test_every_link_leads_somewhere(cells: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(page, "MOST_IN_FULL", IN_FULL)
    text = report.write(cells, tmp_path / "report.html").read_text(encoding="utf-8")
    places = set(re.findall(r'id="([^"]+)"', text))
    assert set(re.findall(r'href="#([^"]+)"', text)) <= places
