"""The pages of all CPUs → the table that explain/ takes, in parts: a long run has more than memory.

A timer's ``target`` is whom its own function wakes: the first thread that is woken on that CPU until the
function returns, by the interrupt in which it is called; or by the thread, where it is called in a softirq:
others' interrupts may come between, and on PREEMPT_RT threads. Its expiry is that with which it was started
last, by its own clock until it fires. Kernels may keep a thread's events to themselves: where another thread
acts than the last switch let run, a ``lost`` stands for what is missing; or, if that thread had just been
woken, and the CPU was idle or had a thread of which the kernel tells nothing, the switch itself, where the
thread first acts.
"""

from __future__ import annotations

import struct
import sys
from bisect import bisect_right, insort
from collections.abc import Callable, Iterator

import numpy as np
import numpy.typing as npt

from rtmeter.explain import events as kinds
from rtmeter.explain.events import NO_VALUE, NOBODY, SOFTIRQS, Event, Trace, joined
from rtmeter.explain.threads import IDLE
from rtmeter.trace.events import VECTORS
from rtmeter.trace.formats import Format, ReadField
from rtmeter.trace.marking import marking
from rtmeter.trace.names import name_reader
from rtmeter.trace.pages import UNTOLD, ComingPages, events_of, missed
from rtmeter.trace.rcl import PREFIX
from rtmeter.trace.recorded import Recorded

_NEAR_NS = 1_000_000
_LONG_NS = 100_000_000
"""No interrupt takes longer from reading its clocks to the last timer that it fires."""

_REALTIME_NS = 10**18
"""An expiry beyond is the wall clock's, where a firing does not tell: no machine is up for thirty years."""

_LOOK_BACK = 10_000
"""Rows in which the waking of a thread is looked for whose switch is not told."""

_FIRES = "hrtimer_expire_entry"
_ACTS = ("sched_switch", "sys_enter", "sys_exit", "page_fault_user", "page_fault_kernel")
"""What a thread does itself; interrupts come to every one."""

_IN_INTERRUPT = 0x08
"""Of an event's flags: it happened in an interrupt, not in a softirq (TRACE_FLAG_HARDIRQ)."""

_OPERATION = 0x7F
"""Of what a futex is asked: the rest are flags."""

Handle = Callable[[int, int, bytes, int], None]
"""Takes time, CPU, page and offset of an event."""


MOST_ROWS = 500_000
"""In a part, about."""

LEFT_OUT = 0
"""The value of a ``lost`` that stands for what was left out of a long run: nothing was lost there."""


def decoded(recorded: Recorded) -> Trace:
    """The events of all CPUs in order of time."""
    return joined(parts_of(recorded, sys.maxsize))


def parts_of(recorded: Recorded, most_rows: int = MOST_ROWS) -> Iterator[Trace]:
    """The same in parts that follow one another in time; they share their names."""
    rows = _Rows(recorded)
    coming = {cpu: ComingPages(iter(pages)) for cpu, pages in recorded.cpus.items()}
    while coming := {cpu: pages for cpu, pages in coming.items() if pages.page is not None}:
        cpu = min(coming, key=lambda one: coming[one].begin_ns)
        rows.read(cpu, coming[cpu])
        if len(rows) >= most_rows:
            begins_ns = [pages.begin_ns for pages in coming.values() if pages.page is not None]
            yield rows.before(min(begins_ns, default=None))
    for cpu in recorded.cpus if recorded.cut_ns is not None else ():
        rows.add(Event(recorded.cut_ns or 0, cpu, kinds.LOST))
    yield rows.before(None)


