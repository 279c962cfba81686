"""What is said of a cell's conditions beside its numbers."""

from __future__ import annotations

from dataclasses import replace

import pytest

from rtmeter.model import Doubt
from rtmeter.results.condition_words import beside_the_network, carried, in_words, told_once, uncertainty

CONDITIONS = {
    "asked": {
        "settings": {"rt_throttling": "off", "timer_migration": False, "irq_cpus": {"eth0": "0"}},
        "load": {"preset": "cpu80", "cpu": 0, "cpu_percent": 80},
        "traffic": {"rate": 40_000_000, "reverse_rate": 500_000, "protocol": "udp", "to": "10.0.0.2"},
        "strict": True,
    },
    "effective": {},
    "achieved": {
        "machine": {"busy": 0.8123},
        "traffic": {
            "forward": {"rate": 39_870_000.0, "lost_ratio": 0.0123, "died": None},
            "reverse": {"rate": 499_000.0, "lost_ratio": 0.0},
        },
    },
}


def test_what_was_asked_stands_beside_what_came_of_it() -> None:
    assert in_words(CONDITIONS) == [
        "rt_throttling off",
        "timer_migration off",
        "irq_cpus eth0 0",
        "load cpu80 (CPUs 81% busy)",
        "traffic 40 Mbit/s udp forward (39.9 arrived, 1.23% lost)",
        "traffic 0.5 Mbit/s udp reverse (0.499 arrived)",
    ]


def test_settings_that_were_left_out_together_each_say_so() -> None:
    settings = {"unavailable": "leave_out", "isolate": [1], "stray_tasks": "move", "governor": "performance"}
    left_out = {"isolate, stray_tasks": "no cpusets are mounted"}
    assert in_words({"asked": {"settings": settings}, "left_out": left_out}) == [
        "isolate 1 (left out: not to be had)",
        "stray_tasks move (left out: not to be had)",
        "governor performance",
    ]


def test_loss_that_is_not_known_is_said() -> None:
    carried = {"rate": 980_000.0, "lost_ratio": None, "seen_by": "sender"}
    asked = {"traffic": {"rate": 1_000_000, "reverse_rate": 0, "protocol": "udp"}}
    udp = {"asked": asked, "achieved": {"traffic": {"forward": carried}}}
    assert in_words(udp) == ["traffic 1 Mbit/s udp forward (0.98 sent, loss unknown)"]
    asked["traffic"]["protocol"] = "tcp"
    assert in_words(udp) == ["traffic 1 Mbit/s tcp forward (0.98 sent)"]


def test_a_load_of_ones_own_is_spelled_out() -> None:
    assert in_words({"asked": {"load": {"cpu": 2, "vm_bytes": 4096, "cpus": [0, 1]}}}) == [
        "load cpu=2 vm_bytes=4096 cpus=0,1"
    ]


def test_an_idle_machine_says_how_busy_it_was() -> None:
    assert in_words({"asked": {}, "achieved": {"machine": {"busy": 0.02}}}) == ["no load (CPUs 2% busy)"]


@pytest.mark.parametrize(
    "damaged",
    [
        None,
        [],
        "x",
        {"asked": 7},
        {"asked": {"load": 3, "traffic": {"rate": "fast"}}, "achieved": {"machine": []}},
    ],
)
def test_what_is_not_known_is_not_said(damaged: object) -> None:
    assert in_words(damaged) == []


def test_the_servers_host_stands_beside_its_own_conditions() -> None:
    server = {"host": "ssh://root@there", "same_machine": False, "asked": {"load": {"preset": "idle"}}}
    server |= {"achieved": {"machine": {"busy": 0.25}}}
    assert in_words({"server": server}) == ["server on ssh://root@there (load idle (CPUs 25% busy))"]
    assert in_words({"server": {"host": "ssh://there", "same_machine": True}}) == [
        "server on ssh://there (another part of this machine)"
    ]


def test_one_way_legs_between_two_clocks_have_their_error() -> None:
    assert uncertainty("ping", {"same_clock": False, "error_ns": 6935.2}) == " ±6.935us"
    stamps = {"client": {"error_ns": 20.0}, "server": {"error_ns": 31.0}}
    assert uncertainty("send_path", {"same_clock": True}, stamps) == " ±20ns"
    assert uncertainty("server_send_path", None, stamps) == " ±31ns"
    assert uncertainty("wire_ping", {"same_clock": True}, stamps) == " ±51ns"
    assert uncertainty("wire_pong", {"same_clock": False, "error_ns": 100}, stamps) == " ±151ns"
    assert uncertainty("send_path", None, {"client": {"error_ns": None}}) == ""
    by_tai = {"same_clock": False, "by": "CLOCK_TAI", "error_ns": 95.2}
    assert uncertainty("respond", by_tai) == " ±95ns by CLOCK_TAI"
    assert uncertainty("round_trip", {"same_clock": False, "error_ns": 6935.2}) == ""
    assert uncertainty("pong", {"same_clock": True}) == uncertainty("pong", None) == ""


@pytest.mark.parametrize(
    ("client", "server", "words", "beside"),
    [
        ("udp", "udp", ["messages by UDP"], False),
        ("shared_memory", "shared_memory", ["messages by shared memory"], True),
        ("udp", "shared_memory", ["requests by UDP", "replies by shared memory"], False),
        ("process", None, ["messages within the process"], True),
        (None, None, [], False),
    ],
)
def test_which_way_messages_went_is_told(
    client: str | None, server: str | None, words: list[str], beside: bool
) -> None:
    ends = {"client": client, "server": server}
    path = {end: {"carried_by": way} for end, way in ends.items() if way} or None
    assert carried(path) == words
    assert beside_the_network(path) is beside


def test_that_the_kernels_events_were_recorded_is_said_beside_every_number() -> None:
    assert in_words({"asked": {"explain": True}}) == ["the kernel's events recorded"]
    assert in_words({"asked": {}}) == []


def test_doubts_that_differ_in_numbers_only_are_told_once_with_all_that_have_them() -> None:
    def taken(share: str, who: str) -> Doubt:
        return Doubt("load_not_idle", f"others took {share} of the CPUs ({who})", "end that work")

    other = Doubt("load_not_idle", "an unlike message", "")
    cells = [
        ("a", taken("79%", "make 70%")),
        ("b", taken("46%", "x 3%")),
        ("b", other),
        ("c", taken("79%", "y")),
    ]
    first, alone = told_once(cells)
    assert first == (
        replace(taken("79%", "make 70%"), message=f"as in a: {cells[0][1].message}"),
        ["a", "b", "c"],
    )
    assert alone == (other, ["b"])
    assert told_once([(name, other) for name in "ab"]) == [(other, ["a", "b"])]


def test_doubts_of_one_cell_are_all_told() -> None:
    of_cpus = [Doubt("slowed", f"CPU {cpu} was slowed by heat") for cpu in (0, 1)]
    assert told_once(("a", doubt) for doubt in of_cpus) == [(doubt, ["a"]) for doubt in of_cpus]


def test_what_repeats_of_a_condition_said_is_said_once_of_all_conditions() -> None:
    """A condition names its repeat already."""
    of_a, of_b = (
        Doubt("t", f"as in {name}-r1: {share} of the CPUs") for name, share in (("a", "7%"), ("b", "9%"))
    )
    assert told_once([("a", of_a), ("b", of_b)]) == [(of_a, ["a", "b"])]
