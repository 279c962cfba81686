"""What became of the releases, counted by the status column, and the identities that must hold."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

import numpy as np

from rtmeter.model import IN_FLIGHT, LOST, SERVED, SKIPPED, WARM_UP_FLAG
from rtmeter.statistics.quantities import Columns, Ints, kind
from rtmeter.statistics.views import OUTCOME_BITS, same

_COUNTS: dict[str, dict[str, int]] = {
    "wakeup": {"served": SERVED, "skipped": SKIPPED},
    "timer/periodic": {"served": SERVED, "skipped": SKIPPED},
    "timer/one_shot": {"fired": SERVED, "lost": LOST, "in_flight": IN_FLIGHT},
    "roundtrip": {"served": SERVED, "lost": LOST, "skipped": SKIPPED, "in_flight": IN_FLIGHT},
    "request": {"served": SERVED, "lost": LOST, "skipped": SKIPPED, "in_flight": IN_FLIGHT},
    "cycle": {"served": SERVED, "lost": LOST, "skipped": SKIPPED, "in_flight": IN_FLIGHT},
    "chain": {"served": SERVED, "lost": LOST, "in_flight": IN_FLIGHT},
    "discovery": {"served": SERVED, "lost": LOST, "in_flight": IN_FLIGHT},
    "own_loop": {"served": SERVED, "lost": LOST, "skipped": SKIPPED},
    "loop": {"served": SERVED, "lost": LOST, "skipped": SKIPPED},
    "imported": {"served": SERVED, "lost": LOST},
}
"""The outcomes that a measurement has, by the name of their count."""

_EACH_REPLIED = (
    ("released", "replied_in_time", "missed", "lost", "skipped", "in_flight"),
    ("served", "replied_in_time", "missed"),
)

_IDENTITIES: dict[str, tuple[tuple[str, ...], ...]] = {
    "wakeup": (("released", "served", "skipped"),),
    "timer/periodic": (("released", "served", "skipped"),),
    "timer/one_shot": (("armed", "fired", "lost", "in_flight"),),
    "roundtrip": _EACH_REPLIED,
    "request": _EACH_REPLIED,
    "cycle": (("released", "served", "lost", "skipped", "in_flight"),),
    "chain": (("released", "served", "lost", "in_flight"),),
    "discovery": (("released", "served", "lost", "in_flight"),),
    "own_loop": (("released", "served", "lost", "skipped"),),
    "loop": (("released", "served", "lost", "skipped"),),
    "imported": (("released", "served", "lost"),),
}
"""The first count is the sum of the others (measurements.md)."""

COUNT_NAMES = (
    *("armed", "fired", "released", "served", "skipped", "replied_in_time", "missed", "missed_response"),
    *("lost", "late_after_lost", "duplicate", "out_of_order", "corrupted", "in_flight", "warm_up"),
)
"""Every count, in the order of a summary; a measurement has those that apply."""

REPLY_COUNTERS = ("late_after_lost", "duplicate", "out_of_order", "corrupted")
"""The probe's counters that the counts of round trips and requests repeat."""


class Tally:
    """Counts outcomes while the chunks stream by, and looks for rows that are missing or misplaced."""

    def __init__(self, meta: Mapping[str, Any]) -> None:
        self.columns: set[str] = set()
        """Names of the columns, once a chunk was seen."""
        self._meta = meta
        self._outcomes = np.zeros(OUTCOME_BITS + 1, dtype=np.int64)
        self._rows = self._warm_up = 0
        self._first_k = self._next_k = int(meta.get("first_k") or 0)
        self._holes: list[str] = []

    def watch(self, chunks: Iterable[Columns]) -> Iterator[Columns]:
        """Passes the chunks on and counts them."""
        for chunk in chunks:
            self.columns.update(chunk)
            self._see(chunk)
            yield chunk

    def counts(self) -> dict[str, int]:
        """The counts that follow from the status column, for this measurement."""
        which = kind(self._meta)
        total = "armed" if which == "timer/one_shot" else "released"
        return {
            total: self._rows - self._warm_up,
            **{name: int(self._outcomes[code]) for name, code in _COUNTS[which].items()},
            "warm_up": self._warm_up,
        }

    def problems(self) -> list[str]:
        """Rows that are missing or out of order, and a warm-up of another length than configured."""
        found = list(self._holes)
        expected = min(max(int(self._meta["warm_up"]) - self._first_k, 0), self._rows)
        if not found and self._warm_up != expected:
            found.append(f"{self._warm_up} rows are marked as warm-up, {expected} were planned")
        return found

    def _see(self, chunk: Columns) -> None:
        k, status = chunk["k"], chunk["status"]
        if not len(k):
            return
        self._rows += len(k)
        if (only := same(status)) is not None:
            self._warm_up += len(k) if only & WARM_UP_FLAG else 0
            self._outcomes[only & OUTCOME_BITS] += 0 if only & WARM_UP_FLAG else len(k)
        else:
            warm_up = (status & WARM_UP_FLAG) != 0
            self._warm_up += int(np.count_nonzero(warm_up))
            self._outcomes += np.bincount(status[~warm_up] & OUTCOME_BITS, minlength=OUTCOME_BITS + 1)
        if not self._follows(k):
            for at in np.flatnonzero(np.diff(k, prepend=self._next_k - 1) != 1):
                before = int(k[at - 1]) + 1 if at else self._next_k
                self._holes.append(_hole(before, int(k[at])))
        self._next_k = int(k[-1]) + 1

    def _follows(self, k: Ints) -> bool:
        """Whether they come one after another and after those before: they ascend, and no further than that
        many do."""
        first, last = int(k[0]), int(k[-1])
        return first == self._next_k and last - first == len(k) - 1 and bool((k[1:] > k[:-1]).all())


def check_identities(meta: Mapping[str, Any], counts: Mapping[str, int]) -> tuple[str, list[str]]:
    """The measurement's identities with their numbers, and those that do not hold."""
    texts, broken = [], []
    for total, *parts in _IDENTITIES[kind(meta)]:
        names = f"{total} = {' + '.join(parts)}"
        numbers = f"{counts[total]} = {' + '.join(str(counts[part]) for part in parts)}"
        texts.append(f"{names}: {numbers}")
        if counts[total] != sum(counts[part] for part in parts):
            broken.append(f"identity violated: {names}, but {numbers.replace(' = ', ' ≠ ')}")
    return "; ".join(texts), broken


def _hole(expected: int, found: int) -> str:
    if found < expected:
        return f"row k = {found} comes after row k = {expected - 1}"
    if found == expected + 1:
        return f"row k = {expected} is missing"
    return f"rows k = {expected} to {found - 1} are missing"
