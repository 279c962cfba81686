"""`rtmeter measure --condition …` on this machine: set, seen, and undone however it ends."""

from __future__ import annotations

import json
import os
import random
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from front import ended, probes_of, rows_of, rtmeter, running
from real_settings import one_at_a_time
from waiting import until

NOBODY = 65534

CPUSETS, CPUS = Path("/sys/fs/cgroup/cpuset"), Path("/sys/fs/cgroup/cpu")
MIGRATION = Path("/proc/sys/kernel/timer_migration")
CELL = (
    "measure",
    "wakeup",
    "--adapter",
    "posix",
    "--warm-up",
    "0",
    "--cpus",
    "1",
    "--scheduling",
    "fifo:50",
)
ASKED = {
    "timer_migration": "off",
    "workqueue_cpus": "0",
    "irq_cpus.*": "0",
    "ksoftirqd_priority": "2",
    "isolate": "1",
    "rt_runtime": "100ms",
}
CONDITIONS = [word for key, value in ASKED.items() for word in ("--condition", f"{key}={value}")]


def snapshot() -> dict[str, str]:
    """What of this machine the settings change."""
    files = [MIGRATION, *Path("/sys/devices/virtual/workqueue").glob("**/cpumask*")]
    files += [*Path("/proc/irq").glob("[0-9]*/smp_affinity_list"), CPUS / "cpu.rt_runtime_us"]
    found = {str(file): file.read_text() for file in files}
    groups = [group for top in (CPUSETS, CPUS) for group in top.glob("rtmeter*") if "test" not in group.name]
    listed = subprocess.run(["ps", "-eo", "pid,cls,rtprio,comm"], capture_output=True, text=True, check=True)
    threads = [line for line in listed.stdout.splitlines() if "ksoftirqd" in line]
    return found | {"groups": str(groups), "threads": "\n".join(threads)}


@pytest.fixture
def before(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[dict[str, str]]:
    """The machine as it is; afterwards it is so again, and no other such test runs meanwhile."""
    if os.geteuid() != 0 or len(os.sched_getaffinity(0)) < 2:
        pytest.skip("needs root and two CPUs")
    if not (CPUSETS / "cpuset.cpus").exists() or not (CPUS / "cpu.rt_runtime_us").exists():
        pytest.skip("needs cgroup version 1 with cpuset and cpu, and groups with real-time run time")
    monkeypatch.setenv("RTMETER_STATE_DIR", str(tmp_path / "state"))
    with one_at_a_time():
        found = snapshot()
        yield found
        rtmeter("restore")
        assert snapshot() == found


@contextmanager
def measuring(*command: object) -> Iterator[subprocess.Popen[str]]:
    """A long run, from its first rows on, and ended by SIGTERM."""
    folder = Path(str(command[-1]))
    with running(*command, "--duration", "10min") as front:
        until(lambda: rows_of(folder.with_name(f"{folder.name}.partial") / "probe.rtlog") > 10, of=front)
        yield front
        if front.poll() is None:
            front.terminate()
            ended(front)


def test_what_is_asked_is_in_effect_while_it_runs_and_stored(before: dict[str, str], tmp_path: Path) -> None:
    with measuring(*CELL, *CONDITIONS, "--out", tmp_path / "cell") as front:
        (probe,) = probes_of(front.pid)
        groups = Path(f"/proc/{probe}/cgroup").read_text()
        assert MIGRATION.read_text() == "0\n"
        assert {"cpuset:/rtmeter", "cpu:/rtmeter"} <= {line.split(":", 1)[1] for line in groups.splitlines()}
    assert snapshot() == before
    record = json.loads((tmp_path / "cell" / "cell.json").read_text())
    effective = record["conditions"]["effective"]["settings"]
    assert set(effective) == set(ASKED)
    assert effective["timer_migration"] == {str(MIGRATION): "0"}
    assert effective["isolate"][f"{CPUSETS}/rtmeter/cpuset.cpus"] == "1"
    assert effective["rt_runtime"][f"{CPUS}/rtmeter/cpu.rt_runtime_us"] == "100000"
    assert record["conditions"]["asked"]["settings"]["rt_runtime"] == "100ms"
    assert record["effective"]["scheduling"]["policy"] == "fifo"


def test_a_server_with_other_cpus_stays_out_of_the_isolation(before: dict[str, str], tmp_path: Path) -> None:
    command = ["measure", "roundtrip", "--adapter", "posix", "--cpus", "1", "--server-cpus", "0"]
    with measuring(*command, "--condition", "isolate=1", "--out", tmp_path / "cell") as front:
        places = [
            Path(f"/proc/{probes_of(front.pid, role)[0]}/cpuset").read_text() for role in ("client", "server")
        ]
    assert places[0] == "/rtmeter\n" and places[1] != "/rtmeter\n"


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT, signal.SIGHUP])
def test_a_signal_ends_the_run_and_undoes(before: dict[str, str], tmp_path: Path, number: int) -> None:
    with measuring(*CELL, *CONDITIONS, "--out", tmp_path / "cell") as front:
        front.send_signal(number)
        ended(front)
    assert snapshot() == before
    assert json.loads((tmp_path / "cell" / "cell.json").read_text())["status"] == "interrupted"


