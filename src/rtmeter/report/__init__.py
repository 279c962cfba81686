"""Reports: one self-contained HTML file from results."""

from __future__ import annotations

from pathlib import Path

from rtmeter import store
from rtmeter.errors import RtmeterError
from rtmeter.report.cells import find_cells
from rtmeter.report.files import replace_file
from rtmeter.report.floors import Floor
from rtmeter.report.page import render

_UNASKED = Floor()


def write(path: Path, out: Path, floor: Floor = _UNASKED) -> Path:
    """Writes the report of a cell, or of all cells below a folder, to the file ``out`` and returns it;
    ``floor``: what lies under its middlewares.

    The file appears whole or not at all: an older report stays if the new one cannot be written.
    """
    replace_file(out, render(_title(path.resolve()), find_cells(path), floor).encode())
    return out


def _title(path: Path) -> str:
    """The folder's name, after that of its campaign if it is a run."""
    try:
        return f"{store.read_json(path / store.RUN, store.RUN_FORMAT)['campaign']}, {path.name}"
    except (RtmeterError, KeyError):
        return path.name
