"""Planted causes of lateness → whether an explanation names each, and none where nothing was planted."""

from __future__ import annotations

import os
import random
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, replace
from itertools import count
from pathlib import Path

from rtmeter.campaign.condition_options import SystemSettings
from rtmeter.conditions.change import Change
from rtmeter.conditions.resources import MADE, Cgroup, Controller
from rtmeter.conditions.settings import Settings
from rtmeter.errors import RtmeterError, did_you_mean
from rtmeter.explain.causes import Explained, Explanation, Release
from rtmeter.explain.parts import explain_parts
from rtmeter.explain.segments import Key
from rtmeter.host.affinity import away_from
from rtmeter.host.cgroups import Hierarchy, find
from rtmeter.host.root import Root
from rtmeter.machine import Intent
from rtmeter.model import SERVED, WARM_UP_FLAG
from rtmeter.samples import read_log
from rtmeter.selftest.disturbance import Disturbance
from rtmeter.selftest.lateness import BLOW_NS, Plant, Scene, group_in, plants
from rtmeter.selftest.loop import planted_loop
from rtmeter.selftest.measuring import PERIOD_NS, measuring
from rtmeter.selftest.sight import Window
from rtmeter.trace.chosen import Span, span_of
from rtmeter.trace.recorder import Recorder

TIMES = 3
"""How often each plant is made; those that take long, and are not asked for by name, once."""

TIMES_AT_ONCE = 20
"""How often each is made in one recording, whose room is bounded; more often takes more recordings."""

UNPLANTED = "nothing"

LATE_NS = 1_000_000
"""By how much the latest release of a plant is late at least, or it did not hit."""

_UNPLANTED_LATE_NS = BLOW_NS // 2
"""Where nothing was planted: what this machine does by itself is mostly shorter."""

_BESIDE_S, _SETTLED_NS = 0.03, 5_000_000
"""What is recorded before and after a plant; where timers and threads are known."""

_MOST_COMPARED = 500
"""Releases in time."""

OnPlanted = Callable[[str, int, int], None]
"""Told of a plant that is about to be made, how many were before it, and of how many."""


@dataclass(frozen=True, slots=True)
class Blamed:
    """``hit`` of the times that it was planted, which made a release late; how many of these were explained
    by it ``first``; ``others``: what was blamed instead."""

    name: str
    done: str
    planted: int
    hit: int
    first: int
    others: tuple[Key, ...]
    problem: str | None = None

    @property
    def outcome(self) -> str:
        """``named``, ``not named``, or ``not planted``; of late releases where nothing was, ``blamed`` or
        ``not blamed``."""
        if self.name == UNPLANTED:
            return "blamed" if self.first else "not blamed"
        if self.hit == 0:
            return "not planted"
        return "named" if self.first == self.hit else "not named"


def chosen(names: Sequence[str], priority: int) -> tuple[Plant, ...]:
    """The plants of these names; all if there are none. Raises RtmeterError for one that there is not."""
    every = {plant.name: plant for plant in plants(priority)}
    for name in names:
        if name not in every:
            remedy = did_you_mean(name, every) or f"choose among {', '.join(every)}"
            raise RtmeterError("is no plant", field="--only", value=name, remedy=remedy)
    if names:
        return tuple(replace(every[name], seldom=False) for name in every if name in names)
    return tuple(every.values())


def blame(
    intent: Intent,
    times: int = TIMES,
    only: Sequence[str] = (),
    say: OnPlanted = lambda name, done, of: None,
) -> list[Blamed]:
    """Measures a thread on the first of the intended CPUs (by default the last of this process), records the
    kernel's events while it plants, several times each, and explains what came late. The last says what was
    blamed for late releases where nothing was planted.

    Raises RtmeterError if the intended policy is not fifo, there is no such plant, the events cannot be had
    or kept, or nothing is measured.
    """
    if intent.scheduling.policy != "fifo":
        remedy = "choose fifo:P for the self-test"
        raise RtmeterError("has no equal", field="--scheduling", value=str(intent.scheduling), remedy=remedy)
    made, number = chosen(only, intent.scheduling.priority), count()
    of = sum(_times(plant, times) for plant in made)
    found: dict[str, Blamed] = {}
    for begun in range(0, times, TIMES_AT_ONCE):
        again = [plant for plant in made if not (begun and plant.seldom)]
        at_once = min(TIMES_AT_ONCE, times - begun)
        for one in _recorded(intent, at_once, again, lambda name: say(name, next(number), of)):
            found[one.name] = added(found[one.name], one) if one.name in found else one
    return list(found.values())


