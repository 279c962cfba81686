"""What is whole of a damaged log, kept."""

from __future__ import annotations

from pathlib import Path

from rtmeter.errors import RtmeterError
from rtmeter.samples.parquet import Recovery, write_parquet


def recover(path: Path, out: Path, server_log: Path | None = None) -> Recovery:
    """Writes every whole row of the sample log ``path`` to ``samples.parquet`` in the directory ``out``
    (made if need be), and says what is missing. ``server_log``: a round trip's other half.

    Raises RtmeterError if nothing of the log can be read, or ``out`` holds a samples.parquet already.
    """
    samples = Path(out) / "samples.parquet"
    if samples.exists():
        raise RtmeterError(
            "exists already", where=str(samples), remedy="choose another directory, or remove it"
        )
    try:
        samples.parent.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise RtmeterError(
            f"cannot be made: {error.strerror}",
            where=str(out),
            remedy="choose a directory that can be written",
        ) from error
    return write_parquet(path, samples, server_log)
