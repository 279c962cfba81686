"""The segments of a span of a thread: every nanosecond belongs to exactly one.

For each instant the first rule that holds, as docs/explain.md lists them.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable, Iterator, Mapping, Sequence
from collections.abc import Set as AbstractSet
from itertools import pairwise
from typing import NamedTuple

from rtmeter.explain.cpus import NOT_INSIDE, Cpu, Piece
from rtmeter.explain.events import NOBODY
from rtmeter.explain.facts import NONE, CauseFacts, shared
from rtmeter.explain.lenders import Lenders, of_most, together
from rtmeter.explain.messages import TIMEOUT, Senders, is_receiving
from rtmeter.explain.passed_over import PassedOver, Throttled
from rtmeter.explain.states import SOFTIRQ, OnCpu, Runnable, StateSpan, TimerSleep, Wait, states_of
from rtmeter.explain.threads import IDLE, KnownTrace, is_kernels, tid_of


class Key(NamedTuple):
    """What time went to: a category, by whom, and how urgent that is beside the thread; ``of``: the thread,
    where it is another on a message's path; ``ended_by``: what ``who`` is that ends a wait, INTERRUPT or
    SOFTIRQ, None: a thread, whatever its name."""

    category: str
    who: str | None = None
    relation: str | None = None
    of: str | None = None
    ended_by: str | None = None

    @property
    def order(self) -> tuple[str, ...]:
        """Alphabetical; nobody comes first."""
        return tuple(part or "" for part in self)


class Segment(NamedTuple):
    """``throttled``: the thread waited because its time was used up, or kept for others: of the CPU's
    idling, or of a less urgent one that ran. ``lenders``: whose priority the thread had, on loan, that ran
    instead, or that ends the wait. ``facts``: of what waits for a CPU or for another."""

    start_ns: int
    end_ns: int
    key: Key
    throttled: Throttled | None = None
    lenders: Lenders = ()
    facts: CauseFacts = NONE

    @property
    def lent_by(self) -> str | None:
        """The one whose priority it was in most of the segment."""
        return of_most(self.lenders, self.end_ns - self.start_ns)


class _Message(NamedTuple):
    """A wait for a message: what the thread ``waker`` did meanwhile stands for it."""

    start_ns: int
    end_ns: int
    waker: int


UNKNOWN = Key("unknown")

_OF_A_THREAD = ("displaced", "held_off", "dispatch", "armed_later", "outside", "timer_idle")
"""What a thread waits for, beside interrupts and softirqs: these are the CPU's."""


