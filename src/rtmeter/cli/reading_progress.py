"""Progress of commands that read what is stored."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from rtmeter.cli.progress import Show, showing
from rtmeter.results import store
from rtmeter.statistics.quantities import Columns

_SILENT_S = 2.0
"""What is read in less time than this is not worth a word."""

_DRAWN_S = 0.2
"""Many small things are not each worth a picture."""


@contextmanager
def reading() -> Iterator[store.ReadSamples]:
    """A ``store.chunks`` that says how far it is, if it takes long."""
    with showing() as show:
        yield lambda folder: _watched(folder, show)


@contextmanager
def counting(total: int, what: str) -> Iterator[Callable[[int], None]]:
    """To be called with how many of so many are done: says so, if it takes long."""
    began = said = time.monotonic()
    with showing() as show:

        def say(done: int) -> None:
            nonlocal said
            now = time.monotonic()
            if done < total and now - began > _SILENT_S and now - said > _DRAWN_S:
                said = now
                show(f"{done:,} of {total:,} {what}", done / max(1, total), "during")

        yield say


def _watched(folder: Path, show: Show) -> Callable[[], Iterator[Columns]]:
    chunks = store.chunks(folder)
    config = store.read_cell(folder).config
    total = max(1, config.get("samples", 0) + config.get("warm_up", 0))

    def again() -> Iterator[Columns]:
        began, rows = time.monotonic(), 0
        for chunk in chunks():
            yield chunk
            rows += len(chunk["k"])
            if time.monotonic() - began > _SILENT_S:
                share = min(1.0, rows / total)
                show(f"{folder.name}: {rows:,} releases read, {share:.0%}", share, "during")

    return again
