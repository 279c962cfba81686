"""Which finding of a check explains a cause."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any, cast

import pytest

from rtmeter.explain.causes import Ranked
from rtmeter.explain.facts import CauseFacts
from rtmeter.explain.passed_over import Throttled
from rtmeter.explain.segments import Key
from rtmeter.judge.advice import advice
from rtmeter.judge.mends import finding_for, mends
from rtmeter.judge.verdict import Misses, judge_misses
from rtmeter.judge.why import stampless, stampless_words
from rtmeter.machine.middleware import BESIDE
from rtmeter.model import Requirement
from rtmeter.results.record import CellRecord


def finding(name: str, grade: str = "high", value: str = "", /, **item: Any) -> dict[str, Any]:
    return {"id": name, "grade": grade, "value": value, "fix": "mend it", "items": [item] if item else []}


def measured(
    findings: list[dict[str, Any]] | None = None, *, virtual: bool = False, measurement: str = "loop"
) -> CellRecord:
    facts = {"machine": {"cpus_online": 4}, "virtual_machine": virtual, "measurement": measurement}
    return cast(CellRecord, SimpleNamespace(findings=findings, **facts))


FINDINGS = [
    finding("task_at_or_above", name="can_driver", tid=77, scheduling="fifo:90"),
    finding("preemption_model"),
    finding("kernel_not_preempt_rt", "fatal"),
    finding("irq_on_cpu", "medium", "24 eth0 (3 times)", irq=24, name="eth0"),
    finding("virtual_machine", "info"),
    finding("cpu_not_isolated", "medium"),
    finding("steal"),
]


@pytest.mark.parametrize(
    ("key", "expected"),
    [
        (Key("displaced", "can_driver", "above"), "task_at_or_above"),
        (Key("displaced", "can_driver", "equal"), "task_at_or_above"),
        (Key("displaced", "driver", "above"), None),
        (Key("displaced", "logger", "below"), "preemption_model"),
        (Key("held_off", "logger"), "kernel_not_preempt_rt"),
        (Key("interrupt", "eth0"), "irq_on_cpu"),
        (Key("interrupt", "local_timer"), None),
        (Key("softirq", "SCHED"), "cpu_not_isolated"),
        (Key("softirq", "NET_RX"), None),
        (Key("outside"), "steal"),
        (Key("blocked", "eth0"), None),
        (Key("own"), None),
        (Key("unknown"), None),
    ],
)
def test_a_cause_points_at_what_explains_it_and_at_nothing_else(key: Key, expected: str | None) -> None:
    found = finding_for(key, FINDINGS)
    assert (found["id"] if found else None) == expected
    assert finding_for(key, []) is None


def test_what_is_less_urgent_than_a_normal_task_shares_its_cpu_and_no_preemption_mends_that() -> None:
    findings = [*FINDINGS, finding("normal_policy")]
    below = finding_for(Key("displaced", "logger", "below"), findings)
    assert below and below["id"] == "normal_policy"
    found = finding_for(Key("displaced", "can_driver", "above"), findings)
    assert found and found["id"] == "task_at_or_above"


@pytest.mark.parametrize(
    ("category", "throttled", "expected"),
    [
        ("displaced", Throttled.REAL_TIME, "rt_throttling"),
        ("displaced", Throttled.DEADLINE, None),
        ("dispatch", Throttled.REAL_TIME, "rt_throttling"),
        ("dispatch", Throttled.NORMAL, "cpu_quota"),
        ("dispatch", Throttled.DEADLINE, None),
        ("dispatch", None, "deep_idle_states"),
    ],
)
def test_what_is_advised_where_time_was_used_up_is_by_the_policy_of_who_had_it(
    category: str, throttled: Throttled | None, expected: str | None
) -> None:
    """A control group's quota binds normal threads, real-time throttling those of fifo and rr."""
    findings = [*FINDINGS, *map(finding, ("cpu_quota", "rt_throttling", "deep_idle_states"))]
    key = Key(category, "logger", "below") if category == "displaced" else Key(category)
    found = finding_for(key, findings, throttled=throttled)
    assert (found["id"] if found else None) == expected


