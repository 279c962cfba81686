"""Jobs → releases: the period, the grid if there is one, and what was skipped on it."""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise

import numpy as np
import numpy.typing as npt

from rtmeter.attach.asleep import MESSAGE
from rtmeter.attach.jobs import RELATIVE, Job, paced
from rtmeter.statistics.ranks import quantile_index, share_of

EXACT_NS, BUDGET_NS = 10, 50_000
"""How far an expiry may be off its grid: programs count with fractions; the kernel sets a deadline thread's
timer by another clock."""

CHANGED = 20
"""So many equal distances in a row that are not the period are another period, unless the thread was at work
while the releases between them came: it passed over those."""

LARGEST_GAP = 1 << 20
"""So many releases in a row are not skipped: the loop was stopped, or its clock was set."""

_MOST, _OF = 7, 10
"""So many of ten distances are a clear majority: a loop that sleeps n times in each cycle has at least
(n - 1) / n of one kind, which is never just as many."""

_STEPS, _MANY = 8, 64
"""Over so many distances together they differ by the root of that more if lateness stays; of fewer than
``_MANY`` that is not told from chance."""

_NEAR = 20
"""Releases of a loop that corrects its sleeps are so small a part of the period from their grid, or less."""

_OCTAVE = 64
_FEWEST, _SHORTEST_NS = 5, 50_000


@dataclass(frozen=True, slots=True)
class PeriodChange:
    """From this release on, the period was another."""

    release_ns: int
    period_ns: int


@dataclass(frozen=True, slots=True)
class AttachedLoop:
    """What a thread's jobs come to. ``period_ns``: given, or the mode of the distances of releases (None:
    too few). ``on_grid``: the releases lie on multiples of it, but where it began anew; ``steady``: most
    distances are near it. ``kinds``: known jobs by what released them. ``drift_ns``: where sleeps are
    relative, by how much all releases together came later than the given period, else the time that was
    slept for, after the one before (None where the thread corrects that itself); ``waits`` for locks
    within jobs."""

    period_ns: int | None
    on_grid: bool
    steady: bool
    changes: tuple[PeriodChange, ...]
    kinds: dict[str, int]
    drift_ns: int | None
    unknown: int
    waits: int
    given: bool = False
    """The period is the user's, and does not change."""
    asked_ns: int | None = None
    """What the time from one release to the next is compared with, where sleeps are relative."""
    own_ns: int | None = None
    """How far apart the thread's own times are, where it asks each time for what is left until one: its
    releases come near a grid that no event tells. None: it does not."""

    @property
    def by_timer(self) -> bool:
        """Whether timers pace it."""
        return _by_timer(self.kinds)

    @property
    def kind(self) -> str:
        """What releases most jobs."""
        return max(self.kinds, key=lambda kind: self.kinds[kind]) if self.kinds else "nothing"


def loop_of(jobs: Sequence[Job], period_ns: int | None = None) -> AttachedLoop:
    """``period_ns``: as the user gave it."""
    kinds = kinds_of(Counter((job.kind, job.known) for job in jobs))
    by_timer = _by_timer(kinds)
    slept_ns = [0, *(job.free_ns for job in jobs)]  # before each
    both = [(job, slept) for job, slept in zip(jobs, slept_ns, strict=False) if job.by_timer or not by_timer]
    told = [job for job, _ in both]
    pairs = [
        (b.release_ns - a.release_ns, slept - a.release_ns)
        for (a, _), (b, slept) in pairwise(both)
        if a.known and b.known
    ]
    distances, worked = [distance for distance, _ in pairs], [work for _, work in pairs]
    period = period_ns or mode_of(distances)
    on_grid = by_timer and period is not None and _is_grid(told, distances, worked, period)
    if by_timer and not on_grid and period_ns is None and (divisor := _divisor(distances, worked)):
        period, on_grid = divisor, _is_grid(told, distances, worked, divisor)
    if by_timer and not on_grid and period_ns is None and (first := _first_of_several(told, distances)):
        period, on_grid = first, True
    steady = period is not None and (on_grid or _is_steady(distances, period))
    asked = drift = None
    own = None
    if by_timer and not on_grid and steady and period is not None:
        own = _own_ns(told, distances, period)
        asked = period_ns or (_asked_ns(told) or period if own is None else None)
    if asked is not None:
        over = 0 if own is None else sum(passed_over(distance, own) for distance in distances)
        drift = sum(distances) - (len(distances) + over) * asked
    unknown, waits = sum(not job.known for job in jobs), sum(job.waits for job in jobs)
    loop = AttachedLoop(
        period, on_grid, steady, (), kinds, drift, unknown, waits, period_ns is not None, asked, own
    )
    changes = (PeriodChange(job.release_ns, now) for job, now in changing(jobs, loop) if now is not None)
    return replace(loop, changes=tuple(changes))


