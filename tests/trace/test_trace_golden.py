"""Pages that a kernel wrote, beside the same events as that kernel prints them."""

from __future__ import annotations

import base64
import json
import lzma
import re
from collections.abc import Callable
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

from rtmeter.explain.events import KINDS, LOST, NOBODY, STATES, TIMER_FIRED, Trace, joined
from rtmeter.trace.decode import Recorded, decoded, parts_of
from rtmeter.trace.formats import format_of, page_form
from rtmeter.trace.recorder import call_names
from rtmeter.trace.table import open_trace, write_trace

GOLDEN = Path(__file__).parent / "data" / "pages.json.xz"
CALLS = call_names("x86_64")
STATE = {"S": "sleeping", "D": "blocked", "I": "blocked", "R": "runnable", "R+": "runnable"}
STATE |= {"X": "ended", "Z": "ended", "T": "sleeping", "t": "sleeping"}
SIMPLE = {
    "local_timer": ("irq", "local_timer"),
    "reschedule": ("irq", "reschedule"),
    "softirq": ("softirq", None),
    "irq_handler": ("irq", None),
}


@pytest.fixture(scope="module")
def golden() -> Any:
    return json.loads(lzma.decompress(GOLDEN.read_bytes()))


def recorded(golden: Any, kernel_threads: dict[int, set[str]] | None = None) -> Recorded:
    form = page_form(golden["header_page"])
    pages = {int(cpu): base64.b64decode(text) for cpu, text in golden["pages"].items()}
    cut = {
        cpu: [data[at : at + form.size] for at in range(0, len(data), form.size)]
        for cpu, data in pages.items()
    }
    formats = [format_of(name, text) for name, text in golden["formats"].items()]
    return Recorded(form, formats, cut, kernel_threads or {}, CALLS, 0)


def printed(golden: Any, cpu: int) -> list[tuple[Any, ...]]:
    """What the kernel's text says: time in microseconds, event, tid, and what is told of it."""
    irqs: dict[str, str] = {}
    rows = []
    for line in golden["text"]:
        tid, on, us, event, *rest = line.split(" ", 4)
        if int(on) != cpu or event == "hrtimer_expire_exit":
            continue
        about = rest[0] if rest else ""
        found = dict(re.findall(r"(\w+)=(.*?)(?= \w+=| ==>|$)", about))
        rows.append((int(us), *_said(event, about, found, irqs), int(tid)))
    return rows


def _said(event: str, about: str, found: dict[str, str], irqs: dict[str, str]) -> tuple[Any, ...]:
    if event == "sched_switch":
        return (
            "switch",
            int(found["next_pid"]),
            STATE[found["prev_state"]],
            int(found["next_prio"]),
            found["next_comm"],
        )
    if event in ("sched_waking", "sched_wakeup_new"):
        return "waking", int(found["pid"]), "", int(found["prio"]), found["comm"]
    if event in ("sys_enter", "sys_exit"):
        return ("sys_in" if event == "sys_enter" else "sys_out", None, "", None, CALLS[int(about.split()[1])])
    if event.startswith("page_fault"):
        return "fault", None, "", None, event.rpartition("_")[2]
    if event.startswith("hrtimer"):
        return "timer_armed" if event == "hrtimer_start" else "timer_fired", None, "", None, ""
    head, _, end = event.rpartition("_")
    kind, name = SIMPLE[head]
    if head == "softirq":
        name = re.search(r"action=(\w+)", about)[1] if end == "entry" else None
    if head == "irq_handler":
        name = (
            irqs.setdefault(found["irq"], found["name"])
            if "name" in found
            else irqs.get(found.get("irq", ""))
        )
    return f"{kind}_{'in' if end == 'entry' else 'out'}", None, "", None, name


