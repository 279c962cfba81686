"""The pages of the kernel's ring buffer (Documentation/trace/ring-buffer-design.rst, header_event).

A page: the time of its first event, a word with the length of its data and two flags, the data. An event
begins with a word of 5 bits of type and 27 of nanoseconds since the one before.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator

from rtmeter.trace.formats import PageForm

_BEGIN_BYTES = 8
"""Of a page's begin: the time of its first event."""

_LENGTH_FOLLOWS, _LARGEST, _PADDING, _EXTEND, _STAMP = 0, 28, 29, 30, 31
_MISSED, _MISSED_STORED = 1 << 31, 1 << 30
_LENGTH = _MISSED_STORED - 1
_STAMP_BITS = 59

_NONSENSE = 1 << 60
"""More events than there can be, or nanoseconds (36 years): what came is no page."""

UNTOLD = -1
"""How many events were lost, where the kernel does not say."""

_WORD = struct.Struct("<I").unpack_from
_TIME = struct.Struct("<Q").unpack_from


def missed(page: bytes, form: PageForm) -> int | None:
    """How many events the kernel could not keep before those of this page; None: none."""
    commit = _commit(page, form)
    if not commit & _MISSED:
        return None
    end = form.data + (commit & _LENGTH)
    if not commit & _MISSED_STORED or end + form.commit.size > len(page):
        return UNTOLD
    count = int.from_bytes(page[end : end + form.commit.size], "little")
    return count if count < _NONSENSE else UNTOLD


def events_of(page: bytes, form: PageForm) -> Iterator[tuple[int, int]]:
    """The time of each event, and where in the page its fields begin. Raises ValueError where it cannot be
    one of the kernel's."""
    now_ns = _TIME(page, 0)[0]
    if now_ns >= _NONSENSE:
        raise ValueError
    at, end = form.data, form.data + (_commit(page, form) & _LENGTH)
    end = min(end, len(page))
    while at + 4 <= end:
        head = _WORD(page, at)[0]
        kind, delta = head & 31, head >> 5
        at += 4
        if 0 < kind <= _LARGEST:
            now_ns += delta
            yield now_ns, at
            at += 4 * kind
        elif kind == _LENGTH_FOLLOWS:
            now_ns += delta
            yield now_ns, at + 4
            at += (_WORD(page, at)[0] + 3) & ~3
        elif kind == _EXTEND:
            now_ns += delta + (_WORD(page, at)[0] << 27)
            at += 4
        elif kind == _STAMP:
            above = now_ns >> _STAMP_BITS << _STAMP_BITS
            now_ns = above | delta | _WORD(page, at)[0] << 27
            at += 4
        elif delta == 0:  # padding up to the page's end
            return
        else:  # an event that was taken back
            at += _WORD(page, at)[0]


def _commit(page: bytes, form: PageForm) -> int:
    return int(_WORD(page, form.commit.offset)[0])


class ComingPages:
    """The pages of a CPU, one ahead."""

    def __init__(self, pages: Iterator[bytes | None]) -> None:
        self._pages, self._begin_ns = pages, 0
        self.page, self.left_out = self._next()

    @property
    def begin_ns(self) -> int:
        """When the page begins that comes next; one that is damaged begins with the one before."""
        if self.page is not None and len(self.page) >= _BEGIN_BYTES:
            begin_ns = int.from_bytes(self.page[:_BEGIN_BYTES], "little")
            self._begin_ns = begin_ns if begin_ns < _NONSENSE else self._begin_ns
        return self._begin_ns

    def take(self) -> tuple[bytes, bool]:
        """That page, and whether others before it were left out."""
        taken = self.page or b"", self.left_out
        self.page, self.left_out = self._next()
        return taken

    def _next(self) -> tuple[bytes | None, bool]:
        page = next(self._pages, b"")
        left_out = page is None
        if page is None:
            page = next(self._pages, b"")
        return page or None, left_out