IDLE = ("deep_idle_states", "cpu_quota", "virtual_machine")


@pytest.mark.parametrize(
    ("category", "found", "releases", "lateness_ns", "expected"),
    [
        ("armed_later", ("normal_policy",), 3, 300_002, "normal_policy"),
        ("armed_later", ("normal_policy",), 3, 300_003, None),
        ("dispatch", IDLE, 2, 1_999_999, "deep_idle_states"),
        ("dispatch", IDLE, 2, 2_000_000, "cpu_quota"),
        ("dispatch", IDLE[::2], 2, 2_000_000, "virtual_machine"),
        ("dispatch", IDLE[:1], 2, 2_000_000, None),
    ],
)
def test_what_a_cause_cannot_take_so_long_for_is_not_advised(
    category: str, found: tuple[str, ...], releases: int, lateness_ns: int, expected: str | None
) -> None:
    """More than the slack of a normal thread's timers, or than any idle state takes to leave."""
    said = mends(Ranked(Key(category), releases, lateness_ns), measured([finding(one) for one in found]))
    assert (f"see {expected}: mend it" in said) if expected else "see" not in said


@pytest.mark.parametrize(
    ("name", "listed", "who", "expected"),
    [
        ("task_at_or_above", "motor ctl", "motor ctl", True),
        ("task_at_or_above", "motor ctl", "motor", False),
        ("task_at_or_above", "motor", "[motor]", True),
        ("task_at_or_above", "motor [left]", "motor [left]", True),
        ("task_at_or_above", "motor [left", "motor [left]", False),
        ("irq_on_cpu", "ahci[0000:00:17.0]", "ahci[0000:00:17.0]", True),
        ("irq_on_cpu", "i801_smbus, ehci_hcd:usb1", "i801_smbus", True),
        ("irq_on_cpu", "i801_smbus, ehci_hcd:usb1", "ehci_hcd:usb1", True),
        ("irq_on_cpu", "PCIe PME", "PCIe PME", True),
        ("irq_on_cpu", "PCIe PME", "PME", False),
    ],
)
def test_a_finding_is_of_whom_it_lists_by_the_whole_name(
    name: str, listed: str, who: str, expected: bool
) -> None:
    key = Key("interrupt", who) if name == "irq_on_cpu" else Key("displaced", who, "above")
    assert (finding_for(key, [finding(name, name=listed)]) is not None) is expected


RT_90, RT_80, NICE_0 = 9, 19, 120
HOG = CauseFacts(tid=77, priority=RT_90, cpu=1, waiting=RT_80)
MOVE = "move hog (thread 77, real-time priority 90) off CPU 1 (taskset -pc 0,2-3 77)"
LOCKED = "touch all memory before the loop, and lock it: mlockall(MCL_CURRENT | MCL_FUTURE)"
HELD = "if it is a lock that holder held, make it one of PTHREAD_PRIO_INHERIT, and hold it for less long"


def ranked(category: str, who: str | None = None, relation: str | None = None, **told: Any) -> Ranked:
    of, by = (told.pop(name, None) for name in ("of", "ended_by"))
    return Ranked(Key(category, who, relation, of, by), 2, 800_000, **told)


