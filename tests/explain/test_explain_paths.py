"""Messages followed to who sent them, on scripts whose segments were computed by hand."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import cast

import pytest
from scripts import WAITS, T, written

from rtmeter.explain.causes import Release, explain
from rtmeter.explain.facts import CauseFacts
from rtmeter.explain.scripted import read_events
from rtmeter.explain.segments import Key
from rtmeter.explain.words import words_of
from rtmeter.judge.explained import roles
from rtmeter.judge.mends import finding_for
from rtmeter.results.record import CellRecord

LOOPBACK = """
1250 1 softirq_in 88 - - - NET_RX
1300 1 waking 88 10 - 19 loop
1310 1 softirq_out 88 - - - NET_RX
"""


@pytest.fixture
def path(tmp_path: Path):
    """``path(events)``: the segments of a release at 1000 served at 1350, messages followed."""

    def segments(events: str) -> list[tuple[object, ...]]:
        trace = read_events(written(tmp_path, events)[0])
        found = explain(trace, [Release(0, 1000, 1350, True)], T, paths=True).releases[0].segments
        return [(one.start_ns, one.end_ns, *filter(None, one.key[:4])) for one in found]

    return segments


SENT = WAITS.format(call="recvmsg", by="sendmsg", waking="-").partition("1300 - 10 - 19 loop\n")


def test_a_message_that_a_softirq_delivers_is_its_senders_where_paths_are_followed(path) -> None:
    before, _, after = SENT
    assert path(before + LOOPBACK + after) == [
        (1000, 1100, "own", "holder"),
        (1100, 1150, "interrupt", "eth0"),
        (1150, 1200, "own", "holder"),
        (1200, 1250, "own_kernel", "sendmsg", "holder"),
        (1250, 1300, "softirq", "NET_RX"),
        (1300, 1350, "dispatch"),
    ]
    interrupted = "1240 1 irq_in 88 - - - {0}\n1250 1 irq_out 88 - - - {0}" + LOOPBACK
    followed = path(before + interrupted.format("reschedule") + after)
    assert (1200, 1240, "own_kernel", "sendmsg", "holder") in followed, "the CPU's own brings no message"
    assert path(before + interrupted.format("eth0") + after)[0] == (1000, 1300, "blocked", "NET_RX")
    assert path((before + LOOPBACK + after).replace("sendmsg", "ioctl"))[0][2:] == ("blocked", "NET_RX")
    done = "1210 1 sys_out 88 - - - sendmsg\n1215 1 switch 88 99 runnable 120 other\n"
    done += "1220 1 sys_in 99 - - - sendto\n1225 1 sys_out 99 - - - sendto\n"
    done += "1230 1 switch 99 88 runnable 120 holder"
    assert path(before + done + LOOPBACK + after)[0][2:] == ("blocked", "NET_RX"), "either may have sent it"


BY_KSOFTIRQD = """
1210 1 sys_out 88 - - - sendmsg
1220 1 switch 88 14 sleeping 120 [ksoftirqd/1]
1250 1 softirq_in 14 - - - NET_RX
1300 1 waking 14 10 - 19 loop
1310 1 softirq_out 14 - - - NET_RX
1315 1 waking 14 88 - 120 holder
"""


def test_what_ksoftirqd_delivers_is_of_the_only_one_that_had_sent_there(path) -> None:
    before, _, after = SENT
    before = "\n".join(line for line in before.splitlines() if "eth0" not in line) + "\n"
    assert path(before + BY_KSOFTIRQD + after)[:2] == [
        (1000, 1200, "own", "holder"),
        (1200, 1210, "own_kernel", "sendmsg", "holder"),
    ]
    another = "1195 1 switch 88 99 runnable 120 other\n1196 1 sys_out 99 - - - sendto\n"
    another += "1197 1 switch 99 88 runnable 120 holder\n1200 1 sys_in"
    two = (before + BY_KSOFTIRQD + after).replace("1200 1 sys_in", another)
    assert path(two)[0] == (1000, 1300, "blocked", "NET_RX")
    done = another.replace(
        "1200 1", "1198 1 softirq_in 88 - - - NET_RX\n1199 1 softirq_out 88 - - - NET_RX\n1200 1"
    )
    earlier = (before + BY_KSOFTIRQD + after).replace("1200 1 sys_in", done)
    assert (1200, 1210, "own_kernel", "sendmsg", "holder") in path(earlier), "the other's had been delivered"
    round_before = "1225 1 softirq_in 14 - - - NET_RX\n1230 1 softirq_out 14 - - - NET_RX\n1250 1 softirq_in"
    rounds = (before + BY_KSOFTIRQD + after).replace("1250 1 softirq_in", round_before)
    assert (1200, 1210, "own_kernel", "sendmsg", "holder") in path(rounds), "nobody has sent since"
    lost = (before + BY_KSOFTIRQD + after).replace(
        "1250 1 softirq_in", "1240 1 lost - - - - - 1\n1250 1 softirq_in"
    )
    assert path(lost)[0] == (1000, 1300, "blocked", "NET_RX")


@pytest.mark.parametrize(("asked", "followed"), [(9, True), (11, True), (0, False), (6, False), ("-", False)])
def test_a_condition_is_a_message_of_its_process_and_a_lock_is_its_holders(path, asked, followed) -> None:
    events = WAITS.format(call="futex", by="futex", waking="1 waking 88")
    events = events.replace("900 0 sys_in 10 - - - futex", f"900 0 sys_in 10 - - - futex {asked}")
    first = (1000, 1100, "own", "holder") if followed else (1000, 1300, "blocked", "holder")
    assert path(events)[0] == first


RAN_OUT = """
1100 0 softirq_in 0 - - - TIMER
1110 0 waking 0 10 - 19 loop
1120 0 softirq_out 0 - - - TIMER
1130 0 switch 0 10 runnable 19 loop
1140 0 sys_out 10 - - - recvmsg
1150 0 sys_in 10 - - - {again}
1160 0 switch 10 0 sleeping 120 swapper/0
1200 1 switch 88 99 runnable 120 other
1250 1 switch 99 88 sleeping 120 holder
"""


@pytest.mark.parametrize(
    ("again", "first"),
    [("recvmsg", (1000, 1110, "own", "holder")), ("poll", (1000, 1110, "blocked", "TIMER"))],
)
def test_a_receive_that_ran_out_and_began_anew_waits_for_the_same_message(path, again, first) -> None:
    before = WAITS.format(call="recvmsg", by="sendmsg", waking="1 waking 88").replace("eth0", "nvme0")
    rows = [line for line in before.splitlines() if line and "nvme0" not in line]
    rows += RAN_OUT.format(again=again).splitlines()
    events = "\n".join(sorted(filter(None, rows), key=lambda row: int(row.split()[0])))
    found = path(events)
    assert found[0] == first
    assert (1160, 1200, "own", "holder") in found, "the rest of the wait is followed in either case"


def test_a_thread_that_is_named_as_the_kernels_timers_are_sends_a_message_as_others_do(path) -> None:
    before = WAITS.format(call="recvmsg", by="sendmsg", waking="1 waking 88").replace("eth0", "nvme0")
    rows = [line for line in before.splitlines() if line and "nvme0" not in line]
    again = [row for row in RAN_OUT.format(again="recvmsg").splitlines() if "softirq" not in row]
    rows += ["0 2 switch 0 55 runnable 120 TIMER", "1050 2 sys_in 55 - - - sendmsg"]
    rows += ["1110 2 waking 55 10 - 19 loop" if " waking 0 " in row else row for row in again]
    found = path("\n".join(sorted(filter(None, rows), key=lambda row: int(row.split()[0]))))
    assert found[:2] == [(1000, 1050, "own", "TIMER"), (1050, 1110, "own_kernel", "sendmsg", "TIMER")]


def test_who_waits_on_a_messages_path_is_said(path) -> None:
    """A server that was stopped: nobody would find it by the name of who let it go on."""
    stopped = """
