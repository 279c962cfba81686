"""The checks of the machine: on one that is tuned nothing is found; what is planted is, and nothing else."""

from __future__ import annotations

from pathlib import Path

import pytest
from planted_machine import CLOCK, CONFIG, CPU, TUNED, PlantedMachine, task

from rtmeter.machine import KINDS, Finding, Intent, kernel
from rtmeter.machine.reading import Machine
from rtmeter.values import Scheduling

CYCLIC = Intent(cpus=(1,))
ROUNDTRIP = Intent(cpus=(1,), workload="roundtrip")

V1 = "33 1 0:30 / /sys/fs/cgroup/{0} rw - cgroup cgroup rw,{0}"
V1_GROUPS: dict[str, str | None] = {
    "/proc/self/cgroup": "3:cpuset:/robot\n1:cpu:/robot\n0::/",
    "/proc/self/mountinfo": "\n".join(V1.format(word) for word in ("cpu", "cpuset")),
    "/sys/fs/cgroup/cpu/robot/cpu.rt_runtime_us": "1000000",
    "/sys/fs/cgroup/cpu/robot/cpu.cfs_quota_us": "-1",
    "/sys/fs/cgroup/cpuset/robot/cpuset.cpus": "1",
}


def _config(**changes: str) -> dict[str, str | None]:
    lines = [line for line in TUNED[CONFIG].splitlines() if line[7:].split("=")[0] not in changes]
    return {CONFIG: "\n".join([*lines, *(f"CONFIG_{option}={value}" for option, value in changes.items())])}


NOT_RT: dict[str, str | None] = {
    "/proc/sys/kernel/version": "#1 SMP PREEMPT_DYNAMIC 2026",
    "/sys/kernel/realtime": None,
    "/sys/kernel/debug/sched/preempt": "none voluntary (full) lazy",
}

