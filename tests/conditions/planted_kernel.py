"""A machine in a folder whose files behave as the kernel's do: groups, members, threads, refusals."""

from __future__ import annotations

import errno
import os
import shutil
import signal
from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path

from rtmeter.host.root import Root
from rtmeter.host.threads import cpu_set
from rtmeter.values import format_cpus

CPUSET, CPU, V2 = "/sys/fs/cgroup/cpuset", "/sys/fs/cgroup/cpu", "/sys/fs/cgroup"
IRQS = {24: "acpi", 30: "eth0-rx-0", 31: "eth0-tx-0", 40: "nvme0q1"}
_POLICY_NUMBERS = {"other": 0, "fifo": 1, "rr": 2, "batch": 3, "idle": 5}
_KERNEL, _BOUND = 0x0020_0000, 0x0400_0000

FILES = {
    "/proc/sys/kernel/random/boot_id": "boot-1",
    "/proc/sys/kernel/sched_rt_runtime_us": "950000",
    "/proc/sys/kernel/sched_rt_period_us": "1000000",
    "/proc/sys/kernel/timer_migration": "1",
    "/sys/kernel/debug/sched/fair_server/cpu0/runtime": "50000000",
    "/sys/kernel/debug/sched/fair_server/cpu1/runtime": "50000000",
    "/sys/devices/system/cpu/online": "0-3",
    "/sys/devices/virtual/workqueue/cpumask": "f",
    "/sys/devices/virtual/workqueue/cpumask_requested": "f",
    "/sys/devices/virtual/workqueue/writeback/cpumask": "f",
    "/sys/devices/system/cpu/cpufreq/policy0/scaling_governor": "powersave",
    "/sys/devices/system/cpu/cpufreq/policy0/scaling_available_governors": "performance powersave",
    "/sys/devices/system/cpu/cpufreq/policy2/scaling_governor": "schedutil",
    "/sys/devices/system/cpu/cpufreq/policy2/scaling_available_governors": "performance schedutil",
    "/sys/class/net/eth0/device/msi_irqs/30": "msi",
} | {f"/proc/irq/{irq}/smp_affinity_list": "0-3" for irq in IRQS}

MOUNTS = {
    1: f"30 25 0:26 / {CPUSET} rw - cgroup cgroup rw,cpuset\n31 25 0:27 / {CPU} rw - cgroup cgroup rw,cpu",
    2: f"30 25 0:26 / {V2} rw - cgroup2 cgroup2 rw",
}
GROUPS = {
    1: {
        f"{CPUSET}/cpuset.cpus": "0-3",
        f"{CPUSET}/cpuset.mems": "0",
        f"{CPUSET}/tasks": "1\n2\n14\n15\n50\n700\n701",
        f"{CPUSET}/docker/cpuset.cpus": "0-3",
        f"{CPUSET}/docker/cpuset.mems": "0",
        f"{CPUSET}/docker/tasks": "",
        f"{CPUSET}/docker/abc/cpuset.cpus": "1-2",
        f"{CPUSET}/docker/abc/cpuset.mems": "0",
        f"{CPUSET}/docker/abc/tasks": "800",
        f"{CPU}/cpu.rt_runtime_us": "950000",
        f"{CPU}/cpu.rt_period_us": "1000000",
        f"{CPU}/tasks": "1",
    },
    2: {
        f"{V2}/cgroup.controllers": "cpuset cpu",
        f"{V2}/cgroup.subtree_control": "cpu",
        f"{V2}/cgroup.procs": "1",
        f"{V2}/cpuset.cpus.effective": "0-3",
    },
}
THREADS = {  # tid → name, flags, policy, CPUs
    1: ("init", 0, "other", "0-3"),
    2: ("kthreadd", _KERNEL, "other", "0-3"),
    14: ("ksoftirqd/0", _KERNEL | _BOUND, "other", "0"),
    15: ("ksoftirqd/1", _KERNEL | _BOUND, "other", "1"),
    50: ("irq/30-eth0", _KERNEL, "fifo:50", "0-3"),
    51: ("khugepaged", _KERNEL, "other", "0-3"),
    700: ("robot", 0, "other", "0-3"),
    701: ("pinned", 0, "fifo:10", "1"),
    800: ("contained", 0, "other", "1-2"),
}
CREATED = {  # what the kernel puts into a new group beside such a file
    "cpuset.mems": {"cpuset.cpus": "", "cpuset.mems": "", "tasks": "", "cgroup.procs": ""},
    "cpu.rt_runtime_us": {
        "cpu.rt_runtime_us": "0",
        "cpu.rt_period_us": "1000000",
        "cgroup.procs": "",
        "tasks": "",
    },
    "cgroup.subtree_control": {"cpuset.cpus": "", "cpuset.cpus.partition": "member", "cgroup.procs": ""},
}


