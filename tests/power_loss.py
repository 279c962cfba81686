"""What a power loss leaves of a folder: a process's file operations, replayed on a disk that keeps no more
than it was told to.

The disk is as harsh as POSIX allows: data that were not synced may be lost, torn or there; so may, from the
last one backwards, the names that a folder got and lost since it was synced itself. To sync a file does not
sync its name.
"""

from __future__ import annotations

import itertools
import os
import re
import subprocess
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path

_CALLS = (
    "openat,lseek,write,pwrite64,ftruncate,rename,renameat,renameat2,mkdir,mkdirat,rmdir,unlink,unlinkat,"
    "fsync,fdatasync"
)
_LINE = re.compile(r"^\d+ +(\w+)\((.*)\) += (\d+)(?:<[^>]*>)?$")
_HEX = re.compile(r"\\x(..)")
_DESCRIPTOR = re.compile(r"(AT_FDCWD|\d+)<(.*)>")


@dataclass(frozen=True, slots=True)
class Call:
    """A system call that succeeded: its name, its arguments as strace has them, what it returned."""

    name: str
    arguments: tuple[str, ...]
    result: int


@dataclass(slots=True)
class File:
    """``data``, and what of them is on the disk."""

    data: bytes = b""
    synced: bytes = b""


@dataclass(slots=True)
class Folder:
    """``names``; those on the disk; and what happened to names since, in order."""

    names: dict[str, File | Folder] = field(default_factory=dict)
    synced: dict[str, File | Folder] = field(default_factory=dict)
    since: list[dict[str, File | Folder | None]] = field(default_factory=list)

    def name(self, changes: dict[str, File | Folder | None]) -> None:
        """Names that come or go (None) at once."""
        self.since.append(changes)
        _apply(changes, self.names)


def _apply(changes: dict[str, File | Folder | None], names: dict[str, File | Folder]) -> None:
    for name, what in changes.items():
        if what is None:
            names.pop(name, None)
        else:
            names[name] = what


