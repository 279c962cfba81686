"""Probes as files: which machines run one, what it needs there, and the one for a machine."""

from __future__ import annotations

import re
import struct
from collections.abc import Iterator
from pathlib import Path

from rtmeter.measure import probes

_MACHINES = {3: ("i386", "i686", "x86_64"), 40: ("armv6l", "armv7l", "armv8l"), 62: ("x86_64",)}
_MACHINES |= {183: ("aarch64",), 243: ("riscv64",)}
"""What a kernel calls itself that runs an executable of ELF machine N (elf.h, EM_*)."""

_INTERPRETER = 3  # PT_INTERP


def machines_of(image: bytes, otherwise: str) -> tuple[str, ...]:
    """What kernels call themselves that run this ELF file."""
    return _MACHINES.get(int.from_bytes(image[18:20], "little"), (otherwise,))


def interpreter_of(image: bytes) -> str | None:
    """The loader that the ELF file asks for, which tells the libc it was built for; None: it needs none."""
    wide = image[4:5] == b"\2"
    try:
        (offset,) = struct.unpack_from("<Q", image, 32) if wide else struct.unpack_from("<I", image, 28)
        size, count = struct.unpack_from("<HH", image, 54 if wide else 42)
        for place in range(offset, offset + size * count, size):
            (kind,) = struct.unpack_from("<I", image, place)
            if kind == _INTERPRETER:
                start, length = _span(image, place, wide=wide)
                return image[start : start + length].rstrip(b"\0").decode(errors="replace")
    except struct.error:
        pass
    return None


def _span(image: bytes, place: int, *, wide: bool) -> tuple[int, int]:
    """Where the segment lies in the file, and how long it is."""
    if wide:
        return struct.unpack_from("<Q", image, place + 8)[0], struct.unpack_from("<Q", image, place + 32)[0]
    return struct.unpack_from("<I", image, place + 4)[0], struct.unpack_from("<I", image, place + 16)[0]


def image_for(probe: probes.Probe, machine: str) -> bytes | None:
    """The probe's file for a kernel that calls itself so: its own, or one of the same adapter that was built
    for that machine (of RTMETER_PROBE_PATH, or this checkout's cross builds); None if there is none here."""
    for path in (probe.path, *_others(probe.name)):
        image = path.read_bytes()
        if machine in machines_of(image, machine):
            return image
    return None


def _others(name: str) -> Iterator[Path]:
    for folder in (*probes.search_path(), *probes.cross_builds()):
        path = folder / f"{probes.PREFIX}{name}"
        if path.is_file():
            yield path


def libc_words(image: bytes, said: str) -> str | None:
    """Why the file cannot be loaded there, by what was said of it; None if that is something else."""
    if version := re.search(r"version `(GLIBC\w*_[\d.]+)' not found", said):
        return f"has an older libc: the probe needs {version[1]}"
    loader = interpreter_of(image)
    if loader and "not found" in said and "shared libraries" not in said:
        return f"has another libc: it lacks {loader}, the loader that the probe was built for"
    return None
