"""What every DDS adapter does alike, over the real middleware; and each answers the other.

Nothing here depends on how fast the machine is: counts, identities and settings read back.
"""

from __future__ import annotations

import itertools
import json
import os
from pathlib import Path

import pytest
from dds_runs import (
    ADAPTERS,
    AMONG_OTHERS,
    CYCLE,
    MS,
    SECOND,
    audited,
    built,
    each_adapter,
    marks,
    pairs,
    refuses_a_listener_that_comes_to_run_otherwise,
    set_so,
    settled,
    threads_in_proc,
    threads_of,
    without_port,
)
from namespaces import quiet_network
from probe_runs import SAMPLES, Config, client_and_server, counts, measure, needs_fifo, probe, read, refusal

from front import rtmeter


@pairs(*itertools.permutations(ADAPTERS, 2))
def test_each_answers_the_other(tmp_path: Path, client_adapter: str, server_adapter: str) -> None:
    """With best effort; the campaign of all pairs below runs with reliable."""
    config: Config = AMONG_OTHERS | {"adapter": client_adapter, "period_ns": 2 * MS}
    with client_and_server(tmp_path, config, {"adapter": server_adapter}) as (client, server):
        settled(client, server)
    assert [read(end.log)[0].meta["adapter"]["name"] for end in (client, server)] == [
        client_adapter,
        server_adapter,
    ]


@each_adapter
def test_quality_of_service_is_read_back(tmp_path: Path, adapter: str) -> None:
    config = {"adapter": adapter, "reliability": "reliable", "history_depth": 5}
    reader, _ = measure(tmp_path, CYCLE | config)
    qos = reader.meta["adapter"]["qos"]
    wanted = {"reliability": "reliable", "history": "keep_last", "depth": "5", "durability": "volatile"}
    assert {policy: qos[policy] for policy in wanted} == wanted


@needs_fifo
@pytest.mark.parametrize(("apply", "policy"), [("before_init", "fifo"), ("after_init", "other")])
@each_adapter
def test_a_listener_runs_as_its_threads_were_asked_to(
    tmp_path: Path, adapter: str, apply: str, policy: str
) -> None:
    """After init it stays normal, which is what was asked: it is told and not refused."""
    config = {"adapter": adapter, "receive": "listener", "period_ns": 2 * MS, "loss_timeout_ns": SECOND}
    config |= {"scheduling": {"policy": "fifo", "priority": 20}, "apply": apply}
    with client_and_server(tmp_path, config) as (client, server):
        assert settled(client, server)["released"] == SAMPLES
    [stamping] = (thread for thread in read(client.log)[0].meta["threads"] if thread["stamps"])
    assert (stamping["role"], stamping["policy"]) == ("middleware", policy)


@needs_fifo
@each_adapter
def test_a_listener_that_comes_to_run_otherwise_is_refused(tmp_path: Path, adapter: str) -> None:
    refuses_a_listener_that_comes_to_run_otherwise(tmp_path, {"adapter": adapter, "period_ns": 2 * MS})


@needs_fifo
def test_a_listener_that_its_vendors_file_sets_otherwise_is_refused(tmp_path: Path) -> None:
    """Nothing in the configuration asked for it: its figures would be of another policy."""
    scheduling = "<Scheduling><Class>realtime</Class><Priority>18</Priority></Scheduling>"
    one_receiver = "<Internal><MultipleReceiveThreads>false</MultipleReceiveThreads></Internal>"
    threads = f'<Threads><Thread Name="recv">{scheduling}</Thread></Threads>'
    uri = f"<CycloneDDS><Domain>{one_receiver}{threads}</Domain></CycloneDDS>"
    config = {"adapter": "cyclonedds", "receive": "listener", "environment": {"CYCLONEDDS_URI": uri}}
    config |= {"scheduling": {"policy": "fifo", "priority": 20}}
    with client_and_server(tmp_path, config) as (client, _):
        assert client.end() == 1
    error = next(event for event in client.events if event["event"] == "error")
    assert (error["field"], error["value"]) == ("scheduling", "fifo:20")
    assert "which stamps, runs as fifo:18" in error["message"]


