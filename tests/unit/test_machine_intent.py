"""What the checks make of what is intended, of the kernel's build, and of the machine that runs the tests."""

from __future__ import annotations

import gzip
import os
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest
from planted_machine import CONFIG, TUNED, PlantedMachine, task

from rtmeter.host.threads import read_tasks
from rtmeter.machine import KINDS, Intent, Root, findings, intent_of, intent_of_thread, surroundings
from rtmeter.machine.causes import OF_PERIOD, OF_USAGE, suspicions
from rtmeter.machine.reading import Machine
from rtmeter.model import Cell
from rtmeter.statistics.rhythm import KNOWN
from rtmeter.values import Scheduling

OPTIONS = [kind for kind in KINDS if kind.id.startswith("config_")]
WANTED = ("config_cpu_freq", "config_high_res_timers", "config_cpu_idle", "config_tracing")


@pytest.fixture
def machine(tmp_path: Path) -> PlantedMachine:
    return PlantedMachine(tmp_path)


@pytest.mark.parametrize("name", [kind.id for kind in OPTIONS])
def test_each_option_of_the_build_is_found_when_it_is_wrong(machine: PlantedMachine, name: str) -> None:
    assert name not in machine.findings(Intent(cpus=(1,)))
    option = "CONFIG_" + name.removeprefix("config_").upper()
    lines = [line for line in TUNED[CONFIG].splitlines() if line != f"{option}=y"]
    machine.plant({CONFIG: "\n".join(lines if name in WANTED else [*lines, f"{option}=y"])})
    assert machine.findings(Intent(cpus=(1,)))[name].value == f"{option}={'n' if name in WANTED else 'y'}"


def test_the_build_is_read_from_proc_before_boot(machine: PlantedMachine) -> None:
    path = machine.root.at("/proc/config.gz")
    path.write_bytes(gzip.compress(f"{TUNED[CONFIG]}\nCONFIG_KASAN=y\n# CONFIG_KCSAN is not set\n".encode()))
    found = machine.findings(Intent(cpus=(1,)))
    assert "config_kasan" in found
    assert "config_kcsan" not in found
    path.write_bytes(path.read_bytes()[:40])  # cut off: what is in /boot is whole
    assert "config_kasan" not in machine.findings(Intent(cpus=(1,)))


@pytest.mark.parametrize(
    ("command_line", "model", "grade", "value"),
    [
        ("preempt=none", "(full)", None, ""),
        (
            "preempt=none",
            None,
            "high",
            "none, as built or booted: /sys/kernel/debug/sched/preempt is not there",
        ),
        ("preempt=full", "(voluntary)", "high", "voluntary"),
        ("quiet", None, "unknown", "/sys/kernel/debug/sched/preempt is not there"),
    ],
)
def test_the_preemption_model_is_what_is_in_effect(
    machine: PlantedMachine, command_line: str, model: str | None, grade: str | None, value: str
) -> None:
    machine.plant(
        {
            "/proc/cmdline": f"nohz=off {command_line}",
            "/proc/sys/kernel/version": "#1 SMP PREEMPT_DYNAMIC",
            "/sys/kernel/realtime": None,
        }
    )
    if model is not None:
        machine.plant({"/sys/kernel/debug/sched/preempt": f"none {model} lazy"})
    found = machine.findings(Intent(cpus=(1,)))
    assert found["kernel_not_preempt_rt"].grade == "fatal"
    assert "linux-image-rt" in found["kernel_not_preempt_rt"].fix
    said = found.get("preemption_model")
    assert (said and said.grade, said.value if said else "") == (grade, value)
    if grade == "high":
        mount = "" if model else "mount -t debugfs none /sys/kernel/debug; "
        assert said and said.fix.startswith(f"{mount}echo full > /sys/kernel/debug/sched/preempt; for good")
        assert ("locked down" in said.fix) == (model is None)


def test_a_kernel_whose_preemption_cannot_be_chosen_is_not_told_to(machine: PlantedMachine) -> None:
    built = f"{TUNED[CONFIG]}\nCONFIG_PREEMPT_NONE=y\n# CONFIG_PREEMPT_DYNAMIC is not set\n"
    version = {"/proc/sys/kernel/version": "#1 SMP", "/sys/kernel/realtime": None}
    machine.plant({CONFIG: built.replace("CONFIG_PREEMPT_RT=y", ""), **version})
    said = machine.findings(Intent(cpus=(1,)))["preemption_model"]
    assert (said.value.partition(",")[0], said.fix.partition(" built")[0]) == ("none", "boot a kernel")


