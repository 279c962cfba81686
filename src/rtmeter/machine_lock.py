"""One rtmeter measures a machine at a time: two would disturb each other, and undo each other's settings."""

from __future__ import annotations

import fcntl
import json
import os
import pwd
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from datetime import UTC, datetime
from pathlib import Path

from rtmeter import state
from rtmeter.errors import RtmeterError

FILE = "rtmeter.lock"
_LOOK_EVERY_S = 0.2


@contextmanager
def machine_lock(
    what: str, *, wait: bool = False, on_wait: Callable[[str], None] = lambda holder: None
) -> Iterator[None]:
    """Holds the machine's lock; it ends with its holder, however that ends (flock(2)).

    ``what`` is told to who finds it held. With ``wait`` it waits as long as it takes, and calls ``on_wait``
    once with who holds it; without, that is an RtmeterError.
    """
    path = state.lock_folder() / FILE
    descriptor = _open(path)
    try:
        if not _taken(descriptor):
            holder = _holder(descriptor)
            if not wait:
                remedy = "wait until it has ended (--wait does), or end it"
                message = f"is held: one measures here already, {holder}"
                raise RtmeterError(message, field="lock", value=str(path), remedy=remedy)
            on_wait(holder)
            while not _taken(descriptor):
                time.sleep(_LOOK_EVERY_S)
        _write(descriptor, what)
        yield
    finally:
        os.close(descriptor)


def _open(path: Path) -> int:
    """The lock file, open to be locked by every user; never inherited by a child."""
    flags = os.O_CLOEXEC | os.O_NOFOLLOW
    failure: OSError | None = None
    with suppress(OSError):  # said below, if the file is not there
        path.parent.mkdir(parents=True, exist_ok=True)
    # In a sticky folder nobody may create over another's file (fs.protected_regular), but lock it he may.
    for mode in (os.O_RDWR | os.O_CREAT, os.O_RDWR, os.O_RDONLY):
        try:
            descriptor = os.open(path, flags | mode, 0o666)
        except OSError as error:
            failure = failure or error
            continue
        with suppress(PermissionError):  # another user's, who did this already
            os.fchmod(descriptor, 0o666)
        return descriptor
    assert failure is not None
    raise RtmeterError(
        f"cannot be opened: {(failure.strerror or '').lower()}",
        field="lock",
        value=str(path),
        remedy=f"make its folder writable, or name another one in {state.VARIABLE}",
    )


def _taken(descriptor: int) -> bool:
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


def _write(descriptor: int, what: str) -> None:
    """Who holds it now; one that may only read the file leaves it as it is."""
    with suppress(OSError):
        os.ftruncate(descriptor, 0)
        os.pwrite(descriptor, about(what).encode(), 0)


def about(what: str) -> str:
    """What the lock's file says of its holder, who is this process."""
    started = datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
    return json.dumps({"pid": os.getpid(), "user": _user(), "what": what, "since": started})


def _user() -> str:
    try:
        return pwd.getpwuid(os.getuid()).pw_name
    except KeyError:
        return str(os.getuid())


def _holder(descriptor: int) -> str:
    try:
        return told(os.pread(descriptor, 4096, 0))
    except OSError:
        return told(b"")


def told(content: bytes) -> str:
    """The holder in words, by what the lock's file says."""
    try:
        about = json.loads(content)
        return f"{about['what']} of {about['user']}, process {about['pid']}, since {about['since']}"
    except (ValueError, KeyError, TypeError):
        return "by another process, which does not say who it is"
