"""YAML with the line of every value, so that an error can say where it is."""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

from rtmeter.errors import RtmeterError

KeyPath = tuple[str | int, ...]

MOST_VALUES = 100_000
_MOST_QUOTED = 40  # characters
_MERGE = "tag:yaml.org,2002:merge"
_NO_TEXT = re.compile("[\0\ud800-\udfff]")
"""What escapes can write, and no file's name and no JSON holds."""


@dataclass(frozen=True, slots=True)
class Document:
    """A YAML file: its text, its data, and the line (from 1) of each value by its path of keys."""

    path: Path
    text: str
    data: Any
    lines: dict[KeyPath, int]

    def where(self, *keys: str | int) -> str:
        """``file:line`` of the value at the path of keys, or of the nearest one around it."""
        path = keys
        while path and path not in self.lines:
            path = path[:-1]
        return f"{self.path}:{self.lines.get(path, 1)}"


def read(path: Path, field: str = "campaign") -> Document:
    """What the file holds, which is said to be a ``field``. Raises RtmeterError with file and line for what
    is no YAML, or has a key twice."""
    try:
        text = path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        reason = error.strerror if isinstance(error, OSError) else "is not UTF-8 text"
        raise RtmeterError(
            f"cannot be read: {reason}", field=field, value=str(path), remedy="give a YAML file"
        ) from None
    lines: dict[KeyPath, int] = {}
    try:
        root = yaml.compose(text, Loader=yaml.SafeLoader)
        data = None if root is None else _Builder(path, lines).build(root, ())
    except RecursionError:
        raise RtmeterError("is nested too deeply", where=str(path), remedy="see spec/campaign.md") from None
    except yaml.YAMLError as error:
        mark = getattr(error, "problem_mark", None)
        line = mark.line + 1 if mark else 1
        problem = getattr(error, "problem", None) or str(error)
        raise RtmeterError(
            f"is not YAML: {problem}", where=f"{path}:{line}", remedy="check indentation and quotes there"
        ) from None
    return Document(path, text, data, lines)


class _Builder(yaml.constructor.SafeConstructor):
    def __init__(self, path: Path, lines: dict[KeyPath, int]) -> None:
        super().__init__()
        self._path, self._lines = path, lines
        self._built = 0

    def build(self, node: yaml.Node, at: KeyPath) -> Any:
        self._lines[at] = node.start_mark.line + 1
        if len(at) > 16:
            raise RtmeterError("is nested too deeply", where=self._where(node), remedy="see spec/campaign.md")
        self._built += 1
        if self._built > MOST_VALUES:  # a few aliases of aliases are any number
            remedy = "make several campaigns of it, or use fewer aliases"
            raise RtmeterError(
                f"has more than {MOST_VALUES:,} values", where=self._where(node), remedy=remedy
            )
        if isinstance(node, yaml.SequenceNode):
            return [self.build(child, (*at, i)) for i, child in enumerate(node.value)]
        if isinstance(node, yaml.MappingNode):
            return self._mapping(node, at)
        self._check_text(node, at)
        try:
            value = self.construct_object(node)
            str(value)  # a hexadecimal number of thousands of digits is read, and cannot be said
            return value
        except ValueError:  # it looks like a date, but is none, or has thousands of digits
            raise RtmeterError(
                "is neither a date nor a number",
                field=".".join(map(str, at)) or None,
                value=str(node.value)[:_MOST_QUOTED],
                where=self._where(node),
                remedy="put it in quotes if it is text",
            ) from None

    def _mapping(self, node: yaml.MappingNode, at: KeyPath) -> dict[str, Any]:
        merged = [value for key, value in node.value if key.tag == _MERGE]
        data = self._merged(merged[0], at) if merged else {}
        lines: dict[str, int] = {}
        for key_node, value_node in node.value:
            self._check_text(key_node, at)
            key = str(key_node.value)
            if key in lines:
                raise RtmeterError(
                    f"is there twice, first in line {lines[key]}",
                    field=key,
                    where=self._where(key_node),
                    remedy="remove one of them",
                )
            lines[key] = key_node.start_mark.line + 1
            if key_node.tag != _MERGE:
                data[key] = self.build(value_node, (*at, key))
        return data

    def _merged(self, node: yaml.Node, at: KeyPath) -> dict[str, Any]:
        """What ``<<: *name`` brings, or a list of such, of which an earlier one goes before a later one."""
        line = self._lines[at]
        data: dict[str, Any] = {}
        for one in reversed(node.value) if isinstance(node, yaml.SequenceNode) else [node]:
            if not isinstance(one, yaml.MappingNode):
                remedy = "give *NAME of a mapping that has &NAME, or a list of such"
                raise RtmeterError("is no mapping", field="<<", where=self._where(one), remedy=remedy)
            data |= self.build(one, at)
        self._lines[at] = line
        return data

    def _check_text(self, node: yaml.Node, at: KeyPath) -> None:
        if isinstance(node.value, str) and _NO_TEXT.search(node.value):
            raise RtmeterError(
                "has a NUL, or half a character of UTF-16",
                field=".".join(map(str, at)) or None,
                value=node.value[:_MOST_QUOTED],
                where=self._where(node),
                remedy="write each character as it is, or leave it out",
            )

    def _where(self, node: yaml.Node) -> str:
        return f"{self._path}:{node.start_mark.line + 1}"
