"""Finding probes and asking them what they are."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest

from rtmeter.campaign.matrix import cell_from
from rtmeter.campaign.rules import settle
from rtmeter.errors import RtmeterError
from rtmeter.host.root import Root
from rtmeter.measure.can_run import refused
from rtmeter.measure.cell import source_of
from rtmeter.measure.probe import probes
from rtmeter.measure.probe.known_adapters import KNOWN_ADAPTERS
from rtmeter.model import Cell
from waiting import until


def make_probe(folder: Path, name: str, script: str = "echo '{}'") -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / f"rtmeter-probe-{name}"
    path.write_text(f"#!/bin/sh\n{script}\n")
    path.chmod(0o755)
    return path


def test_one_that_does_not_describe_itself_in_time_leaves_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A script that waits for another program, which is not told that the script was killed."""
    monkeypatch.setattr(probes, "_DESCRIBE_TIMEOUT_S", 0.5)
    script = f"sleep 1000 & echo $! > {tmp_path}/child; wait"
    with pytest.raises(RtmeterError, match=r"does not describe itself: it does not answer within 0\.5 s"):
        probes.describe("slow", make_probe(tmp_path, "slow", script))
    child = Root().at(f"/proc/{(tmp_path / 'child').read_text().strip()}/stat")
    until(lambda: not child.exists() or ") Z " in child.read_text())


