"""What a component's host may lack: each is said with its remedy, before anything is measured."""

from __future__ import annotations

import json
import os
import stat
from pathlib import Path
from typing import Any

import pytest

from rtmeter.campaign.matrix import cell_from
from rtmeter.campaign.rules import settle
from rtmeter.conditions import applied
from rtmeter.errors import RtmeterError
from rtmeter.host.root import Root
from rtmeter.host.ssh import PROGRAM, Ssh
from rtmeter.measure.cell import run_cell
from rtmeter.measure.probe.places import There
from rtmeter.measure.probe.probes import PREFIX, Probe, require
from rtmeter.measure.probe.supervise import Stop

CONFIG = {"role": "server", "version": 1}


class Machine:
    """A machine behind a program in the place of ssh: this one, but with other programs in ``tools``."""

    def __init__(self, folder: Path) -> None:
        self.tools, self.temporary = folder / "tools", folder / "there"
        self.tools.mkdir()
        self.temporary.mkdir()
        self.ssh = self._program(
            folder / "ssh",
            f"for last; do :; done\nexport PATH={self.tools}:$PATH TMPDIR={self.temporary}\n"
            'exec sh -c "$(printf %s "$last" | sed "s/exec sh -lc /exec sh -c /")"',
        )

    def has(self, name: str, body: str) -> None:
        """A program there."""
        self._program(self.tools / name, body)

    def has_probe(self, facts: dict[str, Any]) -> None:
        """A probe that says this of itself."""
        self.has(f"{PREFIX}posix", f"cat <<'END'\n{json.dumps(facts)}\nEND")

    def _program(self, path: Path, body: str) -> Path:
        path.write_text(f"#!/bin/sh\n{body}\n")
        path.chmod(path.stat().st_mode | stat.S_IXUSR)
        return path


@pytest.fixture
def machine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Machine:
    machine = Machine(tmp_path)
    monkeypatch.setenv(PROGRAM, str(machine.ssh))
    return machine


@pytest.fixture(scope="module")
def probe() -> Probe:
    return require("posix", "roundtrip")


def start(probe: Probe, folder: Path) -> list[str]:
    """What would start it there; leaves nothing behind."""
    place = There(Ssh("ssh://there", "hosts.component"))
    try:
        return place.command(probe, {**CONFIG, "log": str(folder / "server.rtlog")}, folder)
    finally:
        place.collect()


def refusal(probe: Probe, folder: Path) -> str:
    with pytest.raises(RtmeterError) as caught:
        start(probe, folder)
    assert caught.value.field == "hosts.component"
    return str(caught.value)


