"""Whose priority was lent to the holder of a lock, on scripts whose segments were computed by hand."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from scripts import WAITS, T, explained, written

from rtmeter.cli import invoke
from rtmeter.explain.causes import Cause, Explanation, Release, explain, ranked
from rtmeter.explain.events import LENT, NO_PRIORITY, SWITCH, Event, Trace
from rtmeter.explain.parts import explain_parts
from rtmeter.explain.scripted import read_events
from rtmeter.explain.segments import Key
from rtmeter.explain.words import words_of_cause, words_of_one

RELEASE = (0, 1000, 2000, 1)
HOLDER, HIGH, HIGHER = 88, 30, 31
OTHERS = f"""
0 0 switch 0 {T} sleeping 19 loop
50 0 switch {T} {HOLDER} runnable 120 holder
100 1 switch 0 {HIGH} runnable 19 high
100 2 switch 0 {HIGHER} runnable 9 higher
"""
"""The holder is on T's CPU; two that may want its lock run on others."""
LENT_BY_HIGH = f"500 1 lent {HIGH} {HOLDER} - 19 - 120\n"
ENDS = f"""
1000 3 waking 77 {T} - 19 loop
1900 0 switch {HOLDER} {T} runnable 19 loop
"""


def displaced(found: Explanation) -> list[tuple[int, int, str | None, str | None]]:
    """From when to when T was displaced, how, and who had lent the other its priority."""
    segments = found.releases[0].segments
    assert sum(one.end_ns - one.start_ns for one in segments) == 1000
    waits = [one for one in segments if one.key.category == "displaced"]
    assert {one.key.who for one in waits} == {"holder"}
    return [(one.start_ns, one.end_ns, one.key.relation, one.lent_by) for one in waits]


def test_who_runs_with_a_priority_that_it_was_lent_and_whose_it_is(tmp_path: Path) -> None:
    found = explained(tmp_path, OTHERS + LENT_BY_HIGH + ENDS, RELEASE)
    assert displaced(found) == [(1000, 1900, "equal", "high")]
    said = "waited for the CPU: holder ran, of its priority; high had lent holder its priority"
    assert words_of_cause(found.causes[0]) == said


def test_a_priority_of_its_own_is_said_to_be_nobodys(tmp_path: Path) -> None:
    own = OTHERS.replace("runnable 120 holder", "runnable 19 holder")
    found = explained(tmp_path, own + ENDS, RELEASE)
    assert displaced(found) == [(1000, 1900, "equal", None)]
    assert words_of_cause(found.causes[0]) == "waited for the CPU: holder ran, of its priority"


@pytest.mark.parametrize(
    ("rows", "waits"),
    [
        (f"900 0 lent {HOLDER} {HOLDER} - 120 - 19\n", [(1000, 1900, "below", None)]),
        (f"900 1 lent {HIGH} {HOLDER} - 120 - 19\n", [(1000, 1900, "below", None)]),
        (f"900 2 lent {HIGHER} {HOLDER} - 9 - 19\n", [(1000, 1900, "above", "higher")]),
        (
            f"800 2 lent {HIGHER} {HOLDER} - 9 - 19\n900 0 lent {HOLDER} {HOLDER} - 19 - 9\n",
            [(1000, 1900, "equal", "high")],
        ),
        (f"800 3 lent 77 {HOLDER} - 9 - 19\n", [(1000, 1900, "above", "tid 77")]),
        (
            f"700 3 switch 0 77 runnable 50 waker\n800 3 lent 77 {HOLDER} - 9 - 19\n",
            [(1000, 1900, "above", None)],
        ),
        (
            f"600 0 lost\n700 0 switch 0 {HOLDER} runnable 120 holder\n",
            [(1000, 1900, "below", None)],
        ),
    ],
    ids=[
        "given back by the holder",
        "taken back by who lent it",
        "lent by a more urgent one",
        "the more urgent one's given back",
        "by one whose priority is not told",
        "for another, by who moves it to the lock",
        "given back where events were lost",
    ],
)
def test_what_became_of_it_until_the_release(
    tmp_path: Path, rows: str, waits: list[tuple[int, int, str | None, str | None]]
) -> None:
    assert displaced(explained(tmp_path, OTHERS + LENT_BY_HIGH + rows + ENDS, RELEASE)) == waits