class Explainer:
    """Splits spans of threads; the states of each thread are found once.

    ``paths``: messages are followed through the network's softirqs, conditions and semaphores, too, where
    they stay on this host, and what another thread does on the path has its name; so it has with ``names``
    alone. ``roles``: thread ids → what their processes are, where their names do not tell them apart.
    """

    def __init__(
        self,
        known: KnownTrace,
        *,
        paths: bool = False,
        roles: Mapping[int, str] | None = None,
        names: bool = False,
    ) -> None:
        self._known, self._paths, self._roles = known, paths, roles or {}
        self._names = names or paths
        self._states: dict[int, list[StateSpan]] = {}
        self._senders = Senders(known)

    def segments(self, thread: int, start_ns: int, end_ns: int) -> list[Segment]:
        """The span's segments in order of time; neighbours of one key are one."""
        return merged(self._followed(thread, start_ns, end_ns))

    def _followed(self, thread: int, start_ns: int, end_ns: int) -> Iterator[Segment]:
        """With what stands for a wait for a message in its place. A path may have more threads than Python's
        stack has room."""
        path: set[int] = set()
        opened = [(thread, self._of(thread, start_ns, end_ns, path))]
        while opened:
            waits, spans = opened[-1]
            found = next(spans, None)
            if isinstance(found, Segment):
                yield found
            elif found is not None:
                path.add(waits)
                opened.append((found.waker, self._of(found.waker, found.start_ns, found.end_ns, path)))
            else:
                opened.pop()
                path.discard(opened[-1][0] if opened else waits)

    def _of(
        self, thread: int, start_ns: int, end_ns: int, path: AbstractSet[int]
    ) -> Iterator[Segment | _Message]:
        """``path``: the threads that wait for this one, whenever the next is asked for."""
        if thread not in self._states:
            self._states[thread] = states_of(self._known, thread)
        states = self._states[thread]
        place = max(bisect_right(states, start_ns, key=lambda state: state.start_ns) - 1, 0)
        for state in states[place:]:
            if state.start_ns >= end_ns:
                return
            start = max(start_ns, state.start_ns)
            end = end_ns if state.end_ns is None else min(end_ns, state.end_ns)
            if start >= end:
                continue
            named = bool(path) and self._names
            if isinstance(state, OnCpu):
                yield from self._on_cpu(thread, state, start, end, named)
            elif isinstance(state, Runnable):
                waits = self._runnable(thread, state, start, end)
                yield from self._named(thread, waits) if named else waits
            elif isinstance(state, TimerSleep):
                waits = self._timer_sleep(state, start, end)
                yield from self._named(thread, waits) if named else waits
            elif isinstance(state, Wait):
                yield self._wait(thread, state, start, end, path)
            else:
                yield Segment(start, end, UNKNOWN)

    def _on_cpu(
        self, thread: int, state: OnCpu, start_ns: int, end_ns: int, named: bool
    ) -> Iterator[Segment]:
        """``named``: who it is is said."""
        for piece in self._pieces(state.cpu, start_ns, end_ns):
            if (outer := self._not_the_thread(piece)) is not None:
                yield outer
                continue
            for start, end in self._cut(piece, self._known.call_bounds(thread, *piece[:2])):
                call = self._known.call_at(thread, start)
                of = self._called(thread, start) if named else None
                key = Key("own_kernel", call.name, of=of) if call else Key("own", of=of)
                yield Segment(start, end, key)

    def _runnable(self, thread: int, state: Runnable, start_ns: int, end_ns: int) -> Iterator[Segment]:
        passed_over = PassedOver(self._known, thread, state)
        for piece in self._pieces(state.cpu, state.start_ns, end_ns):
            passed_over.see(piece)
            if piece.end_ns <= start_ns:
                continue
            piece = piece._replace(start_ns=max(start_ns, piece.start_ns))
            if (outer := self._not_the_thread(piece)) is not None:
                yield outer
            elif piece.thread == IDLE:
                yield Segment(*piece[:2], Key("dispatch"), passed_over.now)
            else:
                changes = (self._known.changes(one, *piece[:2]) for one in (piece.thread, thread))
                for start, end in self._cut(piece, (time for times in changes for time in times)):
                    ours, theirs = (self._known.priority(one, start) for one in (thread, piece.thread))
                    key = Key("displaced", self._known.name(piece.thread, start), _relation(ours, theirs))
                    lenders = self._known.lenders(piece.thread, start, end)
                    facts = CauseFacts(tid_of(piece.thread), theirs, state.cpu, ours)
                    yield Segment(start, end, key, passed_over.now, lenders, facts)

    def _named(self, thread: int, waits: Iterable[Segment]) -> Iterator[Segment]:
        """With the name of who waits."""
        for one in waits:
            if one.key.category in _OF_A_THREAD:
                one = one._replace(key=one.key._replace(of=self._called(thread, one.start_ns)))
            yield one

    def _called(self, thread: int, time_ns: int) -> str:
        name, role = self._known.name(thread, time_ns), self._roles.get(tid_of(thread))
        return f"{role} ({name})" if role else name

    def _timer_sleep(self, state: TimerSleep, start_ns: int, end_ns: int) -> Iterator[Segment]:
        known = self._known
        for piece in self._pieces(state.cpu, start_ns, end_ns):
            if piece.lost:
                yield Segment(*piece[:2], UNKNOWN)
                continue
            bounds = [state.fired_ns, *known.changes(piece.thread, *piece[:2])]
            bounds += known.call_bounds(piece.thread, *piece[:2])
            if state.expiry_ns is not None:
                bounds.append(state.expiry_ns)
            for start, end in self._cut(piece, bounds):
                yield Segment(start, end, self._in_timer_sleep(state, piece._replace(start_ns=start)))

    def _in_timer_sleep(self, state: TimerSleep, piece: Piece) -> Key:
        known, now = self._known, piece.start_ns
        if state.expiry_ns is None and now < state.fired_ns:
            return UNKNOWN
        if state.expiry_ns is not None and now < state.expiry_ns:
            return Key("armed_later")
        if now >= state.fired_ns:
            return Key("interrupt", None if state.irq == NOT_INSIDE else known.trace.name_of(state.irq))
        if (outer := self._not_the_thread(piece)) is not None:
            return outer.key
        if piece.thread == IDLE:
            return Key("timer_idle")
        name = known.name(piece.thread, now)
        in_kernel = is_kernels(name) or known.call_at(piece.thread, now) is not None
        if in_kernel:
            return Key("held_off", name)
        return Key("outside") if known.is_told_of(piece.thread, now) else UNKNOWN

    def _wait(
        self, thread: int, state: Wait, start_ns: int, end_ns: int, path: AbstractSet[int]
    ) -> Segment | _Message:
        call = self._known.call_at(thread, state.start_ns)
        receives = is_receiving(call, paths=self._paths)
        if receives and self._paths:
            state = self._message_after_timeouts(thread, state)
        waker = state.waker or (self._senders.of(state) if receives and self._paths else IDLE)
        if receives and waker not in {IDLE, thread, *path}:
            return _Message(start_ns, end_ns, waker)
        of = self._called(thread, start_ns) if path and self._paths else None
        lenders = self._known.lenders(state.waker, start_ns, end_ns)
        facts = CauseFacts(tid_of(waker)) if waker != IDLE else NONE
        if call is not None:
            facts = facts._replace(call=call.name, asked=call.asked)
        if state.stopped:
            facts = facts._replace(stopped=True)
        key = Key("blocked", state.name, of=of, ended_by=state.ended_by)
        return Segment(start_ns, end_ns, key, None, lenders, facts)

    def _message_after_timeouts(self, thread: int, wait: Wait) -> Wait:
        """The wait itself; of one that ran out (SO_RCVTIMEO) and began anew in the same system call, the one
        that a message ended."""
        states, call = self._states[thread], self._known.call_at(thread, wait.start_ns)
        after = bisect_right(states, wait.start_ns, key=lambda state: state.start_ns)
        for place in range(after, len(states)):
            state = states[place]
            if (wait.ended_by, wait.name) != (SOFTIRQ, TIMEOUT):
                break
            if isinstance(state, TimerSleep | Wait):
                again = self._known.call_at(thread, state.start_ns)
                if not isinstance(state, Wait) or not call or not again or again.name != call.name:
                    break
                wait = state
        return wait

    def _pieces(self, cpu: int, start_ns: int, end_ns: int) -> Iterator[Piece]:
        return self._known.cpus.of.get(cpu, Cpu()).within(start_ns, end_ns)

    def _not_the_thread(self, piece: Piece) -> Segment | None:
        """What a CPU is at before the thread on it counts: lost, in an interrupt, in a softirq, not known."""
        name = self._known.trace.name_of
        if piece.lost:
            return Segment(*piece[:2], UNKNOWN)
        if piece.irq != NOT_INSIDE:
            return Segment(*piece[:2], Key("interrupt", name(piece.irq)))
        if piece.softirq != NOT_INSIDE:
            return Segment(*piece[:2], Key("softirq", name(piece.softirq)))
        return Segment(*piece[:2], UNKNOWN) if piece.thread == NOBODY else None

    @staticmethod
    def _cut(piece: Piece, at_ns: Iterable[int]) -> Iterator[tuple[int, int]]:
        """The piece's parts between some times."""
        inner = sorted({time for time in at_ns if piece.start_ns < time < piece.end_ns})
        bounds: Sequence[int] = [piece.start_ns, *inner, piece.end_ns]
        return pairwise(bounds)


def _relation(ours: int | None, theirs: int | None) -> str | None:
    if ours is None or theirs is None:
        return None
    return "above" if theirs < ours else "equal" if theirs == ours else "below"


def merged(segments: Iterable[Segment]) -> list[Segment]:
    """With neighbours of one key as one."""
    kept: list[Segment] = []
    for segment in segments:
        if kept and kept[-1].key == segment.key:
            throttled = kept[-1].throttled or segment.throttled
            lenders = together([*kept[-1].lenders, *segment.lenders])
            facts = shared([kept[-1].facts, segment.facts])
            kept[-1] = Segment(kept[-1].start_ns, segment.end_ns, segment.key, throttled, lenders, facts)
        else:
            kept.append(segment)
    return kept
