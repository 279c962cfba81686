"""ROS 1 between two hosts in miniature: what the adapter does when their link is lost."""

from __future__ import annotations

import signal
from pathlib import Path

import pytest
from namespaces import lose_link_for_a_while, two_namespaces
from probe_runs import MS, Config, accounts, client_and_server

from rtmeter.measure.probe.probes import find_probes

pytestmark = pytest.mark.skipif("ros1" not in find_probes(), reason="the adapter ros1 is not built here")

ENVIRONMENT = {"ROS_MASTER_URI": "", "ROS_LOG_DIR": "/tmp"}  # no log folder is made at home


@pytest.mark.parametrize("transport", ["tcp", "udp"])
def test_a_link_that_goes_and_comes_back(tmp_path: Path, transport: str) -> None:
    """The master is the server's. TCPROS delivers late what was on its way, which stays lost; roscpp closes
    UDPROS's connection at the first datagram that cannot be sent, and makes no other."""
    with two_namespaces() as pair:
        config: Config = {"adapter": "ros1", "environment": ENVIRONMENT, "period_ns": 5 * MS}
        config |= {"samples": 1_000_000, "loss_timeout_ns": 20 * MS}
        ends = [
            {"inside": ["ip", "netns", "exec", namespace], "options": options | {"transport": transport}}
            for namespace, options in (
                (pair.left, {"interface": pair.left_address}),
                (pair.right, {"interface": pair.right_address}),
            )
        ]
        with client_and_server(tmp_path, config | ends[0], ends[1]) as (client, server):
            ready = client.until("ready")
            assert ready["event"] == "ready", ready
            assert pair.right_address in ready["adapter"]["master"]
            while client.until("progress")["released"] < 20:
                pass
            recovers = transport == "tcp"
            lose_link_for_a_while(pair, lambda: client.until("progress")["lost"], recovers=recovers)
            client.process.send_signal(signal.SIGTERM)
            assert client.end() == 4, client.events
            assert server.end() == 0, server.events
    found = accounts(client)
    assert found["lost"] > 0
    assert found["served"] > 0