def test_a_loan_within_the_wait_begins_and_ends_there(tmp_path: Path) -> None:
    lent = f"1200 1 lent {HIGH} {HOLDER} - 19 - 120\n1500 0 lent {HOLDER} {HOLDER} - 120 - 19\n"
    waking, runs = ENDS.strip().splitlines()
    found = explained(tmp_path, f"{OTHERS}{waking}\n{lent}{runs}\n", RELEASE)
    waits = [(1000, 1200, "below", None), (1200, 1500, "equal", "high"), (1500, 1900, "below", None)]
    assert displaced(found) == waits
    assert found.causes[0].key == Key("displaced", "holder", "below") and found.causes[0].lent_by is None


def test_before_the_first_that_is_told_a_thread_has_what_it_had_before_the_loan(tmp_path: Path) -> None:
    """The holder is on its CPU from the trace's beginning on: no switch tells its priority."""
    events = f"""
100 1 switch 0 {HIGH} runnable 19 high
900 0 sys_in {HOLDER} - - - ioctl
1000 3 waking 77 {T} - 19 loop
1400 1 lent {HIGH} {HOLDER} - 19 - 120
1900 0 switch {HOLDER} {T} runnable 19 loop
1950 0 switch {T} {HOLDER} sleeping 19 holder
"""
    found = explained(tmp_path, events, RELEASE)
    assert displaced(found) == [(1000, 1400, "below", None), (1400, 1900, "equal", "high")]


PI = WAITS.format(call="futex", by="futex", waking="1 waking 88")
LOCK = f"950 0 lent {T} 88 - 19 - 120\n1000 0 switch"


def test_a_lock_says_who_lent_its_holder_a_priority(tmp_path: Path) -> None:
    plain = explained(tmp_path, PI, (0, 1000, 1350, 1)).releases[0].segments[0]
    assert (plain.key, plain.lent_by) == (Key("blocked", "holder"), None)
    back = "1290 1 lent 88 88 - 120 - 19\n1300 1 waking"
    lent = PI.replace("1000 0 switch", LOCK).replace("1300 1 waking", back)
    found = explained(tmp_path, lent, (0, 1000, 1350, 1)).releases[0]
    assert (found.segments[0].key, found.segments[0].lent_by) == (Key("blocked", "holder"), "loop")
    assert found.cause is not None and found.cause.lent_by == "loop"
    said = "waited until holder woke it; loop had lent holder its priority"
    assert words_of_one(found.cause) == said


def test_who_ends_a_wait_for_a_message_may_have_been_lent_a_priority(tmp_path: Path) -> None:
    """Where the message is not followed: its sender waits for a message itself, of the thread measured."""
    events = f"""
0 0 switch 0 {T} runnable 19 loop
0 1 switch 0 {HOLDER} runnable 120 holder
100 2 switch 0 {HIGH} runnable 9 high
900 0 sys_in {T} - - - recvmsg
910 1 sys_in {HOLDER} - - - recvmsg
950 1 switch {HOLDER} 0 sleeping 120 swapper/1
960 2 lent {HIGH} {T} - 9 - 19
1000 0 switch {T} 0 sleeping 120 swapper/0
1100 0 waking {T} {HOLDER} - 120 holder
1150 1 switch 0 {HOLDER} runnable 120 holder
1300 1 waking {HOLDER} {T} - 9 loop
1400 0 switch 0 {T} runnable 9 loop
"""
    trace = read_events(written(tmp_path, events)[0])
    (one,) = explain(trace, [Release(0, 1000, 1350, True)], T, paths=True).releases
    first = one.segments[0]
    assert (first.end_ns, first.key, first.lent_by) == (1100, Key("blocked", "loop", of="holder"), "high")


