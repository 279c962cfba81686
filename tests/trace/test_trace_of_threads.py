"""What a recording of some threads knows beside the events: names of calls and timers, other clocks."""

from __future__ import annotations

import time
from pathlib import Path

import pytest

from rtmeter.host.root import Root
from rtmeter.trace.formats import Field
from rtmeter.trace.names import name_reader
from rtmeter.trace.of_threads import ThreadsRecorder, call_names_32, functions_of, ranges_of
from rtmeter.trace.recorder import _both, offset_ns


def test_system_calls_of_a_32_bit_program_have_their_own_numbers_and_usual_names() -> None:
    names = call_names_32("x86_64")
    assert (names[162], names[240], names[407], names[422]) == (
        "nanosleep",
        "futex",
        "clock_nanosleep",
        "futex",
    )
    assert call_names_32("riscv64") == []


def test_functions_of_timers_are_found_by_address_and_none_where_the_kernel_hides_them(
    tmp_path: Path,
) -> None:
    (tmp_path / "proc").mkdir()
    (tmp_path / "proc/kallsyms").write_text(
        "ffffffff8141e4b0 t hrtimer_wakeup\nffffffff81733b90 t timerfd_tmrproc\nffffffff81000000 T other\n"
    )
    assert functions_of(Root(tmp_path)) == {
        0xFFFFFFFF8141E4B0: "hrtimer_wakeup",
        0xFFFFFFFF81733B90: "timerfd_tmrproc",
    }
    (tmp_path / "proc/kallsyms").write_text("0000000000000000 t hrtimer_wakeup\n")
    assert functions_of(Root(tmp_path)) == {}


def test_a_clock_is_its_own_offset_from_the_monotonic_one() -> None:
    assert abs(offset_ns(time.CLOCK_MONOTONIC)) < 1_000_000_000
    assert offset_ns(time.CLOCK_REALTIME) > 10**18


def test_ids_are_ranges_in_which_the_narrowest_gaps_are_closed_if_these_are_too_many() -> None:
    assert ranges_of([7, 5, 5, 6, 9]) == [(5, 7), (9, 9)]
    spread = [1, 3, 7, 8, 20, 22]
    assert ranges_of(spread) == [(1, 1), (3, 3), (7, 8), (20, 20), (22, 22)]
    assert ranges_of(spread, 3) == [(1, 3), (7, 8), (20, 22)]
    assert ranges_of(spread, 1) == [(1, 22)]
    assert len(ranges_of(range(0, 3000, 5))) == len(ranges_of(range(0, 300, 5))) == 40


@pytest.mark.parametrize("step", [1, 2, 13_000])
def test_a_filter_of_many_threads_is_less_than_a_page(step: int, tmp_path: Path) -> None:
    tids = range(4_194_303 - 300 * step, 4_194_303, step)
    recorder = ThreadsRecorder("/none", tmp_path, set(), Root(tmp_path), tids)
    said = recorder._of("prev_pid", "next_pid", also=100)
    assert len(said) < 4096
    assert "prev_pid == 100 || next_pid == 100" in said


def test_which_events_of_which_threads_are_recorded(tmp_path: Path) -> None:
    """Of one more thread its calls alone, until it is left out; no timer that is the kernel's own clock."""
    calls = "raw_syscalls/sys_enter", "raw_syscalls/sys_exit"
    timers = "timer/hrtimer_start", "timer/hrtimer_expire_entry", "timer/hrtimer_expire_exit"
    names = ("sched/sched_switch", "sched/sched_waking", *calls, *timers)
    folders = {name: tmp_path / "instance/events" / name for name in names}
    for number, folder in enumerate(folders.values()):
        folder.mkdir(parents=True)
        (folder / "format").write_text(f"ID: {number}\n")
        for file in ("filter", "enable"):
            (folder / file).touch()
    (tmp_path / "proc").mkdir()
    (tmp_path / "proc/kallsyms").write_text("00000000000000aa t tick_sched_timer\n00bb t hrtimer_wakeup\n")
    recorder = ThreadsRecorder("/instance", tmp_path / "pages", set(), Root(tmp_path), (5, 6, 9))
    recorder.also = 100
    assert [form.name for form in recorder._enabled()] == [name.rpartition("/")[2] for name in names]
    assert {(folder / "enable").read_text() for folder in folders.values()} == {"1"}
    filters = {name: (folder / "filter").read_text() for name, folder in folders.items()}
    called = "common_pid >= 5 && common_pid <= 6 || common_pid == 9"
    switched = "prev_pid >= 5 && prev_pid <= 6 || next_pid >= 5 && next_pid <= 6"
    assert filters == {
        "sched/sched_switch": f"{switched} || prev_pid == 9 || next_pid == 9",
        "sched/sched_waking": "pid >= 5 && pid <= 6 || pid == 9",
        **dict.fromkeys(calls, f"{called} || common_pid == 100"),
        **dict.fromkeys(timers[:2], "function != 0xaa"),
        timers[2]: "",
    }
    recorder.leave_out()
    assert {(folders[call] / "filter").read_text() for call in calls} == {called}


def test_a_kernels_thread_is_known_by_all_its_names_also_one_that_has_ended() -> None:
    assert _both({1: "a", 2: "b"}, {2: "c", 3: "d"}) == {1: {"a"}, 2: {"b", "c"}, 3: {"d"}}


@pytest.mark.parametrize(
    ("tid", "comm", "name"),
    [
        (0, "swapper/0", "[swapper/0]"),
        (7, "kworker/u8:1-ev", "[kworker/u8:1-ev]"),
        (7, "robot", "robot"),
        (9, "robot", "robot"),
        (9, "[robot]", "[robot] (user)"),
    ],
)
def test_brackets_are_of_the_kernels_threads_alone(tid: int, comm: str, name: str) -> None:
    """A page has the first 15 letters of a name; and who has an id may be another by now."""
    read = name_reader(Field(0, 16, False), lambda _page, _at: tid, {7: {"kworker/u8:1-events_unbound"}})
    assert read(comm.encode().ljust(16, b"\0"), 0) == name