@pytest.mark.parametrize(
    ("release", "version", "grade", "value"),
    [
        ("6.6.31-v8", "#1 SMP PREEMPT Debian 2026", None, ""),
        ("6.6.31-v8", "#1 SMP Debian 2026", "high", "none or voluntary"),
        ("5.10.0-7", "#1 SMP PREEMPT 2026", None, ""),
        ("5.15.0-7", "#1 SMP PREEMPT 2026", "unknown", "/sys/kernel/debug/sched/preempt is not there"),
        ("5.16.0-7", "#1 SMP PREEMPT 2026", None, ""),
    ],
)
def test_without_its_build_a_kernels_name_tells_its_preemption(
    machine: PlantedMachine, release: str, version: str, grade: str | None, value: str
) -> None:
    machine.plant({CONFIG: None, "/sys/kernel/realtime": None})
    machine.plant({"/proc/sys/kernel/osrelease": release, "/proc/sys/kernel/version": version})
    said = machine.findings(Intent(cpus=(1,))).get("preemption_model")
    assert (said and said.grade, said.value.partition(",")[0] if said else "") == (grade, value)
    if grade == "high":
        assert said and said.fix.startswith("boot a kernel built with CONFIG_PREEMPT=y")


@pytest.mark.parametrize(("version", "real_time"), [("#1 SMP PREEMPT 2026", None), (None, "1")])
def test_an_older_kernel_calls_into_its_firmware_where_it_is_not_real_time(
    machine: PlantedMachine, version: str | None, real_time: str | None
) -> None:
    config = TUNED[CONFIG].replace("CONFIG_EFI_DISABLE_RUNTIME=y", "")
    machine.plant({"/proc/sys/kernel/osrelease": "5.10.0", "/boot/config-5.10.0": config})
    if version is not None:
        machine.plant({"/proc/sys/kernel/version": version, "/sys/kernel/realtime": real_time})
    found = machine.findings(Intent(cpus=(1,)))
    assert ("efi_runtime" in found) == (real_time is None)


def test_nothing_said_of_preemption_is_unknown(machine: PlantedMachine) -> None:
    without = {"/proc/sys/kernel/version": None, "/sys/kernel/realtime": None, CONFIG: None}
    machine.plant(without)
    found = machine.findings(Intent(cpus=(1,)))
    assert found["kernel_not_preempt_rt"].grade == "unknown"
    assert found["kernel_not_preempt_rt"].at_worst == "fatal"


def test_a_container_hides_tasks(machine: PlantedMachine) -> None:
    kernel_threads = (2, 20, 21)
    machine.plant({f"/proc/{tid}/task/{tid}/stat": None for tid in kernel_threads})
    found = machine.findings(Intent(cpus=(1,)))
    assert found["hidden_tasks"].grade == "unknown"
    assert found["container"].grade == "medium"


@pytest.mark.parametrize(
    ("file", "start"), [(None, "add to /etc/security"), ("/.dockerenv", "start the container with")]
)
def test_limits_are_those_that_a_container_was_started_with(
    machine: PlantedMachine, file: str | None, start: str
) -> None:
    machine.plant({"/proc/self/limits": "Max locked memory 65536\nMax realtime priority 0"})
    machine.plant({file: ""} if file else {})
    found = machine.findings(Intent(cpus=(1,)))
    assert found["rtprio_limit"].fix.startswith(start)
    assert found["memlock_limit"].fix.startswith(start)


def test_a_normal_policy_has_every_real_time_task_above(machine: PlantedMachine) -> None:
    machine.plant(task(700, "low", "fifo", 1) | task(701, "normal"))
    found = machine.findings(Intent(cpus=(1,), scheduling=Scheduling("other")))
    assert found["normal_policy"].grade == "high"
    assert [item["tid"] for item in found["task_at_or_above"].items] == [700]
    assert "task_at_or_above" not in machine.findings(Intent(cpus=(1,)))


def test_without_cpus_it_is_said_what_was_not_looked_at(machine: PlantedMachine) -> None:
    machine.plant(task(700, "editor", last_cpu=1))
    found = machine.findings(Intent())
    assert found["no_cpu_chosen"].value == "any of 2 CPUs"
    assert "cpu_shared" not in found


def test_no_task_above_is_left_out(machine: PlantedMachine) -> None:
    for tid in range(700, 730):
        machine.plant(task(tid, f"task{tid}", "rr", 90))
    found = machine.findings(Intent(cpus=(1,)))["task_at_or_above"]
    assert [item["tid"] for item in found.items] == list(range(700, 730))
    assert all(f"task{tid} ({tid}, rr:90)" in found.value for tid in range(700, 730))