def test_a_lock_whose_holder_is_lent_a_priority_while_another_waits(tmp_path: Path) -> None:
    """T waits with a priority that the holder has already; a more urgent one comes later, and goes first."""
    high = "100 2 switch 0 30 runnable 9 high\n900 0 sys_in"
    events = PI.replace("runnable 120 holder", "runnable 19 holder").replace("900 0 sys_in", high)
    spans = (0, 1000, 1350, 1), (1, 1255, 1350, 1), (2, 1000, 1100, 1), (3, 1000, 1110, 1)
    for from_ns, to_ns, lenders in (
        (1100, 1251, ["high", None, None, None]),
        (1100, 1250, [None] * 4),
        (1050, 1250, ["high", None, None, "high"]),
        (1299, 1300, [None] * 4),
    ):
        lent = f"{from_ns} 2 lent 30 88 - 9 - 19\n{to_ns} 1 lent 88 88 - 19 - 9\n"
        rows = sorted((events.strip() + "\n" + lent).splitlines(), key=lambda row: int(row.split()[0]))
        found = explained(tmp_path, "\n".join(rows), *spans)
        assert [one.segments[0].key for one in found.releases] == [Key("blocked", "holder")] * 4
        assert [one.segments[0].lent_by for one in found.releases] == lenders
        causes = [one.cause for one in found.releases]
        assert [one.lent_by for one in causes if one is not None] == lenders


def test_a_loan_whose_end_was_lost_ends_in_a_wait_where_another_priority_is_told(tmp_path: Path) -> None:
    again = "1100 1 switch 88 0 runnable 120 swapper/1\n1120 1 switch 0 88 runnable 120 holder\n1200 1 sys_in"
    events = PI.replace("1000 0 switch", LOCK).replace(
        "1100 1 irq_in 88 - - - eth0\n1150 1 irq_out 88 - - - eth0\n1200 1 sys_in", again
    )
    (one,) = explained(tmp_path, events, (0, 1000, 1350, 1)).releases
    assert (one.segments[0].key, one.segments[0].lenders) == (Key("blocked", "holder"), (("loop", 120),))
    assert one.segments[0].lent_by is None


def test_a_segment_and_a_cause_say_it_only_if_it_was_lent_for_most_of_their_time(tmp_path: Path) -> None:
    """The holder is above T by itself; it is lent what is more urgent still."""
    above = OTHERS.replace("runnable 120 holder", "runnable 15 holder")
    waking, runs = ENDS.strip().splitlines()
    apart = "1500 0 irq_in 88 - - - eth0\n1600 0 irq_out 88 - - - eth0\n"
    by = "higher"
    for others, at_ns, ends, segments, cause in (
        ("", 1449, 1900, [by], by),
        ("", 1450, 1900, [None], None),
        ("", 1850, 1900, [None], None),
        ("", 1001, 1400, [None], None),
        (apart, 1200, 1900, [by, by], by),
        (apart, 1300, 1500, [None, None], None),
        (apart, 1249, 1500, [by, None], None),
        (apart, 1450, 1900, [None, by], None),
        (apart, 1650, 1900, [None, by], None),
    ):
        lent = f"{at_ns} 2 lent {HIGHER} {HOLDER} - 9 - 15\n{ends} 0 lent {HOLDER} {HOLDER} - 15 - 9\n"
        rows = sorted((others + lent).splitlines(), key=lambda row: int(row[:4]))
        found = explained(tmp_path, "\n".join([above, waking, *rows, runs, ""]), RELEASE)
        said = [(relation, lender) for _, _, relation, lender in displaced(found)]
        assert said == [("above", lender) for lender in segments], at_ns
        (one,) = found.releases
        assert one.cause is not None and one.cause.key == Key("displaced", "holder", "above")
        assert one.cause.lent_by == cause, at_ns


def test_of_two_that_lent_for_less_than_half_each_none_is_said(tmp_path: Path) -> None:
    above = OTHERS.replace("runnable 120 holder", "runnable 15 holder")
    waking, runs = ENDS.strip().splitlines()
    lent = f"1000 2 lent {HIGHER} {HOLDER} - 9 - 15\n1400 2 lent {HIGHER} {HOLDER} - 15 - 9\n"
    lent += f"1400 1 switch {HIGH} 33 blocked 5 urgent\n1450 1 lent 33 {HOLDER} - 5 - 15\n"
    found = explained(tmp_path, f"{above}{waking}\n{lent}{runs}\n", RELEASE)
    (one,) = found.releases
    assert one.segments[0].lenders == (("higher", 400), ("urgent", 450))
    assert displaced(found) == [(1000, 1900, "above", None)]
    assert one.cause is not None and one.cause.lent_by is None


def test_it_is_said_of_whom_it_was_lent_to_on_a_messages_path_too() -> None:
    ahead = words_of_one(Cause(Key("displaced", "stress", "equal", "server"), 1.0, lent_by="high"))
    assert ahead.startswith("server, on the message's path: waited for the CPU: stress ran, ")
    assert ahead.endswith("; high had lent stress its priority")
    woke = words_of_one(Cause(Key("blocked", "script", of="server"), 1.0, lent_by="high\x1b"))
    assert woke.endswith("until script woke server; high\\x1b had lent script its priority")


