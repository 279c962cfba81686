"""Whom a timer wakes and when it was due, by whatever clock; the interrupts of a CPU; what a span has."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from test_trace_pages import FORMS, MISSED, STORED, entry, of_words, page, written

from rtmeter.explain.events import (
    FAULT,
    IRQ_IN,
    IRQ_OUT,
    NO_VALUE,
    NOBODY,
    TIMER_FIRED,
    WAKING,
    Event,
    Trace,
    joined,
)
from rtmeter.model import LOCAL
from rtmeter.trace import rcl
from rtmeter.trace.chosen import Chooser, Span
from rtmeter.trace.decode import decoded, parts_of
from rtmeter.trace.events import VECTORS
from rtmeter.trace.formats import Format, format_of
from rtmeter.trace.pages import ComingPages, events_of, missed
from rtmeter.trace.recorded import Recorded
from rtmeter.trace.recorder import clocks_apart
from rtmeter.trace.spool import Spool
from rtmeter.trace.table import FILE, open_trace, write_trace

FORM = FORMS["64 bits"]
ARMED = of_words("hrtimer_start", 3, "void * hrtimer; void * function; s64 expires; s64 softexpires", 8)
FIRED = of_words("hrtimer_expire_entry", 4, "void * hrtimer; s64 now; void * function", 8)
DONE = of_words("hrtimer_expire_exit", 5, "void * hrtimer", 8)
WAKES = of_words("sched_waking", 2, "char comm[16]; pid_t pid; int prio", 8)
TIMERS = [ARMED, FIRED, DONE, WAKES]
MS = 1_000_000


IN_INTERRUPT = 0x08


def wakes(tid: int, by: int = 0, flags: int = 0) -> bytes:
    return written(WAKES, 5, by, comm=b"robot", pid=tid, prio=19, common_flags=flags)


def calls(timer: int, *within: bytes, by: int = 0, flags: int = 0) -> bytes:
    """A timer's function, and what happens on its CPU until it returns."""
    about = {"hrtimer": timer, "common_flags": flags}
    return b"".join([written(FIRED, 5, by, **about), *within, written(DONE, 5, by, **about)])


def told(*pages: bytes, **about: Any) -> Trace:
    return decoded(Recorded(FORM, TIMERS, {0: pages}, {}, (), 0, **about))


def firings(trace: Trace) -> list[tuple[int, int]]:
    """Whom each woke, and when it was due."""
    rows = zip(trace.event, trace.target, trace.value, strict=True)
    return [(target, value) for event, target, value in rows if event == TIMER_FIRED]


@pytest.mark.parametrize("flags", [0, IN_INTERRUPT], ids=["softirq", "interrupt"])
def test_a_timer_wakes_the_first_whom_its_function_does_and_none_once_that_has_returned(flags: int) -> None:
    eight, nine, ten = (wakes(tid, flags=flags) for tid in (8, 9, 10))
    trace = told(page(FORM, calls(7, eight, nine, flags=flags) + ten))
    assert firings(trace) == [(8, NO_VALUE)]
    trace = told(page(FORM, calls(7, flags=flags) + nine))
    assert firings(trace) == [(NOBODY, NO_VALUE)]
    fires = written(FIRED, 5, 0, hrtimer=7, common_flags=flags)
    lost = told(page(FORM, fires), page(FORM, eight, MISSED, 2000))
    assert firings(lost) == [(NOBODY, NO_VALUE)] and lost.event[-1] == WAKING


def test_whom_a_timer_wakes_is_told_in_a_part_that_ends_before_too() -> None:
    pages = page(FORM, written(FIRED, 5, 0, hrtimer=7)), page(FORM, wakes(8), start_ns=2000)
    parts = parts_of(Recorded(FORM, TIMERS, {0: pages}, {}, (), 0), 1)
    assert firings(joined(parts)) == [(8, NO_VALUE)]


