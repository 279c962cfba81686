"""What LCM's adapter refuses; test_check_adapter.py checks it whole."""

from __future__ import annotations

from pathlib import Path

import pytest
from probe_runs import refusal

from rtmeter.measure.probe.probes import find_probes

pytestmark = pytest.mark.skipif("lcm" not in find_probes(), reason="the LCM adapter is not built here")


@pytest.mark.parametrize("url", ["memq://", "file:///dev/null?mode=w", "tcpq://"])
def test_a_provider_that_is_not_measured_is_refused(tmp_path: Path, url: str) -> None:
    config = {"adapter": "lcm", "measurement": "roundtrip", "role": "server", "options": {"url": url}}
    error = refusal(tmp_path, config)
    assert (error["field"], error["value"]) == ("option url", url)
    assert "udpm://" in error["remedy"]
