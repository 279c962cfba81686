"""Planted causes of lateness → whether an explanation names each, and none where nothing was planted."""

from __future__ import annotations

import os
import tempfile
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from rtmeter.campaign.condition_options import SystemSettings
from rtmeter.conditions.settings import Settings
from rtmeter.errors import RtmeterError
from rtmeter.explain.causes import Explanation, Release, explain
from rtmeter.explain.segments import Key
from rtmeter.host.root import Root
from rtmeter.machine import Intent
from rtmeter.model import SERVED
from rtmeter.samples import read_log
from rtmeter.selftest.disturbance import Disturbance
from rtmeter.selftest.measuring import PERIOD_NS, RunningMeasurement, measuring
from rtmeter.selftest.plants import STARVING_NS
from rtmeter.selftest.sight import Window
from rtmeter.trace.recorder import Recorder

BLOW_NS = 20_000_000
TIMES, SELDOM = 10, 5
"""How long each plant lasts, how often it is made, and of how many times once if it takes long."""

UNPLANTED = "nothing"

LATE_NS = 1_000_000
"""By how much the latest release of a plant is late at least, or it did not hit."""

_UNPLANTED_LATE_NS = BLOW_NS // 2
"""Where nothing was planted: what this machine does by itself is mostly shorter."""

_PAUSE_S = 0.05


@dataclass(frozen=True, slots=True)
class Plant:
    """``expected``: what is to be blamed; ``make``: does it once and says when; ``seldom``: it takes long."""

    name: str
    done: str
    expected: Key
    make: Callable[[RunningMeasurement], Window]
    seldom: bool = False


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


def plants(priority: int) -> tuple[Plant, ...]:
    """Those that can be made of any thread; the measured one has that priority."""
    above, ms, starving_s = min(99, priority + 1), BLOW_NS // 1_000_000, STARVING_NS / 1e9
    hog, starved = Key("displaced", "rtm-hog"), f"fifo:1 and a normal task, busy for {starving_s:g} s"
    return (
        Plant("above", f"fifo:{above}, busy for {ms} ms", hog._replace(relation="above"), _hog(above)),
        Plant("equal", f"fifo:{priority}, busy for {ms} ms", hog._replace(relation="equal"), _hog(priority)),
        Plant("syscall", f"a normal task, {ms} ms in setgroups", below("rtm-syscall"), _there("syscall")),
        Plant(
            "interrupt",
            "5,000 timers at once",
            Key("interrupt", "local_timer"),
            _there("interrupt"),
            seldom=True,
        ),
        Plant(
            "softirq",
            f"datagrams to 8,000 sockets, {ms} ms",
            Key("softirq", "NET_RX"),
            _there("softirq"),
            True,
        ),
        Plant("stopped", f"SIGSTOP, SIGCONT after {ms} ms", Key("blocked", "rtm-stop"), _stop),
        Plant("throttled", starved, below("rtm-hog"), _starve, seldom=True),
    )


def below(who: str) -> Key:
    """Less urgent than the measured thread, and on the CPU all the same."""
    return Key("displaced", who, "below")


def _there(kind: str) -> Callable[[RunningMeasurement], Window]:
    """On the measured CPU."""

    def make(running: RunningMeasurement) -> Window:
        with Disturbance(kind, running.cpu, length_ns=BLOW_NS) as disturbance:
            disturbance.go()
            return disturbance.window_ns()

    return make


def _hog(priority: int) -> Callable[[RunningMeasurement], Window]:
    def make(running: RunningMeasurement) -> Window:
        with Disturbance("hog", "fifo", priority, running.cpu, length_ns=BLOW_NS) as task:
            task.go()
            return task.window_ns()

    return make


def _stop(running: RunningMeasurement) -> Window:
    with Disturbance("stop", running.pid, length_ns=BLOW_NS) as stop:
        stop.go()
        return stop.window_ns()


def _starve(running: RunningMeasurement) -> Window:
    """The kernel lets a normal task run before real-time ones, for a while of each second."""
    with (
        Disturbance("hog", "other", 0, running.cpu, length_ns=STARVING_NS) as normal,
        Disturbance("hog", "fifo", 1, running.cpu, length_ns=STARVING_NS) as real_time,
    ):
        normal.go()
        real_time.go()
        return real_time.window_ns()


