"""What made each late release late, and a cell's causes by the lateness that they carry."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from statistics import median_low
from typing import NamedTuple

from rtmeter.errors import RtmeterError
from rtmeter.explain.events import Trace
from rtmeter.explain.facts import NONE, CauseFacts, shared
from rtmeter.explain.lenders import Lenders, of_most, together
from rtmeter.explain.passed_over import Throttled
from rtmeter.explain.segments import UNKNOWN, Explainer, Key, Segment
from rtmeter.explain.threads import KnownTrace

_MANY_FAULTS = 10
"""Page faults a release that are worth a word."""


class Release(NamedTuple):
    """A release and the moment it was served. ``tid``: the thread that served it, where that is not the same
    of all."""

    k: int
    release_ns: int
    stamp_ns: int
    late: bool
    tid: int | None = None

    @property
    def lateness_ns(self) -> int:
        return self.stamp_ns - self.release_ns


@dataclass(frozen=True)
class Cause:
    """The key that a late release has most of beyond those in time; ``share`` of all that it has beyond;
    ``throttled``: the thread was in most of that time; ``lent_by``: who had, in most of it, lent its priority
    to the one that the key names; ``facts``: of all of it."""

    key: Key
    share: float
    throttled: Throttled | None = None
    lent_by: str | None = None
    facts: CauseFacts = NONE


@dataclass(frozen=True)
class Explained:
    """``segments`` sum to the lateness; ``faults_ns``: when the thread had page faults within it, in order.
    None: in time."""

    release: Release
    segments: tuple[Segment, ...]
    faults_ns: tuple[int, ...]
    cause: Cause | None

    @property
    def faults(self) -> int:
        return len(self.faults_ns)


@dataclass(frozen=True)
class Ranked:
    """A cause, the late releases that it is the cause of, and their lateness; ``throttled_ns``: that of those
    in which the thread was throttled, ``throttled_as``; ``faults``: the thread's page faults in what
    they have of the key, each once (one long job makes several releases late);
    ``lenders``: whose priority was lent, and the lateness of those in which it was; ``facts``: of all."""

    key: Key
    releases: int
    lateness_ns: int
    throttled_ns: int = 0
    throttled_as: Throttled | None = None
    faults: int = 0
    lenders: Lenders = ()
    facts: CauseFacts = NONE

    @property
    def faulted(self) -> bool:
        """Whether there were so many page faults that they are worth a word."""
        return self.faults >= max(self.releases, 1) * _MANY_FAULTS

    @property
    def lent_by(self) -> str | None:
        """The one whose priority was lent in most of it."""
        return of_most(self.lenders, self.lateness_ns)

    @property
    def throttled(self) -> Throttled | None:
        """Whether that is most of it."""
        return self.throttled_as if 2 * self.throttled_ns > self.lateness_ns else None


@dataclass(frozen=True)
class Explanation:
    """``causes`` by the lateness they carry, most first; ``unknown_ns`` of the late releases' lateness."""

    releases: tuple[Explained, ...]
    causes: tuple[Ranked, ...]
    unknown_ns: int


@dataclass(frozen=True)
class Split:
    """A release's lateness, taken apart; ``faults_ns``: as Explained has it."""

    segments: tuple[Segment, ...]
    faults_ns: tuple[int, ...]

    @classmethod
    def unknown(cls, release: Release) -> Split:
        """Of a release of which no events are there."""
        span = release.release_ns, release.stamp_ns
        return cls((Segment(*span, UNKNOWN),) if span[0] < span[1] else (), ())


def explain(
    trace: Trace,
    releases: Iterable[Release],
    tid: int,
    *,
    paths: bool = False,
    roles: Mapping[int, str] | None = None,
    names: bool = False,
) -> Explanation:
    """Explains the releases that the thread ``tid`` stamps, or that each one names; ``paths``, ``roles`` and
    ``names``: as Explainer has them."""
    releases, known = list(releases), KnownTrace(trace)
    return concluded(releases, split(known, releases, tid, paths=paths, roles=roles, names=names))


def split(
    known: KnownTrace,
    releases: Iterable[Release],
    tid: int,
    *,
    paths: bool,
    roles: Mapping[int, str] | None = None,
    names: bool = False,
) -> list[Split]:
    """Takes each lateness apart, by its own thread, or else ``tid``."""
    explainer = Explainer(known, paths=paths, roles=roles, names=names)
    found = []
    for release in releases:
        thread = known.thread_until(release.tid or tid, release.stamp_ns)
        span = release.release_ns, release.stamp_ns
        found.append(Split(tuple(explainer.segments(thread, *span)), tuple(known.faults_ns(thread, *span))))
    return found


