# SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only
"""The programs that the kernel runs at its events, and the table into which they write.

Table: a line for each CPU (how many records it has made; the timers that fire), then a ring of records for
each CPU. A record is one cache line. Its place is claimed before its time is read, and its number is written
last: so a reader knows which are whole, and that none with an earlier time is still to come.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable
from dataclasses import dataclass

from rtmeter.trace.ebpf.btf import Types
from rtmeter.trace.ebpf.code import CPU, CURRENT, NOW_NS, R0, R1, R2, R3, R4, R5, R6, R7, R8, R9, R10, Code

LINE_BYTES = 64
SWITCH, WAKING, SYS_IN, SYS_OUT, ARMED, BUDGET, LOST = range(1, 8)
"""Kinds of records; the last is the reader's own."""

STRUCTURES = frozenset({"task_struct", "hrtimer", "hrtimer_clock_base", "pt_regs"})

TIME, KIND, TID, FIRST, SECOND, FUNCTION, TARGET, NUMBER = 0, 8, 12, 16, 24, 32, 48, 56
"""Where a record has: its time; its kind and thread, 32 bits each; two values, a timer's function (of a
waking: of the timer that it came from, or 0), whom the event concerns, its number plus one. Values: of a
switch how the thread leaves and the other's priority; of a call its number and result; of a timer its expiry
and its clock's offset."""

PREEMPTED = 1 << 32
"""In how a thread leaves: it did not want to."""

_MADE, _ITS_FUNCTION, _ITS_EXPIRY, _ITS_OFFSET, _IN_SOFTIRQ, _THREAD = 0, 8, 16, 24, 24, 56
"""Where a CPU's line has: how many records; of the timer whose function an interrupt calls its function (0:
none), expiry and offset; behind these, as far on again, the same of one that a softirq calls, and the thread
there. A softirq may be interrupted, by timers too, and on PREEMPT_RT its thread be pre-empted."""

_CALL_NUMBER = ("orig_ax", "syscallno", "a7")
"""Where a call's number is at its return, by architecture: ARM's has 32 bits, the others' no more."""


@dataclass(frozen=True, slots=True)
class Table:
    """``cpus``: as many as could be, and ``records`` in the ring of each: powers of two."""

    descriptor: int
    cpus: int
    records: int

    @property
    def ring_bytes(self) -> int:
        return self.records * LINE_BYTES

    @property
    def size_bytes(self) -> int:
        return self.cpus * (LINE_BYTES + self.ring_bytes)

    def ring_at(self, cpu: int) -> int:
        """Where its ring begins."""
        return self.cpus * LINE_BYTES + cpu * self.ring_bytes


TracepointCode = tuple[str, bytes]
"""The tracepoint it is for, and its code."""


