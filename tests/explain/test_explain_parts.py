"""A trace in parts is explained as the whole is; what was left out is unknown."""

from __future__ import annotations

from pathlib import Path

from drawn import drawn

from rtmeter.explain.causes import Release, explain
from rtmeter.explain.events import (
    FAULT,
    IRQ_IN,
    IRQ_OUT,
    LOST,
    SOFTIRQ_IN,
    SOFTIRQ_OUT,
    SWITCH,
    SYS_IN,
    SYS_OUT,
    TIMER_ARMED,
    TIMER_FIRED,
    WAKING,
    Event,
    Trace,
)
from rtmeter.explain.events import RUNNABLE as LEFT
from rtmeter.explain.parts import explain_parts
from rtmeter.explain.segments import UNKNOWN, Key


def test_random_scripts_in_parts(tmp_path: Path) -> None:
    for seed in (*range(60), 196, 491):  # in the last two, events are lost before
        trace, releases, tid = drawn(tmp_path, seed)
        size = max(len(trace) // 5, 1)
        parts = [trace.taken(slice(at, at + size)) for at in range(0, len(trace), size)]
        assert explain_parts(parts, releases, tid, trail_ns=5000) == explain(trace, releases, tid, paths=True)


def test_what_lies_outside_of_what_was_kept_is_unknown() -> None:
    """T (10) sleeps on a timer; 20, in its own code or not, is on the CPU when that is due."""
    rows = [
        Event(100, 0, SWITCH, 20, 10, LEFT, 80, "T"),
        Event(200, 0, SWITCH, 10, 20, 2, 120, "other"),
        Event(1000, 0, IRQ_IN, 20, name="timer"),
        Event(1010, 0, TIMER_FIRED, 20, 10, value=900),
        Event(1020, 0, WAKING, 20, 10, 0, 80, "T"),
        Event(1030, 0, IRQ_OUT, 20, name="timer"),
        Event(1040, 0, SWITCH, 20, 10, LEFT, 80, "T"),
        Event(1200, 0, SWITCH, 10, 20, 2, 120, "other"),
        Event(1300, 0, SYS_IN, 20, name="read"),
    ]
    trace, release = Trace(rows), Release(0, 900, 1100, True)
    timer, own = Key("interrupt", "timer"), Key("own")
    waited = Key("displaced", "other", "below")
    segments = explain_parts([trace], [release], 10).releases[0].segments
    assert [one.key for one in segments] == [Key("outside"), timer, waited, own]
    gone = Release(1, 5000, 5100, True)
    found = explain_parts([trace], [release, gone], 10, [(150, 1250), (4000, 6000)])
    kept, lost = (one.segments for one in found.releases)
    assert [one.key for one in kept] == [UNKNOWN, timer, waited, own], (
        "other may be in the kernel since before"
    )
    assert [one.key for one in lost] == [UNKNOWN] and found.unknown_ns == 100 + 100
    found = explain_parts([trace], [release], 10, [(150, 1400)])
    assert found.releases[0].segments[0].key == Key("outside"), "it enters the kernel later"
    fault = Trace([*rows[:2], Event(500, 0, FAULT, 20, name="user"), *rows[2:]])
    found = explain_parts([fault], [release], 10, [(150, 1250)])
    assert found.releases[0].segments[0].key == Key("outside"), "its own code had a page fault"
    fault = Trace([*rows[:2], Event(500, 0, FAULT, 20, name="kernel"), *rows[2:]])
    found = explain_parts([fault], [release], 10, [(150, 1250)])
    assert found.releases[0].segments[0].key == UNKNOWN
    late = explain_parts([trace], [release], 10, [(900, 1250)]).releases[0].segments
    assert late[-2].key == waited, "names are known from before"


def test_a_part_goes_on_from_what_was_armed_and_what_was_lost_before_it() -> None:
    """T (10) is woken by a timer whose firing does not say when it was due; or is on a CPU, whoever was there
    since the loss."""
    armed = [
        Event(100, 0, SWITCH, 0, 10, LEFT, 80, "T"),
        Event(150, 0, TIMER_ARMED, 10, 10, value=900),
        Event(200, 0, SWITCH, 10, 0, 2, 120, "idle"),
        Event(1000, 0, IRQ_IN, 0, name="timer"),
        Event(1010, 0, TIMER_FIRED, 0, 10),
        Event(1020, 0, WAKING, 0, 10, 0, 80, "T"),
        Event(1030, 0, IRQ_OUT, 0, name="timer"),
        Event(1040, 0, SWITCH, 0, 10, LEFT, 80, "T"),
    ]
    lost = [
        Event(100, 0, SWITCH, 0, 10, LEFT, 80, "T"),
        Event(300, 0, LOST, -1, value=5),
        Event(400, 1, SYS_IN, 20, name="read"),
        Event(1000, 0, SWITCH, 30, 10, LEFT, 80, "T"),
    ]
    release = Release(0, 850, 1100, True)
    for rows, first in ((armed, Key("armed_later")), (lost, UNKNOWN)):
        trace = Trace(rows)
        found = explain_parts([trace.taken(slice(0, 3)), trace.taken(slice(3, None))], [release], 10)
        assert found == explain(trace, [release], 10, paths=True)
        assert found.releases[0].segments[0].key == first


def test_a_part_goes_on_within_the_interrupt_in_which_a_timer_fired() -> None:
    rows = [
        Event(100, 0, SWITCH, 0, 10, LEFT, 80, "T"),
        Event(200, 0, SWITCH, 10, 0, 2, 120, "idle"),
        Event(1000, 0, IRQ_IN, 0, name="timer"),
        Event(1010, 0, TIMER_FIRED, 0, 10, value=900),
        Event(1012, 1, SYS_IN, 20, name="read"),
        Event(1020, 0, WAKING, 0, 10, 0, 80, "T"),
        Event(1030, 0, IRQ_OUT, 0, name="timer"),
        Event(1040, 0, SWITCH, 0, 10, LEFT, 80, "T"),
    ]
    trace = Trace(rows)
    parts = [trace.taken(slice(0, 5)), trace.taken(slice(5, None))]
    found = explain_parts(parts, [Release(0, 1015, 1040, True)], 10)
    assert [one.key for one in found.releases[0].segments] == [Key("interrupt", "timer"), Key("dispatch")]


def test_what_was_lost_before_a_part_is_lost_of_who_was_there_then() -> None:
    """20 was on the CPU, and is there again and again; 30, which calls nothing since, came later, and is in
    its own code when T's timer is due."""
    rows = [
        Event(10, 1, SYS_IN, 30, name="read"),
        Event(20, 1, SYS_OUT, 30, name="read"),
        Event(100, 0, SWITCH, 0, 20, LEFT, 120, "other"),
        Event(110, 0, LOST, -1, value=5),
        Event(120, 0, FAULT, 20, name="user"),
        Event(130, 0, SWITCH, 20, 30, LEFT, 120, "hog"),
        Event(140, 0, SWITCH, 30, 20, LEFT, 120, "other"),
        Event(150, 0, SWITCH, 20, 10, LEFT, 80, "T"),
        Event(160, 0, SWITCH, 10, 20, 2, 120, "other"),
        Event(170, 0, SWITCH, 20, 30, LEFT, 120, "hog"),
        Event(900, 1, FAULT, 40, name="user"),
        Event(1000, 0, IRQ_IN, 30, name="timer"),
        Event(1010, 0, TIMER_FIRED, 30, 10, value=900),
        Event(1020, 0, WAKING, 30, 10, 0, 80, "T"),
        Event(1030, 0, IRQ_OUT, 30, name="timer"),
        Event(1040, 0, SWITCH, 30, 10, LEFT, 80, "T"),
    ]
    trace, releases = Trace(rows), [Release(0, 900, 1040, True)]
    whole = explain(trace, releases, 10, paths=True)
    assert whole.releases[0].segments[0].key == Key("outside")
    for cut in range(1, len(rows)):
        parts = [trace.taken(slice(0, cut)), trace.taken(slice(cut, None))]
        assert explain_parts(parts, releases, 10) == whole, cut


def test_between_what_was_kept_a_thread_gets_another_name() -> None:
    rows = [
        Event(100, 0, SWITCH, 20, 10, LEFT, 80, "T"),
        Event(2000, 1, WAKING, 5, 20, 0, 120, "renamed"),
        Event(4900, 0, WAKING, 20, 10, 0, 80, "T"),
        Event(5000, 0, SWITCH, 20, 10, LEFT, 80, "T"),
        Event(7000, 1, SYS_IN, 5, name="read"),
    ]
    releases = [Release(0, 90, 110, True), Release(1, 4950, 5100, True)]
    found = explain_parts([Trace(rows)], releases, 10, [(50, 150), (4000, 6000)])
    assert found.releases[1].segments[0].key == Key("displaced", "renamed", "below")


def test_a_message_that_a_device_may_have_brought_is_nobodys_in_parts_either() -> None:
    """The thread 40 sent on CPU 1, but eth0 interrupted there before, long ago."""
    rows = [
        Event(0, 0, SWITCH, 0, 10, LEFT, 19, "loop"),
        Event(100, 1, SWITCH, 0, 40, LEFT, 120, "sender"),
        Event(110, 1, IRQ_IN, 40, name="eth0"),
        Event(120, 1, IRQ_OUT, 40, name="eth0"),
        Event(200, 1, SYS_IN, 40, name="write"),
        Event(210, 1, SYS_OUT, 40, name="write"),
        Event(300, 1, SWITCH, 40, 20, 2, 120, "[ksoftirqd/1]"),
        Event(1000, 0, SYS_IN, 10, name="recvfrom"),
        Event(1050, 0, SWITCH, 10, 0, 2, 120, "swapper/0"),
        Event(1100, 1, SOFTIRQ_IN, 20, name="NET_RX"),
        Event(1110, 1, WAKING, 20, 10, 0, 19, "loop"),
        Event(1120, 1, SOFTIRQ_OUT, 20, name="NET_RX"),
        Event(1200, 0, SWITCH, 0, 10, LEFT, 19, "loop"),
    ]
    trace, releases = Trace(rows), [Release(0, 1000, 1200, True)]
    parts = [trace.taken(slice(0, 9)), trace.taken(slice(9, None))]
    found = explain_parts(parts, releases, 10, trail_ns=100)
    assert found == explain(trace, releases, 10, paths=True)
    assert Key("blocked", "NET_RX", ended_by="softirq") in [one.key for one in found.releases[0].segments]
