"""What is told of a program of more threads than a filter of the kernel's can name one by one."""

from __future__ import annotations

import threading
from pathlib import Path
from typing import Any
from unittest.mock import Mock

import pytest
from attached import here, takes_programs

from rtmeter.explain.events import SWITCH
from rtmeter.explain.marks import Mark
from rtmeter.host.root import Root
from rtmeter.measure.programs.attaching import EBPF, TRACEFS, Attached
from rtmeter.trace.of_threads import ranges_of

COUNT = 300
RECORDERS = (
    TRACEFS,
    pytest.param(
        EBPF, marks=pytest.mark.skipif(not takes_programs(), reason="this kernel takes no programs of ours")
    ),
)


@here
@pytest.mark.parametrize("by", RECORDERS)
@pytest.mark.parametrize("every", [1, 2], ids=["consecutive", "every second one"])
def test_all_of_them_are_told_of(by: str, every: int, tmp_path: Path) -> None:
    go = threading.Event()
    threads = [threading.Thread(target=go.wait, daemon=True) for _ in range(every * COUNT)]
    for thread in threads:
        thread.start()
    wanted = {thread.native_id or 0 for thread in threads[::every]}
    try:
        assert (len(ranges_of(wanted, COUNT)) > COUNT // 2) == (every > 1)
        with Attached(wanted, tmp_path, Root(), by=by) as attached:
            go.set()
            for thread in threads:
                thread.join()
        trace = attached.trace()
    finally:
        go.set()
    assert attached.tally.lost == 0
    assert {trace.target[at] for at, kind in enumerate(trace.event) if kind == SWITCH} >= wanted


def test_what_functions_of_others_tell_is_left_out(tmp_path: Path) -> None:
    """A filter has them if their ids are between those of the program."""
    attached: Any = Attached([1, 3], tmp_path, Root())
    marks = [Mark(time_ns, tid, "timer") for time_ns, tid in ((7, 3), (6, 2), (5, 1))]
    attached._recorder = Mock(marks=marks)
    attached.trace()
    assert [mark.tid for mark in attached.marks] == [1, 3]
