"""What cannot run is refused: threads that poll at real-time priority need a CPU each."""

from __future__ import annotations

import random
from collections import Counter
from contextlib import nullcontext
from itertools import product
from pathlib import Path
from typing import Any

import pytest

from rtmeter.campaign.matrix import cell_from
from rtmeter.campaign.rules import settle
from rtmeter.errors import RtmeterError
from rtmeter.host.root import Root
from rtmeter.measure.cell import source_of
from rtmeter.measure.probe import polling
from rtmeter.measure.probe.polling import PollingThread
from rtmeter.measure.probe.probes import Probe
from rtmeter.model import Cell

DRIVES = {"timer": ["spin", "poll"], "cycle": ["sleep_then_spin_some", "poll"]}
RECEIVES = {"roundtrip": ["spin", "poll"]}
OPTION = {"transport": "udp|shm_poll: what carries it"}
BARE = {"drives": DRIVES, "receives": RECEIVES, "option": OPTION, "poll": {"transport": ["shm_poll"]}}
BARE |= {"components": ["two_threads", "one_thread"], "background": ["cycle components=two_threads"]}
DDS = {"drives": DRIVES, "receives": RECEIVES, "option": {"threads": "by name"}}
DDS |= {"background": ["roundtrip", "timer"]}


class Machine(Root):
    """One with these CPUs, and throttling or none."""

    numbers: tuple[int, ...] = (0, 1)
    runtime_us = "950000"

    def cpus(self) -> list[int]:
        return list(self.numbers)

    def read(self, name: str) -> str | None:
        return self.runtime_us if name == "/proc/sys/kernel/sched_rt_runtime_us" else None


def machine(cpus: int, runtime_us: str = "950000") -> Root:
    return type("Planted", (Machine,), {"numbers": tuple(range(cpus)), "runtime_us": runtime_us})()


def cell(measurement: str, **given: Any) -> Cell:
    given = {"measurement": measurement, "adapter": "x", "scheduling": "fifo:80"} | given
    return cell_from(settle(given), "cell", {})


def check(asked: Cell, facts: dict[str, Any], root: Root) -> None:
    probe = Probe("x", Path("x"), facts)
    server = probe if asked.config["measurement"] == "roundtrip" else None
    polling.check(asked, probe, server, root)


POLL = {"drive": "poll"}
POLLED = {"receive": "poll"}
SHM = {"options": {"transport": "shm_poll"}}
RUNS: list[tuple[str, dict[str, Any], dict[str, Any], int]] = [
    ("roundtrip", POLLED, BARE, 2),
    ("roundtrip", POLLED | {"cpus": "1", "server_cpus": "0"}, BARE, 2),
    ("roundtrip", POLLED | {"cpus": "0-1"}, BARE, 2),
    ("roundtrip", POLLED | {"cpus": "1", "scheduling": "other"}, BARE, 2),
    ("roundtrip", POLLED | {"in_flight": "open"}, BARE, 3),
    ("roundtrip", {"cpus": "1"}, BARE, 2),
    ("roundtrip", {"cpus": "1", "options": {"transport": "udp"}}, BARE, 2),
    ("roundtrip", SHM, BARE, 2),
    ("roundtrip", POLLED | {"server_receive": "spin", "cpus": "1", "server_cpus": "0"}, BARE, 2),
    ("roundtrip", SHM | {"cpus": "0", "server_cpus": "1"}, BARE, 2),
    ("roundtrip", POLLED, DDS, 3),
    ("roundtrip", POLLED | {"child_threads": "fifo:81"}, DDS, 2),
    ("roundtrip", POLLED | {"options": {"threads": "fifo:81"}}, DDS, 2),
    ("roundtrip", POLLED | {"options": {"threads": "recv=fifo:90"}}, DDS, 2),
    ("timer", POLL | {"cpus": "1"}, BARE, 2),
    ("timer", POLL, BARE, 1),
    ("timer", POLL | {"cpus": "1", "child_cpus": "0"}, DDS, 2),
    ("timer", {"cpus": "1"}, DDS, 2),
    ("cycle", POLL, BARE, 2),
    ("cycle", POLL | {"cpus": "1", "components": "one_thread"}, BARE, 2),
    ("cycle", {"cpus": "1"}, BARE, 2),
    ("wakeup", {"cpus": "1"}, DDS, 1),
]