def test_a_system_call_that_has_no_name_is_told_by_its_number() -> None:
    entered = of_words("sys_enter", 6, "long id", 8)
    entries = b"".join(written(entered, 5, 9, id=number) for number in (-1, 1, 2))
    trace = decoded(Recorded(FORM, [entered], {0: [page(FORM, entries)]}, {}, ("read", "write"), 0))
    assert [trace.name_of(row) for row in range(3)] == ["system call -1", "write", "system call 2"]


def test_an_interrupt_that_began_before_the_recording_is_told_by_its_number() -> None:
    ended = of_words("irq_handler_exit", 6, "int irq", 8)
    pages = [page(FORM, written(ended, 5, 9, irq=24))]
    trace = decoded(Recorded(FORM, [ended], {0: pages}, {}, (), 0))
    assert (trace.event[0], trace.name_of(0)) == (IRQ_OUT, "irq 24")


def test_a_page_that_begins_at_no_time_begins_with_the_one_before() -> None:
    coming = ComingPages(page(FORM, b"", start_ns=begin_ns) for begin_ns in (1000, 1 << 61, 2000))
    begins = [coming.begin_ns]
    for _ in range(2):
        coming.take()
        begins.append(coming.begin_ns)
    assert begins == [1000, 1000, 2000]


@pytest.mark.parametrize("order", [1, -1])
def test_whom_a_softirqs_timer_wakes_is_told_whatever_comes_between(order: int) -> None:
    """In thread 5, with interrupts on: another timer's, which wakes 20, and one that wakes a thread (30) by
    itself; on PREEMPT_RT thread 6, which wakes another (40)."""
    interrupt = calls(9, wakes(20, by=5, flags=IN_INTERRUPT), by=5, flags=IN_INTERRUPT)
    between = [interrupt, wakes(30, by=5, flags=IN_INTERRUPT), wakes(40, by=6)][::order]
    trace = told(page(FORM, calls(7, *between, wakes(8, by=5), wakes(50, by=5), by=5)))
    assert [target for target, _ in firings(trace)] == [8, 20]


def test_an_interrupts_timer_that_wakes_nobody_leaves_a_softirqs_alone_and_takes_nothing_from_it() -> None:
    nobody = calls(9, by=5, flags=IN_INTERRUPT)
    trace = told(page(FORM, calls(7, nobody, wakes(8, by=5), by=5) + wakes(9, by=5)))
    assert [target for target, _ in firings(trace)] == [8, NOBODY]
    trace = told(page(FORM, calls(7, nobody, by=5) + wakes(8, by=5) + wakes(9, by=5, flags=IN_INTERRUPT)))
    assert [target for target, _ in firings(trace)] == [NOBODY, NOBODY]


def test_when_a_timer_was_due_is_known_of_the_firing_that_it_was_armed_for_alone() -> None:
    entries = written(ARMED, 5, 0, hrtimer=7, expires=2000)
    entries += (written(FIRED, 5, 0, hrtimer=7) + written(DONE, 5, 0, hrtimer=7)) * 2
    assert [due for _, due in firings(told(page(FORM, entries)))] == [2000, NO_VALUE]


@pytest.mark.parametrize(
    ("offset_ns", "due_ns"), [(0, 900), (50 * MS, 900), (50 * MS + 900_000, 900), (60 * MS, 910)]
)
def test_a_timer_of_another_clock_was_due_by_the_monotonic_one(offset_ns: int, due_ns: int) -> None:
    """By the offset of the clock that is near, however long its firing was held off; else as it was seen."""
    now = {0: 1010, 50 * MS: 1010 + 50 * MS, 60 * MS: 1010 + 60 * MS - 10}.get(offset_ns, 1010 + offset_ns)
    known = 50 * MS if offset_ns % (10 * MS) else offset_ns
    entries = written(ARMED, 5, 9, hrtimer=7, softexpires=900 + known)
    entries += written(FIRED, 5, 0, hrtimer=7, now=now)
    trace = told(page(FORM, entries), functions={}, offsets_ns=(50 * MS,))
    assert firings(trace) == [(NOBODY, due_ns)]