def _recorded(
    intent: Intent, times: int, made: Sequence[Plant], say: Callable[[str], None]
) -> Iterator[Blamed]:
    """In one recording."""
    priority = intent.scheduling.priority
    cpu = intent.cpus[0] if intent.cpus else max(os.sched_getaffinity(0))
    others = sorted(os.sched_getaffinity(0) - {cpu})
    with ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="rtmeter-")))
        settings, groups = _standing(stack, any(plant.name == "quota" for plant in made))
        recorder = Recorder(settings.instance, folder, {cpu}, Root())
        stack.callback(recorder.stop)
        recorder.start()
        recorder.pause()
        planting = _Planting(recorder, times, say)
        scene = Scene(0, cpu, others[0] if others else None, priority)
        found = []
        if of_probe := [plant for plant in made if not plant.in_loop]:
            log = folder / "probe.rtlog"
            with measuring(replace(intent, cpus=(cpu,)), cpu, log) as running:
                planting.plant(of_probe, replace(scene, pid=running.pid))
            columns = read_log(log).columns
            served = columns["status"] & ~WARM_UP_FLAG == SERVED
            times_ns = (columns[name][served].tolist() for name in ("release_ns", "wake_ns"))
            found.append((running.pid, releases_of(*times_ns)))
        if of_loop := [plant for plant in made if plant.in_loop]:
            with away_from({cpu}), planted_loop(priority, cpu) as loop:
                planting.plant(of_loop, replace(scene, pid=loop.pid, loop=loop, groups=groups))
                found.append((loop.pid, releases_of(*loop.end())))
        recorder.stop()
        asked = [(tid, _asked(planting, releases)) for tid, releases in found]
        spans = [(one.from_ns, one.to_ns) for _, some in asked for one in some.values()]
        trace = list(recorder.parts(spans=sorted(set(spans))))
    if recorder.tally().cut:
        remedy = "end what else makes events here, or plant fewer by --only"
        raise RtmeterError("the recording had no more room", field="--times", value=times, remedy=remedy)
    explained = [
        explain_parts(trace, list(some), tid, [(one.from_ns, one.to_ns) for one in some.values()])
        for tid, some in asked
    ]
    together = Explanation(tuple(each for one in explained for each in one.releases), (), 0)
    for plant in made:
        yield blamed(plant, planting.planted, together, planting.problems.get(plant.name))
    yield unplanted(made, planting.planted, together)


def added(one: Blamed, other: Blamed) -> Blamed:
    """The same plant in two recordings."""
    return replace(
        one,
        planted=one.planted + other.planted,
        hit=one.hit + other.hit,
        first=one.first + other.first,
        others=tuple(dict.fromkeys(one.others + other.others)),
        problem=one.problem or other.problem,
    )


def _times(plant: Plant, times: int) -> int:
    return 1 if plant.seldom else times


def _standing(stack: ExitStack, grouped: bool) -> tuple[Settings, Hierarchy | None]:
    """A tracefs instance, and a group, if that can be made."""
    groups = find("cpu", Root()) if grouped else None
    for there in (groups, None):
        settings = Settings(SystemSettings(), Root(), traced=True, more=_group(there))
        try:
            return stack.enter_context(settings), there
        except RtmeterError as error:
            if error.field != "conditions.group":
                raise
    raise AssertionError("without a group none is refused")


def _group(groups: Hierarchy | None) -> Iterator[Change]:
    """The group whose quota the loop meets."""
    if groups is None:
        return
    remedy = "see whether the machine lets rtmeter make cgroups"
    if groups.version == 2:
        yield Change("group", Controller(f"{groups.mount}/cgroup.subtree_control", "cpu"), "+", remedy)
    yield Change("group", Cgroup(group_in(groups)), MADE, remedy)


class _Planting:
    """What was planted when, what could not be and why, and when the kernel's events were recorded."""

    def __init__(self, recorder: Recorder, times: int, say: Callable[[str], None]) -> None:
        self._recorder, self._times, self._say = recorder, times, say
        self.planted: list[tuple[Plant, Window]] = []
        self.recorded: list[Window] = []
        self.problems: dict[str, str] = {}

    def plant(self, plants: Sequence[Plant], scene: Scene) -> None:
        """Each of them, all in turn, with pauses in which nothing is recorded."""
        with ExitStack() as stack:
            ready = list(self._ready(plants, scene, stack))
            for n in range(self._times):
                for plant, started in ready:
                    if n < _times(plant, self._times):
                        self._say(plant.name)
                        self._make(plant, scene, started)

    def _ready(
        self, plants: Sequence[Plant], scene: Scene, stack: ExitStack
    ) -> Iterator[tuple[Plant, Sequence[Disturbance]]]:
        """What they take: all is started before any of it is waited for."""
        begun: list[tuple[Plant, Sequence[Disturbance]]] = []
        for plant in plants:
            try:
                started = plant.starts(scene)
            except RtmeterError as error:
                self.problems[plant.name] = error.message
                continue
            for one in started:
                stack.push(one)
            begun.append((plant, started))
        for plant, started in begun:
            try:
                for one in started:
                    one.__enter__()
            except RtmeterError as error:
                self.problems[plant.name] = error.message
            else:
                yield plant, started

    def _make(self, plant: Plant, scene: Scene, started: Sequence[Disturbance]) -> None:
        with self._recording():
            try:
                self.planted.append((plant, plant.make(scene, started)))
            except RtmeterError as error:
                self.problems[plant.name] = error.message

    def at_work(self, release: Release) -> bool:
        """Whether anything was planted about then."""
        return any(within(release, window, BLOW_NS) for _, window in self.planted)

    @contextmanager
    def _recording(self) -> Iterator[None]:
        begin_ns = self._recorder.resume()
        time.sleep(_BESIDE_S)
        yield
        time.sleep(_BESIDE_S)
        self.recorded.append((begin_ns + _SETTLED_NS, self._recorder.pause()))


