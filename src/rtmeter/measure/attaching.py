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
from collections.abc import Callable, Collection, Sequence
from pathlib import Path
from typing import Self

from rtmeter.conditions.companion import find_program
from rtmeter.conditions.tracing import require
from rtmeter.errors import RtmeterError
from rtmeter.explain.events import Trace
from rtmeter.host.ending import reap
from rtmeter.host.root import Root
from rtmeter.trace.of_threads import ThreadsRecorder, offset_ns
from rtmeter.trace.recorder import RecordingTally

FIELD = "attach"
PREFIX = "rtmeter-attach-"
GROUP = "rtmeter_attach_"
"""Of the probes of functions: they are the kernel's, not the instance's."""

_EVENTS_A_CALL, _CALLS, _ROUNDS = 2, 200, 10
_AT = "/sys/kernel/tracing"

_HELPER = f"""
trap '' INT TERM HUP
forget() {{
    [ -f {_AT}/uprobe_events ] || return 0
    sed -n "s|^[pr][0-9]*:\\($1/[^ ]*\\) .*|-:\\1|p" {_AT}/uprobe_events | while read -r probe; do
        echo "$probe" >> {_AT}/uprobe_events
    done
}}
[ -d {_AT}/instances ] || mount -t tracefs tracefs {_AT} 2>&1 || exit 1
for left in {_AT}/instances/{PREFIX}*; do
    owner=${{left##*{PREFIX}}}
    [ -d "$left" ] && [ ! -d "/proc/${{owner%%-*}}" ] && rmdir "$left"
done
probes() {{ sed -n 's|^[pr][0-9]*:\\({GROUP}[^/]*\\)/.*|\\1|p' {_AT}/uprobe_events 2>/dev/null; }}
for left in $(probes | sort -u); do
    owner=${{left##*{GROUP}}}
    [ ! -d "/proc/${{owner%%_*}}" ] && forget "$left"
done
mkdir {_AT}/instances/$1 2>&1 || exit 1
echo there
read -r _
for _ in 1 2 3 4 5 6 7 8 9 10; do
    rmdir {_AT}/instances/$1 2>/dev/null && forget "$2" && exit 0
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
        probes: Callable[[], Sequence[str]] | None = None,
    ) -> None:
        self._probes = probes
        self._tids, self._folder, self._root, self._is_32_bit = tuple(tids), folder, root, is_32_bit
        self.event_ns: float | None = None
        """What an event costs the thread that it is told of; None: not known."""
        self._trace: Trace | None = None
        self._helper: subprocess.Popen[str] | None = None

    def __enter__(self) -> Self:
        check(self._root)
        number = os.urandom(4).hex()
        name, group = f"{PREFIX}{os.getpid()}-{number}", f"{GROUP}{os.getpid()}_{number}"
        self._helper = subprocess.Popen(
            ["unshare", "--mount", "--propagation", "private", "/bin/sh", "-c", _HELPER, "sh", name, group],
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
        there = f"/proc/{self._helper.pid}/root{_AT}"
        instance = self.instance = f"{there}/instances/{name}"
        self._recorder = ThreadsRecorder(
            instance, self._pages, set(), self._root, self._tids, is_32_bit=self._is_32_bit
        )
        self._recorder.also = threading.get_native_id()
        try:
            if self._probes is not None:
                self._recorder.probes = group
                place(self._root.at(there), group, self._probes())
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
            self.tally: RecordingTally = self._recorder.tally()
            self.offsets_ns = [offset_ns(clock) for clock in (time.CLOCK_REALTIME, time.CLOCK_BOOTTIME)]
            self.marks = sorted(self._recorder.marks, key=lambda mark: mark.time_ns)
        return self._trace


def place(tracefs: Path, group: str, probes: Sequence[str]) -> None:
    """Tells the kernel of probes, ``{group}`` in their lines filled in. Raises RtmeterError for what it
    refuses, or has not got."""
    file = tracefs / "uprobe_events"
    if not file.exists():
        message = "this kernel has no uprobes: its tracefs has no uprobe_events"
        raise RtmeterError(message, field="--ros2", remedy="use a kernel with CONFIG_UPROBE_EVENTS")
    for line in probes:
        try:
            events = os.open(file, os.O_WRONLY | os.O_APPEND | os.O_CLOEXEC)  # without: all others' go
            try:
                os.write(events, line.replace("{group}", group).encode() + b"\n")
            finally:
                os.close(events)
        except OSError as error:
            message = f"the kernel refuses a probe: {(error.strerror or '').lower()}"
            remedy = "see error_log in tracefs"
            raise RtmeterError(message, field="--ros2", value=line.partition("/")[2], remedy=remedy) from None


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
