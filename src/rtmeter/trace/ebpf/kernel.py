"""The system call bpf(2), as far as it is needed here: a table that both sides see, programs, links."""

from __future__ import annotations

import contextlib
import ctypes
import os
import platform
import struct

from rtmeter.trace.ebpf.btf import UnavailableError

_NUMBERS = {"x86_64": 321, "aarch64": 280, "riscv64": 280}
_MAP_CREATE, _PROG_LOAD, _OBJ_GET_INFO, _LINK = 0, 5, 15, 17
_ARRAY, _MMAPABLE = 2, 1 << 10
_TRACING, _RAW_TRACEPOINT = 26, 23
_ATTR_BYTES, _LOG_BYTES = 152, 1 << 16
_INFO_BYTES, _MISSES_AT = 232, 208
"""Of struct bpf_prog_info, up to what came with Linux 5.12: how often a program did not run, since it ran
already on that CPU."""

_TERMS = b"GPL and additional rights"
"""What the kernel asks for of a program that looks into its structures: programs.py may be used by the terms
of the GPL, version 2, as well as by those of this project."""

_libc = ctypes.CDLL(None, use_errno=True)


def _call(command: int, attr: bytes) -> int:
    number = _NUMBERS.get(platform.machine())
    if number is None:
        raise UnavailableError(f"bpf(2) is not known for {platform.machine()}")
    buffer = ctypes.create_string_buffer(attr.ljust(_ATTR_BYTES, b"\0"), _ATTR_BYTES)
    result: int = _libc.syscall(number, command, buffer, _ATTR_BYTES)
    if result < 0:
        raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()))
    return result


def make_table(size_bytes: int) -> int:
    """A table of one entry, which can be mapped: its descriptor. Raises UnavailableError."""
    try:
        return _call(_MAP_CREATE, struct.pack("<IIIII", _ARRAY, 4, size_bytes, 1, _MMAPABLE))
    except OSError as error:
        raise UnavailableError(f"bpf(2) gives no table: {(error.strerror or '').lower()}") from None


def load(code: bytes, tracepoint: int, name: str) -> int:
    """A program for a tracepoint, by its id: its descriptor. Raises UnavailableError with the reason."""
    with contextlib.suppress(OSError):
        return _load(code, tracepoint, name)
    log = ctypes.create_string_buffer(_LOG_BYTES)  # it has no room for a large program, which refuses it
    try:
        return _load(code, tracepoint, name, log)
    except OSError as error:
        said = log.value.decode(errors="replace").strip().splitlines()
        why = next((line for line in reversed(said) if not line.startswith("processed")), "")
        told = (error.strerror or "").lower()
        raise UnavailableError(f"the kernel refuses program {name}: {told} ({why})") from None


def _load(code: bytes, tracepoint: int, name: str, log: ctypes.Array[ctypes.c_char] | None = None) -> int:
    text = ctypes.create_string_buffer(code, len(code))
    terms = ctypes.create_string_buffer(_TERMS)
    into = (0, 0, 0) if log is None else (1, _LOG_BYTES, ctypes.addressof(log))
    attr = struct.pack(
        "<IIQQIIQII16sIIIIQIIQII",
        *(_TRACING, len(code) // 8, ctypes.addressof(text), ctypes.addressof(terms)),
        *(*into, 0, 0, name.encode()[:15]),
        *(0, _RAW_TRACEPOINT, 0, 0, 0, 0, 0, 0, 0, tracepoint),
    )
    return _call(_PROG_LOAD, attr)


def attach(program: int) -> int:
    """Runs it from now on, until the descriptor is closed. Raises UnavailableError."""
    try:
        return _call(_LINK, struct.pack("<QI", 0, program))
    except OSError as error:
        raise UnavailableError(f"a program cannot be attached: {(error.strerror or '').lower()}") from None


def misses(program: int) -> int:
    """How often it did not run, since it ran already on that CPU; 0 where the kernel does not count them."""
    info = ctypes.create_string_buffer(_INFO_BYTES)
    _call(_OBJ_GET_INFO, struct.pack("<IIQ", program, _INFO_BYTES, ctypes.addressof(info)))
    return int(struct.unpack_from("<Q", info.raw, _MISSES_AT)[0])