def releases_of(releases_ns: Sequence[int], stamps_ns: Sequence[int]) -> list[Release]:
    """Late by LATE_NS is late."""
    return [
        Release(k, release, stamp, stamp - release > LATE_NS)
        for k, (release, stamp) in enumerate(zip(releases_ns, stamps_ns, strict=True))
    ]


def _asked(planting: _Planting, releases: Sequence[Release]) -> dict[Release, Span]:
    """Which releases are explained, and what of the recording tells of each: the worst of each plant, what
    was late for long, and of those in time some, near others that are asked for, chosen at random."""
    whole: dict[Release, Window] = {}
    for window in planting.recorded:
        inside = (one for one in releases if window[0] <= one.release_ns and one.stamp_ns <= window[1])
        whole |= dict.fromkeys(inside, window)
    late = [one for one in whole if one.late]
    asked = {one for one in late if one.lateness_ns > _UNPLANTED_LATE_NS and not planting.at_work(one)}
    for _, window in planting.planted:
        asked |= set(sorted((one for one in late if within(one, window)), key=_lateness)[-1:])
    spans = {one: _around(one, whole[one]) for one in asked}
    near = sorted({(one.from_ns, one.to_ns) for one in spans.values()})
    in_time = {
        one: span
        for one in whole
        if not one.late
        for span in near
        if span[0] + _SETTLED_NS <= one.release_ns and one.stamp_ns + _SETTLED_NS <= span[1]
    }
    compared = random.Random(0).sample(sorted(in_time), min(len(in_time), _MOST_COMPARED))
    spans |= {one: Span(one.k, *in_time[one], late=False) for one in compared}
    return {one: spans[one] for one in sorted(spans)}


def _around(release: Release, window: Window) -> Span:
    span = span_of(release.k, None, release.release_ns, release.stamp_ns, late=True)
    return span._replace(from_ns=max(span.from_ns, window[0]), to_ns=min(span.to_ns, window[1]))


def _lateness(release: Release) -> int:
    return release.lateness_ns


def blamed(
    plant: Plant, planted: Sequence[tuple[Plant, Window]], found: Explanation, problem: str | None = None
) -> Blamed:
    """What was blamed for the latest release of each time that it was planted."""
    windows = [window for one, window in planted if one.name == plant.name]
    worst = [_worst(found, window) for window in windows]
    hits = [(each, each.cause.key) for each in worst if each is not None and each.cause]
    first = sum(key == plant.expected and each.faults >= plant.faults for each, key in hits)
    others = tuple(dict.fromkeys(key for _, key in hits if key != plant.expected))
    return Blamed(plant.name, plant.done, len(windows), len(hits), first, others, problem)


def _worst(found: Explanation, window: Window) -> Explained | None:
    late = [each for each in found.releases if each.cause and within(each.release, window)]
    return max(late, key=lambda each: each.release.lateness_ns, default=None)


def unplanted(made: Sequence[Plant], planted: Sequence[tuple[Plant, Window]], found: Explanation) -> Blamed:
    """Late releases where nothing was planted, and how many of them were blamed on a plant. What plants
    comes and goes at its priority, too."""
    elsewhere = [
        each.cause.key
        for each in found.releases
        if each.cause
        and each.release.lateness_ns > _UNPLANTED_LATE_NS
        and not any(within(each.release, window, BLOW_NS) for _, window in planted)
    ]
    expected = {plant.expected for plant in made}
    first = sum(key in expected for key in elsewhere)
    others = tuple(dict.fromkeys(elsewhere))
    return Blamed(UNPLANTED, "no plant at the time", 0, len(elsewhere), first, others)


def within(release: Release, window: Window, beside_ns: int = 0) -> bool:
    return window[0] - PERIOD_NS - beside_ns <= release.release_ns <= window[1] + beside_ns
