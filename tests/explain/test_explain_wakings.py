"""What wakings tell where they come early, or again, or without the interrupt that they come in."""

from __future__ import annotations

from pathlib import Path

import pytest
from scripts import explained

EARLY = """
0 0 switch 0 10 runnable 19 loop
0 1 switch 0 88 runnable 120 holder
900 0 sys_in 10 - - - futex
{before}
1000 0 switch 10 0 sleeping 120 swapper/0
1400 0 switch 0 10 runnable 19 loop
1450 0 sys_out 10 - - - futex
"""
"""T goes to sleep and comes on a CPU, and no waking is between; ``before``: what came before."""

TIMER = """
0 0 switch 0 10 runnable 19 loop
10 0 sys_in 10 - - - clock_nanosleep
20 0 timer_armed 10 10 - - - 1000
30 0 switch 10 77 sleeping 120 hog
1210 0 timer_fired 77 10 - - - 1000
{between}
1215 {waking} 77 10 - 19 loop
1300 0 switch 77 10 runnable 19 loop
1900 0 sys_out 10 - - - clock_nanosleep
"""
"""T's timer fires on CPU 0, in an interrupt that no event tells."""


@pytest.fixture
def said(tmp_path: Path):
    """``said(events)``: the segments from 1000 to 2000, as (start, end, category, who, relation)."""

    def segments(events: str, release_ns: int = 1000) -> list[tuple[object, ...]]:
        found = explained(tmp_path, events, (0, release_ns, 2000, 1)).releases[0].segments
        assert sum(one.end_ns - one.start_ns for one in found) == 2000 - release_ns
        return [(one.start_ns, one.end_ns, *filter(None, one.key[:4])) for one in found]

    return segments


def test_a_thread_that_is_woken_before_it_has_left_its_cpu_could_run_at_once(said) -> None:
    events = EARLY.format(before="990 1 waking 88 10 - 19 loop")
    assert said(events, 950) == [
        (950, 1000, "own_kernel", "futex"),
        (1000, 1400, "dispatch"),
        (1400, 1450, "own_kernel", "futex"),
        (1450, 2000, "own"),
    ]


def test_one_that_is_woken_once_it_sleeps_slept_until_then(said) -> None:
    events = EARLY.format(before="990 1 waking 88 10 - 19 loop").replace(
        "1400 0 switch", "1300 1 waking 88 10 - 19 loop\n1400 0 switch"
    )
    assert said(events)[:2] == [(1000, 1300, "blocked", "holder"), (1300, 1400, "dispatch")]


@pytest.mark.parametrize(
    "before",
    [
        "",
        "890 1 waking 88 10 - 19 loop",
        "950 1 waking 88 10 - 19 loop\n960 0 timer_armed 10 10 - - - 9000",
        "950 1 waking 88 10 - 19 loop\n960 0 switch 10 77 runnable\n970 0 switch 77 10 runnable 19 loop",
        "950 0 waking 10 10 - 19 loop",  # on its own CPU: it does not leave as sleeping then
        "950 2 fault 66\n951 1 waking 88 10 - 19 loop\n1200 2 lost",  # what woke it may be lost
    ],
)
def test_a_waking_after_which_it_went_on_running_says_nothing_of_its_sleep(said, before: str) -> None:
    rows = sorted(EARLY.format(before=before).split("\n"), key=lambda row: int(row.split()[0]) if row else -1)
    assert said("\n".join(rows))[0] == (1000, 1400, "unknown")


def test_a_timer_fires_in_an_interrupt_that_no_event_tells(said) -> None:
    assert said(TIMER.format(between="", waking="0 waking")) == [
        (1000, 1210, "outside"),
        (1210, 1215, "interrupt"),
        (1215, 1300, "displaced", "hog", "below"),
        (1300, 1900, "own_kernel", "clock_nanosleep"),
        (1900, 2000, "own"),
    ]