def test_the_tables_the_release_and_the_json_say_it_and_only_where_it_was_lent(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    for lent, times in ((LENT_BY_HIGH, 3), ("", 0)):
        paths = written(tmp_path, OTHERS + lent + ENDS, RELEASE)
        files = ["--events", str(paths[0]), "--releases", str(paths[1]), "--thread", str(T)]
        assert invoke(["explain", *files]) == 0
        said = " ".join(capsys.readouterr().out.replace("│", " ").split())
        assert said.count("high had lent holder its priority") == times
        assert invoke(["explain", *files, "--json"]) == 0
        found = json.loads(capsys.readouterr().out)
        (release,), (cause,) = found["releases"], found["causes"]
        told = (*release["segments"], release["cause"], cause)
        saying = [one["lent_by"] for one in told if "lent_by" in one]
        assert saying == ["high"] * times


def test_of_many_releases_the_one_that_lent_in_most_of_their_lateness(tmp_path: Path) -> None:
    (one,) = explained(tmp_path, OTHERS + LENT_BY_HIGH + ENDS, RELEASE).releases
    (own,) = explained(tmp_path, OTHERS.replace("120 holder", "19 holder") + ENDS, RELEASE).releases
    assert [row.lent_by for row in ranked([one, own, one])] == ["high"]
    assert [row.lent_by for row in ranked([one, own])] == [None], "half of it is not most"


@pytest.mark.parametrize(
    "more",
    [
        f"800 2 lent {HIGHER} {HOLDER} - 9 - 19\n900 0 lent {HOLDER} {HOLDER} - 19 - 9\n",
        f"800 1 lent {HIGHER} {HOLDER} - 9 - 19\n900 1 lent {HIGHER} {HOLDER} - 19 - 9\n",
        f"800 1 lent {HIGH} 77 - 19 - 120\n",
    ],
    ids=["by two", "by two on one CPU", "to two"],
)
def test_a_loan_from_before_a_part_is_known_in_it(tmp_path: Path, more: str) -> None:
    trace = read_events(written(tmp_path, OTHERS + LENT_BY_HIGH + more + ENDS)[0])
    releases = [Release(0, 1000, 2000, True)]
    whole = explain(trace, releases, T)
    assert displaced(whole) == [(1000, 1900, "equal", "high")]
    for cut in range(1, len(trace)):
        parts = [trace.taken(slice(0, cut)), trace.taken(slice(cut, None))]
        assert displaced(explain_parts(parts, releases, T)) == displaced(whole), cut


@pytest.mark.parametrize(
    "told",
    [
        [Event(200, 1, SWITCH, 0, 20, 1, 120, "holder")],
        [Event(120, 1, SWITCH, 0, 20, 1, 120, "holder")],
        [
            Event(120, 1, SWITCH, 0, 20, 1, 120, "holder"),
            Event(1900, 1, SWITCH, 0, 20, 1, NO_PRIORITY, ""),
        ],
    ],
    ids=["in a part that is kept", "before all that is kept", "there, and again without a priority"],
)
def test_between_what_was_kept_a_loan_changes_a_priority(told: list[Event]) -> None:
    rows = [
        Event(100, 0, SWITCH, 20, T, 1, 80, "loop"),
        *told,
        Event(210, 2, SWITCH, 0, 9, 1, 120, "other"),
        Event(2000, 1, LENT, 20, 20, priority=70, value=120),
        Event(4900, 1, SWITCH, 5, 6, 1, 120, "other"),
        Event(4950, 0, SWITCH, T, 20, 1, NO_PRIORITY, ""),
        Event(5000, 0, SWITCH, 20, T, 1, 80, "loop"),
        Event(7000, 0, SWITCH, T, 9, 2, 120, "other"),
    ]
    rows.sort(key=lambda row: row.time_ns)
    releases = [Release(0, 205, 215, True), Release(1, 4960, 5100, True)]
    found = explain_parts([Trace(rows)], releases, T, [(150, 250), (4000, 6000)])
    segment = found.releases[1].segments[0]
    assert (segment.key, segment.throttled) == (Key("displaced", "holder", "above"), None)
