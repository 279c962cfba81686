"""A scheduler that is thrown dice for: it writes the events that a kernel would, and keeps account.

Imports nothing of rtmeter: what is true of a thread at an instant (scheduler_truth.py) comes from what the
thread and the CPUs did in here, not from the events. CPUs are interrupted, run softirqs, hold timers off,
stand still outside Linux and idle; threads have priorities, which locks lend, call the kernel, sleep on
timers, locks, devices and messages, migrate, end, and give their ids to others.
"""

from __future__ import annotations

import random
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Any

Inside = tuple[str, str, int]
"""``irq`` or ``softirq``, its name, and a number that no other has."""

MESSAGE_CALLS = ("recvfrom", "epoll_wait", "read")
OTHER_CALLS = ("ioctl", "write", "mmap")
IRQS = ("virtio0", "eth0", "reschedule")
SOFTIRQS = ("NET_RX", "SCHED", "RCU")
CPUS = 3


@dataclass(eq=False)
class Thread:
    """``mode``: when it entered or left which system call (None: its own code); ``prints``: when an event
    told its priority; ``was``: what it did, as far as it is settled; ``woken``: the row of each waking;
    ``ends``: of a sleep that ends in an interrupt, by its place in ``was``, from which row to which it must
    be told to be known as that, and on which CPU; ``losses``: rows and times of events lost while it was on
    their CPU; ``calls``, ``in_own_code``: rows that tell so."""

    tid: int
    name: str
    priority: int
    born_ns: int
    kernel: bool = False
    ended_ns: int | None = None
    own_priority: int = 0
    call: str | None = None
    mode: list[tuple[int, str | None]] = field(default_factory=list)
    prints: list[tuple[int, int]] = field(default_factory=list)
    was: list[tuple[int, int, tuple[object, ...]]] = field(default_factory=list)
    woken: list[int] = field(default_factory=list)
    ends: dict[int, tuple[int, int, int]] = field(default_factory=dict)
    losses: list[tuple[int, int]] = field(default_factory=list)
    calls: list[int] = field(default_factory=list)
    in_own_code: list[int] = field(default_factory=list)
    state: str = "unborn"
    since_ns: int = 0
    cpu: int | None = None
    waits_for: str = ""
    expiry_ns: int = 0
    fired: tuple[int, int, Inside, int] | None = None
    early: bool = False
    holder: Thread | None = None
    follows: bool = False

    @property
    def logs(self) -> tuple[list[tuple[int, Any]], ...]:
        return self.mode, self.prints


@dataclass
class Cpu:
    """``inside``: interrupts and softirqs it is in, innermost last; ``was``: from when, what it was at."""

    number: int
    thread: Thread | None = None
    inside: list[Inside] = field(default_factory=list)
    was: list[tuple[int, tuple[str | None, str | None, Thread | None]]] = field(default_factory=list)