@pytest.mark.parametrize(
    ("cause", "said"),
    [
        (
            ranked("displaced", "hog", "above", facts=HOG),
            f"{MOVE}, or give this thread a real-time priority above it",
        ),
        (
            ranked("displaced", "hog", "above", of="server", facts=HOG),
            f"{MOVE}, or give server a real-time priority above it",
        ),
        (
            ranked("displaced", "hog", "equal", facts=CauseFacts(priority=NICE_0, waiting=NICE_0)),
            "move hog (nice 0) to another CPU, or give this thread a real-time priority",
        ),
        (
            ranked("displaced", "hog", "above", facts=HOG._replace(priority=0)),
            "move hog (thread 77, real-time priority 99) off CPU 1 (taskset -pc 0,2-3 77)",
        ),
        (
            ranked("displaced", "[irq/24-eth0]", "above", facts=HOG),
            "move [irq/24-eth0] (real-time priority 90) off CPU 1 (echo 0,2-3 > "
            "/proc/irq/24/smp_affinity_list), or give this thread a real-time priority above it",
        ),
        (
            ranked("displaced", "[ktimers/1]", "equal", facts=HOG),
            "give this thread a real-time priority above it",
        ),
        (
            ranked("displaced", "[kworker/u8:1]", "above", facts=HOG._replace(priority=100, waiting=NICE_0)),
            "move [kworker/u8:1] (nice -20) off CPU 1 "
            "(echo 0000000d > /sys/devices/virtual/workqueue/cpumask), "
            "or give this thread a real-time priority",
        ),
        (
            ranked("displaced", "[kworker/R-rcu_g]", "above", facts=HOG._replace(priority=100)),
            "give this thread a real-time priority",
        ),
        (
            ranked("displaced", "[irq/24-x] (user)", "above", facts=HOG),
            f"{MOVE.replace('hog', '[irq/24-x] (user)')}, or give this thread a real-time priority above it",
        ),
        (ranked("displaced", "[migration/1]", "above", facts=HOG._replace(priority=-2)), ""),
        (
            ranked("displaced", "hog", "above", facts=HOG, lenders=(("planner", 800_000),)),
            "let hog hold the lock for less long that planner waits for",
        ),
        (ranked("displaced", "hog", "below", facts=HOG._replace(priority=NICE_0)), ""),
        (
            ranked("displaced", "hog", "below", of="server", facts=CauseFacts(priority=130, waiting=NICE_0)),
            "give server a real-time priority: normal tasks share the CPU",
        ),
        (
            ranked("displaced", "hog", "below", throttled_ns=800_000, throttled_as=Throttled.DEADLINE),
            "give this thread more runtime as a deadline thread",
        ),
        (ranked("dispatch", throttled_ns=800_000, throttled_as=Throttled.NORMAL), ""),
        (ranked("own", faults=20), LOCKED),
        (ranked("own_kernel", "read", faults=20), LOCKED),
        (ranked("own", faults=19), "see what this thread does then (perf record), and give it less to do"),
        (ranked("own", of="server"), "see what server does then (perf record), and give it less to do"),
        (
            ranked("own_kernel", "munmap"),
            "let this thread call munmap before its loop, or another thread of less priority",
        ),
        (ranked("own_kernel", "clock_nanosleep"), ""),
        (ranked("blocked", "holder", facts=CauseFacts(88, call="futex", asked=0)), HELD),
        (ranked("blocked", "holder", facts=CauseFacts(88, call="futex")), HELD),
        (
            ranked("blocked", "holder", facts=CauseFacts(88, call="futex", asked=6)),
            "let holder hold the lock for less long",
        ),
        (ranked("blocked", "waker", facts=CauseFacts(88, call="futex", asked=9)), ""),
        (ranked("blocked", "waker", facts=CauseFacts(88, call="clock_nanosleep")), ""),
        (
            ranked("blocked", "[jbd2/vda-8]", facts=CauseFacts(88, call="fsync")),
            "let this thread call fsync before its loop, or another thread of less priority",
        ),
        (
            ranked("blocked", "python3", facts=CauseFacts(88, stopped=True)),
            "find what stops this thread: a debugger, or a signal (perf record -a -e signal:signal_generate)",
        ),
        (
            ranked("blocked", "BLOCK", ended_by="softirq"),
            "let a thread of less priority read and write files",
        ),
        (ranked("blocked", "BLOCK"), ""),
        (ranked("blocked", "NET_RX", ended_by="softirq"), ""),
        (
            ranked("interrupt", "eth0"),
            "move it to another CPU: echo CPUS > /proc/irq/N/smp_affinity_list, N of eth0 in "
            "/proc/interrupts",
        ),
        (ranked("interrupt", "local_timer"), ""),
        (ranked("softirq", "RCU"), "boot with rcu_nocbs= and its CPU"),
        (
            ranked("outside", of="server"),
            "look for firmware and hypervisors that take the CPU: rtla hwnoise, or hwlatdetect",
        ),
        (ranked("unknown"), ""),
    ],
)
def test_where_no_finding_fits_what_the_trace_tells_is_advised(cause: Ranked, said: str) -> None:
    assert mends(cause, measured()) == (f"; {said}" if said else "")


