"""Files that appear whole or not at all, and files of others, read without waiting for anybody."""

from __future__ import annotations

import errno
import os
import stat
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO

from rtmeter.errors import RtmeterError


def open_file(path: Path) -> BinaryIO:
    """The file, to be read. Raises OSError, also for a pipe or a device: those are never waited for."""
    descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK)
    mode = os.fstat(descriptor).st_mode
    if not stat.S_ISREG(mode):
        os.close(descriptor)
        if stat.S_ISDIR(mode):
            raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR), str(path))
        raise OSError(errno.EINVAL, "It is no regular file", str(path))
    return os.fdopen(descriptor, "rb")


def require_text(path: Path, field: str) -> None:
    """Raises RtmeterError for a path of bytes that are no UTF-8: neither JSON nor Parquet can hold it."""
    try:
        str(path).encode()
    except UnicodeEncodeError:
        raise no_text(str(path), field) from None


def no_text(path: str, field: str) -> RtmeterError:
    """Of a path of bytes that are no UTF-8."""
    return RtmeterError("is no UTF-8", field=field, value=path, remedy="write it, and name files, in UTF-8")


@contextmanager
def whole_file(out: Path, field: str = "-o") -> Iterator[Path]:
    """A new file beside ``out`` that takes its place at the end of the block.

    What was there stays if the block raises, and so does what is no ordinary file: a device, a pipe, a
    process's own output. An OSError becomes an RtmeterError that names the field.
    """
    own_output = out.is_symlink() and out.readlink().is_relative_to("/proc")
    if own_output or (out.exists() and not out.is_file() and not out.is_dir()):
        remedy = f"name a file with {field}"
        raise RtmeterError("is no ordinary file", field=field, value=str(out), remedy=remedy)
    if out.is_dir():
        raise RtmeterError("is a folder", field=field, value=str(out), remedy="name a file in it")
    partial = None
    try:
        with tempfile.NamedTemporaryFile(dir=out.parent, prefix=f".{out.name}.", delete=False) as file:
            partial = Path(file.name)
        yield partial
        partial.chmod(0o644)
        partial.replace(out)
    except OSError as error:
        reason = (error.strerror or str(error)).lower()
        remedy = f"choose another place with {field}, or make room there; an older file is left as it was"
        raise RtmeterError(
            f"cannot be written: {reason}", field=field, value=str(out), remedy=remedy
        ) from error
    finally:
        if partial is not None:
            partial.unlink(missing_ok=True)


def replace_file(out: Path, content: bytes | memoryview, field: str = "-o") -> None:
    """Writes the file as whole_file()."""
    with whole_file(out, field) as partial:
        partial.write_bytes(content)
