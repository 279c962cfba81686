"""Where a journal lies: a file of this machine, or one of the machine that it is about."""

from __future__ import annotations

import errno
import itertools
import os
import stat
from contextlib import suppress
from pathlib import Path
from shlex import quote
from typing import Protocol

from rtmeter.host import state
from rtmeter.host.durable import make_folders, sync
from rtmeter.host.files import open_file
from rtmeter.host.remote_root import RemoteRoot
from rtmeter.host.trust import require_trusted

ASIDE = ".aside-"
_LOOK = 0o055


class JournalFile(Protocol):
    """A journal's file. What is written or removed is on the disk when the method returns."""

    def __str__(self) -> str:
        """Its path."""

    def exists(self) -> bool:
        """Whether anything is there, also a link to nothing."""

    def create(self) -> None:
        """Makes it, empty. Raises OSError, RtmeterError if another user could write it."""

    def append(self, line: bytes) -> None:
        """Adds a line. Raises OSError."""

    def close(self) -> None:
        """After the last line."""

    def read(self) -> bytes:
        """All that it says. Raises OSError, also of what is no file and may be waited for in vain;
        RtmeterError if another user may have written it."""

    def remove(self) -> None:
        """Removes it for good."""

    def set_aside(self) -> Path:
        """Gives it a name under which it is kept but not looked for; returns that."""


class FileHere:
    """A file of this machine."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._file: int | None = None

    def __str__(self) -> str:
        return str(self.path)

    def exists(self) -> bool:
        return os.path.lexists(self.path)

    def create(self) -> None:
        try:
            make_folders(self.path.parent)
        except FileExistsError as error:  # which of the journal itself means something else
            raise NotADirectoryError(errno.ENOTDIR, os.strerror(errno.ENOTDIR), error.filename) from None
        _require_trusted(self.path.parent)
        self._show()
        self._file = os.open(self.path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o644)
        sync(self.path.parent)

    def append(self, line: bytes) -> None:
        assert self._file is not None
        if os.write(self._file, line) != len(line):
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        os.fsync(self._file)

    def close(self) -> None:
        if self._file is not None:
            os.close(self._file)

    def read(self) -> bytes:
        self._show()
        _require_trusted(self.path)
        with open_file(self.path) as file:
            return file.read()

    def remove(self) -> None:
        self.path.unlink(missing_ok=True)
        sync(self.path.parent)

    def set_aside(self) -> Path:
        names = (self.path.with_name(f"{self.path.name}{ASIDE}{n}") for n in itertools.count(1))
        free = next(name for name in names if not os.path.lexists(name))
        self.path.rename(free)
        sync(self.path.parent)
        return free

    def _show(self) -> None:
        """Lets every user see whether root has a journal, whatever umask its folder was made under."""
        if self.path.parent == state.SYSTEM and os.geteuid() == 0:
            with suppress(OSError):  # it is not there, or its disk takes no change
                mode = stat.S_IMODE(state.SYSTEM.stat().st_mode)
                if mode | _LOOK != mode:
                    state.SYSTEM.chmod(mode | _LOOK)


_FOLDER = f"""
if test -n "${state.VARIABLE}"; then echo "${state.VARIABLE}"
elif test "$(id -u)" = 0; then echo {state.SYSTEM}
else echo "${{XDG_STATE_HOME:-$HOME/.local/state}}/rtmeter"
fi
"""
"""As host.state.state_folder() has it."""

_FACTS = "LC_ALL=C ls -ldn -- {names} && LC_ALL=C ls -ldnL -- {names} && id -u"
"""Of links, whose own mode says nothing, and of what they lead to."""


class FileThere:
    """The file that a rtmeter of that machine would use, over a shell."""

    def __init__(self, root: RemoteRoot, name: str) -> None:
        self._root = root
        code, folder = root.shell.run(_FOLDER)
        self._folder = folder.decode(errors="surrogateescape").strip("\n")
        if code != 0 or not self._folder.startswith("/"):
            message = f"has no folder for its journal: {self._folder!r} is no absolute path"
            raise root.shell.ssh.error(message, f"set {state.VARIABLE} there to one")
        self._path = f"{self._folder}/{name}"

    def __str__(self) -> str:
        return self._path

    def exists(self) -> bool:
        return self._is_there(self._path)

    def create(self) -> None:
        folder, path = quote(self._folder), quote(self._path)
        self._root.do(f"( umask 022; mkdir -p -- {folder} )")
        self._show()
        self._require_own(self._folder)
        if self.exists():
            raise FileExistsError(errno.EEXIST, os.strerror(errno.EEXIST), self._path)
        self._root.do(f"( umask 022; set -C; : >{path} )")
        self._root.do(_sync(path, folder))

    def append(self, line: bytes) -> None:
        self._root.append(self._path, line.decode())
        self._root.do(_sync(quote(self._path)))

    def close(self) -> None:
        """Nothing is open."""

    def read(self) -> bytes:
        self._show()
        if not self.exists():
            raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT), self._path)
        if self._root.shell.run(f"test -f {quote(self._path)}")[0] != 0:
            raise OSError(errno.EINVAL, "It is no regular file", self._path)
        self._require_own(self._folder, self._path)
        content = self._root.read_bytes(self._path)
        if content is None:
            raise PermissionError(errno.EACCES, os.strerror(errno.EACCES), self._path)
        return content

    def remove(self) -> None:
        self._root.do(f"rm -f -- {quote(self._path)}")
        self._root.do(_sync(quote(self._folder)))

    def set_aside(self) -> Path:
        names = (f"{self._path}{ASIDE}{n}" for n in itertools.count(1))
        free = next(name for name in names if not self._is_there(name))
        self._root.do(f"mv -- {quote(self._path)} {quote(free)}")
        self._root.do(_sync(quote(self._folder)))
        return Path(free)

    def _is_there(self, name: str) -> bool:
        return self._root.shell.run(f"test -e {quote(name)} || test -L {quote(name)}")[0] == 0

    def _show(self) -> None:
        """As of FileHere."""
        if self._folder == str(state.SYSTEM) and self._root.is_superuser():
            with suppress(OSError):
                self._root.do(f"chmod go+rx -- {quote(self._folder)}")

    def _require_own(self, *names: str) -> None:
        """That it is no other user who tells root there what to write. Raises RtmeterError."""
        code, said = self._root.shell.run(_FACTS.format(names=" ".join(map(quote, names))))
        *lines, user = said.decode(errors="replace").splitlines() or [""]
        if code != 0 or user.strip() != "0":
            return  # what cannot be looked at cannot be read either
        for line in lines:
            mode, _, owner = line.split()[:3]
            if owner != "0" or (mode[0] != "l" and "w" in (mode[5], mode[8])):
                raise self._root.shell.ssh.error(
                    f"has a journal that others than root can write: {line.strip()}",
                    "see what it holds, then give it to root there (chown root, chmod go-w)",
                )


def _sync(*quoted: str) -> str:
    """busybox's sync may know no names, and then writes all."""
    return f"{{ sync {' '.join(quoted)} 2>/dev/null || sync; }}"


def _require_trusted(path: Path) -> None:
    """That it is no other user who tells root what to write, and where. Raises RtmeterError and OSError."""
    require_trusted(path, field="journal", value=str(path), verb="heed")
