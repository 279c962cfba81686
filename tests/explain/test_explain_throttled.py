"""A thread that could run and was passed over: throttled, or normal threads had their reserve."""

from __future__ import annotations

from pathlib import Path

import pytest
from scripts import T, explained, written

from rtmeter.cli import invoke
from rtmeter.explain.causes import Explained
from rtmeter.explain.passed_over import Throttled
from rtmeter.explain.segments import Key
from rtmeter.explain.words import words_of_cause, words_of_one

MS = 1_000_000
TICK = 4 * MS
RELEASE, STAMP = 10 * MS, 40 * MS


def interrupts(on: int, *after_ns: int) -> str:
    """So long after the release."""
    name, times = "- - - local_timer", [RELEASE + after for after in after_ns]
    return "".join(f"{at} 0 irq_in {on} {name}\n{at + 20_000} 0 irq_out {on} {name}\n" for at in times)


def ticks(on: int, count: int) -> str:
    """The first comes 4 ms after the release."""
    return interrupts(on, *range(TICK, TICK + count * TICK, TICK))


def woken(by: int, *, ran_on: int = 0, state: str = "sleeping", calls: str = "") -> str:
    """T, fifo, slept on a CPU since 1 ms, and is woken in an interrupt at its release; 20 is on CPU 0."""
    return f"""
0 {ran_on} switch 20 {T} runnable 19 loop
{MS} {ran_on} switch {T} 20 {state} 120 hog
{calls}
{RELEASE} 0 irq_in {by} - - - local_timer
{RELEASE + 1000} 0 waking {by} {T} - 19 loop
{RELEASE + 2000} 0 irq_out {by} - - - local_timer
"""


def runs(after: int, at: int = STAMP - MS) -> str:
    return f"{at} 0 switch {after} {T} runnable 19 loop\n"


def only(folder: Path, events: str) -> Explained:
    return explained(folder, events, (0, RELEASE, STAMP, 1)).releases[0]


def test_who_runs_on_in_its_own_code_after_tick_and_tick_was_chosen(tmp_path: Path) -> None:
    events = woken(20) + ticks(20, 6) + runs(20)
    found = explained(tmp_path, events, (0, RELEASE, STAMP, 1))
    (cause,) = found.causes
    assert cause.key == Key("displaced", "hog", "below") and cause.throttled
    assert "the kernel's choice: throttling" in words_of_cause(cause)
    assert "could not be pre-empted" not in words_of_cause(cause)


def test_of_who_is_in_the_kernel_meanwhile_nothing_of_the_kind_is_said(tmp_path: Path) -> None:
    calls = f"{2 * MS} 0 sys_in 20 - - - setgroups"
    events = woken(20, calls=calls) + ticks(20, 6) + runs(20)
    (cause,) = explained(tmp_path, events, (0, RELEASE, STAMP, 1)).causes
    assert cause.key == Key("displaced", "hog", "below") and not cause.throttled
    assert "could not be pre-empted" in words_of_cause(cause)


def test_who_may_be_in_the_kernel_since_events_were_lost_is_no_choice(tmp_path: Path) -> None:
    calls = f"{2 * MS} 0 sys_in 20 - - - setgroups\n{3 * MS} 0 lost"
    (cause,) = explained(
        tmp_path, woken(20, calls=calls) + ticks(20, 6) + runs(20), (0, RELEASE, STAMP, 1)
    ).causes
    assert cause.key == Key("displaced", "hog", "below") and not cause.throttled


def test_who_runs_on_and_is_more_urgent_is_no_choice_that_throttling_made(tmp_path: Path) -> None:
    events = (woken(20) + ticks(20, 6) + runs(20)).replace("120 hog", "9 hog")
    cause = only(tmp_path, events).cause
    assert cause is not None and (cause.key, cause.throttled) == (Key("displaced", "hog", "above"), None)


def test_one_interrupt_after_the_waking_is_no_proof(tmp_path: Path) -> None:
    """The hypervisor may have had the CPU since."""
    assert not any(one.throttled for one in only(tmp_path, woken(20) + ticks(20, 1) + runs(20)).segments)


def waits(folder: Path, events: str) -> list[tuple[int, str | None, Throttled | None]]:
    """What T waited for: since when (after the release), who had the CPU, and what is said of that."""
    kinds = ("displaced", "dispatch")
    spans = [one for one in only(folder, events).segments if one.key.category in kinds]
    return [(one.start_ns - RELEASE, one.key.who, one.throttled) for one in spans]


