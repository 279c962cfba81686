"""What the checks read: files under a root, and what several of them ask for."""

from __future__ import annotations

import contextlib
import os
import re
import zlib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Literal

from rtmeter.host.root import Root
from rtmeter.host.threads import Task, cpu_set, read_tasks
from rtmeter.machine.finding import Finding, Kind
from rtmeter.model import LOCAL
from rtmeter.values import Scheduling

Workload = Literal["cyclic", "roundtrip"]


_CPU = "/sys/devices/system/cpu"

DEFAULT_SCHEDULING = Scheduling("fifo", priority=80)


@dataclass(frozen=True, slots=True)
class Intent:
    """What is to be measured: on which CPUs (None: any), with which policy and priority, and whether it
    goes through the network; ``thread``: its id, of one that runs already, ``others``: of those beside it,
    any of which does the same."""

    cpus: tuple[int, ...] | None = None
    scheduling: Scheduling = DEFAULT_SCHEDULING
    workload: Workload = "cyclic"
    thread: int | None = None
    others: tuple[int, ...] = ()

    @property
    def threads(self) -> tuple[int, ...]:
        """All that run already."""
        return () if self.thread is None else (self.thread, *self.others)

    @property
    def rank(self) -> int:
        """As Task.rank."""
        return self.scheduling.rank

    @property
    def is_real_time(self) -> bool:
        """Whether it runs before every normal task."""
        return self.scheduling.policy != "other"


def parse_workload(value: object) -> Workload:
    """``cyclic`` or ``roundtrip``; raises ValueError as rtmeter.values does."""
    if value == "cyclic":
        return "cyclic"
    if value == "roundtrip":
        return "roundtrip"
    raise ValueError("is no workload", "choose cyclic or roundtrip")


class Machine:
    """The machine under a root, seen by what is intended on it; each file is read when first asked for."""

    def __init__(self, root: Root, intent: Intent) -> None:
        self.root, self.intent = root, intent

    def text(self, name: str) -> str | None:
        """The file without the white space around it, or None."""
        return self.root.read(name)

    def number(self, name: str) -> int | None:
        """The file's whole number; None if it has none."""
        found = self.text(name)
        return int(found) if found is not None and re.fullmatch(r"-?\d+", found) else None

    def exists(self, name: str) -> bool:
        """Whether there is such a file or folder, as far as can be seen."""
        try:
            return self.root.exists(name)
        except PermissionError:  # a folder on the way may not be entered
            return True

    def why_not(self, name: str) -> str:
        """Why the file cannot be read."""
        return f"{name} {'may not be read' if self.exists(name) else 'is not there'}"

    @property
    def process(self) -> str:
        """In /proc, whose control groups and CPUs count: the thread's, or those of this process, which what
        it starts has from it."""
        return "self" if self.intent.thread is None else str(self.intent.thread)

    @cached_property
    def online(self) -> frozenset[int]:
        """The CPUs that run."""
        return cpu_set(self.text(f"{_CPU}/online") or "")

    @cached_property
    def named_cpus(self) -> frozenset[int] | None:
        """The CPUs intended that there are, whether they run or are off; None if none are named."""
        if self.intent.cpus is None:
            return None
        return frozenset(cpu for cpu in self.intent.cpus if self._has_cpu(cpu))

    def _has_cpu(self, cpu: int) -> bool:
        return not self.online or cpu in self.online or self.exists(f"{_CPU}/cpu{cpu}/online")

    @cached_property
    def cpus(self) -> tuple[int, ...]:
        """The CPUs intended, those left out that do not run; all that run, if none are named."""
        if self.intent.cpus is None:
            return tuple(sorted(self.online))
        return tuple(cpu for cpu in self.intent.cpus if cpu in self.online or not self.online)

    @cached_property
    def architecture(self) -> str:
        """As uname -m of the programs there, or empty."""
        if self.root.host == LOCAL:
            return os.uname().machine
        return self.root.run(["uname", "-m"])[1].strip()

    @cached_property
    def release(self) -> str:
        """As uname -r, or empty."""
        return self.text("/proc/sys/kernel/osrelease") or ""

    @cached_property
    def kernel(self) -> tuple[int, int] | None:
        """Major and minor version; None if it cannot be read."""
        match = re.match(r"(\d+)\.(\d+)", self.release)
        return (int(match[1]), int(match[2])) if match else None

    @cached_property
    def command_line(self) -> tuple[str, ...]:
        """The words the kernel was booted with."""
        return tuple((self.text("/proc/cmdline") or "").split())

    @cached_property
    def config(self) -> Mapping[str, str] | None:
        """What the kernel was built with, options without CONFIG_; None if it cannot be read."""
        with contextlib.suppress(zlib.error):
            packed = self.root.read_bytes("/proc/config.gz") or b""
            return _options(zlib.decompress(packed, wbits=31).decode(errors="replace"))
        for name in (f"/boot/config-{self.release}", f"/lib/modules/{self.release}/config"):
            if (text := self.root.read(name)) is not None:
                return _options(text)
        return None

    def built_with(self, option: str) -> bool | None:
        """Whether the option is on; None if that cannot be read."""
        return None if self.config is None else self.config.get(option, "n") not in ("n", "0", "")

    @cached_property
    def is_preempt_rt(self) -> bool | None:
        """Whether it is a PREEMPT_RT kernel; None if nothing says so or otherwise."""
        version = self.text("/proc/sys/kernel/version")
        if self.text("/sys/kernel/realtime") == "1" or "PREEMPT_RT" in (version or ""):
            return True
        return self.built_with("PREEMPT_RT") if version is None else False

    @cached_property
    def tasks(self) -> tuple[Task, ...]:
        """Every thread that can be seen."""
        return tuple(read_tasks(self.root))

    @cached_property
    def sees_kernel_threads(self) -> bool:
        """False in a container with processes of its own: then tasks of the host are hidden."""
        return any(task.is_kernel for task in self.tasks)


def switch(machine: Machine, kind: Kind, option: str) -> Iterator[Finding]:
    """Found if the sysctl ``kernel.<id>`` is on; passed if the kernel is built without the option."""
    name = f"/proc/sys/kernel/{kind.id}"
    value = machine.number(name)
    if value is None and machine.built_with(option) is not False:
        yield kind.unknown(machine.why_not(name))
    elif value:
        yield kind.found(f"kernel.{kind.id} = {value}")


def _options(text: str) -> dict[str, str]:
    return dict(re.findall(r"^CONFIG_(\w+)=\"?([^\"\n]*)", text, re.MULTILINE))
