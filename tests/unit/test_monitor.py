"""What the watch makes of a machine's counters: on a planted /proc, and on this machine's."""

from __future__ import annotations

import errno
import os
import threading
from collections.abc import Iterable, Mapping
from contextlib import ExitStack
from dataclasses import replace
from itertools import count, pairwise
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pyarrow.parquet as pq
import pytest

from rtmeter.campaign.matrix import cell_from
from rtmeter.campaign.rules import settle
from rtmeter.conditions import monitor_table, strain, throttling
from rtmeter.conditions.counters import Counters, look
from rtmeter.conditions.monitor import FILE, NOW, Monitor, shares
from rtmeter.host.remote_shell import ConnectionLostError
from rtmeter.host.root import Root
from waiting import until

STAT = """cpu  300 0 100 9000 50 0 0 20 0 0
cpu0 100 10 50 4500 25 3 7 10 0 0
cpu3 200 0 50 4500 25 0 0 10 0 0
intr 12345 1 2 3
ctxt 6789
btime 1
procs_running 5
procs_blocked 2
"""
DISKS = """   8       0 sda 10 0 100 0 20 0 200 0 0 0 0
   8       1 sda1 10 0 100 0 20 0 200 0 0 0 0
 259       0 nvme0n1 1 0 8 0 2 0 16 0 0 0 0
 259       1 nvme0n1p1 1 0 8 0 2 0 16 0 0 0 0
 253       0 dm-0 10 0 100 0 20 0 200 0 0 0 0
   7       0 loop0 10 0 100 0 20 0 200 0 0 0 0
"""
PSI = "some avg10=0.00 avg60=0.00 total=2500000\nfull avg10=0.00 avg60=0.00 total=500000"


def plant(folder: Path, **files: str) -> Root:
    """A machine with these files in /proc; ``__`` in a name is a folder's border. Who reads meanwhile has a
    file as it was before, or as it is now."""
    for name, text in files.items():
        path = folder / "proc" / name.replace("__", "/")
        path.parent.mkdir(parents=True, exist_ok=True)
        new = path.with_name(f"{path.name}.new")
        new.write_text(text)
        new.replace(path)
    return Root(folder)


def test_one_that_could_not_begin_can_be_stopped(tmp_path: Path) -> None:
    lost = ConnectionLostError("the connection is lost")
    looks = iter([{}, lost])

    def read(_: Iterable[str]) -> Mapping[str, str]:
        said = next(looks)
        if isinstance(said, ConnectionLostError):
            raise said
        return said

    begun = Monitor(tmp_path, read, 10**9, set())
    with pytest.raises(ConnectionLostError), ExitStack() as undo:
        undo.callback(begun.stop)
        begun.start()
    assert not (tmp_path / FILE).exists()


def test_one_that_cannot_read_what_it_is_told_says_so_and_keeps_its_rows(tmp_path: Path) -> None:
    looks = count()

    def read(_: Iterable[str]) -> Mapping[str, str]:
        if next(looks) < 4:
            return {}
        raise IndexError("a field is missing")

    monitored = Monitor(tmp_path, read, 10**6, set())
    monitored.start()
    until(lambda: not monitored._thread.is_alive())
    monitored.stop()
    (doubt,) = monitored.doubts()
    assert doubt.type == "monitor_incomplete" and "a field is missing" in doubt.message
    assert pq.read_table(tmp_path / FILE).num_rows > 0


def test_every_counter_is_read(tmp_path: Path) -> None:
    root = plant(
        tmp_path,
        stat=STAT,
        vmstat="nr_free 1\npgfault 1000\npgmajfault 7",
        diskstats=DISKS,
        pressure__cpu=PSI,
        pressure__io=PSI,
    )
    seen = look(root.read_all)
    assert seen.busy_s == {0: 1.8, 3: 2.6}
    assert seen.steal_s == {0: 0.1, 3: 0.1}
    assert seen.now == {"running": 5, "blocked": 2}
    assert seen.totals == {
        "interrupts": 12345,
        "context_switches": 6789,
        "faults": 1000,
        "major_faults": 7,
        "disk_read_bytes": 108 * 512,
        "disk_written_bytes": 216 * 512,
        "psi_cpu_some": 2.5,
        "psi_io_some": 2.5,
        "psi_io_full": 0.5,
    }


