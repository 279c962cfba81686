"""cyclictest as a process: of this machine, or of a target."""

from __future__ import annotations

import signal
import subprocess
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from shlex import join
from typing import Any, Protocol

from rtmeter.conditions.companion import find_program
from rtmeter.host.ending import STARTED, kill_group, reap
from rtmeter.host.remote_root import RemoteRoot
from rtmeter.host.remote_shell import ConnectionLostError
from rtmeter.measure.probe.probes import NotBuiltError
from rtmeter.measure.programs.started_there import StartedThere
from rtmeter.model import Cell
from rtmeter.results import store
from rtmeter.values import format_cpus

CYCLICTEST, PACKAGE = "cyclictest", "apt-get install rt-tests"
FILE = "cyclictest.json"
HISTOGRAM_US = 100_000
"""As far as its histogram reaches; of values beyond it only the number and the largest are known."""


def arguments(config: Mapping[str, Any], file: str) -> list[str]:
    """cyclictest's for a probe config (spec/probe.md): one thread, absolute sleeps, a histogram as JSON."""
    scheduling = config["scheduling"]
    given = ["--quiet", "--threads=1", f"--interval={config['period_ns'] // 1000}"]
    given += [f"--loops={config['samples']}", f"--histogram={HISTOGRAM_US}", f"--json={file}"]
    given += [f"--policy={scheduling['policy']}"]
    if scheduling["policy"] != "other":
        given += [f"--priority={scheduling['priority']}"]
    if not config.get("cpu_dma_latency"):
        given += ["--laptop"]  # else it holds /dev/cpu_dma_latency at 0, which no other cell does unasked
    if config.get("lock_memory"):
        given += ["--mlockall"]
    if config.get("cpus"):
        given += [f"--affinity={format_cpus(config['cpus'])}"]
    return given


class Tool(Protocol):
    """cyclictest, running."""

    @property
    def exit_code(self) -> int | None:
        """None while it runs."""

    def interrupt(self) -> None:
        """It ends, and writes what it has."""

    def wait(self, limit_s: float) -> None:
        """Until it ends, at most so long."""


class ToolHere:
    """On this machine, with what it says in ``folder``. It ends with this process, however that ends."""

    def __init__(self, process: subprocess.Popen[bytes]) -> None:
        self._process = process

    @property
    def exit_code(self) -> int | None:
        return self._process.poll()

    def interrupt(self) -> None:
        self._process.send_signal(signal.SIGINT)

    def wait(self, limit_s: float) -> None:
        with suppress(subprocess.TimeoutExpired):
            self._process.wait(limit_s)


@contextmanager
def here(cell: Cell, folder: Path, through: list[str]) -> Iterator[Tool]:
    words = [find_program(CYCLICTEST, "adapter"), *arguments(cell.config, str(folder / FILE))]
    with (folder / store.STDERR).open("wb") as errors:
        process = subprocess.Popen(
            [find_program("setpriv", "adapter"), "--pdeathsig", "KILL", *through, *words],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=errors,
            start_new_session=True,  # Ctrl-C on the terminal is for rtmeter alone
        )
        STARTED.add(process.pid)
        try:
            yield ToolHere(process)
        finally:
            kill_group(process.pid)
            reap(process)
            STARTED.remove(process.pid)


@contextmanager
def there(cell: Cell, folder: Path, through: list[str], root: RemoteRoot) -> Iterator[Tool]:
    """On the machine that ``root`` reaches; its file comes here when it has ended."""
    if not root.has_program(CYCLICTEST):
        message, remedy = f"is not installed on {root.host}", f"install it there: {PACKAGE}"
        raise NotBuiltError(message, field="adapter", value=CYCLICTEST, remedy=remedy)
    code, own = root.run(["mktemp", "-d", "-t", "rtmeter-XXXXXX"])
    if code != 0:
        remedy = "free space in its /tmp, or set TMPDIR there"
        raise root.shell.ssh.error(f"says: {own.strip()}", remedy)
    file = f"{own.strip()}/{FILE}"
    try:
        words = join([CYCLICTEST, *arguments(cell.config, file)])
        with StartedThere(words, {}, folder, through, root) as tool:
            yield tool
        content = root.read_bytes(file)
        if content is not None:
            (folder / FILE).write_bytes(content)
    finally:
        with suppress(ConnectionLostError):
            root.run(["rm", "-rf", own.strip()])
