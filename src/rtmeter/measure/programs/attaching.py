"""A recording of some threads that is gone with this process, however that ends.

By programs of ours in the kernel (trace/ebpf/), which have no name there; where it takes none, and for
probes of functions, in a tracefs instance. A helper mounts tracefs where nobody else sees it, in a mount
namespace of its own, makes the instance there, and takes it away when this process closes its pipe: at the
end, or with its death.
"""

from __future__ import annotations

import os
import select
import shutil
import signal
import subprocess
import tempfile
import threading
import time
from collections.abc import Callable, Collection, Iterator, Sequence
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from shlex import join
from typing import IO, Self

from rtmeter.conditions.companion import require_program
from rtmeter.conditions.recorder_there import ThreadsRecorderThere
from rtmeter.conditions.releases import ToldReleases
from rtmeter.conditions.tracing import require
from rtmeter.errors import RtmeterError
from rtmeter.explain.events import Trace
from rtmeter.explain.marks import Mark
from rtmeter.host.ending import STARTED, kill_group, reap
from rtmeter.host.remote_root import RemoteRoot
from rtmeter.host.root import Root
from rtmeter.measure.programs.following import Following
from rtmeter.model import LOCAL
from rtmeter.trace.ebpf.btf import UnavailableError
from rtmeter.trace.ebpf.recorder import RingsRecorder, Sink
from rtmeter.trace.of_threads import ThreadsRecorder
from rtmeter.trace.recorder import RecordingTally, offset_ns

FIELD = "attach"
PREFIX = "rtmeter-attach-"
GROUP = "rtmeter_attach_"
"""Of the probes of functions: they are the kernel's, not the instance's."""

_STARTS_S, _ENDS_S = 60, 10
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
    [ -d "$left" ] && [ ! -d "/proc/${{owner%%-*}}" ] && rmdir "$left" 2>/dev/null