0 0 switch 0 10 runnable 19 loop
0 1 switch 0 20 runnable 29 server
900 0 sys_in 10 - - - recvmsg
910 0 switch 10 0 sleeping 120 swapper/0
950 1 switch 20 30 blocked 120 script
1200 1 waking 30 20 - 29 server
1210 1 switch 30 20 runnable 29 server
1220 1 sys_in 20 - - - sendmsg
1230 1 waking 20 10 - 19 loop
1240 0 switch 0 10 runnable 19 loop
"""
    first = path(stopped)[0]
    assert first == (1000, 1200, "blocked", "script", "server")
    woke = words_of(Key("blocked", "script", of="server"))
    assert woke == "the message's path waited until script woke server"
    assert words_of(Key("blocked", "script")) == "waited until script woke it"
    called = "the message's path was in the system call sendmsg of server"
    assert words_of(Key("own_kernel", "sendmsg", of="server")) == called
    assert words_of(Key("own_kernel", "read")) == "it was in the system call read"


def test_two_that_wait_for_each_other_as_no_program_can_are_no_endless_path(path) -> None:
    events = """
0 0 switch 0 10 runnable 19 loop
0 1 switch 0 88 runnable 120 other
900 0 sys_in 10 - - - recvmsg
910 1 sys_in 88 - - - recvmsg
950 1 switch 88 0 sleeping 120 swapper/1
1000 0 switch 10 0 sleeping 120 swapper/0
1100 0 waking 10 88 - 120 other
1150 1 switch 0 88 runnable 120 other
1300 1 waking 88 10 - 19 loop
1400 0 switch 0 10 runnable 19 loop
"""
    assert path(events)[0] == (1000, 1100, "blocked", "loop", "other")


def test_a_path_has_as_many_threads_as_it_has(tmp_path: Path) -> None:
    """Each wakes the one before it: more than Python's stack has room."""
    many = range(10, 710)
    names, read, write = "swapper/0", "sys_{} {} - - - read", "sys_{} {} - - - write"
    does = [(f"switch 0 {tid} runnable 50 t{tid}", read.format("in", tid)) for tid in many]
    rows = [
        row
        for tid, pair in zip(many, does, strict=True)
        for row in (*pair, f"switch {tid} 0 sleeping 120 {names}")
    ]
    start_ns = len(rows)
    rows += ["irq_in 0 - - - eth0", f"waking 0 {many[-1]} - 50 t{many[-1]}", "irq_out 0 - - - eth0"]
    for tid in reversed(many):
        rows += [f"switch 0 {tid} runnable 50 t{tid}", read.format("out", tid)]
        if tid > T:
            woken = f"waking {tid} {tid - 1} - 50 t{tid - 1}"
            rows += [write.format("in", tid), woken, write.format("out", tid)]
        rows += [f"switch {tid} 0 sleeping 120 {names}"]
    script = "\n".join(f"{at} 0 {row}" for at, row in enumerate(rows))
    trace = read_events(written(tmp_path, script)[0])
    (one,) = explain(trace, [Release(0, start_ns, len(rows), True)], T, paths=True).releases
    assert {f"t{tid}" for tid in many[1:]} <= {segment.key.of for segment in one.segments}
    assert sum(segment.end_ns - segment.start_ns for segment in one.segments) == len(rows) - start_ns


