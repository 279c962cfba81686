"""Which of the kernel's events are recorded, and what cannot be told where it has not got them."""

from __future__ import annotations

ALWAYS = ("sched/sched_switch", "sched/sched_waking")
"""Without these nothing can be explained."""

_VECTORS = (
    *("local_timer", "reschedule", "call_function", "call_function_single", "irq_work"),
    *("x86_platform_ipi", "error_apic", "spurious_apic", "thermal_apic", "threshold_apic"),
)

VECTORS = {f"irq_vectors/{name}_{end}": name for name in _VECTORS for end in ("entry", "exit")}
"""The interrupts of a CPU of x86 that no driver handles, and their names."""

IPIS = ("ipi/ipi_entry", "ipi/ipi_exit")
"""Those of other architectures."""

OPTIONAL = {
    "sched/sched_wakeup_new": "threads that are born are unknown until they run",
    "sched/sched_pi_setprio": "whose priority was lent to the holder of a lock is not told",
    "irq/irq_handler_entry": "interrupts count as the thread that they interrupt",
    "irq/irq_handler_exit": "interrupts count as the thread that they interrupt",
    "irq/softirq_entry": "softirqs count as the thread that they interrupt",
    "irq/softirq_exit": "softirqs count as the thread that they interrupt",
    "timer/hrtimer_start": "timers that were armed late are not told",
    "timer/hrtimer_expire_entry": "sleeps on timers are told from waits by nothing: they are blocked",
    "timer/hrtimer_expire_exit": "sleeps on timers are told from waits by nothing: they are blocked",
    "raw_syscalls/sys_enter": "the kernel is not told from a program's own code: held_off reads outside",
    "raw_syscalls/sys_exit": "the kernel is not told from a program's own code: held_off reads outside",
}
"""What is lost with each; the others are of one architecture only."""

GROUPS: dict[str, tuple[str, ...]] = {
    "interrupts": ("irq/irq_handler_entry", "irq/irq_handler_exit", *VECTORS, *IPIS),
    "softirqs": ("irq/softirq_entry", "irq/softirq_exit"),
    "timers": ("timer/hrtimer_start", "timer/hrtimer_expire_entry", "timer/hrtimer_expire_exit"),
    "system_calls": ("raw_syscalls/sys_enter", "raw_syscalls/sys_exit"),
    "page_faults": ("exceptions/page_fault_user", "exceptions/page_fault_kernel"),
    "new_threads": ("sched/sched_wakeup_new",),
    "lent_priorities": ("sched/sched_pi_setprio",),
}
"""Those that may be left out, by what a user calls them."""

PROCESSOR = (*VECTORS, *IPIS, "exceptions/page_fault_user", "exceptions/page_fault_kernel")
EVERY = (*ALWAYS, *OPTIONAL, *PROCESSOR)
