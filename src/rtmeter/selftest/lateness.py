"""What makes releases late on purpose, and what is to be blamed for each."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass

from rtmeter.errors import RtmeterError
from rtmeter.explain.segments import Key
from rtmeter.host.cgroups import Hierarchy
from rtmeter.host.root import Root
from rtmeter.selftest import loop, looper
from rtmeter.selftest.disturbance import Disturbance
from rtmeter.selftest.loop import PlantedLoop
from rtmeter.selftest.plants import STARVING_NS
from rtmeter.selftest.sight import Window

BLOW_NS = 20_000_000
"""How long most plants last."""

_QUOTA_US, _QUOTA_PERIOD_US = 1_000, 20_000
_MOST_SHARES, _MOST_WEIGHT = 262_144, 10_000
_MOST_FAVOURED, _LESS_FAVOURED = -20, -19
_LET_IN_S = 0.005
_PAGES_A_FAULT = 2
"""At most: the kernel may bring more than the one that is asked for."""


@dataclass(frozen=True)
class Scene:
    """What is measured: the thread ``pid`` on ``cpu`` at fifo:``priority``; another CPU, if there is one; the
    loop, where that is it; and ``groups``, in which group_in() is, if it could be made."""

    pid: int
    cpu: int
    other_cpu: int | None
    priority: int
    loop: PlantedLoop | None = None
    groups: Hierarchy | None = None


def group_in(groups: Hierarchy) -> str:
    """Where the loop meets a quota: a group of this process's own."""
    above = groups.own if groups.version == 1 else groups.mount
    return f"{above}/rtmeter-self-test-{os.getpid()}"


Make = Callable[[Scene, Sequence[Disturbance]], Window]


def let_go(_scene: Scene, started: Sequence[Disturbance]) -> Window:
    """All of them; when the last one was at it."""
    for one in started:
        one.go()
    return [one.window_ns() for one in started][-1]


@dataclass(frozen=True, slots=True)
class Plant:
    """``expected``: what is to be blamed, with so many page ``faults`` at least; ``starts``: the programs
    that it takes; ``make``: does it once and says when; ``seldom``: it takes long; ``in_loop``: the releases
    are those of looper.py, not of a wake-up's probe."""

    name: str
    done: str
    expected: Key
    starts: Callable[[Scene], Sequence[Disturbance]]
    make: Make = let_go
    seldom: bool = False
    in_loop: bool = False
    faults: int = 0


def plants(priority: int) -> tuple[Plant, ...]:
    """Those that can be made of a thread of that priority."""
    above, ms, starving_s = min(99, priority + 1), BLOW_NS // 1_000_000, STARVING_NS / 1e9
    hog, work_ms = Key("displaced", "rtm-hog"), looper.WORK_NS // 1_000_000
    pages = looper.FAULT_BYTES // os.sysconf("SC_PAGESIZE")
    held = f"a lock, held by fifo:1, and fifo:{max(1, priority - 1)} busy for {ms} ms"
    share = f"{_QUOTA_US // 1000} ms of each {_QUOTA_PERIOD_US // 1000} ms"
    return (
        Plant("above", f"fifo:{above}, busy for {ms} ms", hog._replace(relation="above"), _hog(above)),
        Plant("equal", f"fifo:{priority}, busy for {ms} ms", hog._replace(relation="equal"), _hog(priority)),
        Plant("syscall", f"a normal task, {ms} ms in setgroups", _below("rtm-syscall"), _there("syscall")),
        Plant(
            "interrupt",
            "20,000 timers at once",
            Key("interrupt", "local_timer"),
            _there("interrupt"),
            seldom=True,
        ),
        Plant(
            "softirq",
            f"datagrams to 8,000 sockets, {ms} ms",
            Key("softirq", "NET_RX"),
            _there("softirq"),
            seldom=True,
        ),
        Plant("stopped", f"SIGSTOP, SIGCONT after {ms} ms", Key("blocked", "rtm-stop"), _stop),
        Plant(
            "moved",
            f"to another CPU, where fifo:{above} is busy for {ms} ms",
            Key("displaced", "rtm-move", "above"),
            _move,
        ),
        Plant(
            "throttled",
            f"fifo:1 and a normal task, busy for {starving_s:g} s",
            _below("rtm-hog"),
            _starve,
            seldom=True,
        ),
        Plant(
            "fault",
            f"{pages:,} pages touched first",
            Key("own"),
            _none,
            _asked(looper.FAULTS),
            False,
            True,
            pages // _PAGES_A_FAULT,
        ),
        Plant("mutex", held, Key("blocked", "rtm-holder"), _hold("plain"), in_loop=True),
        Plant(
            "mutex_inheriting",
            f"{held}; with priority inheritance",
            Key("blocked", "rtm-lender"),
            _hold("inheriting"),
            in_loop=True,
        ),
        Plant(
            "server",
            f"SIGSTOP of who answers, for {ms} ms",
            Key("blocked", "rtm-stop", of="rtm-server"),
            _stop_server,
            _asking,
            in_loop=True,
        ),
        Plant(
            "quota",
            f"{work_ms} ms of work in a group with {share}",
            _below("rtm-nice"),
            _favoured,
            _throttle,
            in_loop=True,
        ),
    )


