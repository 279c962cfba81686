"""Another machine's journal of root, as an ordinary user and as root find it there."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path

import pytest

from rtmeter.conditions.restore import Restored, restore
from rtmeter.errors import RtmeterError
from rtmeter.host import state
from rtmeter.host.remote_root import RemoteRoot
from rtmeter.host.remote_shell import Shell
from rtmeter.host.ssh import PROGRAM, Ssh

pytestmark = pytest.mark.skipif(os.geteuid() != 0, reason="needs root, who becomes another user")

NOBODY = "setpriv --reuid=65534 --regid=65534 --clear-groups"


@pytest.fixture
def system(monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """Root's folder there, which is not made yet."""
    with tempfile.TemporaryDirectory() as folder:
        Path(folder).chmod(0o755)
        monkeypatch.setattr(state, "SYSTEM", Path(folder) / "rtmeter")
        yield state.SYSTEM


@pytest.fixture
def restored_by(system: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[..., Restored]:
    """restore() by a user there, with a state folder."""

    def ended(user: str, folder: Path, set_aside: bool = False) -> Restored:
        program = system.parent / "ssh"
        program.write_text(
            f'#!/bin/sh\nfor last; do :; done\nexport {state.VARIABLE}={folder}\nexec {user} sh -c "$last"\n'
        )
        program.chmod(0o755)
        monkeypatch.setenv(PROGRAM, str(program))
        with closing(Shell(Ssh("ssh://there", "on"))) as shell:
            return restore(RemoteRoot(shell=shell, keeps_journal=True), set_aside=set_aside)

    return ended


def test_a_folder_that_root_alone_may_look_into_is_told_until_root_has_shown_it(
    system: Path, restored_by: Callable[..., Restored]
) -> None:
    own = system.parent / "own"
    assert restored_by(NOBODY, own) == Restored((), (), None)
    system.mkdir(mode=0o700)
    (said,) = restored_by(NOBODY, own).unknown
    assert "it may not be looked at, and a run of root may have been killed" in said
    assert said.endswith("run `rtmeter restore --on` as root there")
    assert restored_by("env", system) == Restored((), (), None)
    assert restored_by(NOBODY, own) == Restored((), (), None)
    (system / "journal").symlink_to("nothing")
    (said,) = restored_by(NOBODY, own).unknown
    assert said.endswith("a run of root was killed; run `rtmeter restore --on` as root there")


def test_a_folder_that_root_has_elsewhere_stays_as_it_is(
    system: Path, restored_by: Callable[..., Restored]
) -> None:
    (own := system.parent / "own").mkdir(mode=0o700)
    assert restored_by("env", own).whole
    assert own.stat().st_mode & 0o777 == 0o700


@pytest.mark.parametrize(
    "make", [Path.mkdir, os.mkfifo, lambda path: path.symlink_to("nothing")], ids=["folder", "pipe", "link"]
)
def test_what_is_no_journal_is_told_until_it_is_set_aside(
    system: Path, restored_by: Callable[..., Restored], make: Callable[[Path], None]
) -> None:
    system.mkdir()
    make(path := system / "journal")
    said = "cannot be read: it is no regular file: what it says is not known"
    assert restored_by("env", system) == Restored((), (said,), path)
    path.with_name("journal.aside-1").symlink_to("nothing")
    assert restored_by("env", system, True) == Restored((), (said,), path.with_name("journal.aside-2"))
    assert restored_by("env", system) == Restored((), (), None)


def test_a_folder_that_a_link_leads_to_is_judged_by_its_own_mode(
    system: Path, restored_by: Callable[..., Restored]
) -> None:
    (kept := system.parent / "kept").mkdir()
    system.symlink_to(kept)
    (kept / "journal").touch()
    assert restored_by("env", system) == Restored((), (), None)
    (kept / "journal").touch()
    (kept / "journal").chmod(0o666)
    with pytest.raises(RtmeterError, match="has a journal that others than root can write: -rw-rw-rw-"):
        restored_by("env", system)


@pytest.mark.parametrize(
    ("whose", "mode"), [("journal", None), ("kept", None), ("kept", 0o664), ("kept", 0o646)]
)
def test_a_journal_that_another_user_may_write_or_lead_elsewhere_is_not_heeded(
    system: Path, restored_by: Callable[..., Restored], whose: str, mode: int | None
) -> None:
    """A link's own mode says nothing; who owns it says where it leads."""
    system.mkdir()
    (system / "kept").touch()
    (system / "journal").symlink_to("kept")
    if mode is None:
        os.chown(system / whose, 65534, 65534, follow_symlinks=False)
    else:
        (system / whose).chmod(mode)
    with pytest.raises(RtmeterError, match="has a journal that others than root can write"):
        restored_by("env", system)
