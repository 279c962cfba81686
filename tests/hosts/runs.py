"""rtmeter run on the first of two hosts."""

from __future__ import annotations

import subprocess
from pathlib import Path
from typing import Any

from two_hosts import Hosts

from front import rows_of, rtmeter
from rtmeter.results import store
from stored import cell_json
from waiting import until

USUAL = {"--adapter": "posix", "--period": "2ms", "--warm-up": "0"}
MEASURE = ["measure", "roundtrip", *(word for option in USUAL.items() for word in option)]


def restore(hosts: Hosts, **ssh: str) -> tuple[int, str]:
    """Exit code of `rtmeter restore` on the first host, and what it printed."""
    done = rtmeter("restore", **hosts.near_end(**ssh))
    return done.code, done.out


def measured(hosts: Hosts, folder: Path, *more: object, code: int = 0) -> dict[str, Any]:
    usual = [word for option in USUAL.items() if option[0] not in more for word in option]
    asked = ["--host", f"component={hosts.url}", *more, "--out", folder]
    done = rtmeter("measure", "roundtrip", *usual, *asked, **hosts.near_end())
    assert done.code == code, (done.code, done.err)
    hosts.wait_until_ended()
    return cell_json(folder)


def wait_for_samples(folder: Path, process: subprocess.Popen[str]) -> None:
    """Until the cell in ``folder`` has some."""
    log = folder.with_suffix(".partial") / store.CLIENT_LOG
    until(lambda: rows_of(log) > 100, of=process)
