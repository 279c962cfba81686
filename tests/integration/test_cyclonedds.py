"""What only Cyclone DDS has: its settings file, names of threads, iceoryx's shared memory."""

from __future__ import annotations

import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest
from daemons import roudi_answers
from dds_runs import CYCLE, MS, built, settled, threads_of
from probe_runs import LONG, SAMPLES, Config, client_and_server, counts, measure, needs_fifo, read, refusal

from waiting import until

pytestmark = built["cyclonedds"]

CYCLONE: Config = {"adapter": "cyclonedds"}
NAMES = {"gc", "dq.builtins", "dq.user", "tev", "recv", "recvMC", "recvUC"}
ONE_RECEIVER = "<Internal><MultipleReceiveThreads>false</MultipleReceiveThreads></Internal>"


def with_settings(text: str) -> Config:
    return CYCLE | CYCLONE | {"environment": {"CYCLONEDDS_URI": text}}


def test_the_audit_names_its_threads(tmp_path: Path) -> None:
    reader, _ = measure(tmp_path, CYCLE | CYCLONE)
    assert {t["name"] for t in threads_of(reader.meta).values()} == NAMES


@needs_fifo
def test_its_settings_carry_the_priorities(tmp_path: Path) -> None:
    """Its settings cannot name recvUC, as version 0.10 has it: that one is set by the system."""
    asked = "fifo:17,tev=fifo:18,recv=fifo:19,recvUC=fifo:20"
    reader, _ = measure(tmp_path, CYCLE | CYCLONE | {"options": {"threads": asked}})
    threads = {t["name"]: (t["policy"], t["priority"]) for t in threads_of(reader.meta).values()}
    named = {"tev": 18, "recv": 19, "recvUC": 20}
    assert threads == {name: ("fifo", named.get(name, 17)) for name in NAMES}
    priorities = reader.meta["adapter"]["threads"]
    assert priorities["asked"] == asked
    for name, how in [
        ("tev", "middleware"),
        ("recv", "middleware"),
        ("gc", "middleware"),
        ("recvUC", "system"),
    ]:
        assert name in priorities[f"set_by_{how}"].split(", ")


def test_round_robin_is_refused(tmp_path: Path) -> None:
    error = refusal(tmp_path, CYCLE | CYCLONE | {"options": {"threads": "rr:20"}})
    assert error["field"] == "option threads"
    assert "round robin" in error["message"]


@pytest.mark.parametrize("in_a_file", [False, True])
def test_the_users_settings_hold(tmp_path: Path, in_a_file: bool) -> None:
    text = ONE_RECEIVER
    if in_a_file:
        file = tmp_path / "cyclone.xml"
        file.write_text(f'<CycloneDDS><Domain Id="any">{ONE_RECEIVER}</Domain></CycloneDDS>')
        text = f"file://{file}"
    reader, columns = measure(tmp_path, with_settings(text))
    assert counts(columns)["served"] == SAMPLES
    assert {t["name"] for t in threads_of(reader.meta).values()} == NAMES - {"recvMC", "recvUC"}
    assert reader.meta["adapter"]["CYCLONEDDS_URI"] == text
    assert reader.meta["adapter"]["transport_asked"] == "vendor"


@pytest.mark.parametrize("reliability", ["best_effort", "reliable"])
def test_lost_packets_are_lost_replies_unless_it_repeats_them(tmp_path: Path, reliability: str) -> None:
    lossy = "<Internal><Test><XmitLossiness>100</XmitLossiness></Test></Internal>"  # of a thousand
    config = CYCLONE | {"reliability": reliability, "environment": {"CYCLONEDDS_URI": lossy}}
    config |= {"in_flight": "open", "history_depth": 500}  # so that nothing waits, and nothing is replaced
    config |= {"loss_timeout_ns": 100 * MS if reliability == "best_effort" else LONG}
    with client_and_server(tmp_path, config | {"period_ns": 2 * MS, "samples": 100}) as (client, server):
        found = settled(client, server)
    assert (found["lost"] > 0) == (reliability == "best_effort")


def test_settings_for_one_domain_need_that_domain(tmp_path: Path) -> None:
    text = (
        '<Domain Id="5"><Internal><MultipleReceiveThreads>false</MultipleReceiveThreads></Internal></Domain>'
    )
    reader, _ = measure(tmp_path, with_settings(text) | {"options": {"domain": "5"}})
    assert "recvUC" not in {t["name"] for t in threads_of(reader.meta).values()}
    (tmp_path / "other").mkdir()
    error = refusal(tmp_path / "other", with_settings(text) | {"options": {"domain": "6"}})
    assert error["field"] == "CYCLONEDDS_URI"
    assert "domain 5" in error["message"]
    assert "--option domain=5" in error["remedy"]


