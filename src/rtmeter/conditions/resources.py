"""What of a machine can be changed, read back and put back: files, threads, groups. All values are text.

A resource that is not there reads as None. Its ``to_json`` is what the journal keeps of it.
"""

from __future__ import annotations

import errno
from collections.abc import Mapping
from dataclasses import Field, asdict, dataclass, fields
from typing import Any, ClassVar, Literal, Protocol

from rtmeter.host.cgroups import GROUP
from rtmeter.host.root import Root
from rtmeter.host.threads import Task, allowed_cpus, cpu_set, read_task
from rtmeter.values import format_cpus

MADE = "made"
"""The value of a group that is there."""


class Resource(Protocol):
    """One thing that has one value."""

    @property
    def kind(self) -> str:
        """How the journal names its class."""

    @property
    def name(self) -> str:
        """What a person knows it by."""

    def read(self, root: Root) -> str | None:
        """Its value now; None if it is not there. Raises OSError if that cannot be told."""

    def write(self, root: Root, value: str | None) -> None:
        """Changes it; None takes away what it had made. Raises OSError for what the kernel refuses."""

    def same(self, one: str | None, other: str | None) -> bool:
        """Whether two values mean the same."""

    def is_ours(self, now: str, new: str) -> bool:
        """Whether its value now comes of rtmeter's having set it to ``new``."""


class Plain:
    """A resource whose values are compared as text."""

    __slots__ = ()

    def same(self, one: str | None, other: str | None) -> bool:
        return one == other

    def is_ours(self, now: str, new: str) -> bool:
        return self.same(now, new)


@dataclass(frozen=True, slots=True)
class File(Plain):
    """A file of the kernel; ``seen`` is the file that tells what was written, if that is another one."""

    name: str
    form: Literal["text", "cpus", "mask"] = "text"
    seen: str = ""
    kind: ClassVar[str] = "file"

    def read(self, root: Root) -> str | None:
        return root.read(self.seen or self.name)

    def write(self, root: Root, value: str | None) -> None:
        root.write(self.name, (value or "") + "\n")

    def same(self, one: str | None, other: str | None) -> bool:
        if one is None or other is None or self.form == "text":
            return one == other
        return self._cpus(one) == self._cpus(other)

    def _cpus(self, text: str) -> frozenset[int]:
        if self.form == "cpus":
            return cpu_set(text)
        bits = int(text.replace(",", "") or "0", 16)
        return frozenset(cpu for cpu in range(bits.bit_length()) if bits >> cpu & 1)


@dataclass(frozen=True, slots=True)
class ThreadResource(Plain):
    """A thread; ``start`` tells it from a later one of the same id."""

    tid: int
    start: int
    comm: str

    @property
    def name(self) -> str:
        return f"{self.comm} (thread {self.tid})"

    def _task(self, root: Root) -> Task | None:
        """None if it has ended, also if another one has its id by now."""
        task = read_task(root, self.tid)
        return task if task is not None and task.start == self.start else None


@dataclass(frozen=True, slots=True)
class Policy(ThreadResource):
    """The scheduling policy of a thread: ``fifo:50``, ``other``."""

    kind: ClassVar[str] = "policy"

    def read(self, root: Root) -> str | None:
        task = self._task(root)
        return task.scheduling if task else None

    def write(self, root: Root, value: str | None) -> None:
        policy, _, priority = (value or "").partition(":")
        if policy not in ("other", "fifo", "rr", "batch", "idle"):
            raise OSError(errno.EINVAL, f"{policy} is no policy that rtmeter sets")
        root.set_policy(self.tid, policy, int(priority or 0))


@dataclass(frozen=True, slots=True)
class Affinity(ThreadResource):
    """The CPUs of a thread; ``widened``: those of its cpuset, which the kernel (before 6.2) gives it when
    that changes, whatever it had chosen before."""

    widened: str = ""
    kind: ClassVar[str] = "affinity"

    def read(self, root: Root) -> str | None:
        task = self._task(root)
        cpus = allowed_cpus(root, task) if task else None
        return None if cpus is None else format_cpus(cpus)

    def write(self, root: Root, value: str | None) -> None:
        root.set_affinity(self.tid, cpu_set(value))

    def same(self, one: str | None, other: str | None) -> bool:
        return one == other or (None not in (one, other) and cpu_set(one) == cpu_set(other))

    def is_ours(self, now: str, new: str) -> bool:
        return self.same(now, new) or self.same(now, self.widened)


