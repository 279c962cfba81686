"""The dependence of releases that a plan assumes, as the options state it."""

from __future__ import annotations

from pathlib import Path

from rtmeter.campaign.plan import Assumed
from rtmeter.errors import RtmeterError
from rtmeter.model import Cell, Requirement
from rtmeter.results import store
from rtmeter.results.cells import StoredCell, by_name, find_cells
from rtmeter.results.data import counted_of
from rtmeter.statistics.judged import JudgedRun, judged_run
from rtmeter.values import without_repeat

_SMALLEST_INDEX = 1e-6
"""Clusters of a million on average: no plan is made for longer ones."""


class Assume:
    """The dependence to assume, from the options; runs are looked at once."""

    def __init__(self, extremal_index: float | None, like: Path | None) -> None:
        if extremal_index is not None and not _SMALLEST_INDEX <= extremal_index <= 1:
            remedy = f"give a number from {_SMALLEST_INDEX:g} to 1; 1: the latest releases come singly"
            raise RtmeterError(
                "is no extremal index", field="--extremal-index", value=extremal_index, remedy=remedy
            )
        if extremal_index is not None and like is not None:
            message = "contradicts --extremal-index: both say how releases hang together"
            raise RtmeterError(message, field="--like", value=str(like), remedy="give one of the two")
        self._path = like
        self._like = {} if like is None else by_name(find_cells(like))
        self._stated = Assumed() if extremal_index is None else Assumed.stated(extremal_index)

    def __call__(self, requirement: Requirement | None, cell: Cell | None) -> Assumed:
        if not self._like or requirement is None:
            return self._stated
        name = None if cell is None else without_repeat(cell.id, cell.axes)
        if name not in self._like:
            if len(self._like) > 1:
                message = f"holds {len(self._like)} cells" + (f", none of them {name}" if name else "")
                raise RtmeterError(
                    message, field="--like", value=str(self._path), remedy="name the one to assume"
                )
            (name,) = self._like
        runs = [_run(stored) for stored in self._like[name].values()]
        seen = [run.examine(requirement.deadline_ns) for run in runs]
        return Assumed.seen(str(name), seen, runs[0].period_ns)


def _run(stored: StoredCell) -> JudgedRun:
    if not stored.record.usable or counted_of(stored.folder, stored.record) is not None:
        why = "has no samples in order" if stored.record.usable else stored.record.why_unusable
        raise RtmeterError(
            f"{stored.record.id} {why}", field="--like", value=str(stored.folder), remedy="name another"
        )
    return judged_run(stored.record.meta, store.chunks(stored.folder))
