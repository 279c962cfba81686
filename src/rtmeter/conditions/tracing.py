"""A tracefs instance of the cell's own, and tracefs itself where it is not mounted."""

from __future__ import annotations

import errno
import re
import uuid
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from typing import ClassVar

from rtmeter.conditions.change import Change
from rtmeter.conditions.resources import MADE, Folder, Made, register
from rtmeter.errors import RtmeterError
from rtmeter.host.root import Root
from rtmeter.machine.surroundings import family
from rtmeter.model import LOCAL

SETTING = "explain"
USUAL = "/sys/kernel/tracing"
_OWNER = re.compile(r"rtmeter-(\d+)-")
_NAMESPACES = (
    ("pid", "pid:[4026531836]", "a PID namespace, where threads have other ids"),
    ("time", "time:[4026531834]", "a time namespace, where clocks show something else"),
)
_ON_THE_HOST = {
    "pid": "run rtmeter on the host, or the container with --pid=host",
    "time": "run rtmeter on the host",
}


@dataclass(frozen=True, slots=True)
class Mount(Made):
    """tracefs on a folder. One in which others have made instances since is theirs, and stays."""

    name: str
    kind: ClassVar[str] = "tracefs"

    def read(self, root: Root) -> str | None:
        if not root.exists(f"{self.name}/instances"):
            return None
        found = (name.rpartition("/")[2] for name in root.glob(f"{self.name}/instances/*"))
        users = [name for name in found if not _is_left(name, root)]
        return f"used by {', '.join(users)}" if users else MADE

    def same(self, one: str | None, other: str | None) -> bool:
        return (one is None) == (other is None)

    def is_ours(self, now: str, new: str) -> bool:
        return now == new

    def write(self, root: Root, value: str | None) -> None:
        # -l: lazily, as busybox has it too
        program = ["mount", "-t", "tracefs", "tracefs"] if value is not None else ["umount", "-l"]
        code, said = root.run([*program, self.name])
        if code != 0:
            raise OSError(errno.EPERM, said.strip() or "cannot be mounted", self.name)


@dataclass(frozen=True, slots=True)
class Instance(Folder):
    """An instance: buffers and switches of its own. Taking it away ends its recording."""

    kind: ClassVar[str] = "trace_instance"


register(Mount)
register(Instance)


def own_instance(root: Root) -> Iterator[Change]:
    """What an instance of our own takes here; the last change is the instance.

    Raises RtmeterError for what is missing.
    """
    require(root)
    mounted = _mounted(root)
    if mounted is None:
        remedy = "in a container, run it with --privileged; else see CONFIG_TRACEFS"
        yield Change(SETTING, Mount(USUAL), MADE, remedy)
    instance = Instance(f"{mounted or USUAL}/instances/rtmeter-{root.own_pid()}-{uuid.uuid4().hex[:12]}")
    yield Change(SETTING, instance, MADE, "see dmesg: the kernel makes no trace instance")


def sweep(root: Root) -> None:
    """Takes away instances of ours whose process is gone: of runs that were killed, and their journal with
    them."""
    for folder in root.glob(f"{_mounted(root) or USUAL}/instances/rtmeter-*"):
        if _is_left(folder.rpartition("/")[2], root):
            with suppress(OSError):  # another run was quicker, or somebody reads it
                root.remove_folder(folder)


def _is_left(instance: str, root: Root) -> bool:
    """Whether it is of an rtmeter that is gone."""
    owner = _OWNER.match(instance)
    return owner is not None and not root.exists(f"/proc/{owner[1]}")


def require(root: Root, setting: str = SETTING, value: str = "yes") -> None:
    """Raises RtmeterError, which names the setting, where the kernel's events cannot be had."""

    def missing(message: str, remedy: str) -> RtmeterError:
        return RtmeterError(message, field=setting, value=value, remedy=remedy)

    if not root.is_superuser():
        become = "run rtmeter as root (sudo)" if root.host == LOCAL else "log in there as root"
        raise missing("needs root: tracefs is root's alone", become)
    if "tracefs" not in (root.read("/proc/filesystems") or "").split():
        raise missing("finds no tracefs in this kernel", "use a kernel with CONFIG_TRACING, or leave it out")
    for namespace, initial, words in _NAMESPACES:
        name = root.real_path(f"/proc/self/ns/{namespace}").rpartition("/")[2]
        if name.startswith(f"{namespace}:") and name != initial:
            raise missing(f"is in {words} than in the kernel's events", _ON_THE_HOST[namespace])
    kernels = root.read("/proc/sys/kernel/arch")
    own = root.run(["uname", "-m"])[1].strip() if kernels else ""
    if kernels and family(kernels) != family(own):
        message = f"finds an emulated processor: programs are run as on {own}, and the kernel, whose events "
        message += f"are the emulator's, is of {kernels}"
        raise missing(message, "leave it out here, or measure on a machine of silicon")


def _mounted(root: Root) -> str | None:
    """Where tracefs is mounted; the usual place first."""
    mounts = [line.split() for line in (root.read("/proc/mounts") or "").splitlines()]
    found = [mount[1] for mount in mounts if len(mount) > 2 and mount[2] == "tracefs"]
    return USUAL if USUAL in found else next(iter(found), None)