def test_an_error_undoes(before: dict[str, str], tmp_path: Path) -> None:
    done = rtmeter(*CELL, *CONDITIONS, "--condition", "governor=nonsense", "--out", tmp_path / "a")
    assert (done.code, snapshot()) == (1, before)
    assert "--condition governor = 'nonsense'" in done.err
    done = rtmeter(*CELL, *CONDITIONS, "--condition", "irq_cpus.eth9=0", "--out", tmp_path / "b")
    assert (done.code, snapshot()) == (1, before)
    assert "--condition irq_cpus.eth9 = '0': eth9 has no interrupts here" in done.err


@pytest.mark.timeout(3600)  # of a busy machine
def test_killed_at_random_then_restored(
    before: dict[str, str], tmp_path: Path, sized: Callable[..., int]
) -> None:
    """The front as a user starts it; `rtmeter restore` as a user calls it, and once more."""
    chance = random.Random(20261121)
    journal = Path(os.environ["RTMETER_STATE_DIR"]) / "journal"
    left = 0
    for n in range(sized("kills of the front", reduced=3, full=60)):
        length = "300ms" if n else "10min"  # the first is killed while it measures, however slow this process
        with running(*CELL, "--duration", length, *CONDITIONS, "--out", tmp_path / str(n)) as front:
            until(lambda: journal.exists() or front.poll() is not None)
            time.sleep(chance.uniform(0, 1))
            front.kill()
            front.communicate()
        left += journal.exists()
        assert rtmeter("restore").code == 0
        assert snapshot() == before
        again = rtmeter("restore")
        assert (again.code, again.out) == (0, "nothing was to be put back\n")
    assert left > 0


def test_the_next_run_undoes_what_a_killed_one_left(before: dict[str, str], tmp_path: Path) -> None:
    with measuring(*CELL, *CONDITIONS, "--out", tmp_path / "killed") as front:
        front.kill()
        front.communicate()
    assert snapshot() != before
    done = rtmeter(*CELL, "--duration", "100ms", "--out", tmp_path / "next")
    assert done.code == 0
    assert f"after a run that was killed: {MIGRATION}: put back to '1'" in done.err
    assert snapshot() == before


def test_a_campaign_tells_the_setting_the_value_and_the_remedy(
    before: dict[str, str], tmp_path: Path
) -> None:
    campaign = tmp_path / "wrong.yaml"
    cells = CAMPAIGN.replace("LENGTH", "100ms").replace("cells: [{", "cells: [{conditions: ASKED, ")
    for asked, said in (
        ("{irq_cpus: {'*': 999}}", "conditions.irq_cpus.* = '999': CPU 999 does not exist here"),
        ("{qdisc: {lo: nosuch}}", "conditions.qdisc.lo = 'nosuch': the kernel refuses to change"),
    ):
        campaign.write_text(cells.replace("ASKED", asked))
        done = rtmeter("run", campaign, "--out", tmp_path / "results")
        assert (done.code, snapshot()) == (1, before)
        for printed in (done.err, done.out):  # while it runs, and in the table afterwards
            assert f"failed: {said}" in printed
            assert "; choose among " in printed or "; see `man tc-nosuch`" in printed