@pytest.mark.parametrize(("measurement", "given", "facts", "cpus"), RUNS)
def test_what_can_run_is_let_run(
    measurement: str, given: dict[str, Any], facts: dict[str, Any], cpus: int
) -> None:
    check(cell(measurement, **given), facts, machine(cpus))


REFUSED: list[tuple[str, dict[str, Any], dict[str, Any], int, str]] = [
    ("roundtrip", POLLED | {"in_flight": "open", "cpus": "1"}, BARE, 2, "cpus"),
    ("roundtrip", POLLED | {"cpus": "1"}, BARE, 2, "cpus"),
    ("roundtrip", POLLED | {"cpus": "1", "scheduling": "rr:1"}, BARE, 8, "cpus"),
    ("roundtrip", POLLED | {"cpus": "0-1", "in_flight": "open"}, BARE, 8, "cpus"),
    ("roundtrip", POLLED | {"cpus": "1", "server_cpus": "1"}, BARE, 2, "server_cpus"),
    ("roundtrip", POLLED, BARE, 1, "receive"),
    ("roundtrip", POLLED | {"in_flight": "open"}, BARE, 2, "receive"),
    ("roundtrip", SHM, BARE, 1, "options"),
    ("roundtrip", {"server_receive": "poll", "cpus": "1"}, BARE, 2, "cpus"),
    ("roundtrip", SHM | {"cpus": "0"}, BARE, 2, "cpus"),
    ("roundtrip", POLLED, DDS, 2, "receive"),
    ("roundtrip", POLLED | {"child_threads": "fifo:80"}, DDS, 2, "receive"),
    ("roundtrip", POLLED | {"options": {"threads": "rr:80"}}, DDS, 2, "receive"),
    ("roundtrip", POLLED | {"conditions": {"isolate": "1-2"}}, DDS, 8, "receive"),
    ("timer", POLL | {"cpus": "1"}, DDS, 2, "cpus"),
    ("timer", POLL | {"cpus": "1", "child_cpus": "1"}, DDS, 2, "cpus"),
    ("cycle", POLL | {"cpus": "1"}, BARE, 2, "cpus"),
    ("cycle", POLL | {"cpus": "1", "components": "two_threads"}, BARE, 2, "cpus"),
]


@pytest.mark.parametrize(("measurement", "given", "facts", "cpus", "field"), REFUSED)
def test_what_cannot_run_is_refused(
    measurement: str, given: dict[str, Any], facts: dict[str, Any], cpus: int, field: str
) -> None:
    with pytest.raises(RtmeterError, match="has no CPU for each thread that polls") as caught:
        check(cell(measurement, **given), facts, machine(cpus))
    assert caught.value.field == field
    assert caught.value.value and caught.value.remedy


def test_the_error_says_which_threads_and_how_many_cpus() -> None:
    asked = cell("roundtrip", cpus="1", in_flight="open", receive="poll")
    with pytest.raises(RtmeterError) as caught:
        check(asked, BARE, machine(2))
    said = caught.value
    assert "(client's receiver, server)" in said.message
    assert "(client's sender)" in said.message
    assert (said.value, "give them 3 CPUs" in (said.remedy or "")) == ("1", True)
    with pytest.raises(RtmeterError, match=r"sender, threads of the middleware.* give them 3 CPUs"):
        check(asked, DDS, machine(2))