@pytest.mark.parametrize(
    ("text", "part"),
    [
        ("<General><NoSuchThing>1</NoSuchThing></General>", "NoSuchThing"),
        ("<CycloneDDS><Dom", "parser error"),
        ("file:///nonexistent/cyclone.xml", "can't open"),
        ('<General><Interfaces><NetworkInterface name="nope0"/></Interfaces></General>', "nope0"),
    ],
)
def test_an_error_in_the_settings_is_told_in_its_words(tmp_path: Path, text: str, part: str) -> None:
    error = refusal(tmp_path, with_settings(text))
    assert error["field"] == "CYCLONEDDS_URI"
    assert error["value"] == text
    assert part in error["message"]
    assert error["remedy"]


def test_interfaces_from_two_sides_are_refused(tmp_path: Path) -> None:
    text = '<General><Interfaces><NetworkInterface name="lo"/></Interfaces></General>'
    error = refusal(tmp_path, with_settings(text) | {"options": {"transport": "udp"}})
    assert error["field"] == "option transport"
    assert "CYCLONEDDS_URI" in error["message"]


@pytest.mark.parametrize("option", ["interface", "peers"])
def test_a_network_is_not_chosen_beside_the_settings_own(tmp_path: Path, option: str) -> None:
    error = refusal(tmp_path, with_settings(ONE_RECEIVER) | {"options": {option: "127.0.0.1"}})
    assert (error["field"], error["message"]) == (f"option {option}", "means nothing in this run")


@pytest.mark.parametrize("text", ["", ONE_RECEIVER])
def test_a_network_that_is_offered_gives_way_to_the_settings(tmp_path: Path, text: str) -> None:
    """And is then in nothing that the log says of the run; what is in effect is."""
    where = {"interface": "127.0.0.1", "peers": "127.0.0.1"}
    reader, _ = measure(tmp_path, with_settings(text) | {"options": where, "offered": sorted(where)})
    assert reader.meta["config"]["options"] == ({} if text else where)
    assert ("interface" in reader.meta["adapter"]) == (not text)


def test_a_peer_that_is_no_address_is_refused(tmp_path: Path) -> None:
    error = refusal(tmp_path, CYCLE | CYCLONE | {"options": {"peers": "127.0.0.1,256.0.0.1"}})
    assert (error["field"], error["value"]) == ("option peers", "256.0.0.1")
    assert error["remedy"]


def test_shared_memory_without_its_daemon_is_an_error(tmp_path: Path) -> None:
    if roudi_answers():
        pytest.skip("iox-roudi runs")
    error = refusal(tmp_path, CYCLE | CYCLONE | {"options": {"transport": "shm"}})
    assert (error["field"], error["value"]) == ("option transport", "shm")
    assert "iox-roudi" in error["message"]


@pytest.fixture(scope="module")
def roudi() -> Iterator[None]:
    """iceoryx's daemon; one that runs already is used."""
    if roudi_answers():
        yield
        return
    if shutil.which("iox-roudi") is None:
        pytest.skip("iox-roudi is not installed (Debian's package iceoryx)")
    with subprocess.Popen(["iox-roudi"], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as daemon:
        try:
            until(lambda: roudi_answers() or daemon.poll() is not None)
            assert daemon.poll() is None, "iox-roudi does not start"
            yield
        finally:
            daemon.terminate()


@pytest.mark.parametrize(
    ("loan", "type_name"), [("no", "rtmeter_dds::Message"), ("yes", "rtmeter_dds::Block32K")]
)
@pytest.mark.parametrize("receive", ["spin", "listener"])
@pytest.mark.usefixtures("roudi")
def test_shared_memory_carries_a_round_trip(tmp_path: Path, loan: str, type_name: str, receive: str) -> None:
    options = {"transport": "shm", "loan": loan}
    config = CYCLONE | {"options": options, "receive": receive, "payload_bytes": 32_768}
    config |= {"period_ns": 4 * MS, "samples": 50}
    with client_and_server(tmp_path, config) as (client, server):
        settled(client, server)
    described = read(client.log)[0].meta["adapter"]
    assert (described["transport"], described["loan"], described["type"]) == ("shm", loan, type_name)


@pytest.mark.usefixtures("roudi")
@pytest.mark.parametrize(("loan", "payload_bytes"), [("no", 4 << 20), ("yes", (1 << 20) + 1)])
def test_a_payload_beyond_the_largest_chunk_is_an_error(
    tmp_path: Path, loan: str, payload_bytes: int
) -> None:
    config = CYCLE | CYCLONE | {"payload_bytes": payload_bytes}
    error = refusal(tmp_path, config | {"options": {"transport": "shm", "loan": loan}})
    assert (error["field"], error["value"]) == ("payload_bytes", str(payload_bytes))
    assert "4 MiB" in error["message"]


def test_loans_without_shared_memory_are_an_error(tmp_path: Path) -> None:
    error = refusal(tmp_path, CYCLE | CYCLONE | {"options": {"loan": "yes"}})
    assert (error["field"], error["value"]) == ("option loan", "yes")
    assert "transport=shm" in error["remedy"]
