"""What an explanation blames, on scripts whose segments were computed by hand."""

from __future__ import annotations

from pathlib import Path

import pytest
from scripts import WAITS, explained

from rtmeter.explain.causes import Cause, Explained, Ranked, Release, ranked
from rtmeter.explain.document import explanation_json
from rtmeter.explain.facts import CauseFacts
from rtmeter.explain.passed_over import Throttled
from rtmeter.explain.segments import Key, Segment, merged
from rtmeter.explain.words import words_of, words_of_cause, words_of_one


def test_the_cause_is_what_a_late_release_has_more_than_those_in_time(tmp_path: Path) -> None:
    """own: 100, 200, 300, 400 in time: the lower median is 200; equal excesses: the first in the alphabet."""
    events = "0 0 fault 10\n5000 0 irq_in 10 - - - b\n5100 0 irq_out 10 - - - b\n"
    events += "6000 0 irq_in 10 - - - a\n6100 0 irq_out 10 - - - a\n7000 0 irq_in 10 - - - c\n"
    in_time = [(k, 1000 * k, 1000 * k + 100 * k, 0) for k in (1, 2, 3, 4)]
    late = [(5, 5000, 5360, 1), (6, 5900, 6300, 1), (7, 5050, 6090, 1), (8, 6900, 7000, 1)]
    found = explained(tmp_path, events, *in_time, *late)
    causes = {each.release.k: each.cause for each in found.releases if each.cause}
    assert {k: (cause.key.category, cause.key.who, cause.share) for k, cause in causes.items()} == {
        5: ("interrupt", "b", 100 / 160),
        6: ("interrupt", "a", 1 / 2),
        7: ("own", None, 700 / 840),
        8: ("own", None, 0.0),
    }
    assert [(row.key.category, row.key.who, row.releases, row.lateness_ns) for row in found.causes] == [
        ("own", None, 2, 1140),
        ("interrupt", "a", 1, 400),
        ("interrupt", "b", 1, 360),
    ]
    assert found.unknown_ns == 0


def test_what_is_unknown_may_be_the_cause_and_is_summed_over_the_late(tmp_path: Path) -> None:
    events = "0 0 fault 10\n1100 0 fault 10\n1500 0 lost - - - - - 9\n1600 0 fault 10\n"
    found = explained(tmp_path, events, (0, 1000, 1700, 1), (1, 1050, 1150, 0))
    assert found.unknown_ns == 400
    assert found.causes[0].key.category == "unknown" and found.causes[0].releases == 1
    assert [each.faults for each in found.releases] == [2, 1]


BURST = "".join(f"{1200 + k} 0 fault 10 - - - user\n" for k in range(20))


@pytest.mark.parametrize(
    ("rest", "releases", "counted"),
    [
        ("", [(0, 1100, 1900, 1), (1, 1150, 1900, 1)], [("its own code ran, with 20 page faults", 20)]),
        (
            "1300 0 sys_in 10 - - - munmap\n1350 0 fault 10 - - - kernel\n",
            [(0, 1000, 1900, 1), (1, 1250, 1900, 1)],
            [("it was in the system call munmap", 1)],
        ),
    ],
)
def test_a_page_fault_counts_once_and_for_what_the_thread_did_when_it_came(
    tmp_path: Path, rest: str, releases: list[tuple[int, int, int, int]], counted: list[tuple[str, int]]
) -> None:
    """One job made both releases late."""
    found = explained(tmp_path, f"0 0 fault 10\n{BURST}{rest}", *releases)
    assert [(words_of_cause(row), row.faults) for row in found.causes] == counted
    assert found.releases[0].faults == 20 + counted[0][1] % 20


HOGS = """
0 0 switch 0 10 runnable 19 loop
0 1 switch 0 66 runnable 9 other
1000 0 switch 10 77 runnable 9 hog
1100 0 switch 77 10 runnable 19 loop
2000 0 switch 10 {second} runnable {priority} hog
2100 0 switch {second} 10 runnable 19 loop
"""


@pytest.mark.parametrize(
    ("second", "priority", "facts"),
    [
        (77, 9, CauseFacts(77, 9, 0, 19)),
        (77, 4, CauseFacts(77, None, 0, 19)),
        (78, 9, CauseFacts(None, 9, 0, 19)),
    ],
)
def test_what_is_told_of_a_cause_holds_for_all_its_releases(
    tmp_path: Path, second: int, priority: int, facts: CauseFacts
) -> None:
    events = HOGS.format(second=second, priority=priority)
    (cause,) = explained(tmp_path, events, (0, 1000, 1110, 1), (1, 2000, 2110, 1)).causes
    assert cause.key.who == "hog" and cause.facts == facts
    (both,) = explained(tmp_path, events, (0, 1000, 2110, 1)).causes
    assert both.key.category == "own"


def test_in_which_call_a_thread_waited_is_told_of_the_wait(tmp_path: Path) -> None:
    events = WAITS.format(call="futex", by="futex", waking="1 waking 88")
    events = events.replace("900 0 sys_in 10 - - - futex", "900 0 sys_in 10 - - - futex 6")
    (cause,) = explained(tmp_path, events, (0, 1000, 1350, 1)).causes
    assert cause.facts == CauseFacts(88, call="futex", asked=6)