TWO_WAIT = """
0 0 switch 0 10 runnable 19 probe
0 1 switch 0 11 runnable 19 probe
0 2 switch 0 20 runnable 19 probe
800 0 sys_in 10 - - - recvmsg
810 0 switch 10 0 sleeping 120 swapper/0
820 2 sys_in 20 - - - recvmsg
830 2 switch 20 66 sleeping 9 hog
1000 1 switch 11 66 runnable 9 hog
1100 1 switch 66 11 runnable 19 probe
1110 1 sys_in 11 - - - sendmsg
1120 1 waking 11 20 - 19 probe
1220 2 switch 66 20 runnable 19 probe
1225 2 sys_out 20 - - - recvmsg
1230 2 sys_in 20 - - - sendmsg
1240 2 waking 20 10 - 19 probe
1250 0 switch 0 10 runnable 19 probe
"""


def test_client_and_server_of_one_name_are_told_apart(tmp_path: Path) -> None:
    trace = read_events(written(tmp_path, TWO_WAIT)[0])
    roles = {10: "client", 11: "client", 20: "server"}
    (one,) = explain(trace, [Release(0, 1000, 1250, True)], T, paths=True, roles=roles).releases
    waits = [(s.end_ns - s.start_ns, words_of(s.key)) for s in one.segments if s.key.category == "displaced"]
    said = "{} (probe), on the message's path: waited for the CPU: hog ran, more urgent than it"
    assert waits == [(100, said.format("client")), (100, said.format("server"))]


@pytest.mark.parametrize(
    ("server", "hosts", "expected"),
    [
        ([20, 21], {}, {10: "client", 20: "server", 21: "server"}),
        ([20], {"target": "board"}, {10: "client", 20: "server"}),
        ([20], {"component": "board"}, {}),
        ([], {}, {}),
    ],
)
def test_roles_are_of_threads_on_one_machine(server, hosts, expected) -> None:
    client, server = ([{"tid": tid} for tid in tids] for tids in ([10], server))
    threads = SimpleNamespace(items=lambda: [("client", client), ("server", server)])
    assert roles(cast(CellRecord, SimpleNamespace(threads=threads, hosts=hosts))) == expected