def test_the_most_urgent_comes_first_and_one_whose_cpus_are_not_told_may_run_on_any(
    machine: PlantedMachine,
) -> None:
    machine.plant(task(700, "rogue", "rr", 90) | task(701, "worse", "fifo", 95))
    machine.plant({"/proc/701/task/701/status": "Name:\tworse"})
    found = machine.findings(Intent(cpus=(1,)))["task_at_or_above"]
    assert found.value == "worse (701, fifo:95), rogue (700, rr:90)"
    assert [item["cpus"] for item in found.items] == [None, [0, 1]]


def test_what_mends_tasks_is_of_all_of_them(machine: PlantedMachine) -> None:
    """Beyond twenty on the CPU it is its isolation, if a CPU is left; what has ended needs nothing."""
    ids = range(700, 707)
    ended = task(790, "ended", last_cpu=1)
    machine.plant({name: text.replace(" S ", " Z ") for name, text in ended.items()})
    for tid in ids:
        machine.plant(task(tid, "rogue", "rr", 90) | task(tid + 100, "editor", last_cpu=1))
    found = machine.findings(Intent(cpus=(1,)))
    assert found["task_at_or_above"].fix == "; ".join(f"chrt --other --pid 0 {tid}" for tid in ids)
    listed = " ".join(str(tid + 100) for tid in ids)
    assert found["cpu_shared"].fix == f"for task in {listed}; do taskset -pc 0 $task; done"
    for tid in range(900, 913):
        machine.plant(task(tid, "editor", last_cpu=1))
    assert " 911 912; do taskset" in machine.findings(Intent(cpus=(1,)))["cpu_shared"].fix
    machine.plant(task(913, "editor", last_cpu=1))
    many = machine.findings(Intent(cpus=(1,)))["cpu_shared"]
    assert many.fix == "measure with --condition isolate=1 --condition stray_tasks=move"
    assert machine.findings(Intent(cpus=(0, 1)))["cpu_shared"].fix == ""


def test_a_damaged_file_is_no_crash(machine: PlantedMachine) -> None:
    for name, text in TUNED.items():
        for damage in ("", "???", "0-", "(null)", "9" * 20, "a (b) c", "1:cpu", "- cgroup2"):
            machine.plant({name: damage})
            machine.findings(Intent(cpus=(1,), workload="roundtrip"))
        machine.plant({name: text})


def test_a_task_at_priority_99_of_this_machine_is_listed() -> None:
    code = "import sys; sys.stdin.read()"
    with subprocess.Popen([sys.executable, "-c", code], stdin=subprocess.PIPE) as process:
        assert process.stdin is not None
        try:
            os.sched_setscheduler(process.pid, os.SCHED_FIFO, os.sched_param(99))
        except PermissionError:
            pytest.skip("priority 99 needs CAP_SYS_NICE")
        finally:
            found = {finding.id: finding for finding in findings(Root(), Intent())}
            process.stdin.close()
    above = [item for item in found["task_at_or_above"].items if item["tid"] == process.pid]
    assert [(item["policy"], item["priority"], item["kernel"]) for item in above] == [("fifo", 99, False)]
    assert found["task_at_or_above"].grade == "high"
    assert str(process.pid) not in str(findings(Root(), Intent()))


def test_the_intent_of_a_cell() -> None:
    config = {"measurement": "roundtrip", "cpus": [1], "scheduling": {"policy": "rr", "priority": 7}}
    assert intent_of(Cell("c", "posix", None, {}, config)) == Intent((1,), Scheduling("rr", 7), "roundtrip")
    config = {"measurement": "wakeup", "cpus": None, "scheduling": {"policy": "other"}}
    assert intent_of(Cell("c", "posix", None, {}, config)) == Intent(None, Scheduling("other"), "cyclic")


def test_every_known_rhythm_points_to_findings_that_exist() -> None:
    assert [period for period, cause in KNOWN if cause] == list(OF_PERIOD)
    names = {kind.id for kind in KINDS}
    assert {name for group in (*OF_PERIOD.values(), *OF_USAGE.values()) for name in group} <= names


@pytest.mark.parametrize("period_s", [0.01, 0.004, 0.001])
def test_a_rhythm_that_may_be_a_tick_blames_no_setting(period_s: float) -> None:
    """Which tick the kernel has is not known."""
    late_ticks = [{"id": "kernel_not_preempt_rt", "grade": "high"}, {"id": "timer_migration", "grade": "low"}]
    assert not suspicions(late_ticks, period_s, {})