@dataclass(frozen=True, slots=True)
class PlantedKernel(Root):
    """``refused``: name → errno of writing it; ``deaf``: names that take a value and keep their own;
    ``dies_at``: this process is killed just before, and at half numbers just after, that change."""

    refused: dict[str, int] = field(default_factory=dict)
    deaf: set[str] = field(default_factory=set)
    dies_at: float | None = None
    changes: list[str] = field(default_factory=list)

    def plant(self, name: str, text: str) -> None:
        """A file with the text, all of it or what was there before."""
        path = self.at(name)
        path.parent.mkdir(parents=True, exist_ok=True)
        new = path.with_name(f".{path.name}.new")
        new.write_text(text + "\n")
        new.replace(path)

    def write(self, name: str, text: str) -> None:
        self._dies(len(self.changes))
        self.changes.append(name)
        if name in self.refused:
            raise OSError(self.refused[name], os.strerror(self.refused[name]), name)
        if not self.exists(name):
            raise FileNotFoundError(errno.ENOENT, "No such file or directory", name)
        folder, _, file = name.rpartition("/")
        if file in ("tasks", "cgroup.procs"):
            self._move(text.strip(), folder, file)
        elif file == "cgroup.subtree_control":
            words = set((self.read(name) or "").split()) - {text[1:].strip()}
            self.plant(name, " ".join(sorted(words | ({text[1:].strip()} if text[0] == "+" else set()))))
        elif name not in self.deaf:
            self._spread(folder, file, text.strip())
            for written in (f"{name}_requested", name):
                if self.exists(written):
                    self.plant(written, text.strip())
        self._dies(len(self.changes) - 0.5)

    def make_folder(self, name: str) -> None:
        self._dies(len(self.changes))
        self.changes.append(name)
        self.at(name).mkdir()
        above = name.rpartition("/")[0]
        for beside, files in CREATED.items():
            if self.exists(f"{above}/{beside}"):
                for file, text in files.items():
                    self.plant(f"{name}/{file}", text)
        self._dies(len(self.changes) - 0.5)

    def remove_folder(self, name: str) -> None:
        self._dies(len(self.changes))
        self.changes.append(name)
        if self.read(f"{name}/tasks") or self.read(f"{name}/cgroup.procs"):
            raise OSError(errno.EBUSY, os.strerror(errno.EBUSY), name)
        aside = self.path / f"removed{len(self.changes)}"  # at once, as the kernel does
        self.at(name).rename(aside)
        shutil.rmtree(aside)
        self._dies(len(self.changes) - 0.5)

    def set_policy(self, tid: int, policy: str, priority: int) -> None:
        self._thread_change(tid, f"policy {tid}")
        name, flags, _, cpus = self._thread(tid)
        self.plant_thread(tid, name, flags, f"{policy}:{priority}" if priority else policy, cpus)
        self._dies(len(self.changes) - 0.5)

    def set_affinity(self, tid: int, cpus: Iterable[int]) -> None:
        self._thread_change(tid, f"affinity {tid}")
        name, flags, policy, _ = self._thread(tid)
        self.plant_thread(tid, name, flags, policy, format_cpus(cpus))
        self._dies(len(self.changes) - 0.5)

    def plant_thread(self, tid: int, name: str, flags: int, policy: str, cpus: str, start: int = 7) -> None:
        """A process of one thread."""
        kind, _, priority = policy.partition(":")
        fields = ["0"] * 50
        fields[0], fields[6], fields[19] = "S", str(flags), str(start)
        fields[37], fields[38] = priority or "0", str(_POLICY_NUMBERS[kind])
        for folder in (f"/proc/{tid}", f"/proc/{tid}/task/{tid}"):
            self.plant(f"{folder}/stat", f"{tid} ({name}) {' '.join(fields)}")
            self.plant(f"{folder}/status", f"Name:\t{name}\nTgid:\t{tid}\nCpus_allowed_list:\t{cpus}")

    def _spread(self, folder: str, file: str, value: str) -> None:
        """Tasks get the CPUs of their cpuset, whatever they had chosen: as before Linux 6.2."""
        if file == "cpuset.cpus.partition":
            isolated = cpu_set(self.read(f"{folder}/cpuset.cpus")) if value == "root" else frozenset()
            for stat in self.glob("/proc/[0-9]*/stat"):
                self._bind(int(stat.split("/")[2]), format_cpus(cpu_set("0-3") - isolated))
        elif file == "cpuset.cpus":
            for tid in (self.read(f"{folder}/tasks") or "").split():
                self._bind(int(tid), value)

    def _bind(self, tid: int, cpus: str) -> None:
        if cpus and self.exists(f"/proc/{tid}/stat"):
            name, flags, policy, _ = self._thread(tid)
            if not flags & _BOUND:
                self.plant_thread(tid, name, flags, policy, cpus)

    def _thread(self, tid: int) -> tuple[str, int, str, str]:
        stat = self.read(f"/proc/{tid}/stat") or ""
        fields = stat[stat.rfind(")") + 1 :].split()
        policy = next(name for name, number in _POLICY_NUMBERS.items() if str(number) == fields[38])
        cpus = (self.read(f"/proc/{tid}/status") or "").rpartition("\t")[2]
        scheduling = f"{policy}:{fields[37]}" if fields[37] != "0" else policy
        return stat[stat.find("(") + 1 : stat.rfind(")")], int(fields[6]), scheduling, cpus

    def _thread_change(self, tid: int, name: str) -> None:
        self._dies(len(self.changes))
        self.changes.append(name)
        if name in self.refused:
            raise OSError(self.refused[name], os.strerror(self.refused[name]))
        if not self.exists(f"/proc/{tid}/stat"):
            raise ProcessLookupError(errno.ESRCH, "No such process")

    def _move(self, tid: str, target: str, file: str) -> None:
        """Into the target first: killed between the two, it is in both, and is moved once more."""
        self.plant(f"{target}/{file}", "\n".join([*(self.read(f"{target}/{file}") or "").split(), tid]))
        self._bind(int(tid), self.read(f"{target}/cpuset.cpus") or "")
        mount = CPUSET if target.startswith(CPUSET) else CPU if target.startswith(CPU) else V2
        for listed in [*self.at(mount).rglob(file)]:
            who = listed.read_text().split()
            if listed.parent != self.at(target) and tid in who:
                name = "/" + str(listed.relative_to(self.path))
                self.plant(name, "\n".join(one for one in who if one != tid))

    def _dies(self, moment: float) -> None:
        if self.dies_at == moment:
            os.kill(os.getpid(), signal.SIGKILL)

    def snapshot(self) -> dict[str, str]:
        """Everything there is."""
        return {
            "/" + str(path.relative_to(self.path)): "\n".join(sorted(path.read_text().split("\n")))
            for path in sorted(self.path.rglob("*"))
            if path.is_file() and not path.name.startswith(".")
        }


def planted(folder: Path, version: int = 1, **behaviour: object) -> PlantedKernel:
    """Four CPUs, a network card, a robot, a container; cgroups of that version."""
    kernel = PlantedKernel(folder, **behaviour)  # type: ignore[arg-type]
    if folder.exists():
        return kernel
    for name, text in (FILES | GROUPS[version]).items():
        kernel.plant(name, text)
    for irq, action in IRQS.items():
        kernel.at(f"/proc/irq/{irq}/{action}").mkdir()
    own = "4:cpuset:/\n3:cpu:/\n0::/" if version == 1 else "0::/"
    kernel.plant("/proc/self/mountinfo", MOUNTS[version])
    kernel.plant("/proc/self/cgroup", own)
    for tid, (name, flags, policy, cpus) in THREADS.items():
        kernel.plant_thread(tid, name, flags, policy, cpus)
    return kernel
