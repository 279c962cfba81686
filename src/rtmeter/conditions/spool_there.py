"""The pages of a recording that lie on another machine, as Spool has them of this one.

A piece is a folder there. One that is gone through is split into a file a page, of which only the first words
come here; those that no chosen release needs are removed there. What stays comes at the end.
"""

from __future__ import annotations

import errno
import re
import string
from collections import deque
from collections.abc import Sequence
from itertools import product
from pathlib import Path
from shlex import quote
from typing import Any

import numpy as np

from rtmeter.host.remote_shell import Shell
from rtmeter.statistics.quantities import Ints
from rtmeter.trace.spool import Spool

BROUGHT = "trace.cpu.brought"
_LETTERS = 4
"""At the end of a page's name, as split gives them in their order."""
_NAMES_AT_ONCE = 1000
LIMIT_S, _BRING_S = 300, 600
"""A disk there may be slow; what is done meanwhile goes on."""

_HEADS = """
cd {folder}/{piece} || exit
for cpu in {cpus}; do
  test -s "$cpu" || continue
  split -b {page} -a {letters} "$cpu" "$cpu." && rm "$cpu" || exit
done
for cpu in {cpus}; do
  set -- "$cpu".????
  test -e "$1" || continue
  echo "$cpu $#"
  head -q -c 8 "$@" || exit
done
"""
_BRING = """
cd {folder} || exit
for cpu in {cpus}; do
  for piece in piece.*; do
    set -- "$piece/$cpu"{ending}
    test ! -e "$1" || cat "$@" || exit
  done
done
"""


