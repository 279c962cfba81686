"""What mends a finding: of all that was found, where there is somewhere to go, on the kernel that runs."""

from __future__ import annotations

from pathlib import Path

import pytest
from planted_machine import CONFIG, CPU, TUNED, PlantedMachine, task

from rtmeter.machine import Intent

WORKQUEUES = "/sys/devices/virtual/workqueue/cpumask"
RUNTIME = "/sys/kernel/debug/sched/fair_server/cpu{}/runtime"
RT_GROUPS = {CONFIG: f"{TUNED[CONFIG]}\nCONFIG_RT_GROUP_SCHED=y"}


@pytest.fixture
def machine(tmp_path: Path) -> PlantedMachine:
    return PlantedMachine(tmp_path)


def test_all_interrupts_of_a_cpu_are_to_go_however_few_are_named(machine: PlantedMachine) -> None:
    numbers = range(40, 47)
    rows = "".join(f"\n{number}: 0 {number} PCI-MSI 0-edge  eth{number}" for number in numbers)
    machine.plant({"/proc/interrupts": f"  CPU0 CPU1{rows}"})
    machine.plant({f"/proc/irq/{number}/smp_affinity_list": "1" for number in numbers})
    found = machine.findings(Intent((1,)))["irq_on_cpu"]
    assert found.fix.startswith("for irq in 46 45 44 43 42 41 40; do echo 0 > ")
    assert found.value.endswith(" and 2 more")


def test_irqbalance_is_its_process_not_a_thread_of_its(machine: PlantedMachine) -> None:
    """Which may have a smaller id, and is no process to be looked for; so may another program's."""
    ((name, text),) = [one for one in task(90, "irqbalance").items() if one[0].endswith("/stat")]
    machine.plant({name.replace("/proc/90/", "/proc/700/"): text})
    assert "irqbalance" not in machine.findings(Intent())
    machine.plant(task(700, "irqbalance"))
    assert machine.findings(Intent())["irqbalance"].value == "irqbalance runs (700)"


def test_where_every_cpu_is_intended_interrupts_and_work_have_nowhere_to_go(machine: PlantedMachine) -> None:
    found = machine.findings(Intent((0, 1)))
    assert (found["irq_on_cpu"].fix, found["workqueues_on_cpu"].fix) == ("", "")


def test_work_of_the_kernel_goes_to_no_cpu_that_it_was_kept_off(machine: PlantedMachine) -> None:
    machine.plant({f"{CPU}/online": "0-2", WORKQUEUES: "6"})
    assert machine.findings(Intent((1,)))["workqueues_on_cpu"].fix == f"echo 00000004 > {WORKQUEUES}"


def test_a_fair_server_that_cannot_be_read_is_to_be_turned_off_on_each_cpu(machine: PlantedMachine) -> None:
    machine.plant({RUNTIME.format(0): None, RUNTIME.format(1): None})
    found = machine.findings(Intent())["fair_server"]
    commands = "; ".join(f"echo 0 > {RUNTIME.format(cpu)}" for cpu in (0, 1))
    assert (found.grade, found.fix) == ("unknown", f"mount -t debugfs none /sys/kernel/debug; {commands}")


def test_trace_events_are_turned_off_where_they_are_found(machine: PlantedMachine) -> None:
    names = ("current_tracer", "set_event", "tracing_on")
    machine.plant({f"/sys/kernel/tracing/{name}": None for name in names})
    debug = "/sys/kernel/debug/tracing"
    machine.plant({f"{debug}/current_tracer": "nop", f"{debug}/set_event": "sched:sched_switch"})
    assert machine.findings(Intent())["trace_events_on"].fix == f"echo > {debug}/set_event"


def test_the_quotas_of_all_groups_above_are_to_go(machine: PlantedMachine) -> None:
    above, own = "/sys/fs/cgroup/user.slice", "/sys/fs/cgroup/user.slice/robot"
    machine.plant({"/proc/self/cgroup": "0::/user.slice/robot"})
    machine.plant({f"{above}/cpu.max": "50000 100000", f"{own}/cpu.max": "9000 10000"})
    found = machine.findings(Intent((1,)))["cpu_quota"]
    assert found.value == f"9000 of 10000 us in {own}, 50000 of 100000 us in {above}"
    assert found.fix == f"echo max > {own}/cpu.max; echo max > {above}/cpu.max"


def test_a_cpuset_without_a_cpu_that_is_off_leaves_none_out(machine: PlantedMachine) -> None:
    machine.plant({f"{CPU}/online": "0-1", "/sys/fs/cgroup/user.slice/cpuset.cpus.effective": "0-1"})
    assert "cpu_outside_cpuset" not in machine.findings(Intent((1, 2)))
    machine.plant({f"{CPU}/online": "0-2"})
    assert "CPU 2 (a container" in machine.findings(Intent((1, 2)))["cpu_outside_cpuset"].fix


@pytest.mark.parametrize(("build", "grade"), [({}, "info"), (RT_GROUPS, "high")])
def test_beside_a_fair_server_throttling_bounds_threads_in_groups_alone(
    machine: PlantedMachine, build: dict[str, str], grade: str
) -> None:
    machine.plant({"/proc/sys/kernel/sched_rt_runtime_us": "950000"} | build)
    assert machine.findings(Intent((1,)))["rt_throttling"].grade == grade


@pytest.mark.parametrize(("release", "switch"), [("6.15.9", False), ("6.16.0", True)])
def test_groups_of_real_time_threads_are_turned_off_at_boot_since_linux_6_16(
    machine: PlantedMachine, release: str, switch: bool
) -> None:
    files = {"/proc/sys/kernel/osrelease": release, f"/boot/config-{release}": RT_GROUPS[CONFIG]}
    machine.plant(files)
    fix = machine.findings(Intent((1,)))["rt_group_limit"].fix
    assert fix.startswith("echo $$ > /sys/fs/cgroup/cgroup.procs")
    assert ("rt_group_sched=0" in fix) == switch
