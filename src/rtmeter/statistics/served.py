"""Of the rows of a sample log: which releases were served, and from when to when each was."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from rtmeter.model import ABSENT, SERVED, WARM_UP_FLAG
from rtmeter.statistics.quantities import Columns, Ints, judged_quantity, timeout_ns
from rtmeter.statistics.views import OUTCOME_BITS


@dataclass(frozen=True)
class Served:
    """Arrays of shape (releases,): of those that were served, in order of k, the release, its time, its
    stamp, the time of the one that was served before (its own, of the first), and whether it is measured, or
    of the warm-up. ``others``: how many of the measured ones have no stamp."""

    k: Ints
    release_ns: Ints
    stamp_ns: Ints
    before_ns: Ints
    measured: npt.NDArray[np.bool_]
    others: int
    tid: Ints | None = None

    @property
    def lateness_ns(self) -> Ints:
        return self.stamp_ns - self.release_ns


def served(meta: Mapping[str, Any], chunks: Iterable[Columns]) -> Iterator[Served]:
    """Of each chunk, by the judged quantity: from the release to the stamp that it is taken at."""
    quantity, last = judged_quantity(meta), np.empty(0, np.int64)
    for columns in chunks:
        late_ns = quantity.of(columns, timeout_ns(meta))
        is_measured = columns["status"] & WARM_UP_FLAG == 0
        is_served = (columns["status"] & OUTCOME_BITS == SERVED) & (late_ns != ABSENT)
        stamps = columns[quantity.plus[0]][is_served]
        releases = stamps - late_ns[is_served]
        before = np.concatenate([last if len(last) else releases[:1], releases[:-1]])
        last = releases[-1:] if len(releases) else last
        others = int(np.count_nonzero(is_measured & ~is_served))
        found = columns["k"][is_served], releases, stamps, before[: len(releases)], is_measured[is_served]
        yield Served(*found, others, columns["tid"][is_served] if "tid" in columns else None)
