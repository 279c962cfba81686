"""The JSON objects of a sample log."""

from __future__ import annotations

from typing import Any

from rtmeter.errors import RtmeterError
from rtmeter.values import from_json, harmless

MAX_COLUMNS = 64
_FORMAT, _VERSION = "rtmeter-sample-log", 1
_OWN_COLUMNS = ("k", "warm_up")  # samples.parquet adds them


def parse_object(payload: bytes) -> dict[str, Any] | None:
    """The JSON object that a payload holds, or None if it holds none."""
    try:
        content = harmless(from_json(payload))
    except ValueError:
        return None
    return content if isinstance(content, dict) else None


def checked_header(header: dict[str, Any], where: str) -> dict[str, Any]:
    """The header itself, if rows can be read by it; RtmeterError otherwise."""
    name, version = header.get("format"), header.get("version")
    if name != _FORMAT or version != _VERSION:
        raise RtmeterError(
            f"the header describes {name!r}, version {version!r}; this rtmeter reads {_FORMAT!r}, "
            f"version {_VERSION}",
            where=where,
            remedy="read it with the rtmeter that wrote it, or a newer one",
        )
    columns = header.get("columns")
    if not isinstance(columns, list) or not _usable([c["name"] if _is_column(c) else "" for c in columns]):
        raise RtmeterError(
            f"the header does not name 1 to {MAX_COLUMNS} different columns, the last one 'status'",
            where=where,
            remedy="the probe that wrote it does not follow spec/sample-log.md",
        )
    first = header.get("first_row", 0)
    if type(first) is not int or not 0 <= first < 2**62:
        raise RtmeterError(
            "is no index of a row", where=where, field="first_row", value=first, remedy="the log is damaged"
        )
    return header


def _is_column(column: object) -> bool:
    return isinstance(column, dict) and isinstance(column.get("name"), str)


def _usable(names: list[str]) -> bool:
    return (
        0 < len(names) <= MAX_COLUMNS
        and all(name.isascii() and name.isidentifier() and name not in _OWN_COLUMNS for name in names)
        and len(set(names)) == len(names)
        and names[-1] == "status"
    )
