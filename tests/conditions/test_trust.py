"""Root heeds no journal, and runs no program, that another user could have written."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace

import pytest
from planted_kernel import PlantedKernel, planted

from rtmeter import cli
from rtmeter.campaign.condition_options import SystemSettings
from rtmeter.campaign.matrix import cell_from
from rtmeter.campaign.rules import settle
from rtmeter.conditions.companion import find_program
from rtmeter.conditions.journal import path_of
from rtmeter.conditions.restore import restore
from rtmeter.conditions.settings import Settings
from rtmeter.errors import RtmeterError
from rtmeter.host import trust
from rtmeter.host.root import Root
from rtmeter.measure.can_run import lacking
from rtmeter.measure.probe import probes
from rtmeter.measure.programs.started import StartedProgram
from waiting import until

pytestmark = pytest.mark.skipif(os.geteuid() != 0, reason="needs root, who may give files away")

OTHER = 65534
STALE = 4_000_000
SETTINGS = SystemSettings.model_validate({"timer_migration": "off"})


def refused(path: Path) -> str:
    """Why root does not trust it; empty if it does."""
    try:
        trust.require_trusted(path, field="adapter", value="x", verb="run")
    except RtmeterError as error:
        assert error.remedy and "chown root" in error.remedy
        return error.message
    return ""


@pytest.fixture
def program(tmp_path: Path) -> Path:
    """One in a folder in a folder."""
    path = tmp_path / "a" / "b" / "program"
    path.parent.mkdir(parents=True)
    path.write_text("#!/bin/sh\n")
    path.chmod(0o755)
    return path


SPOILT: dict[str, tuple[Callable[[Path], object], str]] = {
    "its owner": (lambda p: os.chown(p, OTHER, 0), "program belongs to nobody"),
    "an owner without a name": (lambda p: os.chown(p, STALE, 0), f"program belongs to {STALE}"),
    "all may write it": (lambda p: p.chmod(0o757), "program can be written by everybody"),
    "a group may": (
        lambda p: (os.chown(p, 0, OTHER), p.chmod(0o775)),
        "program can be written by the group nogroup",
    ),
    "its folder's owner": (lambda p: os.chown(p.parent, OTHER, 0), "b belongs to nobody"),
    "all may write the folder above": (
        lambda p: p.parent.parent.chmod(0o777),
        "a can be written by everybody",
    ),
    "a sticky folder of another": (
        lambda p: (p.parent.chmod(0o1777), os.chown(p.parent, OTHER, 0)),
        "b belongs to nobody",
    ),
}


@pytest.mark.parametrize("what", SPOILT)
def test_one_thing_that_another_can_write_is_enough(program: Path, what: str) -> None:
    assert refused(program) == ""
    spoil, said = SPOILT[what]
    spoil(program)
    assert said in refused(program)


def test_links_are_followed_through_every_folder(program: Path, tmp_path: Path) -> None:
    theirs, ours = tmp_path / "theirs", tmp_path / "ours"
    theirs.mkdir()
    ours.mkdir()
    (theirs / "hop").symlink_to("../a/b")
    (ours / "program").symlink_to(theirs / "hop" / "program")
    assert refused(ours / "program") == ""
    os.chown(theirs, OTHER, 0)
    assert "theirs belongs to nobody" in refused(ours / "program")
    os.chown(theirs, 0, 0)
    os.chown(theirs / "hop", OTHER, 0, follow_symlinks=False)
    assert "hop belongs to nobody" in refused(ours / "program")


def test_a_link_that_goes_round_is_an_error_as_the_kernels(tmp_path: Path) -> None:
    (tmp_path / "round").symlink_to("round")
    with pytest.raises(OSError, match="symbolic links"):
        trust.require_trusted(tmp_path / "round", field="x", value="x", verb="run")


def test_what_lies_in_a_sticky_folder_is_its_owners(program: Path) -> None:
    program.parent.chmod(0o1777)
    assert refused(program) == ""
    assert "b can be written by everybody" in refused(program.parent)  # itself it may get anything


def test_who_called_sudo_is_root_already(program: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    os.chown(program, OTHER, 0)
    os.chown(program.parent, OTHER, 0)
    monkeypatch.setenv("SUDO_UID", str(OTHER))
    assert refused(program) == ""
    monkeypatch.setenv("SUDO_UID", "1")
    assert "belongs to nobody" in refused(program)
    monkeypatch.setenv("SUDO_UID", "no number")
    assert "belongs to nobody" in refused(program)


def test_so_is_whose_rtmeter_it_is(program: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A checkout in a container: root runs this code, and so may run what was built of it."""
    (tmp_path / "trust.py").touch()
    os.chown(tmp_path / "trust.py", OTHER, 0)
    os.chown(program, OTHER, 0)
    monkeypatch.setattr(trust, "__file__", str(tmp_path / "trust.py"))
    assert refused(program) == ""