def concluded(releases: Sequence[Release], split: Sequence[Split]) -> Explanation:
    """The causes of releases that were taken apart."""
    times = [times_by_key(one.segments) for one in split]
    usual = _usual([of for of, release in zip(times, releases, strict=True) if not release.late])
    explained = tuple(
        Explained(release, one.segments, one.faults_ns, _cause(one, of, usual) if release.late else None)
        for release, one, of in zip(releases, split, times, strict=True)
    )
    unknown_ns = sum(of.get(UNKNOWN, 0) for of, release in zip(times, releases, strict=True) if release.late)
    return Explanation(explained, ranked(explained), unknown_ns)


def times_by_key(segments: Iterable[Segment]) -> dict[Key, int]:
    """How long each key held."""
    times: dict[Key, int] = {}
    for start_ns, end_ns, key, *_ in segments:
        times[key] = times.get(key, 0) + end_ns - start_ns
    return times


def _usual(in_time: Sequence[dict[Key, int]]) -> dict[Key, int]:
    """For each key the median of its time over these releases, 0 where it did not occur."""
    found: dict[Key, list[int]] = {}
    for times in in_time:
        for key, time_ns in times.items():
            found.setdefault(key, []).append(time_ns)
    return {key: median_low(times + [0] * (len(in_time) - len(times))) for key, times in found.items()}


def _cause(split: Split, times: dict[Key, int], usual: dict[Key, int]) -> Cause | None:
    """The largest excess; the first in alphabetical order of equal ones."""
    excess = {key: time_ns - usual.get(key, 0) for key, time_ns in times.items()}
    if not excess:
        return None
    key = min(excess, key=lambda key: (-excess[key], key.order))
    positive = sum(time_ns for time_ns in excess.values() if time_ns > 0)
    share = max(excess[key], 0) / positive if positive else 0.0
    its = [one for one in split.segments if one.key == key]
    lenders = together(loan for one in its for loan in one.lenders)
    facts = shared(one.facts for one in its)
    return Cause(key, share, _throttled(its), of_most(lenders, times[key]), facts)


def _throttled(segments: Sequence[Segment]) -> Throttled | None:
    """As the first of the segments says that says so, if these are most of their time."""
    saying = [one for one in segments if one.throttled is not None]
    ns, total_ns = (sum(one.end_ns - one.start_ns for one in some) for some in (saying, segments))
    return saying[0].throttled if 2 * ns > total_ns else None


def ranked(explained: Iterable[Explained]) -> tuple[Ranked, ...]:
    rows: dict[Key, Ranked] = {}
    caused: dict[Key, list[Explained]] = {}
    for each in explained:
        if (cause := each.cause) is not None:
            caused.setdefault(cause.key, []).append(each)
            row, lateness_ns = rows.get(cause.key, Ranked(cause.key, 0, 0)), each.release.lateness_ns
            lent = [(cause.lent_by, lateness_ns)] if cause.lent_by else []
            rows[cause.key] = Ranked(
                cause.key,
                row.releases + 1,
                row.lateness_ns + lateness_ns,
                row.throttled_ns + (lateness_ns if cause.throttled else 0),
                row.throttled_as or cause.throttled,
                lenders=together([*row.lenders, *lent]),
                facts=shared([row.facts, cause.facts]) if row.releases else cause.facts,
            )
    counted = (replace(row, faults=_faults(caused[row.key], row.key)) for row in rows.values())
    return tuple(sorted(counted, key=lambda row: (-row.lateness_ns, row.key.order)))


def _faults(releases: Iterable[Explained], key: Key) -> int:
    """How many page faults, each once, the thread had in what these releases have of the key."""
    its = ((one, each.faults_ns) for each in releases for one in each.segments if one.key == key)
    spans = sorted((one.start_ns, one.end_ns, faults_ns) for one, faults_ns in its)
    counted, until_ns = 0, spans[0][0] if spans else 0
    for start_ns, end_ns, faults_ns in spans:
        first, last = (bisect_left(faults_ns, time_ns) for time_ns in (max(start_ns, until_ns), end_ns))
        counted, until_ns = counted + max(last - first, 0), max(until_ns, end_ns)
    return counted


def chosen(explanation: Explanation, k: int | None, top: int) -> list[Explained]:
    """The release k, or the ``top`` latest of those that are late."""
    if k is None:
        late = [each for each in explanation.releases if each.release.late]
        return sorted(late, key=lambda each: (-each.release.lateness_ns, each.release.k))[:top]
    found = [each for each in explanation.releases if each.release.k == k]
    if not found:
        there = sorted(each.release.k for each in explanation.releases)
        remedy = f"there are releases from {there[0]} to {there[-1]}" if there else "there are none"
        raise RtmeterError("is not among the releases", field="--release", value=k, remedy=remedy)
    return found