@pytest.fixture
def only_ours(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """No probes but those of the test."""
    monkeypatch.setattr(probes, "_PACKAGE", tmp_path / "checkout" / "src" / "rtmeter")
    monkeypatch.setattr(probes, "_CHECKOUT", tmp_path / "checkout")
    for variable in ("RTMETER_PROBE_PATH", "AMENT_PREFIX_PATH"):
        monkeypatch.delenv(variable, raising=False)
    monkeypatch.setenv("PATH", "/bin:/usr/bin")
    return tmp_path


def test_the_first_place_wins(only_ours: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    named = make_probe(only_ours / "named", "a")
    make_probe(only_ours / "workspace" / "lib" / "rtmeter", "a")
    workspace = make_probe(only_ours / "workspace" / "lib" / "rtmeter", "b")
    installed = make_probe(only_ours / "checkout" / "src" / "rtmeter" / "probes", "c")
    on_path = make_probe(only_ours / "bin", "d")
    make_probe(only_ours / "lib" / "rtmeter", "d")
    beside = make_probe(only_ours / "lib" / "rtmeter", "e")  # as `make install` puts it
    monkeypatch.setenv("RTMETER_PROBE_PATH", f"{only_ours / 'nowhere'}{os.pathsep}{named.parent}")
    monkeypatch.setenv("AMENT_PREFIX_PATH", str(only_ours / "workspace"))
    monkeypatch.setenv("PATH", f"{on_path.parent}{os.pathsep}/bin")
    assert probes.find_probes() == {"a": named, "b": workspace, "c": installed, "d": on_path, "e": beside}


def test_a_checkouts_builds_are_used_if_they_are_fit_to_measure(only_ours: Path) -> None:
    checkout = only_ours / "checkout"
    (checkout / "spec").mkdir(parents=True)
    (checkout / "spec" / "probe.md").touch()
    for age, (build, cache) in enumerate(
        {
            "asan": "CMAKE_BUILD_TYPE:STRING=Release\nRTMETER_SANITIZE:STRING=address",
            "debug": "CMAKE_BUILD_TYPE:STRING=Debug",
            "cross": "CMAKE_BUILD_TYPE:STRING=Release\nCMAKE_TOOLCHAIN_FILE:FILEPATH=arm.cmake",
            "newer": "CMAKE_BUILD_TYPE:STRING=Release\nRTMETER_SANITIZE:STRING=",
            "older": "CMAKE_BUILD_TYPE:STRING=Release",
        }.items()
    ):
        make_probe(checkout / "build" / build / "adapters" / "posix", "posix")
        (checkout / "build" / build / "CMakeCache.txt").write_text(cache)
        os.utime(checkout / "build" / build / "CMakeCache.txt", (1000 - age, 1000 - age))
    assert probes.find_probes() == {
        "posix": checkout / "build" / "newer" / "adapters" / "posix" / "rtmeter-probe-posix"
    }


def test_what_cannot_be_executed_is_no_probe(only_ours: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    make_probe(only_ours / "x", "a").chmod(0o644)
    (only_ours / "x" / "rtmeter-probe-folder").mkdir()
    monkeypatch.setenv("RTMETER_PROBE_PATH", str(only_ours / "x"))
    assert probes.find_probes() == {}


@pytest.mark.parametrize(
    ("script", "why"),
    [
        ("exit 3", "exit code 3"),
        ("echo 'libros.so: cannot open shared object file' >&2; exit 127", "libros.so: cannot open"),
        ("echo 'libros.so: undefined symbol: spin' >&2; exit 127", "undefined symbol: spin"),
        ("echo nonsense", "does not describe itself"),
        ("echo '[1]'", "does not describe itself"),
    ],
)
def test_a_broken_probe_says_why(tmp_path: Path, script: str, why: str) -> None:
    with pytest.raises(RtmeterError, match=why) as caught:
        probes.describe("broken", make_probe(tmp_path, "broken", script))
    assert caught.value.field == "adapter"
    assert caught.value.remedy
    assert ("in another version than it was built with" in caught.value.remedy) == ("symbol" in why)


def test_an_adapter_that_is_not_built_says_what_to_install(
    fake_probe: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(probes, "_builds", lambda checkout: iter(()))  # no configure that knows better
    for name, known in KNOWN_ADAPTERS.items():
        with pytest.raises(RtmeterError, match="is not built here") as caught:
            probes.require(name, "wakeup")
        assert caught.value.remedy == known.remedy
    with pytest.raises(RtmeterError, match=r"did you mean fake\?"):
        probes.require("fkae", "wakeup")


def test_an_adapter_is_asked_whether_it_can(fake_probe: Path) -> None:
    assert probes.require("fake", "timer.periodic").path == fake_probe
    with pytest.raises(RtmeterError, match="does not measure cycle") as caught:
        probes.require("fake", "cycle")
    assert caught.value.remedy == "it measures wakeup, timer.periodic, roundtrip, chain"


def test_whose_round_trips_need_no_server_process() -> None:
    def inline(facts: dict[str, object], **options: str) -> bool:
        return probes.Probe("a", Path("a"), facts).serves_inline(options)

    assert inline({"server": "inline"})
    assert not inline({})
    by_option: dict[str, object] = {"inline": {"server": ["inline"]}}
    assert inline(by_option, server="inline")
    assert not inline(by_option)
    assert not inline(by_option, server="process", other="inline")


def described(folder: Path, name: str, wire: str | None, *measures: str) -> None:
    facts = {"measures": measures} | ({} if wire is None else {"wire": wire})
    make_probe(folder, name, f"echo '{json.dumps(facts)}'")


@pytest.fixture
def of_two_wires(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Three of one wire (c knows no requests), one of another, one that does not say, one broken."""
    for name in ("a", "b"):
        described(tmp_path, name, "dds", "roundtrip", "request")
    described(tmp_path, "c", "dds", "roundtrip")
    described(tmp_path, "lone", "lone", "roundtrip", "request")
    described(tmp_path, "silent", None, "roundtrip", "request")
    make_probe(tmp_path, "broken", "exit 1")
    monkeypatch.setattr(probes, "search_path", lambda: iter([tmp_path]))
    return tmp_path


def ends(client: str, server: str, measurement: str = "roundtrip") -> Cell:
    given = {"measurement": measurement, "adapter": client, "server_adapter": server}
    return cell_from(settle(given), "cell", {})


@pytest.mark.parametrize(
    ("client", "server", "measurement", "said"),
    [
        (
            "a",
            "lone",
            "roundtrip",
            "speaks lone; the client's adapter, a, speaks dds: neither would hear the other; choose b or c",
        ),
        ("a", "lone", "request", "choose b, or leave it out"),
        (
            "lone",
            "a",
            "roundtrip",
            "speaks dds; the client's adapter, lone, speaks lone: neither would hear the other; leave it out",
        ),
    ],
)
def test_ends_of_two_wires_are_refused_with_who_would_answer(
    of_two_wires: Path, client: str, server: str, measurement: str, said: str
) -> None:
    cell = ends(client, server, measurement)
    with pytest.raises(RtmeterError) as caught:
        source_of(cell).check()
    assert (caught.value.field, caught.value.value) == ("server_adapter", server)
    assert said in str(caught.value)
    assert refused([cell]).keys() == {"cell"}


@pytest.mark.parametrize(
    ("client", "server"), [("a", "c"), ("silent", "a"), ("lone", "silent"), ("lone", "lone")]
)
def test_ends_of_one_wire_or_of_one_that_is_not_told_are_taken(
    of_two_wires: Path, client: str, server: str
) -> None:
    source_of(ends(client, server)).check()


def test_a_servers_adapter_that_cannot_be_is_refused_as_the_servers(of_two_wires: Path) -> None:
    for server, measurement, why in (
        ("c", "request", "does not measure"),
        ("nope", "roundtrip", "not built"),
    ):
        with pytest.raises(RtmeterError, match=why) as caught:
            source_of(ends("a", server, measurement)).check()
        assert (caught.value.field, caught.value.value) == ("server_adapter", server)
