"""What goes wrong with a program that is attached to, and what then happens."""

from __future__ import annotations

import ctypes
import os
import shlex
import shutil
import signal
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from attached import compiled, here, left_instances, names_of, records, takes_programs

from front import ended, rtmeter, running
from rtmeter.campaign.matrix import cell_from
from rtmeter.campaign.rules import settle
from rtmeter.errors import RtmeterError
from rtmeter.host.root import Root
from rtmeter.measure.cell import run_cell
from rtmeter.measure.probe.supervise import Stop
from rtmeter.measure.programs import started
from rtmeter.measure.programs.attaching import EBPF, TRACEFS
from rtmeter.measure.programs.program import program_of
from rtmeter.results import store
from rtmeter.results.record import CellRecord
from waiting import until

pytestmark = here

NOBODY = 65534
PTRACE_SEIZE, PTRACE_INTERRUPT = 0x4206, 0x4207


@pytest.fixture(scope="module")
def misfits(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return compiled("misfits", tmp_path_factory.mktemp("misfits"))


@contextmanager
def alive(*command: object, user: int | None = None) -> Iterator[subprocess.Popen[bytes]]:
    urgent = ("nice", "-n", "-20") if user is None else ()  # beside load it keeps its period
    process = subprocess.Popen([*urgent, *map(str, command)], user=user, start_new_session=True)
    try:
        until(lambda: "loop" in names_of(process.pid), of=process)
        yield process
    finally:
        os.killpg(process.pid, signal.SIGKILL)
        process.wait(60)


@contextmanager
def attached_to(pid: int, cell: Path, *more: str) -> Iterator[subprocess.Popen[str]]:
    """rtmeter, which has recorded some of it already."""
    asked = ("--thread", "loop", "--duration", "1h", "--out", cell, *more)
    with running("attach", "--pid", pid, *asked) as front:
        until(lambda: records(front), of=front)
        go_on(pid, front, 100)
        yield front


def sleeps(pid: int) -> int:
    """How often its thread has gone to sleep."""
    status = Path(f"/proc/{pid}/task/{names_of(pid)['loop']}/status").read_text()
    return int(dict(line.split(":\t", 1) for line in status.splitlines())["voluntary_ctxt_switches"])


def go_on(pid: int, front: subprocess.Popen[str], jobs: int) -> None:
    """Waits for so many further jobs."""
    enough = sleeps(pid) + jobs
    until(lambda: sleeps(pid) > enough, of=front)


def tell(process: subprocess.Popen[bytes], front: subprocess.Popen[str]) -> None:
    """Has its loop do what it is there for, waits for some hundred further jobs, and ends rtmeter."""
    process.send_signal(signal.SIGUSR1)
    status = Path(f"/proc/{process.pid}/status")
    until(lambda: "State:\tS" in status.read_text(), of=process)  # its main thread has told the loop
    go_on(process.pid, front, 300)
    front.send_signal(signal.SIGINT)


def assert_measured(pid: int, cell: Path) -> None:
    """Its loop, until rtmeter is interrupted."""
    with attached_to(pid, cell) as front:
        front.send_signal(signal.SIGINT)
        done = ended(front)
    record = store.read_cell(cell)
    assert (done.code, record.status, record.valid) == (1, "interrupted", True), done.err
    assert record.summary is not None and record.summary.counts["served"] > 0


def types(record: CellRecord) -> set[str]:
    return {doubt.type for doubt in record.warnings}


@pytest.mark.parametrize(
    ("what", "said"),
    [
        ("ends", "the program ended"),
        ("thread_ends", "its thread loop"),
        ("execs", "became /"),
        ("restarts", "became another by exec"),
    ],
)
def test_a_program_that_ends_or_becomes_another_leaves_what_was_until_then(
    misfits: Path, tmp_path: Path, what: str, said: str
) -> None:
    cell = tmp_path / "cell"
    with alive(misfits, what) as process, attached_to(process.pid, cell) as front:
        process.send_signal(signal.SIGUSR1)
        done = ended(front)
    record = store.read_cell(cell)
    assert (done.code, record.status, record.valid) == (1, "interrupted", True), done.err
    [doubt] = [one for one in record.warnings if one.type in ("program_ended", "program_replaced")]
    assert said in doubt.message
    assert record.summary is not None and record.summary.counts["served"] > 0


def test_a_script_that_becomes_the_program_is_no_other_program(misfits: Path, tmp_path: Path) -> None:
    """As one that sources a ROS 2 before."""
    script = f"sleep 0.5; exec {misfits}"
    asked = ("--thread", "loop", "--duration", "300ms", "--warm-up", "0", "--out", tmp_path / "cell")
    done = rtmeter("attach", *asked, "--", "sh", "-c", script)
    record = store.read_cell(tmp_path / "cell")
    assert (record.status, types(record) & {"program_replaced"}) == ("complete", set()), done.err


@pytest.mark.parametrize(("what", "doubt"), [("period", "period_changed"), ("policy", "policy_changed")])
def test_a_change_in_mid_run_is_told(misfits: Path, tmp_path: Path, what: str, doubt: str) -> None:
    cell = tmp_path / "cell"
    with alive(misfits, what) as process, attached_to(process.pid, cell) as front:
        tell(process, front)
        done = ended(front)
    record = store.read_cell(cell)
    assert record.status == "interrupted", done.err
    assert doubt in types(record)


@pytest.mark.parametrize(("judge", "lost"), [("completion", 1), ("latency", 0)])
def test_a_loop_that_hangs_until_the_end_has_lost_that_release_unless_it_woke_and_skipped_the_others(
    misfits: Path, tmp_path: Path, judge: str, lost: int
) -> None:
    cell = tmp_path / "cell"
    with (
        alive(misfits, "") as other,
        alive(misfits, "hangs") as process,
        attached_to(process.pid, cell, "--judge", judge) as front,
    ):
        process.send_signal(signal.SIGUSR1)
        wchan = Path(f"/proc/{process.pid}/task/{names_of(process.pid)['loop']}/wchan")
        until(lambda: "futex" in wchan.read_text(), of=front)
        go_on(other.pid, front, 100)  # of 1 ms, as its own
        front.send_signal(signal.SIGINT)
        done = ended(front)
    record = store.read_cell(cell)
    assert record.summary is not None, done.err
    counts = record.summary.counts
    assert (counts["lost"] - record.counters["unknown"], counts["skipped"] >= 100) == (lost, True)
    assert "job_unended" in types(record)


def test_a_fork_is_no_part_of_the_loop(misfits: Path, tmp_path: Path) -> None:
    cell = tmp_path / "cell"
    with alive(misfits, "forks") as process, attached_to(process.pid, cell) as front:
        tell(process, front)
        done = ended(front)
    record = store.read_cell(cell)
    assert (record.grid["period_ns"], record.grid["kinds"].keys()) == (1_000_000, {"clock_nanosleep"}), (
        done.err
    )


@pytest.mark.parametrize(("what", "said"), [("busy", "never slept"), ("asleep", "never woke")])
def test_a_thread_without_a_loop_is_an_error_that_says_so(misfits: Path, what: str, said: str) -> None:
    with alive(misfits, what) as process:
        done = rtmeter("attach", "--pid", process.pid, "--thread", "loop", "--duration", "500ms")
    assert done.code == 1
    assert said in done.err


def test_a_stopped_program_is_refused_with_what_lets_it_go_on(misfits: Path) -> None:
    with alive(misfits, "") as process:
        process.send_signal(signal.SIGSTOP)
        until(lambda: ") T " in Path(f"/proc/{process.pid}/stat").read_text())
        done = rtmeter("attach", "--pid", process.pid)
    assert done.code == 1
    assert f"kill -CONT {process.pid}" in done.err


def test_what_is_no_program_is_refused(misfits: Path) -> None:
    with alive(misfits, "") as process:
        [loop] = {int(t.name) for t in Path(f"/proc/{process.pid}/task").iterdir()} - {process.pid}
        messages = {
            2: "the kernel's own thread",
            2**22 - 1: "is no process here",
            loop: f"give --pid {process.pid} --thread {loop}",
        }
        for pid, said in messages.items():
            done = rtmeter("attach", "--pid", pid)
            assert (done.code, said in done.err) == (1, True), done.err
        done = rtmeter("attach", "--pid", process.pid, "--thread", "lopp", "--duration", "1s")
        assert (done.code, f"loop ({loop})" in done.err) == (1, True), done.err


def test_the_id_that_a_process_has_in_its_container_is_looked_up(misfits: Path, tmp_path: Path) -> None:
    inside = ("unshare", "--pid", "--fork", "--kill-child", misfits, "")
    process = subprocess.Popen([*map(str, inside)], start_new_session=True)
    try:
        children = Path(f"/proc/{process.pid}/task/{process.pid}/children")
        child = int(until(lambda: children.read_text().strip()))
        until(lambda: "loop" in names_of(child), of=process)
        status = Path(f"/proc/{child}/status").read_text()
        assert "NSpid:\t" + str(child) + "\t1\n" in status
        assert_measured(child, tmp_path / "cell")
    finally:
        os.killpg(process.pid, signal.SIGKILL)
        process.wait(60)


def test_another_users_program_is_measured_by_root(misfits: Path, tmp_path: Path) -> None:
    with tempfile.TemporaryDirectory() as folder:
        Path(folder).chmod(0o755)
        with alive(shutil.copy(misfits, folder), "", user=NOBODY) as process:
            assert_measured(process.pid, tmp_path / "cell")


def test_without_privilege_it_is_refused(misfits: Path) -> None:
    nobody = ("setpriv", f"--reuid={NOBODY}", f"--regid={NOBODY}", "--clear-groups", "--")
    with alive(misfits, "") as process, tempfile.TemporaryDirectory() as folder:
        done = rtmeter("attach", "--pid", process.pid, inside=nobody, cwd=Path("/"), RTMETER_STATE_DIR=folder)
    if "Permission denied" in done.err and "attach" not in done.err:
        pytest.skip("nobody cannot read this checkout")
    assert (done.code, "needs root" in done.err) == (1, True), done.err


def test_two_attach_at_once_and_leave_nothing(misfits: Path, tmp_path: Path) -> None:
    with alive(misfits, "") as process:
        cells = tmp_path / "a", tmp_path / "b"
        with attached_to(process.pid, cells[0]) as one, attached_to(process.pid, cells[1]) as two:
            go_on(process.pid, two, 1000)
            for front in (one, two):
                front.send_signal(signal.SIGINT)
            found = [ended(one), ended(two)]
    assert [done.code for done in found] == [1, 1], [done.err for done in found]
    assert all(store.read_cell(cell).summary.counts["served"] > 1000 for cell in cells)
    assert not instances_of(one) + instances_of(two)


def instances_of(front: subprocess.Popen[str]) -> list[str]:
    return [name for name in left_instances() if f"-{front.pid}-" in name]


RECORDS = """
import sys, time
from pathlib import Path
from rtmeter.host.root import Root
from rtmeter.measure.programs.attaching import Attached
with Attached([int(sys.argv[1])], Path(sys.argv[2]), Root(), by=sys.argv[3]):
    print("records", flush=True)
    time.sleep(3600)
"""


@pytest.mark.parametrize("by", [TRACEFS, None])
def test_killed_it_leaves_no_instance_and_the_program_as_it_was(
    misfits: Path, tmp_path: Path, by: str | None
) -> None:
    with alive(misfits, "") as process:
        command = [sys.executable, "-c", RECORDS, str(process.pid), str(tmp_path)]
        command += [by] if by else [EBPF if takes_programs() else TRACEFS]
        with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as front:
            assert front.stdout is not None
            assert front.stdout.readline() == "records\n"
            assert bool(instances_of(front)) == (command[-1] == TRACEFS)
            front.kill()
            front.wait(60)
        until(lambda: not instances_of(front))
        assert process.poll() is None
        assert "TracerPid:\t0\n" in Path(f"/proc/{process.pid}/status").read_text()


def test_a_program_that_a_debugger_traces_but_lets_run_is_measured_and_said_so(misfits: Path) -> None:
    libc = ctypes.CDLL(None, use_errno=True)
    libc.ptrace.argtypes = [ctypes.c_long, ctypes.c_long, ctypes.c_void_p, ctypes.c_void_p]
    with alive(misfits, "") as process:
        assert not program_of(process.pid, Root()).debugged
        assert libc.ptrace(PTRACE_SEIZE, process.pid, None, None) == 0, os.strerror(ctypes.get_errno())
        assert program_of(process.pid, Root()).debugged
        assert libc.ptrace(PTRACE_INTERRUPT, process.pid, None, None) == 0
        until(lambda: ") t " in Path(f"/proc/{process.pid}/stat").read_text())
        with pytest.raises(RtmeterError, match=f"is stopped; process {os.getpid()} traces it"):
            program_of(process.pid, Root())


def test_a_command_that_ends_by_itself_is_an_error_with_its_last_words(tmp_path: Path) -> None:
    script = "echo no such bus >&2; exit 7"
    done = rtmeter("attach", "--duration", "2s", "--out", tmp_path / "cell", "--", "sh", "-c", script)
    assert done.code == 1
    assert "exit code 7: no such bus" in done.err


def test_a_campaign_starts_the_program_under_its_conditions_and_ends_it(
    misfits: Path, tmp_path: Path
) -> None:
    campaign = tmp_path / "own.yaml"
    campaign.write_text(
        "name: own\n"
        "cells:\n"
        "  - measurement: loop\n"
        "    adapter: attached\n"
        f"    command: {misfits} none\n"
        "    thread: loop\n"
        "    duration: 500ms\n"
        "    warm_up: 600ms\n"  # of which no stall takes all
        "    scheduling: [other, 'fifo:3']\n"
        "    requirement: {deadline: 20s}\n"
    )
    done = rtmeter("run", campaign, "--out", tmp_path / "results")
    cells = [store.read_cell(file.parent) for file in (tmp_path / "results").glob("*/own/*/*/cell.json")]
    assert (done.code, len(cells)) == (3, 2), done.err  # too few to be judged
    policies = sorted(cell.effective["scheduling"]["policy"] for cell in cells)
    assert policies == ["fifo", "other"]
    for cell in cells:
        assert cell.summary is not None and cell.summary.counts["warm_up"] > 0
        assert cell.verdict is not None and cell.verdict.quantity == "completion"
        assert "command_killed" not in types(cell)
    assert subprocess.run(["pgrep", "-f", f"{misfits} none"], capture_output=True).returncode == 1


def test_a_program_that_does_not_end_when_asked_is_killed_and_that_is_told(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(started, "GRACE_S", 0.2)
    deaf = "for s in (2, 15): signal.signal(s, signal.SIG_IGN)"
    named = "ctypes.CDLL(None).prctl(15, b'deaf', 0, 0, 0)"  # PR_SET_NAME: from here on it is in its loop
    script = f"import ctypes, signal, time\n{deaf}\n{named}\nwhile True: time.sleep(0.001)"
    asked = {"measurement": "loop", "adapter": "attached", "duration": "1s", "warm_up": "100ms"}
    command = shlex.join([sys.executable, "-c", script])
    cell = cell_from(settle(asked | {"command": command, "thread": "deaf"}), "cell", {})
    record = run_cell(cell, tmp_path / "cell", Stop(), lambda _: None)
    assert record.status == "complete", record.error
    [doubt] = [one for one in record.warnings if one.type == "command_killed"]
    assert doubt.message.startswith(command)
