"""What check-adapter says of a run's stamps: nothing of those in order, else what is out of it."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from rtmeter.model import ABSENT, LOST, SERVED
from rtmeter.selftest.adapter.stamps import disorder, received_elsewhere, unheard
from rtmeter.statistics.quantities import Columns

REPORTED = {"adapter": {"reported_clock": "monotonic"}, "grid": {"t0_from": "reported"}}
ONE_SHOT = {"measurement": "timer", "mode": "one_shot", "timeout_ns": 100}
SERVICE = {"measurement": "request", "interface": "service"}
ACTION = {"measurement": "request", "interface": "action"}
SHOT = {"armed_before_ns": 0, "armed_after_ns": 2, "callback_ns": 105}
SHOT |= {"reported_expected_ns": 101, "reported_actual_ns": 104}
TICK = {"release_ns": 100, "callback_ns": 105, "reported_expected_ns": 100, "reported_actual_ns": 104}
CALL = {"release_ns": 0, "sent_ns": 1, "accepted_ns": ABSENT, "first_feedback_ns": ABSENT, "received_ns": 9}
GOAL = CALL | {"accepted_ns": 3, "first_feedback_ns": 4}
CYCLE = {"release_ns": 0, "start_ns": 1, "request_sent_ns": 2, "request_received_ns": 3}
CYCLE |= {"response_sent_ns": 4, "response_received_ns": 5}
PING = {"release_ns": 0, "sent_ns": 1, "received_ns": 9}


def rows(of: dict[str, int], **second: int) -> Columns:
    """Three rows: one served as it is, one as changed, and one lost, of which nothing is said."""
    values = {name: [value, second.get(name, value), 0] for name, value in of.items()}
    return {name: np.array(value) for name, value in (values | {"status": [SERVED, SERVED, LOST]}).items()}


def found(of: dict[str, int], config: dict[str, Any], meta: dict[str, Any] = REPORTED, **second: int) -> str:
    return "; ".join(wrong for wrong, _ in disorder(rows(of, **second), meta, config))


@pytest.mark.parametrize(
    ("of", "config", "second", "words"),
    [
        (
            {"release_ns": 5, "wake_ns": 6},
            {"measurement": "wakeup"},
            {"wake_ns": 4},
            "wake comes before release",
        ),
        (SHOT, ONE_SHOT, {"armed_after_ns": -1}, "armed_after comes before armed_before 1"),
        (SHOT, ONE_SHOT, {"callback_ns": 1}, "callback comes before armed_after 1"),
        (SHOT, ONE_SHOT, {"reported_expected_ns": 99}, "1 shots were reported for another time"),
        (SHOT, ONE_SHOT, {"reported_expected_ns": 103}, "1 shots were reported for another time"),
        (SHOT, ONE_SHOT, {"reported_actual_ns": 100}, "1 callbacks were reported to come before"),
        (SHOT, ONE_SHOT, {"reported_actual_ns": 106}, "1 callbacks came before it was reported to come"),
        (
            TICK,
            {"measurement": "timer"},
            {"reported_expected_ns": 101},
            "1 callbacks were reported for another",
        ),
        (TICK, {"measurement": "timer"}, {"callback_ns": 99}, "came before it was reported to be due"),
        (PING, {"measurement": "roundtrip"}, {"sent_ns": -1}, "sent comes before release 1 times"),
        (PING, {"measurement": "roundtrip"}, {"received_ns": 0}, "received comes before sent 1 times"),
        (CALL, SERVICE, {"accepted_ns": 2}, "a service has told"),
        (GOAL, ACTION, {"accepted_ns": ABSENT}, "of 2 goals 1 were accepted, and 2 had feedback"),
        (GOAL, ACTION, {"accepted_ns": 10}, "received comes before accepted 1 times"),
        (GOAL, ACTION, {"first_feedback_ns": 0}, "first_feedback comes before sent 1 times"),
        (
            CYCLE,
            {"measurement": "cycle"},
            {"response_sent_ns": 2},
            "response_sent comes before request_received",
        ),
    ],
)
def test_stamps_out_of_order_are_named(
    of: dict[str, int], config: dict[str, Any], second: dict[str, int], words: str
) -> None:
    assert found(of, config) == ""
    assert words in found(of, config, **second)


def test_what_is_not_on_the_clock_of_the_stamps_is_not_compared_with_them() -> None:
    other = {"adapter": {"reported_clock": "time_of_day"}, "grid": {"t0_from": "inferred"}}
    assert found(TICK, {"measurement": "timer"}, other, reported_expected_ns=200) == ""
    core = {"adapter": {}, "grid": {"t0_from": "core"}}
    assert found(TICK, {"measurement": "timer"}, core, reported_expected_ns=103) == ""
    inferred = {"adapter": {}, "grid": {"t0_from": "inferred"}}
    assert found(CYCLE, {"measurement": "cycle"}, inferred, release_ns=3) == ""


def test_stamps_of_one_moment_are_in_order() -> None:
    assert found(PING, {"measurement": "roundtrip"}, release_ns=1, received_ns=1) == ""


def test_an_action_whose_goals_have_no_feedback_is_named() -> None:
    goal = GOAL | {"first_feedback_ns": ABSENT}
    assert found(goal, ACTION) == "of 2 goals 2 were accepted, and 0 had feedback"
    drops = {"adapter": {"may_drop": "feedback"}}
    assert found(goal, ACTION, drops) == ""
    assert found(goal, ACTION, drops, accepted_ns=ABSENT) == "of 2 goals 1 were accepted, and 0 had feedback"


def test_a_server_has_heard_what_was_answered() -> None:
    heard = {"sequence": [1, 0], "server_received_ns": [2, 3], "server_sent_ns": [4, 4]}
    as_columns = {name: np.array(values) for name, values in heard.items()}
    assert unheard(rows(PING), as_columns) is None
    wrong = unheard(rows(PING), {name: values[:1] for name, values in as_columns.items()})
    assert wrong is not None and "1 answers are to messages that the server never had" in wrong[0]
    for name, at_ns, words in (
        ("server_received_ns", 0, "server_received comes before sent"),
        ("server_sent_ns", 2, "server_sent comes before server_received"),
        ("server_sent_ns", 10, "received comes before server_sent"),
    ):
        wrong = unheard(rows(PING), as_columns | {name: np.array([3, at_ns])})
        assert wrong is not None and words in wrong[0]


@pytest.mark.parametrize(
    ("receive", "in_flight", "role", "name"),
    [
        ("spin", "one", "measured", "rtm-receiver"),
        ("spin_once", "one", "measured", "probe"),
        ("spin_once", "open", "measured", "rtm-receiver"),
        ("poll", "one", "measured", "probe"),
        ("listener", "one", "middleware", "recv"),
    ],
)
def test_replies_come_on_the_thread_of_their_way(receive: str, in_flight: str, role: str, name: str) -> None:
    config = {"receive": receive, "in_flight": in_flight}
    threads = [
        {"role": role, "name": name, "stamps": True},
        {"role": "service", "name": "w", "stamps": False},
    ]
    assert received_elsewhere(threads, config) is None
    others = {("measured", "rtm-receiver"), ("measured", "probe"), ("middleware", "recv")} - {(role, name)}
    for other_role, other_name in others:
        wrong = received_elsewhere([threads[0] | {"role": other_role, "name": other_name}], config)
        assert wrong is not None and receive in wrong[1]
    assert received_elsewhere([], config) is not None
