"""Who ran on a CPU when a thread was woken: the scheduler's events, from a tracefs instance of its own."""

from __future__ import annotations

import os
import re
import subprocess
import tempfile
import uuid
from collections.abc import Iterable, Iterator, Sequence
from contextlib import ExitStack
from dataclasses import astuple, dataclass
from pathlib import Path
from types import TracebackType
from typing import NamedTuple, Self

_INITIAL_PID_NAMESPACE = "pid:[4026531836]"
_EVENTS = ("sched/sched_wakeup", "sched/sched_switch", "raw_syscalls/sys_enter")
_LINE = re.compile(
    r"-(?P<pid>\d+)\s+\[(?P<cpu>\d+)\]\s.*?: "
    r"(?P<name>sched_wakeup|sched_switch|sys_enter): (?P<rest>.*)"
)
_WOKEN = re.compile(r"pid=(\d+)")
_SWITCH = re.compile(r"prev_pid=(\d+) .*prev_state=(\S+) ==> .*next_pid=(\d+)")
_LOST = re.compile(r"^CPU:(\d+) \[LOST (\d+)? ?EVENTS\]")
_BUFFER_KIB = 16_384
"""For each CPU: some ten seconds."""


class UnavailableError(Exception):
    """Why the scheduler's events cannot be had."""


class Event(NamedTuple):
    """``wakeup`` of thread ``pid``; ``call``: ``pid`` enters a system call; ``switch`` from ``pid``, left in
    ``state`` (R: it could have gone on), to ``next_pid``; ``gap``: events did not fit into the buffer."""

    cpu: int
    name: str
    pid: int = 0
    state: str = ""
    next_pid: int = 0


@dataclass
class Waits:
    """Releases of a thread by what was on its CPU when it was woken, and how that gave way.

    ``releases``: all; ``preempted``: a watched thread, which could have gone on; ``slept``: one that went to
    sleep, at once or at the end of the system call it was in; ``ran_on``: one that came back to its own code
    and was let go on with it; ``elsewhere``: how often watched threads came to run on other CPUs; ``gaps`` in
    what was recorded: the release in each is not counted.
    """

    releases: int = 0
    preempted: int = 0
    slept: int = 0
    ran_on: int = 0
    elsewhere: int = 0
    gaps: int = 0

    def __add__(self, other: Waits) -> Waits:
        return Waits(*(one + two for one, two in zip(astuple(self), astuple(other), strict=True)))


class Trace:
    """An instance of tracefs, made with its buffers when it is opened. Needs root."""

    def __enter__(self) -> Self:
        with ExitStack() as undo:
            self._folder = self._instance(undo)
            self._write("tracing_on", "0")
            self._write("buffer_size_kb", str(_BUFFER_KIB))
            self._undo = undo.pop_all()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._undo.close()

    def record(self, measured: int, watched: Sequence[int]) -> None:
        """Begins to record what concerns a thread and others of its process."""
        self._write("events/sched/sched_wakeup/filter", f"pid == {measured}")
        all_of_them = [measured, *watched]
        self._write("events/sched/sched_switch/filter", _either(("prev_pid", "next_pid"), all_of_them))
        self._write("events/raw_syscalls/sys_enter/filter", _either(("common_pid",), watched))
        for event in _EVENTS:
            self._write(f"events/{event}/enable", "1")
        self._write("tracing_on", "1")

    def _instance(self, undo: ExitStack) -> Path:
        if os.geteuid() != 0:
            raise UnavailableError("the scheduler's events need root")
        if str(Path("/proc/self/ns/pid").readlink()) != _INITIAL_PID_NAMESPACE:
            raise UnavailableError("in a PID namespace threads have other ids than in the scheduler's events")
        mounts = [line.split() for line in Path("/proc/mounts").read_text().splitlines()]
        root = next((Path(m[1]) for m in mounts if m[2] == "tracefs"), None)
        if root is None:
            root = Path(tempfile.mkdtemp(prefix="tracefs-"))
            undo.callback(root.rmdir)
            done = subprocess.run(["mount", "-t", "tracefs", "none", root], capture_output=True, text=True)
            if done.returncode != 0:
                raise UnavailableError(f"tracefs cannot be mounted: {done.stderr.strip()}")
            undo.callback(subprocess.run, ["umount", root], check=True)
        missing = [event for event in _EVENTS if not (root / "events" / event).is_dir()]
        if missing:
            raise UnavailableError(f"the kernel has no trace event {missing[0]}")
        folder = root / "instances" / f"rtmeter-{os.getpid()}-{uuid.uuid4()}"
        folder.mkdir()
        undo.callback(folder.rmdir)
        return folder

    def _write(self, name: str, text: str) -> None:
        (self._folder / name).write_text(text)

    def events(self) -> list[Event]:
        """What was recorded since it was asked last: each CPU's events in their order.

        Nothing is recorded meanwhile: on a busy machine more would come than can be read.
        """
        self._write("tracing_on", "0")
        pipes = sorted((self._folder / "per_cpu").glob("cpu*/trace_pipe"))
        found = [event for pipe in pipes for event in parsed(_drained(pipe))]
        self._write("tracing_on", "1")
        return found


def _drained(pipe: Path) -> list[str]:
    """The lines that are there; it does not wait for more."""
    parts = []
    file = os.open(pipe, os.O_RDONLY | os.O_NONBLOCK)
    try:
        while part := os.read(file, 1 << 16):
            parts.append(part)
    except BlockingIOError:
        pass
    finally:
        os.close(file)
    return b"".join(parts).decode(errors="replace").splitlines()


def _either(fields: Iterable[str], pids: Iterable[int]) -> str:
    pids = list(pids)
    return " || ".join(f"{field} == {pid}" for field in fields for pid in pids)


def parsed(lines: Iterable[str]) -> Iterator[Event]:
    """The events in lines of a trace."""
    for line in lines:
        if gap := _LOST.match(line):
            yield Event(int(gap[1]), "gap")
        if (found := _LINE.search(line)) is None:
            continue
        cpu, rest = int(found["cpu"]), found["rest"]
        if found["name"] == "sys_enter":
            yield Event(cpu, "call", int(found["pid"]))
        elif found["name"] == "sched_wakeup" and (woken := _WOKEN.search(rest)):
            yield Event(cpu, "wakeup", int(woken[1]))
        elif switch := _SWITCH.search(rest):
            yield Event(cpu, "switch", int(switch[1]), switch[2], int(switch[3]))


def waits_in(events: Iterable[Event], measured: int, watched: Iterable[int], cpu: int) -> Waits:
    """Counts over events, those of each CPU in their order; ``cpu`` is the measured thread's.

    The kernel looks for a better task whenever a thread is to return to its own code
    (exit_to_user_mode_loop), whatever the preemption model. So one that enters two system calls after the
    measured thread was woken on its CPU was let go on: only the first may have begun before.
    """
    waits, watched = Waits(), frozenset(watched)
    woken, calls = False, 0
    for event in events:
        if event.cpu != cpu:
            waits.elsewhere += event.name == "switch" and event.next_pid in watched
        elif event.name == "gap":
            waits.gaps, woken = waits.gaps + 1, False
        elif event.name == "wakeup":
            woken, calls = True, 0
        elif event.name == "call":
            calls += 1
        elif event.next_pid == measured and woken:
            woken = False
            waits.releases += 1
            if calls > 1:
                waits.ran_on += 1
            elif event.pid in watched and event.state.startswith("R"):
                waits.preempted += 1
            elif event.pid in watched:
                waits.slept += 1
    return waits
