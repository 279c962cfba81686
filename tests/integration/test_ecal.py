"""What only eCAL has: its layers, the files that messages go through, its handshake and its settings file."""

from __future__ import annotations

from pathlib import Path

import pytest
from dds_runs import settled
from probe_runs import LONG, MS, Config, client_and_server, counts, probe, read, refusal
from test_chains_run import measured

from rtmeter.measure.probe.probes import find_probes

pytestmark = pytest.mark.skipif("ecal" not in find_probes(), reason="the adapter ecal is not built here")

ECAL: Config = {"adapter": "ecal"}
SHORT: Config = ECAL | {"period_ns": 4 * MS, "samples": 25, "warm_up": 5, "loss_timeout_ns": LONG}
SERVER: Config = ECAL | {"measurement": "roundtrip", "role": "server", "loss_timeout_ns": LONG}
WAITS = {"reliability": "reliable", "history": "wait_for_reader"}
NEWEST = {"reliability": "best_effort", "history": "keep_last", "depth": "1"}


@pytest.mark.parametrize(
    ("asked", "carried_by", "facts", "qos"),
    [
        ({}, "shared_memory", {"transport": "shm", "zero_copy": "no"}, NEWEST),
        ({"options": {"zero_copy": "yes"}}, "shared_memory", {"zero_copy": "yes"}, NEWEST),
        ({"history_depth": 3}, "shared_memory", {"transport": "shm"}, NEWEST | {"depth": "3"}),
        ({"reliability": "reliable"}, "shared_memory", {"acknowledge_timeout_ms": "100"}, WAITS),
        ({"options": {"transport": "udp"}}, "udp", {"transport": "udp"}, {"reliability": "best_effort"}),
    ],
    ids=["default", "zero copy", "three files", "reliable", "udp"],
)
@pytest.mark.parametrize("payload_bytes", [16, 100_000])
def test_messages_take_the_layer_that_was_asked_for(
    tmp_path: Path, asked: Config, carried_by: str, facts: Config, qos: Config, payload_bytes: int
) -> None:
    with client_and_server(tmp_path, SHORT | {"payload_bytes": payload_bytes} | asked) as (client, server):
        settled(client, server)
    for end in (client, server):
        meta = read(end.log)[0].meta
        assert meta["path"]["carried_by"] == carried_by
        assert facts.items() <= meta["adapter"].items()
        assert qos.items() <= meta["adapter"]["qos"].items()


@pytest.mark.parametrize(
    ("asked", "qos"),
    [
        ((), NEWEST),
        (("--history-depth", 3), NEWEST | {"depth": "3"}),
        (("--option", "transport=udp"), NEWEST),
        (("--option", "transport=udp", "--history-depth", 200), NEWEST | {"depth": "200"}),
        (("--reliability", "reliable"), WAITS | {"history": "wait_for_reader, which keeps all"}),
    ],
)
def test_what_waits_for_a_stage_is_told_as_it_is(
    tmp_path: Path, asked: tuple[object, ...], qos: Config
) -> None:
    graph = "stages:\n  a: {period: 5ms}\n  b: {inputs: a}\n"
    cell = measured(tmp_path, graph, "--samples", 20, *asked, adapter="ecal")
    assert cell["adapter_facts"]["qos"] == qos


@pytest.mark.parametrize("options", [{}, {"transport": "udp"}])
def test_components_of_one_process_hear_each_other(tmp_path: Path, options: dict[str, str]) -> None:
    with probe(tmp_path, SHORT | {"measurement": "cycle", "options": options}) as one:
        assert one.end() == 0, one.events
    reader, columns = read(one.log)
    assert reader.meta["effective"]["components"] == "middleware_threads"
    found = counts(columns)
    assert found["released"] == 25 == found["served"] + found["skipped"]


@pytest.mark.parametrize(("options", "in_effect"), [({}, "yes"), ({"zero_copy": "no"}, "no")])
def test_its_settings_file_holds_for_what_the_run_leaves_open(
    tmp_path: Path, options: dict[str, str], in_effect: str
) -> None:
    yaml = tmp_path / "ecal.yaml"
    yaml.write_text("publisher:\n  layer:\n    shm:\n      zero_copy_mode: true\n")
    with client_and_server(
        tmp_path, SHORT | {"environment": {"ECAL_DATA": str(tmp_path)}, "options": options}
    ) as (client, server):
        settled(client, server)
    adapter = read(client.log)[0].meta["adapter"]
    assert (adapter["zero_copy"], adapter["ecal_yaml"]) == (in_effect, str(yaml))


@pytest.mark.parametrize(
    ("asked", "field", "remedy"),
    [
        ({"options": {"transport": "udp", "zero_copy": "yes"}}, "option zero_copy", "leave it out"),
        ({"options": {"transport": "udp"}, "history_depth": 2}, "history_depth", "transport=shm"),
        ({"options": {"transport": "udp"}, "reliability": "reliable"}, "reliability", "choose best_effort"),
        ({"history_depth": 101}, "history_depth", "at most 100"),
    ],
)
def test_what_ecal_cannot_do_is_refused_by_name(
    tmp_path: Path, asked: Config, field: str, remedy: str
) -> None:
    error = refusal(tmp_path, SERVER | asked)
    assert error["field"] == field
    assert remedy in error["remedy"]