class _Rows:
    def __init__(self, recorded: Recorded) -> None:
        self._recorded = recorded
        self._trace = Trace()
        self._timers: list[tuple[int, int]] = []
        """Row of each start and firing, and the address of its timer."""
        self._clocks: dict[int, int] = {}
        """Row of each firing, and what its own clock showed."""
        self._started: dict[int, tuple[int, int, int, int]] = {}
        """Of each timer that was started: expiry, CPU, time, and row, or -1 if that was given before."""
        self._losses_ns: dict[int, list[int]] = {}
        self._untold: list[tuple[int, int, int]] = []
        """Row of each switch that the kernel did not tell, who left if that is IDLE or a thread of which it
        tells nothing, else NOBODY, and who acts from then."""
        self._acted: set[int] = set()
        """Threads that entered or left something: of one that the kernel tells nothing of, no event does."""
        self._on: dict[int, int | None] = {}
        self._damaged: set[int] = set()
        self._firing: dict[tuple[int, bool], int] = {}
        """Of each CPU the row of the firing whose function runs, in an interrupt or else in a softirq."""
        self._tells_clock = any("now" in f.fields for f in recorded.formats if f.name == _FIRES)
        self._irqs: dict[int, str] = {}
        by_name: dict[str, Callable[[Format], Handle]] = {
            "sched_switch": self._switch,
            "sched_waking": self._waking,
            "sched_wakeup_new": self._waking,
            "sched_pi_setprio": self._lent,
            "irq_handler_entry": self._irq_in,
            "irq_handler_exit": self._irq_out,
            "softirq_entry": lambda form: self._softirq(form, kinds.SOFTIRQ_IN),
            "softirq_exit": lambda form: self._softirq(form, kinds.SOFTIRQ_OUT),
            "hrtimer_start": self._armed,
            _FIRES: self._fired,
            "hrtimer_expire_exit": self._fired_out,
            "sys_enter": lambda form: self._call(form, kinds.SYS_IN),
            "sys_exit": lambda form: self._call(form, kinds.SYS_OUT),
            "page_fault_user": lambda form: self._plain(form, kinds.FAULT, kinds.USER),
            "page_fault_kernel": lambda form: self._plain(form, kinds.FAULT, "kernel"),
            "ipi_entry": lambda form: self._plain(form, kinds.IRQ_IN, "ipi"),
            "ipi_exit": lambda form: self._plain(form, kinds.IRQ_OUT, "ipi"),
        }
        for path, name in VECTORS.items():
            kind = kinds.IRQ_IN if path.endswith("_entry") else kinds.IRQ_OUT
            by_name[path.partition("/")[2]] = lambda form, kind=kind, name=name: self._plain(form, kind, name)  # type: ignore[misc]
        self._handles = {
            form.id: marking(form, recorded.marks)
            if form.name.startswith(PREFIX)
            else by_name[form.name](form)
            for form in recorded.formats
        }
        self._acts = {form.id for form in recorded.formats if form.name in _ACTS}
        self._pids = {form.id: form.field("common_pid").read for form in recorded.formats}
        self._tid = 0
        self._running: int | None = None
        """Who is on the CPU that is read, by its events so far."""

    def __len__(self) -> int:
        return len(self._trace)

    def add(self, event: Event) -> None:
        self._trace.append(event)

    def read(self, cpu: int, pages: ComingPages) -> None:
        page, left_out = pages.take()
        try:
            lost = LEFT_OUT if left_out else missed(page, self._recorded.form)
            self._page(cpu, page, UNTOLD if lost is None and cpu in self._damaged else lost)
            self._damaged.discard(cpu)
        except (
            struct.error,
            IndexError,
            ValueError,
            OverflowError,
        ):  # what is missing counts as lost, with the next page
            self._damaged.add(cpu)

    def _page(self, cpu: int, page: bytes, lost: int | None) -> None:
        handles, pids = self._handles, self._pids
        self._running = self._on.pop(cpu, None)
        for time_ns, at in events_of(page, self._recorded.form):
            if lost is not None:
                self._lose(time_ns, cpu, NO_VALUE if lost == UNTOLD else lost)
                lost, self._running = None, None
                for inside in (True, False):
                    self._firing.pop((cpu, inside), None)
            kind = page[at] | page[at + 1] << 8
            handle = handles.get(kind)
            if handle is not None:
                self._tid = tid = pids[kind](page, at)
                told_all = self._recorded.functions is None
                if told_all and self._running not in (None, tid):  # the kernel did not tell of a switch
                    left = self._running if self._running not in self._acted else NOBODY
                    self._untold.append((len(self._trace), left, tid))
                    self.add(Event(time_ns, cpu, kinds.LOST, value=1))
                self._running = tid
                if kind in self._acts and tid != IDLE:
                    self._acted.add(tid)
                handle(time_ns, cpu, page, at)
        self._on[cpu] = self._running

    def _lose(self, time_ns: int, cpu: int, count: int) -> None:
        insort(self._losses_ns.setdefault(cpu, []), time_ns)
        self.add(Event(time_ns, cpu, kinds.LOST, value=count))

    def before(self, time_ns: int | None) -> Trace:
        """What happened before, in order, and is given only once; None: all that is left. Not from a timer's
        firing on whose waking is not known yet."""
        trace, times = self._trace, np.asarray(self._trace.time_ns, np.int64)
        if time_ns is not None:
            time_ns = min([time_ns, *(trace.time_ns[row] for row in self._firing.values())])
        now = times < time_ns if time_ns is not None else np.ones(len(times), bool)
        order = np.flatnonzero(now)
        order = order[np.argsort(times[order], kind="stable")]
        place = np.full(len(times), -1, np.int64)
        place[order] = np.arange(len(order))
        for row, left, tid in self._untold:
            told = now[row] and left != NOBODY and self._is_told(row, left, tid, order[: place[row]])
            if now[row] and not told:
                insort(self._losses_ns.setdefault(trace.cpu[row], []), trace.time_ns[row])
        for row, timer in sorted((one for one in self._timers if now[one[0]]), key=lambda one: place[one[0]]):
            self._expire(row, timer)
        found, later = trace.taken(order), np.flatnonzero(~now)
        self._started = {timer: (*one[:3], -1) for timer, one in self._started.items()}
        self._trace = trace.taken(later)
        moved = np.cumsum(~now) - 1
        self._timers = [(int(moved[row]), timer) for row, timer in self._timers if not now[row]]
        self._clocks = {int(moved[row]): shown for row, shown in self._clocks.items() if not now[row]}
        self._untold = [(int(moved[row]), left, tid) for row, left, tid in self._untold if not now[row]]
        self._firing = {place: int(moved[row]) for place, row in self._firing.items() if not now[row]}
        return found

    def _is_told(self, row: int, left: int, tid: int, before: npt.NDArray[np.int64]) -> bool:
        """Makes a switch of the row if its thread was woken and has not run since: from an idle CPU, or from
        a thread that the kernel tells nothing of, nothing else is possible. It stands where the thread first
        acts."""
        trace = self._trace
        for earlier in before[: -_LOOK_BACK - 1 : -1].tolist():
            kind = trace.event[earlier]
            if trace.target[earlier] == tid and kind in (kinds.WAKING, kinds.SWITCH):
                if kind == kinds.SWITCH:
                    return False
                trace.event[row], trace.value[row], trace.state[row] = kinds.SWITCH, NO_VALUE, kinds.RUNNABLE
                trace.tid[row], trace.target[row] = left, tid
                trace.priority[row], trace.name[row] = trace.priority[earlier], trace.name[earlier]
                return True
        return False

    def _expire(self, row: int, timer: int) -> None:
        """A timer's firing is told when it was due: as it was started, if nothing was lost since."""
        trace, now_ns = self._trace, self._trace.time_ns[row]
        if trace.event[row] == kinds.TIMER_ARMED:
            self._started[timer] = trace.value[row], trace.cpu[row], now_ns, row
        elif (started := self._started.pop(timer, None)) is not None:
            value, cpu, start_ns, start = started
            losses_ns = self._losses_ns.get(cpu, [])
            after = bisect_right(losses_ns, start_ns)
            if after < len(losses_ns) and losses_ns[after] <= now_ns:
                return
            if row in self._clocks:
                value -= self._offset_ns(self._clocks[row] - now_ns)
            trace.value[row] = value
            if start >= 0:
                trace.value[start], trace.target[start] = value, trace.target[row]

    def _offset_ns(self, seen_ns: int) -> int:
        """Of the clock that showed so much more when a timer fired, or less by what the interrupt took since;
        as seen if none did: it was set."""
        known = (0, *self._recorded.offsets_ns)
        return min((one for one in known if -_NEAR_NS < one - seen_ns < _LONG_NS), default=seen_ns)

    def _switch(self, form: Format) -> Handle:
        following, priority, state = (form.field(n).read for n in ("next_pid", "next_prio", "prev_state"))
        name = self._comm(form, "next_comm", following)
        letters = form.states()
        ends = sum(bit for bit, letter in letters.items() if letter in "XZ")
        held = "DI" if self._recorded.functions is None else "DITt"  # who is stopped does not sleep
        blocks = sum(bit for bit, letter in letters.items() if letter in held)
        stops = sum(bit for bit, letter in letters.items() if letter in "Tt")
        known = sum(letters)

        def handle(time_ns: int, cpu: int, page: bytes, at: int) -> None:
            left = state(page, at) & known
            leaves = 1 if not left else 4 if left & ends else 3 if left & blocks else 2
            self._running = target = following(page, at)
            row = (time_ns, cpu, kinds.SWITCH, self._tid, target, leaves, priority(page, at), name(page, at))
            self.add(Event(*row, value=kinds.STOPPED if left & stops else NO_VALUE))

        return handle

    def _waking(self, form: Format) -> Handle:
        target, priority, flags = (form.field(n).read for n in ("pid", "prio", "common_flags"))
        name = self._comm(form, "comm", target)

        def handle(time_ns: int, cpu: int, page: bytes, at: int) -> None:
            woken = target(page, at)
            trace, fired = self._trace, self._firing.get((cpu, bool(flags(page, at) & _IN_INTERRUPT)), -1)
            if fired >= 0 and trace.target[fired] == NOBODY and trace.tid[fired] == self._tid:
                trace.target[fired] = woken
            row = (time_ns, cpu, kinds.WAKING, self._tid, woken, 0, priority(page, at), name(page, at))
            self.add(Event(*row))

        return handle

    def _lent(self, form: Format) -> Handle:
        target, priority, before = (form.field(n).read for n in ("pid", "newprio", "oldprio"))

        def handle(time_ns: int, cpu: int, page: bytes, at: int) -> None:
            row = (time_ns, cpu, kinds.LENT, self._tid, target(page, at), 0, priority(page, at))
            self.add(Event(*row, value=before(page, at)))

        return handle

    def _irq_in(self, form: Format) -> Handle:
        number, text = form.field("irq").read, form.text_field("name")

        def handle(time_ns: int, cpu: int, page: bytes, at: int) -> None:
            name = self._irqs[number(page, at)] = text(page, at)
            self.add(Event(time_ns, cpu, kinds.IRQ_IN, self._tid, name=name))

        return handle

    def _irq_out(self, form: Format) -> Handle:
        number = form.field("irq").read

        def handle(time_ns: int, cpu: int, page: bytes, at: int) -> None:
            irq = number(page, at)
            self.add(Event(time_ns, cpu, kinds.IRQ_OUT, self._tid, name=self._irqs.get(irq, f"irq {irq}")))

        return handle

    def _softirq(self, form: Format, kind: int) -> Handle:
        number = form.field("vec").read

        def handle(time_ns: int, cpu: int, page: bytes, at: int) -> None:
            vector = number(page, at)
            name = SOFTIRQS[vector] if vector < len(SOFTIRQS) else f"softirq {vector}"
            self.add(Event(time_ns, cpu, kind, self._tid, name=name))

        return handle

    def _armed(self, form: Format) -> Handle:
        functions = self._recorded.functions
        timer = form.field("hrtimer").read
        expires = form.field("expires" if functions is None else "softexpires").read
        name = self._function(form)
        wall_ns = 0 if functions is not None or self._tells_clock else self._recorded.realtime_offset_ns

        def handle(time_ns: int, cpu: int, page: bytes, at: int) -> None:
            expiry = expires(page, at)
            value = expiry - wall_ns if expiry > _REALTIME_NS else expiry
            self._timers.append((len(self._trace), timer(page, at)))
            self.add(Event(time_ns, cpu, kinds.TIMER_ARMED, self._tid, name=name(page, at), value=value))

        return handle

    def _fired(self, form: Format) -> Handle:
        timer, name, flags = form.field("hrtimer").read, self._function(form), form.field("common_flags").read
        now = form.field("now").read if self._tells_clock else None

        def handle(time_ns: int, cpu: int, page: bytes, at: int) -> None:
            row = self._firing[cpu, bool(flags(page, at) & _IN_INTERRUPT)] = len(self._trace)
            self._timers.append((row, timer(page, at)))
            if now is not None:
                self._clocks[row] = now(page, at)
            self.add(Event(time_ns, cpu, kinds.TIMER_FIRED, self._tid, name=name(page, at)))

        return handle

    def _function(self, form: Format) -> Callable[[bytes, int], str]:
        """The name of a timer's function, where names are asked for and the function is known."""
        functions = self._recorded.functions
        if not functions:
            return lambda page, at: ""
        function = form.field("function").read
        return lambda page, at: functions.get(function(page, at), kinds.OTHERS_TIMER)

    def _fired_out(self, form: Format) -> Handle:
        flags = form.field("common_flags").read

        def handle(time_ns: int, cpu: int, page: bytes, at: int) -> None:
            self._firing.pop((cpu, bool(flags(page, at) & _IN_INTERRUPT)), None)

        return handle

    def _call(self, form: Format, kind: int) -> Handle:
        number, calls = form.field("id").read, self._recorded.calls
        returns = kind == kinds.SYS_OUT and self._recorded.functions is not None
        result = form.field("ret").read if returns else lambda page, at: NO_VALUE
        asked = form.element("args", 1, of=6) if kind == kinds.SYS_IN else None

        def handle(time_ns: int, cpu: int, page: bytes, at: int) -> None:
            call = number(page, at)
            name = calls[call] if 0 <= call < len(calls) else f"system call {call}"
            value = asked(page, at) & _OPERATION if asked and name == "futex" else result(page, at)
            self.add(Event(time_ns, cpu, kind, self._tid, name=name, value=value))

        return handle

    def _plain(self, form: Format, kind: int, name: str) -> Handle:
        def handle(time_ns: int, cpu: int, page: bytes, at: int) -> None:
            self.add(Event(time_ns, cpu, kind, self._tid, name=name))

        return handle

    def _comm(self, form: Format, name: str, tid: ReadField) -> Callable[[bytes, int], str]:
        return name_reader(form.field(name), tid, self._recorded.kernel_threads)
