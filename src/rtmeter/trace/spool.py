"""The pages of a recording on the disk: all of a short run; of a long one those that chosen releases need.

Pages come in pieces, files of some 4 MiB a CPU. Once what a piece tells of is settled, the pages that a
chosen release needs go to the CPU's file of kept ones, and the piece goes.
"""

from __future__ import annotations

import itertools
import os
from collections import deque
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
import numpy.typing as npt

from rtmeter.model import TRACE_BYTES
from rtmeter.statistics.quantities import Ints
from rtmeter.trace.chosen import Chooser

MOST_BYTES = TRACE_BYTES
"""Of pages, of all CPUs together, ever."""

PIECE_BYTES = 4 << 20
_SPOOL_SHARE, _ROOM = 0.25, 0.75
"""Of MOST_BYTES for what is not settled; the rest is for what is kept, or for a run that keeps all. How full
that is once room has been made."""

_NEVER_NS = 2**62

Pages = Iterator[bytes | None]


@dataclass
class _Kept:
    """The pages of a CPU that were kept, in their order; ``numbers``: which of all of its pages each is."""

    file: Path
    numbers: list[int] = field(default_factory=list)
    begins_ns: list[int] = field(default_factory=list)
    ends_ns: list[int] = field(default_factory=list)
    passed: int = 0
    """Pages that were gone through."""
    last: bytes = b""
    """The page gone through last, of which it is not known when it ends."""


