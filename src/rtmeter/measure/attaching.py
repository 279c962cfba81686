"""A recording of some threads, in a tracefs instance that is gone with this process, however that ends.

A helper mounts tracefs where nobody else sees it, in a mount namespace of its own, makes the instance there,
and takes it away when this process closes its pipe: at the end, or with its death.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import tempfile
import threading
import time
from collections.abc import Collection
from pathlib import Path
from typing import Self

from rtmeter.conditions.companion import find_program
from rtmeter.conditions.tracing import require
from rtmeter.errors import RtmeterError
from rtmeter.explain.events import Trace
from rtmeter.host.ending import reap
from rtmeter.host.root import Root
from rtmeter.trace.of_threads import ThreadsRecorder
from rtmeter.trace.recorder import Told

FIELD = "attach"
PREFIX = "rtmeter-attach-"
_EVENTS_A_CALL, _CALLS, _ROUNDS = 2, 200, 10
_AT = "/sys/kernel/tracing"

_HELPER = f"""
trap '' INT TERM HUP
[ -d {_AT}/instances ] || mount -t tracefs tracefs {_AT} 2>&1 || exit 1
for left in {_AT}/instances/{PREFIX}*; do
    owner=${{left##*{PREFIX}}}
    [ -d "$left" ] && [ ! -d "/proc/${{owner%%-*}}" ] && rmdir "$left"
done
mkdir {_AT}/instances/$1 2>&1 || exit 1
echo there
read -r _
for _ in 1 2 3 4 5 6 7 8 9 10; do
    rmdir {_AT}/instances/$1 2>/dev/null && exit 0
    sleep 0.2
done
exit 1
"""


class Attached:
    """Records the threads ``tids`` while the block runs; then ``trace`` is what was told of them."""

    def __init__(
        self,
        tids: Collection[int],
        folder: Path,
        root: Root,
        *,
        is_32_bit: bool = False,
    ) -> None:
        self._tids, self._folder, self._root, self._is_32_bit = tuple(tids), folder, root, is_32_bit
        self.event_ns: float | None = None
        """What an event costs the thread that it is told of; None: not known."""
        self._trace: Trace | None = None
        self._helper: subprocess.Popen[str] | None = None

    def __enter__(self) -> Self:
        check(self._root)
        name = f"{PREFIX}{os.getpid()}-{os.urandom(4).hex()}"
        self._helper = subprocess.Popen(
            ["unshare", "--mount", "--propagation", "private", "/bin/sh", "-c", _HELPER, "sh", name],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            start_new_session=True,
        )
        assert self._helper.stdout is not None
        said = self._helper.stdout.readline().strip()
        if said != "there":
            self._end()
            remedy = "in a container, run it with --privileged; else see CONFIG_TRACING and dmesg"
            raise RtmeterError(f"gets no trace instance: {said}", field=FIELD, remedy=remedy)
        self._pages = Path(tempfile.mkdtemp(prefix="attached-", dir=self._folder))
        instance = f"/proc/{self._helper.pid}/root{_AT}/instances/{name}"
        self._recorder = ThreadsRecorder(
            instance, self._pages, set(), self._root, self._tids, is_32_bit=self._is_32_bit
        )
        self._recorder.also = threading.get_native_id()
        try:
            untraced_ns = _call_ns()
            self._recorder.start()
            self.event_ns = max(0.0, (_call_ns() - untraced_ns) / _EVENTS_A_CALL)
            self._recorder.leave_out()
        except BaseException as error:
            self._end()
            shutil.rmtree(self._pages, ignore_errors=True)
            if isinstance(error, RtmeterError):
                error.field = FIELD
            raise
        return self

    def __exit__(self, kind: object, *_: object) -> None:
        self._recorder.stop()
        self._end()
        if kind is not None:
            shutil.rmtree(self._pages, ignore_errors=True)

    def _end(self) -> None:
        helper = self._helper
        if helper is not None and helper.stdin is not None:
            helper.stdin.close()
            try:
                helper.wait(10)
            except subprocess.TimeoutExpired:
                helper.kill()
                reap(helper)

    def trace(self) -> Trace:
        """What was told; the pages are gone then. Raises RtmeterError if they could not be written."""
        if self._trace is None:
            try:
                self._trace = self._recorder.trace()
            finally:
                shutil.rmtree(self._pages, ignore_errors=True)
            self.told: Told = self._recorder.told()
        return self._trace


def _call_ns() -> float:
    """How long an empty system call takes, as the least of some means."""
    least = float("inf")
    for _ in range(_ROUNDS):
        began_ns = time.perf_counter_ns()
        for _ in range(_CALLS):
            os.getppid()
        least = min(least, (time.perf_counter_ns() - began_ns) / _CALLS)
    return least


def check(root: Root) -> None:
    """Raises RtmeterError where nobody can attach to anything."""
    require(root, FIELD, "")
    find_program("unshare", FIELD)
