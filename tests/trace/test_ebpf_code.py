"""The programs' instructions, and records → events, without a kernel."""

from __future__ import annotations

import struct
from pathlib import Path

import numpy as np
import pytest
from virtual_machine import Machine

from rtmeter.explain.events import KINDS, NO_VALUE, STATES
from rtmeter.host.root import Root
from rtmeter.trace.ebpf import programs, recorder
from rtmeter.trace.ebpf.btf import PATH, UnavailableError, types_of
from rtmeter.trace.ebpf.code import R1, R2, Code
from rtmeter.trace.ebpf.columns import RecordColumns
from rtmeter.trace.ebpf.programs import PREEMPTED, Table, cpus_of
from rtmeter.trace.ebpf.recorder import RingsRecorder
from rtmeter.trace.ebpf.rings import WORDS

OWN = 7


def record(kind: int, time_ns: int = 0, **fields: int) -> list[int]:
    """Eight words, as a program writes them."""
    words = [time_ns, OWN << 32 | kind, 0, 0, 0, 0, 0, 1]
    places = {"first": 2, "second": 3, "function": 4, "target": 6}
    for name, value in fields.items():
        words[places[name]] = value & (1 << 64) - 1
    return words


def test_programs_that_did_not_run_before_anything_was_read_are_a_loss_at_the_beginning(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Until when a CPU is known is 0 then."""
    monkeypatch.setattr(recorder, "misses", lambda _program: 3)
    rings = object.__new__(RingsRecorder)
    rings._untils_ns, rings._loaded = [0, 5000], [1]
    rings._waiting = np.empty((0, WORDS), np.uint64), np.empty(0, np.int64)
    rings._from_ns, rings._to_ns = 0, 2**63
    rings._lost = rings._missed = 0
    rings._hand_on([])
    ((loss,), _) = rings._waiting
    assert (rings._lost, loss[programs.TIME // 8], loss[programs.SECOND // 8]) == (3, 0, 3)


def told(*records: list[int]) -> list[tuple[object, ...]]:
    columns = RecordColumns({0xF00: "hrtimer_wakeup", 0xB00: "dl_task_timer"}, ["read", "write"])
    trace = columns.of(np.asarray(records, np.uint64), np.zeros(len(records), np.int64))
    return [
        (KINDS[trace.event[row]], trace.tid[row], trace.target[row], trace.name_of(row), trace.value[row])
        for row in range(len(trace))
    ]


def test_a_waking_by_a_timer_is_its_firing_and_then_the_waking() -> None:
    woken = record(programs.WAKING, 5, target=9, function=0xF00, first=1_000_000, second=400)
    assert told(record(programs.WAKING, 1, target=8), woken) == [
        ("waking", OWN, 8, None, NO_VALUE),
        ("timer_fired", OWN, 9, "hrtimer_wakeup", 999_600),  # by CLOCK_MONOTONIC
        ("waking", OWN, 9, None, NO_VALUE),
    ]


def test_calls_have_names_and_results_and_timers_their_expiry() -> None:
    assert told(
        record(programs.SYS_IN, first=1),
        record(programs.SYS_OUT, first=1, second=-4),
        record(programs.SYS_IN, first=77),
        record(programs.ARMED, function=0xF00, first=50, second=-3),
        record(programs.ARMED, function=0xDEAD, first=50),
        record(programs.BUDGET, function=0xB00, first=60),
        record(programs.LOST, second=12),
    ) == [
        ("sys_in", OWN, -1, "write", NO_VALUE),
        ("sys_out", OWN, -1, "write", -4),
        ("sys_in", OWN, -1, "system call 77", NO_VALUE),
        ("timer_armed", OWN, -1, "hrtimer_wakeup", 53),
        ("timer_armed", OWN, -1, "another function", 50),
        ("timer_fired", OWN, -1, "dl_task_timer", 60),
        ("lost", -1, -1, None, 12),
    ]


@pytest.mark.parametrize(
    ("state", "leaves"),
    [
        (0, "runnable"),
        (1, "sleeping"),
        (1 | PREEMPTED, "runnable"),
        (2, "blocked"),
        (0x402, "blocked"),
        (4, "blocked"),
        (0x80, "ended"),
    ],
)
def test_how_a_thread_leaves_is_told_by_its_state(state: int, leaves: str) -> None:
    columns = RecordColumns({}, [])
    records = np.asarray([record(programs.SWITCH, first=state, second=98, target=3)], np.uint64)
    trace = columns.of(records, np.zeros(1, np.int64))
    assert (STATES[trace.state[0]], trace.priority[0], trace.target[0]) == (leaves, 98, 3)


def test_a_jump_goes_to_its_label_and_numbers_keep_their_sign() -> None:
    code = Code(table=5)
    code.go_if_32(R1, -2, "there")
    code.large(R2, 0xFFFFFFFF_81000000)
    code.label("there")
    code.end()
    instructions = [struct.unpack_from("<BBhi", bytes(code), at) for at in range(0, len(bytes(code)), 8)]
    assert instructions == [
        (0x16, R1, 2, -2),
        (0x18, R2, 0, -0x7F000000),
        (0, 0, 0, -1),
        (0xB7, 0, 0, 0),
        (0x95, 0, 0, 0),
    ]


def test_the_rings_of_all_cpus_lie_behind_their_lines() -> None:
    assert [cpus_of(possible) for possible in (1, 2, 3, 96)] == [1, 2, 4, 128]
    table = Table(-1, 4, 8)
    assert (table.ring_at(0), table.ring_at(3), table.size_bytes) == (256, 256 + 3 * 512, 256 + 4 * 512)


def test_a_kernel_that_does_not_tell_its_types_takes_no_programs(tmp_path: Path) -> None:
    with pytest.raises(UnavailableError, match=PATH):
        types_of(Root(tmp_path), frozenset())


def test_a_calls_number_has_32_bits_at_its_return_whatever_stands_beside_it() -> None:
    machine = Machine((OWN,))
    machine.thread = OWN
    for number in (1, -1):
        machine.runs("sys_exit", machine.thing("pt_regs", syscallno=number), -4)
    made = [[one[at] for at in range(0, programs.LINE_BYTES, 8)] for one in machine.records()]
    assert told(*made) == [("sys_out", OWN, -1, "write", -4), ("sys_out", OWN, -1, None, -4)]
