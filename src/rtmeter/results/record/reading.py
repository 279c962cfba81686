"""Files → records: what is damaged, or of a version that is not known, is an error with file and field."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, TypeVar

from pydantic import ValidationError

from rtmeter.errors import RtmeterError
from rtmeter.host.files import open_file
from rtmeter.results.record.cell import CELL_FORMAT, CELL_VERSION, CellRecord
from rtmeter.results.record.older import cell_of_version_1, run_of_version_1
from rtmeter.results.record.run import RUN_FORMAT, RUN_VERSION, RunRecord
from rtmeter.values import as_json, harmless

_Record = TypeVar("_Record", CellRecord, RunRecord)
_Older = dict[int, Callable[[dict[str, Any]], dict[str, Any]]]
"""What makes the next version of a content of this one."""

_CELL_REMEDY = "measure the cell again, or recover its probe.rtlog (rtmeter recover)"
_RUN_REMEDY = "put it right, or remove it: each of its cells can be read without it"
_LONGEST = 60


def read_cell_file(path: Path) -> CellRecord:
    """The cell.json at ``path``; RtmeterError if it cannot be read, is damaged or of a later version."""
    return cell_of(_content(path), path)


def cell_of(content: bytes, path: Path) -> CellRecord:
    """The record that the content of a cell.json is; errors name ``path``."""
    return _record(content, path, CellRecord, CELL_FORMAT, CELL_VERSION, {1: cell_of_version_1}, _CELL_REMEDY)


def read_run_file(path: Path) -> RunRecord:
    """The run.json at ``path``; RtmeterError as read_cell_file()."""
    return _record(
        _content(path), path, RunRecord, RUN_FORMAT, RUN_VERSION, {1: run_of_version_1}, _RUN_REMEDY
    )


def text_of(record: CellRecord | RunRecord) -> str:
    """The content of its file; null for what is infinite or no number."""
    return json.dumps(as_json(record.model_dump(mode="json")), indent=1) + "\n"


def _content(path: Path) -> bytes:
    try:
        with open_file(path) as file:
            return file.read()
    except OSError as error:
        raise unreadable(error, path) from error


def unreadable(error: OSError, path: Path) -> RtmeterError:
    """What the system says of a file, as an error of ours."""
    said = (error.strerror or "").lower()
    return RtmeterError(f"cannot be read: {said}", where=str(path), remedy="check the path")


def _record(
    content: bytes, path: Path, model: type[_Record], form: str, version: int, older: _Older, remedy: str
) -> _Record:
    if content.isascii() and b"\\u" not in content:  # nothing in it that a terminal would heed
        try:
            record = model.model_validate_json(content, strict=True)
        except ValidationError:
            pass  # of an older version, or damaged: which, and how, is told below
        else:
            if {"format", "version"} <= record.model_fields_set:
                return record
    current = _of_version(_parsed(content, path, form, remedy), version, older, path)
    try:
        return model.model_validate_json(json.dumps(current), strict=True)
    except ValidationError as error:
        raise _damage(error, current, path, remedy) from None


def _parsed(content: bytes, path: Path, form: str, remedy: str) -> dict[str, Any]:
    try:
        parsed = harmless(json.loads(content))
    except (ValueError, RecursionError) as error:
        at = (
            f" (line {error.lineno}, column {error.colno})" if isinstance(error, json.JSONDecodeError) else ""
        )
        raise RtmeterError(f"is no {form}: is no JSON{at}", where=str(path), remedy=remedy) from None
    if not isinstance(parsed, dict):
        raise RtmeterError(f"is no {form}: is no object", where=str(path), remedy=remedy)
    if parsed.get("format") != form:
        said = {"field": "format", "value": parsed.get("format"), "remedy": remedy}
        raise RtmeterError(f"is no {form}", where=str(path), **said)
    return parsed


def _of_version(content: dict[str, Any], version: int, older: _Older, path: Path) -> dict[str, Any]:
    """The content as of the version that is read."""
    found = content.get("version")
    while type(found) is int and found in older:
        content = older[found](content)
        found = content["version"]
    if type(found) is int and found == version:
        return content
    known = " and ".join(map(str, [*older, version]))
    raise RtmeterError(
        f"has version {found}, this rtmeter reads versions {known}",
        where=str(path),
        field="version",
        remedy="read it with the rtmeter that wrote it, or a newer one",
    )


def _keys(place: tuple[int | str, ...], content: Any) -> Iterator[str]:
    """The keys of a place in the content; what else pydantic names there is a type of several allowed."""
    for part in place:
        if isinstance(content, dict):
            content = content.get(str(part))
            yield str(part)
        elif isinstance(content, list) and isinstance(part, int):
            content = content[part] if part < len(content) else None
            yield str(part)


def _damage(error: ValidationError, content: dict[str, Any], path: Path, remedy: str) -> RtmeterError:
    """The first thing that is wrong, as pydantic says it."""
    first = error.errors(include_url=False)[0]
    field = first.get("ctx", {}).get("field") or ".".join(_keys(first["loc"], content)) or None
    value = first["input"]
    said = None if isinstance(value, dict | list) or value is None else str(value)[:_LONGEST]
    message = first["msg"].removeprefix("Value error, ")
    message = {"missing": "is missing", "extra_forbidden": "is not known"}.get(first["type"], message)
    message = message[:1].lower() + message[1:]
    return RtmeterError(message, where=str(path), field=field, value=said, remedy=remedy)
