"""The rules of an explanation, one by one, on scripts whose segments were computed by hand."""

from __future__ import annotations

from pathlib import Path

import pytest
from scripts import WAITS, explained

ASLEEP = """
0 0 switch 0 10 runnable 19 loop
10 0 sys_in 10 - - - clock_nanosleep
20 0 timer_armed 10 10 - - - 1000
30 0 switch 10 0 sleeping 120 swapper/0
"""
"""T goes to sleep on CPU 0 until 1000."""


@pytest.fixture
def said(tmp_path: Path):
    """``said(events, release, stamp)``: the segments, as (start, end, category, who, relation)."""

    def segments(events: str, release_ns: int = 1000, stamp_ns: int = 2000) -> list[tuple[object, ...]]:
        found = explained(tmp_path, events, (0, release_ns, stamp_ns, 1)).releases[0].segments
        assert sum(one.end_ns - one.start_ns for one in found) == stamp_ns - release_ns
        return [(one.start_ns, one.end_ns, *filter(None, one.key[:4])) for one in found]

    return segments


def woken(fired: int, irq: int, out: int, runs: int, on: str = "0", back: int = 1900) -> str:
    """T's timer fires on CPU 0; then T runs."""
    return f"""
{irq} 0 irq_in {on} - - - local_timer
{fired} 0 timer_fired {on} 10 - - - 1000
{fired + 5} 0 waking {on} 10 - 19 loop
{out} 0 irq_out {on} - - - local_timer
{runs} 0 switch {on} 10 runnable 19 loop
{back} 0 sys_out 10 - - - clock_nanosleep
"""


def test_on_time_the_interrupt_the_switch_the_kernel_and_its_own_code(said) -> None:
    assert said(ASLEEP + woken(1010, 1003, 1040, 1100)) == [
        (1000, 1003, "timer_idle"),
        (1003, 1040, "interrupt", "local_timer"),
        (1040, 1100, "dispatch"),
        (1100, 1900, "own_kernel", "clock_nanosleep"),
        (1900, 2000, "own"),
    ]


def test_a_timer_that_was_armed_for_later_than_the_release(said) -> None:
    assert said(ASLEEP + woken(1010, 1003, 1040, 1100, back=1200), 700, 1050)[0] == (700, 1000, "armed_later")


@pytest.mark.parametrize(
    ("name", "before", "expected"),
    [
        ("[kworker/0:1]", "", ("held_off", "[kworker/0:1]")),
        ("hog", "910 0 sys_in 77 - - - ioctl", ("held_off", "hog")),
        ("hog", "", ("outside",)),
    ],
)
def test_a_due_timer_is_held_off_by_the_kernel_or_from_outside(said, name, before, expected) -> None:
    hog = f"900 0 switch 0 77 runnable 120 {name}\n{before}"
    found = said(ASLEEP + hog + woken(1210, 1200, 1240, 1300, on="77", back=1310))
    assert found[:3] == [
        (1000, 1200, *expected),
        (1200, 1240, "interrupt", "local_timer"),
        (1240, 1300, "displaced", name, "below"),
    ]


def test_a_system_call_that_began_before_the_trace_is_inside_the_kernel(said) -> None:
    hog = "900 0 switch 0 77 runnable 120 hog"
    left = "1400 1 switch 0 77 runnable 120 hog\n1500 1 sys_out 77 - - - read"
    found = said(ASLEEP + hog + woken(1210, 1200, 1240, 1300, on="77", back=1310) + left)
    assert found[0] == (1000, 1200, "held_off", "hog")


def test_interrupts_and_softirqs_of_the_cpu_come_before_the_thread_on_it(said) -> None:
    found = said(
        ASLEEP
        + """
900 0 switch 0 77 runnable 120 hog
990 0 softirq_in 77 - - - NET_RX
1010 0 irq_in 77 - - - eth0
1030 0 irq_out 77 - - - eth0
1050 0 softirq_out 77 - - - NET_RX
"""
        + woken(1210, 1200, 1240, 1300, on="77", back=1310)
    )
    assert found[:4] == [
        (1000, 1010, "softirq", "NET_RX"),
        (1010, 1030, "interrupt", "eth0"),
        (1030, 1050, "softirq", "NET_RX"),
        (1050, 1200, "outside"),
    ]


def test_inside_since_the_beginning_of_the_trace(said) -> None:
    events = """
1100 0 irq_out 10 - - - virtio0
1200 0 irq_out 10 - - - eth0
1300 0 softirq_out 10 - - - NET_RX
1400 0 sys_out 10 - - - read
"""
    assert said(events) == [
        (1000, 1100, "interrupt", "virtio0"),
        (1100, 1200, "interrupt", "eth0"),
        (1200, 1300, "softirq", "NET_RX"),
        (1300, 1400, "own_kernel", "read"),
        (1400, 2000, "own"),
    ]


