"""Processes of a machine, as /proc shows them: who is in a group, who is whose child, and what they took."""

from __future__ import annotations

import os
from collections.abc import Iterable
from dataclasses import dataclass

from rtmeter.host.root import Root

_TICK_S = 1 / os.sysconf("SC_CLK_TCK")
_PF_KTHREAD = 0x00200000  # of the kernel's include/linux/sched.h; /proc shows the flags


@dataclass(frozen=True, slots=True)
class Process:
    """A process: the processor time that it took, and with its reaped children (``with_children_s``).

    ``started``: the clock tick since boot at which it was made; a number is given again, with this it is not.
    ``of_kernel``: a thread of the kernel's; ``ended``: a zombie, which its parent has not reaped yet.
    """

    pid: int
    name: str
    parent: int
    group: int
    started: int
    cpu_s: float
    with_children_s: float
    of_kernel: bool = False
    ended: bool = False


def everyone(root: Root, *, zombies: bool = False) -> list[Process]:
    """All processes; zombies only where they are asked for."""
    found = _processes(root.glob("/proc/[0-9]*/stat"), root)
    return found if zombies else [process for process in found if not process.ended]


def members(group: int, root: Root) -> list[Process]:
    """The processes of a process group, zombies left out."""
    return [process for process in everyone(root) if process.group == group]


def children(pid: int, root: Root) -> int:
    """How many direct children a process has that live."""
    listed = root.read(f"/proc/{pid}/task/{pid}/children")
    if listed is None:  # it is gone, or the kernel has no such list
        return sum(process.parent == pid for process in members(pid, root))
    found = _processes([f"/proc/{child}/stat" for child in listed.split()], root)
    return sum(not process.ended for process in found)


def processor_s(group: int, root: Root) -> float:
    """Processor time that all of a process group took so far, in seconds."""
    return sum(process.with_children_s for process in members(group, root))


def _processes(files: Iterable[str], root: Root) -> list[Process]:
    found = (_process(int(file.split("/")[2]), text) for file, text in root.read_all(files).items())
    return [process for process in found if process is not None]


def _process(pid: int, stat: str) -> Process | None:
    """The process; None if it is gone."""
    head, _, rest = stat.rpartition(")")
    fields = rest.split()
    if not fields or fields[0] == "X":
        return None
    own, reaped = (sum(map(int, fields[at : at + 2])) * _TICK_S for at in (11, 13))
    name = head.partition("(")[2]
    of_kernel, ended = bool(int(fields[6]) & _PF_KTHREAD), fields[0] == "Z"
    times = (own, own + reaped)
    return Process(pid, name, int(fields[1]), int(fields[2]), int(fields[19]), *times, of_kernel, ended)
