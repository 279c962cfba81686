"""The control groups that this process is in (cgroups(7); proc(5) for mountinfo)."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from rtmeter.machine.reading import Machine


@dataclass(frozen=True, slots=True)
class Group:
    """A group of version 1 or 2: where its hierarchy is mounted, and its path below that ("" at the
    top, else without a slash at its ends)."""

    version: int
    mount: str
    path: str

    @property
    def lineage(self) -> Iterator[str]:
        """The folders of the group and of all above it, as far as can be seen."""
        parts = self.path.split("/") if self.path else []
        for depth in range(len(parts), -1, -1):
            yield "/".join((self.mount, *parts[:depth]))


def own_group(machine: Machine, controller: str) -> Group | None:
    """The group that the controller puts this process in; None if it has none, or none can be read."""
    return _locate(machine, controller) or _locate(machine, "")


def _locate(machine: Machine, controller: str) -> Group | None:
    """In the version 1 hierarchy of the controller; if that is empty, in the one of version 2."""
    mounts = (line.split(" - ") for line in (machine.text("/proc/self/mountinfo") or "").splitlines())
    for place, kind in (mount for mount in mounts if len(mount) == 2):
        top, point = place.split()[3:5]
        filesystem, _, options = kind.split(maxsplit=2)
        if filesystem == "cgroup2" if not controller else controller in options.split(","):
            break
    else:
        return None
    for line in (machine.text("/proc/self/cgroup") or "").splitlines():
        _, controllers, path = line.split(":", 2)
        if controller in controllers.split(","):
            # A container sees a part of the hierarchy: what is mounted starts at its top.
            path = path.removeprefix(top) if top != "/" else path
            return Group(1 if controller else 2, point, path.strip("/"))
    return None
