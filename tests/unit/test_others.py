"""Who else took the CPUs: on a planted /proc, and on this machine's."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest

from rtmeter.campaign.matrix import cell_from
from rtmeter.campaign.rules import settle
from rtmeter.conditions import applied, heat, strain
from rtmeter.conditions.counters import NOTHING, Counters, Spent, files_of, look, spent
from rtmeter.conditions.others import Others
from rtmeter.conditions.processes import everyone
from rtmeter.host.root import Root
from rtmeter.results import condition_words
from waiting import until

TICKS_PER_S = os.sysconf("SC_CLK_TCK")
KTHREADD = 2


def end(folder: Path, pid: int) -> None:
    shutil.rmtree(folder / "proc" / str(pid))


def plant(
    folder: Path,
    pid: int,
    name: str,
    cpu_s: float,
    parent: int = 1,
    started: int = 50,
    reaped_s: float = 10.0,
    state: str = "S",
) -> None:
    """A process that took that time, a quarter of it in the kernel, and so did the children that it reaped;
    a thread of the kernel's is below kthreadd, as there."""
    (user, kernel), (reaped_user, reaped_kernel) = (
        (ticks - ticks // 4, ticks // 4) for ticks in (round(s * TICKS_PER_S) for s in (cpu_s, reaped_s))
    )
    reaped = f"{reaped_user} {reaped_kernel}"
    flags = 0x00200040 if parent == KTHREADD else 0x00400100
    path = folder / "proc" / str(pid) / "stat"
    path.parent.mkdir(parents=True, exist_ok=True)
    before = f"{pid} ({name}) {state} {parent} {pid} {pid} 0 -1 {flags} 1 2 3 4"
    path.write_text(f"{before} {user} {kernel} {reaped} 20 0 1 0 {started} 1000 10\n")


def test_what_processes_took_between_looks_is_told_by_name(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(time, "thread_time", iter((1.0, 1.25, 3.0, 3.5)).__next__)  # begun, ended
    others = Others(Root(tmp_path))
    plant(tmp_path, 10, "cc1plus", 4.0)
    plant(tmp_path, 11, "cc1plus", 1.0)
    plant(tmp_path, 12, "a (b) c", 2.0)
    others.look(NOTHING)
    assert others.found(10, NOTHING) == {}, "nothing to compare with"
    plant(tmp_path, 10, "cc1plus", 6.0)
    plant(tmp_path, 11, "cc1plus", 2.0)
    plant(tmp_path, 12, "a (b) c", 2.5)
    plant(tmp_path, 13, "new", 0.75)  # all it took came since
    plant(tmp_path, 15, "little", 0.1)
    others.look(NOTHING)
    found = others.found(10, NOTHING)
    assert found["others"] == pytest.approx(0.435)
    assert found["others_most"] == [
        {"name": "cc1plus", "share": 0.3},
        {"name": "new", "share": 0.075},
        {"name": "a (b) c", "share": 0.05},
    ]
    assert found["looking_s"] == 0.75


def test_what_no_look_found_is_what_the_cpus_spent_besides(tmp_path: Path) -> None:
    others = Others(Root(tmp_path))
    for last in (False, True):
        plant(tmp_path, 10, "rtmeter-probe-p", 0.5 if last else 0.0, reaped_s=0.0)
        plant(tmp_path, 11, "make", 1.0 if last else 0.0)
        plant(tmp_path, 12, "kworker/0:1-events", 0.25 if last else 0.0, KTHREADD)
        plant(tmp_path, 13, "kworker/u8:2", 0.5 if last else 0.0, KTHREADD)
        plant(tmp_path, 14, "irq/24-eth0", 0.12 if last else 0.0, KTHREADD)
        others.look(Spent(6.0, 0.25))
    found = others.found(10, Spent(6.0, 0.25))
    assert (found["others"], found["others_unnamed"]) == (0.463, 0.363), "6 s less what was seen"
    assert found["others_most"] == [{"name": "make", "share": 0.1}]
    assert found["kernel_work"] == 0.112, "of threads and interrupts nobody knows for whom they worked"
    assert found["kernel_work_most"] == [
        {"name": "kworker", "share": 0.075},
        {"name": "interrupts", "share": 0.025},
        {"name": "irq/24-eth0", "share": 0.012},
    ]
    assert others.found(10, NOTHING)["others_unnamed"] == 0, "the ticks told less than the looks"


def test_who_sees_no_thread_of_the_kernel_does_not_see_all_processes(tmp_path: Path) -> None:
    others = Others(Root(tmp_path))
    others.look(NOTHING)
    others.look(NOTHING)
    found = others.found(10, Spent(2.0, 0.0))
    assert (found["others"], found["others_unseen"]) == (0.2, 0.2)
    assert "others_unnamed" not in found


def test_what_our_own_took_to_its_end_is_told_by_who_reaped_it(tmp_path: Path) -> None:
    """A probe is seen with one second, takes two more, and its child half a second all told; a second one has
    ended and is not reaped for a while; a third begins and ends between two looks."""
    others = Others(Root(tmp_path))
    plant(tmp_path, 10, "rtmeter", 3.0, reaped_s=1.0)
    plant(tmp_path, 11, "rtmeter-probe-p", 0.0, parent=10, reaped_s=0.0)
    others.look(NOTHING)
    plant(tmp_path, 11, "rtmeter-probe-p", 1.0, parent=10, reaped_s=0.0)
    plant(tmp_path, 12, "rtmeter-probe-p", 1.0, parent=10, reaped_s=0.0)
    others.look(Spent(2.0, 0.0))
    plant(tmp_path, 12, "rtmeter-probe-p", 1.5, parent=10, reaped_s=0.0, state="Z")
    others.look(Spent(0.5, 0.0))
    end(tmp_path, 11)
    plant(tmp_path, 10, "rtmeter", 3.25, reaped_s=1.0 + 3.0 + 0.5 + 4.0)
    others.look(Spent(6.75, 0.0))
    end(tmp_path, 12)
    plant(tmp_path, 10, "rtmeter", 3.25, reaped_s=10.0)
    others.look(NOTHING)
    assert others.found(10, Spent(9.25, 0.0))["others"] == 0
    assert others.found(10, Spent(9.5, 0.0))["others"] == 0.025


def test_where_nobody_of_ours_reaps_what_was_taken_last_is_not_laid_to_others(tmp_path: Path) -> None:
    """As on another host, where a probe is below somebody else's shell."""
    others = Others(Root(tmp_path))
    plant(tmp_path, 12, "rtmeter-probe-p", 0.0, reaped_s=0.0)
    others.look(NOTHING)
    plant(tmp_path, 12, "rtmeter-probe-p", 1.0, reaped_s=0.0)
    others.look(Spent(3.0, 0.0))
    end(tmp_path, 12)
    plant(tmp_path, 13, "make", 0.5)
    others.look(Spent(2.0, 0.0))
    found = others.found(10, Spent(5.0, 0.0))
    assert (found["others"], found["others_unseen"]) == (0.25, 0.2), "2 s before, and 0.5 of make's"


def test_ticks_that_fall_in_step_with_a_thread_count_for_no_more_than_was_not_idle() -> None:
    begin = {0: 10.0, 1: 10.0, 2: 10.0}
    before = Counters(0, begin, begin, {}, {}, begin, begin)
    after = Counters(
        4_000_000_000,
        {0: 14.0, 1: 10.5, 2: 14.0, 3: 1.0},
        {0: 10.0, 1: 10.0, 2: 11.0, 3: 0.0},
        {},
        {},
        {0: 13.5, 1: 10.0, 2: 10.0, 3: 1.0},
        {0: 10.25, 1: 10.0, 2: 10.5, 3: 0.0},
    )
    assert spent(before, after) == Spent(0.25 + 0.5 + 2.5, 0.25 + 0.0 + 0.5)


def test_an_rtmeter_of_another_is_no_own(tmp_path: Path) -> None:
    """On this machine what is ours is below this process, whatever the others' names are."""
    script = 'cp /bin/sleep "$0/rtmeter-other"; setsid "$0/rtmeter-other" 60 >/dev/null 2>&1 & echo $!'
    started = subprocess.run(["sh", "-c", script, tmp_path], capture_output=True, text=True, check=True)
    other = int(started.stdout)
    try:
        until(lambda: [one for one in everyone(Root()) if one.pid == other and one.name == "rtmeter-other"])
        others = Others(Root())
        others.look(NOTHING)
        assert other not in {pid for pid, _ in others._ours}
        assert os.getpid() in {pid for pid, _ in others._ours}
    finally:
        os.kill(other, signal.SIGKILL)


def test_a_number_given_again_is_another_process(tmp_path: Path) -> None:
    others = Others(Root(tmp_path))
    plant(tmp_path, 10, "old", 9.0, started=50)
    others.look(NOTHING)
    plant(tmp_path, 10, "new", 1.0, started=70)
    others.look(NOTHING)
    assert others.found(10, NOTHING)["others_most"] == [{"name": "new", "share": 0.1}]


def test_probes_load_and_what_is_below_them_are_not_others(tmp_path: Path) -> None:
    others = Others(Root(tmp_path), ("rtmeter", "stress-ng"))
    for second in (0, 1):
        plant(tmp_path, 20, "rtmeter-probe-p", second)
        plant(tmp_path, 21, "iox-roudi", second, parent=20 if second == 0 else 1)  # then its parent ended
        plant(tmp_path, 22, "stress-ng-cpu", second)
        plant(tmp_path, 23, "stranger", second)
        others.look(NOTHING)
    assert others.found(10, NOTHING)["others_most"] == [{"name": "stranger", "share": 0.1}]


def test_names_of_others_are_harmless_and_few(tmp_path: Path) -> None:
    others = Others(Root(tmp_path))
    others.look(NOTHING)
    for pid in range(100, 700):
        plant(tmp_path, pid, f"n{pid}", 1.0 if pid == 650 else 0.1)
    plant(tmp_path, 700, "\x1b[31mred", 2.0)
    others.look(NOTHING)
    assert [one["name"] for one in others.found(100, NOTHING)["others_most"]][:2] == [r"\x1b[31mred", "n650"]
    assert len(others._taken_s) <= 256


def test_children_of_this_process_are_its_own() -> None:
    others = Others(Root())
    others.look(NOTHING)
    subprocess.run([sys.executable, "-c", "sum(range(10**6))"], check=True)
    with subprocess.Popen([sys.executable, "-c", "while True: pass"]) as busy:
        while next(one.cpu_s for one in everyone(Root()) if one.pid == busy.pid) < 0.5:
            pass
        others.look(NOTHING)
        mine = {identity[0] for identity in others._ours}
        busy.kill()
    assert {os.getpid(), busy.pid} <= mine
    assert 1 not in mine


@pytest.mark.parametrize(
    ("watched", "said"),
    [
        ({"steal": 0.04, "others": 0.06}, None),
        ({}, None),
        ({"steal": 0.0, "others": 0.11}, "others took 11% of the CPUs"),
        ({"steal": 0.11}, "the hypervisor took 11% of the CPUs"),
        (
            {"steal": 0.04, "others": 0.07},
            "others took 7% of the CPUs and the hypervisor took 4% of the CPUs",
        ),
        ({"others": 0.64, "seconds": 0.02}, None),
        (
            {"others": 0.64, "others_unnamed": 0.64, "seconds": 0.5},
            "others took 64% of the CPUs (64% by processes that ended too soon to be named)",
        ),
        (
            {"steal": 0.37, "others": 0.6, "others_most": [{"name": "make", "share": 0.5}]},
            "others took 60% of the CPUs (make 50%) and the hypervisor took 37% of the CPUs",
        ),
    ],
)
def test_idle_that_is_not_idle_is_a_doubt(watched: dict[str, Any], said: str | None) -> None:
    found = [doubt.message for doubt in strain.not_idle(watched)]
    assert found == ([f"an idle machine was asked, but {said}"] if said else [])
    assert "load_not_idle" in strain.NOT_REACHED, "an error where the campaign is strict"


@pytest.mark.parametrize("real_time", [True, False])
def test_nobody_makes_a_scripted_clock_late(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, real_time: bool
) -> None:
    monkeypatch.setattr(strain.Monitor, "achieved", lambda _: {"others": 0.64, "seconds": 2.0})
    cell = cell_from(settle({"measurement": "wakeup", "adapter": "posix", "load": "idle"}), "cell", {})
    with applied(cell, tmp_path, Root(tmp_path), real_time=real_time) as standing:
        pass
    assert [doubt.type for doubt in standing.doubts()] == ["load_not_idle"] * real_time


@pytest.mark.parametrize("strict", [True, False])
def test_a_condition_that_was_not_reached_is_an_error_where_strict(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, strict: bool
) -> None:
    monkeypatch.setattr(strain.Monitor, "achieved", lambda _: {"others": 0.64, "seconds": 2.0})
    given = {"measurement": "wakeup", "adapter": "posix", "load": "idle", "strict": strict}
    with strain.strain_of(cell_from(settle(given), "cell", {}), tmp_path, Root(tmp_path)) as standing:
        standing.check()
    failure = standing.failure()
    assert (failure and failure.field) == ("load" if strict else None)


X86, ARM = "processor\t: 0\nvendor_id\t: GenuineIntel\n", "processor\t: 0\nCPU implementer\t: 0x41\n"


@pytest.mark.parametrize(
    ("cpuinfo", "kernel", "seen"),
    [
        (X86, "6.1.0-rt", True),
        (X86, "5.19.0", True),
        (X86, "5.18.19", False),
        (ARM, "4.19.71-rt24", True),
    ],
)
def test_frequencies_are_read_where_no_cpu_is_interrupted_for_it(
    tmp_path: Path, cpuinfo: str, kernel: str, seen: bool
) -> None:
    files = {
        "proc/cpuinfo": cpuinfo,
        "proc/sys/kernel/osrelease": kernel,
        "sys/devices/system/cpu/cpu0/cpufreq/scaling_cur_freq": "1900000\n",
        "sys/devices/system/cpu/cpu12/cpufreq/scaling_cur_freq": "2400500\n",
        "sys/class/thermal/thermal_zone0/temp": "41000\n",
        "sys/class/thermal/thermal_zone1/temp": "66500\n",
    }
    for name, text in files.items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(text)
    root = Root(tmp_path)
    assert look(root.read_all, files_of(root)).now == (
        {"cpu0_mhz": 1900, "cpu12_mhz": 2400.5} if seen else {}
    )
    assert heat.temperature_c(root) == 66.5
    assert heat.temperature_c(Root(tmp_path / "none")) is None


def test_what_the_machine_did_meanwhile_in_words() -> None:
    machine = {
        "steal": 0.002,
        "others": 0.524,
        "others_most": [{"name": "cc1plus", "share": 0.4}, {"name": "sh", "share": 0.004}],
        "quota_throttles": 1,
        "thermal_throttles": 12,
        "cpu0_mhz_min": 1900.0,
        "cpu0_mhz_max": 2400.0,
        "cpu1_mhz_min": 2000.0,
        "cpu1_mhz_max": 2900.0,
        "temperature_c_begin": 66.5,
        "temperature_c_end": 71.0,
    }
    assert condition_words.meanwhile({"achieved": {"machine": machine}}) == [
        "others took 52% of the CPUs (cc1plus 40%)",
        "throttled by a CPU quota once",
        "throttled by heat 12 times",
        "CPUs at 1.9 to 2.9 GHz",
        "66 to 71 °C",
    ]
    one = condition_words.meanwhile({"achieved": {"machine": {"others": 0.01, "steal": 0.0099}}})
    assert one == ["others took 1% of the CPUs"], "a hundredth is worth a word"
    short = {"achieved": {"machine": machine | {"busy": 0.43, "seconds": 0.02}}}
    assert condition_words.meanwhile(short) == [], "ticks of 10 ms tell nothing of 20"
    assert condition_words.in_words({"asked": {}} | short) == []
    cut = {"others": 0.5, "others_most": [{"name": "make", "share": 0.2}], "others_unseen": 0.3}
    assert condition_words.meanwhile({"achieved": {"machine": cut}}) == [
        "others took 50% of the CPUs (make 20%, 30% by processes that "
        "ended too soon, or are not seen from here)"
    ]
    by_us = {"others": 0.0, "kernel_work": 0.12, "kernel_work_most": [{"name": "ksoftirqd", "share": 0.1}]}
    assert condition_words.meanwhile({"achieved": {"machine": by_us}}) == [
        "nobody else took 1% of the CPUs",
        "interrupts and threads of the kernel took 12% of the CPUs (ksoftirqd 10%)",
    ]
    quiet = {"steal": 0.0, "others": 0.004, "quota_throttles": 0}
    assert condition_words.meanwhile({"achieved": {"machine": quiet}}) == ["nobody else took 1% of the CPUs"]
    assert condition_words.meanwhile(None) == []