def test_a_rhythm_of_a_second_points_to_throttling(machine: PlantedMachine) -> None:
    machine.plant(
        {"/sys/kernel/debug/sched/fair_server/cpu1/runtime": "50000000"} | task(700, "odd", "fifo", 90)
    )
    found = [finding.to_json() for finding in findings(machine.root, Intent(cpus=(1,)))]
    usage = {"major_faults": 0, "minor_faults": None, "migrations": 3}
    (suspicion,) = suspicions(found, 1.0004, usage)
    assert suspicion.sign.startswith("the latest releases come every 1s, the period of real-time throttling")
    assert [finding["id"] for finding in suspicion.findings] == ["fair_server", "task_at_or_above"]
    assert suspicions(found, 0.5, usage) == []
    assert suspicions([], 1.0, usage) == []
    (usual,) = suspicions(found, None, {"involuntary_switches": 1200})
    assert usual.sign == "the measured thread saw 1,200 involuntary switches"
    (single,) = suspicions(found, None, {"involuntary_switches": 1})
    assert single.sign == "the measured thread saw 1 involuntary switch"


def test_cpus_that_conditions_isolate_are_isolated(machine: PlantedMachine) -> None:
    """This process was moved away from them, the measured one will not be."""
    machine.plant(
        {
            "/proc/self/cgroup": "0::/user.slice/robot",
            "/proc/self/status": "CapEff:\t0\nCpus_allowed_list:\t0",
            "/sys/devices/system/cpu/isolated": "",
            "/sys/fs/cgroup/rtmeter/cpuset.cpus": "1",
            "/sys/fs/cgroup/rtmeter/cpuset.cpus.partition": "root",
        }
    )
    intent = Intent(cpus=(1,))
    assert not {"cpu_not_isolated", "cpu_outside_cpuset", "cpuset_overlap"} & machine.findings(intent).keys()
    machine.plant({"/sys/fs/cgroup/rtmeter/cpuset.cpus.partition": "isolated"})
    assert "cpu_not_isolated" not in machine.findings(intent)
    machine.plant({"/sys/fs/cgroup/rtmeter/cpuset.cpus.partition": "member"})
    assert "cpu_not_isolated" in machine.findings(intent)
    machine.plant({"/sys/fs/cgroup/rtmeter-housekeeping/cpuset.cpus": "0"})
    assert "cpu_not_isolated" not in machine.findings(intent)
    machine.plant({"/sys/fs/cgroup/rtmeter/cpuset.cpus": None})
    assert "cpu_outside_cpuset" in machine.findings(intent)


@pytest.mark.parametrize(
    ("isolated", "cpus", "fix"),
    [
        ("", (1,), "measure with --condition isolate=1 --condition stray_tasks=move"),
        ("", (0, 1), "intend fewer CPUs: everything else needs one"),
        ("1", (0, 1), "intend fewer CPUs: everything else needs one"),
    ],
)
def test_all_cpus_are_never_to_be_isolated(
    machine: PlantedMachine, isolated: str, cpus: tuple[int, ...], fix: str
) -> None:
    machine.plant({"/sys/devices/system/cpu/isolated": isolated})
    assert machine.findings(Intent(cpus))["cpu_not_isolated"].fix == fix


def test_a_machine_of_one_cpu_is_told_to_isolate_none(machine: PlantedMachine) -> None:
    machine.plant({"/sys/devices/system/cpu/isolated": "", "/sys/devices/system/cpu/online": "0"})
    assert machine.findings(Intent((0,)))["cpu_not_isolated"].fix == ""


def test_without_cpus_other_cpusets_are_an_info(machine: PlantedMachine) -> None:
    machine.plant({"/sys/fs/cgroup/stray/cpuset.cpus": "0"})
    assert machine.findings(Intent())["cpuset_overlap"].grade == "info"
    every = machine.findings(Intent((0, 1)))["cpuset_overlap"]
    assert (every.grade, every.fix) == ("medium", ""), "there is no CPU to go to"
    assert "cpuset_overlap" not in machine.findings(Intent(cpus=(1,)))


