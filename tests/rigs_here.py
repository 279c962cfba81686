"""Rigs that are shells of this machine, each with a lock, an identity, a boot and temporary files of its own;
in the place of ssh stands a program that knows them by the host's name."""

from __future__ import annotations

import os
import uuid
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

import pytest

from rtmeter.host.ssh import PROGRAM

URL = "ssh://board"

_SSH = """#!/bin/sh
for word; do target=$last; last=$word; done
rig={folder}/${{target#ssh://}}
echo login >>"{folder}/logins"
test -d "$rig" || {{ echo "ssh: connect to host $target: Connection refused" >&2; exit 255; }}
exec unshare -m sh -c '
  mount --bind "$1/lock" /run/lock
  mount --bind "$1/boot_id" /proc/sys/kernel/random/boot_id
  if test -e /etc/machine-id; then mount --bind "$1/machine-id" /etc/machine-id; fi
  export TMPDIR="$1/tmp" RTMETER_STATE_DIR="$1/state"
  export PATH="$1/bin:$PATH"
  eval "$(printf %s "$2" | sed "s/exec sh -lc /exec sh -c /")"
' sh "$rig" "$last"
"""


def ssh(folder: Path) -> str:
    """What RTMETER_SSH is set to."""
    program = folder / "ssh"
    program.write_text(_SSH.format(folder=folder))
    program.chmod(0o755)
    return str(program)


def traceable() -> bool:
    """Whether the kernel's events can be had: of this machine, and so of a rig."""
    return (
        os.geteuid() == 0
        and "tracefs" in Path("/proc/filesystems").read_text().split()
        and str(Path("/proc/self/ns/pid").readlink()) == "pid:[4026531836]"
    )


def program(folder: Path, name: str, body: str) -> None:
    """From now on the rig in the folder has that program in the place of this machine's."""
    (folder / "bin" / name).write_text(f"#!/bin/sh\n{body}\n")
    (folder / "bin" / name).chmod(0o755)


def rig(folder: Path, name: str, machine_id: str | None = None, boot_id: str | None = None) -> None:
    """From now on ``ssh://name`` answers."""
    own = folder / f".{name}"
    own.mkdir()
    for part in ("lock", "tmp", "bin"):
        (own / part).mkdir()
        (own / part).chmod(0o1777)
    (own / "machine-id").write_text((machine_id or uuid.uuid4().hex) + "\n")
    (own / "boot_id").write_text((boot_id or str(uuid.uuid4())) + "\n")
    own.rename(folder / name)


@contextmanager
def board_at(folder: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """The folder of a target that answers to URL; nothing that was brought there is left afterwards."""
    monkeypatch.setenv(PROGRAM, ssh(folder))
    rig(folder, "board")
    yield folder / "board"
    assert list((folder / "board" / "tmp").iterdir()) == []
    assert not (folder / "board" / "state" / "journal").exists()


def file_of(folder: Path, rigs: Mapping[str, str]) -> Path:
    """A file of rigs: name → what is said of each but its address, in YAML's flow style."""
    file = folder / "rigs.yaml"
    lines = [f"  {name}: {{address: 'ssh://{name}', {more}}}" for name, more in rigs.items()]
    file.write_text("\n".join(["rigs:", *lines]) + "\n")
    return file
