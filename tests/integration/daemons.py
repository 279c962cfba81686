"""What the tests of adapters with a daemon share: whether it is there."""

from __future__ import annotations

import fcntl
import grp
import os
import shutil
import socket
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path

import pytest

from waiting import until


def alive(pid: int) -> bool:
    """Whether the process runs; one that nobody has waited for does not."""
    try:
        return "State:\tZ" not in Path(f"/proc/{pid}/status").read_text()
    except OSError:
        return False


def watches(pid: int, name: str) -> bool:
    """Whether the process has the thread of that name, which ends when it has seen its daemon end."""
    names = []
    for task in Path(f"/proc/{pid}/task").iterdir():
        with suppress(OSError):  # it has ended
            names.append((task / "comm").read_text().rstrip("\n"))
    return name in names


def roudi_answers() -> bool:
    """Whether iceoryx's daemon listens."""
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as one:
        return one.connect_ex("/tmp/roudi") == 0


def all_have_ended() -> None:
    """Each run with iceoryx holds a lock on RouDi's program."""
    program = shutil.which("iox-roudi")
    assert program
    with Path(program).open("rb") as lock:
        fcntl.flock(lock, fcntl.LOCK_SH)


def roudi_of(facts: Mapping[str, Mapping[str, str]]) -> tuple[str, int]:
    """How a run came to its RouDi, and the process."""
    how, _, pid = facts["adapter"]["roudi"].partition(", process ")
    return how, int(pid)


def roudi_memory() -> Path:
    """The file of shared memory that holds the chunks of a RouDi of this user's."""
    return Path("/dev/shm", grp.getgrgid(os.getgid()).gr_name)


@contextmanager
def without_roudi() -> Iterator[None]:
    """Nobody's RouDi runs, and one that was ending has ended. What the test's own leaves, which aborts at a
    process that is gone already, is removed.
    """
    try:
        until(lambda: not roudi_answers())
    except AssertionError:
        pytest.skip("somebody else's iox-roudi runs")
    all_have_ended()
    yield
    until(lambda: not roudi_answers())
    all_have_ended()
    for segment in (Path("/dev/shm/iceoryx_mgmt"), roudi_memory()):
        segment.unlink(missing_ok=True)
