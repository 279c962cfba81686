"""A machine in a folder, tuned so that next to nothing is wrong with it; tests plant what is."""

from __future__ import annotations

from pathlib import Path

from rtmeter.host.root import Root
from rtmeter.machine import Finding, Intent, findings

CPU = "/sys/devices/system/cpu"
CLOCK = "/sys/devices/system/clocksource/clocksource0"
CONFIG = "/boot/config-6.12.9-rt"

CONFIGURED = (
    *("CPU_FREQ", "CPU_IDLE", "EFI", "EFI_DISABLE_RUNTIME", "HIGH_RES_TIMERS", "KSM", "LOCKUP_DETECTOR"),
    *("NO_HZ_COMMON", "NO_HZ_IDLE", "NUMA_BALANCING", "PREEMPT_RT", "PSI", "SWAP", "TRACING"),
    "TRANSPARENT_HUGEPAGE",
)

TUNED = {
    "/etc/os-release": 'ID=raspbian\nID_LIKE="debian"',
    "/proc/cmdline": "root=/dev/sda1 isolcpus=1 nohz=off",
    "/proc/cpuinfo": "processor : 0\nflags : fpu tsc",
    "/proc/interrupts": "  CPU0 CPU1\n 9: 12 3 IO-APIC 9-edge  acpi\n36: 5 7 PCI-MSI 0-edge  eth0\nLOC: 1 1"
    "\nERR: 0",
    "/proc/irq/36/effective_affinity_list": "0",
    "/proc/irq/36/smp_affinity_list": "0-1",
    "/proc/irq/9/effective_affinity_list": "",
    "/proc/irq/9/smp_affinity_list": "0",
    "/proc/pressure/cpu": "some avg10=0.10 avg60=0.00 avg300=0.00 total=1",
    "/proc/pressure/io": "some avg10=0.00 avg60=0.00 avg300=0.00 total=1",
    "/proc/pressure/memory": "some avg10=0.00 avg60=0.00 avg300=0.00 total=1",
    "/proc/self/cgroup": "0::/user.slice/robot",
    "/proc/self/limits": "Limit Soft Hard Units\nMax locked memory  unlimited unlimited bytes\n"
    "Max realtime priority     98   98",
    "/proc/self/mountinfo": "25 1 0:22 / /sys/fs/cgroup rw shared:4 - cgroup2 cgroup2 rw",
    "/proc/self/stat": "500 (rtmeter) R",
    "/proc/self/status": "CapEff:\t0000000000000000\nCpus_allowed_list:\t0-1",
    "/proc/stat": "cpu  100 0 100 1000 0 0 0 0 0 0\ncpu0 100 0 100 1000 0 0 0 0 0 0",
    "/proc/swaps": "Filename Type Size Used Priority",
    "/proc/sys/kernel/nmi_watchdog": "0",
    "/proc/sys/kernel/numa_balancing": "0",
    "/proc/sys/kernel/osrelease": "6.12.9-rt",
    "/proc/sys/kernel/sched_rt_period_us": "1000000",
    "/proc/sys/kernel/sched_rt_runtime_us": "1000000",
    "/proc/sys/kernel/soft_watchdog": "0",
    "/proc/sys/kernel/timer_migration": "0",
    "/proc/sys/kernel/version": "#1 SMP PREEMPT_RT 2026",
    "/sys/class/dmi/id/sys_vendor": "Maker",
    "/sys/class/net/eth0/mtu": "1500",
    "/sys/fs/cgroup/cgroup.controllers": "cpuset cpu memory",
    "/sys/fs/cgroup/user.slice/cpu.max": "max 100000",
    "/sys/fs/cgroup/user.slice/robot/cpu.max": "max 100000",
    "/sys/fs/cgroup/user.slice/robot/cpuset.cpus": "1",
    "/sys/kernel/debug/sched/fair_server/cpu0/runtime": "0",
    "/sys/kernel/debug/sched/fair_server/cpu1/runtime": "0",
    "/sys/kernel/mm/ksm/run": "0",
    "/sys/kernel/mm/transparent_hugepage/enabled": "always madvise [never]",
    "/sys/kernel/realtime": "1",
    "/sys/kernel/tracing/current_tracer": "nop",
    "/sys/kernel/tracing/set_event": "",
    "/sys/kernel/tracing/tracing_on": "1",
    "/sys/devices/virtual/workqueue/cpumask": "1",
    f"{CLOCK}/available_clocksource": "tsc hpet acpi_pm",
    f"{CLOCK}/current_clocksource": "tsc",
    f"{CPU}/isolated": "1",
    f"{CPU}/nohz_full": "(null)",
    f"{CPU}/online": "0-1",
    f"{CPU}/cpuidle/current_driver": "intel_idle",
    CONFIG: "\n".join(f"CONFIG_{option}=y" for option in CONFIGURED),
}
for _cpu in (0, 1):
    TUNED |= {
        f"{CPU}/cpu{_cpu}/cpufreq/scaling_available_governors": "performance",
        f"{CPU}/cpu{_cpu}/cpufreq/scaling_driver": "acpi-cpufreq",
        f"{CPU}/cpu{_cpu}/cpufreq/scaling_governor": "performance",
        f"{CPU}/cpu{_cpu}/cpuidle/state0/latency": "0",
        f"{CPU}/cpu{_cpu}/cpuidle/state0/name": "POLL",
        f"{CPU}/cpu{_cpu}/cpuidle/state1/disable": "0",
        f"{CPU}/cpu{_cpu}/cpuidle/state1/latency": "2",
        f"{CPU}/cpu{_cpu}/cpuidle/state1/name": "C1",
        f"{CPU}/cpu{_cpu}/cpuidle/state2/disable": "1",
        f"{CPU}/cpu{_cpu}/cpuidle/state2/latency": "133",
        f"{CPU}/cpu{_cpu}/cpuidle/state2/name": "C6",
        f"{CPU}/cpu{_cpu}/topology/thread_siblings_list": str(_cpu),
    }