@pytest.mark.parametrize(("priority", "relation"), [(9, "above"), (19, "equal"), (120, "below")])
def test_a_thread_on_the_cpu_that_it_runs_on_next(said, priority: int, relation: str) -> None:
    events = f"""
0 0 switch 0 10 runnable 19 loop
0 1 switch 0 66 runnable 0 elsewhere
1100 0 switch 10 77 runnable {priority} other
1150 0 switch 77 0 sleeping 120 swapper/0
1160 1 switch 66 77 runnable {priority} other
1300 1 switch 77 10 runnable 19 loop
"""
    assert said(events) == [
        (1000, 1100, "own"),
        (1100, 1160, "displaced", "elsewhere", "above"),
        (1160, 1300, "displaced", "other", relation),
        (1300, 2000, "own"),
    ]


def test_a_priority_that_is_lent_while_the_thread_runs(said) -> None:
    events = """
0 0 switch 0 10 runnable 19 loop
1000 0 switch 10 77 runnable 120 owner
1100 1 waking 0 77 - 9 owner
1200 0 switch 77 10 runnable 19 loop
"""
    assert said(events)[:2] == [
        (1000, 1100, "displaced", "owner", "below"),
        (1100, 1200, "displaced", "owner", "above"),
    ]


def test_a_lock_is_waited_for_by_its_holder(said) -> None:
    found = said(WAITS.format(call="futex", by="futex", waking="1 waking 88"))
    assert found[:2] == [(1000, 1300, "blocked", "holder"), (1300, 1400, "dispatch")]


def test_a_message_by_what_its_sender_did(said) -> None:
    found = said(WAITS.format(call="recvmsg", by="sendmsg", waking="1 waking 88"))
    assert found[:5] == [
        (1000, 1100, "own"),
        (1100, 1150, "interrupt", "eth0"),
        (1150, 1200, "own"),
        (1200, 1300, "own_kernel", "sendmsg"),
        (1300, 1400, "dispatch"),
    ]


def test_a_wait_that_an_interrupt_or_a_softirq_ends(said) -> None:
    by_softirq = "1 softirq_in 88 - - - NET_RX\n1300 1 waking 88"
    assert said(WAITS.format(call="recvmsg", by="write", waking=by_softirq))[0][2:] == ("blocked", "NET_RX")
    by_irq = "1 irq_in 88 - - - nvme\n1300 1 waking 88"
    assert said(WAITS.format(call="read", by="write", waking=by_irq))[0][2:] == ("blocked", "nvme")


def test_a_timer_that_wakes_nobody_is_no_end_of_a_sleep(said) -> None:
    events = ASLEEP + woken(1010, 1003, 1040, 1300, back=1310)
    waking = "1015 0 waking 0 10 - 19 loop\n"
    later = "1100 1 irq_in 0 - - - eth0\n1200 1 waking 0 10 - 19 loop\n1300 0 switch"
    found = said(events.replace(waking, "").replace("1300 0 switch", later))
    assert found[0] == (1000, 1200, "blocked", "eth0")


def test_a_sleep_is_ended_by_the_timer_that_fired_in_that_interrupt_whatever_fired_elsewhere(said) -> None:
    other = "1012 1 irq_in 0 - - - local_timer\n1013 1 timer_fired 0 10 - - - 1005\n"
    other += "1014 1 irq_out 0 - - - local_timer\n"
    waking = "1015 0 waking 0 10 - 19 loop"
    found = said((ASLEEP + woken(1010, 1003, 1040, 1100)).replace(waking, other + waking))
    assert found[:2] == [(1000, 1003, "timer_idle"), (1003, 1040, "interrupt", "local_timer")]


def test_a_timer_that_fired_in_an_earlier_sleep_is_not_this_ones(said) -> None:
    events = ASLEEP + woken(1010, 1003, 1040, 1100, back=1200).replace("1040 0 irq_out", "1040 1 fault")
    events = events.replace("1100 0 switch 0", "1100 1 switch 0").replace("1200 0 sys_out", "1200 1 sys_out")
    events += "1300 1 switch 10 0 sleeping 120 swapper/1\n1400 0 waking 0 10 - 19 loop\n"
    events += "1500 1 switch 0 10 runnable 19 loop"
    assert (1300, 1400, "blocked", "local_timer") in said(events)


