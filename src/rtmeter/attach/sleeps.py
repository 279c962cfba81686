"""A thread's sleeps, from the kernel's events: when each began, what ended it, and when it was due.

A sleep is a switch in which the thread leaves as ``sleeping``, a yield of a deadline thread until its budget
is there again, or a timer that was due already when it was armed. A thread that leaves as ``blocked`` is held
up by the kernel within its work (a page that is read, a disk): that is no sleep.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import numpy as np

from rtmeter.attach import telling
from rtmeter.attach.asleep import MESSAGE, Rest, Sleep, ThreadSleeps, Waking
from rtmeter.attach.telling import BUDGET, KINDS, SLEEPER
from rtmeter.explain import events
from rtmeter.explain.events import Trace

_SLEEPING = events.STATES.index("sleeping")


def sleeps_of(trace: Trace, tid: int) -> ThreadSleeps:
    """The sleeps that are seen whole: from their beginning to the return."""
    reader = Reader(tid)
    sleeps = list(reader.see_all(trace))
    return replace(reader.seen(), sleeps=sleeps)


class Reader:
    """Goes through the events in order of time: a trace at once, or parts that follow one another."""

    def __init__(self, tid: int) -> None:
        self._tid = tid
        self._trace = Trace()
        self._sleeps: list[Sleep] = []
        self._now = 0
        self._first_ns: int | None = None
        self._held_ups = self._switches = self._left = self._inferred = self._events = self._others = 0
        self._priorities: set[int] = set()
        self._ended, self._replaced, self._ran_ns = False, False, 0
        self._forget()
        self._whole = True
        """Since the last sleep nothing was lost."""
        self._before_ns: dict[int, int] = {}
        self._complete_ns = telling.BEGINNING
        self._has_calls = False

    def see_all(self, part: Trace, until_ns: int | None = None) -> Iterator[Sleep]:
        """The sleeps that have ended by then. ``until_ns``: nothing with an earlier time is still to come."""
        self._trace = part
        self._before_ns = telling.before_lost(part, self._complete_ns)
        event, target = np.asarray(part.event), np.asarray(part.target)
        self._has_calls = self._has_calls or bool((event == events.SYS_OUT).any())
        self._events += int(((np.asarray(part.tid) == self._tid) | (target == self._tid)).sum())
        came = (event == events.SWITCH) & (target == self._tid)
        self._priorities.update(np.asarray(part.priority)[came].tolist())
        for row in telling.rows_of(part, self._tid):
            self.see(row)
        if until_ns is not None:
            self._complete_ns = until_ns
        found, self._sleeps = self._sleeps, []
        yield from found

    def _forget(self) -> None:
        """Nothing is known of it any more."""
        self._on_since: int | None = None
        self._call: str | None = None
        self._in_call: bool | None = None
        """None: not known yet."""
        self._armed: tuple[int, int, int, str] | None = None
        """Of the timer of this call, or of one that was due when the call before set it: when it was armed,
        how long the thread had run then, when it is due, its function."""
        self._fired: tuple[int, int, str] | None = None
        self._budget: int | None = None
        self._due: dict[str, int] = {}
        """When the timers that it armed itself are due, the last of each function."""
        self._spent: dict[str, int] = {}
        """Which expiry of each has ended a sleep."""
        self._open: Sleep | None = None
        self._restart: tuple[int, int] | None = None
        """When a signal interrupted the call, and how long the thread had run: it is entered again, as if
        nothing had been, unless the program handles the signal."""
        self._handler: Sleep | None = None
        """The handler of a timer's signal that came in the midst of its work: it runs now."""
        self._delivered: int | None = None
        """How long the thread had run when a call returned with which signals come that waited."""
        self._held = self._woken = False
        self._cpu = events.NOBODY
        self._early: Waking | None = None
        """A waking from another CPU since its last event on its own: if it leaves as ``sleeping`` now, it was
        on its way already, and woken as soon as it slept."""

    def see(self, row: int) -> None:
        if self._ended:  # whoever has the id now is another
            return
        trace, kind = self._trace, self._trace.event[row]
        self._now = trace.time_ns[row]
        if kind == events.LOST:
            self._lose(self._before_ns[row])
            return
        if self._first_ns is None:
            self._first_ns = self._now
        if kind == events.SWITCH or trace.tid[row] == self._tid:
            self._cpu = trace.cpu[row]
        if kind == events.SWITCH:
            if trace.tid[row] == self._tid:
                self._leave(trace.state[row])
            else:
                self._come()
        elif kind == events.WAKING:
            self._wake(row)
        elif kind == events.SYS_IN:
            self._enter(trace.name_of(row))
        elif kind == events.SYS_OUT:
            self._return(trace.name_of(row), trace.value[row])
        elif (function := telling.function_of(trace, row)) is None:
            return
        elif kind == events.TIMER_ARMED:
            self._arm(self._now if self._is_at_once(trace.value[row]) else trace.value[row], function)
        else:
            self._fire(trace.cpu[row], trace.value[row], function)

    def _is_at_once(self, due_ns: int) -> bool:
        """Whether a timer was set to a time that nobody waited until, such as 0 or 1: it is to fire now."""
        early_ns = telling.NOBODY_WAITED_NS
        return events.NO_VALUE < due_ns < early_ns and self._now > 10 * early_ns

    @property
    def over(self) -> bool:
        """It has ended: what still comes is another's."""
        return self._ended

    def seen(self) -> ThreadSleeps:
        first = self._now if self._first_ns is None else self._first_ns
        counts = self._held_ups, self._switches, self._left, self._inferred
        priorities = frozenset(self._priorities)
        ended = self._ended, self._replaced
        return ThreadSleeps([], self._events, priorities, *counts, *ended, first, self._now, self._others)

    def rest(self, end_ns: int) -> Rest | None:
        """What it was about when the recording ended; None: it has ended itself, or nothing is told of it."""
        if self._ended or self._first_ns is None:
            return None
        sleep, later = self._open, False
        if sleep is not None:
            dues = [due for of, due in self._due.items() if self._may_end(sleep, of)]
            later = any(due > end_ns or due == events.NO_VALUE for due in dues)
        woken = self._woken and self._restart is None
        return Rest(end_ns, sleep, woken, later, self._whole, self._handler)

    def _may_end(self, sleep: Sleep, function: str) -> bool:
        """Whether a timer that this thread armed, or that was armed on its time, may be what its sleep is to
        end by: not another's budget, nor one of signals that has released nothing, as a watchdog has not."""
        if function == SLEEPER:
            return sleep.armed_ns is not None
        if function == BUDGET:
            return sleep.kind == KINDS[BUDGET]
        return function == telling.TIMERFD or function in self._spent

    def _lose(self, since_ns: int) -> None:
        """Events since then are not there."""
        ran = self._ran()
        if self._handler is not None:
            self._handler = replace(self._handler, known=False)
            self._end_handler(ran)
        self._forget()
        self._ran_ns, self._whole = ran, False
        for place in range(len(self._sleeps) - 1, -1, -1):
            if self._sleeps[place].wake_ns <= since_ns:
                break
            self._sleeps[place] = replace(self._sleeps[place], known=False, whole_before=False)

    def _ran(self) -> int:
        return self._ran_ns + (self._now - self._on_since if self._on_since is not None else 0)

    def _enter(self, name: str | None) -> None:
        self._be_on()
        if self._restart is not None and self._open is not None:
            interrupted, self._restart = self._restart, None
            if name in (self._open.call, telling.RESTART):
                name = self._open.call
            else:
                self._close(*interrupted)
        self._call, self._in_call = name, True
        if name in telling.SIGRETURN:
            self._end_handler(self._ran())

    def _end_handler(self, ran_ns: int) -> None:
        if self._handler is not None:
            self._sleeps.append(replace(self._handler, asleep_ns=self._now, ran_ns=ran_ns))
            self._handler = None

    def _be_on(self) -> None:
        if self._on_since is None:
            self._on_since = self._now
            self._be_woken()
        self._early = None

    def _be_woken(self) -> None:
        if self._open is not None and not self._woken:
            self._open = self._untold(self._open)
            self._woken = True

    def _arm(self, due_ns: int, function: str) -> None:
        self._be_on()
        if function == SLEEPER:
            self._sleeps_in_call()
        before = self._due.get(function)
        goes_on = function in KINDS and function != BUDGET and not self._sets
        self._others += goes_on and before is not None and before > self._now  # what goes on has come due
        self._due[function] = due_ns
        if function == BUDGET:
            self._budget = due_ns
        elif self._in_call and due_ns != events.NO_VALUE and (function == SLEEPER or due_ns <= self._now):
            self._armed = self._now, self._ran(), due_ns, function
        elif before is not None and before <= self._now and before != self._spent.get(function):
            self._take(before, function)

    def _fire(self, cpu: int, due: int, function: str) -> None:
        if self._is_at_once(due):
            due = self._due.get(function, self._now)
        if function == BUDGET:
            if self._open is not None and self._open.kind == KINDS[BUDGET] and due == self._budget:
                self._open = replace(self._open, due_ns=due, woken_ns=self._now)
                self._woken, self._budget = True, None
        else:
            self._fired = (cpu, due, function)

    def _wake(self, row: int) -> None:
        fired, self._fired = self._fired, None
        cpu = self._trace.cpu[row]
        if self._held:
            self._held = False
            return
        by_timer = fired if fired is not None and fired[0] == cpu and fired[1] != events.NO_VALUE else None
        # a timer whose expiry is not known, or whose firing may be the last that was lost
        unclear = by_timer is None and (fired is not None or self._follows_lost(row))
        waking = Waking(self._now, by_timer[1:] if by_timer else None, not unclear)
        if self._on_since is not None and cpu != self._cpu:
            self._early = waking
        if self._open is None:
            if by_timer and self._in_call and self._armed:
                self._serve(by_timer[1], by_timer[2])
                return
            if self._whole or self._on_since is not None or self._cpu != events.NOBODY:
                return
            self._sleeps_in_call()  # its beginning was lost
            self._open = Sleep(self._now, 0, 0, None, MESSAGE, self._call, self._ran(), 0)
        self._open = self._ended_by(waking, self._open)
        self._woken = True

    def _follows_lost(self, row: int) -> bool:
        """Whether what came just before it on its CPU was lost."""
        if self._whole:
            return False
        before = row - 1
        while before >= 0 and self._trace.cpu[before] != self._trace.cpu[row]:
            before -= 1
        return before >= 0 and self._trace.event[before] == events.LOST

    def _sleeps_in_call(self) -> None:
        """A thread sleeps in system calls only, where these are told."""
        if self._in_call is None:
            self._in_call = self._has_calls

    def _ended_by(self, waking: Waking, sleep: Sleep) -> Sleep:
        due_ns, kind = None, MESSAGE
        if waking.timer is not None:
            due_ns, function = waking.timer
            self._spent[function] = due_ns
            kind = KINDS.get(function, self._call or "timer")
        known = sleep.known and waking.known
        return replace(sleep, woken_ns=waking.at_ns, due_ns=due_ns, kind=kind, known=known)

    def _serve(self, due_ns: int, function: str) -> None:
        """It was due when it was armed, or before the thread had gone to sleep: it does not sleep."""
        assert self._armed is not None
        began, ran, *_ = self._armed
        self._spent[function] = due_ns
        kind = KINDS.get(function, self._call or "timer")
        self._open = Sleep(began, self._now, 0, due_ns, kind, self._call, ran, 0, began)
        self._woken = True

    def _take(self, due_ns: int, function: str) -> None:
        """The expiry came while it did something else, or in a sleep that a signal had interrupted, so that
        it was not seen to end it: it is served now."""
        if function not in KINDS or self._sets or (self._open is not None and self._open.due_ns is not None):
            return
        self._spent[function] = due_ns
        kind, ran = KINDS[function], self._ran()
        came = self._delivered is not None and ran - self._delivered <= telling.DELIVERED_NS
        if self._open is None and not self._in_call and not came:
            self._end_handler(ran)
            taken = Sleep(self._now, self._now, self._now, due_ns, kind, None, ran, ran)
            self._handler = replace(taken, whole_before=self._whole, within=True)
            return
        if self._open is None:
            self._open = Sleep(self._now, self._now, 0, due_ns, kind, self._call, ran, 0)
        self._open = replace(self._open, due_ns=due_ns, kind=kind)
        self._woken, self._restart = True, None
        if not self._in_call:  # its handler runs at once
            self._close(self._now, ran)

    @property
    def _sets(self) -> bool:
        """Whether it is in a call that sets a timer."""
        return (self._call or "").removesuffix("64") in telling.SETS

    def _leave(self, state: int) -> None:
        ran = self._ran()
        self._on_since, self._ran_ns = None, ran
        if state == events.ENDED:
            self._ended, self._open = True, None
            return
        early = self._early if state == _SLEEPING else None
        self._early = replace(early, at_ns=self._now) if early is not None else None
        yields = self._call == "sched_yield" and self._budget is not None
        if state == _SLEEPING or (yields and events.STATES[state] == "runnable"):
            self._left += 1
            self._end_handler(ran)
            self._sleeps_in_call()
            began = self._open if self._open is not None and self._in_call else None  # woken in vain
            kind = KINDS[BUDGET] if yields else MESSAGE
            self._open = Sleep(
                asleep_ns=began.asleep_ns if began else self._now,
                woken_ns=0,
                wake_ns=0,
                due_ns=None,
                kind=kind,
                call=self._call,
                armed_ns=self._armed[0] if self._armed else self._now if yields else None,
                ran_ns=began.ran_ns if began else ran,
                ran_at_wake_ns=0,
            )
            self._woken = False
        elif events.STATES[state] == "blocked":
            self._held_ups += 1
            self._held = True

    def _come(self) -> None:
        self._switches += 1
        if self._on_since is not None:  # it was not seen to leave
            self._lose(self._on_since)
        self._held = False
        self._be_on()
        if self._open is not None and not self._in_call and self._restart is None:
            self._close(self._now, self._ran())

    def _untold(self, sleep: Sleep) -> Sleep:
        """No waking is told since it left: one on the way then ended it; else the one timer that it had armed
        itself and that came due meanwhile, or was due when the sleep armed it; else what did is not known.
        The kernel's own budgets of others are armed on its time too."""
        if self._early is not None:
            return self._ended_by(self._early, sleep)
        due = [
            (due, of)
            for of, due in self._due.items()
            if due <= self._now
            and (due > sleep.asleep_ns or (of == SLEEPER and sleep.armed_ns is not None))
            and (of != BUDGET or sleep.kind == KINDS[BUDGET])
        ]
        if len(due) != 1:
            return replace(sleep, woken_ns=self._now, known=False)
        self._inferred += 1
        [(due_ns, function)] = due
        self._spent[function] = due_ns
        kind = KINDS.get(function, sleep.call or "timer")
        return replace(sleep, woken_ns=self._now, due_ns=due_ns, kind=kind)

    def _return(self, name: str | None, result: int) -> None:
        self._be_on()
        armed, late = self._armed, self._armed is not None and self._armed[2] <= self._armed[0]
        keep = late and self._sets  # for the wait that comes next
        if armed and late and not keep and self._open is None:
            self._serve(*armed[2:])
        if self._open is not None:
            if self._open.call is None and name:  # its entry was not told
                kind = name if self._open.kind == "timer" else self._open.kind
                self._open = replace(self._open, kind=kind, call=name)
            if result in telling.INTERRUPTED:
                self._restart = self._now, self._ran()
            else:
                self._close(self._now, self._ran())
        self._in_call, self._call, self._armed = False, None, armed if keep else None
        delivers = result in telling.INTERRUPTED or name in telling.DELIVER
        self._delivered = self._ran() if delivers else None
        if name in telling.BECOMES and result == 0:
            self._ended, self._replaced, self._open = True, True, None

    def _close(self, at_ns: int, ran_ns: int) -> None:
        """It was back in its own code then."""
        assert self._open is not None
        if self._woken:
            sleep = replace(self._open, wake_ns=at_ns, ran_at_wake_ns=ran_ns, whole_before=self._whole)
            self._sleeps.append(sleep)
            self._whole = True
        self._open, self._woken = None, False