def kinds_of(jobs: Mapping[tuple[str, bool], int]) -> dict[str, int]:
    """How many jobs each kind released. ``jobs``: by kind, and by whether they are known; of those that are
    not what released them is not either: they count only where there are no others."""
    found = {kind: count for (kind, known), count in jobs.items() if known}
    return found or {kind: count for (kind, _), count in jobs.items()}


def _by_timer(kinds: Mapping[str, int]) -> bool:
    others = kinds.get(MESSAGE, 0)
    return paced(sum(kinds.values()) - others, others)


def mode_of(distances: Sequence[int]) -> int | None:
    """The distance that most of them have to the nanosecond; else the middle of the fullest of bins which are
    a 64th of an octave wide, and its neighbours. Of those that are nearly as many the smallest: one distance
    more must not tell which it is."""
    found = np.asarray([distance for distance in distances if distance > 0], np.int64)
    if not len(found):
        return None
    values, counts = np.unique(found, return_counts=True)
    most = _first_of_most(counts)
    if 2 * counts[most] >= len(found):
        return int(values[most])
    bins = np.floor(np.log2(found) * _OCTAVE).astype(np.int64)
    numbers, full = np.unique(bins, return_counts=True)
    fullest = numbers[_first_of_most(full)]
    near = np.sort(found[np.abs(bins - fullest) <= 1])
    return int(near[(len(near) - 1) // 2])


def _first_of_most(counts: npt.NDArray[np.int64]) -> int:
    return int(np.argmax(10 * counts >= 9 * counts.max()))


def tolerance_ns(jobs: Iterable[Job]) -> int:
    """How far off the grid an expiry may be."""
    return BUDGET_NS if any(job.kind == "deadline" for job in jobs) else EXACT_NS


def steps_of(distance_ns: int, period_ns: int, within_ns: int) -> int | None:
    """How many periods a distance is; None if it is no multiple."""
    steps = round(distance_ns / period_ns)
    return steps if steps >= 1 and abs(distance_ns - steps * period_ns) <= within_ns else None


def passed_over(distance_ns: int, period_ns: int) -> int:
    """How many releases nobody slept for between two of a loop that corrects its sleeps; none where the
    second is on no grid that began with the first, as where it began anew."""
    return (steps_of(distance_ns, period_ns, period_ns // _NEAR) or 1) - 1


def _is_grid(jobs: Sequence[Job], distances: Sequence[int], worked: Sequence[int], period_ns: int) -> bool:
    """Whether most expiries are a multiple of the period apart, and few are not though the thread slept when
    the next one of a grid came; timeouts from now on never are. ``worked``: how long after the first of two
    the thread slept for the second."""
    if not distances or _are_relative(jobs):
        return False
    within = tolerance_ns(jobs)
    exact = [steps_of(distance, period_ns, within) is not None for distance in distances]
    off = sum(not one and work <= period_ns for one, work in zip(exact, worked, strict=True))
    return 2 * sum(exact) >= len(distances) and _OF * sum(exact) >= _MOST * (sum(exact) + off)


def _are_relative(jobs: Sequence[Job]) -> bool:
    return sum(job.kind in RELATIVE for job in jobs) * 2 > len(jobs)


def _first_of_several(jobs: Sequence[Job], distances: Sequence[int]) -> int | None:
    """The first period of a loop that changes it: most distances come CHANGED or more in a row that are the
    same. None if they do not; timeouts from now on have none."""
    within = tolerance_ns(jobs)
    rows: list[list[int]] = []
    for distance in distances:
        if rows and abs(distance - rows[-1][0]) <= within:
            rows[-1].append(distance)
        else:
            rows.append([distance])
    long = [row for row in rows if len(row) >= CHANGED]
    if _are_relative(jobs) or _OF * sum(map(len, long)) < _MOST * max(len(distances), 1):
        return None
    return long[0][0]


def _divisor(distances: Sequence[int], worked: Sequence[int]) -> int | None:
    """The period of a loop that passes over so many releases that no distance is that of most: what
    neighbouring distances are mostly multiples of. None if that is nothing to speak of, or the thread mostly
    slept when the last release between two came: it passed over none."""
    found = np.asarray(distances, np.int64)
    if len(found) < _FEWEST:
        return None
    values, counts = np.unique(np.gcd(found[:-1], found[1:]), return_counts=True)
    most = int(values[counts.argmax()])
    over = found > most
    slept = int((over & (np.asarray(worked, np.int64) <= found - most)).sum())
    return most if most >= _SHORTEST_NS and 2 * slept <= int(over.sum()) else None


def _is_steady(distances: Sequence[int], period_ns: int) -> bool:
    """Whether there is one period: most distances are within a quarter of it."""
    near = sum(4 * abs(distance - period_ns) <= period_ns for distance in distances)
    return _OF * near >= _MOST * len(distances) > 0


def _asked_ns(jobs: Sequence[Job]) -> int | None:
    """How long the thread asks to sleep, mostly; of one that takes what it has worked from its period, and
    asks for the rest, the period: the two together differ less than what it asks for."""
    asked, whole = _sleeps_of(jobs), _rests_of(jobs)
    if len(whole) >= _FEWEST and 2 * _spread(np.asarray(whole)) < _spread(np.asarray(asked)):
        asked = whole
    asked.sort()
    return asked[(len(asked) - 1) // 2] if asked else None


def _rests_of(jobs: Sequence[Job]) -> list[int]:
    """Of each sleep that was asked for, from the wake-up before it to its end."""
    told = ((a, b) for a, b in pairwise(jobs) if a.known and b.known and b.armed_ns is not None)
    return [b.release_ns - a.wake_ns for a, b in told]


def _sleeps_of(jobs: Sequence[Job]) -> list[int]:
    return [job.release_ns - job.armed_ns for job in jobs if job.known and job.armed_ns is not None]


def _own_ns(jobs: Sequence[Job], distances: Sequence[int], period_ns: int) -> int | None:
    """How far apart the times are until which the thread sleeps by asking for what is left; None if each of
    its sleeps is counted from the one before."""
    found = np.asarray(distances, np.int64)
    if not (_stays(found, period_ns) if len(found) >= _MANY else _asks_for_what_is_left(jobs, found)):
        return None
    single = found[4 * np.abs(found - period_ns) <= period_ns]
    return int(single.sum()) // len(single)


def _stays(distances: npt.NDArray[np.int64], period_ns: int) -> bool:
    """Whether a release that was off its time does not move those after it: then over _STEPS distances they
    differ as over one; if all later ones move with it, by the root of that more."""
    periods = np.maximum((distances + period_ns // 2) // period_ns, 1)
    moved = np.cumsum(distances - periods * period_ns)
    return 2 * _spread(moved[_STEPS:] - moved[:-_STEPS]) < 3 * _spread(np.diff(moved))


def _asks_for_what_is_left(jobs: Sequence[Job], distances: npt.NDArray[np.int64]) -> bool:
    """Whether how long it asks to sleep differs more than the distances of its releases."""
    asked = np.asarray(_sleeps_of(jobs), np.int64)
    return len(asked) >= _FEWEST and _spread(asked) > _spread(distances)


def _spread(values: npt.NDArray[np.int64]) -> int:
    """Between the quartiles."""
    ordered = np.sort(values)
    first, third = (int(ordered[quantile_index(len(ordered), share_of(quarter))]) for quarter in ("25", "75"))
    return third - first


def changing(jobs: Iterable[Job], loop: AttachedLoop) -> Iterator[tuple[Job, int | None]]:
    """Each job, and where another period begins with it that stays, which."""
    if not loop.on_grid or loop.period_ns is None or loop.given:
        yield from ((job, None) for job in jobs)
        return
    coming, now, settled = iter(jobs), loop.period_ns, 0
    ahead: deque[Job] = deque()
    releases: deque[tuple[int, int]] = deque()
    """Of those ahead that timers released, each with the moment when the thread slept before it."""
    within, asleep_ns = EXACT_NS, 0
    while True:
        while len(releases) <= CHANGED and (job := next(coming, None)) is not None:
            ahead.append(job)
            within = max(within, tolerance_ns([job]))
            if job.by_timer:
                releases.append((job.release_ns, asleep_ns))
            asleep_ns = job.free_ns
        if not ahead:
            return
        job, began = ahead.popleft(), None
        if job.by_timer:
            if settled:
                settled -= 1
            elif len(releases) > CHANGED and (other := _other_period(releases, now, within)):
                began = now = other
                settled = CHANGED - 1
            releases.popleft()
        yield job, began


def _other_period(releases: Sequence[tuple[int, int]], now_ns: int, within_ns: int) -> int | None:
    """The distance of all of them, if that is not the period, nor the thread mostly at work until after the
    last release of the old grid that lay between two."""
    distances = [b - a for (a, _), (b, _) in pairwise(releases)]
    first = distances[0]
    if abs(first - now_ns) <= within_ns or any(abs(one - first) > within_ns for one in distances):
        return None
    at_work = sum(asleep_ns > release_ns - now_ns for release_ns, asleep_ns in list(releases)[1:])
    passed_over = steps_of(first, now_ns, within_ns) is not None and 2 * at_work > len(distances)
    return None if passed_over else first
