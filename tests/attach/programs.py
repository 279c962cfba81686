"""What the kernel would tell of a program whose every moment is given: traces of loops, event by event."""

from __future__ import annotations

from rtmeter.attach.jobs import Job, jobs_of
from rtmeter.attach.sleeps import sleeps_of
from rtmeter.explain import events as kinds
from rtmeter.explain.events import STATES, Event, Trace

T = 10
SLEEPING, BLOCKED, RUNNABLE, ENDED = (
    STATES.index(state) for state in ("sleeping", "blocked", "runnable", "ended")
)


class Program:
    """Thread T on CPU 0, as its calls say; each takes the times of what happens."""

    def __init__(self, start_ns: int = 0) -> None:
        self.events: list[Event] = []
        self._add(start_ns, kinds.SWITCH, 0, T, RUNNABLE)

    @property
    def trace(self) -> Trace:
        return Trace(sorted(self.events, key=lambda event: event.time_ns))

    def _add(
        self, time_ns: int, kind: int, tid: int, target: int = -1, state: int = 0, *, name: str = "",
        value: int = kinds.NO_VALUE, cpu: int = 0,
    ) -> None:  # fmt: skip
        self.events.append(Event(time_ns, cpu, kind, tid, target, state, 100, name, value))

    def enter(self, at: int, call: str) -> None:
        self._add(at, kinds.SYS_IN, T, name=call)

    def back(self, at: int, call: str = "", result: int = 0) -> None:
        self._add(at, kinds.SYS_OUT, T, name=call, value=result)

    def arm(self, at: int, due: int, function: str = "hrtimer_wakeup") -> None:
        self._add(at, kinds.TIMER_ARMED, T, name=function, value=due)

    def leave(self, at: int, state: int = SLEEPING) -> None:
        self._add(at, kinds.SWITCH, T, 0, state)

    def fire(self, at: int, due: int, function: str = "hrtimer_wakeup", on: int = 0, cpu: int = 0) -> None:
        target = -1 if function == "dl_task_timer" else T
        self._add(at, kinds.TIMER_FIRED, on, target, name=function, value=due, cpu=cpu)

    def wake(self, at: int, by: int = 0, cpu: int = 0) -> None:
        self._add(at, kinds.WAKING, by, T, cpu=cpu)

    def come(self, at: int) -> None:
        self._add(at, kinds.SWITCH, 0, T, RUNNABLE)

    def lose(self, at: int, cpu: int = 0) -> None:
        self._add(at, kinds.LOST, -1, cpu=cpu)

    def sleep(
        self, at: int, due: int, back: int, call: str = "clock_nanosleep", function: str = "hrtimer_wakeup"
    ) -> None:
        """Enters the call at ``at``, is asleep 20 ns later, woken 10 ns after ``due``, and ``back``."""
        self.enter(at, call)
        if function == "hrtimer_wakeup":
            self.arm(at + 10, due)
        self.leave(at + 20)
        self.fire(due + 5, due, function)
        self.wake(due + 10)
        self.come(back - 10)
        self.back(back, call)

    def wait(self, at: int, woken: int, back: int, call: str = "recvmsg", timeout: int | None = None) -> None:
        """As sleep(), but another thread wakes it."""
        self.enter(at, call)
        if timeout is not None:
            self.arm(at + 10, timeout)
        self.leave(at + 20)
        self.wake(woken, by=77, cpu=1)
        self.come(back - 10)
        self.back(back, call)


def jobs(program: Program) -> list[Job]:
    return list(jobs_of(sleeps_of(program.trace, T).sleeps))
