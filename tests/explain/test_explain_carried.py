"""What a part of a trace has to know from before it: any cut explains as the whole does."""

from __future__ import annotations

from itertools import pairwise
from pathlib import Path

import pytest
import scheduler
from drawn import drawn
from scripts import written

from rtmeter.explain.causes import Release, explain
from rtmeter.explain.events import Trace
from rtmeter.explain.parts import explain_parts
from rtmeter.explain.passed_over import Throttled
from rtmeter.explain.scripted import read_events
from rtmeter.explain.segments import Key, Segment

MS = 1_000_000


def at_every_cut(trace: Trace, *releases: Release, trail_ns: int = 100) -> tuple[Segment, ...]:
    """The last release's segments, the same wherever the trace is cut in two or three."""
    whole = explain(trace, releases, 10, paths=True)
    for cut in range(1, len(trace)):
        for other in {cut, cut + 2, cut + 4} & {*range(len(trace))}:
            bounds = sorted({0, cut, other, len(trace)})
            parts = [trace.taken(slice(a, b)) for a, b in pairwise(bounds)]
            assert explain_parts(parts, releases, 10, trail_ns=trail_ns) == whole, bounds
    return whole.releases[-1].segments


def keys(segments: tuple[Segment, ...]) -> list[Key]:
    return [one.key for one in segments]


NESTED = """
0 0 switch 0 10 runnable 19 loop
100 0 irq_in 10 - - - eth0
110 0 {kind}_in 10 - - - NET_RX
120 0 {kind}_in 10 - - - NET_RX
130 0 {kind}_out 10 - - - NET_RX
200 1 sys_in 77 - - - read
920 1 sys_out 77 - - - read
1000 0 {kind}_out 10 - - - NET_RX
1100 0 irq_out 10 - - - eth0
1200 0 sys_in 10 - - - read
"""


@pytest.mark.parametrize("kind", ["irq", "softirq"])
def test_one_that_another_of_its_name_came_in_goes_on_until_its_own_end(tmp_path: Path, kind: str) -> None:
    trace = read_events(written(tmp_path, NESTED.format(kind=kind))[0])
    name = "NET_RX" if kind == "irq" else "eth0"
    assert [key.who for key in keys(at_every_cut(trace, Release(0, 500, 900, True), trail_ns=1))] == [name]


AFTER_A_LOSS = """
0 0 switch 0 10 runnable 19 loop
100 0 lost - - - - - 4
110 0 irq_in 10 - - - local_timer
120 0 irq_out 10 - - - local_timer
200 1 sys_in 77 - - - read
1200 0 sys_in 10 - - - read
"""


def test_an_interrupt_that_tells_who_was_there_after_a_loss_is_over(tmp_path: Path) -> None:
    trace = read_events(written(tmp_path, AFTER_A_LOSS)[0])
    assert keys(at_every_cut(trace, Release(0, 500, 900, True))) == [Key("own")]


FIRED = """
0 0 switch 0 10 runnable 19 loop
10 0 switch 10 0 sleeping 120 swapper/0
20 1 switch 0 30 runnable 120 [worker]
100 1 irq_in 30 - - - local_timer
110 1 timer_fired 30 10 - - - 105
120 1 irq_out 30 - - - local_timer
1000 1 waking 30 10 - 19 loop
1050 0 switch 0 10 runnable 19 loop
1200 0 sys_in 10 - - - read
"""


def test_a_timer_that_fired_in_an_interrupt_that_is_over_ends_no_later_sleep(tmp_path: Path) -> None:
    trace = read_events(written(tmp_path, FIRED)[0])
    assert keys(at_every_cut(trace, Release(0, 500, 1060, True)))[0] == Key("blocked", "[worker]")


FIRES_LATE = """
1000 0 irq_in 30 - - - local_timer
1010 0 timer_fired 30 10 - - - 900
1020 0 waking 30 10 - 19 loop
1030 0 irq_out 30 - - - local_timer
1040 0 switch 30 10 runnable 19 loop
1200 0 sys_in 10 - - - read
"""
"""The timer of the loop's thread, within 30."""

