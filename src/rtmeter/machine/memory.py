"""Memory that may not be there when it is touched, and what this process may do about it."""

from __future__ import annotations

import re
from collections.abc import Iterator

from rtmeter.machine.finding import TUNED_REALTIME, Finding, Kind
from rtmeter.machine.reading import Machine
from rtmeter.machine.surroundings import container

THP = Kind(
    "transparent_hugepages",
    "medium",
    "the kernel clears and copies two megabytes where a page would do, in a page fault or behind the "
    "back of the process, whose access waits",
    f"Linux Documentation/admin-guide/mm/transhuge.rst; {TUNED_REALTIME}",
    "echo never > /sys/kernel/mm/transparent_hugepage/enabled",
)
SWAP = Kind(
    "swap",
    "medium",
    "a page that was swapped out is read from disk when it is touched; locked memory is spared",
    "mlockall(2)",
    "swapoff -a, and measure with --lock-memory",
)
SAME_PAGES = Kind(
    "same_page_merging",
    "medium",
    "pages of the same content are merged and copied again when written to",
    "Linux Documentation/admin-guide/mm/ksm.rst",
    "echo 2 > /sys/kernel/mm/ksm/run",
)
RTPRIO = Kind(
    "rtprio_limit",
    "high",
    "the limit refuses the priority intended",
    "getrlimit(2), RLIMIT_RTPRIO; sched(7)",
)
MEMLOCK = Kind(
    "memlock_limit",
    "medium",
    "memory beyond the limit cannot be locked: page faults come while it is measured",
    "getrlimit(2), RLIMIT_MEMLOCK; mlockall(2)",
    "add to /etc/security/limits.d/realtime.conf: @realtime - memlock unlimited; log in again",
)

KINDS = (THP, SWAP, SAME_PAGES, RTPRIO, MEMLOCK)

_THP = "/sys/kernel/mm/transparent_hugepage/enabled"
_KSM = "/sys/kernel/mm/ksm/run"
_LIMITS = "/proc/self/limits"
_CAP_IPC_LOCK, _CAP_SYS_NICE = 14, 23
_ALL_USERS = "0 0 4294967295"
"""The map of the first user namespace: root of another one (a rootless container) is root of none of this
(user_namespaces(7)), whatever it reads of its capabilities."""


def check(machine: Machine) -> Iterator[Finding]:
    """Pages, swap and the limits of this process."""
    yield from _huge_pages(machine)
    yield from _swap(machine)
    merging = machine.number(_KSM)
    if merging is None and machine.built_with("KSM") is not False:
        yield SAME_PAGES.unknown(machine.why_not(_KSM))
    elif merging == 1:
        yield SAME_PAGES.found(f"{_KSM} is 1")
    yield from _limits(machine)


def _huge_pages(machine: Machine) -> Iterator[Finding]:
    chosen = re.search(r"\[(\w+)\]", machine.text(_THP) or "")
    if chosen is None:
        if machine.built_with("TRANSPARENT_HUGEPAGE") is not False:
            yield THP.unknown(machine.why_not(_THP))
    elif chosen[1] != "never":  # madvise: only for processes that ask
        yield THP.found(chosen[1], grade="info" if chosen[1] == "madvise" else None)


def _swap(machine: Machine) -> Iterator[Finding]:
    table = machine.text("/proc/swaps")
    if table is None:
        if machine.built_with("SWAP") is not False:
            yield SWAP.unknown(machine.why_not("/proc/swaps"))
        return
    devices = [line.split()[0] for line in table.splitlines()[1:]]
    if devices:
        yield SWAP.found(", ".join(devices))


def _limits(machine: Machine) -> Iterator[Finding]:
    limits = machine.text(_LIMITS)
    capabilities = re.search(r"CapEff:\s*([0-9a-f]+)", machine.text("/proc/self/status") or "")
    if limits is None or capabilities is None:
        for kind in (RTPRIO, MEMLOCK):
            yield kind.unknown(machine.why_not(_LIMITS if limits is None else "/proc/self/status"))
        return
    within = (machine.text("/proc/self/uid_map") or _ALL_USERS).split() != _ALL_USERS.split()
    has = 0 if within else int(capabilities[1], 16)
    priority = _limit(limits, "Max realtime priority")
    policy = machine.intent.scheduling
    if policy.policy != "other" and not has >> _CAP_SYS_NICE & 1:
        if policy.policy == "deadline":
            yield RTPRIO.found("no CAP_SYS_NICE, which the deadline policy needs", fix="run as root")
        elif priority is not None and priority < policy.priority:
            line = f"@realtime - rtprio {policy.priority}"
            fix = f"add to /etc/security/limits.d/realtime.conf: {line}; log in again"
            if container(machine):  # its limits are those it was started with
                fix = f"start the container with --cap-add SYS_NICE --ulimit rtprio={policy.priority}"
            yield RTPRIO.found(f"RLIMIT_RTPRIO is {priority}, and {policy} is intended", fix=fix)
    locked = _limit(limits, "Max locked memory")
    if locked is not None and not has >> _CAP_IPC_LOCK & 1:
        fix = MEMLOCK.fix
        if container(machine):
            fix = "start the container with --cap-add IPC_LOCK --ulimit memlock=-1"
        yield MEMLOCK.found(f"RLIMIT_MEMLOCK is {locked:,} bytes", fix=fix)


def _limit(limits: str, name: str) -> int | None:
    """The soft limit; None: unlimited."""
    match = re.search(rf"^{name}\s+(\d+)", limits, re.MULTILINE)
    return int(match[1]) if match else None
