"""Functions of an ELF file by name: where in the file each begins, as uprobes take it."""

from __future__ import annotations

import struct
from collections.abc import Collection

_HEAD, _SECTION, _SEGMENT, _SYMBOL = (
    struct.Struct(form) for form in ("<16sHHIQQQIHHHHHH", "<IIQQQQIIQQ", "<IIQQQQQQ", "<IBBHQQ")
)
_SYMBOLS, _DYNAMIC_SYMBOLS, _LOADED, _FUNCTION, _ELF_64 = 2, 11, 1, 2, b"\x7fELF\x02\x01"


def offsets_of(file: bytes, names: Collection[str]) -> dict[str, int]:
    """Of those of the functions that a file with this content defines; none if it is no little-endian 64-bit
    ELF file, or damaged."""
    try:
        return _offsets(file, {name.encode(): name for name in names}) if file.startswith(_ELF_64) else {}
    except (struct.error, IndexError, ValueError):
        return {}


def _offsets(file: bytes, wanted: dict[bytes, str]) -> dict[str, int]:
    head = _HEAD.unpack_from(file)
    segments_at, sections_at = head[5], head[6]
    segments = [_SEGMENT.unpack_from(file, segments_at + n * head[9]) for n in range(head[10])]
    sections = [_SECTION.unpack_from(file, sections_at + n * head[11]) for n in range(head[12])]
    found: dict[str, int] = {}
    for section in sections:
        if section[1] not in (_SYMBOLS, _DYNAMIC_SYMBOLS):
            continue
        texts_at = sections[section[6]][4]
        for at in range(section[4], section[4] + section[5], _SYMBOL.size):
            name, info, _, where, address, _ = _SYMBOL.unpack_from(file, at)
            if info & 0xF == _FUNCTION and where:
                begin = texts_at + name
                text = file[begin : file.index(b"\0", begin)]
                if text in wanted and (offset := _in_file(address, segments)) is not None:
                    found[wanted[text]] = offset
    return found


def _in_file(address: int, segments: list[tuple[int, ...]]) -> int | None:
    for kind, _, offset, begin, _, file_bytes, _, _ in segments:
        if kind == _LOADED and begin <= address < begin + file_bytes:
            return address - begin + offset
    return None
