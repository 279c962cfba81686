"""Explanations at the edges: what a thread's own priority, a part's end, or events that contradict tell."""

from __future__ import annotations

from pathlib import Path

import pytest
from scripts import T, explained

from rtmeter.explain import timeline
from rtmeter.explain.causes import Release, explain
from rtmeter.explain.events import (
    FAULT,
    IRQ_IN,
    IRQ_OUT,
    RUNNABLE,
    SWITCH,
    SYS_IN,
    SYS_OUT,
    TIMER_FIRED,
    WAKING,
    Event,
    Trace,
)
from rtmeter.explain.parts import explain_parts
from rtmeter.explain.segments import Key, Segment
from rtmeter.explain.timeline import doings

MS = 1_000_000


def test_a_priority_that_the_waiting_thread_is_lent(tmp_path: Path) -> None:
    events = """
0 0 switch 0 10 runnable 19 loop
1000 0 switch 10 77 runnable 50 owner
1100 1 waking 0 10 - 99 loop
1200 0 switch 77 10 runnable 99 loop
"""
    found = explained(tmp_path, events, (0, 1000, 2000, 1)).releases[0].segments
    assert [(*one[:2], *one.key[:3]) for one in found[:2]] == [
        (1000, 1100, "displaced", "owner", "below"),
        (1100, 1200, "displaced", "owner", "above"),
    ]


@pytest.mark.parametrize(("at_ns", "counted"), [(999, 0), (1000, 1), (1999, 1), (2000, 0)])
def test_page_faults_count_from_the_release_to_before_the_stamp(at_ns: int, counted: int) -> None:
    rows = [Event(0, 0, SWITCH, 0, T, RUNNABLE, 19, "loop"), Event(at_ns, 0, FAULT, T, name="user")]
    found = explain(Trace(rows), [Release(0, 1000, 2000, True)], T)
    assert found.releases[0].faults == counted


def test_surroundings_that_touch_one_another_tell_of_each_other() -> None:
    """Another's system call, told in the first one's only, holds off the timer of the last; the one between
    ends long before."""
    rows = [
        Event(100, 0, SWITCH, 20, T, RUNNABLE, 80, "T"),
        Event(200, 0, SWITCH, T, 20, 2, 120, "other"),
        Event(300, 0, SYS_IN, 20, name="read"),
        Event(1000, 0, IRQ_IN, 20, name="timer"),
        Event(1010, 0, TIMER_FIRED, 20, T, value=900),
        Event(1020, 0, WAKING, 20, T, 0, 80, "T"),
        Event(1030, 0, IRQ_OUT, 20, name="timer"),
        Event(1040, 0, SWITCH, 20, T, RUNNABLE, 80, "T"),
        Event(1200, 0, SWITCH, T, 20, 2, 120, "other"),
    ]
    releases = [Release(0, 150, 180, False), Release(1, 151, 160, False), Release(2, 900, 1100, True)]
    found = explain_parts([Trace(rows)], releases, T, [(50, 860), (60, 170), (850, 1190)])
    assert found.releases[2].segments[0] == Segment(900, 1000, Key("held_off", "other"))


def halves(rows: list[Event]) -> list[Trace]:
    """Parts share their names."""
    whole, middle = Trace(rows), len(rows) // 2
    return [whole.taken(slice(0, middle)), whole.taken(slice(middle, None))]


def test_a_part_waits_for_what_an_event_tells_that_comes_soon_after() -> None:
    """That the thread leaves a system call 50 ms later, in another part, tells that it was inside."""
    rows = [Event(0, 0, SWITCH, 0, T, RUNNABLE, 19, "loop"), Event(3 * MS, 1, IRQ_IN, 0, name="eth0")]
    rows += [Event(50 * MS, 0, SYS_OUT, T, name="read"), Event(200 * MS, 0, FAULT, T, name="user")]
    found = explain_parts(halves(rows), [Release(0, 1000, 2000, True)], T)
    assert [one.key for one in found.releases[0].segments] == [Key("own_kernel", "read")]


def test_a_system_call_that_was_left_in_a_part_before_is_over() -> None:
    rows = [
        Event(0, 0, SWITCH, 0, T, RUNNABLE, 19, "loop"),
        Event(100, 0, SYS_IN, T, name="read"),
        Event(200, 0, SYS_OUT, T, name="read"),
        Event(300, 1, IRQ_IN, 0, name="eth0"),
        Event(900, 1, IRQ_OUT, 0, name="eth0"),
        Event(5000, 1, IRQ_IN, 0, name="eth0"),
        Event(5100, 1, IRQ_OUT, 0, name="eth0"),
        Event(5200, 1, IRQ_IN, 0, name="eth0"),
    ]
    found = explain_parts(halves(rows), [Release(0, 1000, 2000, True)], T, trail_ns=100)
    assert [one.key for one in found.releases[0].segments] == [Key("own")]


