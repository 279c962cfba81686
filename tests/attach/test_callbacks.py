"""What a node's functions tell, scripted: callbacks, their names, their jobs."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np

from rtmeter.attach.callbacks import Callback, Names, callbacks_of, names_of
from rtmeter.attach.jobs import Job
from rtmeter.explain.events import LOST, STATES, SWITCH, SYS_IN, WAKING, Event, Trace
from rtmeter.explain.marks import Mark
from rtmeter.measure.programs.following import written_of
from rtmeter.model import ABSENT, SERVED, SKIPPED
from rtmeter.samples.rows import Samples

T, OTHER, MS = 7, 8, 1_000_000
AT = 10**12
RUNNABLE, SLEEPING = STATES.index("runnable"), STATES.index("sleeping")


def call(at: int, due: int, timer: int = 1, period: int = 20 * MS, what: str = "call_with_info") -> Mark:
    return Mark(AT + at, T, what, {"timer": timer, "due": due, "period": period})


def taken(at: int, topic: str, result: int = 0, subscription: int = 5, what: str = "take") -> list[Mark]:
    return [
        Mark(AT + at, T, what, {"handle": subscription}),
        Mark(AT + at + 1, T, "resource", {"name": topic}),
        Mark(AT + at + 10, T, "took", {"result": result}),
    ]


def wait(at: int) -> Mark:
    return Mark(AT + at, T, "wait")


def woken(at: int) -> list[Event]:
    return [Event(AT + at, 0, WAKING, 0, T), Event(AT + at + 5, 0, SWITCH, 0, T, 1)]


def sleeps(at: int, state: int = SLEEPING) -> Event:
    return Event(AT + at, 0, SWITCH, T, 0, state)


def within(marks: list[Mark], events: list[Event], names: Names | None = None, offsets: tuple[int, ...] = ()):
    return callbacks_of(marks, Trace(events), [T], names or Names(), offsets)


def test_a_timers_job_goes_from_its_call_to_the_next_thing_that_is_done() -> None:
    """Of 100 ns between call and wait 30 were spent off the CPU."""
    events = [*woken(0), sleeps(50, 1), Event(AT + 80, 0, SWITCH, 0, T, 1), sleeps(500)]
    (found,) = within([call(20, AT - 3), wait(120)], events)
    assert (found.name, found.kind, found.due_told, found.period_ns) == (
        "timer 20 ms",
        "rcl_timer",
        True,
        20 * MS,
    )
    assert found.jobs == (Job(AT - 3, AT + 20, AT + 120, 70, "rcl_timer", None, tid=T),)


def test_both_of_rcls_functions_for_a_timer_are_one_call() -> None:
    marks = [call(20, AT, what="call"), call(21, AT), wait(120), call(200, AT + 100, what="call"), wait(230)]
    (found,) = within(marks, woken(0))
    assert [(job.wake_ns - AT, job.free_ns - AT) for job in found.jobs] == [(20, 120), (200, 230)]


def test_two_functions_of_two_timers_are_two_calls() -> None:
    marks = [call(20, AT, what="call"), call(50, AT, timer=2, period=50 * MS), wait(120)]
    found = within(marks, woken(0))
    assert [(one.name, one.jobs[0].free_ns - AT) for one in found] == [
        ("timer 20 ms", 50),
        ("timer 50 ms", 120),
    ]


def test_a_topic_that_is_not_told_is_not_the_one_before() -> None:
    """Of middleware that takes by a function that is not known."""
    untold = [mark for mark in taken(40, "/tock", subscription=6) if mark.what != "resource"]
    found = within([*taken(20, "/tick"), *untold, wait(70)], woken(0))
    assert [one.name for one in found] == ["/tick", "a topic"]
    (found_later,) = within([*untold, wait(70), *taken(80, "/tock", subscription=6), wait(120)], woken(0))
    assert (found_later.name, len(found_later.jobs)) == ("/tock", 2)


def test_callbacks_of_one_waking_follow_one_another() -> None:
    marks = [call(20, AT), call(50, AT, timer=2, period=50 * MS), *taken(80, "/tick"), wait(150)]
    found = within(marks, woken(3))
    assert [one.name for one in found] == ["timer 20 ms", "timer 50 ms", "/tick"]
    assert [
        (one.jobs[0].release_ns - AT, one.jobs[0].wake_ns - AT, one.jobs[0].free_ns - AT) for one in found
    ] == [
        (0, 20, 50),
        (0, 50, 80),
        (3, 90, 150),
    ]


def test_callbacks_are_in_the_order_in_which_they_were_called_first() -> None:
    marks = [call(20, AT + 10), call(50, AT + 5, timer=2), wait(150)]
    assert [(one.handle, one.name) for one in within(marks, woken(0))] == [
        (1, "timer 20 ms"),
        (2, "timer 20 ms #2"),
    ]


def test_requests_and_responses_are_callbacks_of_services_and_clients() -> None:
    marks = [
        *taken(20, "/add", what="take_request"),
        *taken(40, "/add", subscription=6, what="take_response"),
    ]
    asked, answered = within([*marks, wait(70)], woken(3), Names({5: "/arm", 6: "/leg"}))
    assert (asked.name, asked.about) == ("service /add", {"node": "/arm", "service": "/add"})
    assert (answered.name, answered.about) == ("client /add", {"node": "/leg", "service": "/add"})
    assert asked.jobs == (Job(AT + 3, AT + 30, AT + 40, 10, "message", None, tid=T),)
    assert answered.jobs == (Job(AT + 3, AT + 50, AT + 70, 20, "message", None, tid=T),)
    assert within([*taken(20, "/add", what="take_request", result=601), wait(50)], woken(0)) == []


def test_a_take_that_finds_nothing_is_no_callback() -> None:
    assert within([*taken(20, "/tick", result=401), wait(50)], woken(0)) == []


def test_without_the_next_wait_a_callback_ends_where_its_thread_sleeps() -> None:
    (found,) = within([call(20, AT)], [*woken(0), sleeps(90)])
    assert found.jobs[0].free_ns == AT + 90
    marks = [call(20, AT), Mark(AT + 40, T, "end"), *taken(50, "/add", what="take_response")]
    ends = [one.jobs[0].free_ns - AT for one in within(marks, [*woken(0), sleeps(90)])]
    assert ends == [40, 90], "not all that is called tells its end"
    assert within([call(20, AT)], woken(0)) == []


def at_the_end(marks: list[Mark], events: list[Event], end: int) -> list[Callback]:
    return callbacks_of(marks, Trace(events), [T], Names(), (), AT + end)


def test_a_callback_that_had_not_ended_at_the_recordings_end_is_told() -> None:
    """It waits for a lock, say: no end of a job, where a thread tells when it waits for something to do."""
    marks = [call(20, AT), wait(120), call(220, AT + 200)]
    (found,) = at_the_end(marks, [*woken(0), sleeps(150), *woken(200), sleeps(300)], 900)
    assert [(job.free_ns - AT, job.ended) for job in found.jobs] == [(120, True), (900, False)]
    assert found.jobs[-1].until_ns == AT + 900
    for events, end in ([*woken(0), sleeps(300, STATES.index("ended"))], AT + 900), (woken(0), None):
        (found,) = callbacks_of(marks, Trace(events), [T], Names(), (), end)
        assert [job.ended for job in found.jobs] == [True], "its thread ended, or nobody knows when"


def test_what_it_keeps_waiting_was_called_no_more_until_the_end() -> None:
    marks = [
        *(call(20, AT, timer=2, period=100), wait(50), call(60, AT, timer=3, period=20), wait(80)),
        *(call(120, AT + 100, timer=2, period=100), call(150, AT + 100)),
    ]
    stuck, alive, cancelled = sorted(at_the_end(marks, woken(0), 900), key=lambda one: one.handle)
    assert [one.jobs[-1].until_ns for one in (stuck, alive, cancelled)] == [AT + 900, AT + 900, None]
    assert [one.jobs[-1].ended for one in (stuck, alive, cancelled)] == [False, True, True]


def test_a_timer_was_cancelled_of_which_two_calls_were_due_before_another_hung() -> None:
    """The first of them is after the call before, however late that was."""
    for wake, period, hang, kept in (
        *((20, 100, 200, True), (20, 100, 201, False), (20, 50, 101, False)),
        *((250, 100, 400, True), (250, 100, 401, False), (99, 0, 120, False)),
    ):
        marks = [call(wake, AT, timer=3, period=period), wait(wake + 5), call(hang, AT + hang, timer=2)]
        (its,) = [one for one in at_the_end(marks, woken(0), 900) if one.handle == 3]
        assert (its.jobs[-1].until_ns is not None) == kept, (wake, period, hang)


def test_a_timer_whose_period_changed_passed_over_nothing(tmp_path: Path) -> None:
    """It is called by its first period, whether that is told by its start, or by its calls."""
    dues = [*range(20, 1220, 20), *range(1220, 3220, 40)]
    marks = []
    for due in dues:
        period = 20 if due < 1200 else 40
        marks += [call(due * MS + 1000, AT + due * MS, period=period * MS), wait(due * MS + 2000)]
    for names in (Names(), Names(periods={1: 70 * MS})):
        (found,) = within(marks, woken(0), names)
        assert (found.name, found.periods_ns, found.only_period_ns) == (
            *("timer 20 ms", (20 * MS, 40 * MS)),
            None,
        )
        followed = written_of(Trace(), T, tmp_path / "rows", found.only_period_ns, 0, found.jobs).followed
        assert (followed.skipped, [one.period_ns for one in followed.loop.changes]) == (0, [40 * MS])
        (found,) = within(marks[:100], woken(0), names)
        assert (found.name, found.only_period_ns) == ("timer 20 ms", 20 * MS)
    hang = [call(3230 * MS, AT + 3230 * MS, timer=2)]
    (its, _) = callbacks_of([*marks, *hang], Trace(woken(0)), [T], Names(), (), AT + 3500 * MS)
    assert its.jobs[-1].until_ns == AT + 3500 * MS, "by its last period it was called until then"


def in_turn(calls: int = 200) -> list[Mark]:
    """A timer that two threads of an executor call in turn, each for 1 ms, 0.1 ms after it is due; each waits
    for what is next once it gets the executor's lock."""
    marks = []
    for k in range(1, calls + 1):
        mark = replace(call(k * 20 * MS + MS // 10, AT + k * 20 * MS), tid=(T, OTHER)[k % 2])
        marks += [mark, replace(mark, time_ns=mark.time_ns + MS, what="end", values={})]
        marks.append(replace(marks[-1], time_ns=marks[-1].time_ns + 25 * MS, what="wait"))
    return sorted(marks, key=lambda mark: mark.time_ns)


def test_a_callback_is_one_whichever_thread_of_an_executor_calls_it(tmp_path: Path) -> None:
    marks = in_turn()
    away = [Event(AT + 20 * MS + MS // 5, 0, SWITCH, OTHER, 0), Event(AT + 30 * MS, 0, SWITCH, 0, OTHER)]
    (found,) = callbacks_of(marks, Trace(away), [T, OTHER], Names())
    assert (found.name, set(found.tids), len(found.jobs)) == ("timer 20 ms", {T, OTHER}, 200)
    assert {(job.wake_ns - job.release_ns, job.free_ns - job.wake_ns) for job in found.jobs} == {
        (MS // 10, MS)
    }
    assert [job.busy_ns for job in found.jobs[:3]] == [MS // 10, MS, MS], "of its own thread"
    written = written_of(Trace(), T, tmp_path / "rows.parquet", found.period_ns, 0, found.jobs)
    assert (written.rows, written.served, written.followed.skipped) == (200, 200, 0)


def test_each_row_tells_the_thread_that_ran_the_job(tmp_path: Path) -> None:
    """A release that was passed over is nobody's."""
    marks = [mark for mark in in_turn(8) if not 5 * 20 * MS <= mark.time_ns - AT < 6 * 20 * MS]
    (found,) = callbacks_of(marks, Trace(), [T, OTHER], Names())
    written = written_of(Trace(), T, tmp_path / "rows.parquet", found.period_ns, 0, found.jobs)
    (rows,) = Samples(written.file).chunks("tid")
    assert rows["status"].tolist() == [SERVED] * 4 + [SKIPPED] + [SERVED] * 3
    assert rows["tid"].tolist() == [OTHER, T, OTHER, T, ABSENT, T, OTHER, T]


def test_messages_to_several_threads_are_in_order_of_their_release_whoever_takes_them_first(
    tmp_path: Path,
) -> None:
    """Each odd one waits for its thread, until the next one is taken; each takes 50 ns of the second."""
    marks, events = [], []
    for k, at in enumerate(range(1000, 9000, 1000)):
        tid, begin = ((OTHER, at + 40), (T, at + 1080))[k % 2]
        events += [Event(AT + at, 0, WAKING, 0, tid)]
        marks += [replace(mark, tid=tid) for mark in (*taken(begin - 10, "/tick"), wait(begin + 50))]
    marks.sort(key=lambda mark: mark.time_ns)
    (found,) = callbacks_of(marks, Trace(events), [T, OTHER], Names())
    written = written_of(Trace(), T, tmp_path / "rows.parquet", None, 0, found.jobs)
    (rows,) = Samples(written.file).chunks("release_ns", "wake_ns", "interval_ns", "tid")
    assert (rows["release_ns"] - AT).tolist() == [*range(1000, 9000, 1000)]
    assert rows["tid"].tolist() == [OTHER, T] * 4
    order = np.argsort(rows["wake_ns"])
    assert (np.diff(order) < 0).any(), "not in order of their beginning"
    assert rows["interval_ns"][order].tolist() == [ABSENT, *np.diff(rows["wake_ns"][order])]
    assert written.followed.loop.period_ns == 1000


def test_a_callbacks_threads_are_told_who_called_it_most_often_first() -> None:
    for tids in ([T, OTHER], [OTHER, T]):
        (found,) = callbacks_of(in_turn(3), Trace(), tids, Names())
        assert found.tids == (OTHER, T)


def test_of_a_timer_a_call_may_be_lost_since_the_call_before_in_whichever_thread() -> None:
    lost = Event(AT + 50 * MS, 0, LOST, value=3)
    (found,) = callbacks_of(in_turn(5), Trace([Event(AT + 49 * MS, 0, SYS_IN, T), lost]), [T, OTHER], Names())
    assert [job.known for job in found.jobs] == [True, True, False, True, True]


def test_of_what_came_a_waking_may_be_lost_since_the_call_before_in_its_own_thread() -> None:
    marks = [*taken(20, "/tick"), wait(60), *taken(320, "/tick"), wait(360)]
    marks += [replace(mark, tid=OTHER) for mark in (*taken(220, "/tick"), wait(260))]
    events = [*woken(0), *woken(130), Event(AT + 205, 0, WAKING, 0, OTHER)]
    trace = Trace(sorted([*events, Event(AT + 150, 0, LOST, value=3)], key=lambda event: event.time_ns))
    (found,) = callbacks_of(sorted(marks, key=lambda one: one.time_ns), trace, [T, OTHER], Names())
    assert [job.known for job in found.jobs] == [True, True, False]


def test_what_one_thread_keeps_waiting_another_does_not_call_either() -> None:
    """Of a group of callbacks that exclude one another; who was called after that is not kept."""
    hang = [wait(5), call(120, AT + 100, timer=2, period=100)]
    for at, until_ns in ((90, AT + 900), (130, None)):
        mark = replace(call(at, AT + 80, timer=3, period=20), tid=OTHER)
        mine = [call(60, AT + 60, timer=3, period=20), wait(65)]
        its = [mark, replace(wait(at + 10), tid=OTHER)]
        marks = sorted([*hang, *mine, *its], key=lambda one: one.time_ns)
        found = callbacks_of(marks, Trace(woken(0)), [T, OTHER], Names(), (), AT + 900)
        (kept,) = [one for one in found if one.handle == 3]
        assert kept.jobs[-1].until_ns == until_ns


def test_a_thread_that_hangs_keeps_waiting_what_it_calls_however_seldom() -> None:
    """What others alone call may have been cancelled."""
    hang = [wait(5), call(120, AT + 100, timer=2, period=100)]
    its = [call(60, AT + 60, timer=3, period=20), wait(65), call(90, AT + 80, timer=3, period=20), wait(95)]
    hang += [replace(mark, tid=OTHER) for mark in its]
    for own, until_ns in (([call(20, AT + 20, timer=3, period=20), wait(25)], AT + 900), ([], None)):
        marks = sorted([*hang, *own], key=lambda one: one.time_ns)
        found = callbacks_of(marks, Trace(woken(0)), [T, OTHER], Names(), (), AT + 900)
        (kept,) = [one for one in found if one.handle == 3]
        assert kept.jobs[-1].until_ns == until_ns


def test_events_that_are_lost_while_two_threads_do_the_same_are_lost_of_both_jobs() -> None:
    """Of a group of callbacks that may run at once: the call before ends after what was lost."""
    marks = [call(20, AT), wait(250)]
    marks += [replace(mark, tid=OTHER) for mark in (call(100, AT + 100), wait(300), call(400, AT + 400))]
    marks.append(replace(wait(450), tid=OTHER))
    trace = Trace([Event(AT + 120, 0, SYS_IN, T), Event(AT + 150, 0, LOST, value=3)])
    (found,) = callbacks_of(sorted(marks, key=lambda one: one.time_ns), trace, [T, OTHER], Names())
    assert [job.known for job in found.jobs] == [False, False, True]


def test_a_call_may_be_lost_since_the_one_that_began_last_whichever_ended_last() -> None:
    marks = [call(50, AT + 50), wait(500), call(600, AT + 600), wait(650)]
    marks += [replace(mark, tid=OTHER) for mark in (call(100, AT + 100), wait(200))]
    trace = Trace([Event(AT + 300, 0, SYS_IN, T), Event(AT + 350, 0, LOST, value=3)])
    (found,) = callbacks_of(sorted(marks, key=lambda one: one.time_ns), trace, [T, OTHER], Names())
    assert [job.known for job in found.jobs] == [False, True, False]


def test_a_switch_that_is_not_told_costs_no_time_on_the_cpu() -> None:
    events = [sleeps(-50), Event(AT, 0, WAKING, 0, T), sleeps(200)]
    (found,) = within([call(20, AT), wait(120)], events)
    assert found.jobs[0].busy_ns == 100
    events = [*woken(0), sleeps(50, RUNNABLE), Event(AT + 70, 0, SYS_IN, T), sleeps(200)]
    (found,) = within([call(20, AT), wait(120)], events)
    assert found.jobs[0].busy_ns == 30 + 50


def test_when_a_timer_was_due_is_told_by_the_clock_that_it_goes_by() -> None:
    offset = 10**18
    (found,) = within([call(20, AT + offset), wait(120)], woken(3), offsets=(offset,))
    assert found.jobs[0].release_ns == AT


def test_what_is_no_time_that_a_timer_was_due_is_not_believed() -> None:
    (found,) = within([call(20, 12345, period=77), wait(120)], woken(4))
    assert (found.due_told, found.period_ns, found.name) == (False, None, "timer of unknown period")
    assert (found.jobs[0].release_ns, found.jobs[0].kind) == (AT + 4, "message")


def test_a_timer_may_be_called_long_after_it_was_due_and_hardly_before() -> None:
    for at, told in ((5 * MS, True), (-MS, True), (-MS - 1, False)):
        (found,) = within([call(at, AT), wait(at + 100)], woken(-2 * MS))
        assert found.due_told == told


def test_times_are_believed_where_they_are_of_more_than_half_of_the_calls() -> None:
    dues = [(100, AT), (300, 12345), (500, AT + 400)]
    for calls, told in ((dues[:2], False), (dues, True)):
        marks = [mark for at, due in calls for mark in (call(at, due), wait(at + 50))]
        marks[2] = call(300, 12345, period=77)
        (found,) = within(marks, woken(3))
        assert (found.due_told, found.only_period_ns) == (told, 20 * MS if told else None)


def test_jobs_that_events_are_lost_of_are_unknown() -> None:
    marks = [mark for at in (20, 220, 420) for mark in (call(at, AT), wait(at + 100))]
    (found,) = within(marks, [*woken(0), Event(AT + 250, 0, LOST, value=3)])
    assert [job.known for job in found.jobs] == [False, False, True]
    for before, lost in ((210, 250), (150, 200)):  # the second: whether it was woken meanwhile is not known
        events = [*woken(0), Event(AT + before, 0, WAKING, 0, T), Event(AT + lost, 0, LOST, value=3)]
        (found,) = within(marks, events)
        assert [job.known for job in found.jobs] == [True, False, True]
    (found,) = within([*taken(20, "/tick"), wait(60)], [*woken(0), Event(AT + 30, 0, LOST, value=3)])
    assert [job.known for job in found.jobs] == [False], "it was woken later, maybe"


def test_the_start_of_a_program_tells_whose_a_callback_is() -> None:
    node = {"node": 11, "name": "arm", "space": "/left"}
    marks = [
        Mark(1, T, "node", node),
        Mark(2, T, "named", {"name": "arm2", "space": "/"}),
        Mark(3, T, "made", {"handle": 5, "node": 11}),
        Mark(4, T, "timer", {"timer": 1, "period": 10 * MS}),
        Mark(5, T, "node", node | {"node": 12}),
        Mark(6, T, "timer", {"timer": 2, "period": 10 * MS}),
        Mark(7, OTHER, "timer", {"timer": 3, "period": 10 * MS}),
    ]
    names = names_of(marks)
    assert names.owners == {1: "/arm2", 2: "/left/arm", 5: "/arm2"}
    assert names.nodes == ("/arm2", "/left/arm")
    found = within([call(20, 5), *taken(30, "/tick"), wait(50)], woken(0), names)
    assert [(one.node, one.name) for one in found] == [("/arm2", "timer 10 ms"), ("/arm2", "/tick")]


def test_callbacks_that_are_called_the_same_are_numbered() -> None:
    marks = [call(20, AT), call(50, AT, timer=2), call(60, AT, timer=3, period=5), wait(150)]
    assert [one.name for one in within(marks, woken(0))] == [
        "timer 20 ms",
        "timer 20 ms #2",
        "timer 5e-06 ms",
    ]
    names = Names({1: "/arm", 2: "/leg", 3: "/leg"})
    assert [(one.node, one.name) for one in within(marks, woken(0), names)] == [
        ("/arm", "timer 20 ms"),
        ("/leg", "timer 20 ms"),
        ("/leg", "timer 5e-06 ms"),
    ], "of one node"


def test_a_callbacks_name_is_of_its_topic_or_service() -> None:
    callback = Callback("message", (T,), None, None, (), False, ())
    assert callback.name == "a topic"
    assert replace(callback, resource="/tick", number=2).name == "/tick #2"
    assert replace(callback, kind="service").name == "service of unknown name"
