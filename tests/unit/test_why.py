"""Which finding of a check explains a cause."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any, cast

import pytest

from rtmeter.explain.causes import Ranked
from rtmeter.explain.passed_over import Throttled
from rtmeter.explain.segments import Key
from rtmeter.judge.verdict import Misses, judge_misses
from rtmeter.judge.why import finding_for, mends, stampless, stampless_words
from rtmeter.model import Requirement
from rtmeter.results.record import CellRecord


def finding(name: str, grade: str = "high", value: str = "", /, **item: Any) -> dict[str, Any]:
    return {"id": name, "grade": grade, "value": value, "fix": "mend it", "items": [item] if item else []}


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
    record = cast(CellRecord, SimpleNamespace(findings=[finding(one) for one in found]))
    said = mends(Ranked(Key(category), releases, lateness_ns), record)
    assert (f"see {expected}: mend it" in said) if expected else said == ""


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