def test_what_a_kernel_lacks_is_absent(tmp_path: Path) -> None:
    seen = look(Root(tmp_path).read_all)
    assert (seen.busy_s, seen.steal_s, seen.totals, seen.now) == ({}, {}, {}, {})
    monitored = Monitor(tmp_path, Root(tmp_path).read_all, 0, set())
    monitored.start()
    monitored.stop()
    assert set(monitored.achieved()) == {"seconds"}


def planted_quota(folder: Path, group: dict[str, str], mount: str) -> Root:
    """A machine where this process is in the group /pod/robot, each group's cpu.stat as given."""
    root = plant(folder, self__mountinfo=mount, self__cgroup="4:cpu,cpuacct:/pod/robot\n0::/pod/robot")
    for name, text in group.items():
        path = folder / "sys/fs/cgroup" / name / "cpu.stat"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    (folder / "sys/fs/cgroup/cgroup.controllers").write_text("cpu")
    return root


@pytest.mark.parametrize("kind", ["cgroup rw,cpu,cpuacct", "cgroup2 rw"])
def test_throttling_by_quotas_and_heat_is_counted(tmp_path: Path, kind: str) -> None:
    """Of this process's group and those above it, no others; heat of each core and each CPU's package."""
    name, options = kind.split()
    mount = f"29 23 0:26 / /sys/fs/cgroup rw - {name} none {options}"
    stat = "usage_usec 5\nnr_periods 40\nnr_throttled {}\nthrottled_usec 7"
    groups = {
        "": "usage_usec 9",
        "pod": stat.format(3),
        "pod/robot": stat.format(4),
        "other": stat.format(90),
    }
    root = planted_quota(tmp_path, groups, mount)
    for cpu, times in ((0, 2), (1, 5)):
        folder = tmp_path / f"sys/devices/system/cpu/cpu{cpu}/thermal_throttle"
        folder.mkdir(parents=True)
        (folder / "core_throttle_count").write_text(f"{times}\n")
        (folder / "package_throttle_count").write_text("10\n")
    files = throttling.files(root)
    assert look(root.read_all, files).totals == {"quota_throttles": 7, "thermal_throttles": 27}
    assert look(root.read_all).totals == {}
    monitored = Monitor(tmp_path, root.read_all, 0, set(), more_files=files)
    monitored.start()
    planted_quota(tmp_path, groups | {"pod/robot": stat.format(13)}, mount)
    monitored.stop()
    (row,) = pq.read_table(tmp_path / FILE).to_pylist()
    assert (row["quota_throttles"], row["thermal_throttles"]) == (9, 0)
    achieved = monitored.achieved()
    assert (achieved["quota_throttles"], achieved["thermal_throttles"]) == (9, 0)


def test_a_cell_is_watched_for_throttling(tmp_path: Path) -> None:
    mount = "29 23 0:26 / /sys/fs/cgroup rw - cgroup2 none rw"
    root = planted_quota(tmp_path, {"pod/robot": "nr_throttled 4"}, mount)
    cell = cell_from(settle({"measurement": "wakeup", "adapter": "posix"}), "cell", {})
    with strain.strain_of(cell, tmp_path, root) as watching:
        planted_quota(tmp_path, {"pod/robot": "nr_throttled 6"}, mount)
    assert watching.facts()["achieved"]["machine"]["quota_throttles"] == 2


def test_shares_are_of_the_time_between() -> None:
    before = Counters(0, {0: 10.0, 1: 20.0, 2: 1.0}, {0: 1.0, 1: 0.0, 2: 0.0}, {}, {})
    after = Counters(4_000_000_000, {0: 12.0, 1: 24.5, 7: 1.0}, {0: 2.0, 1: 0.0, 7: 0.0}, {}, {})
    assert shares(before, after) == {0: (0.5, 0.25), 1: (1.0, 0.0)}  # CPUs 2 and 7 came or went


