"""Cells → one self-contained HTML file; all results → a static site; an archive → the page of a fleet."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from rtmeter.errors import RtmeterError
from rtmeter.host.files import replace_file
from rtmeter.judge.factors import FactorEffects
from rtmeter.plots.floors import Floor
from rtmeter.report.page import render
from rtmeter.results import store
from rtmeter.results.overview import cell_entries_of

_UNASKED = Floor()


def write(
    paths: Path | Sequence[Path],
    out: Path,
    floor: Floor = _UNASKED,
    damage: list[RtmeterError] | None = None,
    effects: Sequence[FactorEffects] = (),
) -> Path:
    """Writes the report of cells, or of all cells below folders, to the file ``out`` and returns it;
    ``floor``: what lies under its middlewares; to ``damage`` it adds why cells that it shows as damaged
    cannot be read; ``effects``: what the factors of its runs do.

    The file appears whole or not at all: an older report stays if the new one cannot be written.
    """
    paths = [paths] if isinstance(paths, Path) else paths
    title = ", ".join(dict.fromkeys(_title(path.resolve()) for path in paths))
    cells = cell_entries_of(paths)
    replace_file(out, render(title, cells, floor, effects, damage).encode())
    return out


def _title(path: Path) -> str:
    """The folder's name, after that of its campaign if it is a run."""
    return f"{store.read_run(path).campaign}, {path.name}" if (path / store.RUN).is_file() else path.name
