"""tools/install-packages.sh: what a release does not have costs what needs it, and nothing else; and make's
.venv."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent.parent
INDEX = " 500 http://deb.debian.org/debian bookworm/main amd64 Packages"
STUBS = {
    "dpkg-query": '[ -e "installed/$3" ] && echo "ii "',
    "apt-cache": "cat index",
    "sudo": '"$@"',
    "apt-get": """
for word; do
  case "$word" in --simulate) simulated=yes ;; -* | *::*) ;; *) told="$told $word" ;; esac
done
[ -n "$simulated" ] || echo $told >>done
case "$told" in *-of-no-release*) ;; *) exit 0 ;; esac
echo noise; echo "E: Unable to locate package ${told##* }"; exit 100""",
}

STAMP = ".venv/requirements.stamp"


class Machine:
    """A Debian of stubs, whose releases lack each package named ``…-of-no-release``."""

    def __init__(self, folder: Path, wanted: str) -> None:
        self.folder = folder
        for made in ("tools", "packages/installed", "bin"):
            (folder / made).mkdir(parents=True)
        shutil.copy(ROOT / "tools/install-packages.sh", folder / "tools")
        (folder / "packages/some.txt").write_text(wanted)
        (folder / "packages/index").write_text(f"Package files:\n{INDEX}\n")
        for name, words in STUBS.items():
            (folder / "bin" / name).write_text(f"#!/bin/sh\n{words}\n")
            (folder / "bin" / name).chmod(0o755)

    def has(self, *packages: str) -> None:
        for package in packages:
            (self.folder / "packages/installed" / package).touch()

    def install(self) -> subprocess.CompletedProcess[str]:
        environment = {"PATH": f"{self.folder / 'bin'}:{os.environ['PATH']}"}
        command = [self.folder / "tools/install-packages.sh", "some"]
        return subprocess.run(command, env=environment, capture_output=True, text=True, check=False)

    @property
    def done(self) -> list[str]:
        """What apt-get was told to change."""
        told = self.folder / "packages/done"
        return told.read_text().splitlines() if told.exists() else []


LEFT_OUT = "left out, with what needs it: b-of-no-release (E: Unable to locate package b-of-no-release)\n"


def test_what_this_release_lacks_is_left_out_and_named(tmp_path: Path) -> None:
    machine = Machine(tmp_path, "# Needed.\nneeded\n# Middleware.\na?\nb-of-no-release?  # the third\nc?\n")
    machine.has("c")
    said = machine.install()
    assert (said.returncode, said.stderr) == (0, "")
    assert said.stdout == f"{LEFT_OUT}installing Debian packages: needed a\n"
    assert machine.done == ["update", "install needed a"]


def test_what_is_needed_and_not_there_is_an_error(tmp_path: Path) -> None:
    said = Machine(tmp_path, "needed-of-no-release\na?\n").install()
    assert said.returncode == 100


def test_nothing_is_asked_where_all_is_there(tmp_path: Path) -> None:
    machine = Machine(tmp_path, "needed\na?\n")
    machine.has("needed", "a")
    said = machine.install()
    assert (said.returncode, said.stdout, machine.done) == (0, "", [])


@pytest.mark.parametrize("indexed", [True, False])
def test_it_is_asked_for_again_without_privilege_where_there_is_an_index(
    tmp_path: Path, indexed: bool
) -> None:
    machine = Machine(tmp_path, "needed\nb-of-no-release?\n")
    machine.has("needed")
    if not indexed:
        (tmp_path / "packages/index").write_text("Package files:\n 100 /var/lib/dpkg/status\n")
    said = machine.install()
    assert (said.returncode, said.stdout) == (0, LEFT_OUT)
    assert machine.done == ([] if indexed else ["update"])


@pytest.mark.parametrize("broken", ["no pip", "no pip any more", "no Python any more"])
def test_an_environment_that_is_not_whole_is_made_anew(tmp_path: Path, broken: str) -> None:
    """As where it was given up half-way, since Python's package venv was not there yet: Python is in it, and
    pip is not; or where the Python that it was made of is there no more."""
    shutil.copy(ROOT / "Makefile", tmp_path)
    for folder in ("tools", ".venv/bin"):
        (tmp_path / folder).mkdir(parents=True)
    (tmp_path / "tools/install-packages.sh").symlink_to("/bin/true")
    (tmp_path / "requirements.lock").touch()
    inside = tmp_path / ".venv/bin/python"
    inside.symlink_to("gone" if broken == "no Python any more" else sys.executable)
    if broken == "no Python any more":
        (tmp_path / ".venv/bin/pip").touch()
    if broken != "no pip":
        (tmp_path / STAMP).touch()
    python = tmp_path / "python"
    python.write_text(
        f'#!/bin/sh\necho "$*" >>made\nrm -r .venv\nmkdir -p .venv/bin\n'
        f"ln -s {sys.executable} .venv/bin/python\ntouch .venv/bin/pip\n"
    )
    python.chmod(0o755)
    make = ["make", f"PYTHON={python}", "PIP=true", "install-locked=echo >>installed", STAMP]
    for _ in range(2):  # in the second it is whole
        subprocess.run(make, cwd=tmp_path, check=True, capture_output=True)
        assert (tmp_path / STAMP).exists()
    assert (tmp_path / "made").read_text() == "-m venv --clear .venv\n"
    assert (tmp_path / "installed").read_text() == "\n"
    (tmp_path / STAMP).unlink()
    subprocess.run(make, cwd=tmp_path, check=True, capture_output=True)
    assert (tmp_path / "made").read_text() == "-m venv --clear .venv\n"
    assert (tmp_path / "installed").read_text() == "\n\n"