def _below(who: str) -> Key:
    """Less urgent than the measured thread, and on the CPU all the same."""
    return Key("displaced", who, "below")


def _none(_scene: Scene) -> Sequence[Disturbance]:
    return ()


def _there(kind: str) -> Callable[[Scene], Sequence[Disturbance]]:
    """On the measured CPU."""
    return lambda scene: [Disturbance(kind, scene.cpu, length_ns=BLOW_NS)]


def _hog(priority: int) -> Callable[[Scene], Sequence[Disturbance]]:
    return lambda scene: [Disturbance("hog", "fifo", priority, scene.cpu, length_ns=BLOW_NS)]


def _stop(scene: Scene) -> Sequence[Disturbance]:
    return [Disturbance("stop", scene.pid, length_ns=BLOW_NS)]


def _move(scene: Scene) -> Sequence[Disturbance]:
    if scene.other_cpu is None:
        raise RtmeterError("there is no other CPU")
    places = scene.pid, scene.cpu, scene.other_cpu
    return [Disturbance("move", *places, min(99, scene.priority + 1), length_ns=BLOW_NS)]


def _starve(scene: Scene) -> Sequence[Disturbance]:
    """The kernel lets a normal task run before real-time ones, for a while of each second."""
    return [
        Disturbance("hog", policy, priority, scene.cpu, length_ns=STARVING_NS)
        for policy, priority in (("other", 0), ("fifo", 1))
    ]


def _the_loop(scene: Scene) -> PlantedLoop:
    assert scene.loop is not None
    return scene.loop


def _asked(what: int) -> Make:
    return lambda scene, _: _the_loop(scene).done(what)


def _hold(lock: str) -> Callable[[Scene], Sequence[Disturbance]]:
    def starts(scene: Scene) -> Sequence[Disturbance]:
        file, about = _the_loop(scene).shared, (scene.priority, scene.cpu)
        return [Disturbance("hold", lock, file, *about, length_ns=BLOW_NS, program=loop.PROGRAM, shared=file)]

    return starts


def _stop_server(scene: Scene) -> Sequence[Disturbance]:
    return [Disturbance("stop", _the_loop(scene).server, length_ns=BLOW_NS)]


def _asking(scene: Scene, started: Sequence[Disturbance]) -> Window:
    """Every release asks the server, also before it is stopped."""
    _the_loop(scene).ask(looper.ASK)
    try:
        time.sleep(_LET_IN_S)
        return let_go(scene, started)
    finally:
        _the_loop(scene).ask(looper.NOTHING)


def _favoured(scene: Scene) -> Sequence[Disturbance]:
    """Who gets most of the CPU when the group may not run."""
    return [Disturbance("nice", _LESS_FAVOURED, scene.cpu, length_ns=10 * BLOW_NS)]


def _throttle(scene: Scene, started: Sequence[Disturbance]) -> Window:
    """The loop, as a normal task in a group with a quota, has more to do than that. Raises RtmeterError if
    the quota did not stop it."""
    root = Root()
    if scene.groups is None:
        raise RtmeterError("this machine has no groups with a quota of the CPU")
    group = group_in(scene.groups)
    try:
        if scene.groups.version == 1:
            root.write(f"{group}/cpu.shares", str(_MOST_SHARES))
            root.write(f"{group}/cpu.cfs_period_us", str(_QUOTA_PERIOD_US))
            root.write(f"{group}/cpu.cfs_quota_us", str(_QUOTA_US))
        else:
            root.write(f"{group}/cpu.weight", str(_MOST_WEIGHT))
            root.write(f"{group}/cpu.max", f"{_QUOTA_US} {_QUOTA_PERIOD_US}")
        before = root.read(f"{group}/cpu.stat")
        with _in_group(scene, group, root):
            started[0].go()
            time.sleep(_LET_IN_S)
            begin_ns, _ = _the_loop(scene).done(looper.WORK)
        end_ns = time.monotonic_ns()
        started[0].window_ns()
    except OSError as error:
        raise RtmeterError(f"{error.filename or group}: {(error.strerror or str(error)).lower()}") from None
    if root.read(f"{group}/cpu.stat") == before:
        raise RtmeterError("the quota stopped nobody")
    return begin_ns, end_ns


@contextmanager
def _in_group(scene: Scene, group: str, root: Root) -> Iterator[None]:
    """The loop is a normal task there, as favoured as one can be."""
    assert scene.groups is not None
    os.sched_setscheduler(scene.pid, os.SCHED_OTHER, os.sched_param(0))
    try:
        os.setpriority(os.PRIO_PROCESS, scene.pid, _MOST_FAVOURED)
        root.write(f"{group}/cgroup.procs", str(scene.pid))
        yield
    finally:
        root.write(f"{scene.groups.own}/cgroup.procs", str(scene.pid))
        os.sched_setscheduler(scene.pid, os.SCHED_FIFO, os.sched_param(scene.priority))
        os.setpriority(os.PRIO_PROCESS, scene.pid, 0)
