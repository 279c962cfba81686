"""What tracefs says of its own pages and events: where each field lies."""

from __future__ import annotations

import re
import struct
from collections.abc import Callable, Mapping
from dataclasses import dataclass

from rtmeter.errors import RtmeterError

_FIELD = re.compile(r"field:\s*(?P<what>[^;]+);\s*offset:(\d+);\s*size:(\d+);\s*signed:(\d)")
_ID = re.compile(r"^ID:\s*(\d+)", re.MULTILINE)
_STATE = re.compile(r'\{\s*(0x[0-9a-f]+),\s*"(\w)"\s*\}')
_CODES = {1: "b", 2: "h", 4: "i", 8: "q"}

ReadField = Callable[[bytes, int], int]
"""The number in a page, of the event that begins at an offset."""


@dataclass(frozen=True)
class Field:
    offset: int
    size: int
    signed: bool

    @property
    def read(self) -> ReadField:
        code = _CODES[self.size]
        unpack = struct.Struct("<" + (code if self.signed else code.upper())).unpack_from
        offset = self.offset
        return lambda page, at: unpack(page, at + offset)[0]


@dataclass(frozen=True)
class Format:
    """An event, by its ``id`` in the pages; ``text``: the whole of its format."""

    name: str
    id: int
    fields: Mapping[str, Field]
    text: str

    def field(self, name: str) -> Field:
        """Raises RtmeterError if this kernel's event has none of that name."""
        if name not in self.fields:
            remedy = "this kernel is too old or too new for rtmeter explain: report it with its version"
            raise RtmeterError(f"has no field {name}", field="trace event", value=self.name, remedy=remedy)
        return self.fields[name]

    def element(self, name: str, place: int, of: int) -> ReadField | None:
        """Reads the number at a place of an array of so many; None if this kernel's event has none."""
        array = self.fields.get(name)
        if array is None or array.size // of not in _CODES:
            return None
        size = array.size // of
        return Field(array.offset + place * size, size, array.signed).read

    def text_field(self, name: str) -> Callable[[bytes, int], str]:
        """Reads a text whose place stands in the event: its offset and, above, its length."""
        where = self.field(name).read

        def read(page: bytes, at: int) -> str:
            start = at + (where(page, at) & 0xFFFF)
            return page[start : page.index(b"\0", start)].decode(errors="backslashreplace")

        return read

    def states(self) -> dict[int, str]:
        """Bits of a task's state and their letters, of sched_switch."""
        return {int(bit, 16): letter for bit, letter in _STATE.findall(self.text)}


@dataclass(frozen=True)
class PageForm:
    """The head of a page; ``size``: of all of it, in bytes."""

    commit: Field
    data: int
    size: int


def format_of(name: str, text: str) -> Format:
    """Of an event's file ``format``."""
    found = _ID.search(text)
    if found is None:
        raise RtmeterError("has no ID", field="trace event", value=name, remedy="report the kernel's version")
    return Format(name, int(found[1]), _fields(text), text)


def page_form(text: str) -> PageForm:
    """Of the file events/header_page."""
    fields = _fields(text)
    if not {"commit", "data"} <= fields.keys():
        raise RtmeterError(
            "is not understood", field="events/header_page", remedy="report the kernel's version"
        )
    data = fields["data"]
    return PageForm(fields["commit"], data.offset, data.offset + data.size)


def _fields(text: str) -> dict[str, Field]:
    fields: dict[str, Field] = {}
    for what, offset, size, signed in _FIELD.findall(text):
        name = what.split()[-1].partition("[")[0]
        fields[name] = Field(int(offset), int(size), signed == "1")
    return fields
