"""Where rtmeter keeps what must outlive it, and what all that run on a machine share."""

from __future__ import annotations

import os
import stat
from pathlib import Path

VARIABLE = "RTMETER_STATE_DIR"
SYSTEM = Path("/var/lib/rtmeter")
_LOCK_FOLDERS = (Path("/run/lock"), Path("/tmp"))
_ROOTS_LOCK_FOLDER = Path("/run")


def is_given() -> bool:
    """Whether $RTMETER_STATE_DIR names the folder."""
    return bool(os.environ.get(VARIABLE))


def state_folder() -> Path:
    """The folder of the journal: that of $RTMETER_STATE_DIR, for root /var/lib/rtmeter, else the user's."""
    if given := os.environ.get(VARIABLE):
        return Path(given).absolute()
    if os.geteuid() == 0:
        return SYSTEM
    home = os.environ.get("XDG_STATE_HOME") or Path.home() / ".local" / "state"
    return Path(home) / "rtmeter"


def lock_folder() -> Path:
    """A folder that every user of the machine can write to, unless $RTMETER_STATE_DIR names another."""
    if is_given():
        return state_folder()
    return next((folder for folder in _LOCK_FOLDERS if _open_to_all(folder)), _LOCK_FOLDERS[-1])


def roots_lock_folder() -> Path:
    """A folder that root alone can write to, unless $RTMETER_STATE_DIR names another."""
    return state_folder() if is_given() else _ROOTS_LOCK_FOLDER


def _open_to_all(folder: Path) -> bool:
    try:
        return bool(folder.stat().st_mode & stat.S_IWOTH)
    except OSError:
        return False