class Scheduler:
    """Runs when it is made. ``rows``: the events; ``gaps``: CPU, from, until: where events were lost."""

    def __init__(self, seed: int, steps: int = 260) -> None:
        self.dice = random.Random(seed)
        self.now_ns = self.dice.randrange(10**9)
        self.rows: list[dict[str, object]] = []
        self.cpus = [Cpu(number) for number in range(CPUS)]
        self.threads: list[Thread] = []
        self._on: list[Thread | None] = []
        self.gaps: list[tuple[int, int, int]] = []
        self._entered: list[int] = []
        for cpu in self.cpus:
            self._note(cpu)
            self._row(cpu, "irq_in", name="start")
            self._row(cpu, "irq_out", name="start")
        for tid in range(101, 107):
            self._born(tid)
        self.begin_ns = self.now_ns + 1
        for _ in range(steps):
            self.now_ns += self.dice.choice((0, 1, 1, 3, 10, 40))
            self._act(self.dice.choice(self.cpus))
        self.now_ns += 1
        for cpu in self.cpus:
            while cpu.inside:
                self._leave(cpu)
            self._row(cpu, "irq_in", name="end")
            if cpu.thread is not None:
                self._settle(cpu.thread, ("cpu", cpu.number))
        self.end_ns = self.now_ns
        if self.dice.random() < 0.6:
            for cpu in self.dice.sample(self.cpus, self.dice.choice((1, 2))):
                self._lose(cpu.number)
        for place, row in enumerate(self.rows):
            if (thread := self._on[place]) is not None and row:
                thread.calls += [place] * (row["event"] in ("sys_in", "sys_out"))
                thread.in_own_code += [place] * (row.get("name") == "user")
        self.rows = [row for row in self.rows if row]

    # --- What happens ---

    def _act(self, cpu: Cpu) -> None:
        dice = self.dice
        if cpu.inside:
            self._inside(cpu)
        elif dice.random() < 0.12:
            self._enter(cpu, "irq", dice.choice(IRQS))
        elif dice.random() < 0.08:
            self._enter(cpu, "softirq", dice.choice(SOFTIRQS))
        elif self._timers(cpu) and dice.random() < 0.3:
            self._enter(cpu, "irq", "local_timer")
        elif cpu.thread is None:
            if dice.random() < 0.7:
                self._switch(cpu, self._next(cpu), "runnable")
        else:
            self._of_thread(cpu, cpu.thread)

    def _inside(self, cpu: Cpu) -> None:
        dice, (_, name, _) = self.dice, cpu.inside[-1]
        chance = dice.random()
        if name == "local_timer" and chance < 0.6 and self._timers(cpu):
            self._fire(cpu, dice.choice(self._timers(cpu)))
        elif chance < 0.25 and len(cpu.inside) < 3:
            self._enter(cpu, "irq", dice.choice((*IRQS, "local_timer")))
        elif chance < 0.55 and (waiting := self._waiting("device")):
            self._wake(cpu, dice.choice(waiting), cpu.inside[-1])
        else:
            self._leave(cpu)

    def _of_thread(self, cpu: Cpu, thread: Thread) -> None:
        dice = self.dice
        chance = dice.random()
        if chance < 0.14:
            self._preempt(cpu)
        elif chance < 0.24 and (waiting := self._waiting("message")):
            self._wake(cpu, dice.choice(waiting), None)
        elif chance < 0.34 and (waiting := [t for t in self._waiting("lock") if t.holder is thread]):
            self._wake(cpu, dice.choice(waiting), None)
            thread.priority = thread.own_priority
        elif chance < 0.38 and self._unused():
            self._born(dice.choice(self._unused()), cpu)
        elif chance < 0.42:
            self._row(cpu, "fault", name="kernel" if thread.kernel or thread.call else "user")
        elif chance < 0.45:  # it is woken in vain: it goes on running
            self._row(dice.choice(self.cpus), "waking", target=thread)
        elif chance < 0.72 or thread.kernel:
            if thread.call is None and not thread.kernel:
                self._call(cpu, thread, dice.choice((*MESSAGE_CALLS, *OTHER_CALLS)))
            elif thread.call is not None and dice.random() < 0.6:
                self._call(cpu, thread, None)
            else:
                self._sleep(cpu, thread)
        elif chance < 0.74:
            self._end(cpu, thread)
        else:
            self._sleep(cpu, thread)

    def _preempt(self, cpu: Cpu) -> None:
        following = self._next(cpu)
        if following is not None:
            self._switch(cpu, following, "runnable")

    def _sleep(self, cpu: Cpu, thread: Thread) -> None:
        dice = self.dice
        why = dice.choice(("timer", "timer", "timer", "device", "message", "lock"))
        others = [t for t in self.threads if t is not thread and t.state in ("cpu", "ready")]
        if why == "lock" and not others:
            why = "timer"
        if thread.call is None and not thread.kernel and dice.random() < 0.8:
            names = {"timer": "clock_nanosleep", "lock": "futex", "message": dice.choice(MESSAGE_CALLS)}
            self._call(cpu, thread, names.get(why, "read"))
        thread.fired, thread.waits_for = None, why
        if why == "timer":
            thread.expiry_ns = self.now_ns + dice.choice((0, 5, 50, 300))
            if dice.random() < 0.8:
                self._row(cpu, "timer_armed", target=thread.tid, value=thread.expiry_ns)
        if why == "lock":
            thread.holder = dice.choice(others)
            if dice.random() < 0.5:
                thread.holder.priority = min(thread.priority, thread.holder.priority)
        thread.follows = thread.call in MESSAGE_CALLS
        if early := dice.random() < 0.15:  # it is woken before it has left the CPU
            self._row(
                dice.choice([other for other in self.cpus if other is not cpu]), "waking", target=thread
            )
            self.now_ns += dice.choice((0, 1, 5))
        self._switch(cpu, self._next(cpu), dice.choice(("sleeping", "blocked")))
        if early:
            thread.state, thread.holder, thread.early = "ready", None, True

    def _fire(self, cpu: Cpu, thread: Thread) -> None:
        if thread.fired is None:
            thread.fired = (self.now_ns, cpu.number, cpu.inside[-1], len(self.rows))
            self._row(cpu, "timer_fired", target=thread.tid, value=thread.expiry_ns)
            if self.dice.random() < 0.4:
                self.now_ns += self.dice.choice((0, 2, 9))
                self._wake(cpu, thread, cpu.inside[-1])
        elif thread.fired[2] == cpu.inside[-1]:
            self._wake(cpu, thread, cpu.inside[-1])

    def _end(self, cpu: Cpu, thread: Thread) -> None:
        if any(t.holder is thread and t.state == "asleep" for t in self.threads):
            return
        self._switch(cpu, self._next(cpu), "ended")

    # --- What that means ---

    def _timers(self, cpu: Cpu) -> list[Thread]:
        """Due, or nearly; a timer that has fired already in an interrupt that is not over wakes there."""
        here = [t for t in self._waiting("timer") if t.expiry_ns <= self.now_ns + 3]
        innermost = cpu.inside[-1] if cpu.inside else None
        return [t for t in here if t.fired is None or t.fired[2] == innermost]

    def _waiting(self, why: str) -> list[Thread]:
        return [t for t in self.threads if t.state == "asleep" and t.waits_for == why]

    def _unused(self) -> list[int]:
        alive = {t.tid for t in self.threads if t.ended_ns is None}
        return [tid for tid in range(101, 109) if tid not in alive]

    def _next(self, cpu: Cpu) -> Thread | None:
        """The most urgent of those that wait; now and then another one."""
        ready = [t for t in self.threads if t.state == "ready"]
        if not ready:
            return None
        if self.dice.random() < 0.3:
            return self.dice.choice(ready)
        return min(ready, key=lambda t: t.priority)

    def _born(self, tid: int, by: Cpu | None = None) -> None:
        dice = self.dice
        kernel = dice.random() < 0.25
        name = dice.choice(("loop", "server", "a,b", 'q"q', "netd", "x")) + str(len(self.threads) % 5)
        priority = dice.choice((0, 10, 10, 49, 120, 120))
        thread = Thread(tid, f"[{name}]" if kernel else name, priority, self.now_ns, kernel)
        thread.own_priority = priority
        self.threads.append(thread)
        cpu = by or dice.choice(self.cpus)
        thread.state, thread.since_ns = "ready", self.now_ns
        self._row(cpu, "waking", target=thread)

    def _call(self, cpu: Cpu, thread: Thread, name: str | None) -> None:
        self._row(cpu, "sys_in" if name else "sys_out", name=name or thread.call)
        thread.call = name
        thread.mode.append((self.now_ns, name))

    def _enter(self, cpu: Cpu, kind: str, name: str) -> None:
        cpu.inside.append((kind, name, len(self._entered)))
        self._entered.append(len(self.rows))
        self._row(cpu, f"{kind}_in", name=name)
        self._note(cpu)

    def _leave(self, cpu: Cpu) -> None:
        for thread in self._waiting("timer"):
            if thread.fired is not None and thread.fired[2] == cpu.inside[-1]:
                self._wake(cpu, thread, cpu.inside[-1])
        kind, name, _ = cpu.inside.pop()
        self._row(cpu, f"{kind}_out", name=name)
        self._note(cpu)

    def _wake(self, cpu: Cpu, thread: Thread, within: Inside | None) -> None:
        if thread.fired is not None:
            fired_ns, number, irq, _ = thread.fired
            did: tuple[object, ...] = ("timer", number, thread.expiry_ns, fired_ns, irq[1])
        elif within is not None:
            did = ("wait", within[1], None)
        else:
            assert cpu.thread is not None
            did = ("wait", cpu.thread.name, cpu.thread if thread.follows else None)
        irq = next((one for one in reversed(cpu.inside) if one[0] == "irq"), None)
        if irq is not None:
            began = max(self._entered[irq[2]], *thread.woken)
            since = thread.fired[3] if thread.fired else began
            thread.ends[len(thread.was)] = (since, len(self.rows), cpu.number)
        self._settle(thread, did)
        thread.state, thread.holder, thread.fired = "ready", None, None
        self._row(cpu, "waking", target=thread)

    def _switch(self, cpu: Cpu, following: Thread | None, leaves: str) -> None:
        leaving = cpu.thread
        if leaving is following:
            return
        self._row(cpu, "switch", target=following or 0, state=leaves)
        if leaving is not None:
            self._settle(leaving, ("cpu", cpu.number))
            leaving.state = {"runnable": "ready", "ended": "ended"}.get(leaves, "asleep")
            leaving.ended_ns = self.now_ns if leaves == "ended" else None
        if following is not None:
            self._settle(following, ("early" if following.early else "ready", cpu.number))
            following.state, following.early = "cpu", False
        cpu.thread = following
        self._note(cpu)

    def _settle(self, thread: Thread, did: tuple[object, ...]) -> None:
        thread.was.append((thread.since_ns, self.now_ns, did))
        thread.since_ns = self.now_ns

    def _note(self, cpu: Cpu) -> None:
        """What the CPU is at from now on: an interrupt before a softirq, each the innermost one."""
        irq, softirq = (
            next((name for kind, name, _ in reversed(cpu.inside) if kind == which), None)
            for which in ("irq", "softirq")
        )
        cpu.was.append((self.now_ns, (irq, softirq, cpu.thread)))

    def _row(self, cpu: Cpu, event: str, *, target: Thread | int | None = None, **more: object) -> None:
        row = {"time_ns": self.now_ns, "cpu": cpu.number, "event": event}
        row |= {"tid": cpu.thread.tid if cpu.thread else 0, **more}
        if isinstance(target, Thread):
            target.prints.append((self.now_ns, target.priority))
            target.woken += [len(self.rows)] * (event == "waking")
            row |= {"target": target.tid, "priority": target.priority, "name": target.name}
        elif target is not None:
            row |= {"target": target} | ({"name": "swapper"} if target == 0 else {})
        self.rows.append(row)
        self._on.append(cpu.thread)

    def _lose(self, number: int) -> None:
        """Takes a run of events of one CPU out of the record; none that says who runs or who is woken."""
        here = [place for place, row in enumerate(self.rows) if row.get("cpu") == number]
        runs, run = [], []
        for before, place in pairwise(here[:-1]):
            if self.rows[place]["event"] in ("switch", "waking"):
                run = []
                continue
            run = [*run, place] if run else [before, place]
            runs.append(run)
        telling = [run for run in runs if self.rows[run[-1]]["event"] in ("timer_fired", "sys_in")]
        before, *taken = self.dice.choice(telling if telling and self.dice.random() < 0.6 else runs)
        from_ns, at_ns = self.rows[before]["time_ns"], self.rows[taken[-1]]["time_ns"]
        if any(
            did[0] == "early" and start <= at_ns and from_ns <= end
            for thread in self.threads
            for start, end, did in thread.was
        ):
            return  # what is left would not tell what was
        self.rows[taken[-1]] = {"time_ns": at_ns, "cpu": number, "event": "lost", "value": len(taken)}
        for place in taken[:-1]:
            self.rows[place] = {}
        self.gaps.append((number, from_ns, at_ns))
        if (there := self._on[taken[-1]]) is not None:
            there.losses = sorted([*there.losses, (taken[-1], at_ns)])
        for thread in self.threads:
            for place, (since, until, cpu) in thread.ends.items():
                if cpu == number and since <= taken[-1] < until:
                    thread.was[place] = (*thread.was[place][:2], ("untold",))
