"""What programs of ours tell of threads, beside what tracefs tells of them at the same time."""

from __future__ import annotations

import ctypes
import os
import platform
import struct
import subprocess
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from pathlib import Path

import pytest
from attached import compiled, here, left_instances, switches, takes_programs

from cpus import ONLINE, OWN, takes_deadline
from rtmeter.attach.grid import loop_of
from rtmeter.attach.jobs import Job, jobs_of
from rtmeter.attach.sleeps import sleeps_of
from rtmeter.conditions.releases import ToldReleases
from rtmeter.errors import RtmeterError
from rtmeter.explain.events import LOST, OTHERS_TIMER, TIMER_ARMED, Trace
from rtmeter.host.root import Root
from rtmeter.measure.programs import attaching
from rtmeter.measure.programs.attaching import EBPF, TRACEFS, Attached
from rtmeter.measure.programs.following import Following
from rtmeter.measure.programs.program import threads_of
from rtmeter.trace.ebpf.btf import UnavailableError, types_of
from rtmeter.trace.ebpf.programs import STRUCTURES
from rtmeter.trace.ebpf.recorder import RingsRecorder
from rtmeter.trace.of_threads import functions_of
from waiting import until

pytestmark = [here, pytest.mark.skipif(not takes_programs(), reason="this kernel takes no programs of ours")]


IO_URING_SETUP, IO_URING_ENTER = 425, 426  # on every architecture

NAMES = ("absolute", "wall_clock", "relative", "poll", "select", "epoll")
NAMES += ("condition", "semaphore", "timerfd", "signal")
KINDS = (*NAMES, pytest.param("budget", marks=takes_deadline))


@pytest.fixture(scope="module")
def both(tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[str, tuple[list[Job], list[Job]]]]:
    """The jobs of each thread as both tell them."""
    folder = tmp_path_factory.mktemp("ebpf")
    process = subprocess.Popen([compiled("sleepers", folder), folder / "own.txt"])
    wanted = {*NAMES, *(["budget"] if OWN == ONLINE else [])}
    try:
        until(lambda: {task.name for task in threads_of(process.pid, Root())} >= wanted, of=process)
        names = {task.name: task.tid for task in threads_of(process.pid, Root())}
        with (
            Attached(names.values(), folder, Root(), by=TRACEFS) as one,
            Attached(names.values(), folder, Root(), by=EBPF) as other,
        ):
            before = {tid: switches(process.pid, tid) for tid in (names[name] for name in wanted)}
            until(lambda: all(switches(process.pid, tid) >= before[tid] + 100 for tid in before))
        found = {}
        for name, tid in names.items():
            told = [list(jobs_of(sleeps_of(trace, tid).sleeps)) for trace in (one.trace(), other.trace())]
            found[name] = told[0], told[1]
        yield found
    finally:
        process.kill()
        process.wait(60)