POLICY_NUMBERS = {"other": 0, "fifo": 1, "rr": 2, "deadline": 6}


def task(
    tid: int,
    name: str,
    policy: str = "other",
    priority: int = 0,
    *,
    kernel: bool = False,
    last_cpu: int = 0,
    allowed: str = "0-1",
) -> dict[str, str]:
    """The files of a process of one thread."""
    flags = 0x200000 if kernel else 0
    numbers = [1, 1, 1, 0, -1, flags, *[0] * 29, last_cpu, priority, POLICY_NUMBERS[policy], 0]
    return {
        f"/proc/{tid}/task/{tid}/stat": f"{tid} ({name}) S {' '.join(map(str, numbers))}",
        f"/proc/{tid}/task/{tid}/status": f"Name:\t{name}\nCpus_allowed_list:\t{allowed}",
    }


TUNED |= task(2, "kthreadd", kernel=True) | task(300, "systemd (odd) name") | task(500, "rtmeter", last_cpu=1)
# Packets are handled above the measured thread, on the other CPU: an info.
TUNED |= task(20, "irq/36-eth0", "fifo", 90, kernel=True, allowed="0")
TUNED |= task(21, "ksoftirqd/0", "fifo", 60, kernel=True, allowed="0")


class PlantedMachine:
    """Files under a folder as the root of a machine."""

    def __init__(self, folder: Path) -> None:
        self.root = Root(folder)
        self.plant(TUNED)

    def plant(self, files: dict[str, str | None]) -> None:
        """Writes the files; None removes one."""
        for name, text in files.items():
            path = self.root.at(name)
            if text is None:
                path.unlink()
                continue
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text + "\n", encoding="utf-8")

    def findings(self, intent: Intent) -> dict[str, Finding]:
        """By id; each id is found once at most."""
        found = findings(self.root, intent)
        by_id = {finding.id: finding for finding in found}
        assert len(by_id) == len(found)
        return by_id
