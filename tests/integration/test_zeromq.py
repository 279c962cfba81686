"""What only ZeroMQ has: who binds, and by what."""

from __future__ import annotations

from pathlib import Path

import pytest
from dds_runs import settled
from probe_runs import MS, Config, client_and_server, read
from test_chains_run import every_path_has_a_result

from rtmeter.measure.probe.probes import find_probes

pytestmark = pytest.mark.skipif("zeromq" not in find_probes(), reason="the adapter zeromq is not built here")

SHORT: Config = {"adapter": "zeromq", "period_ns": 4 * MS, "samples": 25, "warm_up": 5}
AT: Config = {"options": {"address": "127.0.0.1"}}
"""Of a server on another host, as it is told."""


@pytest.mark.parametrize(("transport", "server"), [("tcp", {}), ("tcp", AT), ("ipc", {})])
def test_the_server_binds_all_where_it_has_an_address_and_else_who_publishes(
    tmp_path: Path, transport: str, server: Config
) -> None:
    own = {"transport": transport}
    changes = {"options": own | server["options"]} if server else {}
    with client_and_server(tmp_path, SHORT | {"options": own}, changes) as both:
        endpoint = both[1].events[0]["endpoint"]
        assert settled(*both)["lost"] == 0
    assert read(both[0].log)[0].meta["adapter"]["transport"] == transport
    places = endpoint.split(",") if server else []
    assert (endpoint is None) == (not server) and len({*places}) == len(places) == 2 * bool(server)
    assert all(place.startswith("tcp://127.0.0.1:") for place in places)


def test_a_chain_by_ipc_has_a_result_for_every_path(tmp_path: Path) -> None:
    cell = every_path_has_a_result(tmp_path, "zeromq", "--option", "transport=ipc")
    facts = cell["adapter_facts"]
    assert (facts["transport"], facts["qos"]["history"]) == ("ipc", "drop_new")
