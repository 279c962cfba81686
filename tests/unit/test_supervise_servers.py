"""What the front does about the server of a round trip, and what it tells it, shown on the fake probe."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from test_supervise import roundtrip, rows, running

from rtmeter.campaign.matrix import cell_from
from rtmeter.campaign.rules import settle
from rtmeter.conditions import Launchers
from rtmeter.host.ssh import Ssh
from rtmeter.measure.probe import supervise
from rtmeter.measure.probe.end_configs import client_config, server_config
from rtmeter.measure.probe.probe_process import ProbeProcess
from rtmeter.measure.probe.probes import Probe
from rtmeter.measure.probe.supervise import Stop
from rtmeter.results import store
from rtmeter.samples import LogReader
from waiting import until

pytestmark = pytest.mark.usefixtures("fake_probe")

KNOWN = {"interface": ": an address", "peers": ": addresses"}


def test_a_server_that_dies_ends_the_run(tmp_path: Path) -> None:
    record = roundtrip(tmp_path, "server_dies", samples=10**6)
    assert (record["status"], record["valid"]) == ("failed", False)
    assert record["error"]["field"] == "server"
    assert "died in mid-run (killed by SIGKILL)" in record["error"]["message"]
    assert running(tmp_path) == []
    assert rows(tmp_path / "cell") > 0


def test_a_server_that_refuses_is_quoted_whenever_it_ends(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It says why and is gone after it was listened to, before its end is looked for."""
    read_events = ProbeProcess.read_events
    started: list[str] = []

    def and_then_it_refuses(process: ProbeProcess) -> list[dict[str, Any]]:
        events = read_events(process)
        heard = tmp_path / "cell.partial" / "heard"
        if not heard.exists():
            started.append(process.role)
            heard.touch()
            until(lambda: process.exit_code is not None)
        return events

    monkeypatch.setattr(ProbeProcess, "read_events", and_then_it_refuses)
    record = roundtrip(tmp_path, "server_refuses")
    assert started == ["server"]
    words = ("field", "value", "message", "remedy")
    assert [record["error"][word] for word in words] == ["cpus", "9", "CPU 9 does not exist", "choose 0-1"]
    assert not (tmp_path / "cell" / store.CLIENT_LOG).exists()  # nothing was started for it


def test_a_server_that_was_asked_to_end_before_there_is_a_client_is_waited_for(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It was killed, and its run said to have died."""
    stop, read_events = Stop(), ProbeProcess.read_events

    def and_then_it_is_asked(process: ProbeProcess) -> list[dict[str, Any]]:
        events = read_events(process)
        if process.event("ready") and not stop.asked:
            stop.ask()
        return events

    monkeypatch.setattr(ProbeProcess, "read_events", and_then_it_is_asked)
    record = roundtrip(tmp_path, "slow", stop=stop)
    assert (record["status"], record["error"]) == ("interrupted", None)
    assert not (tmp_path / "cell" / store.CLIENT_LOG).exists()


def test_the_clients_endpoint_is_the_servers(tmp_path: Path) -> None:
    record = roundtrip(tmp_path, "complete", keep_log=True, cpus="0", server_cpus="1")
    client = LogReader(tmp_path / "cell" / store.CLIENT_LOG).meta["config"]
    server = LogReader(tmp_path / "cell" / store.SERVER_LOG).meta["config"]
    assert client["options"] == {"behave": "complete", "endpoint": "there"}
    assert server["options"] == {"behave": "complete"}
    assert (client["role"], server["role"]) == ("client", "server")
    assert client["session"] == server["session"]
    assert (client["cpus"], server["cpus"]) == ([0], [1])
    assert record["server_config"]["cpus"] == [1]


@pytest.mark.parametrize("of_server", [{}, {"server_options": {"behave": "complete"}}])
def test_an_endpoint_beside_the_servers_own_is_refused(tmp_path: Path, of_server: dict[str, Any]) -> None:
    asked = {"behave": "complete", "endpoint": "elsewhere"}
    error = roundtrip(tmp_path, "complete", options=asked, **of_server)["error"]
    assert (error["field"], error["value"]) == ("options.endpoint", "elsewhere")
    assert error["remedy"] == "leave it out"


@pytest.mark.parametrize(
    ("asked", "offered"),
    [
        ({}, ["interface", "peers"]),
        ({"peers": "10.0.0.9"}, ["interface"]),
        ({"interface": "10.0.0.8", "peers": "10.0.0.9"}, None),
    ],
)
def test_of_where_the_ends_on_two_hosts_are_what_nobody_asked_for_is_offered(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, asked: dict[str, str], offered: list[str] | None
) -> None:
    hosts = {"component": "ssh://there"}
    given = {"measurement": "roundtrip", "adapter": "fake", "hosts": hosts, "options": asked}
    cell, probe = cell_from(settle(given), "cell", {}), Probe("fake", tmp_path, {"option": KNOWN})
    monkeypatch.setattr(supervise, "own_address", {"10.0.0.2": "10.0.0.1"}.__getitem__)
    monkeypatch.setattr(Ssh, "address", lambda _: "10.0.0.2")
    guard: Any = None
    run = supervise._Run(cell, (probe, probe), tmp_path, Stop(), lambda _: None, Launchers(), guard)
    client = client_config(cell, tmp_path)
    server = server_config(cell, client, tmp_path)
    run._introduce(probe, client, probe, server)
    assert client["options"] == {"interface": "10.0.0.1", "peers": "10.0.0.2"} | asked
    assert server["options"] == {"interface": "10.0.0.2", "peers": "10.0.0.1"} | asked
    assert [end.get("offered") for end in (client, server)] == [offered, offered]


def test_a_server_of_another_adapter_gets_its_own_options(tmp_path: Path) -> None:
    given = {"measurement": "roundtrip", "adapter": "fake", "server_adapter": "other", "options": {"a": "1"}}
    cell = cell_from(settle(given), "cell", {})
    assert server_config(cell, cell.config, tmp_path)["options"] == {}
    cell = cell_from(settle(given | {"server_options": {"b": "2"}}), "cell", {})
    assert server_config(cell, cell.config, tmp_path)["options"] == {"b": "2"}


@pytest.mark.parametrize(
    ("of_server", "way"),
    [({}, "poll"), ({"server_receive": "spin"}, "spin"), ({"server_adapter": "other"}, None)],
)
def test_a_server_of_the_same_adapter_receives_as_the_client_does(
    tmp_path: Path, of_server: dict[str, str], way: str | None
) -> None:
    given = {"measurement": "roundtrip", "adapter": "fake", "receive": "poll"}
    cell = cell_from(settle(given | of_server), "cell", {})
    assert server_config(cell, cell.config, tmp_path).get("receive") == way


def test_a_config_file_is_not_left_behind(tmp_path: Path) -> None:
    roundtrip(tmp_path, "complete")
    assert not list((tmp_path / "cell").glob("*.config.json"))
    assert json.loads((tmp_path / "cell" / store.CELL).read_text())["threads"] == {"client": [], "server": []}