PLANTED: list[tuple[str, str, str, dict[str, str | None], Intent]] = [
    ("kernel_not_preempt_rt", "fatal", "6.12.9-rt #1 SMP PREEMPT_DYNAMIC 2026 (full)", NOT_RT, CYCLIC),
    ("config_prove_locking", "high", "CONFIG_PROVE_LOCKING=y", _config(PROVE_LOCKING="y"), CYCLIC),
    ("config_cpu_freq", "high", "CONFIG_CPU_FREQ=n", _config(CPU_FREQ="n"), CYCLIC),
    ("efi_runtime", "medium", "CONFIG_EFI_DISABLE_RUNTIME=n", _config(EFI_DISABLE_RUNTIME="n"), CYCLIC),
    ("efi_runtime", "medium", "booted without", {"/sys/firmware/efi/fw_platform_size": "64",
     "/proc/cmdline": "nohz=off efi=noruntime efi=runtime"}, CYCLIC),
    ("no_hz", "medium", "CONFIG_NO_HZ_IDLE=y", {"/proc/cmdline": "quiet"}, CYCLIC),
    ("rt_throttling", "high", "950000 of 1000000", {"/proc/sys/kernel/sched_rt_runtime_us": "950000",
     "/proc/sys/kernel/osrelease": "6.1.0", "/boot/config-6.1.0": TUNED[CONFIG]}, CYCLIC),
    ("rt_throttling", "info", "deadline policy alone",
     {"/proc/sys/kernel/sched_rt_runtime_us": "950000"}, CYCLIC),
    ("rt_throttling_off", "info", "-1", {"/proc/sys/kernel/sched_rt_runtime_us": "-1"}, CYCLIC),
    ("fair_server", "high", "50 ms on CPU 1",
     {"/sys/kernel/debug/sched/fair_server/cpu1/runtime": "50000000"}, CYCLIC),
    ("rt_group_limit", "fatal", "cpu.rt_runtime_us = 0",
     V1_GROUPS | {"/sys/fs/cgroup/cpu/robot/cpu.rt_runtime_us": "0"}, CYCLIC),
    ("rt_group_limit", "medium", "cpu.rt_runtime_us = 500000",
     V1_GROUPS | {"/sys/fs/cgroup/cpu/robot/cpu.rt_runtime_us": "500000"}, CYCLIC),
    ("rt_group_limit", "fatal", "not the top group", _config(RT_GROUP_SCHED="y"), CYCLIC),
    ("rt_group_limit", "fatal", "/sys/fs/cgroup/user.slice is not the top group",
     _config(RT_GROUP_SCHED="y") | {"/sys/fs/cgroup/user.slice/robot/cpu.max": None}, CYCLIC),
    ("cpu_quota", "medium", "50000 of 100000 us in /sys/fs/cgroup/user.slice",
     {"/sys/fs/cgroup/user.slice/cpu.max": "50000 100000"}, CYCLIC),
    ("cpu_quota", "medium", "20000 of 100000 us in /sys/fs/cgroup/cpu/robot", V1_GROUPS | {
        "/sys/fs/cgroup/cpu/robot/cpu.cfs_quota_us": "20000",
        "/sys/fs/cgroup/cpu/robot/cpu.cfs_period_us": "100000"}, CYCLIC),
    ("timer_migration", "medium", "= 1", {"/proc/sys/kernel/timer_migration": "1"}, CYCLIC),
    ("numa_balancing", "medium", "= 1", {"/proc/sys/kernel/numa_balancing": "1"}, CYCLIC),
    ("task_at_or_above", "high", "rogue (700, fifo:99)", task(700, "rogue", "fifo", 99), CYCLIC),
    ("task_at_or_above", "high", "equal (700, rr:80)", task(700, "equal", "rr", 80), CYCLIC),
    ("task_at_or_above", "high", "edf (700, deadline)", task(700, "edf", "deadline"), CYCLIC),
    ("task_at_or_above", "info", "far (700, fifo:99)", task(700, "far", "fifo", 99, allowed="0"), CYCLIC),
    ("task_at_or_above", "high", "far (700, fifo:99)", task(700, "far", "fifo", 99, allowed="0"),
     Intent(cpus=(0,), scheduling=Scheduling("fifo", 95))),
    ("kernel_thread_at_or_above", "medium", "irq/9-acpi (22, fifo:99)",
     task(22, "irq/9-acpi", "fifo", 99, kernel=True), CYCLIC),
    ("kernel_thread_at_or_above", "info", "migration/1 (22, fifo:99)",
     task(22, "migration/1", "fifo", 99, kernel=True, allowed="1"), CYCLIC),
    ("cpu_shared", "medium", "1 threads ran last on CPU 1: editor", task(700, "editor", last_cpu=1), CYCLIC),
    ("cpu_shared", "medium", "1 threads ran last on CPU 1: editor",
     task(700, "editor", last_cpu=1) | task(701, "moved", last_cpu=1, allowed="0"), CYCLIC),
    ("cpu_not_isolated", "medium", "CPU 1 is not isolated", {f"{CPU}/isolated": ""}, CYCLIC),
    ("governor", "high", "schedutil on CPU 1", {f"{CPU}/cpu1/cpufreq/scaling_governor": "schedutil"}, CYCLIC),
    ("governor", "medium", "powersave on CPU 1", {f"{CPU}/cpu1/cpufreq/scaling_governor": "powersave"},
     CYCLIC),
    ("governor", "high", "powersave on CPU 1", {
        f"{CPU}/cpu1/cpufreq/scaling_governor": "powersave",
        f"{CPU}/cpu1/cpufreq/scaling_driver": "intel_pstate"}, CYCLIC),
    ("other_governors", "medium", "ondemand",
     {f"{CPU}/cpu1/cpufreq/scaling_available_governors": "ondemand performance"}, CYCLIC),
    ("deep_idle_states", "medium", "C6 (133 us) on CPU 1",
     {f"{CPU}/cpu1/cpuidle/state2/disable": "0"}, CYCLIC),
    ("smt_sibling", "medium", "CPU 3 shares a core",
     {f"{CPU}/cpu1/topology/thread_siblings_list": "1,3"}, CYCLIC),
    ("nohz_full_cpu", "medium", "no tick on CPU 1", {f"{CPU}/nohz_full": "1"}, CYCLIC),
    ("clock_source", "high", "hpet", {f"{CLOCK}/current_clocksource": "hpet"}, CYCLIC),
    ("clock_source", "info", "kvm-clock", {f"{CLOCK}/current_clocksource": "kvm-clock"}, CYCLIC),
    ("cpuset_overlap", "medium", "/sys/fs/cgroup/stray (CPU 0-1, 2 processes)",
     {"/sys/fs/cgroup/stray/cpuset.cpus": "0-1", "/sys/fs/cgroup/stray/cgroup.procs": "7\n8"}, CYCLIC),
    ("cpuset_overlap", "medium", "/sys/fs/cgroup/cpuset/deep/er (CPU 1, 0 processes)",
     V1_GROUPS | {"/sys/fs/cgroup/cpuset/deep/er/cpuset.cpus": "1"}, CYCLIC),
    ("cpu_outside_cpuset", "fatal", "may run on CPU 0",
     {"/sys/fs/cgroup/user.slice/cpuset.cpus.effective": "0",
      "/sys/fs/cgroup/cpuset.cpus.effective": "0-1"}, CYCLIC),
    ("cpu_outside_cpuset", "fatal", "may run on CPU 0",
     V1_GROUPS | {"/sys/fs/cgroup/cpuset/robot/cpuset.cpus": "0"}, CYCLIC),
    ("cpu_outside_cpuset", "unknown", "bound to CPU 0, and no cpuset is seen",
     {"/proc/self/status": "CapEff:\t0\nCpus_allowed_list:\t0"}, CYCLIC),
    ("irq_on_cpu", "medium", "36 eth0 (7 times)", {"/proc/irq/36/effective_affinity_list": "1"}, CYCLIC),
    ("irq_on_cpu", "medium",
     "27 ahci[0000:00:17.0] (3,000 times), 16 i801_smbus, ehci_hcd:usb1 (20 times), 28 PCIe PME (2 times)",
     {"/proc/interrupts": """           CPU0       CPU1
 16:         10         20  IR-IO-APIC   16-fasteoi   i801_smbus, ehci_hcd:usb1
 27:         10       3000  IR-PCI-MSI-0000:00:17.0    0-edge      ahci[0000:00:17.0]
 28:          1          2  GICv3  40 Level     PCIe PME
LOC:          1          1   Local timer interrupts
""", **{f"/proc/irq/{irq}/smp_affinity_list": "1" for irq in (16, 27, 28)}}, CYCLIC),
    ("irq_on_cpu", "medium", "9 acpi (3 times)", {"/proc/irq/9/smp_affinity_list": "0-1"}, CYCLIC),
    ("irqbalance", "medium", "irqbalance runs (700)", task(700, "irqbalance"), CYCLIC),
    ("workqueues_on_cpu", "medium", "mask 3 holds CPU 1",
     {"/sys/devices/virtual/workqueue/cpumask": "3"}, CYCLIC),
    ("ksoftirqd_priority", "medium", "1 at normal policy", task(21, "ksoftirqd/0", kernel=True), ROUNDTRIP),
    ("network_irq_priority", "medium", "irq/37-eth0 (22, fifo:50)",
     task(22, "irq/37-eth0", "fifo", 50, kernel=True, allowed="0"), ROUNDTRIP),
    ("network_irq_priority", "medium", "irq/137-mlx5_co (22, fifo:50)",
     task(22, "irq/137-mlx5_co", "fifo", 50, kernel=True, allowed="0")
     | {"/sys/class/net/eth0/device/msi_irqs/137": "msix"}, ROUNDTRIP),
    ("network_irq_priority", "medium", "irq/137-enp0s31 (22, fifo:50)",
     task(22, "irq/137-enp0s31", "fifo", 50, kernel=True, allowed="0")
     | {"/sys/class/net/enp0s31f6/mtu": "1500", "/sys/kernel/irq/137/actions": "enp0s31f6-TxRx-0"},
     ROUNDTRIP),
    ("transparent_hugepages", "medium", "always",
     {"/sys/kernel/mm/transparent_hugepage/enabled": "[always] madvise never"}, CYCLIC),
    ("transparent_hugepages", "info", "madvise",
     {"/sys/kernel/mm/transparent_hugepage/enabled": "always [madvise] never"}, CYCLIC),
    ("swap", "medium", "/dev/sda2", {"/proc/swaps": "Filename Type\n/dev/sda2 partition 1 0 -2"}, CYCLIC),
    ("same_page_merging", "medium", "is 1", {"/sys/kernel/mm/ksm/run": "1"}, CYCLIC),
    ("rtprio_limit", "high", "RLIMIT_RTPRIO is 50, and fifo:80", {"/proc/self/limits":
     "Max locked memory unlimited\nMax realtime priority 50"}, CYCLIC),
    ("rtprio_limit", "high", "RLIMIT_RTPRIO is 0, and fifo:80", {
        "/proc/self/limits": "Max locked memory unlimited\nMax realtime priority 0",
        "/proc/self/uid_map": "0 1000 1\n1 100000 65536",  # root of a rootless container
        "/proc/self/status": "CapEff:\t000001ffffffffff\nCpus_allowed_list:\t0-1"}, CYCLIC),
    ("memlock_limit", "medium", "RLIMIT_MEMLOCK is 65,536 bytes", {"/proc/self/limits":
     "Max locked memory 65536\nMax realtime priority 99"}, CYCLIC),
    ("tracer_on", "high", "current_tracer is function",
     {"/sys/kernel/tracing/current_tracer": "function"}, CYCLIC),
    ("tracer_on", "high", "current_tracer is function; tracing_on is 0, and still it costs",
     {"/sys/kernel/tracing/current_tracer": "function", "/sys/kernel/tracing/tracing_on": "0"}, CYCLIC),
    ("trace_events_on", "medium", "sched:sched_switch",
     {"/sys/kernel/tracing/set_event": "sched:sched_switch"}, CYCLIC),
    ("trace_events_on", "medium", "sched:sched_switch; tracing_on is 0",
     {"/sys/kernel/tracing/set_event": "sched:sched_switch", "/sys/kernel/tracing/tracing_on": "0"}, CYCLIC),
    ("ptp_clocks", "info", "/dev/ptp0 (ixgbe), /dev/ptp2 (KVM)",
     {"/sys/class/ptp/ptp0/clock_name": "ixgbe", "/sys/class/ptp/ptp2/clock_name": "KVM"}, CYCLIC),
    ("nmi_watchdog", "high", "= 1", {"/proc/sys/kernel/nmi_watchdog": "1"}, CYCLIC),
    ("soft_watchdog", "high", "= 1", {"/proc/sys/kernel/soft_watchdog": "1"}, CYCLIC),
    ("virtual_machine", "high", "(QEMU)", {"/proc/cpuinfo": "flags : fpu hypervisor",
                                           "/sys/class/dmi/id/sys_vendor": "QEMU"}, CYCLIC),
    ("virtual_machine", "high", "Amazon EC2 m6g.large", {
        "/sys/class/dmi/id/sys_vendor": "Amazon EC2",
        "/sys/class/dmi/id/product_name": "m6g.large"}, CYCLIC),
    ("virtual_machine", "high", "device tree", {"/proc/device-tree/compatible": "linux,dummy-virt"}, CYCLIC),
    ("emulated_processor", "fatal", "QEMU TCG", {"/proc/cpuinfo": "model name: QEMU TCG CPU 2.5"}, CYCLIC),
    ("emulated_processor", "fatal", "the kernel is of s390x", {"/proc/sys/kernel/arch": "s390x"}, CYCLIC),
    ("container", "medium", "/.dockerenv", {"/.dockerenv": ""}, CYCLIC),
    ("steal", "high", "the hypervisor took 33%", {"/proc/stat": "cpu 100 0 100 1000 0 0 0 100 0 0"}, CYCLIC),
    ("steal", "info", "took 0.5%", {"/proc/stat": "cpu 100 0 99 1000 0 0 0 1 0 0"}, CYCLIC),
    ("pressure", "medium", "cpu 42.5%", {"/proc/pressure/cpu": "some avg10=42.50 avg60=0.00"}, CYCLIC),
    ("cpu_not_usable", "fatal", "CPU 1 is off", {f"{CPU}/online": "0", f"{CPU}/cpu1/online": "0"}, CYCLIC),
]  # fmt: skip
"""(id, grade, a part of its value, the files that make it so, what is intended)"""