def calls_of(script: str, *arguments: object, **environment: str) -> list[Call]:
    """What the Python script called, in order. It must start no process; what it prints is a call too."""
    out = Path(str(arguments[0])).with_suffix(".strace")
    command = ["strace", "-f", "--seccomp-bpf", "-qq", "-xx", "-y", "-s", "100000000", "-o", str(out)]
    command += ["-e", f"trace={_CALLS}", sys.executable, "-c", script, *map(str, arguments)]
    done = subprocess.run(command, env=os.environ | environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    found = filter(None, map(_LINE.match, out.read_text().splitlines()))
    return [Call(m[1], tuple(_text(a) for a in m[2].split(", ")), int(m[3])) for m in found]


def _text(argument: str) -> str:
    return _HEX.sub(lambda m: chr(int(m[1], 16)), argument).removeprefix('"').removesuffix('"')


class Disk:
    """The folder ``path`` of the process, as it is when this is made; then replayed call by call."""

    def __init__(self, path: Path) -> None:
        self._path, self._root = str(path), _there(path)
        self._open: dict[str, tuple[File | Folder, int]] = {}  # descriptor → what, and where it is at
        self.said = ""  # on standard output

    def heed(self, call: Call) -> bool:
        """Whether the call was of this disk."""
        return bool(getattr(self, f"_{call.name}")(call))

    def left(self) -> Iterator[dict[str, bytes | None]]:
        """Every state that a power loss may leave now, each once: path → content, None of a folder."""
        seen = set()
        folders = list(_folders(self._root))
        prefixes = (range(len(folder.since) + 1) for folder in folders)
        for counts in itertools.product(*prefixes):
            kept = {id(folder): count for folder, count in zip(folders, counts, strict=True)}
            for share in (0, 0.5, 1):
                state = dict(_tree(self._root, kept, share, ""))
                if (content := frozenset(state.items())) not in seen:
                    seen.add(content)
                    yield state

    def now(self) -> dict[str, bytes | None]:
        """What everybody sees while there is power."""
        kept = {id(folder): len(folder.since) for folder in _folders(self._root)}
        return dict(_tree(self._root, kept, 1, ""))

    def _at(self, text: str, above: str = "") -> tuple[Folder, str] | None:
        """The folder that a path is in, and its name there; None if it is not of this disk."""
        found = _DESCRIPTOR.fullmatch(above)
        path = str(Path(found[2] if found else "/") / text)
        if not path.startswith(self._path + "/"):
            return None
        *parts, name = path.removeprefix(self._path + "/").split("/")
        folder = self._root
        for part in parts:
            below = folder.names[part]
            assert isinstance(below, Folder)
            folder = below
        return folder, name

    def _of(self, descriptor: str) -> tuple[str, File | Folder, int] | None:
        found = _DESCRIPTOR.fullmatch(descriptor)
        if found is None or not (found[2] + "/").startswith(self._path + "/") or found[1] not in self._open:
            return None
        return found[1], *self._open[found[1]]

    def _openat(self, call: Call) -> bool:
        above, path, flags, *_ = call.arguments
        at = self._at(path, above)
        if at is None:
            self._open.pop(str(call.result), None)
            if path == self._path:
                self._open[str(call.result)] = self._root, 0
            return False
        folder, name = at
        what = folder.names.get(name)
        if what is None:
            what = File()
            folder.name({name: what})
        elif "O_TRUNC" in flags:
            assert isinstance(what, File)
            what.data = b""
        end = len(what.data) if "O_APPEND" in flags and isinstance(what, File) else 0
        self._open[str(call.result)] = what, end
        return True

    def _lseek(self, call: Call) -> bool:
        if (of := self._of(call.arguments[0])) is not None:
            self._open[of[0]] = of[1], call.result
        return False

    def _write(self, call: Call) -> bool:
        if call.arguments[0].startswith("1<"):
            self.said += call.arguments[1]
        of = self._of(call.arguments[0])
        if of is None:
            return False
        descriptor, what, at = of
        assert isinstance(what, File)
        data = call.arguments[1].encode("latin-1")
        assert len(data) == call.result
        what.data = what.data[:at].ljust(at, b"\0") + data + what.data[at + len(data) :]
        self._open[descriptor] = what, at + len(data)
        return True

    def _pwrite64(self, call: Call) -> bool:
        assert self._of(call.arguments[0]) is None, "not replayed"
        return False

    _ftruncate = _pwrite64

    def _rename(self, call: Call) -> bool:
        return self._renamed(call.arguments[0], call.arguments[1])

    def _renameat(self, call: Call) -> bool:
        return self._renamed(call.arguments[1], call.arguments[3], call.arguments[0], call.arguments[2])

    def _renameat2(self, call: Call) -> bool:
        above, old, beside, new, flags = call.arguments
        return self._renamed(old, new, above, beside, exchange="RENAME_EXCHANGE" in flags)

    def _renamed(
        self, old: str, new: str, above: str = "", beside: str = "", *, exchange: bool = False
    ) -> bool:
        source, target = self._at(old, above), self._at(new, beside)
        if source is None or target is None:
            return False
        (folder, name), (other, wanted) = source, target
        assert folder is other, "renamed within a folder"
        folder.name({name: folder.names[wanted] if exchange else None, wanted: folder.names[name]})
        return True

    def _mkdir(self, call: Call) -> bool:
        return self._made(call.arguments[0])

    def _mkdirat(self, call: Call) -> bool:
        return self._made(call.arguments[1], call.arguments[0])

    def _made(self, path: str, above: str = "") -> bool:
        if (at := self._at(path, above)) is not None:
            at[0].name({at[1]: Folder()})
        return at is not None

    def _unlink(self, call: Call) -> bool:
        return self._gone(call.arguments[0])

    _rmdir = _unlink

    def _unlinkat(self, call: Call) -> bool:
        return self._gone(call.arguments[1], call.arguments[0])

    def _gone(self, path: str, above: str = "") -> bool:
        if (at := self._at(path, above)) is not None:
            at[0].name({at[1]: None})
        return at is not None

    def _fsync(self, call: Call) -> bool:
        of = self._of(call.arguments[0])
        if of is None:
            return False
        what = of[1]
        if isinstance(what, File):
            what.synced = what.data
        else:
            what.synced, what.since = dict(what.names), []
        return True

    _fdatasync = _fsync


def _there(path: Path) -> Folder:
    """What the folder holds, all of it on the disk."""
    names: dict[str, File | Folder] = {}
    for below in path.iterdir():
        content = b"" if below.is_dir() else below.read_bytes()
        names[below.name] = _there(below) if below.is_dir() else File(content, content)
    return Folder(names, dict(names))


def _folders(folder: Folder) -> Iterator[Folder]:
    """It and all that may be under it after a power loss, each once."""
    found = {id(folder): folder}
    waiting = [folder]
    while waiting:
        one = waiting.pop()
        changed = [what for changes in one.since for what in changes.values()]
        for below in (*one.synced.values(), *changed):
            if isinstance(below, Folder) and id(below) not in found:
                found[id(below)] = below
                waiting.append(below)
    return iter(found.values())


def _tree(
    folder: Folder, kept: dict[int, int], share: float, above: str
) -> Iterator[tuple[str, bytes | None]]:
    """With the first ``kept`` changes of each folder's names, and that share of what is not synced."""
    names = dict(folder.synced)
    for changes in folder.since[: kept[id(folder)]]:
        _apply(changes, names)
    for name, what in sorted(names.items()):
        path = f"{above}{name}"
        if isinstance(what, Folder):
            yield path, None
            yield from _tree(what, kept, share, f"{path}/")
        elif what.data.startswith(what.synced):
            end = len(what.synced) + round(share * (len(what.data) - len(what.synced)))
            yield path, what.data[:end]
        else:
            yield path, what.data if share == 1 else what.synced if not share else b""


def every_moment(
    disk: Disk, calls: list[Call], beside: Callable[[Call], bool] = lambda _: False
) -> Iterator[str]:
    """Replays the calls; yields what the process had said at every moment at which something had changed,
    on the disk or ``beside`` it."""
    yield disk.said
    for call in calls:
        before = disk.said
        changed = [heed(call) for heed in (disk.heed, beside)]
        if any(changed) or disk.said != before:
            yield disk.said


def lay(state: dict[str, bytes | None], folder: Path) -> None:
    """Makes the folder hold that state."""
    folder.mkdir(parents=True)
    for path, content in state.items():
        if content is None:
            (folder / path).mkdir()
        else:
            (folder / path).write_bytes(content)