def test_what_was_lost_on_the_cpu_that_it_depends_on_is_unknown(said) -> None:
    lost = """
1000 0 irq_in 10 - - - eth0
1200 0 lost - - - - - 12
1300 0 irq_out 10 - - - eth0
1350 0 switch 10 0 sleeping 120 swapper/0
1400 0 waking 0 10 - 19 loop
1450 0 switch 0 10 runnable 19 loop
"""
    assert said("0 0 switch 0 10 runnable 19 loop" + lost, 990) == [
        (990, 1000, "own"),
        (1000, 1200, "unknown"),
        (1200, 1300, "interrupt", "eth0"),
        (1300, 1350, "own"),
        (1350, 1400, "blocked", "swapper/0"),
        (1400, 1450, "dispatch"),
        (1450, 2000, "own"),
    ]


def test_after_what_was_lost_it_is_unknown_until_it_is_seen_again(said) -> None:
    events = """
0 0 switch 0 10 runnable 19 loop
1100 0 fault 10
1200 0 lost - - - - - 2
1300 0 switch 77 0 sleeping 120 swapper/0
1400 1 waking 0 10 - 19 loop
1500 0 switch 0 10 runnable 19 loop
"""
    assert said(events) == [
        (1000, 1100, "own"),
        (1100, 1400, "unknown"),
        (1400, 1500, "dispatch"),
        (1500, 2000, "own"),
    ]


def test_a_sleep_whose_waking_was_lost_is_unknown(said) -> None:
    lost = ASLEEP + "1200 0 lost - - - - - 5\n1300 0 sys_out 10 - - - clock_nanosleep\n"
    assert said(lost) == [
        (1000, 1200, "unknown"),
        (1200, 1300, "own_kernel", "clock_nanosleep"),
        (1300, 2000, "own"),
    ]


IN_AN_INTERRUPT = """
0 0 switch 0 10 runnable 19 loop
1000 0 switch 10 0 sleeping 120 swapper/0
1100 1 irq_in 0 - - - local_timer
{fired} 1 timer_fired 0 10 - - - 1000
{lost} 1 lost - - - - - 1
1300 1 waking 0 10 - 19 loop
1310 0 switch 0 10 runnable 19 loop
1400 0 switch 10 0 sleeping 120 swapper/0
1500 1 waking 0 10 - 19 loop
1600 1 irq_out 0 - - - local_timer
1610 0 switch 0 10 runnable 19 loop
"""
"""T is woken twice in one interrupt."""


@pytest.mark.parametrize(
    ("fired", "lost", "known"),
    [
        (1150, 1200, [("unknown",)]),
        (1250, 1200, [("timer_idle",), ("unknown",), ("interrupt", "local_timer")]),
        (1020, 1050, [("blocked", "local_timer")]),
    ],
)
def test_a_timer_may_have_fired_in_the_interrupt_before_what_was_lost_of_it(said, fired, lost, known) -> None:
    """Not since the thread was woken in it, so that the second sleep is a wait; nor before it began."""
    rows = IN_AN_INTERRUPT.format(fired=fired, lost=lost).strip().split("\n")
    found = said("\n".join(sorted(rows, key=lambda row: int(row.split()[0]))))
    assert [one[2:] for one in found if one[0] < 1300] == known
    assert (1400, 1500, "blocked", "local_timer") in found


@pytest.mark.parametrize(
    ("before", "after", "said_of_it"),
    [
        ("sys_in 77 - - - poll", "", "unknown"),
        ("sys_out 77 - - - poll", "", "unknown"),
        ("fault 77 - - - user", "", "outside"),
        ("sys_in 77 - - - poll", "1700 0 sys_out 77 - - - poll", "held_off"),
        ("sys_in 77 - - - poll", "1700 0 sys_in 77 - - - poll", "outside"),
        ("sys_in 77 - - - poll", "1700 0 fault 77 - - - user", "outside"),
        ("sys_in 77 - - - poll", "1700 0 fault 77 - - - kernel", "unknown"),
        ("sys_in 77 - - - poll", "1650 0 lost\n1700 0 sys_in 77 - - - poll", "unknown"),
        ("lost\n920 0 sys_in 77 - - - poll", "", "unknown"),
    ],
)
def test_whether_another_was_in_the_kernel_is_not_known_after_what_was_lost_until_it_is_told(
    said, before: str, after: str, said_of_it: str
) -> None:
    """Who calls it nowhere is in its own code, as at the trace's beginning."""
    hog = f"900 0 switch 0 77 runnable 120 hog\n910 0 {before}\n1100 0 lost - - - - - 3\n"
    events = ASLEEP + hog + woken(1210, 1200, 1240, 1300, on="77", back=1310)
    back = f"1320 0 switch 10 77 sleeping 120 hog\n{after}"
    found = [one[2] for one in said(events + back, 1000, 1300) if one[0] < 1200]
    assert found == ["unknown", said_of_it][said_of_it == "unknown" :]