def test_what_is_done_is_told_of_the_cpus_that_the_thread_ran_on_or_was_woken_from_in_that_time(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Woken from CPU 1, it runs on CPU 0, and later on CPU 2."""
    rows = [
        Event(0, 1, SWITCH, 0, 30, RUNNABLE, 120, "waker"),
        Event(0, 0, SWITCH, 0, 20, RUNNABLE, 120, "other"),
        Event(0, 2, SWITCH, 0, 40, RUNNABLE, 120, "elsewhere"),
        Event(1100, 1, WAKING, 30, T, 0, 19, "loop"),
        Event(1200, 0, SWITCH, 20, T, RUNNABLE, 19, "loop"),
        Event(1900, 0, SWITCH, T, 20, 2, 120, "other"),
        Event(3000, 2, SWITCH, 40, T, RUNNABLE, 19, "loop"),
    ]
    found = doings(Trace(rows), T, 1000, 2000)
    assert [one[:3] + one[4:] for one in found] == [
        (0, 1000, 1200, "other"),
        (0, 1200, 1900, "loop"),
        (0, 1900, 2000, "other"),
        (1, 1000, 2000, "waker"),
    ]
    monkeypatch.setattr(timeline, "MOST", 2)
    assert [one.cpu for one in doings(Trace(rows), T, 1000, 2000)] == [0, 0, 1]


def test_a_thread_that_ends_at_the_stamp_was_there_before(tmp_path: Path) -> None:
    events = f"0 0 switch 0 {T} runnable 19 loop\n2000 0 switch {T} 0 ended 120 swapper/0\n"
    events += f"3000 0 switch 0 {T} runnable 19 another\n"
    found = explained(tmp_path, events, (0, 1000, 2000, 1)).releases[0].segments
    assert found == (Segment(1000, 2000, Key("own")),)


def test_times_on_both_sides_of_zero_sum_to_the_lateness(tmp_path: Path) -> None:
    events = f"""
-100 0 switch 0 {T} runnable 19 loop
0 0 switch {T} 30 runnable 10 other
30 0 switch 30 {T} sleeping 19 loop
"""
    found = explained(tmp_path, events, (0, -50, 40, 1)).releases[0].segments
    assert [one[:3] for one in found] == [
        (-50, 0, Key("own")),
        (0, 30, Key("displaced", "other", "above")),
        (30, 40, Key("own")),
    ]


@pytest.mark.parametrize(("name", "priority"), [("-", "-"), ("-", "19"), ("loop", "-")])
def test_what_a_waking_does_not_tell_holds_as_it_was_told_before(
    tmp_path: Path, name: str, priority: str
) -> None:
    """Also of who is on the CPU, woken there."""
    events = f"""
0 0 switch 0 {T} runnable 19 loop
500 0 switch {T} 30 sleeping 10 other
1000 1 waking 7 {T} - {priority} {name}
1100 1 waking 7 30 - {"-" if priority == "-" else 10} {"-" if name == "-" else "other"}
1500 0 switch 30 {T} sleeping 19 loop
"""
    found = explained(tmp_path, events, (0, 1000, 1500, 1)).releases[0].segments
    assert [one[:3] for one in found] == [(1000, 1500, Key("displaced", "other", "above"))]


def of(folder: Path, events: str, stamp_ns: int = 2000) -> list[tuple[object, ...]]:
    """The segments of a release at 1000."""
    found = explained(folder, events, (0, 1000, stamp_ns, 1)).releases[0].segments
    return [(one.start_ns, one.end_ns, *filter(None, one.key[:4])) for one in found]


def test_a_timers_firing_says_when_it_was_due_whatever_was_armed_since(tmp_path: Path) -> None:
    events = f"""
0 0 switch 0 {T} runnable 19 loop
20 0 timer_armed {T} {T} - - - 1000
25 0 timer_armed {T} {T} - - - 9000
30 0 switch {T} 0 sleeping 120 swapper/0
1100 0 irq_in 0 - - - local_timer
1110 0 timer_fired 0 {T} - - - 1000
1115 0 waking 0 {T} - 19 loop
1120 0 irq_out 0 - - - local_timer
1200 0 switch 0 {T} runnable 19 loop
"""
    assert of(tmp_path, events, 1200) == [
        (1000, 1100, "timer_idle"),
        (1100, 1120, "interrupt", "local_timer"),
        (1120, 1200, "dispatch"),
    ]


def test_an_end_without_a_name_ends_the_interrupt_that_began_last(tmp_path: Path) -> None:
    events = f"""
0 0 switch 0 {T} runnable 19 loop
1100 0 irq_in {T} - - - eth0
1120 0 irq_in {T} - - - nvme0
1130 0 irq_out {T}
1200 0 irq_out {T}
"""
    assert of(tmp_path, events) == [
        (1000, 1100, "own"),
        (1100, 1120, "interrupt", "eth0"),
        (1120, 1130, "interrupt", "nvme0"),
        (1130, 1200, "interrupt", "eth0"),
        (1200, 2000, "own"),
    ]


def test_an_idle_cpu_that_no_event_names_is_said_to_be_idle(tmp_path: Path) -> None:
    events = f"""
0 0 switch 0 {T} runnable 19 loop
900 0 switch {T} 0 sleeping
1300 0 waking 0 {T} - 19 loop
1400 0 switch 0 {T} runnable 19 loop
"""
    assert of(tmp_path, events, 1400) == [(1000, 1300, "blocked", "idle"), (1300, 1400, "dispatch")]