CAMPAIGN = "cells: [{measurement: wakeup, adapter: posix, duration: LENGTH, warm_up: 0s}]"
HOLD = """
import time
from rtmeter.host.lock import machine_lock
with machine_lock("rtmeter run other.yaml"):
    print("held", flush=True)
    time.sleep(600)
"""


def test_a_second_run_refuses_also_one_that_would_resume_the_first(
    before: dict[str, str], tmp_path: Path
) -> None:
    campaign = tmp_path / "long.yaml"
    campaign.write_text(CAMPAIGN.replace("LENGTH", "10min"))
    command = ("run", campaign, "--out", tmp_path / "results")
    with running(*command) as first:
        until(lambda: probes_of(first.pid), of=first)
        refused = rtmeter(*command, "--resume")
    assert refused.code == 1
    assert f"rtmeter run {campaign}" in refused.err and f"process {first.pid}" in refused.err
    assert len(list((tmp_path / "results").rglob("run.json"))) == 1


def test_a_second_run_waits_for_the_end_of_the_first(before: dict[str, str], tmp_path: Path) -> None:
    campaign = tmp_path / "short.yaml"
    campaign.write_text(CAMPAIGN.replace("LENGTH", "100ms"))
    first = subprocess.Popen([sys.executable, "-c", HOLD], stdout=subprocess.PIPE, text=True)
    try:
        assert first.stdout is not None and first.stdout.readline() == "held\n"
        with running("run", campaign, "--out", tmp_path / "results", "--wait") as second:
            assert second.stderr is not None
            assert any("waiting for rtmeter run other.yaml" in line for line in second.stderr)
            assert second.poll() is None and not (tmp_path / "results").exists()
            first.kill()
            assert ended(second).code == 0
    finally:
        first.kill()
        first.communicate()
    assert len(list((tmp_path / "results").rglob("cell.json"))) == 1


@pytest.mark.parametrize(
    ("prepare", "message"),
    [
        ("mount --bind /proc/irq /proc/irq && mount -o remount,bind,ro /proc/irq", "is read-only here"),
        ("mount -t tmpfs none /proc/irq", "there are no interrupts in /proc/irq here"),
    ],
)
def test_a_container_that_hides_or_protects_interrupts(
    before: dict[str, str], tmp_path: Path, prepare: str, message: str
) -> None:
    inside = ["unshare", "--mount", "sh", "-c", f'{prepare} && exec "$0" "$@"']
    done = rtmeter(*CELL, *CONDITIONS, "--out", tmp_path / "cell", inside=inside)
    assert done.code == 1
    assert "--condition irq_cpus.*" in done.err and message in done.err
    assert "container" in done.err


def test_without_permission_it_says_for_what_and_what_it_takes(before: dict[str, str]) -> None:
    program = (
        "import os\n"
        "from rtmeter.campaign.condition_options import SystemSettings\n"
        "from rtmeter.conditions.settings import Settings\n"
        "from rtmeter.host.root import Root\n"
        "asked = [{'timer_migration': False}, {'ksoftirqd_priority': 2}, {'isolate': '1'}]\n"
        "settings = [Settings(SystemSettings.model_validate(one), Root()) for one in asked]\n"  # imports all
        f"os.setegid({NOBODY}); os.seteuid({NOBODY})\n"  # who may be unable to read where Python lives
        "for one in settings:\n"
        "    try:\n"
        "        one.__enter__()\n"
        "    except Exception as error:\n"
        "        print(error)\n"
    )
    with tempfile.TemporaryDirectory() as state:  # where anybody comes; pytest's are private
        os.chown(state, NOBODY, NOBODY)
        environment = os.environ | {"RTMETER_STATE_DIR": state}
        done = subprocess.run(
            [sys.executable, "-c", program], capture_output=True, text=True, env=environment
        )
    said = done.stdout.splitlines()
    assert [line.partition(" = ")[0] for line in said] == [
        "conditions.timer_migration",
        "conditions.ksoftirqd_priority",
        "conditions.isolate",
    ]
    assert all("no permission to change" in line and "run rtmeter as root (sudo)" in line for line in said)
    assert "CAP_SYS_NICE" in said[1]