SERVED = """
0 0 switch 0 10 runnable 19 loop
0 1 switch 0 20 runnable 120 server
50 1 sys_in 20 - - - epoll_wait
60 1 switch 20 {there} sleeping {priority} {who}
900 0 sys_in 10 - - - sendto
1010 0 waking 10 20 - 120 server
1020 0 sys_out 10 - - - sendto
1030 0 sys_in 10 - - - poll
1040 0 switch 10 0 sleeping 120 swapper/0
1100 1 switch {there} 20 runnable 120 server
1110 1 sys_out 20 - - - epoll_wait
{meanwhile}
1310 1 sys_in 20 - - - sendto
1320 1 waking 20 10 - 19 loop
1330 0 switch 0 10 runnable 19 loop
1335 0 sys_out 10 - - - poll
"""
SLEEPS = """
1120 1 sys_in 20 - - - clock_nanosleep
1125 1 timer_armed 20 20 - - - 1200
1130 1 switch 20 {there} sleeping {priority} {who}
1230 1 irq_in {there} - - - local_timer
1231 1 timer_fired {there} 20 - - - 1200
1232 1 waking {there} 20 - 120 server
1233 1 irq_out {there} - - - local_timer
1240 1 switch {there} 20 runnable 120 server
1250 1 sys_out 20 - - - clock_nanosleep
"""
MET = [
    {"id": one, "grade": "high", "value": "", "items": []}
    for one in ("normal_policy", "preemption_model", "kernel_not_preempt_rt", "virtual_machine")
]


@pytest.mark.parametrize(
    ("there", "waits"),
    [
        (
            {"there": 30, "priority": 130, "who": "stress"},
            [
                (1040, 1100, Key("displaced", "stress", "below", "server")),
                (1130, 1200, Key("armed_later", of="server")),
                (1200, 1230, Key("outside", of="server")),
                (1233, 1240, Key("displaced", "stress", "below", "server")),
            ],
        ),
        (
            {"there": 30, "priority": 120, "who": "[kworker/1]"},
            [
                (1040, 1100, Key("displaced", "[kworker/1]", "equal", "server")),
                (1130, 1200, Key("armed_later", of="server")),
                (1200, 1230, Key("held_off", "[kworker/1]", of="server")),
                (1233, 1240, Key("displaced", "[kworker/1]", "equal", "server")),
            ],
        ),
        (
            {"there": 0, "priority": 120, "who": "swapper/1"},
            [
                (1040, 1100, Key("dispatch", of="server")),
                (1130, 1200, Key("armed_later", of="server")),
                (1200, 1230, Key("timer_idle", of="server")),
                (1233, 1240, Key("dispatch", of="server")),
            ],
        ),
    ],
    ids=["less urgent", "kernel", "idle"],
)
def test_what_another_waits_for_on_a_messages_path_is_said_of_it_and_no_finding_of_the_measured_one(
    path, there, waits
) -> None:
    found = path(SERVED.format(meanwhile=SLEEPS.format(**there), **there))
    expected = [(*wait[:2], *filter(None, wait[2])) for wait in waits]
    kinds = {key.category for *_, key in waits}
    assert [one for one in found if one[2] in kinds and one[0] < 1300] == expected
    for *_, key in waits:
        assert words_of(key).startswith("server, on the message's path: ")
        assert finding_for(key._replace(of=None), MET) is not None or key.category == "held_off"
        advised = finding_for(key, MET, facts=CauseFacts(waiting=100))
        assert advised is None or advised["id"] == "virtual_machine", "no other is of a normal task"


def test_a_thread_may_have_rtmeters_own_words_as_its_name(tmp_path: Path) -> None:
    for name in ("a ahead of b", "a woke b", "a of b"):
        spaced = name.replace(" ", "_")
        events = f"0 0 switch 0 10 runnable 19 loop\n1000 0 switch 10 77 runnable 9 {spaced}\n"
        trace = read_events(written(tmp_path, f"{events}1200 0 switch 77 10 runnable 19 loop\n")[0])
        trace.names = [one.replace("_", " ") for one in trace.names]
        (cause,) = explain(trace, [Release(0, 1000, 1250, True)], T, paths=True).causes
        assert words_of(cause.key) == f"waited for the CPU: {name} ran, more urgent than it"
        findings = [{"id": "task_at_or_above", "grade": "high", "items": [{"name": name}]}]
        assert finding_for(cause.key, findings) is not None