WALL = 1_764_000_000_000 * MS
CLOCKS = (WALL, 3_600_000 * MS, WALL + 37_000 * MS)
"""By how much those of the wall, of boot and TAI show more."""


@pytest.mark.parametrize("offset_ns", [0, *CLOCKS])
@pytest.mark.parametrize("took_ns", [0, 20 * MS])
def test_when_a_timer_was_due_is_told_by_the_clock_that_its_firing_shows(
    offset_ns: int, took_ns: int
) -> None:
    """However long the interrupt was at others since it read the clocks."""
    entries = written(ARMED, 5, 9, hrtimer=7, expires=900 + offset_ns)
    entries += written(FIRED, 5 + took_ns, 9, hrtimer=7, now=1000 + offset_ns)
    trace = told(page(FORM, entries), offsets_ns=CLOCKS)
    assert list(trace.value) == [900, 900]


def test_a_firing_that_shows_no_clock_is_the_walls_if_it_is_due_so_late() -> None:
    fired = of_words("hrtimer_expire_entry", 4, "void * hrtimer; void * function", 8)
    entries = written(ARMED, 5, 9, hrtimer=7, expires=900 + WALL) + written(fired, 5, 9, hrtimer=7)
    trace = decoded(Recorded(FORM, [ARMED, fired], {0: [page(FORM, entries)]}, {}, (), WALL))
    assert firings(trace) == [(NOBODY, 900)]


def test_who_ends_does_not_wait_whatever_else_is_said() -> None:
    states = '{ 0x1, "S" }, { 0x2, "D" }, { 0x20, "Z" }'
    fields = "long prev_state; char next_comm[16]; pid_t next_pid; int next_prio"
    switch = of_words("sched_switch", 1, fields, 8, states)
    left = written(switch, 5, 9, prev_state=0x22, next_comm=b"x", next_pid=8, next_prio=1)
    trace = decoded(Recorded(FORM, [switch], {0: [page(FORM, left)]}, {}, (), 0))
    assert list(trace.state) == [4]


def vector(path: str, number: int) -> Format:
    name = path.partition("/")[2]
    common = "\tfield:unsigned short common_type;\toffset:0;\tsize:2;\tsigned:0;\n"
    common += "\tfield:int common_pid;\toffset:4;\tsize:4;\tsigned:1;\n"
    return format_of(name, f"name: {name}\nID: {number}\n{common}")


def test_every_interrupt_of_a_cpu_that_is_recorded_is_told_by_its_name() -> None:
    formats = [vector(path, number) for number, path in enumerate(VECTORS, 20)]
    entries = b"".join(entry(2, 5, form.id, 9) for form in formats)
    trace = decoded(Recorded(FORM, formats, {0: [page(FORM, entries)]}, {}, (), 0))
    rows = [(kind, trace.name_of(row)) for row, kind in enumerate(trace.event)]
    assert rows == [(IRQ_IN if at.endswith("_entry") else IRQ_OUT, name) for at, name in VECTORS.items()]


def test_the_longest_entry_has_its_length_in_its_head() -> None:
    entries = entry(28, 5, *range(28)) + entry(1, 5, 1)
    head = FORM.data
    assert list(events_of(page(FORM, entries), FORM)) == [(1005, head + 4), (1010, head + 4 * 29 + 4)]


def test_how_many_were_lost_is_read_up_to_the_last_word_of_a_page() -> None:
    full = bytes(FORM.size - FORM.data - FORM.commit.size)
    assert missed(page(FORM, full, MISSED | STORED, count=77), FORM) == 77


