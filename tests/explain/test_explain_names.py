"""A thread may have any name, also that of an interrupt or a softirq: neither is taken for the other."""

from __future__ import annotations

from pathlib import Path

import pytest
from scripts import WAITS, explained

from rtmeter.explain.document import explanation_json
from rtmeter.explain.segments import Key
from rtmeter.explain.words import words_of, words_of_cause

NAMES = """
0 0 switch 0 10 runnable 19 loop
0 1 switch 0 88 runnable 120 {name}
1000 0 switch 10 0 blocked 120 swapper/0
1300 1 waking 88 10 - 19 loop
1400 0 switch 0 10 runnable 19 loop
2000 0 switch 10 0 blocked 120 swapper/0
2100 1 {kind}_in 88 - - - {name}
2300 1 waking 88 10 - 19 loop
2310 1 {kind}_out 88 - - - {name}
2400 0 switch 0 10 runnable 19 loop
"""


@pytest.mark.parametrize(
    ("kind", "name", "by", "said"),
    [
        ("softirq", "RCU", "softirq", "waited until the softirq RCU (what the kernel frees) woke it"),
        ("softirq", "TASKLET", "softirq", "waited until the softirq TASKLET woke it"),
        ("irq", "eth0", "interrupt", "waited until the interrupt eth0 woke it"),
    ],
)
def test_who_ends_a_wait_is_a_thread_or_the_kernel_whatever_its_name(
    tmp_path: Path, kind: str, name: str, by: str, said: str
) -> None:
    events = NAMES.format(kind=kind, name=name)
    found = explained(tmp_path, events, (0, 1000, 1410, 1), (1, 2000, 2405, 1))
    thread, kernels = found.causes
    assert (thread.key, kernels.key) == (Key("blocked", name), Key("blocked", name, ended_by=by))
    assert [words_of_cause(one) for one in found.causes] == [f"waited until {name} woke it", said]
    printed = explanation_json(found, found.releases)
    assert [row["ended_by"] for row in printed["causes"]] == ["thread", by]
    releases = printed["releases"]
    assert [each["cause"]["ended_by"] for each in releases] == ["thread", by]
    assert [each["segments"][0].get("ended_by") for each in releases] == ["thread", by]
    assert not any("ended_by" in one for each in releases for one in each["segments"][1:])


@pytest.mark.parametrize(
    ("kind", "name", "by"),
    [("softirq", "TIMER", {}), ("irq", "eth0", {}), ("irq", "local_timer", {}), ("irq", "", {})],
)
def test_what_the_name_tells_is_not_said_again(tmp_path: Path, kind: str, name: str, by: object) -> None:
    """No thread has the name, or the interrupt has none."""
    events = NAMES.format(kind=kind, name=name or "-").replace(f"120 {name or '-'}", "120 other")
    found = explained(tmp_path, events, (0, 2000, 2405, 1))
    assert found.causes[0].key.category == "blocked" and found.causes[0].key.ended_by is not None
    (row,) = explanation_json(found, found.releases)["causes"]
    assert "ended_by" not in row


@pytest.mark.parametrize(("name", "by"), [("TIMER", "thread"), ("local_timer", "thread"), ("eth1", None)])
def test_a_thread_with_a_name_that_the_kernel_has_everywhere_is_told_to_be_one(
    tmp_path: Path, name: str, by: str | None
) -> None:
    events = WAITS.format(call="futex", by="futex", waking="1 waking 88").replace("holder", name)
    (row,) = explanation_json(found := explained(tmp_path, events, (0, 1000, 1350, 1)), [])["causes"]
    assert (row["who"], row.get("ended_by"), found.causes[0].key.ended_by) == (name, by, None)


def test_a_system_call_is_no_thread(tmp_path: Path) -> None:
    events = NAMES.format(kind="irq", name="eth0").replace("120 eth0", "120 other")
    events += "2402 0 sys_in 10 - - - eth0\n"
    found = explained(tmp_path, events, (0, 2000, 2405, 1))
    document = explanation_json(found, found.releases)
    assert document["releases"][0]["segments"][-1] == {
        "start_ns": 2402,
        "end_ns": 2405,
        "category": "own_kernel",
        "who": "eth0",
        "relation": None,
    }
    assert "ended_by" not in document["causes"][0]


def test_an_interrupt_of_no_name_and_one_on_a_path_are_said_to_be_interrupts() -> None:
    assert words_of(Key("blocked", None, ended_by="interrupt")) == "waited until an unnamed interrupt woke it"
    path = Key("blocked", "eth0", of="server", ended_by="interrupt")
    assert words_of(path) == "the message's path waited until the interrupt eth0 woke server"
