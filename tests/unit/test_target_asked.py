"""What is asked of a target and cannot be had, and what its machine says that must not be believed."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest
from pretended_ssh import no_ssh

from rtmeter.campaign.file import read_campaign
from rtmeter.conditions import journal
from rtmeter.conditions.resources import File
from rtmeter.conditions.target import clock_doubt, reached
from rtmeter.errors import RtmeterError
from rtmeter.host.ssh import PROGRAM
from rtmeter.measure.probe.elf import interpreter_of, machines_of, system_of
from rtmeter.measure.probe.images import libc_words
from rtmeter.model import TARGET

URL = "ssh://root@board"


def campaign(folder: Path, **keys: str) -> Path:
    cell = {"measurement": "wakeup", "adapter": "posix", "period": "1ms", "samples": "10", "on": URL} | keys
    file = folder / "campaign.yaml"
    lines = "".join(f"    {key}: {value}\n" for key, value in cell.items())
    file.write_text(f"name: t\ncells:\n  -\n{lines}")
    return file


def test_on_is_a_key_of_a_campaign_and_an_axis(tmp_path: Path) -> None:
    cells = read_campaign(campaign(tmp_path, on=f"[local, '{URL}']")).cells
    assert [cell.hosts for cell in cells] == [{}, {TARGET: URL}]
    assert "on" not in cells[1].config


@pytest.mark.parametrize(
    ("keys", "field"),
    [
        ({"on": "board"}, "on"),
        ({"on": "'ssh://root@-oProxyCommand=x'"}, "on"),
        ({"on": "'ssh://root@a;reboot'"}, "on"),
        ({"traffic": "{rate: 1Mbit/s, to: desk}"}, "traffic.to"),
        ({"measurement": "roundtrip", "hosts": "{component: 'ssh://root@other'}"}, "hosts.component"),
    ],
)
def test_what_a_target_cannot_have_is_refused(tmp_path: Path, keys: dict[str, str], field: str) -> None:
    with pytest.raises(RtmeterError) as refused:
        read_campaign(campaign(tmp_path, **keys))
    assert refused.value.field == field
    assert refused.value.remedy


def here(monkeypatch: pytest.MonkeyPatch, folder: Path, **programs: str) -> None:
    """The target is a shell here, whose state is in ``folder``/state, with other programs of these names."""
    tools = folder / "tools"
    tools.mkdir()
    for name, body in programs.items():
        (tools / name).write_text(f"#!/bin/sh\n{body}\n")
        (tools / name).chmod(0o755)
    script = f"export RTMETER_STATE_DIR={folder}/state PATH={tools}:$PATH\n"
    script += 'eval "$(printf %s "$last" | sed \'s/exec sh -lc /exec sh -c /\')"'
    monkeypatch.setenv(PROGRAM, no_ssh(folder, script))


def test_its_journal_is_that_of_a_rtmeter_there(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    here(monkeypatch, tmp_path)
    change = File("/proc/sys/a 'quoted' name; $(reboot)")
    with reached(URL) as root:
        written = journal.Journal(root)
        written.intend("a", change, "'$(reboot)", "new %s \\n")
        with pytest.raises(RtmeterError) as twice:
            journal.Journal(root)
        assert twice.value.remedy == f"run `rtmeter restore --on {URL}`"
        there = journal.read(journal.file_of(root))
        local = journal.read(tmp_path / "state" / "journal")
        written.close(settled=True)
    assert there == local and there.unknown == ()
    assert [(e.resource, e.old, e.new) for e in there.entries] == [(change, "'$(reboot)", "new %s \\n")]
    assert not (tmp_path / "state" / "journal").exists()


def test_a_journal_that_is_set_aside_there_has_the_next_free_name(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    here(monkeypatch, tmp_path)
    names = [f"journal.aside-{n}" for n in (1, 2)]
    with reached(URL) as root:
        for name in names:
            journal.Journal(root).close(settled=False)
            assert journal.file_of(root).set_aside() == tmp_path / "state" / name
    assert sorted(path.name for path in (tmp_path / "state").iterdir()) == names


@pytest.mark.parametrize("mode", [0o666, 0o664, 0o646])
def test_a_journal_that_others_can_write_is_not_heeded(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, mode: int
) -> None:
    here(monkeypatch, tmp_path, id="echo 0")
    (tmp_path / "state").mkdir()
    (tmp_path / "state" / "journal").touch()
    (tmp_path / "state" / "journal").chmod(mode)
    with reached(URL) as root, pytest.raises(RtmeterError, match="others than root can write"):
        journal.read(journal.file_of(root))


@pytest.mark.parametrize(("date", "words"), [("echo 86400", "years behind"), ("echo '$(reboot)'", "")])
def test_a_clock_that_is_years_off_is_said(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, date: str, words: str
) -> None:
    here(monkeypatch, tmp_path, date=date)
    with reached(URL) as root:
        doubt = clock_doubt(root)
    assert doubt is not None and doubt.type == "target_clock_off" and words in doubt.message


def test_a_clock_like_the_one_here_is_no_doubt(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    here(monkeypatch, tmp_path)
    with reached(URL) as root:
        assert clock_doubt(root) is None


@pytest.mark.parametrize(
    ("kernel", "shell", "system"),
    [
        ("aarch64", b"\x7fELF\1", "armv8l"),
        ("x86_64", b"\x7fELF\1", "i686"),
        ("aarch64", b"\x7fELF\2", "aarch64"),
        ("armv7l", b"\x7fELF\1", "armv7l"),
        ("aarch64", b"", "aarch64"),
    ],
)
def test_which_probes_a_system_takes_is_told_by_its_shell(kernel: str, shell: bytes, system: str) -> None:
    assert system_of(kernel, shell) == system


def test_what_a_probe_needs_is_read_from_its_file() -> None:
    image = Path("/bin/sh").read_bytes()
    machine = subprocess.run(["uname", "-m"], capture_output=True, text=True, check=True).stdout.strip()
    assert machine in machines_of(image, "none")
    loader = interpreter_of(image)
    assert loader is not None and Path(loader).exists()
    assert interpreter_of(image[:40]) is None
    assert loader in (libc_words(image, "says: sh: /tmp/probe: not found") or "")
    assert "GLIBC_2.99" in (libc_words(image, "version `GLIBC_2.99' not found (required by x)") or "")
    assert libc_words(image, "libddsc.so: cannot open shared libraries: not found") is None