UNREADABLE: list[tuple[str, list[str]]] = [
    ("kernel_config", [CONFIG]),
    ("rt_throttling", ["/proc/sys/kernel/sched_rt_runtime_us"]),
    ("fair_server", ["/sys/kernel/debug/sched/fair_server/cpu1/runtime"]),
    ("timer_migration", ["/proc/sys/kernel/timer_migration"]),
    ("numa_balancing", ["/proc/sys/kernel/numa_balancing"]),
    ("governor", [f"{CPU}/cpu1/cpufreq/scaling_governor"]),
    ("deep_idle_states", [f"{CPU}/cpu1/cpuidle/state{state}/latency" for state in range(3)]),
    ("smt_sibling", [f"{CPU}/cpu1/topology/thread_siblings_list"]),
    ("clock_source", [f"{CLOCK}/current_clocksource"]),
    ("cpu_not_isolated", [f"{CPU}/isolated"]),
    ("irq_on_cpu", ["/proc/interrupts"]),
    ("irq_on_cpu", ["/proc/irq/9/smp_affinity_list", "/proc/irq/36/smp_affinity_list"]),
    ("workqueues_on_cpu", ["/sys/devices/virtual/workqueue/cpumask"]),
    ("transparent_hugepages", ["/sys/kernel/mm/transparent_hugepage/enabled"]),
    ("swap", ["/proc/swaps"]),
    ("same_page_merging", ["/sys/kernel/mm/ksm/run"]),
    ("nmi_watchdog", ["/proc/sys/kernel/nmi_watchdog"]),
    ("soft_watchdog", ["/proc/sys/kernel/soft_watchdog"]),
    ("pressure", ["/proc/pressure/memory"]),
    ("steal", ["/proc/stat"]),
    ("virtual_machine", ["/proc/cpuinfo"]),
    ("cpu_quota rt_group_limit cpuset_overlap", ["/proc/self/mountinfo"]),
    ("tracer_on trace_events_on", ["/sys/kernel/tracing/current_tracer"]),
    ("rtprio_limit memlock_limit", ["/proc/self/limits"]),
    ("rtprio_limit memlock_limit", ["/proc/self/status"]),
]
"""(ids, the files without which they are unknown)"""


