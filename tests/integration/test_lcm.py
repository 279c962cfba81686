"""What LCM's adapter refuses; test_check_adapter.py checks it whole."""

from __future__ import annotations

import ctypes
from pathlib import Path

import pytest
from dds_runs import settled
from probe_runs import MS, client_and_server, refusal

from rtmeter.measure.probe.probes import find_probes

pytestmark = pytest.mark.skipif("lcm" not in find_probes(), reason="the LCM adapter is not built here")


@pytest.mark.parametrize("url", ["memq://", "file:///dev/null?mode=w", "tcpq://"])
def test_a_provider_that_is_not_measured_is_refused(tmp_path: Path, url: str) -> None:
    config = {"adapter": "lcm", "measurement": "roundtrip", "role": "server", "options": {"url": url}}
    error = refusal(tmp_path, config)
    assert (error["field"], error["value"]) == ("option url", url)
    assert "udpm://" in error["remedy"]


def test_a_message_too_short_to_be_one_is_nobodys(tmp_path: Path) -> None:
    """The server took it for one of 4 GiB."""
    lcm = ctypes.CDLL("liblcm.so.1")
    lcm.lcm_create.restype = ctypes.c_void_p
    config = {"adapter": "lcm", "session": f"test-short-{tmp_path.name}", "period_ns": 4 * MS, "samples": 250}
    with client_and_server(tmp_path, config) as (client, server):
        client.until_released()
        stranger = ctypes.c_void_p(lcm.lcm_create(b"udpm://239.255.76.67:7667?ttl=0"))
        channel = f"rtmeter-{config['session']}-ping".encode()
        assert lcm.lcm_publish(stranger, channel, b"4321", 4) == 0
        lcm.lcm_destroy(stranger)
        settled(client, server)
