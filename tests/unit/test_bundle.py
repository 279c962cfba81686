"""The probes for a target in one file: which are in it, and what each needs, as its ELF file says."""

from __future__ import annotations

import hashlib
import json
import re
import shutil
import subprocess
import tarfile
from pathlib import Path

import pytest
from pretended_ssh import no_ssh

from rtmeter import cli
from rtmeter.errors import RtmeterError
from rtmeter.host.ssh import PROGRAM, Ssh
from rtmeter.measure.probe import elf, images, probes
from rtmeter.measure.probe.bundle import make_bundle
from rtmeter.measure.probe.places import There

MACHINE_OF_ELF = 18  # where an ELF file says it
ARM = 40


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """All probes that are found: null, and one of it that says it is for ARM, before it."""
    real = probes.find_probes()["null"]
    arm, own = tmp_path / "arm", tmp_path / "own"
    for place in (arm, own):
        place.mkdir()
        shutil.copy(real, place / "rtmeter-probe-null")
    image = bytearray((arm / "rtmeter-probe-null").read_bytes())
    image[MACHINE_OF_ELF] = ARM
    (arm / "rtmeter-probe-null").write_bytes(image)
    monkeypatch.setattr(probes, "search_path", lambda: iter((arm, own)))
    monkeypatch.setattr(probes, "cross_builds", lambda: iter(()))
    return tmp_path


def test_a_probe_for_another_machine_is_for_targets_only(folder: Path) -> None:
    assert probes.find_probes() == {"null": folder / "own" / "rtmeter-probe-null"}
    probe = probes.find("null")
    assert images.image_for(probe, "armv7l") == (folder / "arm" / "rtmeter-probe-null").read_bytes()
    assert images.image_for(probe, "x86_64") == probe.path.read_bytes()
    assert images.image_for(probe, "aarch64") is None


@pytest.mark.parametrize("kernel", ["armv7l", "aarch64"])
@pytest.mark.parametrize(
    ("said", "code"),
    [
        ("sh: 1: /tmp/probe: not found", 127),
        ("bash: /tmp/probe: /lib/ld-linux-armhf.so.3: bad ELF interpreter: No such file or directory", 126),
        ("qemu-arm: Could not open '/lib/ld-linux-armhf.so.3': No such file or directory", 255),
    ],
)
def test_the_loader_that_a_target_lacks_is_that_of_the_probe_carried_there(
    folder: Path, monkeypatch: pytest.MonkeyPatch, said: str, code: int, kernel: str
) -> None:
    arm = folder / "arm" / "rtmeter-probe-null"
    loaders = (b"/lib64/ld-linux-x86-64.so.2", b"/lib/ld-linux-armhf.so.3".ljust(27, b"\0"))
    arm.write_bytes(arm.read_bytes().replace(*loaders))
    answer = f'case $last in *--describe*) echo "{said}" >&2; exit {code};; esac\n'
    run = f"uname() {{ echo {kernel}; }}\n"
    run += "od() { echo 7f 45 4c 46 01 01 01; }\n"  # whatever the kernel is, its programs have 32 bits
    run += 'eval "$(printf %s "$last" | sed "s/^exec sh -c /eval /; s/exec sh -lc /eval /")"'
    monkeypatch.setenv(PROGRAM, no_ssh(folder, answer + run))
    with pytest.raises(RtmeterError) as refused:
        There(Ssh("ssh://there", "on")).tried(probes.find("null"))
    assert "has another libc: it lacks /lib/ld-linux-armhf.so.3," in refused.value.message


def test_a_bundle_holds_the_probes_of_its_architecture_and_says_what_they_need(folder: Path) -> None:
    file = folder / "bundle.tar.gz"
    (entry,) = make_bundle("armhf", file)
    first = file.read_bytes()
    image = (folder / "arm" / "rtmeter-probe-null").read_bytes()
    assert (entry["name"], entry["sha256"]) == ("null", hashlib.sha256(image).hexdigest())
    with tarfile.open(file) as tar:
        assert tar.getnames() == ["rtmeter-armhf/bundle.json", "rtmeter-armhf/rtmeter-probe-null"]
        assert tar.getmember("rtmeter-armhf/rtmeter-probe-null").mode == 0o755
        told = json.loads(tar.extractfile("rtmeter-armhf/bundle.json").read())  # type: ignore[union-attr]
        assert tar.extractfile("rtmeter-armhf/rtmeter-probe-null").read() == image  # type: ignore[union-attr]
    assert (told["format"], told["arch"], told["adapters"]) == ("rtmeter-bundle", "armhf", [entry])
    make_bundle("armhf", file)
    assert file.read_bytes() == first


@pytest.mark.skipif(shutil.which("readelf") is None, reason="needs readelf")
def test_what_an_elf_file_needs_is_as_readelf_says(folder: Path) -> None:
    path = folder / "own" / "rtmeter-probe-null"
    said = subprocess.run(["readelf", "-dV", path], capture_output=True, text=True, check=True).stdout
    image = path.read_bytes()
    assert elf.needed_by(image) == re.findall(r"NEEDED.*\[(.+)\]", said)
    versions = re.findall(r"Name: GLIBC_([\d.]+)", said)
    assert elf.glibc_of(image) == max(versions, key=lambda one: [*map(int, one.split("."))])
    assert elf.needed_by(image[:200]) == [] and elf.glibc_of(b"") is None


def test_the_command_says_what_is_in_it_or_why_there_is_none(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = folder / "x.tar.gz"
    assert cli.invoke(["bundle", "--arch", "x86_64", "-o", str(file), "--json"]) == 0
    (entry,) = json.loads(capsys.readouterr().out)["adapters"]
    assert entry["name"] == "null" and not any(needed.startswith("libc.so") for needed in entry["needs"])
    assert cli.invoke(["bundle", "--arch", "armhf", "-o", str(file)]) == 0
    assert "1 adapter" in capsys.readouterr().out
    for arch, words in (
        ("aarch64", "make cross"),
        ("mips", "is no choice; choose aarch64 or armhf or x86_64"),
    ):
        assert cli.invoke(["bundle", "--arch", arch, "-o", str(folder / "none")]) == 1
        assert words in capsys.readouterr().err
    assert not (folder / "none").exists()
    assert cli.invoke(["bundle", "--arch", "x86_64", "-o", str(folder / "no" / "x")]) == 1
    assert "cannot be written" in capsys.readouterr().err
