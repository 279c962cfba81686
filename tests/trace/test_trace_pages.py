"""Pages made by hand: every type of entry of the ring buffer, and what the kernel could not keep."""

from __future__ import annotations

import struct

import pytest

from rtmeter.explain.events import (
    FAULT,
    IRQ_IN,
    LENT,
    LOST,
    NO_PRIORITY,
    NO_VALUE,
    NOBODY,
    STATES,
    STOPPED,
    SWITCH,
    SYS_IN,
    SYS_OUT,
    TIMER_ARMED,
    TIMER_FIRED,
    WAKING,
)
from rtmeter.trace.decode import Recorded, decoded
from rtmeter.trace.formats import Format, format_of, page_form
from rtmeter.trace.pages import UNTOLD, events_of, missed

HEADER = """
\tfield: u64 timestamp;\toffset:0;\tsize:8;\tsigned:0;
\tfield: local_t commit;\toffset:8;\tsize:{word};\tsigned:1;
\tfield: int overwrite;\toffset:8;\tsize:1;\tsigned:1;
\tfield: char data;\toffset:{data};\tsize:{size};\tsigned:0;
"""
FORMS = {
    "64 bits": page_form(HEADER.format(word=8, data=16, size=4080)),
    "32 bits": page_form(HEADER.format(word=4, data=12, size=4084)),
}
FAULT_FORMAT = format_of(
    "page_fault_user",
    """
name: page_fault_user
ID: 7
\tfield:unsigned short common_type;\toffset:0;\tsize:2;\tsigned:0;
\tfield:int common_pid;\toffset:4;\tsize:4;\tsigned:1;
""",
)
MISSED, STORED = 1 << 31, 1 << 30


def page(form, entries: bytes, flags: int = 0, start_ns: int = 1000, count: int | None = None) -> bytes:
    commit = (len(entries) | flags).to_bytes(form.commit.size, "little")
    data = struct.pack("<Q", start_ns) + commit + entries
    if count is not None:
        data += count.to_bytes(form.commit.size, "little")
    return data.ljust(form.size, b"\0")


def entry(kind: int, delta: int, *words: int) -> bytes:
    return struct.pack(f"<{1 + len(words)}I", kind | delta << 5, *words)


@pytest.mark.parametrize("form", FORMS.values(), ids=FORMS)
def test_each_type_of_entry_moves_the_time_as_it_says(form) -> None:
    entries = (
        entry(2, 5, 1, 1)  # two words of data
        + entry(30, 3, 2)  # the time goes on by 2 << 27, and 3
        + entry(1, 4, 1)
        + entry(29, 1, 8, 0)  # taken back
        + entry(0, 6, 8, 1)  # its length in the first word
        + entry(31, 9, 1)  # the time is 1 << 27, and 9
        + entry(1, 1, 1)
        + entry(29, 0, 4)  # the rest is empty
        + entry(1, 1, 1)
    )
    extended = 1005 + (2 << 27) + 3 + 4
    head = form.data
    assert list(events_of(page(form, entries), form)) == [
        (1005, head + 4),
        (extended, head + 24),
        (extended + 6, head + 48),
        ((1 << 27) + 10, head + 64),
    ]


@pytest.mark.parametrize("form", FORMS.values(), ids=FORMS)
def test_what_the_kernel_could_not_keep(form) -> None:
    entries = entry(1, 5, 1)
    assert missed(page(form, entries), form) is None
    assert missed(page(form, entries, MISSED), form) == UNTOLD
    assert missed(page(form, entries, MISSED | STORED, count=77), form) == 77
    assert [at for at, _ in events_of(page(form, entries, MISSED | STORED, count=77), form)] == [1005]
    full = bytes(form.size - form.data)
    assert missed(page(form, full, MISSED | STORED), form) == UNTOLD, "there is no room for their number"


def test_a_page_that_is_cut_or_damaged_ends_nothing() -> None:
    form = FORMS["64 bits"]
    whole = page(form, entry(2, 5, 1, 1) * 3)
    for length in range(20, 60):
        assert len(list(events_of(whole[:length], form))) <= 3
    list(events_of(page(form, entry(0, 1, 0) * 4), form))  # no length: it ends


def fault(delta: int, tid: int) -> bytes:
    return entry(2, delta, 7, tid)


