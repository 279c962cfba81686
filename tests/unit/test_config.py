"""The one declaration of the options: defaults, contradictions, and what the probe gets of it."""

from __future__ import annotations

from typing import Any

import pytest

from rtmeter.campaign.options import CellOptions
from rtmeter.campaign.rules import settle
from rtmeter.errors import RtmeterError
from rtmeter.model import Requirement

MS = 1_000_000
DEADLINE = "deadline:100us/1ms/1ms"
ATTACHED = {"adapter": "attached", "command": "loop"}


def options(measurement: str = "wakeup", **given: Any) -> CellOptions:
    return settle({"measurement": measurement, "adapter": "posix"} | given)


def probe(measurement: str, **given: Any) -> dict[str, Any]:
    return options(measurement, **given).probe_config()


def test_round_trips_default_to_the_source_document() -> None:
    config = probe("roundtrip")
    assert config["period_ns"] == 10 * MS
    assert config["samples"] == 60_000  # ten minutes
    assert config["warm_up"] == 100
    assert config["payload_bytes"] == 500
    assert config["reliability"] == "best_effort"
    assert (
        "history_depth" not in config
    )  # the probe's default: 1, or of a middleware without KEEP_LAST its own
    assert config["in_flight"] == "one"
    assert config["deadline_ns"] == 10 * MS  # what `missed` goes by
    assert config["loss_timeout_ns"] == 500 * MS
    assert options("roundtrip").requirement is None


@pytest.mark.parametrize("measurement", ["wakeup", "timer", "cycle"])
def test_the_others_default_to_ten_seconds_at_1_khz(measurement: str) -> None:
    config = probe(measurement)
    assert (config["period_ns"], config["samples"], config["warm_up"]) == (MS, 10_000, 1000)
    assert "deadline_ns" not in config
    assert "overrun" not in config  # the probe chooses
    assert ("loss_timeout_ns" in config) == (measurement == "cycle")


def test_the_number_of_releases_is_rounded_up() -> None:
    config = probe("wakeup", period="3ms", duration="10ms", warm_up="4ms")
    assert (config["samples"], config["warm_up"]) == (4, 2)


def test_one_shots_are_paced_by_their_timeout() -> None:
    config = probe("timer", mode="one_shot", timeout="2ms", duration="1s", warm_up="5ms")
    assert (config["timeout_ns"], config["period_ns"]) == (2 * MS, 2 * MS)
    assert (config["samples"], config["warm_up"]) == (500, 3)


def test_the_loss_timeout_is_never_below_the_deadline() -> None:
    assert probe("roundtrip", deadline="2s")["loss_timeout_ns"] == 2000 * MS
    assert probe("roundtrip", period="1s")["loss_timeout_ns"] == 1000 * MS
    assert probe("cycle", deadline="700ms")["loss_timeout_ns"] == 700 * MS


@pytest.mark.parametrize(
    ("measurement", "given"),
    [
        ("roundtrip", {"deadline": "2s", "loss_timeout": "2s"}),
        ("roundtrip", {"period": "2s", "loss_timeout": "2s"}),
        ("cycle", {"deadline": "2s", "loss_timeout": "2s"}),
    ],
)
def test_the_loss_timeout_may_be_the_deadline(measurement: str, given: dict[str, str]) -> None:
    assert probe(measurement, **given)["loss_timeout_ns"] == 2000 * MS


@pytest.mark.parametrize(("given", "warm_up_ns"), [({}, 0), ({"warm_up": "5ms"}, 5 * MS)])
def test_a_program_that_runs_already_has_no_warm_up_but_one_that_is_asked_for(
    given: dict[str, str], warm_up_ns: int
) -> None:
    assert options("loop", adapter="attached", pid=1, **given).warm_up == warm_up_ns


def test_scale_multiplies_the_measured_releases_only() -> None:
    given = {"measurement": "wakeup", "adapter": "posix", "samples": "1000"}
    config = settle(given, scale=0.0015).probe_config()
    assert (config["samples"], config["warm_up"]) == (2, 1000)
    assert settle(given, scale=1e-9).probe_config()["samples"] == 1


