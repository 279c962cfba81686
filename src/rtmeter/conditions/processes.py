"""Processes of a machine, as /proc shows them: who is in a group, who is whose child, and what they took."""

from __future__ import annotations

import os
from collections.abc import Iterable
from dataclasses import dataclass

from rtmeter.host.root import Root

_TICK_S = 1 / os.sysconf("SC_CLK_TCK")


@dataclass(frozen=True, slots=True)
class Member:
    """A living process of a group, with the processor time that it and its reaped children took."""

    pid: int
    parent: int
    group: int
    cpu_s: float


def members(group: int, root: Root) -> list[Member]:
    """The processes of a process group, zombies left out."""
    return [member for member in _members(root.glob("/proc/[0-9]*/stat"), root) if member.group == group]


def children(pid: int, root: Root) -> int:
    """How many direct children a process has that live."""
    listed = root.read(f"/proc/{pid}/task/{pid}/children")
    if listed is None:  # it is gone, or the kernel has no such list
        return sum(member.parent == pid for member in members(pid, root))
    return len(_members([f"/proc/{child}/stat" for child in listed.split()], root))


def processor_s(group: int, root: Root) -> float:
    """Processor time that all of a process group took so far, in seconds."""
    return sum(member.cpu_s for member in members(group, root))


def _members(files: Iterable[str], root: Root) -> list[Member]:
    found = (_member(int(file.split("/")[2]), text) for file, text in root.read_all(files).items())
    return [member for member in found if member is not None]


def _member(pid: int, stat: str) -> Member | None:
    """The process; None if it is gone, or a zombie."""
    fields = stat.rpartition(")")[2].split()
    if not fields or fields[0] in "ZX":
        return None
    return Member(pid, int(fields[1]), int(fields[2]), sum(map(int, fields[11:15])) * _TICK_S)
