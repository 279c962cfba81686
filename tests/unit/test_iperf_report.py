"""Rates and losses from reports of iperf3, computed by hand."""

from __future__ import annotations

import json
from typing import Any

import pytest

from rtmeter.conditions.iperf_report import CarriedTraffic, carried, parse


def report(*sums: dict[str, Any]) -> dict[str, Any]:
    return {"start": {}, "intervals": [{"streams": [], "sum": one} for one in sums], "end": {}}


def interval(start: float, bytes_: int, **more: int) -> dict[str, Any]:
    return {"start": start, "end": start + 1, "seconds": 1.0, "bytes": bytes_} | more


SENDER = report(*(interval(n, 500_000, packets=500, retransmits=n) for n in range(4)))
RECEIVER = report(
    interval(0.0, 125_000, packets=500, lost_packets=375),  # not settled yet
    interval(1.0, 500_000, packets=500, lost_packets=0),
    interval(2.0, 450_000, packets=500, lost_packets=50),
    interval(3.0, 475_000, packets=500, lost_packets=25),
)


def test_the_receivers_figures_count_once_it_has_settled() -> None:
    assert carried(SENDER, RECEIVER, "udp", 0.5) == CarriedTraffic(3_800_000.0, 75 / 1500, None, "receiver")


def test_segments_sent_again_are_the_senders() -> None:
    assert carried(SENDER, RECEIVER, "tcp", 0.5) == CarriedTraffic(3_800_000.0, None, 1 + 2 + 3, "receiver")


def test_without_a_receiver_the_sender_counts_and_loss_is_not_known() -> None:
    assert carried(SENDER, {}, "udp", 0.5) == CarriedTraffic(4_000_000.0, None, None, "sender")


def test_a_run_too_short_to_settle_counts_whole() -> None:
    assert carried({}, RECEIVER, "udp", 9.0) == CarriedTraffic(3_100_000.0, 450 / 2000, None, "receiver")


@pytest.mark.parametrize("empty", [{}, report(), report(interval(0, 0) | {"seconds": 0})])
def test_nothing_said_is_nothing_known(empty: dict[str, Any]) -> None:
    assert carried(empty, empty, "udp", 0) == CarriedTraffic(None, None, None)


@pytest.mark.parametrize(
    ("printed", "parsed"),
    [
        (json.dumps({"error": "busy"}), {"error": "busy"}),
        ("Welcome to this machine\n" + json.dumps({"intervals": []}), {"intervals": []}),
        ("", {}),
        ("iperf3: error - unable to connect", {}),
        ('{"start": {', {}),
        ("[]", {}),
    ],
)
def test_what_was_printed_is_parsed_or_passed_over(printed: str, parsed: dict[str, Any]) -> None:
    assert parse(printed) == parsed
