"""Instructions of the kernel's virtual machine, with labels. https://docs.kernel.org/bpf/standardization/"""

from __future__ import annotations

import struct

R0, R1, R2, R3, R4, R5, R6, R7, R8, R9, R10 = range(11)
"""R0: results; R1 to R5: arguments, lost by a call; R6 to R9: kept; R10: the stack."""

CPU, NOW_NS, CURRENT = 8, 5, 14
"""Helpers: the CPU's number, CLOCK_MONOTONIC, process id << 32 | thread id."""

_ADD, _FETCH, _SWAP = 0x00, 0x01, 0xE1


class Code:
    """Is appended to; bytes() when all labels that are jumped to are placed. ``table``: its descriptor."""

    def __init__(self, table: int) -> None:
        self._table = table
        self._lines: list[tuple[int, int, int, int | str, int]] = []
        self._labels: dict[str, int] = {}

    def __bytes__(self) -> bytes:
        found = b""
        for at, (op, to, by, offset, value) in enumerate(self._lines):
            jump = self._labels[offset] - at - 1 if isinstance(offset, str) else offset
            found += struct.pack("<BBhi", op, by << 4 | to, jump, value)
        return found

    def _add(self, op: int, to: int = 0, by: int = 0, offset: int | str = 0, value: int = 0) -> None:
        self._lines.append((op, to, by, offset, value))

    def label(self, name: str) -> None:
        self._labels[name] = len(self._lines)

    def copy(self, to: int, by: int) -> None:
        self._add(0xBF, to, by)

    def add(self, to: int, by: int) -> None:
        self._add(0x0F, to, by)

    def add_value(self, to: int, value: int) -> None:
        self._add(0x07, to, value=value)

    def keep_bits(self, to: int, mask: int) -> None:
        self._add(0x57, to, value=mask)

    def shift_left(self, to: int, bits: int) -> None:
        self._add(0x67, to, value=bits)

    def either(self, to: int, by: int) -> None:
        self._add(0x4F, to, by)

    def value(self, to: int, value: int) -> None:
        self._add(0xB7, to, value=value)

    def large(self, to: int, value: int) -> None:
        """A number of 64 bits."""
        self._add(0x18, to, value=struct.unpack("<i", struct.pack("<I", value & 0xFFFFFFFF))[0])
        self._add(0, value=struct.unpack("<i", struct.pack("<I", value >> 32))[0])

    def table(self, to: int) -> None:
        """The address of the table's only entry."""
        self._add(0x18, to, by=2, value=self._table)
        self._add(0)

    def load(self, to: int, at: int, offset: int = 0) -> None:
        self._add(0x79, to, at, offset)

    def load_32(self, to: int, at: int, offset: int = 0) -> None:
        self._add(0x61, to, at, offset)

    def load_8(self, to: int, at: int, offset: int = 0) -> None:
        self._add(0x71, to, at, offset)

    def store(self, at: int, offset: int, by: int) -> None:
        self._add(0x7B, at, by, offset)

    def store_32(self, at: int, offset: int, by: int) -> None:
        self._add(0x63, at, by, offset)

    def store_value(self, at: int, offset: int, value: int) -> None:
        self._add(0x7A, at, 0, offset, value)

    def store_value_32(self, at: int, offset: int, value: int) -> None:
        self._add(0x62, at, 0, offset, value)

    def fetch_add(self, at: int, offset: int, by: int) -> None:
        """Adds ``by``, which becomes what was there before; for all CPUs at once."""
        self._add(0xDB, at, by, offset, _ADD | _FETCH)

    def swap(self, at: int, offset: int, by: int) -> None:
        """All that was stored before is seen by whoever sees this."""
        self._add(0xDB, at, by, offset, _SWAP)

    def call(self, helper: int) -> None:
        self._add(0x85, value=helper)

    def go(self, label: str) -> None:
        self._add(0x05, offset=label)

    def go_if_32(self, register: int, value: int, label: str) -> None:
        """If its lower half is that."""
        self._add(0x16, register, offset=label, value=value)

    def go_if_none(self, register: int, label: str) -> None:
        """If it is 0."""
        self._add(0x15, register, offset=label)

    def go_if_same(self, one: int, other: int, label: str) -> None:
        self._add(0x1D, one, other, label)

    def end(self) -> None:
        self.value(R0, 0)
        self._add(0x95)
