"""Priority of the critical traffic on this machine: queueing disciplines, and the cgroup net_prio."""

from __future__ import annotations

import errno
import re
import zlib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import ClassVar

from rtmeter.conditions.change import Change, refuse
from rtmeter.conditions.companion import require_program
from rtmeter.conditions.resources import MADE, Cgroup, Plain, register
from rtmeter.host.cgroups import find
from rtmeter.host.root import Root

_DEFAULT = "0:"  # the handle of a qdisc that nobody chose
_NO_DEVICE = re.compile(r"(can't|cannot) find device|cannot open network namespace .*no such file", re.I)


@dataclass(frozen=True, slots=True)
class Qdisc(Plain):
    """What queues the packets that a device sends; ``device``: ``eth0``, or ``NAMESPACE/eth0``.

    A value is its handle and its words as tc has them, ``7274: tbf rate 1Mbit burst 2Kb lat 50ms``. The
    handle that rtmeter gives derives from the words asked for, and so stands for them: tc writes them back
    in units of its own.
    """

    device: str
    kind: ClassVar[str] = "qdisc"

    @property
    def name(self) -> str:
        return f"root qdisc of {self.device}"

    def read(self, root: Root) -> str | None:
        """Raises OSError where tc does not tell: that is not the same as no such device."""
        try:
            shown = self._tc(root, "show")
        except OSError as error:
            if error.errno != errno.ENXIO:
                raise
            return None
        _, kind, handle, *rest = shown.split() or ["", "", _DEFAULT]
        return " ".join([handle, kind, *(rest[3:] if rest[:2] == ["root", "refcnt"] else rest)])

    def write(self, root: Root, value: str | None) -> None:
        if value is None or value.startswith(_DEFAULT):
            self._tc(root, "del")
        else:
            handle, *words = value.split()
            self._tc(root, "replace", "handle", handle, *words)

    def same(self, one: str | None, other: str | None) -> bool:
        return one == other or (None not in (one, other) and _identity(one) == _identity(other))

    def _tc(self, root: Root, verb: str, *words: str) -> str:
        """Raises OSError for what tc or the kernel refuses: ENXIO if there is no such device."""
        namespace, _, device = self.device.rpartition("/")
        within = ["-n", namespace] if namespace else []
        command = ["tc", *within, "qdisc", verb, "dev", device, "root", *words]
        try:
            code, printed = root.run(command)
        except FileNotFoundError:  # which of a resource means that it is gone
            raise OSError(errno.ENOPKG, "there is no program tc") from None
        if code == 0:
            return printed
        said = (printed.strip().splitlines() or ["tc does not say why"])[0].removeprefix("Error: ")
        if _NO_DEVICE.match(said):
            raise OSError(errno.ENXIO, said)
        raise OSError(errno.EPERM if "not permitted" in said else errno.EINVAL, said)


@dataclass(frozen=True, slots=True)
class SendPriority(Plain):
    """The priority of what the processes of a cgroup send by a device."""

    group: str
    device: str
    kind: ClassVar[str] = "net_prio"

    @property
    def name(self) -> str:
        return f"{self.device} in {self._file}"

    @property
    def _file(self) -> str:
        return f"{self.group}/net_prio.ifpriomap"

    def read(self, root: Root) -> str | None:
        lines = (root.read(self._file) or "").splitlines()
        return next((line.split()[1] for line in lines if line.split()[:1] == [self.device]), None)

    def write(self, root: Root, value: str | None) -> None:
        root.write(self._file, f"{self.device} {value or 0}")


register(Qdisc)
register(SendPriority)


def qdiscs(asked: Mapping[str, str], root: Root) -> Iterator[Change]:
    """Device → its root qdisc in the words of tc. One that somebody chose is not replaced."""
    require_program("tc", "conditions.qdisc", root)
    for device, words in asked.items():
        resource = Qdisc(device)
        value = f"{zlib.crc32(words.encode()) % 0xFFFE + 1:x}: {' '.join(words.split())}"
        namespace, slash, name = device.rpartition("/")
        within = f"-n {namespace} " if slash else ""
        try:
            now = resource.read(root)
        except OSError as error:
            remedy = f"see what `tc {within}qdisc show dev {name} root` says"
            why = error.strerror or str(error)
            raise refuse(f"qdisc.{device}", f"the qdisc of {device} cannot be read: {why}", remedy) from None
        if now is None:
            remedy = f"see `ip {within}link` for those that there are"
            raise refuse(f"qdisc.{device}", f"there is no network device {name}", remedy)
        if not now.startswith(_DEFAULT) and not resource.same(now, value):
            remedy = f"keep it and leave this out, or remove it first: tc {within}qdisc del dev {name} root"
            raise refuse(f"qdisc.{device}", f"{device} has a qdisc that somebody chose ({now})", remedy)
        yield Change(f"qdisc.{device}", resource, value, _remedy(words.split()[0]), needs="CAP_NET_ADMIN")


def net_prio(asked: Mapping[str, int], root: Root) -> Iterator[Change]:
    """Device → priority of what the measured process sends by it, in a cgroup (version 1) of its own."""
    groups = find("net_prio", root)
    if groups is None:
        known = "net_prio" in (root.read("/proc/cgroups") or "")
        folder = "/sys/fs/cgroup/net_prio"
        remedy = f"mkdir {folder} && mount -t cgroup -o net_prio net_prio {folder}"
        message = "the cgroup controller net_prio is not mounted"
        if not known:
            message, remedy = (
                "this kernel has no cgroup controller net_prio",
                "it needs CONFIG_CGROUP_NET_PRIO",
            )
        raise refuse("net_prio", message, remedy)
    remedy = "see which devices net_prio.ifpriomap names"
    yield Change("net_prio", Cgroup(groups.group), MADE, remedy)
    for device, priority in asked.items():
        resource = SendPriority(groups.group, device)
        yield Change(f"net_prio.{device}", resource, str(priority), remedy, covered=True)


def _identity(value: str | None) -> list[str]:
    """Handle and kind."""
    return (value or "").split()[:2]


def _remedy(kind: str) -> str:
    config = f"CONFIG_NET_SCH_{kind.upper()}"
    return f"see `man tc-{kind}` for its words; the kernel needs {config} (modprobe sch_{kind})"