class SpoolThere(Spool):
    """As Spool; ``folder`` is there, and who writes into it tells of each piece that has ended (ended()).

    Methods raise OSError with what the machine says, and ConnectionLostError.
    """

    def __init__(self, *given: Any) -> None:
        super().__init__(*given)
        self.bytes = 0
        self._sizes: dict[int, int] = {}
        self._ended_ns: dict[int, int] = {}
        self._names: dict[int, list[str]] = {cpu: [] for cpu in self._cpus}
        self._lasts: dict[int, tuple[str, int]] = {}
        """Of each CPU the last page that was gone through, and when it begins."""
        self._gone = 0
        """Pages that the writer has counted, and that are not there any more."""

    def begin(self, folder: str, shell: Shell) -> None:
        """What is written there from now on; ``shell`` is for it alone."""
        self.folder, self._shell = folder, shell

    @property
    def piece_bytes(self) -> int:
        """After which a piece is to end."""
        return self._piece_bytes

    def ended(self, piece: int, pages: int, at_ns: int) -> None:
        """All of a piece's pages begin before."""
        self._sizes[piece], self._ended_ns[piece] = pages * self._page, at_ns
        self.bytes += self._sizes[piece]
        self._pieces.append(piece + 1)

    def bring(self) -> None:
        """What is left comes here, all in one go, when all pieces have ended; then pages() gives it."""
        sizes = self._whole_sizes() if self.whole else self._kept_sizes()
        if not any(sizes.values()):
            raise OSError(errno.EIO, "its files are not there")
        cpus = " ".join(f"cpu{cpu}" for cpu, size in sizes.items() if size)
        script = _BRING.format(folder=quote(self.folder), cpus=cpus, ending="" if self.whole else ".????")
        with (self._folder / BROUGHT).open("wb+") as file:
            self._shell.ssh.run(script, limit_s=_BRING_S, into=file)
            file.seek(0)
            for cpu, size in sizes.items():
                into = self._path(cpu, 0) if self.whole else self._kept[cpu].file
                with into.open("wb") as pages:
                    while size and (part := file.read(min(size, 1 << 20))):
                        pages.write(part)
                        size -= len(part)
                if size:
                    raise OSError(errno.EIO, f"the last {size:,} bytes of CPU {cpu} did not come")
        (self._folder / BROUGHT).unlink()
        if self.whole:
            self._pieces = deque([0])
        else:
            for cpu in self._lasts:
                self._take_last(cpu)

    def _take_last(self, cpu: int) -> None:
        """Out of the file of those that were kept: it may not be wanted."""
        kept = self._kept[cpu]
        with kept.file.open("r+b") as file:
            file.seek(len(kept.numbers) * self._page)
            kept.last = file.read()

    def _whole_sizes(self) -> dict[int, int]:
        _, said = self._shell.run(f"wc -c {quote(self.folder)}/piece.*/cpu* 2>&1")
        found = re.findall(r"^ *(\d+) .*/piece\.\d+/cpu(\d+)$", said.decode(errors="replace"), re.MULTILINE)
        return {cpu: sum(int(size) for size, of in found if int(of) == cpu) for cpu in self._cpus}

    def _kept_sizes(self) -> dict[int, int]:
        return {
            cpu: (len(kept.numbers) + (cpu in self._lasts)) * self._page for cpu, kept in self._kept.items()
        }

    def _begin_piece(self) -> None:
        if not self._pieces:  # of this machine: what is brought goes there
            super()._begin_piece()

    def _size(self, piece: int) -> int:
        return self._sizes.get(piece, 0)

    def _is_settled(self, piece: int) -> bool:
        settled_ns = self._chooser.settled_ns if self._chooser else None
        return settled_ns is not None and self._ended_ns[piece] < settled_ns

    def _go_through(self, piece: int) -> None:
        if piece not in self._sizes:  # it has not begun
            return
        heads, gone = self._heads(piece), []
        for cpu, begins in heads.items():
            names = [f"{_piece(piece)}/cpu{cpu}.{ending}" for ending in _endings(len(begins))]
            if held := cpu in self._lasts:
                name, begin_ns = self._lasts[cpu]
                names, begins = [name, *names], np.array([begin_ns, *begins.tolist()], np.int64)
            places = self._noted(self._kept[cpu], begins, held=held)
            self._names[cpu] += [names[place] for place in places]
            gone += sorted(set(names[:-1]) - {names[place] for place in places})
            self._lasts[cpu] = names[-1], int(begins[-1])
        self._gone += self._sizes.pop(piece) // self._page - sum(map(len, heads.values()))
        self._remove(gone)

    def _heads(self, piece: int) -> dict[int, Ints]:
        """When each page of a piece begins, by CPU."""
        cpus = " ".join(f"cpu{cpu}" for cpu in self._cpus)
        words = {"cpus": cpus, "page": self._page, "letters": _LETTERS}
        said = self._asked(_HEADS.format(folder=quote(self.folder), piece=_piece(piece), **words))
        found: dict[int, Ints] = {}
        while said:
            line, _, said = said.partition(b"\n")
            name, count = line.split()
            size = 8 * int(count)
            found[int(name.removeprefix(b"cpu"))] = np.frombuffer(said[:size], "<u8").astype(np.int64)
            said = said[size:]
        return found

    def _leave(self, cpu: int, places: Sequence[int]) -> None:
        names = self._names[cpu]
        self._names[cpu] = [names[place] for place in places]
        self._remove(sorted(set(names) - set(self._names[cpu])))

    def _remove(self, names: Sequence[str]) -> None:
        """Pages; the writer is told how many there is room for again."""
        folder, self._gone = quote(self.folder), self._gone + len(names)
        for first in range(0, len(names), _NAMES_AT_ONCE):
            some = names[first : first + _NAMES_AT_ONCE]
            folders = " ".join(sorted({name.partition("/")[0] for name in some}))
            self._asked(f"cd {folder} && rm {' '.join(some)} && {{ rmdir {folders} 2>/dev/null; :; }}")
        self._asked(f"cd {folder} && echo {self._gone} >gone.new && mv gone.new gone")

    def _asked(self, script: str) -> bytes:
        code, said = self._shell.run(f"( exec 2>&1\n{script}\n)", LIMIT_S)
        if code != 0:
            why = (said.decode(errors="replace").strip().splitlines() or [f"exit code {code}"])[-1]
            raise OSError(errno.EIO, why.rpartition(": ")[2].lower())
        return said


def _piece(number: int) -> str:
    return f"piece.{number:06d}"


def _endings(count: int) -> list[str]:
    letters = product(string.ascii_lowercase, repeat=_LETTERS)
    return ["".join(next(letters)) for _ in range(count)]


def followed(folder: Path) -> Path:
    """Where what has come of the log there lies here, until it comes as a whole."""
    return folder / "trace.cpu.log"