LOST_TWICE = """
0 0 switch 0 10 runnable 19 loop
10 1 sys_in 30 - - - read
20 1 sys_out 30 - - - read
30 1 switch 30 0 runnable 120 swapper/1
100 0 switch 10 30 sleeping 120 hog
110 0 lost - - - - - 4
120 0 irq_in 30 - - - eth0
130 0 irq_out 30 - - - eth0
{fault}
140 0 switch 30 40 runnable 120 other
150 0 lost - - - - - 4
160 0 irq_in 40 - - - eth0
170 0 irq_out 40 - - - eth0
180 0 switch 40 30 runnable 120 hog
"""


@pytest.mark.parametrize(("fault", "said"), [("", "unknown"), ("135 0 fault 30 - - - user", "outside")])
def test_who_was_there_when_events_were_lost_is_not_forgotten_by_the_next_loss(
    tmp_path: Path, fault: str, said: str
) -> None:
    trace = read_events(written(tmp_path, LOST_TWICE.format(fault=fault) + FIRES_LATE)[0])
    assert keys(at_every_cut(trace, Release(0, 900, 1060, True)))[0] == Key(said)


SENT = """
0 0 switch 0 10 runnable 19 loop
100 1 switch 0 40 runnable 120 sender
{first}
200 1 sys_in 40 - - - sendmsg
210 1 sys_out 40 - - - sendmsg
220 1 sys_in 40 - - - ioctl
230 1 sys_out 40 - - - ioctl
240 1 softirq_in 40 - - - NET_RX
250 1 softirq_out 40 - - - NET_RX
300 1 switch 40 20 runnable 120 [ksoftirqd/1]
400 0 sys_in 10 - - - recvfrom
410 0 switch 10 0 sleeping 120 swapper/0
1100 1 softirq_in 20 - - - NET_RX
1110 1 waking 20 10 - 19 loop
1120 1 softirq_out 20 - - - NET_RX
1200 0 switch 0 10 runnable 19 loop
1210 1 switch 20 40 sleeping 120 sender
1300 0 sys_out 10 - - - recvfrom
"""
OTHER_SENT = "110 1 sys_in 50 - - - sendmsg\n120 1 sys_out 50 - - - sendmsg\n"
RAN = "130 1 softirq_in 40 - - - NET_RX\n140 1 softirq_out 40 - - - NET_RX\n"


@pytest.mark.parametrize(
    ("first", "sent"), [("", True), (OTHER_SENT, False), (OTHER_SENT + RAN, True), (RAN, True)]
)
def test_who_had_sent_before_a_part_and_called_something_else_since_is_the_sender(
    tmp_path: Path, first: str, sent: bool
) -> None:
    trace = read_events(written(tmp_path, SENT.format(first=first))[0])
    said = keys(at_every_cut(trace, Release(0, 1000, 1250, True)))[0]
    assert (said.category == "displaced") == sent, said


def test_who_had_sent_is_found_however_much_went_on_elsewhere_since(tmp_path: Path) -> None:
    elsewhere = "".join(f"{310 + k // 200} 2 sys_in 60 - - - read\n" for k in range(12_000))
    trace = read_events(written(tmp_path, SENT.format(first="").replace("400 0", elsewhere + "400 0"))[0])
    found = explain(trace, [Release(0, 1000, 1250, True)], 10, paths=True).releases[0].segments
    assert found[0].key.category == "displaced"


LOOKS = "".join(
    f"{at * MS // 10} 0 irq_in 20 - - - tick\n{at * MS // 10 + 1000} 0 irq_out 20 - - - tick\n"
    for at in range(112, 240, 12)
)
PASSED_OVER = f"""
0 0 switch 20 10 runnable 19 loop
{MS} 0 switch 10 20 sleeping 120 hog
{10 * MS} 0 waking 20 10 - 19 loop
{LOOKS}
{25 * MS} 0 switch 20 10 runnable 19 loop
{26 * MS} 0 sys_in 10 - - - read
"""


@pytest.mark.parametrize("in_vain", ["", f"{15 * MS} 1 waking 30 10 - 19 loop\n"])
def test_who_was_passed_over_before_a_part_is_so_in_it(tmp_path: Path, in_vain: str) -> None:
    """It waits before its release comes, and may be woken in vain meanwhile."""
    rows = sorted((PASSED_OVER + in_vain).split("\n"), key=lambda row: int((row.split() or ["0"])[0]))
    trace = read_events(written(tmp_path, "\n".join(rows))[0])
    (*_, last) = at_every_cut(trace, Release(0, 23 * MS, 25 * MS, True), trail_ns=MS)
    assert (last.key.who, last.throttled) == ("hog", Throttled.REAL_TIME)