def test_rtmeter_needs_a_cpu_where_nothing_is_left_to_it() -> None:
    """Real-time throttling is what leaves normal programs a share of every CPU."""
    with pytest.raises(RtmeterError, match="rtmeter"):
        check(cell("timer", drive="poll"), BARE, machine(1, "-1"))
    with pytest.raises(RtmeterError, match="rtmeter"):
        check(cell("timer", drive="poll", conditions={"rt_throttling": "off"}), BARE, machine(1))
    check(cell("timer", drive="poll"), BARE, machine(2, "-1"))
    check(cell("timer", drive="poll", conditions={"rt_throttling": "950ms"}), BARE, machine(1, "-1"))


def test_what_runs_beside_at_ordinary_priority_has_what_rtmeter_has() -> None:
    """Further processes and the second topic's threads: what leaves rtmeter a CPU leaves them that one."""
    for beside in ({"subscribers": 3}, {"background_nodes": 3}, {"second_topic": "same_node"}):
        asked = cell("roundtrip", receive="poll", **beside)
        check(asked, BARE, machine(2))
        with pytest.raises(RtmeterError, match="rtmeter"):
            check(asked, BARE, machine(2, "-1"))
        check(asked, BARE, machine(3, "-1"))


def test_each_process_of_a_discovery_needs_a_cpu_if_it_polls(monkeypatch: pytest.MonkeyPatch) -> None:
    """None does so far: each waits in its middleware. Looked at by its source, here and on its target."""
    asked = cell("discovery", participants=3)
    facts = {"measures": ["discovery"], "receives": {"discovery": ["spin_once"]}}
    probe = Probe("x", Path("x"), facts)
    monkeypatch.setattr("rtmeter.measure.team.by_team.probes.require", lambda *_: probe)
    for root, refused in ((machine(2), True), (machine(3), False)):
        monkeypatch.setattr("rtmeter.measure.team.by_team.Root", lambda root=root: root)
        facts["receives"] = {"discovery": ["spin_once"]}
        source_of(asked).check()
        facts["receives"] = {"discovery": ["poll"]}
        with pytest.raises(RtmeterError, match="has no CPU") if refused else nullcontext():
            source_of(asked).check()


def test_each_host_has_cpus_of_its_own() -> None:
    there = {"hosts": {"component": "ssh://there"}}
    check(cell("roundtrip", receive="poll", cpus="1", **there), BARE, machine(2))
    with pytest.raises(RtmeterError):
        check(cell("roundtrip", receive="poll", cpus="0-1", server_cpus="1", **there), DDS, machine(2))


def test_no_time_passes_on_a_scripted_clock() -> None:
    check(cell("timer", drive="poll"), DDS | {"clock": "scripted"}, machine(1))


def test_of_many_that_are_alike_one_too_many_is_refused_at_once() -> None:
    """Not after every order of them was tried."""
    asked, probe = cell("timer", **POLL), Probe("x", Path("x"), BARE)
    polling.check(asked, probe, None, machine(40, "-1"), alike=39)
    with pytest.raises(RtmeterError, match="has no CPU for each thread that polls"):
        polling.check(asked, probe, None, machine(40, "-1"), alike=40)


def test_they_fit_where_one_of_all_orders_does() -> None:
    draw, outcomes = random.Random(1), Counter[bool]()
    for _ in range(2000):
        some, rest = ([_drawn(draw) for _ in range(draw.randrange(5))] for _ in range(2))
        orders = product(*(sorted(thread.cpus) for thread in some))
        kept = [{*order} for order in orders if len({*order}) == len(order)]
        expected = any(all(thread.cpus - cpus for thread in rest) for cpus in kept)
        assert polling.fits(some, rest) == expected, (some, rest)
        outcomes[expected] += 1
    assert min(outcomes[True], outcomes[False]) > 300


def _drawn(draw: random.Random) -> PollingThread:
    return PollingThread("x", True, frozenset(draw.sample(range(5), draw.randint(1, 3))))