def test_before_anything_is_lost_another_is_in_its_own_code_until_it_enters_the_kernel(said) -> None:
    hog = "900 0 switch 0 77 runnable 120 hog\n" + woken(1210, 1200, 1240, 1300, on="77", back=1310)
    later = "1320 0 switch 10 77 sleeping 120 hog\n1700 0 lost\n1800 0 sys_in 77 - - - poll\n"
    assert said(ASLEEP + hog + later, 1000, 1300)[0] == (1000, 1200, "outside")


def test_a_system_call_after_what_was_lost_is_as_at_the_beginning(said) -> None:
    events = """
0 0 sys_in 10 - - - read
1200 0 lost - - - - - 5
1300 0 fault 10
1400 0 sys_in 10 - - - write
"""
    assert said(events)[-2:] == [(1200, 1400, "own"), (1400, 2000, "own_kernel", "write")]


def test_a_thread_that_ended_gave_its_id_to_another(said) -> None:
    events = """
0 0 switch 0 10 runnable 19 old
0 1 switch 0 77 runnable 120 first
500 0 sys_in 10 - - - exit_group
1000 0 switch 10 0 ended 120 swapper/0
1050 1 switch 77 0 ended 120 swapper/1
1100 0 waking 0 77 - 5 second
1110 0 switch 0 77 runnable 5 second
1200 1 waking 0 10 - 19 new
1300 0 switch 77 10 runnable 19 new
"""
    assert said(events) == [
        (1000, 1200, "unknown"),
        (1200, 1300, "displaced", "second", "above"),
        (1300, 2000, "own"),
    ]


def test_a_cpu_that_is_taken_away_leaves_its_timers_and_threads_to_another(said) -> None:
    """The kernel stops them on it and hands them on; no event of that CPU follows."""
    away = """
900 0 waking 0 60 - 0 [migration/0]
910 0 switch 0 60 runnable 0 [migration/0]
950 0 switch 60 0 blocked 120 swapper/0
1190 1 switch 0 77 runnable 120 hog
"""
    assert said(ASLEEP + away + woken(1210, 1200, 1240, 1300, on="77").replace(" 0 ", " 1 ", 5)) == [
        (1000, 1190, "timer_idle"),
        (1190, 1200, "outside"),
        (1200, 1240, "interrupt", "local_timer"),
        (1240, 1300, "displaced", "hog", "below"),
        (1300, 1900, "own_kernel", "clock_nanosleep"),
        (1900, 2000, "own"),
    ]


def test_a_runnable_thread_waits_where_it_runs_next_when_its_cpu_is_taken_away(said) -> None:
    events = """
0 0 switch 0 10 runnable 19 loop
1000 0 switch 10 60 runnable 0 [migration/0]
1050 0 switch 60 0 blocked 120 swapper/0
0 1 switch 0 77 runnable 5 other
1400 1 switch 77 10 runnable 19 loop
"""
    events = "\n".join(sorted(events.split("\n"), key=lambda row: int(row.split()[0]) if row else -1))
    assert said(events) == [(1000, 1400, "displaced", "other", "above"), (1400, 2000, "own")]


PREEMPTED = """
0 0 switch 0 10 runnable 19 loop
100 0 sys_in 10 - - - futex 0
120 0 switch 10 5 sleeping 120 [ksoftirqd/0]
800 0 softirq_in 5 - - - NET_RX
900 0 switch 5 77 runnable 29 worker
1200 0 waking 77 10 - 19 loop
1210 0 switch 77 10 runnable 19 loop
1300 0 sys_out 10 - - - futex
1500 0 switch 10 6 runnable 9 irq/30-eth0
1600 0 softirq_in 6 - - - NET_RX
1650 0 softirq_out 6 - - - NET_RX
1700 0 switch 6 5 sleeping 120 [ksoftirqd/0]
1800 0 softirq_out 5 - - - NET_RX
1850 0 switch 5 10 sleeping 19 loop
"""
"""PREEMPT_RT: others come on the CPU before ksoftirqd is out of the softirq."""


@pytest.mark.parametrize("events", [PREEMPTED, PREEMPTED.replace("800 0 softirq_in 5 - - - NET_RX", "")])
def test_a_softirq_is_off_the_cpu_with_its_thread_also_one_from_before_the_trace(said, events) -> None:
    assert said(events) == [
        (1000, 1200, "blocked", "worker"),
        (1200, 1210, "displaced", "worker", "below"),
        (1210, 1300, "own_kernel", "futex"),
        (1300, 1500, "own"),
        (1500, 1600, "displaced", "irq/30-eth0", "above"),
        (1600, 1650, "softirq", "NET_RX"),
        (1650, 1700, "displaced", "irq/30-eth0", "above"),
        (1700, 1800, "softirq", "NET_RX"),
        (1800, 1850, "displaced", "[ksoftirqd/0]", "below"),
        (1850, 2000, "own"),
    ]
