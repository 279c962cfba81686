"""What a run that was killed had changed is put back, by its journal."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from rtmeter.conditions import journal
from rtmeter.conditions.journal_files import ASIDE
from rtmeter.conditions.undo import Undone, undo
from rtmeter.errors import RtmeterError
from rtmeter.host import state
from rtmeter.host.remote_root import RemoteRoot
from rtmeter.host.root import Root
from rtmeter.model import LOCAL


@dataclass(frozen=True, slots=True)
class Restored:
    """What became of the changes in a journal, what of it is not known, and where it is kept, if it is."""

    endings: tuple[Undone, ...]
    unknown: tuple[str, ...]
    kept: Path | None

    @property
    def whole(self) -> bool:
        """Whether the machine is known to be as it was found, but for what others have changed."""
        return not self.unknown and all(ending.settled for ending in self.endings)

    def lines(self) -> Iterator[str]:
        """What ``rtmeter restore`` prints."""
        yield from self.unknown
        yield from map(str, self.endings)
        if self.kept is not None:
            yield f"the journal is kept as {self.kept}"
            if ASIDE not in self.kept.name:
                yield "with --set-aside it is kept under another name, and runs go on then"
        elif not self.endings and not self.unknown:
            yield "nothing was to be put back"

    def to_json(self) -> dict[str, Any]:
        """What ``rtmeter restore --json`` prints."""
        changes: list[dict[str, str | None]] = [
            {
                "setting": u.entry.setting,
                "name": u.entry.resource.name,
                "ending": u.ending,
                "old": u.entry.old,
                "set": u.entry.new,
                "now": u.now,
                "error": u.error or None,
            }
            for u in self.endings
        ]
        kept = None if self.kept is None else str(self.kept)
        return {"whole": self.whole, "changes": changes, "unknown": list(self.unknown), "journal": kept}


def restore(root: Root, *, set_aside: bool = False) -> Restored:
    """Undoes what the journal says; the journal goes when nothing of it is left to do.

    A damaged one stays, or with ``set_aside`` gets another name; so does, then, one whose changes cannot
    be undone. What only root may undo is told. The machine's lock must be held. Raises RtmeterError if the
    journal may not be read, or not be taken away.
    """
    done = _restored(root, set_aside=set_aside)
    roots = [str(said) for said in [_left_by_root(root)] if said] + _of_others_left_by_root(root)
    return replace(done, unknown=(*done.unknown, *roots))


def _restored(root: Root, *, set_aside: bool) -> Restored:
    file = journal.file_of(root)
    past = journal.read(file)
    boot = journal.boot_of(root)
    forgotten = [entry for entry in past.entries if boot and entry.boot and entry.boot != boot]
    endings = undo([entry for entry in past.entries if entry not in forgotten], root)
    endings += [Undone(entry, "rebooted") for entry in reversed(forgotten)]
    done = Restored(tuple(endings), past.unknown, None)
    if not file.exists():
        return done
    try:
        if done.whole:
            file.remove()
            return done
        return replace(done, kept=file.set_aside() if set_aside else Path(str(file)))
    except OSError as error:
        raise journal.stays(file, error) from None


def restore_before_a_run(root: Root) -> tuple[Undone, ...]:
    """What a killed run left is undone; what became of each change.

    Raises RtmeterError if the machine is not known to be as it was found then.
    """
    if roots := _left_by_root(root):
        raise roots
    restored = _restored(root, set_aside=False)
    if not restored.whole:
        said = [*restored.unknown, *(str(ending) for ending in restored.endings if not ending.settled)]
        remedy = f"run `{journal.restoring(root)}`, which tells all of it"
        raise _not_restored(Path(str(journal.file_of(root))), "; ".join(said), remedy)
    return restored.endings


def _left_by_root(root: Root) -> RtmeterError | None:
    """That a run of root was killed, as far as can be seen, where root's journal is not that of this user."""
    own = Path(str(journal.file_of(root)))
    roots = state.SYSTEM / own.name
    there = isinstance(root, RemoteRoot) and root.keeps_journal
    if own == roots or (state.is_given() and not there):
        return None
    left = closed = False
    why, remedy = "a run of root was killed", "run `sudo rtmeter restore`"
    if there:
        if root.is_superuser():
            return None
        remedy = "run `rtmeter restore --on` as root there"
        left = root.run(["sh", "-c", 'test -e "$1" || test -L "$1"', "sh", str(roots)])[0] == 0
        closed = root.run(["sh", "-c", 'test -d "$1" && ! test -x "$1"', "sh", str(state.SYSTEM)])[0] == 0
    else:
        try:
            left = bool(roots.lstat())
        except OSError as error:
            closed = isinstance(error, PermissionError)
    if closed:
        why = "it may not be looked at, and a run of root may have been killed"
    return _not_restored(roots, why, remedy) if left or closed else None


def _of_others_left_by_root(root: Root) -> list[str]:
    """That runs of root here were killed which had changed other machines, if this user has no journal of
    these."""
    if root.host != LOCAL or state.is_given() or state.state_folder() == state.SYSTEM:
        return []
    left = set(journal.hosts(state.SYSTEM)) - set(journal.hosts())
    why, remedy = "a run of root was killed", "run `sudo rtmeter restore`"
    return [
        str(_not_restored(state.SYSTEM / journal.path_of(host).name, why, remedy, host))
        for host in sorted(left)
    ]


def _not_restored(path: Path, why: str, remedy: str, machine: str = "the machine") -> RtmeterError:
    message = f"says that {machine} may not be as it was found: {why}"
    return RtmeterError(message, field="journal", value=str(path), remedy=remedy)
