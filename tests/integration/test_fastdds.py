"""What only Fast DDS has, version 2 or 3: profiles, priorities by the system, two kinds of shared memory."""

from __future__ import annotations

from pathlib import Path

import pytest
from dds_runs import CYCLE, MS, marks, set_so, settled, threads_of, without_port
from probe_runs import SAMPLES, Config, client_and_server, counts, measure, needs_fifo, read, refusal

VERSIONS = [pytest.param(name, marks=marks(name)) for name in ("fastdds", "fastdds3")]
PROFILES_NAMED_BY = {"fastdds": "FASTRTPS_DEFAULT_PROFILES_FILE", "fastdds3": "FASTDDS_DEFAULT_PROFILES_FILE"}
PROFILES_FILE = {"fastdds": "DEFAULT_FASTRTPS_PROFILES.xml", "fastdds3": "DEFAULT_FASTDDS_PROFILES.xml"}
PROFILES = """<?xml version="1.0" encoding="UTF-8"?>
<profiles xmlns="http://www.eprosima.com/XMLSchemas/fastRTPS_Profiles">{}</profiles>
"""


def participant(settings: str) -> str:
    return PROFILES.format(f'<participant profile_name="p"><rtps>{settings}</rtps></participant>')


@pytest.fixture(params=VERSIONS)
def fast(request: pytest.FixtureRequest) -> Config:
    return {"adapter": request.param}


def with_profiles(fast: Config, folder: Path, text: str) -> Config:
    file = folder / "profiles.xml"
    file.write_text(text)
    return CYCLE | fast | {"environment": {PROFILES_NAMED_BY[fast["adapter"]]: str(file)}}


def test_the_users_profiles_hold(fast: Config, tmp_path: Path) -> None:
    writer = (
        '<data_writer profile_name="w" is_default_profile="true"><qos><publishMode><kind>ASYNCHRONOUS</kind>'
    )
    text = PROFILES.format(f"{writer}</publishMode></qos></data_writer>")
    reader, columns = measure(tmp_path, with_profiles(fast, tmp_path, text))
    assert counts(columns)["served"] == SAMPLES
    described = reader.meta["adapter"]
    assert described["qos"]["publish_mode"] == "asynchronous"
    assert described["transport_asked"] == "vendor"
    assert described[PROFILES_NAMED_BY[fast["adapter"]]] == str(tmp_path / "profiles.xml")


def test_without_profiles_it_publishes_synchronously(fast: Config, tmp_path: Path) -> None:
    reader, _ = measure(tmp_path, CYCLE | fast)
    assert reader.meta["adapter"]["qos"]["publish_mode"] == "synchronous"


@pytest.mark.parametrize(
    ("profiles", "delivery"), [(None, "user_data_only"), ("FULL", "full"), ("OFF", "off")]
)
def test_participants_of_one_process_announce_themselves_by_messages(
    fast: Config, tmp_path: Path, profiles: str | None, delivery: str
) -> None:
    """By calls into each other, Fast DDS's default, they may wait for each other for ever."""
    config = CYCLE | fast
    if profiles is not None:
        settings = f"<library_settings><intraprocess_delivery>{profiles}</intraprocess_delivery>"
        config = with_profiles(fast, tmp_path, f"<dds>{settings}</library_settings></dds>")
    reader, columns = measure(tmp_path, config)
    assert counts(columns)["served"] == SAMPLES
    assert reader.meta["adapter"]["delivery_within_process"] == delivery


def test_profiles_that_do_not_match_the_servers_are_named(fast: Config, tmp_path: Path) -> None:
    reader = '<data_reader profile_name="r" is_default_profile="true"><qos><deadline><period><sec>1</sec>'
    text = PROFILES.format(f"{reader}</period></deadline></qos></data_reader>")
    changes = {"environment": with_profiles(fast, tmp_path, text)["environment"]}
    config = fast | {"connect_timeout_ns": 3_600_000 * MS, "options": {"transport": "udp"}}
    with client_and_server(tmp_path, config, changes) as (client, _):
        assert client.end() == 1
    error = next(event for event in client.events if event["event"] == "error")
    assert (error["field"], error["value"]) == ("incompatible_qos", "deadline (writer of ping)")


@pytest.mark.parametrize(
    ("text", "part"),
    [
        (
            PROFILES.format("<participant profile_name='p'><rtps><nosuchthing/></rtps></participant>"),
            "nosuchthing",
        ),
        ("<profiles><participant>", "Error"),
        ("", "Error"),
    ],
)
def test_an_error_in_the_profiles_is_told_in_its_words(
    fast: Config, tmp_path: Path, text: str, part: str
) -> None:
    error = refusal(tmp_path, with_profiles(fast, tmp_path, text))
    assert error["field"] == PROFILES_NAMED_BY[fast["adapter"]]
    assert error["value"] == str(tmp_path / "profiles.xml")
    assert part in error["message"]
    assert error["remedy"]


