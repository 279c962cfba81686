"""`conditions` of a campaign and on the command line: parsed, checked, made into a matrix and stored."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import jsonschema
import pytest

from rtmeter.campaign.condition_options import SystemSettings
from rtmeter.campaign.file import read_campaign
from rtmeter.campaign.rules import settle
from rtmeter.campaign.schemas import campaign_schema
from rtmeter.cli.cell_options import as_flag, collect
from rtmeter.errors import RtmeterError
from rtmeter.model import Cell

WAKEUP = {"measurement": "wakeup", "adapter": "posix"}


def cells(tmp_path: Path, text: str, only: str | None = None) -> list[Cell]:
    path = tmp_path / "c.yaml"
    path.write_text(text)
    return list(read_campaign(path, only=only).cells)


def asked(**conditions: Any) -> dict[str, Any]:
    return settle(WAKEUP | {"conditions": conditions}).conditions_asked["settings"]


def test_values_are_stored_as_they_are_written_and_read_again() -> None:
    settings = asked(
        rt_throttling=False,
        timer_migration="off",
        workqueue_cpus="0,2-3",
        irq_cpus={"eth0": 1},
        irq_priority={"eth0": "90"},
        isolate="1",
        stray_tasks="move",
        rt_runtime="0.5s",
    )
    assert settings == {
        "rt_throttling": "off",
        "timer_migration": False,
        "workqueue_cpus": "0,2-3",
        "irq_cpus": {"eth0": "1"},
        "irq_priority": {"eth0": 90},
        "isolate": "1",
        "stray_tasks": "move",
        "rt_runtime": "500ms",
    }
    again = SystemSettings.model_validate(settings)
    assert again.model_dump(mode="json", exclude_none=True) == settings
    assert settle(WAKEUP).conditions_asked == {}
    assert settle(WAKEUP | {"strict": "true"}).conditions_asked == {"strict": True}


@pytest.mark.parametrize(
    ("conditions", "field", "message"),
    [
        ({"rt_throtling": "off"}, "conditions", "did you mean rt_throttling?"),
        ({"rt_throttling": "on"}, "conditions.rt_throttling", "does not say how much"),
        ({"rt_throttling": "1ns"}, "conditions.rt_throttling", "whole number of microseconds"),
        ({"rt_runtime": "500"}, "conditions.rt_runtime", "has no unit"),
        ({"isolate": "one"}, "conditions.isolate", "is not a list of CPU numbers"),
        ({"ksoftirqd_priority": 100}, "conditions.ksoftirqd_priority", "less than or equal to 99"),
        ({"irq_priority": {"eth0": 0}}, "conditions.irq_priority.eth0", "greater than or equal to 1"),
        ({"irq_cpus": "0"}, "conditions.irq_cpus", "write it like {'eth0': '0'}"),
        ({"stray_tasks": "move"}, "conditions.stray_tasks", "give conditions.isolate"),
        ({"stray_tasks": "flee"}, "conditions.stray_tasks", "choose 'stay' or 'move'"),
        ({"cpu_dma_latency": True}, "conditions", "write cpu_dma_latency: true beside conditions"),
    ],
)
def test_what_is_wrong_is_named(conditions: dict[str, Any], field: str, message: str) -> None:
    with pytest.raises(RtmeterError) as caught:
        settle(WAKEUP | {"conditions": conditions})
    assert caught.value.field == field
    assert message in str(caught.value)


def test_the_cpus_lie_in_the_isolation() -> None:
    given = WAKEUP | {"conditions": {"isolate": "2-3"}}
    assert settle(given | {"cpus": "3"}).cpus == (3,)
    with pytest.raises(RtmeterError, match=r"outside of conditions\.isolate"):
        settle(given | {"cpus": "1"})


def test_lists_in_conditions_are_axes_and_defaults_fill_in(tmp_path: Path) -> None:
    found = cells(
        tmp_path,
        """
defaults: {adapter: posix, conditions: {timer_migration: off, governor: performance}}
cells:
- measurement: wakeup
  conditions: {rt_throttling: ["off", 900ms], governor: null}
- {measurement: wakeup, name: plain, conditions: null}
- measurement: wakeup
  name: both
  conditions: [{rt_throttling: "off"}, {isolate: 1}]
