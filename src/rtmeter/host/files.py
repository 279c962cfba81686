"""Files that appear whole or not at all."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from rtmeter.errors import RtmeterError


@contextmanager
def whole_file(out: Path, field: str = "-o") -> Iterator[Path]:
    """A new file beside ``out`` that takes its place at the end of the block.

    What was there stays if the block raises. An OSError becomes an RtmeterError that names the field.
    """
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
