"""Cells whose cell.json is mutilated: each key removed, each value of another type.

What must be refused is told by the schema in spec/, not by the model that refuses it.
"""

from __future__ import annotations

import copy
import json
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import jsonschema

SPEC = Path(__file__).resolve().parent.parent / "spec"
DEEP = 6
"""How many levels of keys are mutilated."""

_NOTHING = object()
_OTHERS: tuple[tuple[type, Any], ...] = (
    (bool, "x"),
    (str, 5),
    (int, "x"),
    (float, "x"),
    (list, {"a": 1}),
    (dict, [1]),
    (type(None), {"a": [1]}),
)


@dataclass(frozen=True)
class Mutilation:
    """A value that is another, or (``_NOTHING``) is gone, where the path of keys leads."""

    path: tuple[str | int, ...]
    value: Any

    def __str__(self) -> str:
        what = "gone" if self.value is _NOTHING else repr(self.value)
        return f"{'.'.join(map(str, self.path))}: {what}"

    def of(self, content: dict[str, Any]) -> dict[str, Any]:
        """The content with it."""
        whole = copy.deepcopy(content)
        place: Any = whole
        for key in self.path[:-1]:
            place = place[key]
        if self.value is _NOTHING:
            del place[self.path[-1]]
        else:
            place[self.path[-1]] = self.value
        return whole


def mutilations(content: Any, path: tuple[str | int, ...] = ()) -> Iterator[Mutilation]:
    """Each key removed, and each value of another type; of lists the first item stands for all."""
    pairs = content.items() if isinstance(content, dict) else enumerate(content[:1])
    for key, value in list(pairs):
        here = (*path, key)
        if isinstance(content, dict):
            yield Mutilation(here, _NOTHING)
        yield Mutilation(here, next(other for kind, other in _OTHERS if isinstance(value, kind)))
        if isinstance(value, dict | list) and len(here) < DEEP:
            yield from mutilations(value, here)


@cache
def _validator(name: str) -> jsonschema.Draft202012Validator:
    return jsonschema.Draft202012Validator(json.loads((SPEC / name).read_text()))


def is_valid(content: dict[str, Any], schema: str) -> bool:
    """Whether the content follows the schema of that name in spec/."""
    return bool(_validator(schema).is_valid(content))