def test_lost_events_stand_before_those_of_their_page_and_at_the_end_of_a_recording_that_broke_off() -> None:
    form = FORMS["64 bits"]
    pages = [page(form, fault(5, 9)), page(form, fault(5, 9), MISSED | STORED, 2000, 77)]
    pages.append(page(form, fault(5, 9), MISSED, 3000))
    trace = decoded(Recorded(form, [FAULT_FORMAT], {3: pages}, {}, (), 0, 9000))
    assert list(zip(trace.time_ns, trace.event, trace.value, strict=True)) == [
        (1005, FAULT, NO_VALUE),
        (2005, LOST, 77),
        (2005, FAULT, NO_VALUE),
        (3005, LOST, NO_VALUE),
        (3005, FAULT, NO_VALUE),
        (9000, LOST, NO_VALUE),
    ]
    assert set(trace.cpu) == {3}


def test_a_page_that_is_damaged_is_lost_up_to_the_next_whole_one() -> None:
    form = FORMS["64 bits"]
    damaged = page(form, fault(5, 9) + entry(1, 5, 7) * 1019, start_ns=1500)[: form.data + 16]
    pages = [page(form, fault(5, 9)), damaged, page(form, fault(5, 9), start_ns=2000)]
    pages.append(page(form, fault(5, 9), start_ns=3000))
    trace = decoded(Recorded(form, [FAULT_FORMAT], {0: pages}, {}, (), 0))
    assert list(zip(trace.time_ns, trace.event, trace.value, strict=True)) == [
        (1005, FAULT, NO_VALUE),
        (1505, FAULT, NO_VALUE),
        (2005, LOST, NO_VALUE),
        (2005, FAULT, NO_VALUE),
        (3005, FAULT, NO_VALUE),
    ]
    for nonsense in (b"Welcome!" * 16, page(form, fault(5, 9), start_ns=1 << 63)):
        told = decoded(Recorded(form, [FAULT_FORMAT], {0: [pages[0], nonsense, pages[2]]}, {}, (), 0))
        assert list(told.time_ns) == [1005, 2005, 2005], "what begins so is no page of the kernel's"
    many = page(form, fault(5, 9), MISSED | STORED, 2000, (1 << 64) - 1)
    assert decoded(Recorded(form, [FAULT_FORMAT], {0: [many]}, {}, (), 0)).value[0] == NO_VALUE
    assert len(decoded(Recorded(form, [FAULT_FORMAT], {0: [], 1: [b""]}, {}, (), 0))) == 0


def test_a_switch_that_the_kernel_keeps_to_itself_is_lost() -> None:
    form = FORMS["64 bits"]
    pages = [page(form, fault(5, 9) + fault(5, 9) + fault(5, 8))]
    trace = decoded(Recorded(form, [FAULT_FORMAT], {0: pages}, {}, (), 0))
    assert list(zip(trace.time_ns, trace.event, trace.value, strict=True))[2:] == [
        (1015, LOST, 1),
        (1015, FAULT, NO_VALUE),
    ]


WAKING_FORMAT = format_of(
    "sched_waking",
    """
name: sched_waking
ID: 8
\tfield:unsigned short common_type;\toffset:0;\tsize:2;\tsigned:0;
\tfield:unsigned char common_flags;\toffset:2;\tsize:1;\tsigned:0;
\tfield:int common_pid;\toffset:4;\tsize:4;\tsigned:1;
\tfield:char comm[16];\toffset:8;\tsize:16;\tsigned:0;
\tfield:pid_t pid;\toffset:24;\tsize:4;\tsigned:1;
\tfield:int prio;\toffset:28;\tsize:4;\tsigned:1;
""",
)


def waking(delta: int, tid: int, target: int, priority: int) -> bytes:
    name = struct.unpack("<4I", b"woken".ljust(16, b"\0"))
    return entry(8, delta, 8, tid, *name, target, priority)


