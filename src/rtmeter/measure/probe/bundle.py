"""The probes for machines of one architecture, in one file that is carried to a lab or put on a board."""

from __future__ import annotations

import gzip
import hashlib
import io
import json
import tarfile
from pathlib import Path
from typing import Any, Literal

from rtmeter.errors import RtmeterError
from rtmeter.measure.probe.elf import glibc_of, interpreter_of, needed_by
from rtmeter.measure.probe.images import probes_for
from rtmeter.measure.probe.probes import PREFIX
from rtmeter.results.store import writing
from rtmeter.values import version

Arch = Literal["aarch64", "armhf", "x86_64"]
MACHINES = {"aarch64": "aarch64", "armhf": "armv7l", "x86_64": "x86_64"}
"""What a kernel of each architecture calls itself."""

MANIFEST = "bundle.json"
_OF_LIBC = ("libc.so", "libm.so", "libdl.so", "libpthread.so", "librt.so", "ld-linux")


def make_bundle(arch: Arch, file: Path) -> list[dict[str, Any]]:
    """Writes a tar.gz with every probe for the architecture and what is known of them; returns that, an entry
    for each: ``name``, ``bytes``, ``sha256``, ``loader``, ``glibc`` (the least version), ``needs`` (libraries
    besides the libc). The same probes make the same bytes. Raises RtmeterError where there is none, or the
    file cannot be written."""
    found = probes_for(MACHINES[arch])
    if not found:
        build = "make" if arch == "x86_64" else "make cross"
        remedy = f"{build}, or name the folder of such probes in RTMETER_PROBE_PATH"
        raise RtmeterError("has no probe here", field="--arch", value=arch, remedy=remedy)
    entries = [_about(name, image) for name, image in found.items()]
    about = {
        "format": "rtmeter-bundle",
        "version": 1,
        "rtmeter": version(),
        "arch": arch,
        "adapters": entries,
    }
    folder = f"rtmeter-{arch}"
    text = json.dumps(about, indent=1) + "\n"
    packed = io.BytesIO()
    with tarfile.open(fileobj=packed, mode="w") as tar:
        _put(tar, f"{folder}/{MANIFEST}", text.encode(), 0o644)
        for name, image in found.items():
            _put(tar, f"{folder}/{PREFIX}{name}", image, 0o755)
    with writing(file):
        file.write_bytes(gzip.compress(packed.getvalue(), mtime=0))
    return entries


def _about(name: str, image: bytes) -> dict[str, Any]:
    return {
        "name": name,
        "bytes": len(image),
        "sha256": hashlib.sha256(image).hexdigest(),
        "loader": interpreter_of(image),
        "glibc": glibc_of(image),
        "needs": [needed for needed in needed_by(image) if not needed.startswith(_OF_LIBC)],
    }


def _put(tar: tarfile.TarFile, name: str, content: bytes, mode: int) -> None:
    entry = tarfile.TarInfo(name)
    entry.size, entry.mode = len(content), mode
    tar.addfile(entry, io.BytesIO(content))