def test_a_file_of_profiles_that_is_not_there_is_an_error(fast: Config, tmp_path: Path) -> None:
    missing = {"environment": {PROFILES_NAMED_BY[fast["adapter"]]: "/nonexistent/profiles.xml"}}
    error = refusal(tmp_path, CYCLE | fast | missing)
    assert error["field"] == PROFILES_NAMED_BY[fast["adapter"]]
    assert "/nonexistent/profiles.xml" in error["message"]


def test_profiles_in_the_folder_hold_and_their_errors_are_told(
    fast: Config, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    file = tmp_path / PROFILES_FILE[fast["adapter"]]
    file.write_text(
        PROFILES.format("<participant profile_name='p'><rtps><name>n</name></rtps></participant>")
    )
    reader, _ = measure(tmp_path, CYCLE | fast)
    assert reader.meta["adapter"]["transport_asked"] == "vendor"
    file.write_text(participant("<nosuch/>"))
    (tmp_path / "again").mkdir()
    error = refusal(tmp_path / "again", CYCLE | fast)
    assert error["field"] == file.name
    assert "nosuch" in error["message"]


@needs_fifo
def test_threads_are_set_by_the_system(fast: Config, tmp_path: Path) -> None:
    reader, _ = measure(tmp_path, CYCLE | fast | {"options": {"threads": "rr:20"}})
    threads = threads_of(reader.meta)
    assert {(t["policy"], t["priority"]) for t in threads.values()} == {("rr", 20)}
    counted = reader.meta["adapter"]["threads"]
    assert counted["count"] == str(len(threads))
    assert counted["set_by_middleware"] == ""
    names, with_ids = set_so(reader.meta, "set_by_system")
    assert names == sorted(without_port(thread["name"]) for thread in threads.values())
    assert sorted(with_ids) == sorted(f"{thread['name']} ({tid})" for tid, thread in threads.items())
    assert ("dds.udp.PORT" in names) == (fast["adapter"] == "fastdds3")  # version 2 gives no names


@pytest.mark.parametrize(
    ("transport", "loan", "receive", "sharing"),
    [
        ("shm", "no", "spin", "off"),
        ("shm", "no", "listener", "off"),
        ("shm", "yes", "spin", "off"),
        ("udp", "yes", "spin", "off"),
        ("data_sharing", "yes", "spin", "on"),
        ("data_sharing", "yes", "listener", "on"),
        ("vendor", "no", "spin", "auto"),
    ],
)
def test_each_transport_carries_a_round_trip(
    fast: Config, tmp_path: Path, transport: str, loan: str, receive: str, sharing: str
) -> None:
    options = {"transport": transport, "loan": loan}
    config = fast | {"options": options, "receive": receive, "payload_bytes": 32_768}
    config |= {"period_ns": 4 * MS, "samples": 50}
    with client_and_server(tmp_path, config) as (client, server):
        settled(client, server)
    described = read(client.log)[0].meta["adapter"]
    assert (described["transport"], described["loan"]) == (transport, loan)
    assert described["qos"]["data_sharing"] == sharing
    assert described["type"] == f"rtmeter_dds::{'Block32K' if loan == 'yes' else 'Message'}"


@pytest.mark.parametrize("transport", ["shm", "data_sharing"])
def test_mebibytes_travel_through_shared_memory(fast: Config, tmp_path: Path, transport: str) -> None:
    options = {"transport": transport, "loan": "yes" if transport == "data_sharing" else "no"}
    config = fast | {"options": options, "payload_bytes": 4 << 20, "period_ns": 50 * MS, "samples": 10}
    with client_and_server(tmp_path, config | {"warm_up": 2}) as (client, server):
        settled(client, server)


@pytest.mark.parametrize(
    ("options", "payload_bytes", "field"),
    [
        ({"transport": "data_sharing"}, 500, "option transport"),
        ({"threads": "tev=fifo:20"}, 500, "option threads"),
        ({"transport": "shm"}, 1 << 30, "payload_bytes"),
        ({"peers": "somewhere"}, 500, "option peers"),
        ({"transport": "shm", "interface": "lo"}, 500, "option interface"),
        ({"transport": "shm", "peers": "127.0.0.1"}, 500, "option peers"),
    ],
)
def test_what_cannot_be_is_refused_by_name(
    fast: Config, tmp_path: Path, options: Config, payload_bytes: int, field: str
) -> None:
    error = refusal(tmp_path, CYCLE | fast | {"options": options, "payload_bytes": payload_bytes})
    assert error["field"] == field
    assert error["remedy"]
