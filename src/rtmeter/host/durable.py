"""What stays after a power loss: contents and names that are on the disk when a function returns."""

from __future__ import annotations

import ctypes
import errno
import os
from pathlib import Path

_AT_FDCWD, _RENAME_EXCHANGE = -100, 2  # fcntl.h, linux/fs.h


def sync(path: Path) -> None:
    """The content of the file, or which names the folder has, is on the disk. Raises OSError."""
    descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK)  # no pipe is waited for
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def make_folders(folder: Path) -> list[Path]:
    """Makes the folder and those above it that are not there; returns which, the deepest first.

    Raises OSError.
    """
    missing = [path for path in (folder, *folder.parents) if not path.exists()]
    folder.mkdir(parents=True, exist_ok=True)
    for made in missing:
        sync(made.parent)
    return missing


def write_whole(file: Path, text: str) -> None:
    """The text, on the disk; until then what the file was, whatever comes between. Raises OSError."""
    new = file.with_name(f"{file.name}.new")
    new.write_text(text, encoding="utf-8")
    sync(new)
    new.replace(file)
    sync(file.parent)


def exchange(one: Path, other: Path) -> bool:
    """Gives each of two things the other's name, at once; False where the file system cannot. Raises
    OSError."""
    names = (_AT_FDCWD, os.fsencode(one), _AT_FDCWD, os.fsencode(other))
    if ctypes.CDLL(None, use_errno=True).renameat2(*names, _RENAME_EXCHANGE) == 0:
        return True
    if (number := ctypes.get_errno()) in (errno.EINVAL, errno.ENOSYS, errno.EOPNOTSUPP):
        return False
    raise OSError(number, os.strerror(number), str(one))
