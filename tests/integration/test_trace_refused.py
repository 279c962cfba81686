"""Who refused a recording: the disk or the kernel."""

from __future__ import annotations

import errno
import os
import threading
from pathlib import Path
from typing import Any

import pytest
from attached import here, left_instances

from rtmeter.errors import RtmeterError
from rtmeter.host.root import Root
from rtmeter.measure.programs.attaching import TRACEFS, Attached

FULL = "No space left on device"


@here
@pytest.mark.parametrize(
    "from_kernel, said",
    [
        (
            False,
            r"the trace cannot be written: no space left on device"
            r" \(/.*attached-.*, [\d,]+ MiB free; the trace has 0 MiB\)",
        ),
        (True, r"the kernel's events cannot be read: no space left on device \(/.*/trace_pipe_raw\)"),
    ],
)
def test_the_error_tells_who_refused(
    from_kernel: bool, said: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    splice, refused = os.splice, threading.Event()

    def refusing(source: int, to: int, count: int, **flags: Any) -> int:
        if bool(flags) == from_kernel:
            refused.set()
            raise OSError(errno.ENOSPC, FULL)
        return splice(source, to, count, **flags)

    monkeypatch.setattr(os, "splice", refusing)
    with Attached([threading.get_native_id()], tmp_path, Root(), by=TRACEFS) as attached:
        while not refused.is_set():
            for _ in range(1000):
                os.getppid()
    with pytest.raises(RtmeterError, match=said):
        attached.trace()
    assert not any(f"-{os.getpid()}-" in name for name in left_instances())
    assert list(tmp_path.iterdir()) == []
