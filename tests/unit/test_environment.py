"""What makes a comparison meaningless, condition by condition (docs/compare.md)."""

from __future__ import annotations

import copy
from types import SimpleNamespace
from typing import Any

import pytest

from rtmeter.judge.environment import REFUSING, Difference, differences, other_findings
from rtmeter.results import words
from rtmeter.results.record import CellRecord
from stored import record

FACTS: dict[str, Any] = {
    "measurement": "timer",
    "mode": "one_shot",
    "adapter": "posix",
    "config": {"quantity": None, "period_ns": None, "timeout_ns": 1_000_000, "scheduling": "other"},
    "machine": {
        "architecture": "x86_64",
        "cpu_model": "A",
        "cpus_online": "0-3",
        "virtual_machine": None,
        "hostname": "h",
    },
}

OTHER = {
    "measurement": ("wakeup", "another measurement"),
    "mode": ("periodic", "another kind of timer"),
    "config.quantity": ("round_trip", "another quantity"),
    "config.period_ns": (2_000_000, "another period"),
    "config.timeout_ns": (2_000_000, "another timeout"),
    "machine.architecture": ("aarch64", "another machine"),
    "machine.cpu_model": ("B", "another machine"),
    "machine.cpus_online": ("0-7", "another machine"),
    "machine.virtual_machine": ("kvm", "a virtual machine against another or none"),
}


def record_of(facts: dict[str, Any]) -> CellRecord:
    """The record with these facts, also such as no cell has."""
    return record().model_copy(update={"effective": {}, "grid": {}} | facts)


def changed(name: str, value: object) -> CellRecord:
    facts = copy.deepcopy(FACTS)
    section, _, key = name.rpartition(".")
    (facts[section] if section else facts)[key] = value
    return record_of(facts)


def test_every_condition_that_refuses_is_tried() -> None:
    assert {name: reason for name, (_, reason) in OTHER.items()} == REFUSING


@pytest.mark.parametrize("name", OTHER)
def test_it_refuses_whichever_of_the_two_has_it(name: str) -> None:
    value, reason = OTHER[name]
    base = changed(name, "known") if name in ("config.quantity", "config.period_ns") else record_of(FACTS)
    for pair in ((base, changed(name, value)), (changed(name, value), base)):
        (found,) = differences(*pair)
        assert (found.name, found.refusal, found.unknown) == (name, reason, None)


@pytest.mark.parametrize("name", OTHER)
def test_what_is_not_known_refuses_nothing_and_says_what_it_may_be(name: str) -> None:
    if name == "machine.virtual_machine":
        return  # None is a machine that is none
    value, reason = OTHER[name]
    for found in differences(changed(name, value), changed(name, None)):
        assert (found.refusal, found.unknown) == (None, reason)


def test_other_conditions_are_told_and_refuse_nothing() -> None:
    for name, value in (("config.scheduling", "fifo:80"), ("machine.hostname", "g"), ("adapter", "null")):
        (found,) = differences(record_of(FACTS), changed(name, value))
        assert (found.name, found.refusal) == (name, None)
    assert differences(record_of(FACTS), record_of(FACTS)) == []


def test_what_a_session_chose_by_itself_is_no_difference() -> None:
    """Nor where the other was told; what both were told is one."""
    by_itself, other, asked, elsewhere = (
        record_of(FACTS | {"adapter_facts": {"domain": domain, "transport": "udp"} | marked})
        for domain, marked in (
            ("12", {"chosen": ["domain"]}),
            ("88", {"chosen": ["domain", "local_address"], "local_address": "127.0.0.1:4711"}),
            ("7", {}),
            ("8", {}),
        )
    )
    assert differences(by_itself, other) == differences(by_itself, asked) == differences(asked, other) == []
    assert [one.name for one in differences(asked, elsewhere)] == ["adapter_facts.domain"]


def test_the_servers_middleware_is_told_where_it_differs_in_another_way_than_the_clients() -> None:
    def ends(client: str, server: str | None, **more: Any) -> CellRecord:
        theirs = None if server is None else {"middleware_version": server} | more
        return record_of(
            FACTS | {"adapter_facts": {"middleware_version": client}, "server_adapter_facts": theirs}
        )

    def names(a: CellRecord, b: CellRecord) -> list[str]:
        return [one.name for one in differences(a, b)]

    assert names(ends("1", "1"), ends("1", "2")) == ["server_adapter_facts.middleware_version"]
    assert names(ends("1", "1"), ends("2", "2")) == ["adapter_facts.middleware_version"]
    assert names(ends("1", "1"), ends("1", None)) == names(ends("1", None), ends("1", "2")) == []
    by_itself = {"port": "7", "measures": ["roundtrip"], "chosen": ["port"]}
    assert names(ends("1", "1", **by_itself), ends("1", "1", port="8")) == []


def test_a_tracefs_instance_which_has_another_name_each_time_is_no_condition() -> None:
    def traced(number: int, **more: Any) -> CellRecord:
        made = {f"/sys/kernel/tracing/instances/rtmeter-{number}": "made"}
        effective = {"settings": {"explain": made} | more, "load": None, "traffic": None}
        return record_of(FACTS | {"conditions": {"asked": {"explain": True}, "effective": effective}})

    assert differences(traced(1), traced(2)) == []
    governor = {"governor": {"/sys/devices/system/cpu/cpu0/cpufreq/scaling_governor": "performance"}}
    (found,) = differences(traced(1), traced(2, **governor))
    assert found.name == "conditions.effective.settings" and found.refusal is None
    assert "governor" in found.b and "rtmeter-" not in found.b


def test_only_what_a_machine_had_gravely_wrong_is_told_of_one_alone() -> None:
    def found(**grades: str) -> CellRecord:
        findings = [SimpleNamespace(id=name, grade=grade) for name, grade in grades.items()]
        return record_of(FACTS | {"findings": findings})

    one, other = found(governor="high", smt="medium", steal="fatal"), found(steal="fatal", swap="low")
    assert other_findings(one, other) == Difference("findings", "governor", words.NONE)
    assert other_findings(other, found(steal="high")) is None
    assert other_findings(one, record_of(FACTS | {"findings": None})) is None