def test_every_event_is_what_the_kernel_prints(golden: Any) -> None:
    trace = decoded(recorded(golden))
    for cpu in (0, 1):
        ours = [row for row in range(len(trace)) if trace.cpu[row] == cpu and trace.event[row] != LOST]
        theirs = printed(golden, cpu)
        assert len(ours) == len(theirs) > 200
        for row, (us, event, target, state, priority, name, tid) in zip(ours, theirs, strict=True):
            said = (KINDS[trace.event[row]], trace.tid[row], (trace.time_ns[row] + 500) // 1000)
            assert said == (event, tid, us)
            if event in ("switch", "waking"):
                thread = (trace.target[row], STATES[trace.state[row]], trace.priority[row])
                assert thread == (target, state, priority)
                assert trace.names[trace.name[row]].removeprefix("[").removesuffix("]") == name
            elif name is not None:
                assert trace.names[trace.name[row]] == name


def test_a_timer_ends_the_sleep_of_whom_it_wakes_at_the_expiry_it_was_armed_with(golden: Any) -> None:
    trace = decoded(recorded(golden))
    expiries = {
        int(found["expires"])
        for line in golden["text"]
        if " hrtimer_start " in line and (found := dict(re.findall(r"(\w+)=(\S+)", line)))
    }
    fired = [row for row in range(len(trace)) if trace.event[row] == TIMER_FIRED]
    with_expiry = [row for row in fired if trace.value[row] in expiries]
    woken = [row for row in fired if trace.target[row] != NOBODY]
    assert with_expiry and woken
    for row in with_expiry:  # no timer fires before its time, but for its slack
        assert trace.time_ns[row] > trace.value[row] - 60_000
    for row in woken:
        following = range(row + 1, len(trace))
        waking = next(
            r for r in following if trace.cpu[r] == trace.cpu[row] and KINDS[trace.event[r]] == "waking"
        )
        assert trace.target[waking] == trace.target[row]


def test_kernel_threads_stand_in_brackets_and_no_other(golden: Any) -> None:
    every = {
        row[2]: row[5] for cpu in (0, 1) for row in printed(golden, cpu) if row[1] in ("switch", "waking")
    }
    some, other = [tid for tid in every if tid != 0][:2]
    kernels = {some: {f"{every[some]}-events"}, other: {"had its id before"}}
    trace = decoded(recorded(golden, kernels))
    names = {
        trace.target[r]: trace.names[trace.name[r]] for r in range(len(trace)) if trace.target[r] != NOBODY
    }
    for tid, name in every.items():
        assert names[tid] == (f"[{name}]" if tid in (0, some) else name)


def test_a_table_is_read_back_as_it_was_written(golden: Any, tmp_path: Path) -> None:
    trace = decoded(recorded(golden))
    write_trace([trace], tmp_path / "trace.parquet")
    read = open_trace(tmp_path / "trace.parquet")
    assert rows_of(joined(read.parts())) == rows_of(trace) and read.kept is None
    write_trace([Trace()], tmp_path / "empty.parquet")
    assert len(joined(open_trace(tmp_path / "empty.parquet").parts())) == 0


def test_parts_together_are_the_whole_and_follow_one_another(golden: Any, tmp_path: Path) -> None:
    whole, parts = decoded(recorded(golden)), list(parts_of(recorded(golden), most_rows=100))
    assert len(parts) > 3
    for before, after in pairwise(part for part in parts if len(part)):
        assert before.time_ns[-1] <= after.time_ns[0]
    assert sorted(rows_of(joined(parts))) == sorted(rows_of(whole)), "timers' expiries, too"
    write_trace(parts, tmp_path / "trace.parquet", kept=[3, 5])
    read = open_trace(tmp_path / "trace.parquet")
    assert rows_of(joined(read.parts())) == rows_of(joined(parts)) and read.kept == {3, 5}


def rows_of(trace: Trace) -> list[tuple[object, ...]]:
    columns = ("time_ns", "cpu", "event", "tid", "target", "state", "priority", "value")
    read: Callable[[int], tuple[object, ...]] = lambda row: (  # noqa: E731
        *(getattr(trace, column)[row] for column in columns),
        trace.name_of(row),
    )
    return [read(row) for row in range(len(trace))]