def test_a_deadline_is_a_requirement() -> None:
    given = options(deadline="1ms", miss_ratio="1e-6", confidence="0.99")
    assert given.requirement == Requirement(MS, 1e-6, 0.99)
    assert given.probe_config()["deadline_ns"] == MS


def test_a_deadline_thread_is_set_up_after_the_middleware_started() -> None:
    assert probe("wakeup", scheduling=DEADLINE)["apply"] == "after_init"
    assert probe("wakeup")["apply"] == "before_init"
    slack = probe("wakeup", scheduling=DEADLINE, timer_slack="1us")["timer_slack_ns"]
    assert slack == 1000, "of the middleware's threads, which are none of the deadline policy"


def test_what_means_nothing_for_a_measurement_is_not_in_its_config() -> None:
    config = probe("wakeup")
    assert not {"payload_bytes", "mode", "drive", "in_flight", "connect_timeout_ns"} & set(config)
    assert config["before"] == "none"


def test_the_fronts_own_options_are_not_in_the_config() -> None:
    given = {"duration": "1s", "deadline": "1ms", "miss_ratio": 0.5, "keep_log": True}
    own = {"adapter", "duration", "miss_ratio", "confidence", "keep_log", "server_adapter"}
    assert not own & set(probe("roundtrip", server_adapter="null", **given))


@pytest.mark.parametrize(
    ("given", "field", "message"),
    [
        ({"samples": "10", "duration": "1s"}, "samples", "contradicts duration"),
        ({"period": "10"}, "period", "no unit"),
        ({"period": "0s"}, "period", "longer than zero"),
        ({"samples": "0"}, "samples", "greater than or equal to 1"),
        ({"samples": "1.5"}, "samples", "valid integer"),
        ({"scheduling": "fifo"}, "scheduling", "lacks a priority"),
        ({"scheduling": "deadline:1ms/2ms/2ms", "cpus": "1"}, "cpus", "contradicts scheduling"),
        ({"scheduling": "deadline:1ms/2ms/2ms", "apply": "before_init"}, "apply", "contradicts scheduling"),
        ({"child_threads": "deadline:1ms/2ms/2ms"}, "child_threads", "cannot have the deadline policy"),
        ({"timer_slack": "1ns", "scheduling": "fifo:80"}, "timer_slack", "real-time policy have none"),
        ({"timer_slack": "0ns"}, "timer_slack", "longer than zero"),
        ({"child_cpus": "0-x"}, "child_cpus", "CPU"),
        (
            {"child_cpus": "0", "cpus": "1", "conditions": {"isolate": "1"}},
            "child_cpus",
            r"outside of conditions.isolate \(1\)",
        ),
        ({"overrun": "queue"}, "overrun", "is no choice"),
        ({"break_on_late": True}, "break_on_late", "says nothing without a deadline"),
        ({"miss_ratio": "1e-3"}, "miss_ratio", "says nothing without a deadline"),
        ({"confidence": "0.9"}, "confidence", "says nothing without a deadline"),
        ({"criticality": "hard"}, "criticality", "says nothing without a deadline"),
        ({"deadline": "1ms", "criticality": "safe"}, "criticality", "is no choice"),
        ({"deadline": "1ms", "confidence": "x%"}, "confidence", "is no share"),
        ({"deadline": "1ms", "confidence": "100%"}, "confidence", "less than or equal"),
        ({"deadline": "1ms", "miss_ratio": "1"}, "miss_ratio", "less than 1"),
        ({"deadline": "1ms", "confidence": "1"}, "confidence", "less than or equal"),
        ({"script": "x.csv"}, "script", "only for the null adapter"),
        ({"perod": "1ms"}, "option", "is not known"),
        ({"drive": "spin"}, "drive", "means nothing for wakeup"),
        ({"payload": "500"}, "payload", "means nothing for wakeup"),
        ({"loss_timeout": "1s"}, "loss_timeout", "means nothing for wakeup"),
        ({"mode": "one_shot"}, "mode", "means nothing for wakeup"),
        ({"options": {"a": [1]}}, "options.a", "neither text nor a number"),
        ({"duration": "365h", "period": "1ns"}, "duration", "more releases than"),
    ],
)
def test_contradictions_of_a_wakeup(given: dict[str, Any], field: str, message: str) -> None:
    check_refused("wakeup", given, field, message)


