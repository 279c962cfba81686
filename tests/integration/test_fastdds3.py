"""Fast DDS 3 beside 2: each in a process of its own, which has that version alone and says which it is."""

from __future__ import annotations

import re
import signal
from pathlib import Path

import pytest
from dds_runs import AMONG_OTHERS, MS, built, settled
from probe_runs import Config, client_and_server, read

pytestmark = [built["fastdds"], built["fastdds3"], built["cyclonedds"]]

LIBRARIES = {"fastdds": "libfastrtps.so.", "fastdds3": "libfastdds.so."}


def loaded_by(pid: int) -> set[str]:
    """The libraries of Fast DDS that the process has."""
    return set(re.findall(r"libfast(?:rtps|dds|cdr)\.so\.[\d.]+", Path(f"/proc/{pid}/maps").read_text()))


@pytest.mark.parametrize(
    ("client_adapter", "server_adapter", "options"),
    [
        ("fastdds3", "fastdds", {}),
        ("fastdds", "fastdds3", {"loan": "yes"}),
        ("cyclonedds", "fastdds3", {}),
        ("fastdds3", "fastdds3", {"transport": "data_sharing", "loan": "yes"}),
    ],
)
def test_each_version_answers_the_others(
    tmp_path: Path, client_adapter: str, server_adapter: str, options: dict[str, str]
) -> None:
    config: Config = {"adapter": client_adapter, "period_ns": 2 * MS, "payload_bytes": 1_001}
    config |= {"samples": 1_000_000}  # until it was looked at
    config |= {"options": AMONG_OTHERS["options"] | options}
    with client_and_server(tmp_path, config, {"adapter": server_adapter}) as (client, server):
        assert client.until("ready")["event"] == "ready"
        client.until_released()
        loaded = {end: loaded_by(end.process.pid) for end in (client, server)}
        client.process.send_signal(signal.SIGTERM)
        settled(client, server, interrupted=True)
    for end, adapter in ((client, client_adapter), (server, server_adapter)):
        described = read(end.log)[0].meta["adapter"]
        assert described["name"] == adapter
        if adapter in LIBRARIES:
            cdr, dds = sorted(loaded[end])
            assert f"{LIBRARIES[adapter]}{described['middleware_version']}".startswith(dds)
            assert cdr.startswith("libfastcdr.so.1" if adapter == "fastdds" else "libfastcdr.so.2")