def test_a_finding_comes_before_what_the_trace_tells() -> None:
    cause = ranked("displaced", "can_driver", "above")
    assert mends(cause, measured(FINDINGS)) == "; see task_at_or_above: mend it"
    said = mends(ranked("own"), measured(virtual=True))
    assert said.endswith("less to do; a hypervisor that has the CPU meanwhile looks the same")


THREADS = [finding("task_at_or_above", name=name, tid=tid) for name, tid in (("hog", 77), ("python3", 5))]
DEMOTE = {**THREADS[0], "fix": "chrt --other --pid 0 76; chrt --other --pid 0 77"}
RAISE = "or give this thread a real-time priority above it"
NORMAL = CauseFacts(77, RT_90, 1, NICE_0)


@pytest.mark.parametrize(
    ("who", "facts", "found", "said"),
    [
        ("hog", HOG, DEMOTE, f"see task_at_or_above: {DEMOTE['fix']}"),
        ("hog", HOG, {**DEMOTE, "fix": "chrt --other --pid 0 777"}, f"see task_at_or_above: {MOVE}, {RAISE}"),
        ("python3", HOG, THREADS[1], f"{MOVE.replace('hog', 'python3')}, {RAISE}"),
        (
            "[irq/24-eth0]",
            HOG,
            {**finding("kernel_thread_at_or_above", name="irq/24-eth0", tid=77), "fix": ""},
            "see kernel_thread_at_or_above: move [irq/24-eth0] (real-time priority 90) off CPU 1 "
            f"(echo 0,2-3 > /proc/irq/24/smp_affinity_list), {RAISE}",
        ),
        (
            "hog",
            HOG,
            {**finding("middleware_thread_at_or_above", name="hog", tid=77), "fix": BESIDE.fix},
            f"see middleware_thread_at_or_above: {BESIDE.fix}",
        ),
        ("hog", NORMAL, finding("normal_policy"), f"{MOVE}, {RAISE}"),
        (
            "hog",
            NORMAL._replace(priority=19),
            finding("normal_policy"),
            f"{MOVE.replace('90', '80')}, {RAISE}",
        ),
        ("hog", NORMAL._replace(priority=20), finding("normal_policy"), "see normal_policy: mend it"),
        ("hog", NORMAL._replace(priority=None), finding("normal_policy"), "see normal_policy: mend it"),
    ],
)
def test_a_findings_command_is_of_the_very_thread_and_mends_it(
    who: str, facts: CauseFacts, found: dict[str, Any], said: str
) -> None:
    """Not of another of that name, nor of others alone; fifo:80 is not before fifo:90."""
    assert mends(ranked("displaced", who, "above", facts=facts), measured([found])) == f"; {said}"


@pytest.mark.parametrize(
    ("cause", "said"),
    [
        (ranked("own"), "look for firmware and hypervisors that take the CPU"),
        (ranked("own", faults=20), LOCKED),
        (ranked("armed_later"), "give this thread a real-time priority"),
        (ranked("own", of="server"), "see what server does then"),
    ],
)
def test_of_a_wakeup_whose_loop_is_rtmeters_own_nobody_is_told_to_give_it_less_to_do(
    cause: Ranked, said: str
) -> None:
    assert mends(cause, measured(measurement="wakeup")).startswith(f"; {said}")


@pytest.mark.parametrize("key", [("softirq", "NET_RX"), ("softirq", "RCU"), ("interrupt", "eth0")])
def test_nothing_is_moved_to_another_cpu_where_there_is_none(key: tuple[str, str]) -> None:
    assert advice(ranked(*key), 2, virtual=False) is not None
    assert advice(ranked(*key), 1, virtual=False) is None
    assert advice(ranked("softirq", "BLOCK"), 1, virtual=False) is not None