class Spool:
    """``files`` gives the open file of each CPU that pages go to; settle() is to be called after."""

    def __init__(
        self,
        folder: Path,
        cpus: Iterable[int],
        page_bytes: int,
        chooser: Chooser | None,
        most: int = MOST_BYTES,
    ) -> None:
        self._folder, self._cpus, self._page, self._chooser = folder, sorted(cpus), page_bytes, chooser
        self._for_spool = int(most * _SPOOL_SHARE) if chooser else most
        self._for_kept = most - self._for_spool
        self._piece_bytes = min(PIECE_BYTES, max(self._for_spool // 8, 1))
        self._pieces: deque[int] = deque()
        self._next = 0
        self._kept = {cpu: _Kept(folder / f"trace.cpu{cpu}.kept") for cpu in self._cpus}
        self.files: dict[int, int] = {}
        self.whole = True
        """Whether nothing was left out."""
        self.overrun = False
        """Whether pages went before their releases were known; of a run that keeps all, if there was more."""
        self._begin_piece()

    def keep_all(self) -> None:
        """Nothing is chosen after all, as nobody tells of releases; none was left out yet."""
        self._chooser, most = None, self._for_spool + self._for_kept
        self._for_spool, self._for_kept = most, 0

    def settle(self) -> bool:
        """Goes through what is settled, if all is too much; returns False if recording must end."""
        if self._chooser is None:
            self.overrun = self.size_bytes > self._for_spool  # then all there is room for
            return not self.overrun
        if self._size(self._pieces[-1]) >= self._piece_bytes:
            self._begin_piece()
        while self.is_crowded:
            room = self._for_spool + (self._for_kept if self.whole else 0) - 2 * self._piece_bytes
            settled = self._is_settled(self._pieces[0])
            if not settled and self._spooled() <= room:
                break
            self.overrun |= not settled
            self._sift(self._pieces.popleft())
        return True

    @property
    def is_crowded(self) -> bool:
        """Whether a piece goes as soon as what it tells of is settled."""
        return len(self._pieces) > 1 and (not self.whole or self._spooled() > self._for_kept)

    def end(self) -> None:
        """When nothing more comes: what is left is gone through if anything was."""
        self._close()
        while self._pieces and not self.whole:
            self._sift(self._pieces.popleft())

    def pages(self, cpu: int) -> Pages:
        """All that are left, in order; None stands where others were left out."""
        kept, before = self._kept[cpu], -1
        if kept.numbers:
            with kept.file.open("rb") as file:
                for number in kept.numbers:
                    if number != before + 1:
                        yield None
                    yield file.read(self._page)
                    before = number
        if kept.last and self._wanted(np.array([_begin_ns(kept.last)]), np.array([_NEVER_NS]))[0]:
            if kept.passed - 1 != before + 1:
                yield None
            yield kept.last
        for piece in self._pieces:
            with self._path(cpu, piece).open("rb") as file:
                while page := file.read(self._page):
                    yield page

    def tidy(self) -> None:
        """Removes all files."""
        self._close()
        for file in (*self._folder.glob("trace.cpu*"),):
            file.unlink(missing_ok=True)

    @property
    def size_bytes(self) -> int:
        """On the disk now."""
        return self._spooled() + self._kept_bytes()

    def _spooled(self) -> int:
        return sum(map(self._size, self._pieces))

    def _kept_bytes(self) -> int:
        return sum(len(kept.numbers) for kept in self._kept.values()) * self._page

    def _size(self, piece: int) -> int:
        return sum(self._path(cpu, piece).stat().st_size for cpu in self._cpus)

    def _path(self, cpu: int, piece: int) -> Path:
        return self._folder / f"trace.cpu{cpu}.{piece}"

    def _begin_piece(self) -> None:
        self._close()
        self._pieces.append(self._next)
        for cpu in self._cpus:
            self.files[cpu] = os.open(
                self._path(cpu, self._next), os.O_WRONLY | os.O_CREAT | os.O_CLOEXEC, 0o644
            )
        self._next += 1

    def _close(self) -> None:
        while self.files:
            os.close(self.files.popitem()[1])

    def _is_settled(self, piece: int) -> bool:
        """Whether no release that is yet to come needs its pages: the last begin before."""
        settled_ns = self._chooser.settled_ns if self._chooser else None
        lasts = (self._last_begin_ns(self._path(cpu, piece)) for cpu in self._cpus)
        return settled_ns is not None and all(last is None or last < settled_ns for last in lasts)

    def _last_begin_ns(self, file: Path) -> int | None:
        with file.open("rb") as pages:
            whole = pages.seek(0, os.SEEK_END) // self._page
            if not whole:
                return None
            pages.seek((whole - 1) * self._page)
            return _begin_ns(pages.read(8))

    def _begins(self, pages: bytes) -> Ints:
        """When each page begins: its first word."""
        whole = len(pages) // self._page * self._page
        words = np.frombuffer(pages, np.uint8, whole).reshape(-1, self._page)[:, :8]
        return np.ascontiguousarray(words).view("<u8")[:, 0].astype(np.int64)

    def _sift(self, piece: int) -> None:
        """Keeps what is wanted of a piece, and makes room if that is too much."""
        self.whole = False
        self._go_through(piece)
        if self._kept_bytes() > self._for_kept:
            self._make_room()

    def _go_through(self, piece: int) -> None:
        """The last page of each CPU stays in memory until the next one tells when it ends."""
        for cpu, kept in self._kept.items():
            pages = kept.last + self._path(cpu, piece).read_bytes()
            begins = self._begins(pages)
            if len(begins):
                with kept.file.open("ab") as file:
                    for place in self._noted(kept, begins, held=bool(kept.last)):
                        file.write(pages[place * self._page : (place + 1) * self._page])
                kept.last = pages[(len(begins) - 1) * self._page : len(begins) * self._page]
            self._path(cpu, piece).unlink()

    def _noted(self, kept: _Kept, begins: Ints, *, held: bool) -> list[int]:
        """Of the pages that come next, by when they begin, those that are wanted. The last of them is not
        looked at before the next come; then it is ``held``, and the first of these."""
        first = kept.passed - held
        places: list[int] = np.flatnonzero(self._wanted(begins[:-1], begins[1:])).tolist()
        kept.numbers += [first + place for place in places]
        kept.begins_ns += begins[places].tolist()
        kept.ends_ns += begins[1:][places].tolist()
        kept.passed = first + len(begins)
        return places

    def _make_room(self) -> None:
        self._compact()
        while self._kept_bytes() > _ROOM * self._for_kept:
            if self._chooser is not None:
                self._chooser.thin()
            self._compact()

    def _compact(self) -> None:
        """Takes away pages that no chosen release needs any more."""
        for cpu, kept in self._kept.items():
            wanted = self._wanted(np.array(kept.begins_ns, np.int64), np.array(kept.ends_ns, np.int64))
            places = np.flatnonzero(wanted).tolist()
            if len(places) == len(kept.numbers):
                continue
            self._leave(cpu, places)
            for column in (kept.numbers, kept.begins_ns, kept.ends_ns):
                column[:] = [column[place] for place in places]

    def _leave(self, cpu: int, places: Sequence[int]) -> None:
        """Of the pages that were kept only these."""
        with self._kept[cpu].file.open("r+b") as file:
            for to, place in enumerate(places):
                if to != place:
                    page = os.pread(file.fileno(), self._page, place * self._page)
                    os.pwrite(file.fileno(), page, to * self._page)
            file.truncate(len(places) * self._page)

    def _wanted(self, begins: Ints, ends: Ints) -> npt.NDArray[np.bool_]:
        """Whether a chosen release needs a page: spans touch it from its begin to the next one's."""
        spans = sorted((span.from_ns, span.to_ns) for span in (self._chooser.kept if self._chooser else ()))
        if not spans or not len(begins):
            return np.zeros(len(begins), bool)
        froms, to = np.array(spans, np.int64).T
        to = np.maximum.accumulate(to)
        first = np.searchsorted(to, begins)
        inside = first < len(froms)
        found: npt.NDArray[np.bool_] = inside & (froms[np.minimum(first, len(froms) - 1)] <= ends)
        return found


def touching(pages: Pages, spans: Sequence[tuple[int, int]]) -> Pages:
    """Of a CPU's pages those that tell of a span, as pages() gives them: one ends where the next begins."""
    held, left_out, gap = b"", False, False
    for page in itertools.chain(pages, [b""]):
        if page is None:
            gap = True
            continue
        end_ns = _begin_ns(page) if page else _NEVER_NS
        if held and any(from_ns <= end_ns and _begin_ns(held) <= to_ns for from_ns, to_ns in spans):
            if left_out:
                yield None
            yield held
            left_out = False
        else:
            left_out |= bool(held)
        held, left_out, gap = page, left_out or gap, False


def _begin_ns(page: bytes) -> int:
    return int.from_bytes(page[:8], "little")
