"""A client whose server stands still is interrupted once it would wait for an answer, if it ever did."""

from __future__ import annotations

import threading
from pathlib import Path

import pytest

from rtmeter.selftest.adapter.ends import _loses_or_stands
from rtmeter.selftest.adapter.running import _runs
from waiting import until

SLOW = (100, 9)


@pytest.mark.parametrize(
    ("seen", "enough"),
    [
        ([], False),
        ([SLOW], False),
        ([SLOW, (110, 18)], False),
        ([SLOW, (110, 19)], True),
        ([(100, 50), (101, 51)], False),
        ([SLOW] * 5, False),
        ([SLOW] * 6, True),
        ([*[SLOW] * 5, (101, 9)], False),
    ],
)
def test_it_is_once_ten_more_are_lost_or_nothing_is_settled(
    seen: list[tuple[int, int]], enough: bool
) -> None:
    reports = [{"released": released, "lost": lost} for released, lost in seen]
    assert _loses_or_stands(reports) is enough


def test_a_thread_that_ends_while_it_is_looked_at_does_not_run() -> None:
    ended = threading.Thread(target=lambda: None)
    ended.start()
    ended.join()
    tasks = Path("/proc/self/task")
    until(lambda: not (tasks / str(ended.native_id)).exists())
    assert not _runs(tasks / str(ended.native_id))
    assert _runs(tasks / str(threading.get_native_id()))
