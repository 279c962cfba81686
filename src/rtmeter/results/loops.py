"""Where programs record of their own loops, and where the cells are that are made of it."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

from rtmeter.results.store import LOOP, is_cell


def loop_folders(path: Path) -> list[Path]:
    """Those that the path is, is made of, or has below it at most three folders down, in order of name."""
    if path.suffix == LOOP and path.is_dir():
        return [path]
    if (beside := loop_beside(path)).is_dir():
        return [beside]
    return sorted(map(Path, _loops_below(os.fspath(path), 3))) if path.is_dir() else []


def loop_beside(path: Path) -> Path:
    """Where a program's own loop records what the cell at the path is made of."""
    return Path(f"{path}{LOOP}")


def cell_of_loop(path: Path) -> Path:
    """The path itself, or, of what a program's own loop recorded into, the cell that is made of it."""
    return path.with_suffix("") if path.suffix == LOOP else path


def _loops_below(path: str, deep: int) -> Iterator[str]:
    """So many folders down; a cell has none in it, and is not entered: there may be ten thousand of them."""
    try:
        found = list(os.scandir(path))
    except OSError:  # not for us, or gone since
        return
    for entry in found:
        if not _is_folder(entry):
            continue
        if entry.name.endswith(LOOP):
            yield entry.path
        elif deep > 1 and not is_cell(Path(entry.path)):
            yield from _loops_below(entry.path, deep - 1)


def _is_folder(entry: os.DirEntry[str]) -> bool:
    """False also of a link that leads to itself, or where we may not go."""
    try:
        return entry.is_dir()
    except OSError:
        return False