def test_a_piece_is_settled_once_it_is_on_all_cpus(tmp_path: Path) -> None:
    chooser = Chooser()
    spool = Spool(tmp_path, (0, 1), 64, chooser)
    for cpu, begin_ns in ((0, 10 * MS), (1, 200 * MS)):
        (tmp_path / f"trace.cpu{cpu}.0").write_bytes(begin_ns.to_bytes(8, "little").ljust(64, b"\1"))
    settled = []
    for from_ns in (10 * MS, 100 * MS, 200 * MS, 200 * MS + 1):
        chooser.add([Span(1, from_ns, from_ns, late=True)])
        settled.append(spool._is_settled(0))
    assert settled == [False, False, False, True]
    spool.tidy()


def test_where_late_ones_are_too_many_half_of_them_go_at_once_and_of_the_last_two_one_stays() -> None:
    chooser, counts = Chooser(0), []
    chooser.add([Span(k, k, k, late=True) for k in range(1000)])
    while chooser.kept:
        before = {*chooser.kept}
        chooser.thin()
        assert before > {*chooser.kept}
        counts.append(len(chooser.kept))
        assert abs(chooser.share - counts[-1] / 1000) < 0.05
    assert counts == [500, 250, 125, 62, 31, 15, 7, 3, 1, 0]


def test_late_ones_that_come_later_stay_as_often_as_those_before() -> None:
    chooser = Chooser(0)
    chooser.add([Span(k, k, k, late=True) for k in range(1000)])
    chooser.thin()
    chooser.add([Span(k, k, k, late=True) for k in range(1000, 3000)])
    earlier = sum(span.k < 1000 for span in chooser.kept)
    assert earlier == 500 and abs(len(chooser.kept) - earlier - 1000) < 100


def test_of_a_span_come_the_events_from_its_beginning_to_before_its_end(tmp_path: Path) -> None:
    times = [[100, 200], [300, 400], [500, 600]]
    path = tmp_path / FILE
    write_trace([Trace([Event(time, 0, FAULT, 9) for time in part]) for part in times], path)
    stored = open_trace(path)
    assert list(stored.within(200, 500).time_ns) == [200, 300, 400]
    assert [list(part.time_ns) for part in stored.parts(201, 499)] == times[1:2]
    assert [list(part.time_ns) for part in stored.parts()] == times


def test_one_clock_that_is_read_twice_is_one() -> None:
    assert clocks_apart([50, 90 * MS, 90 * MS + 50, 70 * MS]) == [90 * MS, 70 * MS]


@pytest.mark.parametrize("called", ["rcl_timer_call", "rcl_timer_call_with_info"])
def test_timers_are_told_by_either_of_rcls_functions(called: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(
        rcl, "offsets_of", lambda _data, functions: {called: 64} if called in functions else {}
    )
    monkeypatch.setattr("platform.machine", lambda: "x86_64")
    root: Any = SimpleNamespace(host=LOCAL, read_bytes=lambda _path: b"")
    found = rcl.found_among(["/lib/librcl.so"], rcl.PROBES, root)
    assert found is not None and "rcl_timer_call" not in found.lacking and "rcl_take" in found.lacking
    assert len(found.lines) == 1 and "/lib/librcl.so:0x40" in found.lines[0]


def test_what_a_program_lacks_is_in_none_of_its_files(monkeypatch: pytest.MonkeyPatch) -> None:
    has = {b"/lib/librcl.so": {"rcl_timer_call": 64}, b"/lib/librmw.so": {"rmw_take_request": 80}}
    monkeypatch.setattr(rcl, "offsets_of", lambda data, _functions: has[data])
    monkeypatch.setattr("platform.machine", lambda: "x86_64")
    root: Any = SimpleNamespace(host=LOCAL, read_bytes=lambda path: path.encode())
    found = rcl.found_among([path.decode() for path in has], rcl.PROBES, root)
    assert found is not None
    assert set(rcl.LACKING) - {*found.lacking} == {"rcl_timer_call", "rmw_take_request"}
