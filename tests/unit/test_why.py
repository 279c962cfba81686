"""Which finding of a check explains a cause."""

from __future__ import annotations

from typing import Any

import pytest

from rtmeter.explain.segments import Key
from rtmeter.judge.why import finding_for


def finding(name: str, grade: str = "high", value: str = "", /, **item: Any) -> dict[str, Any]:
    return {"id": name, "grade": grade, "value": value, "fix": "mend it", "items": [item] if item else []}


FINDINGS = [
    finding("task_at_or_above", name="can_driver", tid=77, scheduling="fifo:90"),
    finding("preemption_model"),
    finding("kernel_not_preempt_rt", "fatal"),
    finding("irq_on_cpu", "medium", "24 eth0 (3 times), 25 nvme0 (1 times)"),
    finding("virtual_machine", "info"),
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
