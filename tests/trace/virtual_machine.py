"""The kernel's virtual machine, as far as our programs use it: one CPU, a table, and the kernel's memory."""

from __future__ import annotations

import struct
from collections.abc import Mapping

from rtmeter.trace.ebpf import code as helpers
from rtmeter.trace.ebpf.btf import Types
from rtmeter.trace.ebpf.programs import LINE_BYTES, Programs, Table

TABLE, STACK, ARGUMENTS, KERNEL = (place << 32 for place in (1, 2, 3, 4))
_BITS = (1 << 64) - 1
_STACK_BYTES = 512
_LOADS = {0x61: "<I", 0x71: "<B", 0x79: "<Q"}
_STORES = {0x63: "<I", 0x7B: "<Q"}
_VALUES = {0x62: "<I", 0x7A: "<Q"}

_OFFSETS = {
    ("task_struct", "pid"): 8,
    ("task_struct", "prio"): 12,
    ("hrtimer", "function"): 0,
    ("hrtimer", "_softexpires"): 8,
    ("hrtimer", "base"): 16,
    ("hrtimer", "is_soft"): 25,
    ("hrtimer_clock_base", "offset"): 8,
    ("pt_regs", "syscallno"): 12,
}
_BITS_32 = ("pid", "prio", "syscallno")
TYPES = Types({}, _OFFSETS)


class Machine:
    """Runs the programs that tell of threads ``tids``; ``thread``: who is on the CPU."""

    def __init__(self, tids: tuple[int, ...], budget: int | None = None, ticks: tuple[int, ...] = ()) -> None:
        self._table = Table(-1, 1, 64)
        self._programs = dict(Programs(self._table, TYPES, tids).all(budget, ticks))
        self._memory = {
            TABLE: bytearray(LINE_BYTES) + b"\xa5" * self._table.ring_bytes,  # records that had a turn
            STACK: bytearray(_STACK_BYTES),
            ARGUMENTS: bytearray(64),
            KERNEL: bytearray(b"\xa5" * (1 << 12)),
        }
        self._members: dict[int, int] = {}
        """How many bytes each has."""
        self._used = 0
        self._now_ns = 0
        self.thread = 0

    def thing(self, structure: str, **members: int) -> int:
        """The address of a structure of the kernel's, with members as given."""
        address, self._used = KERNEL + self._used, self._used + 64
        for name, value in members.items():
            form = "<B" if name == "is_soft" else "<I" if name in _BITS_32 else "<Q"
            at = address + _OFFSETS[structure, name]
            self._members[at] = struct.calcsize(form)
            self._write(form, at, value)
        return address

    def runs(self, tracepoint: str, *arguments: int) -> None:
        """The program of a tracepoint, with these."""
        for place, value in enumerate(arguments):
            self._write("<Q", ARGUMENTS + 8 * place, value)
        self._run(self._programs[tracepoint])

    def records(self) -> list[Mapping[int, int]]:
        """Each as words by their place."""
        made = self._read("<Q", TABLE)
        first = TABLE + LINE_BYTES
        return [
            {at: self._read("<Q", first + LINE_BYTES * number + at) for at in range(0, LINE_BYTES, 8)}
            for number in range(made)
        ]

    def _find(self, address: int) -> tuple[bytearray, int]:
        base = address >> 32 << 32
        return self._memory[base], address - base

    def _read(self, form: str, address: int) -> int:
        return int(struct.unpack_from(form, *self._find(address))[0])

    def _write(self, form: str, address: int, value: int) -> None:
        memory, at = self._find(address)
        struct.pack_into(form, memory, at, value & (1 << 8 * struct.calcsize(form)) - 1)

    def _call(self, helper: int) -> int:
        self._now_ns += 1
        told = {
            helpers.CPU: 0,
            helpers.NOW_NS: self._now_ns,
            helpers.CURRENT: self.thread << 32 | self.thread,
        }
        return told[helper]

    def _run(self, program: bytes) -> None:
        lines = list(struct.iter_unpack("<BBhi", program))
        r, at = [0] * 11, 0
        r[helpers.R1], r[helpers.R10] = ARGUMENTS, STACK + _STACK_BYTES
        while True:
            op, registers, offset, value = lines[at]
            to, by, at = registers & 15, registers >> 4, at + 1
            if op == 0x95:
                return
            if op == 0x18:
                r[to] = TABLE if by == 2 else (lines[at][3] & 0xFFFFFFFF) << 32 | value & 0xFFFFFFFF
                at += 1
            elif op == 0x85:
                r[0], r[1:6] = self._call(value), [1 << 60] * 5  # which is nowhere
            elif op in _LOADS:
                bytes_there = self._members.get(r[by] + offset, 8)
                assert struct.calcsize(_LOADS[op]) <= bytes_there, (
                    "the kernel refuses to read beyond a member"
                )
                r[to] = self._read(_LOADS[op], r[by] + offset)
            elif op in _STORES:
                self._write(_STORES[op], r[to] + offset, r[by])
            elif op in _VALUES:
                self._write(_VALUES[op], r[to] + offset, value)
            elif op == 0xDB:
                before, place = self._read("<Q", r[to] + offset), r[to] + offset
                self._write("<Q", place, r[by] if value == 0xE1 else before + r[by])
                r[by] = before
            elif op in (0x05, 0x15, 0x16, 0x1D):
                same = {0x05: True, 0x15: r[to] == value, 0x16: (r[to] ^ value) & 0xFFFFFFFF == 0}
                at += offset if same.get(op, r[to] == r[by]) else 0
            else:
                r[to] = (
                    _BITS
                    & {
                        0x07: r[to] + value,
                        0x0F: r[to] + r[by],
                        0x4F: r[to] | r[by],
                        0x57: r[to] & value,
                        0x67: r[to] << (value & 63),
                        0xB7: value,
                        0xBF: r[by],
                    }[op]
                )
