"""One quantity of one cell, as served and in order, for the formats of single runs."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from rtmeter.errors import RtmeterError
from rtmeter.results import store
from rtmeter.results.data import samples_of
from rtmeter.statistics.quantities import Ints, quantities
from rtmeter.statistics.views import as_served


class ServedCell:
    """A measured cell; ``of`` streams a quantity's values, ns, warm-up left out."""

    def __init__(self, path: Path) -> None:
        if not store.is_cell(path):
            cells = [folder.name for folder in store.cell_folders(path)]
            remedy = f"name one of its {len(cells)} cells, e.g. {cells[0]}"
            raise RtmeterError(
                "is no cell, and this format holds one", field="path", value=str(path), remedy=remedy
            )
        self.record = store.read_cell(path)
        self._path, self._meta = path, self.record.meta
        if samples_of(path, self.record) is None:
            raise RtmeterError(
                "has no samples", where=str(path), remedy="export a cell that rtmeter measured"
            )
        self._quantities = {quantity.name: quantity for quantity in quantities(self._meta)}

    @property
    def judged(self) -> str:
        """The quantity that verdicts look at."""
        return next(iter(self._quantities))

    def of(self, quantity: str) -> Iterator[Ints]:
        """The values, a block at a time. Raises RtmeterError if the cell has no such quantity."""
        if quantity not in self._quantities:
            remedy = f"choose one of {', '.join(self._quantities)}"
            raise RtmeterError(
                "is no quantity of this cell", field="--quantity", value=quantity, remedy=remedy
            )
        for block in as_served(self._meta, self._quantities[quantity], store.chunks(self._path)()):
            yield block.value

    def left_out(self) -> list[str]:
        """What is not in the values, in words."""
        counts = self.record.summary.counts if self.record.summary else {}
        words = {"lost": "lost", "skipped": "skipped", "in_flight": "in flight"}
        return [
            f"{counts[name]:,} releases that were {word} have no value and are left out"
            for name, word in words.items()
            if counts.get(name)
        ]
