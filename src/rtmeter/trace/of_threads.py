"""Records what the kernel tells of some threads only, with the functions of the timers that wake them."""

from __future__ import annotations

import shutil
import time
from collections.abc import Collection, Iterator
from dataclasses import replace
from importlib import resources
from itertools import pairwise
from pathlib import Path

from rtmeter.explain.marks import Mark
from rtmeter.host.root import Root
from rtmeter.model import LOCAL
from rtmeter.trace.formats import Format
from rtmeter.trace.recorded import Recorded
from rtmeter.trace.recorder import Recorder

FUNCTIONS = (
    *("hrtimer_wakeup", "alarmtimer_fired", "timerfd_tmrproc", "posix_timer_fn", "it_real_fn"),
    *("io_cqring_timer_wakeup", "io_cqring_min_timer_wakeup", "io_timeout_fn", "dl_task_timer"),
)
TICKS = (
    *("tick_sched_timer", "tick_nohz_handler", "hrtick", "watchdog_timer_fn", "perf_swevent_hrtimer"),
    *("sched_rt_period_timer", "sched_cfs_period_timer", "sched_cfs_slack_timer"),
)
"""The kernel's own clock, what it shares out by time and what profilers look by, which wake nobody: their
events are not recorded."""

_MOST_RANGES = 40
"""Of ids in a filter, of which the kernel takes less than a page (4 KiB): two fields and ids of seven digits
make 92 bytes of each."""

_CALLS = ("raw_syscalls/sys_enter", "raw_syscalls/sys_exit")
_SYMBOLS = "/proc/kallsyms"
_GREPPED = [word for name in (*FUNCTIONS, *TICKS) for word in ("-e", name)]
"""What a machine far away looks for itself, in some 10 MB."""


class ThreadsRecorder(Recorder):
    """As Recorder, of the threads ``tids`` alone; where their ids are more ranges than a filter takes, of
    threads between some of them, too. ``is_32_bit``: their system calls have other numbers."""

    most_bytes = 4 << 30

    def __init__(
        self,
        instance: str,
        folder: Path,
        measured_cpus: set[int],
        root: Root,
        tids: Collection[int],
        *,
        is_32_bit: bool = False,
    ) -> None:
        super().__init__(instance, folder, measured_cpus, root)
        self._tids = tuple(tids)
        self.is_32_bit = is_32_bit
        self._functions = functions_of(root)
        self.also: int | None = None
        """One more thread, whose system calls are recorded until leave_out()."""
        self.probes: str | None = None
        """The group of probes of the program's own functions, if there are some; without threads they are all
        that is recorded, of every process."""
        self.marks: list[Mark] = []
        """What they told, once trace() has ended."""
        self.end_ns: int | None = None
        """When it was ended, by the threads' clock; None: that is not told."""

    def stop(self) -> None:
        """Ends the recording and reads the rest."""
        self.end_ns = time.monotonic_ns()
        super().stop()

    def _enabled(self) -> Iterator[Format]:
        if self.probes is not None:
            events = self._root.glob(self._file(f"events/{self.probes}/*/format"))
            names = ("/".join(event.split("/")[-3:-1]) for event in events)
            yield from self._enable(dict.fromkeys(names, self._of("common_pid") if self._tids else ""))
        if not self._tids:
            return
        ticks = [address for address, name in self._functions.items() if name in TICKS]
        no_tick = " && ".join(f"function != {address:#x}" for address in ticks)
        yield from self._enable(
            {
                "sched/sched_switch": self._of("prev_pid", "next_pid"),
                "sched/sched_waking": self._of("pid"),
                **dict.fromkeys(_CALLS, self._of("common_pid", also=self.also)),
                "timer/hrtimer_start": no_tick,
                "timer/hrtimer_expire_entry": no_tick,
                "timer/hrtimer_expire_exit": "",
            }
        )

    def leave_out(self) -> None:
        """From now on records of the threads alone."""
        for call in _CALLS:
            if self._tids and self._root.exists(self._file(f"events/{call}")):
                self._write(f"events/{call}/filter", self._of("common_pid"))

    def tidy(self) -> None:
        """Removes the pages' files, and their folder."""
        shutil.rmtree(self._folder, ignore_errors=True)

    def _of(self, *fields: str, also: int | None = None) -> str:
        ranges = ranges_of(self._tids if also is None else (*self._tids, also))
        return " || ".join(_within(field, *ids) for ids in ranges for field in fields)

    def _told_beside(self, recorded: Recorded) -> Recorded:
        calls = recorded.calls
        if self.is_32_bit:
            calls = call_names_32(self._architecture())
        functions = {a: name for a, name in self._functions.items() if name in FUNCTIONS}
        return replace(recorded, calls=calls, functions=functions, marks=self.marks)


def ranges_of(ids: Collection[int], most: int = _MOST_RANGES) -> list[tuple[int, int]]:
    """The first and last of each run of ids that follow one another; if these are too many, of runs that have
    the narrowest gaps in them."""
    found = sorted(set(ids))
    gaps = [at for at in range(1, len(found)) if found[at] - found[at - 1] > 1]
    widest = sorted(gaps, key=lambda at: found[at - 1] - found[at])[: most - 1]
    return [(found[begin], found[end - 1]) for begin, end in pairwise([0, *sorted(widest), len(found)])]


def _within(field: str, first: int, last: int) -> str:
    return f"{field} == {first}" if first == last else f"{field} >= {first} && {field} <= {last}"


def functions_of(root: Root) -> dict[int, str]:
    """Addresses of the functions that timers call, and their names; empty where the kernel hides them."""
    found = {}
    text = (
        root.read(_SYMBOLS) or "" if root.host == LOCAL else root.run(["grep", "-F", *_GREPPED, _SYMBOLS])[1]
    )
    for line in text.splitlines():
        words = line.split()
        if len(words) == 3 and words[2] in (*FUNCTIONS, *TICKS) and int(words[0], 16):
            found[int(words[0], 16)] = words[2]
    return found


def call_names_32(architecture: str) -> list[str]:
    """Names of the system calls of 32-bit programs by number; none where they are not known."""
    names = {"x86_64": "i386"}
    file = resources.files("rtmeter.trace") / "calls" / f"{names.get(architecture, '')}.txt"
    return [name.removesuffix("_time64") for name in file.read_text().split()] if file.is_file() else []