def test_nothing_is_changed_here_where_the_host_is_out_of_reach(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    class Untouched(Root):
        def write(self, name: str, text: str) -> None:
            raise AssertionError(name)

    migration = tmp_path / "root" / "proc" / "sys" / "kernel" / "timer_migration"
    migration.parent.mkdir(parents=True)
    migration.write_text("1")
    given = {"measurement": "roundtrip", "adapter": "posix", "conditions": {"timer_migration": "off"}}
    cell = cell_from(settle(given | {"hosts": {"component": "ssh://there"}}), "cell", {})
    monkeypatch.setenv(PROGRAM, "false")
    with pytest.raises(RtmeterError) as caught, applied(cell, tmp_path, Untouched(tmp_path / "root")):
        pass
    assert caught.value.field == "hosts.component"


def test_it_runs_where_nothing_is_wrong(machine: Machine, probe: Probe, tmp_path: Path) -> None:
    command = " ".join(start(probe, tmp_path))
    assert f"{PREFIX}posix --config {machine.temporary}/rtmeter-" in command
    assert list(machine.temporary.iterdir()) == []


def test_another_architecture(machine: Machine, probe: Probe, tmp_path: Path) -> None:
    machine.has("uname", "echo mips")
    said = refusal(probe, tmp_path)
    assert "is a machine of another architecture (mips; the probe of posix here is for" in said
    assert "put rtmeter-probe-posix, built for mips, into the PATH there" in said
    assert list(machine.temporary.iterdir()) == []


def test_it_is_looked_at_before_anything_is_changed_there(machine: Machine, tmp_path: Path) -> None:
    for name in ("mktemp", "cat", "dd", "flock", "taskset", "stress-ng"):
        machine.has(name, f"touch {tmp_path}/changed")
    machine.has("uname", "echo mips")
    given = {"measurement": "roundtrip", "adapter": "posix", "hosts": {"component": "ssh://there"}}
    cell = cell_from(settle(given | {"load": "cpu=1"}), "cell", {})
    record = run_cell(cell, tmp_path / "cell", Stop(), lambda event: None, keep_empty=False)
    assert record.error is not None
    assert "is a machine of another architecture (mips" in record.error.message
    assert not (tmp_path / "changed").exists()


def test_another_architecture_with_a_probe_of_its_own(machine: Machine, probe: Probe, tmp_path: Path) -> None:
    machine.has("uname", "echo mips")
    machine.has_probe(probe.facts)
    assert f"{machine.tools}/{PREFIX}posix --config" in " ".join(start(probe, tmp_path))


def test_a_probe_there_for_yet_another_architecture(machine: Machine, probe: Probe, tmp_path: Path) -> None:
    machine.has("uname", "echo mips")
    (machine.tools / f"{PREFIX}posix").symlink_to(probe.path)
    said = refusal(probe, tmp_path)
    assert f"has a {machine.tools}/{PREFIX}posix for another architecture ({os.uname().machine}," in said


@pytest.mark.parametrize("key", ["name", "rtmeter", "version"])
def test_a_probe_of_another_version(machine: Machine, probe: Probe, tmp_path: Path, key: str) -> None:
    machine.has("uname", "echo mips")
    machine.has_probe(probe.facts | {key: "0.0.1"})
    said = refusal(probe, tmp_path)
    what = "adapter" if key == "name" else "version"
    assert f"of another {what}: 0.0.1, and here is {probe.facts[key]}; put the same probe there" in said


def test_a_program_that_is_no_probe(machine: Machine, probe: Probe, tmp_path: Path) -> None:
    machine.has("uname", "echo mips")
    machine.has(f"{PREFIX}posix", "echo hello")
    assert "does not describe itself; put the same probe there" in refusal(probe, tmp_path)


def test_no_place_for_files(machine: Machine, probe: Probe, tmp_path: Path) -> None:
    machine.has("mktemp", "echo 'mktemp: failed to create directory: No space left on device' >&2; exit 1")
    said = refusal(probe, tmp_path)
    assert "No space left on device; free space in its /tmp, or set TMPDIR there" in said


def test_no_mktemp(machine: Machine, probe: Probe, tmp_path: Path) -> None:
    machine.has("mktemp", "echo 'sh: 4: mktemp: not found' >&2; exit 127")
    assert "says: sh: 4: mktemp: not found; install it there" in refusal(probe, tmp_path)


def test_no_space_for_the_probe(machine: Machine, probe: Probe, tmp_path: Path) -> None:
    machine.has("cat", "echo 'cat: write error: No space left on device' >&2; exit 1")
    machine.has("mktemp", f'exec {os.path.realpath("/usr/bin/mktemp")} "$@"')
    assert "No space left on device; free space in its /tmp, or set TMPDIR there" in refusal(probe, tmp_path)


def test_a_library_that_is_missing_there(machine: Machine, tmp_path: Path, probe: Probe) -> None:
    said = "error while loading shared libraries: libddsc.so.0: cannot open shared object file: No such file"
    path = machine.tools / f"{PREFIX}dds"
    machine.has(path.name, f"echo '{path.name}: {said} or directory' >&2; exit 127")
    refused = refusal(Probe("dds", path, probe.facts), tmp_path)
    assert said in refused
    assert "install there what the probe needs of its middleware" in refused


@pytest.fixture
def newer(machine: Machine, tmp_path: Path, probe: Probe) -> Probe:
    """The probe of this machine, which was built with a libc that the other one has not."""
    path = tmp_path / "here" / f"{PREFIX}posix"
    path.parent.mkdir()
    wanted = "/lib/libc.so.6: version \\`GLIBC_2.99' not found"
    path.write_text(f'#!/bin/sh\necho "$0: {wanted} (required by $0)" >&2\nexit 1\n')
    path.chmod(0o755)
    return Probe("posix", path, probe.facts)


def test_a_probe_there_where_the_one_from_here_cannot_be_loaded(
    machine: Machine, newer: Probe, tmp_path: Path
) -> None:
    said = refusal(newer, tmp_path)
    assert "has an older libc: the probe needs GLIBC_2.99" in said
    assert "put rtmeter-probe-posix, built for that system, into the PATH there" in said
    machine.has_probe(newer.facts)
    assert f"{machine.tools}/{PREFIX}posix --config" in " ".join(start(newer, tmp_path))
    assert There(Ssh("ssh://there", "on")).tried(newer) == newer.facts
    machine.has_probe(newer.facts | {"version": "0.0.1"})
    assert "of another version: 0.0.1" in refusal(newer, tmp_path)
