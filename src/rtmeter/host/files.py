"""Files that appear whole or not at all."""

from __future__ import annotations

import tempfile
from pathlib import Path

from rtmeter.errors import RtmeterError


def replace_file(out: Path, content: bytes, field: str = "-o") -> None:
    """Writes the file; what was there stays if it cannot be written, which raises RtmeterError."""
    partial = None
    try:
        with tempfile.NamedTemporaryFile("wb", dir=out.parent, prefix=f".{out.name}.", delete=False) as file:
            partial = Path(file.name)
            file.write(content)
        partial.chmod(0o644)
        partial.replace(out)
    except OSError as error:
        if partial is not None:
            partial.unlink(missing_ok=True)
        remedy = f"give another place with {field}; an older file there is left as it was"
        raise RtmeterError(
            f"cannot be written: {error.strerror}", field=field, value=str(out), remedy=remedy
        ) from error
