"""Which releases of a log were served, and which was served before each."""

from __future__ import annotations

import numpy as np

from rtmeter.model import ABSENT, STATUS_NAMES, WARM_UP_FLAG
from rtmeter.statistics.quantities import Columns
from rtmeter.statistics.served import served

SERVED, SKIPPED = STATUS_NAMES.index("served"), STATUS_NAMES.index("skipped")


def chunk(first_k: int, wakes: list[int | None], warm_up: int = 0) -> Columns:
    """Releases at 100, 200, …; None: passed over."""
    k = np.arange(first_k, first_k + len(wakes))
    codes = [SKIPPED if wake is None else SERVED for wake in wakes]
    flags = [WARM_UP_FLAG if n < warm_up else 0 for n in range(len(wakes))]
    return {
        "k": k,
        "release_ns": 100 * (k + 1),
        "wake_ns": np.array([ABSENT if wake is None else wake for wake in wakes]),
        "free_ns": np.full(len(wakes), ABSENT),
        "status": np.array(codes) + np.array(flags),
    }


def test_the_one_before_is_the_one_that_was_served_before_also_of_another_chunk() -> None:
    chunks = [
        chunk(0, [105, 207, 309], warm_up=1),
        chunk(3, [None, None]),
        chunk(5, [601, None, 802]),
    ]
    one, none, other = served({"measurement": "wakeup", "period_ns": 100}, chunks)
    assert one.k.tolist() == [0, 1, 2] and one.release_ns.tolist() == [100, 200, 300]
    assert one.before_ns.tolist() == [100, 100, 200]
    assert one.lateness_ns.tolist() == [5, 7, 9] and one.measured.tolist() == [False, True, True]
    assert none.k.size == none.before_ns.size == 0 and none.others == 2
    assert other.k.tolist() == [5, 7] and other.before_ns.tolist() == [300, 600] and other.others == 1
