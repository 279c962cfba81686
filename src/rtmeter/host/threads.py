"""The threads of the machine, as /proc shows them (proc(5))."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from rtmeter.host.root import Root
from rtmeter.values import Scheduling, parse_cpus

POLICIES = {0: "other", 1: "fifo", 2: "rr", 3: "batch", 5: "idle", 6: "deadline", 7: "ext"}

_KERNEL_THREAD = 0x0020_0000
_NO_SET_AFFINITY = 0x0400_0000
"""PF_KTHREAD and PF_NO_SETAFFINITY in the flags of stat."""

_PPID, _FLAGS, _START, _LAST_CPU, _PRIORITY, _POLICY = 1, 6, 19, 36, 37, 38
"""Places in stat, from the state on, which is 0 (proc_pid_stat(5) counts it as 3)."""


@dataclass(frozen=True, slots=True)
class Task:
    """A thread: its ids, name, whether it is the kernel's and bound to its CPUs, how it is scheduled,
    where it ran last; ``start``, in ticks since boot, tells it from a later one of the same id."""

    pid: int
    tid: int
    name: str
    is_kernel: bool
    is_bound: bool
    state: str
    policy: str
    priority: int
    last_cpu: int
    start: int

    @property
    def rank(self) -> int:
        """As Scheduling.rank."""
        return Scheduling(self.policy, self.priority).rank

    @property
    def scheduling(self) -> str:
        """``fifo:50``, ``other``."""
        return f"{self.policy}:{self.priority}" if self.policy in ("fifo", "rr") else self.policy


def read_tasks(root: Root) -> Iterator[Task]:
    """Every thread that /proc shows; one that ends meanwhile is left out."""
    for path, stat in root.read_all(root.glob("/proc/[0-9]*/task/[0-9]*/stat")).items():
        pid, _, tid, _ = path.rsplit("/", 4)[1:]
        task = _parse(int(pid), int(tid), stat)
        if task is not None:
            yield task


def read_task(root: Root, tid: int) -> Task | None:
    """The thread of that id; None if it has ended."""
    status = root.read(f"/proc/{tid}/status") or ""
    pid = next((int(line.split()[1]) for line in status.splitlines() if line.startswith("Tgid:")), tid)
    return _parse(pid, tid, root.read(f"/proc/{tid}/stat") or "")


def allowed_cpus(root: Root, task: Task) -> frozenset[int] | None:
    """The CPUs that it may run on; None if it has ended, or its status cannot be read."""
    text = root.read(f"/proc/{task.pid}/task/{task.tid}/status") or ""
    key = "Cpus_allowed_list:"
    return next((cpu_set(line.removeprefix(key)) for line in text.splitlines() if line.startswith(key)), None)


def cpu_set(text: str | None) -> frozenset[int]:
    """The kernel's lists of CPUs; none in what is no such list: it may be empty, or ``(null)``."""
    try:
        return frozenset(parse_cpus(text))
    except ValueError:
        return frozenset()


def _parse(pid: int, tid: int, stat: str) -> Task | None:
    """The name stands in brackets and may hold anything, also brackets."""
    opening, closing = stat.find("("), stat.rfind(")")
    fields = stat[closing + 1 :].split()
    if opening < 0 or len(fields) <= _POLICY:
        return None
    flags = int(fields[_FLAGS])
    return Task(
        pid=pid,
        tid=tid,
        name=stat[opening + 1 : closing],
        is_kernel=bool(flags & _KERNEL_THREAD),
        is_bound=bool(flags & _NO_SET_AFFINITY),
        state=fields[0],
        policy=POLICIES.get(int(fields[_POLICY]), fields[_POLICY]),
        priority=int(fields[_PRIORITY]),
        last_cpu=int(fields[_LAST_CPU]),
        start=int(fields[_START]),
    )
