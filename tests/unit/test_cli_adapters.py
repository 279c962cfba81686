"""`rtmeter adapters`: what was found, its version, what it measures, and what the missing ones need."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from rtmeter.cli import exit_codes, invoke
from rtmeter.measure.probe.known_adapters import KNOWN_ADAPTERS

ROOT = Path(__file__).parents[2]
FACTS = {
    "name": "iceoryx",
    "middleware": "Eclipse iceoryx",
    "middleware_version": "2.0.3",
    "measures": ["wakeup", "roundtrip"],
    "drives": {"cycle": ["spin", "poll"]},
    "receives": {"roundtrip": ["spin", "listener"]},
    "option": {"transport": "udp|shm: what carries messages"},
    "second_topic": ["same_node"],
    "wire": "iceoryx",
}


@pytest.fixture
def found(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Two probes: iceoryx, and ros1, which does not answer."""
    for name, script in (
        ("iceoryx", f"echo '{json.dumps(FACTS)}'"),
        ("ros1", "echo no library >&2; exit 127"),
    ):
        path = tmp_path / f"rtmeter-probe-{name}"
        path.write_text(f"#!/bin/sh\n{script}\n")
        path.chmod(0o755)
    monkeypatch.setattr("rtmeter.measure.probe.probes.search_path", lambda: iter([tmp_path]))
    monkeypatch.setattr("rtmeter.measure.probe.probes._builds", lambda checkout: iter(()))
    return tmp_path


def test_each_is_shown_with_its_version_and_what_it_measures(
    found: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "200")
    assert invoke(["adapters"]) == 1  # one is broken
    shown = capsys.readouterr().out
    assert re.search(r"iceoryx +Eclipse iceoryx +2\.0\.3 +wakeup, roundtrip", shown)
    assert "--drive spin|poll (cycle)" in shown
    assert "--receive spin|listener (roundtrip)" in shown
    assert "--option transport=udp|shm: what carries messages" in shown
    assert "--second-topic same_node (roundtrip)" in shown
    assert "--server-adapter NAME, one that speaks iceoryx, too" in shown
    assert re.search(r"ros1 +broken +.*no library", shown)
    for name, known in KNOWN_ADAPTERS.items():
        line = re.search(rf"^ *{name} +{re.escape(known.middleware)} +{re.escape(known.remedy)}", shown, re.M)
        assert (line is None) == (name in ("iceoryx", "ros1")), name


def test_what_a_probe_says_is_shown_as_it_is(
    found: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Brackets are no markup, and what a terminal would heed is none."""
    monkeypatch.setenv("COLUMNS", "400")
    (found / "rtmeter-probe-ros1").write_text("#!/bin/sh\necho '[/usr/lib/a.so] [error]' >&2; exit 1\n")
    said = FACTS | {"middleware": "My [/x] [y]", "option": {"mode": "a [b] \x1b[2J"}}
    (found / "rtmeter-probe-iceoryx").write_text(f"#!/bin/sh\necho '{json.dumps(said)}'\n")
    assert invoke(["adapters"]) == 1
    shown = capsys.readouterr().out
    assert re.search(r"ros1 +broken .*\[/usr/lib/a\.so\] \[error\]", shown)
    assert re.search(r"iceoryx +My \[/x\] \[y\] +2\.0\.3 ", shown)
    assert r"--option mode=a [b] \x1b[2J" in shown


def test_one_alone_is_shown_found_or_missing(found: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert invoke(["adapters", "iceoryx"]) == 0  # that another one is broken is not asked
    shown = capsys.readouterr().out
    assert "--receive spin|listener (roundtrip)" in shown and not {"ros1", "zenoh"} & set(shown.split())
    assert invoke(["adapters", "zenoh"]) == 0
    shown = capsys.readouterr().out
    assert KNOWN_ADAPTERS["zenoh"].middleware in shown and "iceoryx" not in shown
    for name, remedy in (("rclcp", "did you mean rclpy?"), ("carrier", "name one of cyclonedds, ")):
        assert invoke(["adapters", name]) == 1
        assert f"adapter = '{name}': is no adapter; {remedy}" in capsys.readouterr().err


def test_a_program_gets_the_same(found: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert invoke(["adapters", "--json"]) == 1
    listed = json.loads(capsys.readouterr().out)
    iceoryx, ros1 = listed["adapters"]
    assert iceoryx == FACTS | {"path": str(found / "rtmeter-probe-iceoryx")}
    assert "no library" in ros1["error"]["message"] and ros1["error"]["remedy"]
    missing = {one["name"]: one["remedy"] for one in listed["missing"]}
    assert missing == {
        name: known.remedy for name, known in KNOWN_ADAPTERS.items() if name not in ("iceoryx", "ros1")
    }


def test_the_commands_are_those_that_configure_prints() -> None:
    for name, known in KNOWN_ADAPTERS.items():
        folder = ROOT / "adapters" / name
        assert (folder / "CMakeLists.txt").is_file()
        printed = re.findall(r'missing\(\w+ "(apt install [^"]*)"', (folder / "CMakeLists.txt").read_text())
        assert all(command in known.remedy for command in printed), name
        if known.needs.startswith("apt install") and "<" not in known.needs:
            packages = known.needs.removeprefix("apt install ").partition(",")[0].split()
            listed = "\n".join(file.read_text() for file in (ROOT / "packages").glob("*.txt")).split()
            optional = "" if name in ("posix", "null") else "?"  # a release may have no such middleware
            assert {f"{package}{optional}" for package in packages} - {"cargo-web?"} <= set(listed), name


def test_what_configure_lacked_is_told_before_what_such_adapters_need(
    found: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """The newest build's words: what is installed, but unfit, is not to be installed again."""
    newest, older = found / "newest", found / "older"
    for build, why in ((newest, "Fast-CDR 1; the one found is 2"), (older, "apt install fastddsgen")):
        build.mkdir()
        rows = ["posix|built|", f"fastdds|not built|{why}", "iceoryx|not built|daemons | segments"]
        (build / "rtmeter-adapters.txt").write_text("\n".join(rows) + "\n")
    monkeypatch.setattr("rtmeter.measure.probe.probes._builds", lambda checkout: iter((newest, older)))
    assert invoke(["adapters", "--json"]) == 1
    missing = {one["name"]: one["remedy"] for one in json.loads(capsys.readouterr().out)["missing"]}
    assert missing["fastdds"] == "Fast-CDR 1; the one found is 2, then make"
    assert missing["orocos"] == KNOWN_ADAPTERS["orocos"].remedy  # configure said nothing of it
    assert invoke(["measure", "roundtrip", "--adapter", "fastdds", "--duration", "1s"]) == 1
    assert "Fast-CDR 1; the one found is 2, then make" in capsys.readouterr().err


@pytest.mark.usefixtures("fake_probe")
@pytest.mark.parametrize(
    ("refused", "said"),
    [
        ("refuse_slack", "--timer-slack = '1.5ms': is too much; choose less"),
        ("refuse_itself", "--option behave = 'refuse_itself': is wrong; choose die"),
    ],
)
def test_what_a_probe_refuses_is_named_by_the_option_that_was_given(
    refused: str, said: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    words = ["measure", "wakeup", "--adapter", "fake", "--option", f"behave={refused}"]
    assert invoke([*words, "--samples", "1097", "--out", str(tmp_path / "a")]) == exit_codes.ERROR
    assert f"rtmeter: {said}\n" in capsys.readouterr().err