class Programs:
    """Of the threads ``tids``. Raises UnavailableError where the kernel has other types."""

    def __init__(self, table: Table, types: Types, tids: Iterable[int]) -> None:
        self._table, self._types, self._tids = table, types, tuple(tids)
        self._pid = types.offset("task_struct", "pid")

    def all(self, budget: int | None, ticks: Collection[int] = ()) -> list[TracepointCode]:
        """``budget``: the address of the function of deadline threads' timers, where it is known; ``ticks``:
        of timers that are left out."""
        return [
            self._program("sched_switch", self._switch),
            self._program("sched_waking", self._waking),
            self._program("hrtimer_start", lambda code: self._armed(code, ticks)),
            self._program("hrtimer_expire_entry", lambda code: self._fires(code, budget, ticks)),
            self._program("hrtimer_expire_exit", self._fired),
            *self.calls(self._tids),
        ]

    def calls(self, tids: Iterable[int]) -> list[TracepointCode]:
        """Those of the system calls of any threads."""
        return [
            self._program("sys_enter", lambda code: self._enter(code, tids)),
            self._program("sys_exit", lambda code: self._return(code, tids)),
        ]

    def _program(self, tracepoint: str, write: Callable[[Code], None]) -> TracepointCode:
        code = Code(self._table.descriptor)
        code.copy(R6, R1)
        write(code)
        return tracepoint, bytes(code)

    def _line(self, code: Code) -> None:
        """R8: the line of this CPU; R9: its number."""
        code.call(CPU)
        code.copy(R9, R0)
        code.keep_bits(R9, self._table.cpus - 1)
        code.copy(R1, R9)
        code.shift_left(R1, LINE_BYTES.bit_length() - 1)
        code.table(R8)
        code.add(R8, R1)

    def _record(self, code: Code, kind: int) -> None:
        """R9: a record of this CPU, with its time, kind and thread; after _line()."""
        table = self._table
        code.value(R3, 1)
        code.fetch_add(R8, _MADE, R3)
        code.store(R10, -8, R3)
        code.keep_bits(R3, table.records - 1)
        code.shift_left(R3, LINE_BYTES.bit_length() - 1)
        code.shift_left(R9, table.ring_bytes.bit_length() - 1)
        code.table(R7)
        code.add_value(R7, table.ring_at(0))
        code.add(R7, R9)
        code.add(R7, R3)
        code.copy(R9, R7)
        code.call(NOW_NS)
        code.store(R9, TIME, R0)
        code.call(CURRENT)
        code.store_32(R9, TID, R0)
        code.store_value_32(R9, KIND, kind)

    def _done(self, code: Code) -> None:
        code.load(R1, R10, -8)
        code.add_value(R1, 1)
        code.swap(R9, NUMBER, R1)
        code.end()

    def _if_its(self, code: Code, register: int, tids: Iterable[int], label: str) -> None:
        for tid in tids:
            code.go_if_32(register, tid, label)

    def _switch(self, code: Code) -> None:
        """Arguments: pre-empted, the thread before, the next one, the state of the former."""
        for argument in (8, 16):
            code.load(R2, R6, argument)
            code.load_32(R2, R2, self._pid)
            self._if_its(code, R2, self._tids, "its")
        code.end()
        code.label("its")
        self._line(code)
        self._record(code, SWITCH)
        code.load(R2, R6, 24)
        code.keep_bits(R2, 0x7FFFFFFF)
        code.load(R3, R6, 0)
        code.keep_bits(R3, 1)
        code.shift_left(R3, PREEMPTED.bit_length() - 1)
        code.either(R2, R3)
        code.store(R9, FIRST, R2)
        code.load(R2, R6, 16)
        code.load_32(R3, R2, self._types.offset("task_struct", "prio"))
        code.store(R9, SECOND, R3)
        code.load_32(R3, R2, self._pid)
        code.store(R9, TARGET, R3)
        self._done(code)

    def _waking(self, code: Code) -> None:
        """Argument: who is woken. A timer's own function wakes whoever is woken first in an interrupt; in a
        softirq, whom its thread wakes."""
        self._line(code)
        code.load(R2, R6, 0)
        code.load_32(R2, R2, self._pid)
        self._if_its(code, R2, self._tids, "its")
        code.store_value(R8, _ITS_FUNCTION, 0)
        code.end()
        code.label("its")
        self._record(code, WAKING)
        code.load(R2, R6, 0)
        code.load_32(R2, R2, self._pid)
        code.store(R9, TARGET, R2)
        code.store_value(R9, FUNCTION, 0)
        code.load(R2, R8, _ITS_FUNCTION)
        code.go_if_none(R2, "softirq")
        code.go("fires")
        code.label("softirq")
        code.call(CURRENT)
        code.load(R2, R8, _THREAD)
        code.add_value(R8, _IN_SOFTIRQ)
        code.go_if_same(R0, R2, "fires")
        code.go("told")
        code.label("fires")
        for here, there in ((_ITS_FUNCTION, FUNCTION), (_ITS_EXPIRY, FIRST), (_ITS_OFFSET, SECOND)):
            code.load(R2, R8, here)
            code.store(R9, there, R2)
        code.store_value(R8, _ITS_FUNCTION, 0)
        code.label("told")
        self._done(code)

    def _timer(self, code: Code) -> None:
        """Of the timer that is the first argument R3: function, R4: expiry, R5: its clock's offset."""
        code.load(R2, R6, 0)
        code.load(R3, R2, self._types.offset("hrtimer", "function"))
        code.load(R4, R2, self._types.offset("hrtimer", "_softexpires"))
        code.load(R5, R2, self._types.offset("hrtimer", "base"))
        code.load(R5, R5, self._types.offset("hrtimer_clock_base", "offset"))

    def _leave_out(self, code: Code, ticks: Collection[int]) -> None:
        """Ends, if the timer that is the first argument is one of them."""
        if not ticks:
            return
        code.load(R2, R6, 0)
        code.load(R2, R2, self._types.offset("hrtimer", "function"))
        for address in ticks:
            code.large(R1, address)
            code.go_if_same(R2, R1, "tick")
        code.go("other")
        code.label("tick")
        code.end()
        code.label("other")

    def _armed(self, code: Code, ticks: Collection[int]) -> None:
        code.call(CURRENT)
        self._if_its(code, R0, self._tids, "its")
        code.end()
        code.label("its")
        self._leave_out(code, ticks)
        self._line(code)
        self._record(code, ARMED)
        self._store_timer(code)

    def _store_timer(self, code: Code) -> None:
        self._timer(code)
        code.store(R9, FUNCTION, R3)
        code.store(R9, FIRST, R4)
        code.store(R9, SECOND, R5)
        self._done(code)

    def _place(self, code: Code) -> None:
        """R7: the line, or, if the timer that is the first argument is called in a softirq, so far on in it
        that it has of that what it has of an interrupt, and in whose thread; after _line()."""
        code.copy(R7, R8)
        code.load(R2, R6, 0)
        code.load_8(R2, R2, self._types.offset("hrtimer", "is_soft"))
        code.go_if_none(R2, "interrupt")
        code.add_value(R7, _IN_SOFTIRQ)
        code.call(CURRENT)
        code.store(R8, _THREAD, R0)
        code.label("interrupt")

    def _fires(self, code: Code, budget: int | None, ticks: Collection[int]) -> None:
        self._leave_out(code, ticks)
        self._line(code)
        self._place(code)
        self._timer(code)
        code.store(R7, _ITS_FUNCTION, R3)
        code.store(R7, _ITS_EXPIRY, R4)
        code.store(R7, _ITS_OFFSET, R5)
        if budget is not None:
            code.large(R1, budget)
            code.go_if_same(R3, R1, "budget")
        code.end()
        if budget is not None:
            code.label("budget")
            self._record(code, BUDGET)
            self._store_timer(code)

    def _fired(self, code: Code) -> None:
        self._line(code)
        self._place(code)
        code.store_value(R7, _ITS_FUNCTION, 0)
        code.end()

    def _enter(self, code: Code, tids: Iterable[int]) -> None:
        """Arguments: registers, the call's number."""
        code.call(CURRENT)
        self._if_its(code, R0, tids, "its")
        code.end()
        code.label("its")
        self._line(code)
        self._record(code, SYS_IN)
        code.load(R2, R6, 8)
        code.store(R9, FIRST, R2)
        self._done(code)

    def _return(self, code: Code, tids: Iterable[int]) -> None:
        """Arguments: registers, the result."""
        code.call(CURRENT)
        self._if_its(code, R0, tids, "its")
        code.end()
        code.label("its")
        self._line(code)
        self._record(code, SYS_OUT)
        members = self._types.members
        places = [members["pt_regs", name] for name in _CALL_NUMBER if ("pt_regs", name) in members]
        if places:
            code.load(R2, R6, 0)
            code.load_32(R2, R2, places[0])
        else:
            code.value(R2, -1)
        code.store(R9, FIRST, R2)
        code.load(R2, R6, 8)
        code.store(R9, SECOND, R2)
        self._done(code)


def cpus_of(possible: int) -> int:
    """The next power of two."""
    return 1 << max(possible - 1, 0).bit_length()
