"""A probe on another host: what is carried there and brought back. The host is a folder of this one."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from pretended_ssh import no_ssh

from rtmeter.errors import RtmeterError
from rtmeter.host.ssh import PROGRAM, Ssh
from rtmeter.measure.probe import places
from rtmeter.measure.probe.places import There
from rtmeter.measure.probe.probes import Probe

LOG = "server.rtlog"


class Host:
    """Its folder for temporary files, and the probe's folder there once it was started."""

    def __init__(self, folder: Path, here: Path) -> None:
        self._folder, self._here = folder, here
        self.place = There(Ssh("ssh://there", "hosts.component"))

    def start(self, *, loss_timeout_ns: int = 0, **options: str) -> Path:
        """What the probe, whose clock is a script's, writes there, as the config that was carried says."""
        facts = {"rtmeter": "1", "version": "1", "clock": "scripted"}
        path = self._here / "rtmeter-probe-none"
        path.write_text(f"#!/bin/sh\necho '{json.dumps(facts)}'\n")
        config = {"role": "server", "log": str(self._here / LOG), "options": options}
        self.probe = Probe("none", path, facts)
        self.command = self.place.command(
            self.probe, config | {"loss_timeout_ns": loss_timeout_ns}, self._here
        )
        assert config["options"] == options
        [carried] = self._folder.glob("*/config.json")
        self.options = json.loads(carried.read_text())["options"]
        return Path(json.loads(carried.read_text())["log"])

    def is_empty(self) -> bool:
        return not any(self._folder.iterdir())


@pytest.fixture
def host(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Host:
    folder, here = tmp_path / "there", tmp_path / "here"
    folder.mkdir()
    here.mkdir()
    monkeypatch.setenv(PROGRAM, no_ssh(tmp_path, 'exec sh -c "$last"'))
    monkeypatch.setenv("TMPDIR", str(folder))
    return Host(folder, here)


def test_the_log_is_brought_and_nothing_stays(host: Host, tmp_path: Path) -> None:
    host.start().write_bytes(b"rows")
    host.place.collect()
    assert (tmp_path / "here" / LOG).read_bytes() == b"rows"
    assert host.is_empty()


def test_a_probe_that_never_measured_has_no_log(host: Host, tmp_path: Path) -> None:
    host.start()
    host.place.collect()
    assert not (tmp_path / "here" / LOG).exists()
    assert host.is_empty()


def test_its_script_is_carried(host: Host, tmp_path: Path) -> None:
    script = tmp_path / "delays.csv"
    script.write_text("wake_delay_ns\n1\n")
    there = host.start(script=str(script), report="none").parent
    assert host.options == {"script": str(there / "script"), "report": "none"}
    assert (there / "script").read_text() == script.read_text()
    host.place.collect()
    assert host.is_empty()
    with pytest.raises(RtmeterError, match=r"script = .*none\.csv.*No such file"):
        host.start(script=str(tmp_path / "none.csv"))


def test_a_log_for_which_there_is_no_room_here_stays_there(host: Host, tmp_path: Path) -> None:
    theirs = host.start()
    theirs.write_bytes(b"rows")
    (tmp_path / "here" / LOG).symlink_to("/dev/full")
    with pytest.raises(RtmeterError) as refused:
        host.place.collect()
    assert str(theirs.parent) in (refused.value.remedy or "")
    assert theirs.read_bytes() == b"rows"


def test_a_folder_that_cannot_be_removed_is_named_and_the_log_is_here(
    host: Host, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    theirs = host.start()
    theirs.write_bytes(b"rows")
    cut = no_ssh(tmp_path, 'case "$last" in *"rm -rf"*) exit 255;; esac\nexec sh -c "$last"')
    monkeypatch.setenv(PROGRAM, cut)
    (doubt,) = host.place.collect()
    assert (doubt.type, str(theirs.parent) in doubt.message) == ("folder_not_removed", True)
    assert (tmp_path / "here" / LOG).read_bytes() == b"rows"
    with pytest.raises(RtmeterError, match=r"the folder \S+ stays on ssh://there"):
        host.place.tried(host.probe)


OLDER = '#!/bin/sh\necho "$0: version \\`GLIBC_2.99\' not found (required by $0)" >&2\nexit 1\n'


@pytest.mark.parametrize(
    ("carried", "installed", "asked"),
    [
        (True, None, ["carried"]),
        (True, OLDER, ["carried", "installed"]),
        (True, "#!/bin/sh\necho '{}'\n", ["carried", "installed"]),
        (False, OLDER, ["installed"]),
    ],
    ids=["none there", "neither", "the one there", "none for that machine here"],
)
def test_a_probe_that_cannot_be_loaded_there_gives_way_to_another_and_is_not_asked_twice(
    host: Host, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, carried: bool, installed: str | None, asked
) -> None:
    (here := tmp_path / "own" / "rtmeter-probe-none").parent.mkdir()
    here.write_text(OLDER)
    if not carried:
        monkeypatch.setattr(places, "image_for", lambda *_: None)
    (path := tmp_path / "bin" / "rtmeter-probe-none").parent.mkdir()
    if installed is not None:
        path.write_text(installed)
        path.chmod(0o755)
    log, no_login = tmp_path / "asked", "s/exec sh -lc /exec sh -c /"
    body = f'echo "$last" >>{log}\nexport PATH={path.parent}:$PATH\n'
    ssh = no_ssh(tmp_path, body + f'exec sh -c "$(printf %s "$last" | sed "{no_login}")"')
    monkeypatch.setenv(PROGRAM, ssh)
    if installed in (None, OLDER):
        with pytest.raises(RtmeterError, match=r"has an older libc: the probe needs GLIBC_2\.99"):
            host.place.tried(Probe("none", here, {}))
    else:
        assert host.place.tried(Probe("none", here, {})) == {}
    said = [line for line in log.read_text().splitlines() if "--describe" in line]
    assert [("carried", "installed")[str(path) in line] for line in said] == asked
    assert host.is_empty()


@pytest.mark.parametrize(("loss_timeout_ns", "grace_s"), [(0, 15), (1, 16), (40_000_000_000, 55)])
def test_a_probe_there_is_killed_no_earlier_than_what_it_waits_for_can_be_lost(
    host: Host, loss_timeout_ns: int, grace_s: int
) -> None:
    host.start(loss_timeout_ns=loss_timeout_ns)
    assert f'test "$n" -lt {grace_s};' in host.command[-1]
