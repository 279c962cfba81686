"""Interrupts and the kernel's deferred work on the intended CPUs."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

from rtmeter.host.threads import Task, cpu_set
from rtmeter.machine.finding import PER_CPU_KTHREADS, Finding, Kind
from rtmeter.machine.reading import Machine
from rtmeter.values import cpu_mask

IRQ = Kind(
    "irq_on_cpu",
    "medium",
    "a device's interrupt handler runs before every thread of the CPU that the interrupt goes to",
    f"Linux Documentation/core-api/irq/irq-affinity.rst; {PER_CPU_KTHREADS}",
)
IRQ_BALANCER = Kind(
    "irqbalance",
    "medium",
    "irqbalance moves interrupts onto other CPUs while you measure",
    "irqbalance(1); tuned, profile realtime",
    "systemctl stop irqbalance, or IRQBALANCE_BANNED_CPULIST",
)
WORKQUEUES = Kind(
    "workqueues_on_cpu",
    "medium",
    "unbound work of the kernel may run on the CPU",
    "Linux Documentation/core-api/workqueue.rst",
)
KSOFTIRQD = Kind(
    "ksoftirqd_priority",
    "medium",
    "where interrupts are threads, packets that ksoftirqd handles at normal policy wait behind every "
    "real-time task: a round trip waits with them",
    f"{PER_CPU_KTHREADS}; Gutierrez et al. 2018, arXiv:1809.02595",
)
NETWORK_IRQ = Kind(
    "network_irq_priority",
    "medium",
    "an interrupt thread of the network below the measured thread handles its packets only when that sleeps",
    "Gutierrez et al. 2018, arXiv:1809.02595",
)

KINDS = (IRQ, IRQ_BALANCER, WORKQUEUES, KSOFTIRQD, NETWORK_IRQ)

_FEW = 5
_MANAGED = (
    " (what the kernel directs itself, such as queues of a disk, refuses: boot with isolcpus=managed_irq,…)"
)
_OF_EACH_CPU = re.compile(r"GIC\S*\s+(1[6-9]|2\d|3[01])\s|bcm2836-(timer|pmu)\s|RISC-V INTC\s")
"""Chip and number of interrupts that cannot be directed elsewhere, such as a CPU's own timer: the private
ones of ARM's controller (16 to 31) or of a Raspberry Pi's, those of a RISC-V hart."""

_WORKQUEUES = "/sys/devices/virtual/workqueue/cpumask"


def check(machine: Machine) -> Iterator[Finding]:
    """What interrupts the intended CPUs and, for round trips, who handles the packets."""
    if machine.named_cpus is not None:
        yield from _interrupts(machine, machine.named_cpus)
        yield from _workqueues(machine, machine.named_cpus)
    balancers = [task.tid for task in machine.tasks if task.name == "irqbalance" and task.pid == task.tid]
    if balancers:
        yield IRQ_BALANCER.found(f"irqbalance runs ({balancers[0]})")
    if machine.intent.workload == "roundtrip":
        yield from _network(machine)


def _interrupts(machine: Machine, cpus: frozenset[int]) -> Iterator[Finding]:
    table = machine.text("/proc/interrupts")
    if not table or not machine.root.glob("/proc/irq/*/smp_affinity_list"):
        name = "/proc/irq" if table else "/proc/interrupts"
        yield IRQ.unknown(machine.why_not(name), fix="run rtmeter check on the host")
        return
    found: list[dict[str, Any]] = []
    for number, count, name in _rows(table, cpus):
        folder = f"/proc/irq/{number}"
        places = (machine.text(f"{folder}/{f}") for f in ("effective_affinity_list", "smp_affinity_list"))
        place = next((place for place in places if place), None)
        if cpu_set(place) & cpus:
            found.append({"irq": number, "name": name, "cpus": place, "count": count})
    if found:
        found.sort(key=lambda irq: -irq["count"])
        named = [f"{irq['irq']} {irq['name']} ({irq['count']:,} times)" for irq in found]
        more = f" and {len(named) - _FEW} more" if len(named) > _FEW else ""
        numbers = " ".join(str(irq["irq"]) for irq in found)
        rest = min(machine.online - cpus, default=None)
        fix = f"for irq in {numbers}; do echo {rest} > /proc/irq/$irq/smp_affinity_list; done{_MANAGED}"
        yield IRQ.found(", ".join(named[:_FEW]) + more, fix="" if rest is None else fix, items=tuple(found))


def _rows(table: str, cpus: frozenset[int]) -> Iterator[tuple[int, int, str]]:
    """(number, how often on those CPUs, device) of each interrupt that has a handler, but for those that each
    CPU has of its own. Of a shared one all: two spaces are before the devices, never within."""
    heading, *rows = table.splitlines()
    columns = [int(cpu) for cpu in re.findall(r"CPU(\d+)", heading)]
    for row in rows:
        number, _, rest = row.partition(":")
        words, devices = rest.split(), re.split(r"\s{2,}", rest.rstrip())[-1]
        chip = " ".join(words[len(columns) :])
        if number.strip().isdigit() and len(words) > len(columns) and not _OF_EACH_CPU.match(chip):
            counts = zip(columns, words, strict=False)
            yield int(number), sum(int(count) for cpu, count in counts if cpu in cpus), devices


def _workqueues(machine: Machine, cpus: frozenset[int]) -> Iterator[Finding]:
    mask = machine.text(_WORKQUEUES)
    if mask is None or not re.fullmatch(r"[0-9a-f,]+", mask):
        yield WORKQUEUES.unknown(machine.why_not(_WORKQUEUES))
        return
    bits = int(mask.replace(",", ""), 16)
    here = [cpu for cpu in sorted(cpus) if bits >> cpu & 1]
    if here:
        rest = [cpu for cpu in machine.online - cpus if bits >> cpu & 1]
        fix = f"echo {cpu_mask(rest)} > {_WORKQUEUES}" if rest else ""
        yield WORKQUEUES.found(f"mask {mask} holds CPU {','.join(map(str, here))}", fix=fix)


def _network(machine: Machine) -> Iterator[Finding]:
    """Only where interrupts are threads: else packets are handled before any thread."""
    threads = [task for task in machine.tasks if task.is_kernel and task.name.startswith("irq/")]
    if not threads:
        return
    normal = [task for task in machine.tasks if task.name.startswith("ksoftirqd/") and task.rank == 0]
    if normal:
        yield KSOFTIRQD.found(f"{len(normal)} at normal policy", fix=_as_fifo(60, normal))
    low = [task for task in _of_network(machine, threads) if task.rank < machine.intent.rank]
    if low:
        named = ", ".join(f"{task.name} ({task.tid}, {task.scheduling})" for task in low[:_FEW])
        enough = max(90, machine.intent.scheduling.priority)
        yield NETWORK_IRQ.found(named, fix=_as_fifo(enough, low))


def _of_network(machine: Machine, threads: list[Task]) -> Iterator[Task]:
    """Those of the interrupts that sysfs says a network device has, or that are named after one; a thread's
    own name may be cut off."""
    devices = {name.rpartition("/")[2] for name in machine.root.glob("/sys/class/net/*")} - {"lo"}
    theirs = machine.root.glob("/sys/class/net/*/device/msi_irqs/[0-9]*")
    numbers = {name.rpartition("/")[2] for name in theirs}
    for task in threads:
        number, _, name = task.name.removeprefix("irq/").partition("-")
        name = machine.text(f"/sys/kernel/irq/{number}/actions") or name
        if number in numbers or any(device in name for device in devices):
            yield task


def _as_fifo(priority: int, tasks: list[Task]) -> str:
    ids = " ".join(str(task.tid) for task in tasks)
    return f"for task in {ids}; do chrt --fifo --pid {priority} $task; done"