def test_the_second_interrupt_after_the_waking_is_one(tmp_path: Path) -> None:
    by, after = Throttled.REAL_TIME, 20_000
    assert waits(tmp_path, woken(20) + ticks(20, 3) + runs(20)) == [
        (2000, "hog", None),
        (TICK + after, "hog", None),
        (2 * TICK + after, "hog", by),
        (3 * TICK + after, "hog", by),
    ]


@pytest.mark.parametrize("after_ns", [(TICK, TICK + 999_999), (500_000, 900_000, TICK)])
def test_interrupts_within_a_millisecond_are_one_look(tmp_path: Path, after_ns: tuple[int, ...]) -> None:
    events = woken(20) + interrupts(20, *after_ns) + runs(20)
    assert {told for *_, told in waits(tmp_path, events)} == {None}


@pytest.mark.parametrize(("after_ns", "told"), [(1_001_000, Throttled.REAL_TIME), (1_000_999, None)])
def test_a_millisecond_after_the_waking_a_switch_is_a_choice(
    tmp_path: Path, after_ns: int, told: Throttled | None
) -> None:
    other = f"{RELEASE + after_ns} 0 switch 20 30 sleeping 120 cc1plus\n"
    assert waits(tmp_path, woken(20) + other + runs(30)) == [(2000, "hog", None), (after_ns, "cc1plus", told)]


def test_who_comes_after_looks_at_another_and_is_more_urgent_was_not_chosen(tmp_path: Path) -> None:
    urgent = f"{RELEASE + 9 * MS} 0 switch 20 30 sleeping 9 urgent\n"
    events = woken(20) + ticks(20, 2) + urgent + interrupts(30, 12 * MS) + runs(30)
    assert [one[1:] for one in waits(tmp_path, events)][2:] == [
        ("hog", Throttled.REAL_TIME),
        ("urgent", None),
        ("urgent", None),
    ]


LEFT = f"""
0 0 switch 20 {T} runnable 19 loop
{RELEASE} 0 switch {T} 20 runnable 120 hog
"""
"""T leaves its CPU to one less urgent, and could go on."""


def test_who_is_passed_over_stays_so_whoever_comes_next(tmp_path: Path) -> None:
    other = f"{RELEASE + 500_000} 0 switch 20 30 sleeping 120 cc1plus\n"
    by = Throttled.REAL_TIME
    assert waits(tmp_path, LEFT + other + runs(30)) == [(0, "hog", by), (500_000, "cc1plus", by)]


def test_after_what_was_lost_it_is_not_known_any_more(tmp_path: Path) -> None:
    lost = f"{RELEASE + MS} 0 fault 20\n{RELEASE + 2 * MS} 0 lost\n"
    assert waits(tmp_path, LEFT + lost + runs(20)) == [(0, "hog", Throttled.REAL_TIME), (2 * MS, "hog", None)]


def test_of_who_was_out_of_sight_before_its_waking_nothing_is_said(tmp_path: Path) -> None:
    """It may have waited on another CPU."""
    seen = woken(20)
    unseen = seen.replace(f"{MS} 0 switch {T} 20 sleeping 120 hog", f"{MS} 0 lost\n{2 * MS} 0 fault 20")
    other = f"{RELEASE + 2 * MS} 0 switch 20 30 sleeping 120 cc1plus\n"
    told = [waits(tmp_path, events + other + runs(30))[-1] for events in (seen, unseen)]
    assert told == [(2 * MS, "cc1plus", Throttled.REAL_TIME), (2 * MS, "cc1plus", None)]


@pytest.mark.parametrize("on", [0, 20])
def test_a_cpu_that_idles_though_a_thread_was_woken_chose_nobody(tmp_path: Path, on: int) -> None:
    events = woken(on).replace(f"{T} 20 sleeping", f"{T} {on} sleeping") + interrupts(on, TICK)
    idle = f"{RELEASE + 5 * MS} 0 switch 20 0 sleeping 120 swapper/0\n" if on else ""
    found = waits(tmp_path, events + idle + interrupts(0, 8 * MS, 12 * MS, 16 * MS) + runs(0))
    assert found[-1][1] is None and {told for *_, told in found} == {None}