@each_adapter
def test_cycle_of_two_components(tmp_path: Path, adapter: str) -> None:
    large = {"payload_bytes": 8_192}  # Fast DDS announces itself by 51 datagrams of 412 bytes each time
    reader, columns = measure(tmp_path, CYCLE | large | {"adapter": adapter})
    assert reader.meta["path"]["carried_by"] == {"dustdds": "udp"}.get(adapter, "process")
    assert reader.meta["adapter"]["transport"] == reader.meta["path"]["carried_by"]
    assert reader.meta["adapter"]["transport_asked"] == "udp"
    assert counts(columns)["served"] == SAMPLES


@each_adapter
def test_a_payload_of_many_datagrams_travels_whole_by_udp(tmp_path: Path, adapter: str) -> None:
    config = {"adapter": adapter, "payload_bytes": 131_072, "period_ns": 10 * MS, "samples": 20}
    with client_and_server(tmp_path, config) as (client, server):
        settled(client, server)
    meta = read(client.log)[0].meta
    assert meta["adapter"]["transport"] == meta["path"]["carried_by"] == "udp"
    assert None not in meta["usage"].values()


@each_adapter
@pytest.mark.parametrize("before", ["init", "init_and_node"])
def test_wakeup_after_what_the_middleware_does_beforehand(tmp_path: Path, adapter: str, before: str) -> None:
    reader, columns = measure(tmp_path, {"measurement": "wakeup", "before": before, "adapter": adapter})
    assert counts(columns)["served"] == SAMPLES
    brings_threads = {"init": ("cyclonedds", "dustdds"), "init_and_node": ADAPTERS}
    assert bool(threads_of(reader.meta)) == (adapter in brings_threads[before])


@each_adapter
def test_the_audit_lists_the_threads_that_proc_lists(tmp_path: Path, adapter: str) -> None:
    config = {"adapter": adapter, "measurement": "wakeup", "before": "init_and_node"}
    with probe(tmp_path, config | {"period_ns": 3_600 * SECOND, "samples": 1}) as one:
        assert audited(one.until("ready")) == threads_in_proc(one.process.pid)


@needs_fifo
@each_adapter
def test_all_threads_take_the_priority_asked_for(tmp_path: Path, adapter: str) -> None:
    config = {"adapter": adapter, "options": {"threads": "fifo:20"}}
    with client_and_server(tmp_path, config | {"period_ns": 2 * MS}) as (client, server):
        settled(client, server)
    for end in (client, server):
        meta = read(end.log)[0].meta
        threads = threads_of(meta)
        assert {(t["policy"], t["priority"]) for t in threads.values()} == {("fifo", 20)}
        told = []
        for how in ("set_by_middleware", "set_by_system"):
            names, with_ids = set_so(meta, how)
            assert names == sorted(without_port(one.partition(" (")[0]) for one in with_ids)
            assert f"threads_{how}" in meta["adapter"]["chosen"]
            told += with_ids
        assert sorted(told) == sorted(f"{thread['name']} ({tid})" for tid, thread in threads.items())


@each_adapter
@pytest.mark.parametrize(
    ("options", "more", "field"),
    [
        ({"interface": "nope0"}, {}, "option interface"),
        ({"domain": "233"}, {}, "option domain"),
        ({"domain": "-1"}, {}, "option domain"),
        ({"threads": "fifo:100"}, {}, "option threads"),
        ({"threads": "fifo:75x"}, {}, "option threads"),
        ({"threads": "nobody=fifo:5"}, {}, "option threads"),
        ({}, {"drive": "poll", "receive": "listener"}, "receive"),
        ({}, {"receive": "spin"}, "receive"),  # a sleep drives the cycle
        ({"loan": "yes"}, {"payload_bytes": (4 << 20) + 1}, "payload_bytes"),
    ],
)
def test_what_cannot_be_is_refused_by_name(
    tmp_path: Path, adapter: str, options: Config, more: Config, field: str
) -> None:
    error = refusal(tmp_path, CYCLE | {"adapter": adapter, "options": options} | more)
    lends = adapter != "dustdds" or "loan" not in options
    assert error["field"] == (field if lends else "option loan")
    assert error["message"]
    assert error["remedy"]


