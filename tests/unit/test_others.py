"""Who else took the CPUs: on a planted /proc, and on this machine's."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from rtmeter.conditions import heat, strain
from rtmeter.conditions.counters import files_of, look
from rtmeter.conditions.others import Others
from rtmeter.conditions.processes import everyone
from rtmeter.host.root import Root
from rtmeter.results import condition_words

TICKS_PER_S = os.sysconf("SC_CLK_TCK")


def plant(folder: Path, pid: int, name: str, cpu_s: float, parent: int = 1, started: int = 50) -> None:
    """A process that took that time, a quarter of it in the kernel; its children took ten seconds."""
    ticks = round(cpu_s * TICKS_PER_S)
    user, kernel = ticks - ticks // 4, ticks // 4
    reaped = f"{5 * TICKS_PER_S} {5 * TICKS_PER_S}"
    path = folder / "proc" / str(pid) / "stat"
    path.parent.mkdir(parents=True, exist_ok=True)
    before = f"{pid} ({name}) S {parent} {pid} {pid} 0 -1 0 1 2 3 4"
    path.write_text(f"{before} {user} {kernel} {reaped} 20 0 1 0 {started} 1000 10\n")


def test_what_processes_took_between_looks_is_told_by_name(tmp_path: Path) -> None:
    others = Others(Root(tmp_path))
    plant(tmp_path, 10, "cc1plus", 4.0)
    plant(tmp_path, 11, "cc1plus", 1.0)
    plant(tmp_path, 12, "a (b) c", 2.0)
    others.look()
    assert others.found(10) == {}, "nothing to compare with"
    plant(tmp_path, 10, "cc1plus", 6.0)
    plant(tmp_path, 11, "cc1plus", 2.0)
    plant(tmp_path, 12, "a (b) c", 2.5)
    plant(tmp_path, 13, "kworker/0:1-events", 0.25)  # new: all it took came since
    plant(tmp_path, 14, "kworker/u8:2", 0.5)
    plant(tmp_path, 15, "little", 0.1)
    others.look()
    found = others.found(10)
    assert found["others"] == pytest.approx(0.435)
    assert found["others_most"] == [
        {"name": "cc1plus", "share": 0.3},
        {"name": "kworker", "share": 0.075},
        {"name": "a (b) c", "share": 0.05},
    ]
    assert found["looking_s"] >= 0


def test_a_number_given_again_is_another_process(tmp_path: Path) -> None:
    others = Others(Root(tmp_path))
    plant(tmp_path, 10, "old", 9.0, started=50)
    others.look()
    plant(tmp_path, 10, "new", 1.0, started=70)
    others.look()
    assert others.found(10)["others_most"] == [{"name": "new", "share": 0.1}]


def test_probes_load_and_what_is_below_them_are_not_others(tmp_path: Path) -> None:
    others = Others(Root(tmp_path), ("rtmeter", "stress-ng"))
    for second in (0, 1):
        plant(tmp_path, 20, "rtmeter-probe-p", second)
        plant(tmp_path, 21, "iox-roudi", second, parent=20 if second == 0 else 1)  # then its parent ended
        plant(tmp_path, 22, "stress-ng-cpu", second)
        plant(tmp_path, 23, "stranger", second)
        others.look()
    assert others.found(10)["others_most"] == [{"name": "stranger", "share": 0.1}]


def test_names_of_others_are_harmless_and_few(tmp_path: Path) -> None:
    others = Others(Root(tmp_path))
    others.look()
    for pid in range(100, 700):
        plant(tmp_path, pid, f"n{pid}", 1.0 if pid == 650 else 0.1)
    plant(tmp_path, 700, "\x1b[31mred", 2.0)
    others.look()
    assert [one["name"] for one in others.found(100)["others_most"]][:2] == [r"\x1b[31mred", "n650"]
    assert len(others._taken_s) <= 256


def test_children_of_this_process_are_its_own() -> None:
    others = Others(Root())
    others.look()
    subprocess.run([sys.executable, "-c", "sum(range(10**6))"], check=True)
    with subprocess.Popen([sys.executable, "-c", "while True: pass"]) as busy:
        while next(one.cpu_s for one in everyone(Root()) if one.pid == busy.pid) < 0.5:
            pass
        others.look()
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
    quiet = {"steal": 0.0, "others": 0.004, "quota_throttles": 0}
    assert condition_words.meanwhile({"achieved": {"machine": quiet}}) == ["nobody else took 1% of the CPUs"]
    assert condition_words.meanwhile(None) == []
