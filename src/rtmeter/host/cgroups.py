"""Where the cgroups of a controller are: their mount, and the group that this process is in."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from rtmeter.host.root import Root

GROUP = "rtmeter"
"""The group of the measured process; there is one, as one rtmeter measures a machine at a time."""

HOUSEKEEPING = "rtmeter-housekeeping"
"""The group of everything else, where that is moved away (version 1)."""


@dataclass(frozen=True, slots=True)
class Hierarchy:
    """The cgroups of a controller: version 1 or 2, its mount, and ``own``, the process's group."""

    controller: str
    version: int
    mount: str
    own: str

    @property
    def group(self) -> str:
        """Where the group of the measured process is made. Under version 2 the groups with processes have
        no groups below them, so there it is made at the top."""
        return f"{self.own if self.version == 1 else self.mount}/{GROUP}"

    def above(self) -> list[str]:
        """The process's group and those above it, from the mount down."""
        names = self.own.removeprefix(self.mount).strip("/").split("/")
        return [self.mount, *("/".join([self.mount, *names[: n + 1]]) for n in range(len(names)) if names[n])]


def find(controller: str, root: Root, process: str = "self") -> Hierarchy | None:
    """The controller's hierarchy, version 1 before 2; None if this machine shows none. ``process``: its name
    in /proc."""
    paths = _own_paths(root, process)
    mounts = list(_mounts(root))
    for inside, mount, kind, options in mounts:
        if kind == "cgroup" and controller in options:
            return Hierarchy(controller, 1, mount, _own(mount, inside, paths.get(controller, "/")))
    for inside, mount, kind, _ in mounts:
        if kind == "cgroup2" and controller in (root.read(f"{mount}/cgroup.controllers") or "").split():
            return Hierarchy(controller, 2, mount, _own(mount, inside, paths.get("", "/")))
    return None


def _mounts(root: Root) -> Iterator[tuple[str, str, str, list[str]]]:
    """Root within the hierarchy, mount point, type and super options of each cgroup mount."""
    for line in (root.read("/proc/self/mountinfo") or "").splitlines():
        before, _, after = line.partition(" - ")
        place, about = before.split(), after.split()
        if len(place) > 4 and len(about) > 2 and about[0] in ("cgroup", "cgroup2"):
            yield place[3], place[4], about[0], about[2].split(",")


def _own_paths(root: Root, process: str) -> dict[str, str]:
    """Controller ("" for version 2) → the group's path in its hierarchy."""
    paths: dict[str, str] = {}
    for line in (root.read(f"/proc/{process}/cgroup") or "").splitlines():
        _, _, about = line.partition(":")
        controllers, _, path = about.partition(":")
        paths |= dict.fromkeys(controllers.split(","), path)
    return paths


def _own(mount: str, inside: str, path: str) -> str:
    """A group that the mount does not show is taken for the one at its top."""
    top, group = (f"{name.rstrip('/')}/" for name in (inside, path))
    below = group.removeprefix(top).strip("/")
    hidden = not group.startswith(top) or ".." in group.split("/")
    return mount if hidden or not below else f"{mount}/{below}"