def blame(intent: Intent, times: int = TIMES) -> list[Blamed]:
    """Measures wake-ups on the first of the intended CPUs (by default the last of this process), records the
    kernel's events, makes each plant several times, and explains what came late. The last says what was
    blamed for late releases where nothing was planted.

    Raises RtmeterError if the intended policy is not fifo, the events cannot be had, or nothing is measured.
    """
    if intent.scheduling.policy != "fifo":
        remedy = "choose fifo:P for the self-test"
        raise RtmeterError("has no equal", field="--scheduling", value=str(intent.scheduling), remedy=remedy)
    cpu = intent.cpus[0] if intent.cpus else max(os.sched_getaffinity(0))
    planted: list[tuple[Plant, Window]] = []
    problems: dict[str, str] = {}
    made = plants(intent.scheduling.priority)
    with ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="rtmeter-")))
        settings = stack.enter_context(Settings(SystemSettings(), Root(), traced=True))
        recorder = Recorder(settings.instance, folder, {cpu}, Root())
        stack.callback(recorder.stop)
        recorder.start()
        with measuring(replace(intent, cpus=(cpu,)), cpu, folder / "probe.rtlog") as running:
            for plant in [
                plant for n in range(times) for plant in made if n % SELDOM == 0 or not plant.seldom
            ]:
                time.sleep(_PAUSE_S)
                try:
                    planted.append((plant, plant.make(running)))
                except RtmeterError as error:
                    problems[plant.name] = error.message
            time.sleep(_PAUSE_S)
        recorder.stop()
        columns = read_log(folder / "probe.rtlog").columns
        found = explain(recorder.trace(), releases_of(columns), running.pid)
    found_again = [blamed(plant, planted, found, problems.get(plant.name)) for plant in made]
    return [*found_again, unplanted(made, planted, found)]


def releases_of(columns: Mapping[str, NDArray[np.int64]]) -> list[Release]:
    """Of a wake-up's log; late by LATE_NS is late."""
    served = columns["status"] == SERVED
    releases, stamps = (columns[name][served].tolist() for name in ("release_ns", "wake_ns"))
    return [
        Release(k, release, stamp, stamp - release > LATE_NS)
        for k, (release, stamp) in enumerate(zip(releases, stamps, strict=True))
    ]


def blamed(
    plant: Plant, planted: Sequence[tuple[Plant, Window]], found: Explanation, problem: str | None = None
) -> Blamed:
    """What was blamed for the latest release of each time that it was planted."""
    windows = [window for one, window in planted if one == plant]
    keys = []
    for window in windows:
        late = [each for each in found.releases if each.cause and _within(each.release, window)]
        worst = max(late, key=lambda each: each.release.lateness_ns, default=None)
        keys += [worst.cause.key] if worst is not None and worst.cause else []
    others = tuple(dict.fromkeys(key for key in keys if key != plant.expected))
    first = sum(key == plant.expected for key in keys)
    return Blamed(plant.name, plant.done, len(windows), len(keys), first, others, problem)


def unplanted(made: Sequence[Plant], planted: Sequence[tuple[Plant, Window]], found: Explanation) -> Blamed:
    """Late releases where nothing was planted, and how many of them were blamed on a plant. What plants
    comes and goes at its priority, too."""
    elsewhere = [
        each.cause.key
        for each in found.releases
        if each.cause
        and each.release.lateness_ns > _UNPLANTED_LATE_NS
        and not any(_within(each.release, window, BLOW_NS) for _, window in planted)
    ]
    expected = {plant.expected for plant in made}
    first = sum(key in expected for key in elsewhere)
    others = tuple(dict.fromkeys(elsewhere))
    return Blamed(UNPLANTED, "no plant at the time", 0, len(elsewhere), first, others)


def _within(release: Release, window: Window, beside_ns: int = 0) -> bool:
    return window[0] - PERIOD_NS - beside_ns <= release.release_ns <= window[1] + beside_ns
