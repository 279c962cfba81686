"""Cells → one self-contained HTML file; all results → a static site."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from rtmeter.errors import RtmeterError
from rtmeter.host.files import replace_file
from rtmeter.plots.floors import Floor
from rtmeter.report.page import render
from rtmeter.results import store
from rtmeter.results.cells import find_all

_UNASKED = Floor()


def write(paths: Path | Sequence[Path], out: Path, floor: Floor = _UNASKED) -> Path:
    """Writes the report of cells, or of all cells below folders, to the file ``out`` and returns it;
    ``floor``: what lies under its middlewares.

    The file appears whole or not at all: an older report stays if the new one cannot be written.
    """
    paths = [paths] if isinstance(paths, Path) else paths
    title = ", ".join(dict.fromkeys(_title(path.resolve()) for path in paths))
    replace_file(out, render(title, find_all(paths), floor).encode())
    return out


def _title(path: Path) -> str:
    """The folder's name, after that of its campaign if it is a run."""
    try:
        return f"{store.read_json(path / store.RUN, store.RUN_FORMAT)['campaign']}, {path.name}"
    except (RtmeterError, KeyError):
        return path.name