def test_from_an_idle_cpu_an_untold_switch_to_a_thread_that_was_woken_stands_where_it_first_acts() -> None:
    form = FORMS["64 bits"]
    acts = waking(5, 0, 8, 19) + fault(5, 0) + fault(5, 8) + fault(5, 0) + fault(5, 8)
    acts += waking(5, 8, 7, 30) + fault(5, 7)
    trace = decoded(Recorded(form, [FAULT_FORMAT, WAKING_FORMAT], {1: [page(form, acts)]}, {}, (), 0))
    rows = list(zip(trace.time_ns, trace.event, trace.tid, trace.target, trace.value, strict=True))
    assert rows == [
        (1005, WAKING, 0, 8, NO_VALUE),
        (1010, FAULT, 0, -1, NO_VALUE),
        (1015, SWITCH, 0, 8, NO_VALUE),
        (1015, FAULT, 8, -1, NO_VALUE),
        (1020, LOST, -1, -1, 1),  # the CPU was not idle
        (1020, FAULT, 0, -1, NO_VALUE),
        (1025, LOST, -1, -1, 1),  # nobody woke it again
        (1025, FAULT, 8, -1, NO_VALUE),
        (1030, WAKING, 8, 7, NO_VALUE),
        (1035, LOST, -1, -1, 1),
        (1035, FAULT, 7, -1, NO_VALUE),
    ]
    assert (trace.priority[2], trace.name_of(2)) == (19, "woken")


SWITCH_FORMAT = format_of(
    "sched_switch",
    """
name: sched_switch
ID: 9
\tfield:unsigned short common_type;\toffset:0;\tsize:2;\tsigned:0;
\tfield:int common_pid;\toffset:4;\tsize:4;\tsigned:1;
\tfield:long prev_state;\toffset:8;\tsize:8;\tsigned:1;
\tfield:char next_comm[16];\toffset:16;\tsize:16;\tsigned:0;
\tfield:pid_t next_pid;\toffset:32;\tsize:4;\tsigned:1;
\tfield:int next_prio;\toffset:36;\tsize:4;\tsigned:1;

print fmt: "{ 0x01, "S" }, { 0x02, "D" }"
""",
)


IRQ_FORMAT = format_of("reschedule_entry", FAULT_FORMAT.text.replace("ID: 7", "ID: 11"))


def irq(delta: int, tid: int) -> bytes:
    return entry(2, delta, 11, tid)


def switch(delta: int, tid: int, target: int) -> bytes:
    name = struct.unpack("<4I", b"other".ljust(16, b"\0"))
    return entry(10, delta, 9, tid, 1, 0, *name, target, 120)


def test_a_thread_of_which_the_kernel_tells_nothing_leaves_where_one_that_was_woken_first_acts() -> None:
    form, formats = FORMS["64 bits"], [FAULT_FORMAT, WAKING_FORMAT, SWITCH_FORMAT, IRQ_FORMAT]
    hidden = switch(5, 5, 66) + irq(3, 66) + fault(2, 8)  # 66 acts nowhere: interrupts come to anybody
    told = switch(5, 8, 5) + fault(5, 5) + waking(5, 5, 8, 19) + fault(5, 8)
    woken = page(form, waking(1, 4, 8, 19), start_ns=1001)
    trace = decoded(Recorded(form, formats, {0: [woken], 1: [page(form, hidden + told)]}, {}, (), 0))
    rows = list(zip(trace.time_ns, trace.event, trace.tid, trace.target, strict=True))
    assert rows == [
        (1002, WAKING, 4, 8),
        (1005, SWITCH, 5, 66),
        (1008, IRQ_IN, 66, -1),
        (1010, SWITCH, 66, 8),
        (1010, FAULT, 8, -1),
        (1015, SWITCH, 8, 5),
        (1020, FAULT, 5, -1),
        (1025, WAKING, 5, 8),
        (1030, LOST, -1, -1),  # 5 is told of: it may have done anything
        (1030, FAULT, 8, -1),
    ]