@pytest.fixture
def machine(tmp_path: Path) -> PlantedMachine:
    return PlantedMachine(tmp_path)


def _new(machine: PlantedMachine, files: dict[str, str | None], intent: Intent) -> dict[str, Finding]:
    """What is found since the files were planted, and was not so before; nothing may go."""
    before = machine.findings(intent)
    machine.plant(files)
    after = machine.findings(intent)
    assert not before.keys() - after.keys()
    return {name: finding for name, finding in after.items() if finding != before.get(name)}


@pytest.mark.parametrize("intent", [CYCLIC, ROUNDTRIP])
def test_a_tuned_machine_has_nothing_wrong(machine: PlantedMachine, intent: Intent) -> None:
    found = machine.findings(intent)
    assert [(f.id, f.grade) for f in found.values()] == [("kernel_thread_at_or_above", "info")]


@pytest.mark.parametrize(("name", "grade", "value", "files", "intent"), PLANTED)
def test_what_is_planted_is_found_and_nothing_else(
    machine: PlantedMachine, name: str, grade: str, value: str, files: dict[str, str | None], intent: Intent
) -> None:
    found = _new(machine, files, intent)
    assert found.keys() == {name}
    finding = found[name]
    assert finding.grade == grade
    assert value in finding.value
    assert finding.why
    assert finding.source