def test_a_switch_from_one_less_urgent_to_another_is_a_choice(tmp_path: Path) -> None:
    other = f"{RELEASE + 2 * MS} 0 switch 20 30 sleeping 120 cc1plus\n"
    cause = only(tmp_path, woken(20) + other + runs(30)).cause
    assert cause is not None and cause.key.who == "cc1plus" and cause.throttled


def test_a_switch_at_once_is_none_the_cpu_may_not_have_heard_of_the_waking(tmp_path: Path) -> None:
    other = f"{RELEASE + 3000} 0 switch 20 30 sleeping 120 cc1plus\n"
    cause = only(tmp_path, woken(20) + other + runs(30)).cause
    assert cause is not None and cause.key.who == "cc1plus" and not cause.throttled


def test_of_a_thread_that_ran_on_another_cpu_nothing_is_said(tmp_path: Path) -> None:
    other = f"{RELEASE + 2 * MS} 0 switch 20 30 sleeping 120 cc1plus\n"
    cause = only(tmp_path, woken(20, ran_on=1) + other + runs(30)).cause
    assert cause is not None and cause.key.who == "cc1plus" and not cause.throttled


@pytest.mark.parametrize(
    ("ours", "then", "priority", "expected"),
    [
        (19, 20, 120, "real_time"),
        (19, 20, 9, None),
        (120, 20, 130, None),
        (120, 0, 120, "normal"),
        (19, 0, 120, "real_time"),
        (-1, 20, 120, "deadline"),
        (-1, 0, 120, "deadline"),
        (-1, 20, -1, None),
    ],
    ids=["lower", "higher", "nice", "normal", "idle fifo", "deadline", "idle deadline", "both deadline"],
)
def test_who_runs_instead_of_one_that_leaves_and_could_go_on(
    tmp_path: Path, ours: int, then: int, priority: int, expected: str | None
) -> None:
    events = f"""
0 0 switch 20 {T} runnable {ours} loop
{RELEASE + MS} 0 switch {T} {then} runnable {priority} other
{STAMP - MS} 0 switch {then} {T} runnable {ours} loop
"""
    cause = only(tmp_path, events).cause
    assert cause is not None and cause.throttled == expected
    said = words_of_one(cause)
    assert ("throttl" in said or "runtime" in said) is (expected is not None)
    assert ("runtime" in said) is (expected == "deadline")


def test_the_tables_and_the_release_say_it(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    other = f"{RELEASE + 2 * MS} 0 switch 20 30 sleeping 120 cc1plus\n"
    paths = written(tmp_path, woken(20) + other + runs(30), (0, RELEASE, STAMP, 1))
    files = ["--events", str(paths[0]), "--releases", str(paths[1]), "--thread", str(T)]
    assert invoke(["explain", *files]) == 0
    said = capsys.readouterr().out
    chosen = [line for line in said.splitlines() if "cc1plus ran" in line]
    assert len(chosen) == 3 and all("less urgent, but the kernel's choice" in line for line in chosen)
    assert invoke(["explain", *files, "--json"]) == 0
    assert "throttl" not in capsys.readouterr().out


@pytest.mark.parametrize(
    ("ours", "throttled"), [(-1, None), (19, Throttled.REAL_TIME), (120, Throttled.NORMAL)]
)
def test_a_deadline_thread_that_yields_gave_its_time_away_itself(
    tmp_path: Path, ours: int, throttled: Throttled | None
) -> None:
    events = f"""
0 0 switch 0 {T} runnable {ours} loop
{RELEASE - 2000} 0 sys_in {T} - - - sched_yield
{RELEASE - 1000} 0 switch {T} 0 runnable 120 swapper/0
{STAMP - MS} 0 switch 0 {T} runnable {ours} loop
{STAMP - MS + 1000} 0 sys_out {T} - - - sched_yield
"""
    cause = only(tmp_path, events).cause
    assert cause is not None and (cause.key.category, cause.throttled) == ("dispatch", throttled)


def test_who_stops_a_cpu_comes_also_before_a_deadline_thread(tmp_path: Path) -> None:
    events = f"""
0 0 switch 0 {T} runnable -1 loop
{RELEASE} 0 switch {T} 16 runnable 0 [migration/0]
{STAMP - MS} 0 switch 16 {T} sleeping -1 loop
"""
    cause = only(tmp_path, events).cause
    assert cause is not None and not cause.throttled
    assert cause.key == Key("displaced", "[migration/0]", "above")
