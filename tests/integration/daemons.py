"""What the tests of adapters with a daemon share: whether it is there."""

from __future__ import annotations

import fcntl
import shutil
import socket
from pathlib import Path


def alive(pid: int) -> bool:
    """Whether the process runs; one that nobody has waited for does not."""
    try:
        return "State:\tZ" not in Path(f"/proc/{pid}/status").read_text()
    except OSError:
        return False


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