GROUP = {
    "/proc/self/mountinfo": "31 25 0:27 / /sys/fs/cgroup/cpu rw - cgroup cgroup rw,cpu",
    "/proc/self/cgroup": "1:cpu:/rtmeters",
    "/proc/700/cgroup": "1:cpu:/robot",
    "/sys/fs/cgroup/cpu/robot/cpu.cfs_quota_us": "20000",
    "/sys/fs/cgroup/cpu/robot/cpu.cfs_period_us": "100000",
    "/sys/fs/cgroup/cpu/robot/cpu.rt_runtime_us": "20000",
    "/sys/fs/cgroup/cpu/robot/cpu.rt_period_us": "100000",
    "/sys/fs/cgroup/cpu/rtmeters/cpu.cfs_quota_us": "-1",
    "/sys/fs/cgroup/cpu/rtmeters/cpu.rt_runtime_us": "950000",
    "/proc/sys/kernel/sched_rt_runtime_us": "950000",
    "/proc/sys/kernel/sched_rt_period_us": "1000000",
}


def test_what_a_thread_that_runs_is_its_own_policy_cpus_and_groups_tell(machine: PlantedMachine) -> None:
    machine.plant(GROUP | task(700, "loop", "fifo", 80, allowed="1"))
    read = next(one for one in read_tasks(machine.root) if one.tid == 700)
    intent = intent_of_thread(read, machine.root)
    assert intent == Intent((1,), Scheduling("fifo", 80), thread=700)
    found = machine.findings(intent)
    assert found["cpu_quota"].fix == "echo -1 > /sys/fs/cgroup/cpu/robot/cpu.cfs_quota_us"
    limit = found["rt_group_limit"]
    assert limit.value == "cpu.rt_runtime_us = 20000 of 100000 us in /sys/fs/cgroup/cpu/robot"
    assert limit.fix.startswith("echo 95000 > /sys/fs/cgroup/cpu/robot/cpu.rt_runtime_us")
    assert not {"normal_policy", "no_cpu_chosen", "task_at_or_above"} & found.keys()
    ours = machine.findings(Intent((1,)))
    assert not {"cpu_quota", "rt_group_limit"} & ours.keys()
    assert [item["tid"] for item in ours["task_at_or_above"].items] == [700]


def test_a_thread_that_runs_is_isolated_at_boot_or_started_anew(machine: PlantedMachine) -> None:
    """A condition's group would be without it."""
    machine.plant(task(700, "loop", "fifo", 80, allowed="1") | {"/sys/devices/system/cpu/isolated": ""})
    fix = machine.findings(Intent((1,), thread=700))["cpu_not_isolated"].fix
    assert fix.startswith("boot with isolcpus=1, or attach --condition isolate=1 ")
    assert "-- COMMAND" in fix


@pytest.mark.parametrize("policy", ["other", "batch", "idle"])
def test_a_normal_thread_that_runs_is_made_real_time_where_it_is(
    machine: PlantedMachine, policy: str
) -> None:
    """It is none of those that share its CPU."""
    machine.plant(GROUP | task(700, "loop"))
    read = next(one for one in read_tasks(machine.root) if one.tid == 700)
    intent = intent_of_thread(replace(read, policy=policy), machine.root)
    assert intent == Intent(None, Scheduling("other"), thread=700)
    assert machine.findings(intent)["normal_policy"].fix.startswith("chrt --fifo --pid 80 700")
    listed = machine.findings(replace(intent, cpus=(0,)))["cpu_shared"].items
    assert [item["tid"] for item in listed] == [300]


def test_threads_any_of_which_does_a_job_are_looked_at_together(machine: PlantedMachine) -> None:
    machine.plant(task(700, "one", "fifo", 80, allowed="1") | task(701, "two", allowed="0"))
    own = {one.tid: one for one in read_tasks(machine.root)}
    intent = intent_of_thread(own[700], machine.root, [own[701]])
    assert intent == Intent(None, Scheduling("other"), thread=700, others=(701,))
    found = machine.findings(replace(intent, cpus=(0,)))
    assert found["normal_policy"].fix.startswith("chrt --fifo --pid 80 700; chrt --fifo --pid 80 701, or")
    assert [item["tid"] for item in found["cpu_shared"].items] == [300]


@pytest.mark.parametrize(
    ("kernel", "programs", "emulated"),
    [("x86_64", "i686", False), ("aarch64", "armv8l", False), ("x86_64", "armv7l", True)],
)
def test_a_kernel_of_64_bits_runs_programs_of_32(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, kernel: str, programs: str, emulated: bool
) -> None:
    (tmp_path / "proc/sys/kernel").mkdir(parents=True)
    (tmp_path / "proc/sys/kernel/arch").write_text(f"{kernel}\n")
    machine = Machine(Root(tmp_path), Intent())
    monkeypatch.setitem(vars(machine), "architecture", programs)
    found = {finding.id for finding in surroundings.check(machine)}
    assert ("emulated_processor" in found) == emulated