BEFORE_THE_LOSS = """
0 1 sys_in 30 - - - read
10 1 sys_out 30 - - - read
20 1 switch 30 0 runnable 120 swapper/1
50 0 switch 0 20 runnable 120 other
100 0 switch 20 30 runnable 120 hog
110 0 lost - - - - - 4
{between}
150 0 lost - - - - - 4
160 0 fault 20 - - - kernel
170 0 switch 20 10 runnable 19 loop
200 0 switch 10 30 sleeping 120 hog
500 1 sys_in 77 - - - read
"""


@pytest.mark.parametrize(
    "between",
    ["120 0 fault 40 - - - kernel\n140 0 switch 40 20 runnable 120 other", "", "120 0 lost - - - - - 1"],
)
def test_who_had_been_switched_to_before_a_loss_is_known_to_have_been_there(
    tmp_path: Path, between: str
) -> None:
    trace = read_events(written(tmp_path, BEFORE_THE_LOSS.format(between=between) + FIRES_LATE)[0])
    assert keys(at_every_cut(trace, Release(0, 900, 1060, True)))[0] == Key("unknown")


def test_who_was_there_between_two_losses_is_not_who_was_switched_to_before_them(tmp_path: Path) -> None:
    events = BEFORE_THE_LOSS.replace("100 0 switch 20 30 runnable 120 hog\n", "")
    events = events.format(between="120 0 fault 30 - - - kernel") + FIRES_LATE
    events = events.replace("170 0", "165 0 lost - - - - - 1\n166 0 fault 20 - - - kernel\n170 0")
    trace = read_events(written(tmp_path, events)[0])
    assert keys(at_every_cut(trace, Release(0, 900, 1060, True)))[0] == Key("unknown")


def test_a_name_that_is_told_within_what_was_kept_is_not_known_from_before(tmp_path: Path) -> None:
    """What was kept of the second release lies within that of the first, and is whole before."""
    events = """
0 0 waking 0 20 - 120 old
10 0 switch 0 20 runnable 120 old
45 1 sys_in 77 - - - read
60 0 waking 20 10 - 19 loop
80 1 waking 0 20 - 120 new
150 0 switch 20 10 runnable 19 loop
300 1 sys_in 77 - - - read
600 1 sys_out 77 - - - read
"""
    trace = read_events(written(tmp_path, events)[0])
    parts = [trace.taken(slice(a, b)) for a, b in ((0, 3), (3, 7), (7, None))]
    releases = [Release(0, 60, 200, True), Release(1, 160, 200, True)]
    found = explain_parts(parts, releases, 10, [(50, 500), (100, 250)])
    assert [key.who for key in keys(found.releases[0].segments)] == ["old", "new", None]


def assert_same_in_parts(folder: Path, seed: int, losses: int = 0) -> None:
    trace, releases, tid = drawn(folder, seed, losses)
    whole = explain(trace, releases, tid, paths=True)
    for size in (len(trace) // 5, 17):
        parts = [trace.taken(slice(at, at + size)) for at in range(0, len(trace), size)]
        assert explain_parts(parts, releases, tid, trail_ns=5000) == whole, (seed, size)


def test_random_scripts_in_which_interrupts_nest_in_others_of_their_name(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(scheduler, "IRQS", ("virtio0", "eth0", "eth0", "eth0"))
    monkeypatch.setattr(scheduler, "SOFTIRQS", ("NET_RX", "NET_RX", "SCHED"))
    monkeypatch.setattr(scheduler, "OTHER_CALLS", ("ioctl", "write", "sendmsg"))
    for seed in (*range(8), 130, 148, 173):
        assert_same_in_parts(tmp_path, seed)


def test_random_scripts_that_lose_events_again_and_again(tmp_path: Path) -> None:
    for seed in (*range(4), 80, 134, 209):
        assert_same_in_parts(tmp_path, seed, losses=12)
