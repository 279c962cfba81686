"""Puts back what was changed; what someone else changed since is left to them."""

from __future__ import annotations

import errno
import time
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from rtmeter.conditions.journal import JournalEntry
from rtmeter.errors import RtmeterError
from rtmeter.host.root import Root

PATIENCE_S = 15
"""How long the kernel is asked again if it is not ready. A group that was removed counts for those above it
for a while still; a real-time probe cannot go to a group without run time, but ends by itself when its
front is gone, at the latest after its loss timeout."""

_LOOK_EVERY_S = 0.02
_NOT_YET = (errno.EAGAIN, errno.EBUSY, errno.EINVAL)

Ending = Literal["restored", "unchanged", "gone", "changed_since", "rebooted", "failed"]


@dataclass(frozen=True, slots=True)
class Undone:
    """What became of a change.

    ``restored``: the old value is back, and was read back; ``unchanged``: it had it still, or again;
    ``gone``: what was changed is not there any more; ``changed_since``: it has a value (``now``) that
    neither is the old one nor was rtmeter's, and keeps it; ``rebooted``: the machine has forgotten the
    change; ``failed``: the old value could not be set (``error``).
    """

    entry: JournalEntry
    ending: Ending
    now: str | None = None
    error: str = ""

    @property
    def settled(self) -> bool:
        """Whether nothing is left to do."""
        return self.ending != "failed"

    def __str__(self) -> str:
        name, old, new = self.entry.resource.name, self.entry.old, self.entry.new
        back = f"put back to {old!r}" if old is not None else "taken away"
        state = f", is {self.now!r}" if self.now is not None else ""
        words = {
            "restored": back,
            "unchanged": f"was {old!r} already" if old is not None else "was not there",
            "gone": "is not there any more",
            "changed_since": f"is {self.now!r} now: rtmeter had set {new!r} where it was {old!r}, so someone "
            "else has changed it since; left as it is",
            "rebooted": f"was changed before the machine was booted anew, which put {old!r} back",
            "failed": f"could not be {back}{state}: {self.error}",
        }
        return f"{name}: {words[self.ending]}"


def undo(entries: Sequence[JournalEntry], root: Root) -> list[Undone]:
    """Undoes the changes, the last one first; what is undone already is left as it is."""
    limit = time.monotonic() + PATIENCE_S
    return [_undone(entry, root, limit) for entry in reversed(entries)]


def _undone(entry: JournalEntry, root: Root, limit: float) -> Undone:
    """None keeps the others from being undone."""
    try:
        return _undo(entry, root, limit)
    except OSError as error:
        return _refused(entry, None, error)
    except (ValueError, RtmeterError) as error:
        return Undone(entry, "failed", None, str(error))


def _refused(entry: JournalEntry, now: str | None, error: OSError) -> Undone:
    return Undone(entry, "failed", now, (error.strerror or str(error)).lower())


def _undo(entry: JournalEntry, root: Root, limit: float) -> Undone:
    resource, now = entry.resource, entry.resource.read(root)
    if now is None:
        return Undone(entry, "unchanged" if entry.old is None else "gone")
    if resource.same(now, entry.old):
        return Undone(entry, "unchanged", now)
    if not resource.is_ours(now, entry.new):
        return Undone(entry, "changed_since", now)
    try:
        _write(entry, root, limit)
    except (ProcessLookupError, FileNotFoundError):
        return Undone(entry, "gone")
    except OSError as error:
        return _refused(entry, now, error)
    now = resource.read(root)
    if now is None and entry.old is not None:
        return Undone(entry, "gone")
    if not resource.same(now, entry.old):
        return Undone(entry, "failed", now, "it did not take the value")
    return Undone(entry, "restored", now)


def _write(entry: JournalEntry, root: Root, limit: float) -> None:
    while True:
        try:
            return entry.resource.write(root, entry.old)
        except OSError as error:
            if error.errno not in _NOT_YET or time.monotonic() > limit:
                raise
        time.sleep(_LOOK_EVERY_S)