@pytest.mark.parametrize("name", KINDS)
def test_both_tell_the_same_releases(both: dict[str, tuple[list[Job], list[Job]]], name: str) -> None:
    """One of which one of them lacks an event is unknown there. How far the wall clock is ahead tracefs does
    not tell: that is read, some microseconds off."""
    by_tracefs, by_ebpf = both[name]
    exact = 100_000 if name == "wall_clock" else 1
    # Else they may lie where one rounds up and the other down.
    phase = next(job.release_ns for job in by_ebpf if job.known)
    there, here = (
        {(job.release_ns - phase + exact // 2) // exact: job for job in jobs if job.known}
        for jobs in both[name]
    )
    same = there.keys() & here.keys()
    assert len(same) > 20
    for release in same:
        assert (there[release].kind, there[release].waits) == (here[release].kind, here[release].waits)
    assert loop_of(by_tracefs).on_grid == loop_of(by_ebpf).on_grid
    unknown = sum(not job.known for job in (*by_tracefs, *by_ebpf))
    first, last = max(min(there), min(here)), min(max(there), max(here))
    odd = sorted(release for release in there.keys() ^ here.keys() if first <= release <= last)
    assert len(odd) <= unknown, [(there.get(release), here.get(release)) for release in odd]


def test_nothing_of_it_is_in_tracefs(tmp_path: Path) -> None:
    with Attached([threading.get_native_id()], tmp_path, Root()) as attached:
        assert attached.by == EBPF
        assert not [name for name in left_instances() if f"-{os.getpid()}-" in name]
    assert list(tmp_path.iterdir()) == []


def test_its_own_sleeps_are_all_there(tmp_path: Path) -> None:
    due: list[int] = []
    with Attached([threading.get_native_id()], tmp_path, Root()) as attached:
        for _ in range(50):
            due.append(time.monotonic_ns())
            time.sleep(0.001)
    jobs = list(jobs_of(sleeps_of(attached.trace(), threading.get_native_id()).sleeps))
    assert [job.known for job in jobs if job.by_timer].count(True) >= 49
    assert attached.event_ns is not None
    assert attached.tally.lost == 0


def test_a_wait_of_io_uring_with_a_timeout_is_a_sleep(tmp_path: Path) -> None:
    libc, parameters = ctypes.CDLL(None, use_errno=True), ctypes.create_string_buffer(120)
    ring = libc.syscall(IO_URING_SETUP, 1, parameters)
    if ring < 0:
        pytest.skip(f"this kernel gives no ring: {os.strerror(ctypes.get_errno())}")
    millisecond = ctypes.create_string_buffer(struct.pack("=qq", 0, 1_000_000))
    waits, with_argument = 1, 8
    argument = struct.pack("=QIIQ", 0, 8, 0, ctypes.addressof(millisecond))
    size = ctypes.c_size_t(len(argument))
    with Attached([threading.get_native_id()], tmp_path, Root()) as attached:
        for _ in range(50):
            libc.syscall(IO_URING_ENTER, ring, 0, 1, waits | with_argument, argument, size)
    os.close(ring)
    jobs = list(jobs_of(sleeps_of(attached.trace(), threading.get_native_id()).sleeps))
    assert [job.kind for job in jobs if job.known].count("io_uring_enter") >= 49


@pytest.mark.parametrize("profiled", [False, True])
def test_the_kernels_own_ticks_are_not_told_as_timers_of_the_thread_that_they_interrupt(
    profiled: bool,
) -> None:
    if not functions_of(Root()):
        pytest.skip("this kernel hides its functions")
    with profiler() if profiled else nullcontext():
        recorder = RingsRecorder(Root(), [threading.get_native_id()])
        recorder.start()
        enough = time.thread_time() + 0.2
        while time.thread_time() < enough:  # on a CPU: twenty ticks at 100 Hz
            continue
        recorder.stop()
    trace = recorder.trace()
    armed = [trace.name_of(row) for row in range(len(trace)) if trace.event[row] == TIMER_ARMED]
    assert not {None, OTHERS_TIMER} & {*armed}


@contextmanager
def profiler() -> Iterator[None]:
    """Samples this thread by its CPU's clock, as a profiler does."""
    open_call, cpu_clock, period_ns = {"x86_64": 298, "aarch64": 241}[platform.machine()], 0, 1_000_000
    about = struct.pack("=IIQQQ", 1, 128, cpu_clock, period_ns, 1 << 0).ljust(
        128, b"\0"
    )  # of software; its IP
    libc = ctypes.CDLL(None, use_errno=True)
    descriptor = libc.syscall(open_call, about, 0, -1, -1, 0)
    if descriptor < 0:
        pytest.skip(f"this kernel lets nobody sample: {os.strerror(ctypes.get_errno())}")
    try:
        yield
    finally:
        os.close(descriptor)


def test_a_reader_that_is_held_up_loses_events_and_counts_them() -> None:
    parts: list[Trace] = []
    held, go_on = threading.Event(), threading.Event()

    def sink(part: Trace, _: int) -> None:
        parts.append(part)
        held.set()
        go_on.wait(60)

    recorder = RingsRecorder(Root(), [threading.get_native_id()], sink, records=256)
    recorder.start()
    os.getppid()
    until(lambda: (os.getppid(), held.is_set())[1])
    for _ in range(2000):
        os.getppid()
    go_on.set()
    recorder.stop()
    lost = sum(part.value[row] for part in parts for row in range(len(part)) if part.event[row] == LOST)
    assert lost == recorder.tally().lost >= 2000 - 256
    times = [time_ns for part in parts for time_ns in part.time_ns]
    assert times == sorted(times)


def test_a_sink_that_fails_ends_the_recording_with_its_error() -> None:
    def sink(part: Trace, _: int) -> None:
        raise RtmeterError("no room", field="out")

    recorder = RingsRecorder(Root(), [threading.get_native_id()], sink)
    recorder.start()
    until(lambda: (os.getppid(), recorder.failed)[1])
    with pytest.raises(RtmeterError, match="no room"):
        recorder.stop()


def test_where_the_kernel_takes_none_tracefs_records_and_it_is_said_why(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def none(*_: object, **__: object) -> None:
        raise UnavailableError("this kernel has no BTF")

    monkeypatch.setattr(attaching, "RingsRecorder", none)
    with Attached([threading.get_native_id()], tmp_path, Root()) as attached:
        time.sleep(0.001)
    assert (attached.by, attached.not_ebpf) == (TRACEFS, "this kernel has no BTF")
    assert len(attached.trace()) > 0
    with pytest.raises(RtmeterError, match="no BTF"):
        Attached([1], tmp_path, Root(), by=EBPF).__enter__()


def test_the_kernels_types_are_those_that_the_programs_are_for() -> None:
    types = types_of(Root(), STRUCTURES)
    assert types.offset("hrtimer", "_softexpires") > 0
    with pytest.raises(UnavailableError, match=r"hrtimer\.nothing"):
        types.offset("hrtimer", "nothing")
    with pytest.raises(UnavailableError, match="tracepoint nothing"):
        types.tracepoint("nothing")


@pytest.mark.parametrize(
    ("by", "follows", "tells"), [(EBPF, True, True), (EBPF, False, False), (TRACEFS, True, False)]
)
def test_releases_are_told_meanwhile_only_where_programs_in_the_kernel_tell_who_follows_them(
    tmp_path: Path, by: str, follows: bool, tells: bool
) -> None:
    told, tid = ToldReleases(None, 0), threading.get_native_id()
    follow = [Following(tid, tmp_path / "rows.parquet", None, 0)] if follows else []
    with Attached([tid], tmp_path, Root(), by=by, follow=follow, told=told):
        assert told.new() == ([] if tells else None)


def test_what_a_thread_did_at_last_is_told_though_another_told_nothing(tmp_path: Path) -> None:
    told, tid = ToldReleases(None, 0), threading.get_native_id()
    one, _ = told.teller(), told.teller()

    def tell(job: Job) -> None:
        one.tell(job.release_ns, job.wake_ns, job.free_ns)

    follow = [Following(tid, tmp_path / "rows.parquet", None, 0, tell=tell)]
    with Attached([tid], tmp_path, Root(), by=EBPF, follow=follow, told=told):
        for _ in range(5):
            time.sleep(0.001)
        assert told.new() == []
    assert len(told.new() or []) >= 4
