"""One rtmeter measures a machine at a time: two would disturb each other, and undo each other's settings."""

from __future__ import annotations

import errno
import fcntl
import json
import math
import os
import pwd
import stat
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from datetime import UTC, datetime
from pathlib import Path

from rtmeter.errors import RtmeterError
from rtmeter.host import state
from rtmeter.host.root import Root
from rtmeter.host.trust import require_trusted
from rtmeter.values import from_json, visible

FILE, ROOTS_FILE = "rtmeter.lock", "rtmeter-root.lock"
ROOT_WAITS_S = 3600
"""So long root waits for a lock that any user can hold; then it goes on."""

_LOOK_EVERY_S = 0.2
_LONGEST_WORDS = 300

Say = Callable[[str], None]

_HELD: list[str] = []


def is_ours() -> bool:
    """Whether this process holds it, or is about to."""
    return bool(_HELD)


@contextmanager
def machine_lock(what: str, *, wait: bool = False, say: Say = lambda sentence: None) -> Iterator[None]:
    """Holds the machine's lock; it ends with its holder, however that ends (flock(2)).

    ``what`` is told to who finds it held. With ``wait`` it waits as long as it takes, and lets ``say`` know
    once for whom; without, that is an RtmeterError. Root holds one of root's own before, and so goes on, and
    says it, where another user keeps everybody's: at once if it cannot be locked at all, after ROOT_WAITS_S
    if it is held (docs/security.md).
    """
    with ExitStack() as stack:
        stack.callback(_HELD.pop)
        _HELD.append(what)
        if os.geteuid() != 0:
            _hold(stack, state.lock_folder() / FILE, 0o666, what, wait, say)
        else:
            _hold(stack, _roots_path(), 0o600, what, wait, say)
            _hold_as_root(stack, state.lock_folder() / FILE, what, wait, say)
        yield


def _roots_path() -> Path:
    """Of the lock that root alone can hold. Raises RtmeterError if others can write to its folder."""
    path = state.roots_lock_folder() / ROOTS_FILE
    with suppress(OSError):  # _open() says it
        path.parent.mkdir(parents=True, exist_ok=True)
        require_trusted(path.parent, field="lock", value=str(path), verb="lock anything in")
    return path


def _hold_as_root(stack: ExitStack, path: Path, what: str, wait: bool, say: Say) -> None:
    """Everybody's lock, if others let root have it."""
    try:
        descriptor = _open(path, 0o666)
    except RtmeterError as error:
        say(f"going on without everybody's lock: {error}")
        return
    stack.callback(os.close, descriptor)
    if not _waited(descriptor, path, wait, say, ROOT_WAITS_S):
        say(f"going on beside {_holder(descriptor)}")
        return
    _write(descriptor, what)


def _hold(stack: ExitStack, path: Path, mode: int, what: str, wait: bool, say: Say) -> None:
    descriptor = _open(path, mode)
    stack.callback(os.close, descriptor)
    _waited(descriptor, path, wait, say, math.inf)
    _write(descriptor, what)


def _waited(descriptor: int, path: Path, wait: bool, say: Say, limit_s: float) -> bool:
    """Whether it is held now. Raises RtmeterError if it would have to wait, and is not to."""
    if _taken(descriptor):
        return True
    holder = _holder(descriptor)
    if not wait:
        remedy = "wait until it has ended (--wait does), or end it"
        message = f"is held: one measures here already, {holder}"
        raise RtmeterError(message, field="lock", value=str(path), remedy=remedy)
    say(f"waiting for {holder}")
    limit = time.monotonic() + limit_s
    while not _taken(descriptor):
        if time.monotonic() > limit:
            return False
        time.sleep(_LOOK_EVERY_S)
    return True


def _open(path: Path, mode: int) -> int:
    """The lock file, open to be locked, for those whom ``mode`` lets; never inherited by a child.

    Others may have put something in its place that waits (a FIFO), leads elsewhere (a symbolic link) or is
    another file's second name: that is an RtmeterError, and left as it is.
    """
    flags = os.O_CLOEXEC | os.O_NOFOLLOW | os.O_NONBLOCK
    failure: OSError | None = None
    with suppress(OSError):  # said below, if the file is not there
        path.parent.mkdir(parents=True, exist_ok=True)
    # In a sticky folder nobody may create over another's file (fs.protected_regular), but lock it he may.
    for access in (os.O_RDWR | os.O_CREAT, os.O_RDWR, os.O_RDONLY):
        try:
            descriptor = os.open(path, flags | access, mode)
        except OSError as error:
            failure = failure or error
            continue
        facts = os.fstat(descriptor)
        if not stat.S_ISREG(facts.st_mode) or facts.st_nlink != 1:
            os.close(descriptor)
            raise _not_opened(path, "it is no file of its own", "see who put it there, and remove it")
        if facts.st_uid == os.geteuid():
            os.fchmod(descriptor, mode)
        return descriptor
    assert failure is not None
    remedy = f"make its folder writable, or name another one in {state.VARIABLE}"
    if failure.errno == errno.ELOOP:
        remedy = "it is a symbolic link: see who put it there, and remove it"
    raise _not_opened(path, (failure.strerror or "").lower(), remedy)


def _not_opened(path: Path, why: str, remedy: str) -> RtmeterError:
    return RtmeterError(f"cannot be opened: {why}", field="lock", value=str(path), remedy=remedy)


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
    """Who holds it, in the file's words if the kernel does not say another process."""
    try:
        content = os.pread(descriptor, 4096, 0)
    except OSError:
        content = b""
    process = _process_that_locked(descriptor)
    if process is None or f"process {process}," in (words := holder(content)):
        return holder(content)
    with suppress(OSError, KeyError):
        user = Path(f"/proc/{process}").stat().st_uid
        return f"process {process} of {pwd.getpwuid(user).pw_name}, which is not what the file says"
    return words


def _process_that_locked(descriptor: int) -> int | None:
    """By /proc/locks (proc(5)); None where it does not tell."""
    facts = os.fstat(descriptor)
    file = f"{os.major(facts.st_dev):02x}:{os.minor(facts.st_dev):02x}:{facts.st_ino}"
    for line in (Root().read("/proc/locks") or "").splitlines():
        _, *words = line.split()
        if words[:1] == ["FLOCK"] and words[4:5] == [file]:
            return int(words[3])
    return None


def holder(content: bytes) -> str:
    """The holder in words, by what the lock's file says, which may be anybody's."""
    try:
        about = from_json(content)
        words = f"{about['what']} of {about['user']}, process {about['pid']}, since {about['since']}"
    except (ValueError, KeyError, TypeError):
        return "another process, which does not say who it is"
    return visible(words[:_LONGEST_WORDS])
