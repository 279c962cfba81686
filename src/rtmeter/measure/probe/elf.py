"""An ELF file → which machines run it, and what it needs there (elf.h)."""

from __future__ import annotations

import re
import struct
from collections.abc import Iterator

MAGIC = b"\x7fELF"
HEAD_BYTES = 20
"""Of the file, that say what it is and which machines run it."""

_MACHINES = {3: ("i386", "i686", "x86_64"), 40: ("armv6l", "armv7l", "armv8l"), 62: ("x86_64",)}
_MACHINES |= {183: ("aarch64",), 243: ("riscv64",)}
"""What a kernel calls itself that runs an executable of ELF machine N (elf.h, EM_*)."""

_TO_NARROW = {"aarch64": "armv8l", "x86_64": "i686"}
"""What a 64-bit kernel calls itself to 32-bit programs (setarch(8), linux32)."""

_LOAD, _DYNAMIC, _INTERPRETER = 1, 2, 3  # PT_LOAD, PT_DYNAMIC, PT_INTERP
_NEEDED, _STRINGS = 1, 5  # DT_NEEDED, DT_STRTAB


def machines_of(image: bytes, otherwise: str) -> tuple[str, ...]:
    """What kernels call themselves that run this ELF file."""
    return _MACHINES.get(int.from_bytes(image[18:20], "little"), (otherwise,))


def system_of(kernel: str, shell: bytes) -> str:
    """What the kernel, which calls itself so, calls itself to programs like its shell, of which these are the
    first bytes: a 64-bit kernel may have a 32-bit system, as a Raspberry Pi's often has."""
    narrow = shell.startswith(MAGIC + b"\1")
    return _TO_NARROW.get(kernel, kernel) if narrow else kernel


def interpreter_of(image: bytes) -> str | None:
    """The loader that the ELF file asks for, which tells the libc it was built for; None: it needs none."""
    wide = image[4:5] == b"\2"
    try:
        for kind, place in _segments(image):
            if kind == _INTERPRETER:
                start, length = _span(image, place, wide=wide)
                return image[start : start + length].rstrip(b"\0").decode(errors="replace")
    except struct.error:
        pass
    return None


def needed_by(image: bytes) -> list[str]:
    """The shared libraries that the ELF file names, in its order; none of one that is static, or damaged."""
    wide = image[4:5] == b"\2"
    form, size = ("<qQ", 16) if wide else ("<iI", 8)
    try:
        dynamic = next((place for kind, place in _segments(image) if kind == _DYNAMIC), None)
        if dynamic is None:
            return []
        start, length = _span(image, dynamic, wide=wide)
        entries = [struct.unpack_from(form, image, at) for at in range(start, start + length, size)]
        table = next(value for tag, value in entries if tag == _STRINGS)
        for kind, place in _segments(image):
            if kind == _LOAD:
                offset, length = _span(image, place, wide=wide)
                (address,) = struct.unpack_from("<Q" if wide else "<I", image, place + (16 if wide else 8))
                if address <= table < address + length:
                    names = table - address + offset
                    return [_text(image, names + value) for tag, value in entries if tag == _NEEDED]
    except (struct.error, StopIteration):
        pass
    return []


def glibc_of(image: bytes) -> str | None:
    """The least version of glibc that has all that the ELF file asks for; None: it asks for none."""
    versions = {
        tuple(map(int, one.split(b"."))) for one in re.findall(rb"\0GLIBC_(\d+(?:\.\d+)+)(?=\0)", image)
    }
    return ".".join(map(str, max(versions))) if versions else None


def _text(image: bytes, start: int) -> str:
    return image[start : image.index(b"\0", start)].decode(errors="replace")


def _segments(image: bytes) -> Iterator[tuple[int, int]]:
    """The kind of each segment, and where its header lies."""
    wide = image[4:5] == b"\2"
    (offset,) = struct.unpack_from("<Q", image, 32) if wide else struct.unpack_from("<I", image, 28)
    size, count = struct.unpack_from("<HH", image, 54 if wide else 42)
    for place in range(offset, offset + size * count, size):
        yield struct.unpack_from("<I", image, place)[0], place


def _span(image: bytes, place: int, *, wide: bool) -> tuple[int, int]:
    """Where the segment lies in the file, and how long it is."""
    if wide:
        return struct.unpack_from("<Q", image, place + 8)[0], struct.unpack_from("<Q", image, place + 32)[0]
    return struct.unpack_from("<I", image, place + 4)[0], struct.unpack_from("<I", image, place + 16)[0]