done
probes() {{ sed -n 's|^[pr][0-9]*:\\({GROUP}[^/]*\\)/.*|\\1|p' {_AT}/uprobe_events 2>/dev/null; }}
for left in $(probes | sort -u); do
    owner=${{left##*{GROUP}}}
    [ ! -d "/proc/${{owner%%_*}}" ] && forget "$left"
done
mkdir {_AT}/instances/$1 2>&1 || exit 1
echo "there $$"
read -r _
for _ in 1 2 3 4 5 6 7 8 9 10; do
    rmdir {_AT}/instances/$1 2>/dev/null && forget "$2" && exit 0
    sleep 0.2
done
exit 1
"""


EBPF, TRACEFS = "ebpf", "tracefs"
"""What records."""


class Attached:
    """Records the threads ``tids`` while the block runs; then ``trace`` is what was told of them.

    ``follow``: what takes the events as they come (from tracefs, when the block ends), and is ended with the
    block; ``trace`` has none then. ``by``: what records; None: programs of ours, and tracefs where the kernel
    takes none, ``not_ebpf`` says why. ``told`` is told if nothing of them is known before the block ends.
    """

    def __init__(
        self,
        tids: Collection[int],
        folder: Path,
        root: Root,
        *,
        is_32_bit: bool = False,
        probes: Callable[[], Sequence[str]] | None = None,
        by: str | None = None,
        follow: Sequence[Following] = (),
        told: ToldReleases | None = None,
    ) -> None:
        self._probes, self._follow, self._told = probes, tuple(follow), told
        self._tids, self._folder, self._root, self._is_32_bit = frozenset(tids), folder, root, is_32_bit
        self.by = TRACEFS if probes is not None else by
        self.not_ebpf: str | None = None
        self.event_ns: float | None = None
        """What an event costs the thread that it is told of; None: not known."""
        self.marks: list[Mark] = []
        self.anchors: dict[str, int] = {}
        """Of a machine far away: what its clocks showed at one time, ns."""
        self._trace: Trace | None = None
        self._stack = ExitStack()

    @property
    def root(self) -> Root:
        """The machine of the threads."""
        return self._root

    def __enter__(self) -> Self:
        try:
            return self._begun()
        except BaseException:
            for one in self._follow:
                one.end(given_up=True)
            raise

    def _begun(self) -> Self:
        check(self._root)
        with ExitStack() as stack:
            self._recorder = self._of_ours() or self._in_tracefs(stack)
            if self._told is not None and (self.by != EBPF or not self._follow):
                self._told.nobody_tells()
            here = self._root.host == LOCAL
            untraced_ns = _call_ns() if here else 0
            try:
                self._recorder.start()
            except UnavailableError as error:
                raise RtmeterError(str(error), field=FIELD, remedy="see dmesg") from None
            except RtmeterError as error:
                error.field = FIELD
                raise
            if here:
                self.event_ns = max(0.0, (_call_ns() - untraced_ns) / _EVENTS_A_CALL)
            self._recorder.leave_out()
            self._stack = stack.pop_all()
        return self

    def __exit__(self, kind: object, *_: object) -> None:
        end_ns = None

        def end(one: Following) -> None:
            one.end(end_ns, given_up=kind is not None)

        def tidy(failed: object, *_: object) -> None:
            if kind or failed:
                self._recorder.tidy()

        with ExitStack() as ends:  # all of them, whichever raises
            ends.push(tidy)
            if self._told is not None:
                ends.callback(self._told.end)
            for one in self._follow:
                ends.callback(end, one)
            with self._stack:
                self._recorder.stop()
            if kind is None and self._follow:
                self._hand_on()
                end_ns = self.end_ns

    def _hand_on(self) -> None:
        """What was not handed on as it came."""
        trace = self.trace()
        if len(trace):
            for one in self._follow:
                one.see(trace, None)

    def _of_ours(self) -> RingsRecorder | None:
        """None where the kernel does not take our programs."""
        if self.by == TRACEFS:
            return None
        if self._root.host != LOCAL:
            self.not_ebpf = "programs in the kernel are of this machine only"
            return None
        try:
            also = threading.get_native_id()
            recorder = RingsRecorder(
                self._root, self._tids, is_32_bit=self._is_32_bit, also=also, sink=self._sink()
            )
        except UnavailableError as error:
            if self.by == EBPF:
                raise RtmeterError(str(error), field=FIELD, remedy="record by tracefs") from None
            self.not_ebpf = str(error)
            return None
        self.by = EBPF
        return recorder

    def _sink(self) -> Sink | None:
        if not self._follow:
            return None

        def sink(part: Trace, until_ns: int) -> None:
            for one in self._follow:
                one.see(part, until_ns)

        return sink

    def _in_tracefs(self, stack: ExitStack) -> ThreadsRecorder:
        self.by = TRACEFS
        number = os.urandom(4).hex()
        owner = self._root.own_pid()
        name, group = f"{PREFIX}{owner}-{number}", f"{GROUP}{owner}_{number}"
        helper = stack.enter_context(_helped(name, group, self._root))
        there = f"/proc/{helper}/root{_AT}"
        self.instance = f"{there}/instances/{name}"
        pages = Path(tempfile.mkdtemp(prefix="attached-", dir=self._folder))
        stack.push(lambda kind, *_: shutil.rmtree(pages, ignore_errors=True) if kind else None)
        of_threads = ThreadsRecorderThere if isinstance(self._root, RemoteRoot) else ThreadsRecorder
        recorder = of_threads(self.instance, pages, set(), self._root, self._tids, is_32_bit=self._is_32_bit)
        if self._root.host == LOCAL:
            recorder.also = threading.get_native_id()
        if self._probes is not None:
            recorder.probes = group
            place(self._root, there, group, self._probes())
        return recorder

    def trace(self) -> Trace:
        """What was told; the pages are gone then. Raises RtmeterError if they could not be written."""
        if self._trace is None:
            try:
                self._trace = self._recorder.trace()
            finally:
                self._recorder.tidy()
            self.tally: RecordingTally = self._recorder.tally()
            if isinstance(self._recorder, ThreadsRecorderThere):
                self.anchors = self._recorder.anchors()
            self.offsets_ns = self._offsets_ns()
            told = (mark for mark in self._recorder.marks if not self._tids or mark.tid in self._tids)
            self.marks = sorted(told, key=lambda mark: mark.time_ns)
        return self._trace

    @property
    def end_ns(self) -> int | None:
        """When the recording ended, by the threads' clock; None: it broke off before, or that is not told."""
        self.trace()
        return None if self.tally.cut else self._recorder.end_ns

    def _offsets_ns(self) -> list[int]:
        """What real time and boot time show more than the monotonic clock, where the threads are."""
        if self._root.host == LOCAL:
            return [offset_ns(clock) for clock in (time.CLOCK_REALTIME, time.CLOCK_BOOTTIME)]
        others = ("realtime_ns", "boottime_ns") if self.anchors else ()
        return [self.anchors[name] - self.anchors["monotonic_ns"] for name in others]


@contextmanager
def _helped(name: str, group: str, root: Root) -> Iterator[int]:
    """The id of the helper, in whose mount namespace the instance is. Raises RtmeterError if it has none."""
    command = ["unshare", "--mount", "--propagation", "private", "/bin/sh", "-c", _HELPER, "sh", name, group]
    ssh = root.shell.ssh if isinstance(root, RemoteRoot) else None
    helper = subprocess.Popen(
        command if ssh is None else ssh.command(f"exec {join(command)}"),
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=None if ssh is None else subprocess.PIPE,
        text=True,
        start_new_session=True,
    )
    assert helper.stdin is not None and helper.stdout is not None
    try:
        said, _, pid = _first_line(helper, helper.stdout).strip().rpartition(" ")
        if said != "there" or not pid.isdecimal():
            said = f"{said} {pid}".strip()
            if ssh is not None and not said and helper.stderr is not None:  # which has ended
                code = _ended(helper)
                raise ssh.failed(helper.stderr.read(), code)
            remedy = "in a container, run it with --privileged; else see CONFIG_TRACING and dmesg"
            raise RtmeterError(f"gets no trace instance: {said}", field=FIELD, remedy=remedy)
        yield int(pid)
    finally:
        helper.stdin.close()
        _ended(helper)


def _first_line(helper: subprocess.Popen[str], stdout: IO[str]) -> str:
    """What it says at first; until then it may be killed, after that it has an instance to remove."""
    STARTED.add(helper.pid)
    try:
        ready, _, _ = select.select([stdout], [], [], _STARTS_S)
        return stdout.readline() if ready else f"its helper said nothing in {_STARTS_S} s"
    finally:
        STARTED.remove(helper.pid)


def _ended(helper: subprocess.Popen[str]) -> int:
    """Its exit code; it is killed if it does not end by itself."""
    with suppress(subprocess.TimeoutExpired):
        return helper.wait(_ENDS_S)
    kill_group(helper.pid)
    reap(helper)
    return -signal.SIGKILL


def place(root: Root, tracefs: str, group: str, probes: Sequence[str]) -> None:
    """Tells the kernel of probes, ``{group}`` in their lines filled in. Raises RtmeterError for what it
    refuses, or has not got."""
    file = f"{tracefs}/uprobe_events"
    if not root.exists(file):
        message = "this kernel has no uprobes: its tracefs has no uprobe_events"
        raise RtmeterError(message, field="--ros2", remedy="use a kernel with CONFIG_UPROBE_EVENTS")
    for line in probes:
        try:
            root.append(file, line.replace("{group}", group) + "\n")  # what others have there stays
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
    require_program("unshare", FIELD, root)