""",
    )
    settings = {cell.id: cell.conditions.get("settings") for cell in found}
    assert settings == {
        "wakeup-posix-off": {"rt_throttling": "off", "timer_migration": False},
        "wakeup-posix-rt_throttling-900ms": {"rt_throttling": "900ms", "timer_migration": False},
        "plain": None,
        "both-off": {"rt_throttling": "off"},
        "both-isolate-1": {"isolate": "1"},
    }
    assert found[0].axes == {"conditions.rt_throttling": "off"}


def test_expressions_know_conditions(tmp_path: Path) -> None:
    text = (
        'cells: [{measurement: wakeup, adapter: posix, conditions: {isolate: ["1", 2-3], rt_runtime: 500ms}}]'
    )
    chosen = cells(tmp_path, text, only="conditions.isolate == 2-3 and conditions.rt_runtime == 0.5s")
    assert [cell.id for cell in chosen] == ["wakeup-posix-isolate-2-3"]
    with pytest.raises(RtmeterError, match=r"did you mean conditions\.isolate"):
        cells(tmp_path, text, only="conditions.isolat == 1")


def test_errors_name_the_line(tmp_path: Path) -> None:
    with pytest.raises(RtmeterError) as caught:
        cells(tmp_path, "cells:\n- measurement: wakeup\n  adapter: posix\n  conditions:\n    isolate: x\n")
    assert str(caught.value.where).endswith("c.yaml:5")


def test_the_command_line_writes_a_key_and_a_device_with_a_dot() -> None:
    given = {"conditions": ["isolate=1", "irq_cpus.eth0=0-1", "irq_cpus.eth0.100=2", "irq_priority.*=5"]}
    assert collect(given) == {
        "conditions": {
            "isolate": "1",
            "irq_cpus": {"eth0": "0-1", "eth0.100": "2"},
            "irq_priority": {"*": "5"},
        }
    }
    error = as_flag(RtmeterError("x", field="conditions.irq_cpus.eth0"))
    assert error.field == "--condition irq_cpus.eth0"


@pytest.mark.parametrize(
    ("conditions", "valid"),
    [
        ({"governor": ["performance", "powersave"], "isolate": 1}, True),
        ([{"rt_throttling": False}, {"irq_cpus": {"eth0": "0-1"}}], True),
        (None, True),
        ({"governer": "performance"}, False),
        ({"irq_priority": {"eth0": 100}}, False),
        ({"isolate": "one"}, False),
    ],
)
def test_the_schema_knows_them(conditions: Any, valid: bool) -> None:
    campaign = {"cells": [WAKEUP | {"conditions": conditions}]}
    assert jsonschema.Draft202012Validator(campaign_schema()).is_valid(campaign) == valid


ROUNDTRIP = {"measurement": "roundtrip", "adapter": "posix", "hosts": {"component": "ssh://robot"}}


def test_the_servers_host_may_have_conditions_of_its_own() -> None:
    both = ROUNDTRIP | {"load": "cpu80", "conditions": {"governor": "performance"}}
    assert "server" not in settle(both).conditions_asked
    own = both | {"server_load": "idle", "server_conditions": {"isolate": "1"}}
    asked = settle(own).conditions_asked
    assert asked["server"] == {"settings": {"isolate": "1"}, "load": {"preset": "idle"}}
    assert asked["load"]["preset"] == "cpu80"
    none = settle(both | {"server_conditions": {}}).conditions_asked
    assert none["server"] == {"settings": {}}


def test_tasks_leave_no_cpus_of_the_server_that_are_not_named() -> None:
    with pytest.raises(RtmeterError, match=r"give server_conditions\.isolate") as caught:
        settle(ROUNDTRIP | {"server_conditions": {"stray_tasks": "move"}})
    assert caught.value.field == "server_conditions.stray_tasks"


@pytest.mark.parametrize("given", [{"server_load": "cpu80"}, {"server_conditions": {"isolate": "1"}}])
@pytest.mark.parametrize("hosts", [None, {"component": "local"}])
def test_a_server_that_shares_the_host_has_none(given: dict[str, Any], hosts: dict[str, str] | None) -> None:
    with pytest.raises(RtmeterError, match="means nothing where client and server share a host") as caught:
        settle(ROUNDTRIP | {"hosts": hosts} | given)
    assert caught.value.field == next(iter(given))


def test_hosts_and_their_conditions_make_a_matrix(tmp_path: Path) -> None:
    text = """
defaults: {hosts: {component: ["ssh://one", "ssh://two:2222"]}}
cells:
  - measurement: roundtrip
    adapter: posix
    server_load: [idle, cpu80, {cpu: 2}]
    server_conditions: {rt_throttling: [off, 950ms]}
"""
    found = cells(tmp_path, text)
    assert len(found) == 12
    assert {cell.hosts["component"] for cell in found} == {"ssh://one", "ssh://two:2222"}
    assert {cell.conditions["server"]["settings"]["rt_throttling"] for cell in found} == {"off", "950ms"}
    chosen = cells(
        tmp_path, text, only="server_conditions.rt_throttling == off and hosts.component == ssh://one"
    )
    assert len(chosen) == 3


def test_the_servers_conditions_on_the_command_line() -> None:
    given = collect({"server_conditions": ["irq_cpus.eth0=1", "isolate=1"], "server_load": "cpu=2"})
    assert given == {
        "server_conditions": {"irq_cpus": {"eth0": "1"}, "isolate": "1"},
        "server_load": "cpu=2",
    }
    error = RtmeterError("no", field="server_conditions.isolate")
    assert as_flag(error).field == "--server-condition isolate"
