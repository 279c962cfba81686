"""Records of the programs → the table of events, column by column."""

from __future__ import annotations

from array import array
from collections.abc import Mapping, Sequence

import numpy as np
import numpy.typing as npt

from rtmeter.explain import events as kinds
from rtmeter.explain.events import COLUMNS, NO_PRIORITY, NO_VALUE, NOBODY, Trace
from rtmeter.statistics.quantities import Ints
from rtmeter.trace.ebpf import programs
from rtmeter.trace.ebpf.programs import (
    FIRST,
    FUNCTION,
    KIND,
    PREEMPTED,
    SECOND,
    TARGET,
    TIME,
)
from rtmeter.trace.ebpf.rings import Records

_ENDS = 0x80 | 0x10 | 0x20
_HELD = 0x2 | 0x4 | 0x8 | 0x1000 | 0x8000
"""Of the states of include/linux/sched.h: dead; uninterruptible, stopped, traced, waiting for a lock of the
real-time kernel, frozen."""
_FLAGS = 1 << 31
_SLEEPING, _BLOCKED = kinds.STATES.index("sleeping"), kinds.STATES.index("blocked")
_KINDS = {
    programs.SWITCH: kinds.SWITCH,
    programs.WAKING: kinds.WAKING,
    programs.SYS_IN: kinds.SYS_IN,
    programs.SYS_OUT: kinds.SYS_OUT,
    programs.ARMED: kinds.TIMER_ARMED,
    programs.BUDGET: kinds.TIMER_FIRED,
    programs.LOST: kinds.LOST,
}


class RecordColumns:
    """``functions``: names of timers' functions by address; ``calls``: of system calls by number. All that is
    made shares one list of names."""

    def __init__(self, functions: Mapping[int, str], calls: Sequence[str]) -> None:
        self._names = Trace()
        self._functions = {address: self._names.place(name) for address, name in functions.items()}
        self._calls = np.asarray([self._names.place(name) for name in calls], np.int64)
        self._none = self._names.place("")
        self._another = self._names.place(kinds.OTHERS_TIMER if functions else "")

    def of(self, records: Records, cpus: Ints) -> Trace:
        """Of records in order of time, each with its CPU. A timer's firing stands before the waking that it
        brought."""
        words = records.astype(np.int64)  # wraps: the kernel's numbers are signed
        kind = words[:, KIND // 8] & 0xFFFFFFFF
        by_timer = (kind == programs.WAKING) & (words[:, FUNCTION // 8] != 0)
        firing = np.zeros(len(words) + int(by_timer.sum()), bool)
        firing[np.flatnonzero(by_timer) + np.arange(int(by_timer.sum()))] = True
        twice = np.repeat(np.arange(len(words)), 1 + by_timer)
        words, kind, cpus = words[twice], kind[twice], cpus[twice]
        columns = self._columns(words, np.where(firing, programs.BUDGET, kind), firing)
        columns["cpu"] = cpus
        found = self._names.empty()
        for name in COLUMNS:
            code = getattr(found, name).typecode
            setattr(found, name, array(code, columns[name].astype(np.dtype(code)).tobytes()))
        return found

    def _columns(self, words: Ints, kind: Ints, firing: npt.NDArray[np.bool_]) -> dict[str, Ints]:
        def of(*which: int) -> npt.NDArray[np.bool_]:
            return np.isin(kind, which)

        first, second, target = (words[:, place // 8] for place in (FIRST, SECOND, TARGET))
        switch, timer = of(programs.SWITCH), of(programs.ARMED, programs.BUDGET)
        whom = of(programs.SWITCH, programs.WAKING) | firing
        value = np.full(len(words), NO_VALUE, np.int64)
        value[timer] = (first - second)[timer]
        told = of(programs.SYS_OUT, programs.LOST)
        value[told] = second[told]
        event = np.zeros(len(words), np.int64)
        for ours, theirs in _KINDS.items():
            event[kind == ours] = theirs
        return {
            "time_ns": words[:, TIME // 8],
            "event": event,
            "tid": np.where(of(programs.LOST), NOBODY, words[:, KIND // 8] >> 32),
            "target": np.where(whom, target, NOBODY),
            "state": np.where(switch, _leaves(first), 0),
            "priority": np.where(switch, second, NO_PRIORITY),
            "name": self._name(words, timer, of(programs.SYS_IN, programs.SYS_OUT)),
            "value": value,
        }

    def _name(self, words: Ints, timer: npt.NDArray[np.bool_], call: npt.NDArray[np.bool_]) -> Ints:
        names = np.where(timer, self._another, self._none)
        for address, place in self._functions.items():
            names[timer & (words.view(np.uint64)[:, FUNCTION // 8] == np.uint64(address))] = place
        numbers = words[:, FIRST // 8].astype(np.int32)
        known = call & (numbers >= 0) & (numbers < len(self._calls))
        names[known] = self._calls[numbers[known]]
        for number in np.unique(numbers[call & ~known & (numbers >= 0)]).tolist():
            names[call & (numbers == number)] = self._names.place(f"system call {number}")
        return names


def _leaves(state: Ints) -> Ints:
    """How a thread leaves: a place in STATES."""
    wants = state & (_FLAGS - 1)
    runnable = (wants == 0) | (state & PREEMPTED != 0)
    how = np.where(wants & _HELD != 0, _BLOCKED, _SLEEPING)
    how = np.where(wants & _ENDS != 0, kinds.ENDED, how)
    found: Ints = np.where(runnable, kinds.RUNNABLE, how)
    return found