def test_rows_and_means_add_up(tmp_path: Path) -> None:
    root = plant(tmp_path, stat=STAT, vmstat="pgfault 1000\npgmajfault 7", pressure__cpu=PSI)
    gauge = iter([4.0, 3.0, None] + [4.0] * 10**6)
    monitored = Monitor(tmp_path, root.read_all, 20_000_000, set(), {"load_workers": lambda: next(gauge)})
    monitored.start()
    until(lambda: monitored.least("load_workers") == 3)
    plant(tmp_path, vmstat="pgfault 1500\npgmajfault 9", stat=STAT.replace("running 5", "running 9"))
    plant(tmp_path, pressure__cpu=PSI.replace("total=2500000", "total=999999999999"))
    monitored.stop()
    rows = pq.read_table(tmp_path / FILE).to_pylist()
    achieved = monitored.achieved()
    assert [row["load_workers"] for row in rows[:3]] == [4, 3, None][: len(rows)]
    assert sum(row["faults"] for row in rows) == 500
    assert {row["psi_cpu_some"] for row in rows} == {0.0, 1.0}, "a share of the time between"
    seconds = sum(row["interval_ns"] for row in rows) / 1e9
    assert seconds == pytest.approx(achieved["seconds"], abs=0.001)
    assert achieved["faults_per_s"] == pytest.approx(500 / seconds, abs=0.1)
    assert achieved["major_faults_per_s"] == pytest.approx(2 / achieved["seconds"], rel=0.1)
    assert achieved["running_max"] == 9
    assert achieved["busy_cpus"] == {"0": 0, "3": 0}
    assert rows[0].keys() >= {"at_ns", "cpu0_busy", "cpu3_steal", "psi_cpu_some", "running", "blocked"}
    assert all(b["at_ns"] - a["at_ns"] == b["interval_ns"] for a, b in pairwise(rows))


def test_it_samples_off_the_measured_cpus(tmp_path: Path) -> None:
    """The thread itself moves; the one that started it stays where it was."""
    everywhere = os.sched_getaffinity(0)
    if len(everywhere) < 2:
        pytest.skip("needs two CPUs")
    measured = {max(everywhere)}
    seen: list[set[int]] = []

    def gauge() -> None:
        seen.append(os.sched_getaffinity(threading.get_native_id()))

    for avoid in (measured, everywhere):
        monitored = Monitor(tmp_path, Root().read_all, 0, avoid, {"nothing": gauge})
        monitored.start()
        monitored.stop()
    assert seen == [everywhere - measured, everywhere]  # where all CPUs are measured, there is no other
    assert os.sched_getaffinity(0) == everywhere


@pytest.mark.parametrize(
    "given",
    [
        {"measurement": "wakeup", "cpus": "1,3"},
        {"measurement": "roundtrip", "cpus": "1", "server_cpus": "3"},
        {"measurement": "wakeup", "conditions": {"isolate": "1,3"}},
    ],
)
def test_all_cpus_of_the_probes_count_as_measured(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, given: dict[str, Any]
) -> None:
    seen: list[set[int]] = []
    monkeypatch.setattr(strain, "Monitor", lambda folder, read, interval, cpus, *_: seen.append(cpus))
    cell = cell_from(settle(given | {"adapter": "posix"}), "cell", {})
    strain.strain_of(cell, tmp_path, Root())
    assert seen == [{1, 3}]


