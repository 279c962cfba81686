"""Reports: one self-contained HTML file from results."""

from __future__ import annotations

import tempfile
from pathlib import Path

from rtmeter import store
from rtmeter.errors import RtmeterError
from rtmeter.report.cells import find_cells
from rtmeter.report.page import render


def write(path: Path, out: Path) -> Path:
    """Writes the report of a cell, or of all cells below a folder, to the file ``out`` and returns it.

    The file appears whole or not at all: an older report stays if the new one cannot be written.
    """
    page = render(_title(path.resolve()), find_cells(path))
    partial = None
    try:
        with tempfile.NamedTemporaryFile("w", dir=out.parent, prefix=f".{out.name}.", delete=False) as file:
            partial = Path(file.name)
            file.write(page)
        partial.chmod(0o644)
        partial.replace(out)
    except OSError as error:
        if partial is not None:
            partial.unlink(missing_ok=True)
        remedy = "give another place with -o; an older report there is left as it was"
        raise RtmeterError(
            f"cannot be written: {error.strerror}", field="-o", value=str(out), remedy=remedy
        ) from error
    return out


def _title(path: Path) -> str:
    """The folder's name, after that of its campaign if it is a run."""
    try:
        return f"{store.read_json(path / store.RUN, store.RUN_FORMAT)['campaign']}, {path.name}"
    except (RtmeterError, KeyError):
        return path.name
