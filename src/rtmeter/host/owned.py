"""Folders that one process has at a time (flock(2)): a lock ends with its holder, however that ends."""

from __future__ import annotations

import contextlib
import fcntl
import os
import time
from collections.abc import Iterator
from pathlib import Path

from rtmeter.errors import RtmeterError
from rtmeter.host.durable import make_folders

_LOOK_EVERY_S = 0.05


def own_folder(folder: Path, patience_s: float) -> tuple[int, list[Path]]:
    """The folder, made if need be, as a descriptor that locks it; and which above it were made. Raises
    OSError, and RtmeterError if another process has it still after ``patience_s``."""
    above: list[Path] = []
    limit = time.monotonic() + patience_s
    while True:
        above += [made for made in make_folders(folder) if made != folder]
        try:
            descriptor = _locked(folder)
        except BlockingIOError:
            if time.monotonic() < limit:
                time.sleep(_LOOK_EVERY_S)
                continue
            message, remedy = "is being measured by another process", "wait for it, or choose another folder"
            raise RtmeterError(message, field="results", value=str(folder), remedy=remedy) from None
        with contextlib.suppress(FileNotFoundError):
            if os.path.samestat(folder.stat(), os.fstat(descriptor)):
                return descriptor, above
        os.close(descriptor)  # who had it before has just finished it


@contextlib.contextmanager
def kept(folder: Path, patience_s: float = 0) -> Iterator[None]:
    """Keeps everybody else from owning what is there now, also if it is given another name meanwhile. Raises
    OSError, of it BlockingIOError if another process has it still after ``patience_s``."""
    limit = time.monotonic() + patience_s
    while True:
        try:
            descriptor = _locked(folder)
            break
        except BlockingIOError:
            if time.monotonic() >= limit:
                raise
            time.sleep(_LOOK_EVERY_S)
    try:
        yield
    finally:
        os.close(descriptor)


def _locked(folder: Path) -> int:
    """A descriptor of what the folder is now; without a lock on file systems that have none. Raises OSError,
    of it BlockingIOError if another process has it."""
    descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        os.close(descriptor)
        raise
    except OSError:  # a file system without locks
        pass
    return descriptor