@each_adapter
def test_a_priority_that_may_not_be_is_an_error(tmp_path: Path, adapter: str) -> None:
    inside = ["prlimit", "--rtprio=0"]
    if os.geteuid() == 0:
        inside += ["setpriv", "--bounding-set=-sys_nice", "--inh-caps=-sys_nice"]
    config = CYCLE | {"adapter": adapter, "inside": inside, "options": {"threads": "fifo:99"}}
    error = refusal(tmp_path, config)
    assert (error["field"], error["value"]) == ("option threads", "fifo:99")
    assert "ulimit -r" in error["remedy"]


@pairs(("cyclonedds", "fastdds"))
def test_the_command_line_pairs_implementations(
    tmp_path: Path, client_adapter: str, server_adapter: str
) -> None:
    run = ["--period", "2ms", "--samples", "200", "--warm-up", "50ms"]
    ends = ["--adapter", client_adapter, "--server-adapter", server_adapter]
    done = rtmeter("measure", "roundtrip", *ends, *run, "--out", tmp_path / "cell")
    assert done.code == 0, done.err
    cell = json.loads((tmp_path / "cell" / "cell.json").read_text())
    assert (cell["adapter"], cell["server_adapter"]) == (client_adapter, server_adapter)
    assert {t["name"] for t in cell["threads"]["client"]} >= {"recv", "tev", "gc"}
    apart = ["--server-option", "domain=81", "--option", "domain=82", "--connect-timeout", "1s"]
    with quiet_network() as inside:  # where no other run is in these domains
        done = rtmeter(
            "measure", "roundtrip", *ends, *run, *apart, "--out", tmp_path / "apart", inside=inside
        )
    assert done.code == 1
    assert "found 0 other participants" in done.err


@built["cyclonedds"]
@built["fastdds"]
@built["dustdds"]
@pytest.mark.parametrize("adapters", [ADAPTERS[:3], pytest.param(ADAPTERS, marks=marks("fastdds3"))])
def test_the_campaign_of_all_pairs_runs(tmp_path: Path, adapters: tuple[str, ...]) -> None:
    campaign = Path(__file__).parent.parent.parent / "campaigns" / "dds-interoperation.yaml"
    among = ", ".join(adapters)
    only = f"reliability == reliable and adapter in ({among}) and server_adapter in ({among})"
    chosen = ["--scale", "0.002", "--only", only]
    done = rtmeter("run", campaign, *chosen, "--out", tmp_path)
    assert done.code in (0, 2, 3), done.err  # whatever the verdicts: every cell was measured
    cells = [json.loads(file.read_text()) for file in tmp_path.glob("**/cell.json")]
    assert {c["status"] for c in cells} == {"complete"}
    paired = {(c["adapter"], c["server_adapter"]) for c in cells}
    assert len(cells) == len(adapters) ** 2
    assert paired == set(itertools.product(adapters, repeat=2))
    for cell in cells:  # what lets implementations match is set of those that are to
        wanted = "no" if cell["adapter"] == cell["server_adapter"] else "yes"
        assert cell["adapter_facts"]["interoperable"] == wanted
        theirs = cell["server_adapter_facts"]
        assert (theirs["name"], theirs["interoperable"]) == (cell["server_adapter"], wanted)
        assert cell["config"].get("options", {}) == {}
