"""What the kernel tells of its own types (BTF): tracepoints by id, and where the members of structures lie.

Layout: https://docs.kernel.org/bpf/btf.html
"""

from __future__ import annotations

import struct
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from rtmeter.host.root import Root

PATH = "/sys/kernel/btf/vmlinux"

_TRACEPOINT = "btf_trace_"
_STRUCT, _TYPEDEF = 4, 8
_MORE = {1: 4, 3: 12, 14: 4, 17: 4}
_MORE_EACH = {4: 12, 5: 12, 6: 8, 13: 8, 15: 12, 19: 12}
"""Bytes that follow a type of a kind, once and for each member; of all other kinds none do."""
_HEAD = struct.Struct("<HBBIIIII").unpack_from
_TYPE = struct.Struct("<III").unpack_from


class UnavailableError(Exception):
    """This kernel does not take programs of ours, or is not the one they are for: why."""


@dataclass(frozen=True, slots=True)
class Types:
    """``tracepoints``: id of each; ``members``: of some structures, offsets in bytes."""

    tracepoints: Mapping[str, int]
    members: Mapping[tuple[str, str], int]

    def tracepoint(self, name: str) -> int:
        """Raises UnavailableError if there is none."""
        if name not in self.tracepoints:
            raise UnavailableError(f"this kernel has no tracepoint {name}")
        return self.tracepoints[name]

    def offset(self, structure: str, member: str) -> int:
        """Raises UnavailableError if it has none of that name."""
        if (structure, member) not in self.members:
            raise UnavailableError(f"this kernel has no {structure}.{member}")
        return self.members[structure, member]


def types_of(root: Root, structures: frozenset[str]) -> Types:
    """Those of the running kernel. Raises UnavailableError where it does not tell."""
    try:
        told = root.at(PATH).read_bytes()
    except OSError:
        raise UnavailableError(f"this kernel has no {PATH} (CONFIG_DEBUG_INFO_BTF)") from None
    _, _, _, head, types, size, strings, _ = _HEAD(told)
    members: dict[tuple[str, str], int] = {}
    tracepoints = {}
    for number, kind, name, at, count, has_bits in _types(told, head + types, size, head + strings):
        if kind == _TYPEDEF and name.startswith(_TRACEPOINT):
            tracepoints[name.removeprefix(_TRACEPOINT)] = number
        elif kind == _STRUCT and name in structures:
            for place in range(count):
                text, _, bits = _TYPE(told, at + 12 * place)
                bits = bits & 0xFFFFFF if has_bits else bits
                members[name, _text(told, head + strings + text)] = bits // 8
    return Types(tracepoints, members)


def _types(told: bytes, at: int, size: int, strings: int) -> Iterator[tuple[int, int, str, int, int, bool]]:
    """Number, kind, name, where its members begin, how many, and whether they may be of some bits only; of
    structures and typedefs."""
    number, end = 1, at + size
    while at < end:
        text, about, _ = _TYPE(told, at)
        kind, count = about >> 24 & 31, about & 0xFFFF
        if kind in (_STRUCT, _TYPEDEF):
            yield number, kind, _text(told, strings + text), at + 12, count, bool(about >> 31)
        at += 12 + _MORE.get(kind, 0) + _MORE_EACH.get(kind, 0) * count
        number += 1


def _text(told: bytes, at: int) -> str:
    return told[at : told.index(b"\0", at)].decode()
