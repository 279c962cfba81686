"""The option ``explain``: how it is written, what it defaults to, and what is recorded then."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest

from refused import refused
from rtmeter.campaign.explain_option import EVENTS
from rtmeter.campaign.rules import settle
from rtmeter.cli.cell_options import collect
from rtmeter.trace.choice import TraceChoice
from rtmeter.trace.events import ALWAYS, EVERY, GROUPS

WAKEUP = {"measurement": "wakeup", "adapter": "posix"}
MS, MIB = 1_000_000, 1 << 20


def asked(written: Any) -> Any:
    return settle(WAKEUP | {"explain": written}).conditions_asked.get("explain")


@pytest.mark.parametrize(
    "written", [True, "yes", {}, {"events": "+".join(EVENTS)}, "size=256MiB,margin=20ms"]
)
def test_all_is_recorded_unless_it_is_said(written: Any) -> None:
    assert asked(written) is True
    assert TraceChoice.of(asked(written)) == TraceChoice() == TraceChoice.of(True)
    assert TraceChoice().events == EVERY and TraceChoice().left_out == ()


@pytest.mark.parametrize("written", [False, "no", None])
def test_off_is_off(written: Any) -> None:
    assert asked(written) is None


@pytest.mark.parametrize(
    "written",
    [
        "size=1GiB,margin=50ms,events=timers+interrupts",
        {"size": "1GiB", "margin": "50ms", "events": "timers+interrupts"},
    ],
)
def test_room_margin_and_events_may_be_said(written: Any) -> None:
    wanted = {"events": ["interrupts", "timers"], "size_bytes": 1024 * MIB, "margin_ns": 50 * MS}
    assert asked(written) == wanted
    choice = TraceChoice.of(wanted)
    assert (choice.most_bytes, choice.late_ns) == (1024 * MIB, 50 * MS)
    assert choice.left_out == ("softirqs", "system_calls", "page_faults", "new_threads", "lent_priorities")


@pytest.mark.parametrize("group", GROUPS)
def test_what_is_left_out_is_not_recorded_and_all_else_is(group: str) -> None:
    others = [name for name in GROUPS if name != group]
    choice = TraceChoice.of({"events": others})
    assert choice.left_out == (group,)
    assert set(choice.events) == set(EVERY) - set(GROUPS[group])
    assert choice.events[: len(ALWAYS)] == ALWAYS


def test_every_event_that_may_be_left_out_is_in_one_group() -> None:
    assert tuple(GROUPS) == EVENTS
    grouped = [event for events in GROUPS.values() for event in events]
    assert sorted((*ALWAYS, *grouped)) == sorted(EVERY)


@pytest.mark.parametrize(
    ("written", "field", "words"),
    [
        ("events=sun", "explain.events", "choose among interrupts, softirqs"),
        ({"events": True}, "explain.events", "is no list of events; choose among interrupts, softirqs"),
        ({"events": 5}, "explain.events", "is no list of events"),
        ({"events": {"timers": None}}, "explain.events", "is no list of events"),
        ({"events": [["timers"]]}, "explain.events", "choose among interrupts, softirqs"),
        ("size=1MiB", "explain.size", "greater than or equal to"),
        ("margin=0ms", "explain.margin", "longer than zero"),
        ("margin=11s", "explain.margin", "less than or equal to"),
        ({"room": "1GiB"}, "explain", "choose one of events, size, margin"),
    ],
)
def test_what_cannot_be_is_refused_by_name(written: Any, field: str, words: str) -> None:
    _, _, key = field.partition(".")
    refused(asked, written, field, words, f"--explain-with {key}" if key else "--explain")


@pytest.mark.parametrize(
    ("given", "wanted"),
    [
        ({"explain": False, "explain_with": None}, None),
        ({"explain": True, "explain_with": None}, True),
        ({"explain": False, "explain_with": "size=1GiB"}, {"size_bytes": 1024 * MIB}),
        ({"explain": True, "explain_with": "size=1GiB"}, {"size_bytes": 1024 * MIB}),
    ],
)
def test_on_the_command_line_either_records(given: Mapping[str, Any], wanted: Any) -> None:
    assert settle(WAKEUP | collect(given)).conditions_asked.get("explain") == wanted
