"""Probes as files: the one for a machine, and why one cannot be loaded there."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

from rtmeter.measure.probe import probes
from rtmeter.measure.probe.elf import MAGIC, interpreter_of, machines_of


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
                if image.startswith(MAGIC) and machine in machines_of(image, "none"):
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
    if loader and (loader in said or "not found" in said) and "shared libraries" not in said:
        return f"has another libc: it lacks {loader}, the loader that the probe was built for"
    return None