@pytest.mark.parametrize(
    ("category", "relation", "waiting", "expected"),
    [
        ("outside", None, None, "steal"),
        ("displaced", "below", RT_80, "preemption_model"),
        ("displaced", "below", NICE_0, None),
        ("displaced", "above", RT_80, None),
    ],
)
def test_of_another_on_a_messages_path_findings_of_the_whole_machine_say_something(
    category: str, relation: str | None, waiting: int | None, expected: str | None
) -> None:
    key = Key(category, "can_driver" if relation else None, relation, "server")
    found = finding_for(key, [*FINDINGS, finding("normal_policy")], facts=CauseFacts(waiting=waiting))
    assert (found["id"] if found else None) == expected


@pytest.mark.parametrize(
    ("key", "throttled", "names", "expected"),
    [
        (Key("displaced", "x", "below"), Throttled.REAL_TIME, ("rt_throttling", "rt_group_limit"), 1),
        (Key("displaced", "x", "below"), Throttled.REAL_TIME, ("fair_server",), 0),
        (Key("dispatch"), Throttled.REAL_TIME, ("rt_group_limit",), 0),
        (Key("dispatch"), Throttled.REAL_TIME, ("fair_server",), None),
        (Key("outside"), None, ("steal", "emulated_processor", "virtual_machine"), 2),
        (Key("outside"), None, ("steal", "emulated_processor"), 1),
        (Key("timer_idle"), None, ("virtual_machine", "deep_idle_states"), 1),
        (Key("timer_idle"), None, ("virtual_machine",), 0),
        (Key("displaced", "x", "below"), None, ("kernel_not_preempt_rt", "preemption_model"), 1),
        (Key("softirq", "RCU"), None, ("cpu_not_isolated",), None),
    ],
)
def test_of_several_findings_the_likeliest_explains_it(
    key: Key, throttled: Throttled | None, names: tuple[str, ...], expected: int | None
) -> None:
    found = finding_for(key, map(finding, names), throttled=throttled)
    assert (found and found["id"]) == (None if expected is None else names[expected])
    unknown = [finding(name, "unknown") for name in names]
    assert finding_for(key, unknown, throttled=throttled) is None


def test_a_finding_is_named_without_a_command_where_it_has_none_and_with_why_no_nice_value_helps() -> None:
    assert mends(ranked("outside"), measured([{**finding("steal"), "fix": ""}])) == "; see steal"
    said = mends(ranked("displaced", "logger", "below"), measured([finding("normal_policy")]))
    assert said.startswith("; see normal_policy (normal tasks share the CPU") and said.endswith("): mend it")


def test_on_a_machine_whose_cpus_are_not_known_nobody_is_moved_to_another() -> None:
    record = cast(CellRecord, SimpleNamespace(**vars(measured()) | {"machine": {"cpus_online": None}}))
    cause = ranked("displaced", "hog", "above", facts=HOG)
    assert mends(cause, record) == f"; {RAISE.removeprefix('or ')}"


@pytest.mark.parametrize(
    ("late", "rest", "said"),
    [
        (3, 6, "of the 9 that missed 6 were skipped or lost and have no stamp"),
        (8, 1, "of the 9 that missed 1 was skipped or lost and has no stamp"),
        (9, 0, ""),
        (20, 0, ""),  # by another deadline than the verdict's
    ],
)
def test_what_missed_and_has_no_stamp_is_counted_apart(late: int, rest: int, said: str) -> None:
    judged = judge_misses(Misses("latency", 100, 3, 4, 2), Requirement(1_000_000))
    record, unjudged = (cast(CellRecord, SimpleNamespace(verdict=one)) for one in (judged, None))
    assert (stampless(record, late), stampless(unjudged, late)) == (rest, 0)
    words = stampless_words(record, late)
    assert (said in words) if said else words == ""