STOPS = """
0 0 switch 0 10 runnable 19 loop
1000 0 switch 10 0 sleeping 120 swapper/0 1
1100 1 waking 88 10 - 19 loop
1110 0 switch 0 10 runnable 19 loop
2000 0 switch 10 0 sleeping 120 swapper/0 {second}
2100 1 waking 88 10 - 19 loop
2110 0 switch 0 10 runnable 19 loop
9000 1 fault 88
9000 1 waking 88 88 - 120 script
"""


@pytest.mark.parametrize(
    ("second", "stopped", "said"),
    [
        ("1", True, "it was stopped, by a signal or a debugger, until script let it go on"),
        ("-", None, "waited until script woke it"),
    ],
)
def test_who_was_stopped_in_all_of_it_waited_for_nobody(
    tmp_path: Path, second: str, stopped: bool | None, said: str
) -> None:
    found = explained(tmp_path, STOPS.format(second=second), (0, 1000, 1110, 1), (1, 2000, 2110, 1))
    (cause,) = found.causes
    assert cause.key == Key("blocked", "script") and words_of_cause(cause) == said
    printed = explanation_json(found, found.releases)
    first, then = printed["releases"]
    told = [one.get("stopped") for one in (first["cause"], first["segments"][0], *printed["causes"])]
    assert told == [True, True, stopped] and "stopped" not in first["segments"][1]
    assert then["cause"].get("stopped") == stopped
    assert words_of_one(Cause(Key("blocked", "script", of="server"), 1.0, facts=cause.facts)) == (
        "server, on the message's path, was stopped, by a signal or a debugger, until script let it go on"
        if stopped
        else "the message's path waited until script woke server"
    )


@pytest.mark.parametrize(
    ("inside", "who"),
    [("irq {} 0 - - - tty", "the interrupt tty"), ("softirq {} 0 - - - TIMER", "the softirq TIMER")],
)
def test_who_lets_a_stopped_thread_go_on_may_be_an_interrupt_whatever_call_it_is_in(
    tmp_path: Path, inside: str, who: str
) -> None:
    kind, _, row = inside.partition(" {} ")
    events = f"""
0 0 switch 0 10 runnable 19 loop
900 0 sys_in 10 - - - read
1000 0 switch 10 0 sleeping 120 swapper/0 1
1100 1 {kind}_in {row}
1200 1 waking 0 10 - 19 loop
1300 1 {kind}_out {row}
1310 0 switch 0 10 runnable 19 loop
"""
    (cause,) = explained(tmp_path, events, (0, 1000, 1310, 1)).causes
    assert (cause.facts.stopped, cause.facts.call) == (True, "read")
    assert words_of_cause(cause).startswith(f"it was stopped, by a signal or a debugger, until {who}")


def test_neighbours_of_one_key_are_throttled_if_one_is_and_share_what_is_true_of_both() -> None:
    key = Key("displaced", "hog", "below")
    both = [
        Segment(0, 10, key, Throttled.REAL_TIME, facts=CauseFacts(7, 120, 0)),
        Segment(10, 30, key, facts=CauseFacts(7, 120, 1)),
    ]
    for neighbours in (both, [both[1]._replace(start_ns=-20, end_ns=0), both[0]]):
        (one,) = merged(neighbours)
        assert (one.throttled, one.facts) == (Throttled.REAL_TIME, CauseFacts(7, 120))


@pytest.mark.parametrize(("throttled_ns", "told"), [(50, None), (51, Throttled.DEADLINE)])
def test_a_cause_is_throttled_where_more_than_half_of_its_lateness_is(
    throttled_ns: int, told: Throttled | None
) -> None:
    assert Ranked(Key("dispatch"), 2, 100, throttled_ns, Throttled.DEADLINE).throttled == told


@pytest.mark.parametrize(("throttled_ns", "told"), [(100, None), (101, Throttled.NORMAL)])
def test_of_a_causes_lateness_that_counts_as_throttled_in_which_the_thread_was(
    throttled_ns: int, told: Throttled | None
) -> None:
    causes = (throttled_ns, Throttled.NORMAL), (100, None)
    late = [
        Explained(Release(k, 0, ns, True), (), (), Cause(Key("dispatch"), 1.0, by))
        for k, (ns, by) in enumerate(causes)
    ]
    (row,) = ranked(late)
    assert (row.releases, row.throttled_ns, row.throttled) == (2, throttled_ns, told)


def test_a_thread_that_is_named_as_a_softirq_is_none() -> None:
    assert words_of(Key("displaced", "RCU", "above")) == "waited for the CPU: RCU ran, more urgent than it"
    assert words_of(Key("softirq", "RCU")) == "the softirq RCU (what the kernel frees)"


def test_an_early_stamp_has_no_segments(tmp_path: Path) -> None:
    found = explained(tmp_path, "0 0 fault 10", (0, 100, 90, 0)).releases[0]
    assert found.release == Release(0, 100, 90, False) and found.segments == () and found.cause is None
