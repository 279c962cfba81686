"""Folders beside results that a process needs while it measures. Each is listed in the state folder (a link
there leads to it), so that what a process left that was killed is found wherever it lies."""

from __future__ import annotations

import contextlib
import fcntl
import os
import shutil
import tempfile
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path

from rtmeter.errors import RtmeterError
from rtmeter.host import state
from rtmeter.host.durable import make_folders
from rtmeter.host.owned import own_folder
from rtmeter.host.trust import require_trusted

ROWS, TRACE = ".rows-", ".trace-"
"""What such a folder's name begins with: of rows that are written as the events come; of a recording that
several cells have. Nothing in them is a result, nor can one be made of it."""

_LISTED = "scratch"
_PATIENCE_S = 60


@contextlib.contextmanager
def own_beside(parent: Path, prefix: str, say: Callable[[str], None]) -> Iterator[Path]:
    """A folder of this process alone in ``parent`` while the block runs, its name beginning with ``prefix``.
    What processes that were killed have left there is removed; ``say`` is told of it, and of what they have
    left elsewhere. Raises OSError."""
    beside = [one for one in parent.iterdir() if one.name.startswith(prefix) and not one.is_symlink()]
    for said in _removed(beside):
        say(said)
    with contextlib.suppress(RtmeterError):  # root does not heed this list: `restore` says so
        for folder in filter(_is_left, _listed()):
            say(f"{folder}: left by a run that was killed; `rtmeter restore` removes it")
    with tempfile.TemporaryDirectory(prefix=prefix, dir=parent) as made, _listing(Path(made)):
        descriptor, _ = own_folder(Path(made), _PATIENCE_S)  # anew if another removes it before it is locked
        try:
            yield Path(made)
        finally:
            os.close(descriptor)


def remove_left() -> list[str]:
    """Removes what is left of processes that were killed, where it is listed; what is to be said of each.
    Raises RtmeterError if another user could have written the list."""
    return list(_removed(_listed()))


def _removed(folders: Iterable[Path]) -> Iterator[str]:
    """Removes those that nobody has; what is to be said of each. Where it cannot be told whether anybody has
    it, it stays, and that is said."""
    for folder in folders:
        try:
            with _taken(folder):
                shutil.rmtree(folder)
        except BlockingIOError:  # somebody has it
            continue
        except FileNotFoundError:
            pass
        except OSError as error:
            why = (error.strerror or str(error)).lower()
            yield f"{folder}: cannot be removed: {why}; remove it, unless a run that goes on has it"
            continue
        else:
            yield f"{folder}: left by a run that was killed, removed"
        with contextlib.suppress(OSError):  # it is not listed here
            _link(folder).unlink()


@contextlib.contextmanager
def _taken(folder: Path) -> Iterator[None]:
    """Raises OSError, of it BlockingIOError if another process has it."""
    descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        yield
    finally:
        os.close(descriptor)


def _is_left(folder: Path) -> bool:
    with contextlib.suppress(OSError), _taken(folder):
        return True
    return False


def _listed() -> Iterator[Path]:
    folder = state.state_folder() / _LISTED
    with contextlib.suppress(OSError):
        require_trusted(folder, field="journal", value=str(folder), verb="heed")
        for link in sorted(folder.iterdir()):
            with contextlib.suppress(OSError):
                one = link.readlink()
                if one.name.startswith((ROWS, TRACE)) and link.name == one.name:
                    yield one


@contextlib.contextmanager
def _listing(folder: Path) -> Iterator[None]:
    """It is listed, if the list can be written."""
    link = _link(folder)
    with contextlib.suppress(OSError):
        make_folders(link.parent)
        link.symlink_to(folder.absolute())
    try:
        yield
    finally:
        with contextlib.suppress(OSError):
            link.unlink()


def _link(folder: Path) -> Path:
    return state.state_folder() / _LISTED / folder.name
