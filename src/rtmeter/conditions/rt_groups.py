"""Real-time run time for the measured process, on kernels where each cgroup has a share of its own
(CONFIG_RT_GROUP_SCHED, version 1): a new group has none, so no thread in it can be FIFO."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from fractions import Fraction

from rtmeter.conditions.change import Change, refuse
from rtmeter.conditions.isolation import new_group
from rtmeter.conditions.resources import File
from rtmeter.host.cgroups import Hierarchy
from rtmeter.host.root import Root

_RUNTIME, _PERIOD = "cpu.rt_runtime_us", "cpu.rt_period_us"
_REMEDY = (
    "ask for less: all groups under one may have no more than it has; a container is given its share by "
    "`docker run --cpu-rt-runtime`, the machine by conditions.rt_throttling"
)


def rt_runtime(runtime_ns: int, cpus: Hierarchy | None, isolated: str, root: Root) -> Iterator[Change]:
    """A group with that run time a second; the groups above it get what that takes.

    ``isolated``: the cpuset that the measured process has already, which may be this very group, or "".
    """
    if cpus is None or cpus.version == 2 or root.read(f"{cpus.own}/{_RUNTIME}") is None:
        remedy = "leave it out: real-time threads need no share of a group here"
        raise refuse("rt_runtime", "this kernel has no such groups", remedy)
    wanted = Fraction(runtime_ns, 10**9)
    for group, below in itertools.pairwise([*cpus.above(), cpus.group]):
        others = sum((_share(child, root) for child in _children(group, root) if child != below), Fraction())
        if _share(group, root) < others + wanted:
            yield _give(group, others + wanted, root)
    if cpus.group != isolated:
        yield from new_group("rt_runtime", cpus, root)
    given = _give(cpus.group, wanted, root)
    yield Change(given.setting, given.resource, given.value, given.remedy, covered=True)


def _give(group: str, share: Fraction, root: Root) -> Change:
    runtime_us = -(-(share * _period_us(group, root)) // 1)
    return Change("rt_runtime", File(f"{group}/{_RUNTIME}"), str(int(runtime_us)), _REMEDY)


def _share(group: str, root: Root) -> Fraction:
    """Below zero is without a limit, which the kernel counts as all there is."""
    runtime_us = int(root.read(f"{group}/{_RUNTIME}") or 0)
    return Fraction(runtime_us, _period_us(group, root)) if runtime_us >= 0 else Fraction(1)


def _period_us(group: str, root: Root) -> int:
    return int(root.read(f"{group}/{_PERIOD}") or 1_000_000)


def _children(group: str, root: Root) -> list[str]:
    return [file.rpartition("/")[0] for file in root.glob(f"{group}/*/{_RUNTIME}")]
