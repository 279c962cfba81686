"""A recording of some threads, in a tracefs instance that is gone with this process, however that ends.

A helper mounts tracefs where nobody else sees it, in a mount namespace of its own, makes the instance there,
and takes it away when this process closes its pipe: at the end, or with its death.
"""

from __future__ import annotations

import os
import subprocess
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
_AT = "/sys/kernel/tracing"

_HELPER = f"""
trap '' INT TERM HUP
mount -t tracefs tracefs {_AT} 2>&1 || exit 1
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
        instance = f"/proc/{self._helper.pid}/root{_AT}/instances/{name}"
        self._recorder = ThreadsRecorder(
            instance, self._folder, set(), self._root, self._tids, is_32_bit=self._is_32_bit
        )
        try:
            self._recorder.start()
        except BaseException as error:
            self._end()
            if isinstance(error, RtmeterError):
                error.field = FIELD
            raise
        return self

    def __exit__(self, *_: object) -> None:
        self._recorder.stop()
        self._end()

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
        try:
            trace = self._recorder.trace()
        finally:
            self._recorder.tidy()
        self.told: Told = self._recorder.told()
        return trace


def check(root: Root) -> None:
    """Raises RtmeterError where nobody can attach to anything."""
    require(root, FIELD, "")
    find_program("unshare", FIELD)