@pytest.mark.parametrize(
    ("measurement", "given", "field", "message"),
    [
        ("timer", {"mode": "one_shot"}, "mode", "needs a timeout"),
        ("timer", {"timeout": "1ms"}, "timeout", "means nothing for periodic"),
        ("timer", {"mode": "one_shot", "timeout": "1ms", "period": "2ms"}, "period", "contradicts mode"),
        ("timer", {"mode": "one_shot", "timeout": "1ms", "overrun": "skip"}, "overrun", "means nothing"),
        (
            "timer",
            {"mode": "one_shot", "timeout": "1ms", "drive": "sleep_then_spin_some"},
            "drive",
            "releases",
        ),
        ("timer", {"before": "init"}, "before", "means nothing for timer"),
        ("timer", {"sleep_offset": "1us"}, "sleep_offset", "nobody sleeps until a release"),
        (
            "timer",
            {"drive": "sleep_then_spin_some", "sleep_offset": "1ms"},
            "sleep_offset",
            "is no less than the period",
        ),
        ("cycle", {"sleep_offset": "1us"}, "sleep_offset", "means nothing for cycle"),
        ("timer", {"components": "one_thread"}, "components", "means nothing for timer"),
        ("cycle", {"components": "three"}, "components", "is no choice"),
        ("request", {"kernel_stamps": True}, "kernel_stamps", "means nothing for request"),
        ("cycle", {"shared_clock": "tai"}, "shared_clock", "means nothing for cycle"),
        ("roundtrip", {"shared_clock": "tai"}, "shared_clock", "share a host"),
        ("request", {"shared_clock": "utc"}, "shared_clock", "is no clock that hosts share"),
        ("request", {"server_shared_clock": "tai"}, "server_shared_clock", "without shared_clock"),
        ("roundtrip", {"deadline": "2s", "loss_timeout": "1s"}, "loss_timeout", "shorter than the deadline"),
        ("roundtrip", {"loss_timeout": "1ms"}, "loss_timeout", "shorter than one period"),
        ("roundtrip", {"receive": "spin", "scheduling": DEADLINE}, "receive", "cannot start one that spins"),
        ("request", {"receive": "spin", "scheduling": DEADLINE}, "receive", "cannot start one that spins"),
        ("roundtrip", {"payload": "7"}, "payload", "greater than or equal to 8"),
        ("roundtrip", {"in_flight": "two"}, "in_flight", "is no choice"),
        ("cycle", {"server_adapter": "posix"}, "server_adapter", "means nothing for cycle"),
        ("loop", ATTACHED | {"samples": "10"}, "samples", "without a period"),
        ("loop", ATTACHED | {"pid": 1}, "pid", "contradicts command"),
        ("swim", {}, "measurement", "is no choice"),
    ],
)
def test_contradictions_of_the_others(
    measurement: str, given: dict[str, Any], field: str, message: str
) -> None:
    check_refused(measurement, given, field, message)


def check_refused(measurement: str, given: dict[str, Any], field: str, message: str) -> None:
    """Every refusal names field, value, what is wrong and what to do."""
    with pytest.raises(RtmeterError, match=message) as caught:
        options(measurement, **given)
    assert caught.value.field == field
    assert caught.value.value is not None
    assert caught.value.remedy


def test_the_adapter_must_be_named() -> None:
    with pytest.raises(RtmeterError, match="is missing") as caught:
        settle({"measurement": "wakeup"})
    assert caught.value.field == "adapter"


def test_what_a_loop_is_of_must_be_named() -> None:
    """By no value: nobody gave one."""
    with pytest.raises(RtmeterError, match="is missing") as caught:
        options("loop", adapter="attached")
    assert str(caught.value).startswith("command: is missing; ")


def test_a_near_miss_is_recognised() -> None:
    with pytest.raises(RtmeterError, match=r"did you mean loss_timeout\?"):
        options("roundtrip", los_timeout="1s")


def test_a_one_shots_period_may_repeat_its_timeout() -> None:
    assert options("timer", mode="one_shot", timeout="1ms", period="1ms").tick_ns == MS
