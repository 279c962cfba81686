"""rtmeter run on the first of two hosts."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from two_hosts import Hosts

from rtmeter import store
from rtmeter.errors import RtmeterError
from rtmeter.samples import LogReader

MEASURE = ["measure", "roundtrip", "--adapter", "posix", "--period", "2ms", "--warm-up", "0"]


@contextmanager
def running(
    hosts: Hosts, *arguments: object, state: object = "", **ssh: str
) -> Iterator[subprocess.Popen[str]]:
    """rtmeter on the first host; ``state``: the folder of its state, if it is not that of the tests."""
    process = subprocess.Popen(
        hosts.near_command(sys.executable, "-m", "rtmeter", *arguments),
        env=os.environ
        | {"RTMETER_SSH": hosts.ssh(**ssh)}
        | ({"RTMETER_STATE_DIR": str(state)} if state else {}),
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    try:
        yield process
    finally:
        process.kill()
        process.communicate()


def rtmeter(hosts: Hosts, *arguments: object, state: object = "", **ssh: str) -> tuple[int, str]:
    """Exit code and what it said on standard error."""
    with running(hosts, *arguments, state=state, **ssh) as process:
        _, said = process.communicate(timeout=120)
    assert "Traceback" not in said, said
    return process.returncode, said


def restore(hosts: Hosts, **ssh: str) -> tuple[int, str]:
    """Exit code of `rtmeter restore` on the first host, and what it printed."""
    with running(hosts, "restore", **ssh) as process:
        said, _ = process.communicate(timeout=120)
    return process.returncode, said


def measured(hosts: Hosts, folder: Path, *more: object) -> dict[str, Any]:
    code, said = rtmeter(hosts, *MEASURE, "--host", f"component={hosts.url}", *more, "--out", folder)
    assert code == 0, said
    assert hosts.sessions() == []
    return store.load_cell(folder)


def wait_for(happens: Callable[[], object], process: subprocess.Popen[str], limit_s: float = 60) -> None:
    """Until it is true, while the process runs."""
    limit = time.monotonic() + limit_s
    while not happens():
        assert process.poll() is None, process.communicate()
        assert time.monotonic() < limit
        time.sleep(0.05)


def wait_for_samples(folder: Path, process: subprocess.Popen[str]) -> None:
    """Until the cell in ``folder`` has some."""
    log = folder.with_suffix(".partial") / store.CLIENT_LOG

    def some() -> bool:
        try:
            return LogReader(log).rows > 100
        except RtmeterError:  # it is not there yet, or has no header
            return False

    wait_for(some, process)
