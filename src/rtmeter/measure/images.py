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

_LOAD, _DYNAMIC, _INTERPRETER = 1, 2, 3  # PT_LOAD, PT_DYNAMIC, PT_INTERP
_NEEDED, _STRINGS = 1, 5  # DT_NEEDED, DT_STRTAB


def machines_of(image: bytes, otherwise: str) -> tuple[str, ...]:
    """What kernels call themselves that run this ELF file."""
    return _MACHINES.get(int.from_bytes(image[18:20], "little"), (otherwise,))


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


def image_for(probe: probes.Probe, machine: str) -> bytes | None:
    """The probe's file for a kernel that calls itself so: its own, or one of the same adapter that was built
    for that machine (of RTMETER_PROBE_PATH, or this checkout's cross builds); None if there is none here."""
    for path in (probe.path, *_others(probe.name)):
        image = path.read_bytes()
        if machine in machines_of(image, machine):
            return image
    return None


def probes_for(machine: str) -> dict[str, bytes]:
    """Every probe that there is here for a kernel that calls itself so, by adapter: of each name the one that
    image_for() takes."""
    found: dict[str, bytes] = {}
    for folder in (*probes.search_path(), *probes.cross_builds()):
        for path in sorted(folder.glob(f"{probes.PREFIX}*")) if folder.is_dir() else ():
            name = path.name.removeprefix(probes.PREFIX)
            if name not in found and path.is_file():
                image = path.read_bytes()
                if image.startswith(b"\x7fELF") and machine in machines_of(image, "none"):
                    found[name] = image
    return dict(sorted(found.items()))


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