MANAGED = (
    "(what the kernel directs itself, such as queues of a disk, refuses: boot with isolcpus=managed_irq,…)"
)
FIXES: list[tuple[str, str, dict[str, str | None], Intent]] = [
    ("deep_idle_states", "measure with --cpu-dma-latency, or for cpu in 1; do for state in 2; do "
     f"echo 1 > {CPU}/cpu$cpu/cpuidle/state$state/disable; done; done",
     {f"{CPU}/cpu1/cpuidle/state2/disable": "0"}, CYCLIC),
    ("governor", f"for cpu in 1; do echo performance > {CPU}/cpu$cpu/cpufreq/scaling_governor; done",
     {f"{CPU}/cpu1/cpufreq/scaling_governor": "schedutil"}, CYCLIC),
    ("smt_sibling", f"echo 0 > {CPU}/cpu3/online",
     {f"{CPU}/cpu1/topology/thread_siblings_list": "1,3", f"{CPU}/cpu3/online": "1"}, CYCLIC),
    ("smt_sibling", "measure on another CPU: CPU 0 cannot be turned off",
     {f"{CPU}/cpu1/topology/thread_siblings_list": "0-1"}, CYCLIC),
    ("workqueues_on_cpu", "echo 00000002,00000001 > /sys/devices/virtual/workqueue/cpumask",
     {f"{CPU}/online": "0-1,33", "/sys/devices/virtual/workqueue/cpumask": "2,00000003"}, CYCLIC),
    ("cpuset_overlap", "echo 2 > /sys/fs/cgroup/a/b/cpuset.cpus; echo 2-3 > /sys/fs/cgroup/a/cpuset.cpus; "
     "echo 0,2-3 > /sys/fs/cgroup/only/cpuset.cpus",
     {f"{CPU}/online": "0-3", "/sys/fs/cgroup/a/cpuset.cpus": "1-3", "/sys/fs/cgroup/a/b/cpuset.cpus": "1-2",
      "/sys/fs/cgroup/only/cpuset.cpus": "1"}, CYCLIC),
    ("tracer_on", "echo nop > /sys/kernel/debug/tracing/current_tracer",
     {"/sys/kernel/tracing/current_tracer": None, "/sys/kernel/debug/tracing/current_tracer": "function"},
     CYCLIC),
    ("rt_group_limit", "echo $$ > /sys/fs/cgroup/cgroup.procs, and start rtmeter there",
     _config(RT_GROUP_SCHED="y"), CYCLIC),
    ("rt_group_limit", "echo 400000 > /sys/fs/cgroup/cpu/robot/cpu.rt_runtime_us (each group above it needs "
     "as much)", V1_GROUPS | {"/sys/fs/cgroup/cpu/robot/cpu.rt_runtime_us": "0",
                              "/proc/sys/kernel/sched_rt_runtime_us": "400000"}, CYCLIC),
    ("ksoftirqd_priority", "for task in 30 31 32 33 34 35; do chrt --fifo --pid 60 $task; done",
     {name: text for n in range(6) for name, text in task(30 + n, f"ksoftirqd/{n}", kernel=True).items()},
     ROUNDTRIP),
    ("irq_on_cpu", f"for irq in 36; do echo 0 > /proc/irq/$irq/smp_affinity_list; done {MANAGED}",
     {"/proc/irq/36/effective_affinity_list": "1"}, CYCLIC),
]  # fmt: skip
"""(id, the whole remedy, the files that make it so, what is intended)"""


