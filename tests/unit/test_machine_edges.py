"""What a check says at the edges: of several values, of those just too many, of what is half known."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
from planted_machine import CLOCK, CONFIG, CPU, TUNED, PlantedMachine, task

from rtmeter.machine import Intent, Root, findings, intent_of, server_intent_of
from rtmeter.model import Cell
from rtmeter.values import Scheduling

CYCLIC = Intent((1,))
NOT_RT = {"/proc/sys/kernel/version": "#1 SMP PREEMPT_DYNAMIC", "/sys/kernel/realtime": None}
KSM = "/sys/kernel/mm/ksm/run"


@pytest.fixture
def machine(tmp_path: Path) -> PlantedMachine:
    return PlantedMachine(tmp_path)


@pytest.mark.parametrize(("release", "calls"), [("5.18.0", False), ("5.19.0", True)])
def test_a_real_time_kernel_calls_into_its_firmware_since_linux_5_19(
    machine: PlantedMachine, release: str, calls: bool
) -> None:
    config = TUNED[CONFIG].replace("CONFIG_EFI_DISABLE_RUNTIME=y", "")
    machine.plant({"/proc/sys/kernel/osrelease": release, f"/boot/config-{release}": config})
    assert ("efi_runtime" in machine.findings(CYCLIC)) == calls


@pytest.mark.parametrize(("release", "grade"), [("5.11.0", None), ("5.12.0", "unknown")])
def test_the_name_of_a_kernel_tells_its_preemption_before_linux_5_12(
    machine: PlantedMachine, release: str, grade: str | None
) -> None:
    machine.plant({CONFIG: None, "/sys/kernel/realtime": None, "/proc/sys/kernel/osrelease": release})
    machine.plant({"/proc/sys/kernel/version": "#1 SMP PREEMPT 2026"})
    said = machine.findings(CYCLIC).get("preemption_model")
    assert (said and said.grade) == grade


def test_of_two_words_of_the_command_line_the_last_one_counts(machine: PlantedMachine) -> None:
    machine.plant({**NOT_RT, "/proc/cmdline": "nohz=off preempt=full preempt=none"})
    assert machine.findings(CYCLIC)["preemption_model"].value.startswith("none, as built or booted")


@pytest.mark.parametrize(
    ("names", "fix"),
    [
        ("ID=ubuntu\nID_LIKE=debian", "pro enable realtime-kernel"),
        ('ID="rocky"\nID_LIKE="rhel centos fedora"', "dnf install kernel-rt"),
        ("ID=gentoo", "boot a kernel built with CONFIG_PREEMPT_RT=y"),
    ],
)
def test_a_distribution_is_itself_before_what_it_is_like(
    machine: PlantedMachine, names: str, fix: str
) -> None:
    machine.plant({**NOT_RT, "/etc/os-release": names})
    assert machine.findings(CYCLIC)["kernel_not_preempt_rt"].fix == fix


def test_one_moving_clock_among_fixed_ones_is_as_bad_as_all(machine: PlantedMachine) -> None:
    governors = {f"{CPU}/cpu{cpu}/cpufreq/scaling_governor": "powersave" for cpu in (0, 1)}
    machine.plant(governors)
    assert machine.findings(Intent((0, 1)))["governor"].grade == "medium"
    machine.plant({f"{CPU}/cpu1/cpufreq/scaling_governor": "schedutil"})
    assert machine.findings(Intent((0, 1)))["governor"].grade == "high"


def test_an_idle_state_is_deep_beyond_10_us(machine: PlantedMachine) -> None:
    state = f"{CPU}/cpu1/cpuidle/state1"
    machine.plant({f"{state}/latency": "10"})
    assert "deep_idle_states" not in machine.findings(CYCLIC)
    machine.plant({f"{state}/latency": "11"})
    assert machine.findings(CYCLIC)["deep_idle_states"].value == "C1 (11 us) on CPU 1"


@pytest.mark.parametrize("driver", ["none", None])
def test_where_no_idle_states_are_listed_it_is_said_who_chooses_if_that_is_known(
    machine: PlantedMachine, driver: str | None
) -> None:
    machine.plant({f"{CPU}/cpu1/cpuidle/state{state}/latency": None for state in range(3)})
    machine.plant({f"{CPU}/cpuidle/current_driver": driver})
    said = f"no idle states are listed (driver {driver}): the firmware or a host chooses"
    value = f"{CPU}/cpuidle/current_driver is not there" if driver is None else said
    assert machine.findings(CYCLIC)["deep_idle_states"].value == value


def test_of_several_siblings_the_one_that_cannot_be_turned_off_is_named(machine: PlantedMachine) -> None:
    machine.plant({f"{CPU}/online": "0-3", f"{CPU}/cpu2/online": "1", f"{CPU}/cpu3/online": "1"})
    machine.plant({f"{CPU}/cpu1/topology/thread_siblings_list": "0-1"})
    machine.plant({f"{CPU}/cpu3/topology/thread_siblings_list": "2-3"})
    found = machine.findings(Intent((1, 3)))["smt_sibling"]
    assert found.value == "CPU 0,2 shares a core with CPU 1,3"
    assert found.fix == "measure on another CPU: CPU 0 cannot be turned off"


@pytest.mark.parametrize(
    ("available", "fix"),
    [
        ("hpet kvm-clock tsc", f"echo tsc > {CLOCK}/current_clocksource"),
        ("hpet kvm-clock acpi_pm", ""),
    ],
)
def test_a_clock_is_given_up_for_a_faster_one_of_the_machines_own(
    machine: PlantedMachine, available: str, fix: str
) -> None:
    machine.plant({f"{CLOCK}/current_clocksource": "hpet", f"{CLOCK}/available_clocksource": available})
    assert machine.findings(CYCLIC)["clock_source"].fix == fix


def test_pages_that_are_no_longer_merged_are_not_found(machine: PlantedMachine) -> None:
    machine.plant({KSM: "1"})
    assert machine.findings(CYCLIC)["same_page_merging"].fix == f"echo 2 > {KSM}"
    machine.plant({KSM: "2"})
    assert "same_page_merging" not in machine.findings(CYCLIC)


@pytest.mark.parametrize(("cpu", "found"), [("5.00", False), ("5.01", True)])
def test_some_waiting_is_usual(machine: PlantedMachine, cpu: str, found: bool) -> None:
    machine.plant({"/proc/pressure/cpu": f"some avg10={cpu} avg60=0.00 avg300=0.00 total=1"})
    assert ("pressure" in machine.findings(CYCLIC)) == found


def test_what_the_hypervisor_took_is_of_all_that_the_cpus_were_busy_with(machine: PlantedMachine) -> None:
    machine.plant({"/proc/stat": "cpu 100 200 300 1000 1000 150 150 100 0 0"})
    assert machine.findings(CYCLIC)["steal"].value == "the hypervisor took 10% of the busy time since boot"


def test_where_no_task_is_seen_at_all_nothing_is_said_of_a_container(tmp_path: Path) -> None:
    found = {finding.id: finding for finding in findings(Root(tmp_path), CYCLIC)}
    assert found["task_at_or_above"].value == "no task can be seen in /proc"
    assert "container" not in found


def test_a_task_that_stays_on_other_cpus_is_left_its_priority(machine: PlantedMachine) -> None:
    machine.plant(task(700, "far", "fifo", 99, allowed="0") | task(701, "near", "fifo", 90))
    found = machine.findings(Intent((1,), Scheduling("fifo", 80)))["task_at_or_above"]
    assert found.value == "near (701, fifo:90), far (700, fifo:99)"
    assert found.fix == "chrt --other --pid 0 701"


def test_it_is_told_where_the_trace_is_that_is_paused(machine: PlantedMachine) -> None:
    machine.plant({f"/sys/kernel/tracing/{name}": None for name in ("current_tracer", "set_event")})
    debug = "/sys/kernel/debug/tracing"
    machine.plant({f"{debug}/current_tracer": "function", f"{debug}/tracing_on": "0"})
    value = machine.findings(CYCLIC)["tracer_on"].value
    assert value == "current_tracer is function; tracing_on is 0, and still it costs"


def test_cpus_of_which_some_are_isolated_are_isolated_together(machine: PlantedMachine) -> None:
    """A measurement on CPUs outside of the condition's is refused."""
    machine.plant({f"{CPU}/online": "0-3", f"{CPU}/isolated": "1"})
    found = machine.findings(Intent((1, 2)))["cpu_not_isolated"]
    assert found.value == "CPU 2 is not isolated"
    assert found.fix == "measure with --condition isolate=1,2 --condition stray_tasks=move"


@pytest.mark.parametrize(("priority", "enough"), [(80, 90), (90, 90), (95, 95)])
def test_interrupts_of_the_network_are_put_no_lower_than_the_measured_thread(
    machine: PlantedMachine, priority: int, enough: int
) -> None:
    machine.plant(task(22, "irq/37-eth0", "fifo", 50, kernel=True, allowed="0"))
    intent = Intent((1,), Scheduling("fifo", priority), "roundtrip")
    others = "22" if priority <= 90 else "20 22"
    fix = machine.findings(intent)["network_irq_priority"].fix
    assert fix == f"for task in {others}; do chrt --fifo --pid {enough} $task; done"


def test_a_server_is_on_its_own_cpus_on_the_clients_or_anywhere() -> None:
    config = {"measurement": "roundtrip", "cpus": [1], "scheduling": {"policy": "rr", "priority": 7}}
    cell = Cell("c", "posix", None, {}, config)
    assert server_intent_of(cell) == intent_of(cell)
    own = [server_intent_of(replace(cell, server_cpus=cpus)).cpus for cpus in ((2, 3), ())]
    assert own == [(2, 3), None]