def test_many_rows_are_written_in_groups(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(monitor_table, "ROWS_A_GROUP", 3)
    rows, enough = count(1), threading.Event()

    def gauge() -> float:
        if next(rows) == 7:
            enough.set()
        return 0

    monitored = Monitor(tmp_path, plant(tmp_path, stat=STAT).read_all, 1_000_000, set(), {"seen": gauge})
    monitored.start()
    assert enough.wait(60)
    monitored.stop()
    stored = pq.ParquetFile(tmp_path / FILE)
    assert stored.metadata.num_row_groups > 2  # the first row is one of its own
    assert len(stored.read()) == stored.metadata.num_rows > 3


def test_the_last_row_is_there_for_who_looks_on_while_it_samples_and_no_longer(tmp_path: Path) -> None:
    monitored = Monitor(tmp_path, plant(tmp_path, stat=STAT).read_all, 1_000_000, set())
    monitored.start()
    until((tmp_path / NOW).exists)
    monitored.stop()
    assert not (tmp_path / NOW).exists() and (tmp_path / FILE).is_file()


def test_of_a_last_row_that_gets_no_name_nothing_stays(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    tried = threading.Event()

    def refused(_one: Path, _other: Path) -> None:
        tried.set()
        raise OSError(errno.EIO, os.strerror(errno.EIO))

    (tmp_path / "cell").mkdir()
    monitored = Monitor(tmp_path / "cell", plant(tmp_path, stat=STAT).read_all, 1_000_000, set())
    monkeypatch.setattr(Path, "replace", refused)
    monitored.start()
    assert tried.wait(60)
    monitored.stop()
    assert [file.name for file in (tmp_path / "cell").iterdir()] == [FILE]


def test_a_full_disk_is_a_doubt(tmp_path: Path) -> None:
    monitored = Monitor(tmp_path / "missing", plant(tmp_path, stat=STAT).read_all, 0, set())
    monitored.start()
    monitored.stop()
    assert [doubt.type for doubt in monitored.doubts()] == ["monitor_incomplete"]
    assert monitored.achieved()["busy"] == 0


def test_a_machine_that_is_lost_meanwhile_is_a_doubt(tmp_path: Path) -> None:
    looks = count()

    def read(_: Iterable[str]) -> Mapping[str, str]:
        if next(looks) > 1:
            raise ConnectionLostError("the connection is lost")
        return {}

    monitored = Monitor(tmp_path, read, 0, set())
    monitored.start()
    monitored.stop()
    assert ["the connection is lost" in doubt.message for doubt in monitored.doubts()] == [True]


@pytest.mark.parametrize(("ns", "told"), [(499_999_999, False), (500_000_000, True)])
def test_of_a_moment_no_share_of_others_is_told(tmp_path: Path, ns: int, told: bool) -> None:
    others: Any = SimpleNamespace(found=lambda *_: {"others": 0.5})
    monitored = Monitor(tmp_path, plant(tmp_path, stat=STAT).read_all, 0, set(), others=others)
    monitored._last = replace(monitored._first, at_ns=monitored._first.at_ns + ns)
    assert ("others" in monitored.achieved()) == told


def test_a_cpu_that_comes_later_is_no_error(tmp_path: Path) -> None:
    looks: list[float] = []
    count = {"load_workers": lambda: looks.append(1.0) or len(looks)}
    monitored = Monitor(tmp_path, plant(tmp_path, stat=STAT).read_all, 10_000_000, set(), count)
    monitored.start()
    until(lambda: len(looks) > 1)
    plant(tmp_path, stat=STAT + "cpu7 1 0 0 0 0 0 0 0 0 0\n")
    before = len(looks)
    until(lambda: len(looks) > before + 1)
    monitored.stop()
    assert "cpu7_busy" not in pq.read_table(tmp_path / FILE).column_names
    assert list(monitored.doubts()) == []


def test_this_machine_is_seen(tmp_path: Path) -> None:
    def counted() -> dict[str, str]:
        lines = (Root().read("/proc/stat") or "").splitlines()
        return dict(line.split(" ", 1) for line in lines if line.startswith(("cpu", "ctxt")))

    before = counted()
    monitored = Monitor(tmp_path, Root().read_all, 0, set())
    monitored.start()
    begun = counted()
    until(lambda: all(line != begun.get(name) for name, line in counted().items()))
    monitored.stop()
    assert before.keys() == begun.keys()
    achieved: dict[str, Any] = monitored.achieved()
    assert set(map(int, achieved["busy_cpus"])) >= os.sched_getaffinity(0)
    assert 0 <= achieved["busy"] <= 1
    assert achieved["context_switches_per_s"] > 0
    assert achieved["running_max"] >= 1