@dataclass(frozen=True, slots=True)
class Controller(Plain):
    """Whether a cgroup (v2) hands a controller on to its groups: ``+`` or ``-``. One that others' groups use
    by now is theirs, and stays."""

    file: str
    controller: str
    kind: ClassVar[str] = "controller"

    @property
    def name(self) -> str:
        return f"{self.controller} in {self.file}"

    def read(self, root: Root) -> str | None:
        text = root.read(self.file)
        if text is None or self.controller not in text.split():
            return None if text is None else "-"
        users = ", ".join(self._users(root))
        return f"+, used by {users}" if users else "+"

    def same(self, one: str | None, other: str | None) -> bool:
        return (one or "")[:1] == (other or "")[:1]

    def is_ours(self, now: str, new: str) -> bool:
        return now == new

    def _users(self, root: Root) -> list[str]:
        """Groups below, but for rtmeter's own, that hand it on, or were given CPUs by it."""
        found = set()
        for file in ["cgroup.subtree_control", *(["cpuset.cpus"] if self.controller == "cpuset" else [])]:
            for one in root.glob(f"{self.file.rpartition('/')[0]}/*/{file}"):
                said, group = (root.read(one) or "").split(), one.split("/")[-2]
                used = self.controller in said if file.startswith("cgroup") else said
                if used and group != GROUP:
                    found.add(group)
        return sorted(found)

    def write(self, root: Root, value: str | None) -> None:
        root.write(self.file, f"{value}{self.controller}\n")


class Made(Plain):
    """What rtmeter makes, and takes away again: nothing of that name may be there before."""

    __slots__ = ()


@dataclass(frozen=True, slots=True)
class Folder(Made):
    """One that the kernel fills when it is made, and that is taken away as it is."""

    name: str

    def read(self, root: Root) -> str | None:
        return MADE if root.exists(self.name) else None

    def write(self, root: Root, value: str | None) -> None:
        if value is not None:
            root.make_folder(self.name)
        else:
            self.empty(root)
            root.remove_folder(self.name)

    def empty(self, root: Root) -> None:
        """Before it is taken away."""


@dataclass(frozen=True, slots=True)
class Cgroup(Folder):
    """A cgroup that rtmeter makes; taking it away moves whoever is in it to the group above."""

    kind: ClassVar[str] = "group"

    def empty(self, root: Root) -> None:
        move_all(root, self.name, self.name.rpartition("/")[0])


def members(group: str, root: Root) -> tuple[str, list[str]]:
    """The file of the group that takes members one by one, and who they are: threads (v1), else processes."""
    file = "tasks" if root.exists(f"{group}/tasks") else "cgroup.procs"
    return file, (root.read(f"{group}/{file}") or "").split()


def move_all(root: Root, source: str, target: str) -> None:
    """Moves all members. Raises OSError for the first that may not be moved; who has ended is no matter."""
    file, who = members(source, root)
    for member in who:
        try:
            root.write(f"{target}/{file}", member)
        except ProcessLookupError:
            continue


_KINDS: dict[str, type[Any]] = {kind.kind: kind for kind in (File, Policy, Affinity, Controller, Cgroup)}


def register(kind: type[Any]) -> None:
    """Lets the journal hold resources of another class."""
    _KINDS[kind.kind] = kind


def to_json(resource: Resource) -> dict[str, Any]:
    """What the journal keeps of it."""
    kept: dict[str, Any] = asdict(resource)  # type: ignore[call-overload]
    return {"kind": resource.kind} | kept


def _is_of(field: Field[Any], value: object) -> bool:
    """Whether the value may be one of the field, whose types are all int or texts."""
    return type(value) is (int if field.type == "int" else str)


def from_json(kept: Mapping[str, Any]) -> Resource:
    """The resource again. Raises ValueError if it is none."""
    given = dict(kept)
    kind = _KINDS.get(str(given.pop("kind", None)))
    try:
        if kind is None or not all(
            _is_of(field, given[field.name]) for field in fields(kind) if field.name in given
        ):
            raise TypeError
        resource: Resource = kind(**given)
    except TypeError:
        raise ValueError("is of no kind that this rtmeter knows") from None
    return resource