def test_of_a_cpu_that_is_not_there_it_is_said_and_nothing_else(machine: PlantedMachine) -> None:
    machine.plant({f"{CPU}/online": "0", f"{CPU}/cpu1/online": "0", f"{CPU}/isolated": ""})
    found = machine.findings(Intent(cpus=(1, 9)))
    assert found["cpu_not_usable"].value == "CPU 9 does not exist; this machine has 0; CPU 1 is off"
    assert found["cpu_not_usable"].fix == f"choose among 0; echo 1 > {CPU}/cpu1/online"
    assert found["cpu_not_isolated"].value == "CPU 1 is not isolated"
    absent = machine.findings(Intent(cpus=(9,)))
    assert absent["cpu_not_usable"].fix == "choose among 0"
    assert "cpu_not_isolated" not in absent


@pytest.mark.parametrize(("name", "fix", "files", "intent"), FIXES)
def test_the_remedy_mends_what_was_found(
    machine: PlantedMachine, name: str, fix: str, files: dict[str, str | None], intent: Intent
) -> None:
    machine.plant(files)
    assert machine.findings(intent)[name].fix == fix


def test_without_its_build_the_real_time_kernel_is_that_of_the_processor(
    machine: PlantedMachine, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As in a container on an ARM board."""
    machine.plant({CONFIG: None, **NOT_RT})
    arm = Machine(machine.root, CYCLIC)
    monkeypatch.setitem(vars(arm), "architecture", "aarch64")
    fixes = {finding.id: finding.fix for finding in kernel.check(arm)}
    assert fixes["kernel_not_preempt_rt"] == "apt install linux-image-rt-arm64"


def test_a_hypervisors_clock_is_not_called_slow(machine: PlantedMachine) -> None:
    machine.plant({f"{CLOCK}/current_clocksource": "kvm-clock"})
    assert "the hypervisor keeps this clock" in machine.findings(CYCLIC)["clock_source"].why
    machine.plant({f"{CLOCK}/current_clocksource": "hpet"})
    assert "slow device" in machine.findings(CYCLIC)["clock_source"].why


ZOMBIE = {name: text.replace(" S ", " Z ") for name, text in task(700, "editor", last_cpu=1).items()}
LITTLE = {"/proc/self/limits": "Max locked memory 65536\nMax realtime priority 50"}
MAY = "CapEff:\t{:016x}\nCpus_allowed_list:\t0-1"
JUST_RIGHT: list[tuple[str, dict[str, str | None], Intent]] = [
    ("cpu_shared", {**ZOMBIE}, CYCLIC),
    ("rtprio_limit", {"/proc/self/limits": "Max locked memory unlimited\nMax realtime priority 80"}, CYCLIC),
    ("network_irq_priority", {**task(22, "irq/37-eth0", "fifo", 80, kernel=True, allowed="0")}, ROUNDTRIP),
    ("rtprio_limit", {**LITTLE, "/proc/self/status": MAY.format(1 << 23)}, CYCLIC),  # CAP_SYS_NICE
    ("memlock_limit", {**LITTLE, "/proc/self/status": MAY.format(1 << 14)}, CYCLIC),  # CAP_IPC_LOCK
    ("efi_runtime", {**_config(EFI_DISABLE_RUNTIME="n"), "/proc/cmdline": "nohz=off efi=noruntime"}, CYCLIC),
    (
        "efi_runtime",
        {**_config(EFI_DISABLE_RUNTIME="n"), "/proc/cmdline": "nohz=off efi=debug,noruntime"},
        CYCLIC,
    ),
    ("efi_runtime", {**_config(EFI_DISABLE_RUNTIME="n"), "/proc/cmdline": "nohz=off noefi"}, CYCLIC),
    ("efi_runtime", {**_config(EFI_DISABLE_RUNTIME="n"), "/sys/firmware/fdt": ""}, CYCLIC),
    (
        "efi_runtime",
        {
            "/proc/sys/kernel/osrelease": "5.10.0-rt",
            "/boot/config-5.10.0-rt": TUNED[CONFIG].replace("CONFIG_EFI_DISABLE_RUNTIME=y", ""),
        },
        CYCLIC,
    ),
    # isolcpus and taskset bind a process that may choose other CPUs all the same
    (
        "cpu_outside_cpuset",
        {
            "/proc/self/status": "CapEff:\t0\nCpus_allowed_list:\t0",
            "/sys/fs/cgroup/cpuset.cpus.effective": "0-1",
        },
        CYCLIC,
    ),
    ("cpu_outside_cpuset", V1_GROUPS | {"/proc/self/status": "CapEff:\t0\nCpus_allowed_list:\t0"}, CYCLIC),
    (
        "nmi_watchdog",
        {"/proc/sys/kernel/nmi_watchdog": "1", "/proc/sys/kernel/watchdog_cpumask": "0"},
        CYCLIC,
    ),
    (
        "soft_watchdog",
        {"/proc/sys/kernel/soft_watchdog": "1", "/proc/sys/kernel/watchdog_cpumask": "0,2"},
        CYCLIC,
    ),
    (
        "irq_on_cpu",
        {
            "/proc/interrupts": "  CPU0 CPU1\n 11: 4 5 GICv3  27 Level arch_timer\n"
            " 12: 4 5 GIC-0 30 Level arch_timer\n 13: 4 5 bcm2836-timer   1 Edge arch_timer\n"
            "  5: 4 5 RISC-V INTC   5 Edge riscv-timer",
            **{f"/proc/irq/{irq}/smp_affinity_list": "0-1" for irq in (5, 11, 12, 13)},
        },
        CYCLIC,
    ),
    (
        "network_irq_priority",
        {**task(22, "irq/37-floppy", "fifo", 50, kernel=True, allowed="0"), "/sys/class/net/lo/mtu": "65536"},
        ROUNDTRIP,
    ),
    (
        "virtual_machine",
        {"/sys/class/dmi/id/sys_vendor": "Amazon EC2", "/sys/class/dmi/id/product_name": "m6g.metal"},
        CYCLIC,
    ),
]


@pytest.mark.parametrize(("name", "files", "intent"), JUST_RIGHT)
def test_what_is_just_right_is_not_found(
    machine: PlantedMachine, name: str, files: dict[str, str | None], intent: Intent
) -> None:
    machine.plant(files)
    assert name not in machine.findings(intent)


@pytest.mark.parametrize(("names", "files"), UNREADABLE)
def test_what_cannot_be_read_is_unknown(machine: PlantedMachine, names: str, files: list[str]) -> None:
    found = _new(machine, dict.fromkeys(files), CYCLIC)
    assert found.keys() == set(names.split())
    for finding in found.values():
        assert (finding.grade, bool(finding.value)) == ("unknown", True)


def test_everything_looked_for_was_planted() -> None:
    names = {kind.id for kind in KINDS if not kind.id.startswith("config_")}
    elsewhere = {"preemption_model", "hidden_tasks", "normal_policy", "no_cpu_chosen"}
    elsewhere |= {"middleware_thread_at_or_above"}
    assert names == {row[0] for row in PLANTED} - {"config_prove_locking", "config_cpu_freq"} | elsewhere | {
        name for names, _ in UNREADABLE for name in names.split()
    }