@pytest.mark.parametrize(("size", "code"), [(8, "q"), (4, "i")], ids=["64 bits", "32 bits"])
def test_what_a_futex_is_asked_is_told_without_its_flags(size: int, code: str) -> None:
    text = f"""
name: sys_enter
ID: 10
\tfield:unsigned short common_type;\toffset:0;\tsize:2;\tsigned:0;
\tfield:int common_pid;\toffset:4;\tsize:4;\tsigned:1;
\tfield:long id;\toffset:8;\tsize:{size};\tsigned:1;
\tfield:unsigned long args[6];\toffset:{8 + size};\tsize:{6 * size};\tsigned:0;
"""
    form = FORMS["64 bits"]
    data = [struct.pack(f"<II7{code}", 10, 9, call, 1, 0x189, *[0] * 4) for call in (1, 0)]
    entries = b"".join(entry(len(one) // 4, 5, *struct.unpack(f"<{len(one) // 4}I", one)) for one in data)
    trace = decoded(
        Recorded(form, [format_of("sys_enter", text)], {0: [page(form, entries)]}, {}, ("read", "futex"), 0)
    )
    assert [(trace.name_of(row), trace.value[row]) for row in (0, 1)] == [("futex", 9), ("read", NO_VALUE)]


SLEEPS = '{ 0x01, "S" }, { 0x02, "D" }'


def of_words(name: str, number: int, fields: str, word: int, states: str = SLEEPS) -> Format:
    """A format as kernels of that word's size print it: ``long`` and pointers have a word, and every field
    lies at a multiple of its size, a 64-bit one too (ARM's procedure call standard)."""
    at, lines = 8, []
    sizes = {"long": word, "void *": word, "int": 4, "s64": 8, "char comm[16]": 16, "pid_t": 4}
    for field in fields.split(";"):
        kind, _, called = field.strip().rpartition(" ")
        kind = "char comm[16]" if "[16]" in called else kind
        size = sizes[kind]
        align = min(size, 8) if "char" not in kind else 1
        at = -(-at // align) * align
        lines.append(f"\tfield:{kind} {called};\toffset:{at};\tsize:{size};\tsigned:1;")
        at += size
    common = "\tfield:unsigned char common_flags;\toffset:2;\tsize:1;\tsigned:0;\n"
    common += "\tfield:int common_pid;\toffset:4;\tsize:4;\tsigned:1;"
    told = "\n".join([f"name: {name}", f"ID: {number}", common, *lines])
    return format_of(name, f'{told}\n\nprint fmt: "{states}"')


def written(form: Format, delta: int, tid: int, **values: int | bytes) -> bytes:
    """An event of that format; as long as its last field needs."""
    end = max(field.offset + field.size for field in form.fields.values())
    data = bytearray(-(-end // 4) * 4)
    struct.pack_into("<Hxxi", data, 0, form.id, tid)
    for name, value in values.items():
        field = form.fields[name]
        raw = value if isinstance(value, bytes) else value.to_bytes(field.size, "little", signed=True)
        data[field.offset : field.offset + len(raw)] = raw
    return entry(len(data) // 4, delta, *struct.unpack(f"<{len(data) // 4}I", data))


OF_SOME = {
    **dict.fromkeys("SP", "sleeping"),
    **dict.fromkeys("DITt", "blocked"),
    **dict.fromkeys("XZ", "ended"),
}
LEAVES = [
    *((None, letter, "sleeping" if letter in "Tt" else leaves) for letter, leaves in OF_SOME.items()),
    *(({}, letter, leaves) for letter, leaves in OF_SOME.items()),
]


@pytest.mark.parametrize(("functions", "letter", "leaves"), LEAVES)
def test_how_a_thread_leaves_is_told_by_its_letter(
    functions: dict[int, str] | None, letter: str, leaves: str
) -> None:
    """Where some threads are recorded for their sleeps, who is stopped does not sleep."""
    states = ", ".join(f'{{ {1 << bit:#x}, "{one}" }}' for bit, one in enumerate(OF_SOME))
    fields = "long prev_state; char next_comm[16]; pid_t next_pid; int next_prio"
    switch, form = of_words("sched_switch", 1, fields, 8, states), FORMS["64 bits"]
    left = written(
        switch, 5, 9, prev_state=1 << [*OF_SOME].index(letter), next_comm=b"x", next_pid=8, next_prio=1
    )
    trace = decoded(Recorded(form, [switch], {0: [page(form, left)]}, {}, (), 0, functions=functions))
    assert [STATES[state] for state in trace.state] == [leaves]
    assert trace.value[0] == (STOPPED if letter in "Tt" else NO_VALUE)


@pytest.mark.parametrize(("flags", "due_ns"), [(0, 5000), (MISSED, NO_VALUE)])
def test_when_a_timer_was_due_is_not_told_if_events_were_lost_since_it_was_armed(
    flags: int, due_ns: int
) -> None:
    form = FORMS["64 bits"]
    armed = of_words("hrtimer_start", 3, "void * hrtimer; void * function; s64 expires", 8)
    fired = of_words("hrtimer_expire_entry", 4, "void * hrtimer; s64 now; void * function", 8)
    pages = [page(form, written(armed, 5, 9, hrtimer=77, expires=5000))]
    pages.append(page(form, written(fired, 5, 9, hrtimer=77), flags, 2000))
    trace = decoded(Recorded(form, [armed, fired], {0: pages}, {}, (), 0))
    assert (trace.event[-1], trace.value[-1]) == (TIMER_FIRED, due_ns)
    after = written(armed, 5, 9, hrtimer=77, expires=5000) + written(fired, 5, 9, hrtimer=77)
    trace = decoded(Recorded(form, [armed, fired], {0: [page(form, after, flags)]}, {}, (), 0))
    assert (trace.event[-1], trace.value[-1]) == (TIMER_FIRED, 5000), "it is what comes first since"


def test_whose_priority_changes_for_a_lock_by_whom_and_what_it_had_before() -> None:
    form = FORMS["64 bits"]
    lent = of_words("sched_pi_setprio", 7, "char comm[16]; pid_t pid; int oldprio; int newprio", 8)
    short = of_words("sched_pi_setprio", 7, "int comm; pid_t pid; int oldprio; int newprio", 8)
    for one in (lent, short):  # of some kernels the name stands at the end
        entries = written(one, 5, 9, pid=8, oldprio=120, newprio=19)
        entries += written(one, 5, 8, pid=8, oldprio=19, newprio=-1)
        trace = decoded(Recorded(form, [one], {0: [page(form, entries)], 1: []}, {}, (), 0, functions={}))
        rows = zip(trace.event, trace.tid, trace.target, trace.priority, trace.value, strict=True)
        assert list(rows) == [(LENT, 9, 8, 19, 120), (LENT, 8, 8, -1, 19)]
        assert trace.time_ns.tolist() == [1005, 1010]


@pytest.mark.parametrize("bits", [64, 32])
def test_a_kernel_of_32_bits_tells_the_same_as_one_of_64(bits: int) -> None:
    word = bits // 8
    form = FORMS[f"{bits} bits"]
    switch = of_words(
        "sched_switch", 1, "long prev_state; char next_comm[16]; pid_t next_pid; int next_prio", word
    )
    wakes = of_words("sched_waking", 2, "char comm[16]; pid_t pid; int prio", word)
    armed = of_words("hrtimer_start", 3, "void * hrtimer; void * function; s64 expires", word)
    fired = of_words("hrtimer_expire_entry", 4, "void * hrtimer; s64 now; void * function", word)
    calls = of_words("sys_enter", 5, "long id", word)
    leaves = of_words("sys_exit", 6, "long id; long ret", word)
    assert armed.fields["expires"].offset == (24 if bits == 64 else 16)
    entries = (
        written(calls, 5, 8, id=1)
        + written(armed, 5, 8, hrtimer=64, function=8, expires=5_000_000_000)
        + written(switch, 5, 8, prev_state=1, next_comm=b"idle", next_pid=0, next_prio=120)
        + written(fired, 5, 0, hrtimer=64, now=1, function=8)
        + written(wakes, 5, 0, comm=b"robot", pid=8, prio=19)
        + written(switch, 5, 0, prev_state=0, next_comm=b"robot", next_pid=8, next_prio=19)
        + written(leaves, 5, 8, id=1, ret=-4)
    )
    formats = [switch, wakes, armed, fired, calls, leaves]
    trace = decoded(Recorded(form, formats, {0: [page(form, entries)]}, {}, ("read", "nanosleep"), 0))
    rows = zip(trace.time_ns, trace.event, trace.tid, trace.target, trace.priority, trace.value, strict=True)
    assert list(rows) == [
        (1005, SYS_IN, 8, NOBODY, NO_PRIORITY, NO_VALUE),
        (1010, TIMER_ARMED, 8, 8, NO_PRIORITY, 5_000_000_000),
        (1015, SWITCH, 8, 0, 120, NO_VALUE),
        (1020, TIMER_FIRED, 0, 8, NO_PRIORITY, 5_000_000_000),
        (1025, WAKING, 0, 8, 19, NO_VALUE),
        (1030, SWITCH, 0, 8, 19, NO_VALUE),
        (1035, SYS_OUT, 8, NOBODY, NO_PRIORITY, NO_VALUE),
    ]
    assert [STATES[trace.state[row]] for row in (2, 5)] == ["sleeping", "runnable"]
    assert [trace.name_of(row) for row in (0, 5)] == ["nanosleep", "robot"]
