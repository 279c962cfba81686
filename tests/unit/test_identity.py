"""Two machines of one host name are two: told apart by a name that only rtmeter gives them."""

from __future__ import annotations

import shutil
import subprocess
from datetime import UTC, datetime
from pathlib import Path
from types import SimpleNamespace

import pytest
from pretended_ssh import no_ssh

from rtmeter.host import identity
from rtmeter.host.identity import machine_id
from rtmeter.host.remote_root import RemoteRoot
from rtmeter.host.remote_shell import Shell
from rtmeter.host.root import Root
from rtmeter.host.ssh import PROGRAM, Ssh
from rtmeter.measure import cell as source_cell
from rtmeter.measure.source import Ran
from rtmeter.model import Cell

RAW = "0123456789abcdef0123456789abcdef"


def planted(folder: Path, content: str | None, name: str = "etc/machine-id") -> Root:
    if content is not None:
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(content)
    return Root(folder)


def test_it_is_the_hash_that_systemd_makes(tmp_path: Path) -> None:
    # openssl dgst -sha256 -mac HMAC -macopt hexkey:RAW of the application's id; 16 bytes, as a version 4 UUID
    assert machine_id(planted(tmp_path, RAW + "\n")) == "f83208d98faa4b06b6d06051081ab5d8"


@pytest.mark.skipif(shutil.which("systemd-id128") is None, reason="no systemd-id128 here")
def test_systemd_says_the_same_of_this_machine() -> None:
    command = ["systemd-id128", "machine-id", "--app-specific", identity._APPLICATION.hex]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        pytest.skip(done.stderr)
    assert machine_id(Root()) == done.stdout.strip()


def test_the_machines_own_id_is_in_nothing_that_is_told(tmp_path: Path) -> None:
    hashed = machine_id(planted(tmp_path, RAW))
    assert hashed is not None and len(hashed) == 32
    assert not any(RAW[at : at + 8] in hashed for at in range(0, 32, 8))
    other = machine_id(planted(tmp_path / "other", RAW[::-1]))
    assert other != hashed


@pytest.mark.parametrize("content", [None, "", "uninitialized\n", "not an id"])
def test_a_machine_without_an_id_has_none(tmp_path: Path, content: str | None) -> None:
    assert machine_id(planted(tmp_path, content)) is None


@pytest.mark.parametrize("systemd", [None, "uninitialized\n"])
def test_the_bus_knows_it_too(tmp_path: Path, systemd: str | None) -> None:
    planted(tmp_path, systemd)
    root = planted(tmp_path, RAW, "var/lib/dbus/machine-id")
    assert machine_id(root) == machine_id(planted(tmp_path / "etc", RAW))


def test_the_servers_machine_is_named_by_its_own_id_over_ssh(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What the shell there reads, and nothing of this machine's."""
    (tmp_path / "there").write_text(RAW + "\n")
    monkeypatch.setattr(identity, "_FILES", (str(tmp_path / "there"),))
    monkeypatch.setenv(PROGRAM, no_ssh(tmp_path, 'exec sh -c "$last"'))
    shell = Shell(Ssh("ssh://there", "hosts.component"))
    monkeypatch.setattr(source_cell, "_findings", lambda root, intent: [])
    cell = Cell("a", "posix", None, {}, {"measurement": "roundtrip"})
    for name in ("intent_of", "server_intent_of"):
        monkeypatch.setattr(source_cell.machine, name, lambda cell: None)
    own = Ran(datetime.now(UTC), None, machine_id="own", server_machine_id="own")
    try:
        here, there = Root(tmp_path / "here"), RemoteRoot(shell=shell)
        found = source_cell._looked(own, cell, SimpleNamespace(root=here, server_root=there))
        alone = source_cell._looked(own, cell, SimpleNamespace(root=here, server_root=None))
    finally:
        shell.close()
    assert (found.machine_id, found.server_machine_id) == ("own", "f83208d98faa4b06b6d06051081ab5d8")
    assert alone.server_machine_id == "own", "both ends on one machine"