def test_the_group_of_one_user_alone_is_that_user(program: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Of distributions with umask 002 everybody's files can be written by such a group."""
    groups = {7: SimpleNamespace(gr_name="root", gr_mem=[])}
    monkeypatch.setattr(trust.grp, "getgrgid", groups.__getitem__)
    os.chown(program, 0, 7)
    program.chmod(0o775)
    assert refused(program) == ""
    groups[7].gr_mem = ["root", "mallory"]
    assert "can be written by the group" in refused(program)
    groups[7] = SimpleNamespace(gr_name="staff", gr_mem=[])
    assert "can be written by the group staff" in refused(program)
    del groups[7]
    assert "can be written by the group 7" in refused(program)


def test_others_trust_what_they_like(program: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    os.chown(program, STALE, 0)
    monkeypatch.setattr(os, "geteuid", lambda: OTHER)
    assert refused(program) == ""


def test_a_probe_of_another_user_is_not_even_asked_what_it_is(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    folder, ran = tmp_path / "probes", tmp_path / "ran"
    folder.mkdir()
    probe = folder / "rtmeter-probe-posix"
    probe.write_text(f"#!/bin/sh\ntouch {ran}\necho '{{}}'\n")
    probe.chmod(0o755)
    monkeypatch.setattr(probes, "search_path", lambda: iter([folder]))
    os.chown(folder, OTHER, 0)
    command = ["measure", "wakeup", "--adapter", "posix", "--period", "1ms", "--duration", "1s"]
    assert cli.invoke(command) == 1
    assert f"root does not run {probe}: {folder} belongs to nobody" in capsys.readouterr().err
    assert cli.invoke(["adapters"]) == 1
    assert not ran.exists()
    os.chown(folder, 0, 0)
    cli.invoke(["adapters"])
    assert ran.exists()


@pytest.mark.parametrize("name", ["stress-ng", "iperf3", "tc", "cyclictest"])
def test_nor_a_program_of_path(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    ran = tmp_path / "ran"
    program = tmp_path / name
    program.write_text(f"#!/bin/sh\ntouch {ran}\n")
    program.chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}:{os.environ['PATH']}")
    os.chown(program, OTHER, 0)
    with pytest.raises(RtmeterError, match=f"root does not run {program}"):
        find_program(name, "load")
    with pytest.raises(RtmeterError, match=f"root does not run {program}"):
        Root().run([name])
    assert not ran.exists()
    os.chown(program, 0, 0)
    assert find_program(name, "load") == str(program)


def test_nor_the_program_of_a_command(program: Path, tmp_path: Path) -> None:
    ran = tmp_path / "ran"
    program.write_text(f"#!/bin/sh\ntouch {ran}\nexec sleep 60\n")
    os.chown(program.parent, OTHER, 0)
    given = {"measurement": "loop", "adapter": "attached", "duration": "1s", "command": f"{program} --fast"}
    cell = cell_from(settle(given), "cell", {})
    said = f"root does not run {program}: {program.parent} belongs to nobody"
    assert any(said in str(error) for error in lacking(cell))  # as --dry-run tells
    with pytest.raises(RtmeterError, match=said):
        StartedProgram(given["command"], cell.config, tmp_path, [])
    assert not ran.exists()
    os.chown(program.parent, 0, 0)
    assert not any(said in str(error) for error in lacking(cell))
    with StartedProgram(given["command"], cell.config, tmp_path, []):
        until(ran.exists)


@pytest.fixture
def kernel(tmp_path: Path) -> PlantedKernel:
    return planted(tmp_path / "root")


def test_a_journal_of_another_user_is_not_undone(kernel: PlantedKernel, state_folder: Path) -> None:
    Settings(SETTINGS, kernel).__enter__()
    journal, done = path_of("local"), len(kernel.changes)
    for theirs in (journal, state_folder):
        os.chown(theirs, OTHER, 0)
        with pytest.raises(RtmeterError, match=f"root does not heed {journal}: {theirs} belongs to nobody"):
            restore(kernel)
        os.chown(theirs, 0, 0)
    assert len(kernel.changes) == done
    assert restore(kernel).whole and len(kernel.changes) > done


def test_nothing_is_changed_where_another_user_could_write_the_journal(
    kernel: PlantedKernel, state_folder: Path
) -> None:
    state_folder.mkdir(mode=0o777)
    state_folder.chmod(0o777)
    with pytest.raises(RtmeterError, match=r"root does not heed .* can be written by everybody"):
        Settings(SETTINGS, kernel).__enter__()
    assert kernel.changes == [] and not list(state_folder.iterdir())
