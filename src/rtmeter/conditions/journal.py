"""What rtmeter is about to change of a machine, on the disk before it changes it.

Each line stands alone: a checksum, a space, and a JSON object with its number, the boot it was written in,
and a change: of what, its old and its new value. Undoing leaves what is undone already as it is, so the
journal need not tell how far that came.
"""

from __future__ import annotations

import json
import zlib
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import quote, unquote

from rtmeter.conditions import resources
from rtmeter.conditions.journal_files import ASIDE, FileHere, FileThere, JournalFile
from rtmeter.conditions.resources import Resource
from rtmeter.errors import RtmeterError
from rtmeter.host import state
from rtmeter.host.remote_root import RemoteRoot
from rtmeter.host.remote_shell import ConnectionLostError
from rtmeter.host.root import Root
from rtmeter.model import LOCAL
from rtmeter.values import from_json

FILE = "journal"
_ELSEWHERE = "journal-on-"
_BOOT_ID = "/proc/sys/kernel/random/boot_id"


@dataclass(frozen=True, slots=True)
class JournalEntry:
    """A change: of which setting, what it was before (None: not there) and what it was to become."""

    number: int
    boot: str
    setting: str
    resource: Resource
    old: str | None
    new: str


@dataclass(frozen=True, slots=True)
class Past:
    """What a journal says: the changes in their order, and what of it is not known."""

    entries: tuple[JournalEntry, ...]
    unknown: tuple[str, ...]


def boot_of(root: Root) -> str:
    """The id of the machine's boot; empty if the kernel does not tell it."""
    return root.read(_BOOT_ID) or ""


def path_of(host: str) -> Path:
    """Where the journal of that machine (Root.host) is: here, also if it is another one's."""
    elsewhere = _ELSEWHERE + quote(host.removeprefix("ssh://"), safe="@:")
    return state.state_folder() / (FILE if host == LOCAL else elsewhere)


def hosts(folder: Path | None = None) -> list[str]:
    """The other machines that have a journal here, or in that folder: ssh://user@host."""
    files = [path.name for path in (folder or state.state_folder()).glob(f"{_ELSEWHERE}*")]
    return sorted(f"ssh://{unquote(f.removeprefix(_ELSEWHERE))}" for f in files if ASIDE not in f)


def file_of(root: Root) -> JournalFile:
    """The journal of what is changed of that machine. Raises RtmeterError where it can have none."""
    if isinstance(root, RemoteRoot) and root.keeps_journal:
        return FileThere(root, FILE)
    return FileHere(path_of(root.host))


class Journal:
    """The journal being written. It is there as long as something in it may have to be undone."""

    def __init__(self, root: Root) -> None:
        """Raises RtmeterError if it cannot be written, or another one is there that is not undone."""
        self._file, self._boot, self._number = file_of(root), boot_of(root), 0
        try:
            self._file.create()
        except FileExistsError:
            raise RtmeterError(
                "holds changes of an earlier run that are not undone",
                field="journal",
                value=str(self._file),
                remedy=f"run `{restoring(root)}`",
            ) from None
        except OSError as error:
            raise _unwritable(self._file, error) from None

    def intend(self, setting: str, resource: Resource, old: str | None, new: str) -> JournalEntry:
        """The change is on the disk when this returns. Raises RtmeterError if it cannot be."""
        self._number += 1
        change = {"setting": setting, "resource": resources.to_json(resource), "old": old, "new": new}
        line = _line({"n": self._number, "boot": self._boot, **change})
        try:
            self._file.append(line)
        except OSError as error:
            raise _unwritable(self._file, error) from None
        return JournalEntry(self._number, self._boot, setting, resource, old, new)

    def close(self, *, settled: bool) -> RtmeterError | None:
        """Takes the journal away if everything in it is settled; why that cannot be done, if it cannot."""
        self._file.close()
        if settled:
            with suppress(ConnectionLostError):  # nothing in it is left to do
                try:
                    self._file.remove()
                except OSError as error:
                    return stays(self._file, error)
        return None


def restoring(root: Root) -> str:
    """The command that undoes what a journal of the machine says."""
    there = isinstance(root, RemoteRoot) and root.keeps_journal
    return f"rtmeter restore --on {root.host}" if there else "rtmeter restore"


def read(path: Path | JournalFile) -> Past:
    """What the journal says, whatever happened to it. Raises RtmeterError if this user may not read it, or
    another one may have written it."""
    file = FileHere(path) if isinstance(path, Path) else path
    try:
        return _parse(file.read())
    except PermissionError as error:
        raise RtmeterError(
            f"cannot be read: {(error.strerror or '').lower()}",
            field="journal",
            value=str(path),
            remedy="run `sudo rtmeter restore`",
        ) from None
    except OSError as error:  # a folder, a pipe, a link to nothing, a damaged disk
        if not file.exists():
            return Past((), ())
        why = (error.strerror or str(error)).lower()
        return Past((), (f"cannot be read: {why}: what it says is not known",))


def remove(path: Path) -> None:
    """Removes a journal for good."""
    FileHere(path).remove()


def set_aside(path: Path) -> Path:
    """Gives the journal a name under which it is kept but not looked for; returns that."""
    return FileHere(path).set_aside()


def _line(content: Mapping[str, Any]) -> bytes:
    text = json.dumps(content).encode()
    return b"%08x %s\n" % (zlib.crc32(text), text)


def _parse(data: bytes) -> Past:
    entries: list[JournalEntry] = []
    unknown: list[str] = []
    lines = data.split(b"\n")
    cut = lines.pop()
    expected = 1
    for place, line in enumerate(lines, 1):
        try:
            content = _content(line)
            number = content["n"]
            entries.append(_entry(content))
        except (ValueError, KeyError, TypeError) as error:
            said = str(error) if isinstance(error, ValueError) and str(error) else "cannot be read"
            unknown.append(f"line {place} {said}: what it says is not known")
            number = expected
        if number > expected:
            unknown.append(f"{number - expected} lines before line {place} are missing")
        expected = number + 1
    if cut:
        unknown.append(
            f"line {len(lines) + 1} is cut off: what it says is not known; if rtmeter was killed while it "
            "wrote it, what it announces was not done"
        )
    return Past(tuple(entries), tuple(unknown))


def _content(line: bytes) -> dict[str, Any]:
    checksum, _, text = line.partition(b" ")
    if checksum != b"%08x" % zlib.crc32(text):
        raise ValueError("is damaged")
    content = from_json(text)
    if not isinstance(content, dict):
        raise ValueError("is damaged")
    return content


def _entry(content: Mapping[str, Any]) -> JournalEntry:
    resource = resources.from_json(content["resource"])
    entry = JournalEntry(
        content["n"], content["boot"], content["setting"], resource, content["old"], content["new"]
    )
    texts = (entry.boot, entry.setting, entry.new, "" if entry.old is None else entry.old)
    if type(entry.number) is not int or not all(isinstance(text, str) for text in texts):
        raise ValueError("is damaged")
    return entry


def stays(file: JournalFile, error: OSError) -> RtmeterError:
    """That a journal cannot be taken away, or be given another name."""
    message = f"cannot be taken away: {(error.strerror or str(error)).lower()}"
    remedy = "make its folder writable; what it says may be undone any number of times"
    return RtmeterError(message, field="journal", value=str(file), remedy=remedy)


def _unwritable(path: JournalFile, error: OSError) -> RtmeterError:
    return RtmeterError(
        f"cannot be written, so nothing is changed: {(error.strerror or str(error)).lower()}",
        field="journal",
        value=str(path),
        remedy=f"make its folder writable, or name another one in {state.VARIABLE}",
    )