@pytest.mark.parametrize(
    ("between", "waking"),
    [
        ("1212 0 sys_in 77 - - - write", "0 waking"),
        ("1212 0 switch 77 55 runnable 120 other\n1213 0 switch 55 77 runnable 120 hog", "0 waking"),
        ("1212 0 softirq_in 77 - - - NET_RX\n1213 0 softirq_out 77 - - - NET_RX", "1 waking"),
        ("1205 0 irq_in 77 - - - timer\n1211 0 irq_out 77 - - - timer", "0 waking"),
    ],
)
def test_a_waking_that_another_thread_does_afterwards_is_no_timers(said, between: str, waking: str) -> None:
    rows = TIMER.format(between=between, waking=waking).split("\n")
    events = "\n".join(sorted(rows, key=lambda row: int(row.split()[0]) if row else -1))
    assert said(events)[0] == (1000, 1215, "blocked", "hog")


def test_a_firing_before_the_last_waking_is_no_longer_what_wakes(said) -> None:
    """T runs on CPU 1 meanwhile; of CPU 0 nothing is told between."""
    events = "0 1 switch 0 55 runnable 120 other\n" + TIMER.format(between="", waking="0 waking")
    events = events.replace("1300 0 switch 77", "1300 1 switch 55").replace(
        "1900 0 sys_out", "1350 1 sys_out"
    )
    events += "1400 1 switch 10 55 sleeping 120 other\n1500 0 waking 77 10 - 19 loop\n"
    events += "1600 1 switch 55 10 runnable 19 loop\n"
    assert (1400, 1500, "blocked", "hog") in said(events)


def test_a_softirq_in_which_it_is_woken_afterwards_is_what_wakes(said) -> None:
    events = TIMER.format(between="1212 0 softirq_in 77 - - - NET_RX", waking="0 waking")
    assert said(events)[0] == (1000, 1215, "blocked", "NET_RX")


AGAIN = """
0 0 switch 0 10 runnable 19 loop
100 0 switch 10 0 {left} 120 swapper/0
200 1 waking 7 10 - 19 loop
{lost}
1300 0 irq_in 0 - - - eth0
1310 0 waking 0 10 - 19 loop
1320 0 irq_out 0 - - - eth0
1400 0 switch 0 10 runnable 19 loop
"""
"""T is woken at 200, and again at 1310."""


@pytest.mark.parametrize("left", ["sleeping", "runnable"])
def test_a_thread_that_is_woken_again_after_something_was_lost_slept_meanwhile(said, left: str) -> None:
    assert said(AGAIN.format(left=left, lost="500 0 irq_in 0 - - - eth0\n700 0 lost\n710 0 fault 0")) == [
        (1000, 1310, "unknown"),
        (1310, 1320, "interrupt", "eth0"),
        (1320, 1400, "dispatch"),
        (1400, 2000, "own"),
    ]


@pytest.mark.parametrize("lost", ["", "50 0 fault 10\n150 0 lost\n160 0 fault 0"])
def test_one_that_is_woken_again_though_nothing_was_lost_since_could_run_all_the_time(
    said, lost: str
) -> None:
    rows = AGAIN.format(left="sleeping", lost=lost).split("\n")
    events = "\n".join(sorted(rows, key=lambda row: int(row.split()[0]) if row else -1))
    assert said(events)[:3] == [
        (1000, 1300, "dispatch"),
        (1300, 1320, "interrupt", "eth0"),
        (1320, 1400, "dispatch"),
    ]


@pytest.mark.parametrize("lost", ["1200 0", "1330 1"], ids=["elsewhere", "afterwards"])
def test_what_is_lost_elsewhere_or_afterwards_hides_no_timer_of_an_interrupt(said, lost: str) -> None:
    rows = [
        *("0 0 switch 0 10 runnable 19 loop", "1000 0 switch 10 0 sleeping 120 swapper/0"),
        *("1300 1 waking 0 10 - 19 loop", "1310 0 switch 0 10 runnable 19 loop"),
        *("1320 1 irq_out 0 - - - eth0", f"{lost} lost"),
    ]
    assert said("\n".join(sorted(rows, key=lambda row: int(row.split()[0]))))[0] == (
        *(1000, 1300),
        *("blocked", "eth0"),
    )
