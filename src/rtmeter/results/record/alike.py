"""Records, one after the other → the same, with what they have alike kept once: half the memory of many."""

from __future__ import annotations

import marshal
from collections.abc import Iterable
from typing import Any

from pydantic import BaseModel

from rtmeter.results.record.cell import CellRecord


class Alike:
    """What the records that it has seen consist of. None is ever written to, so that all may share it."""

    def __init__(self) -> None:
        self._contents: dict[bytes, Any] = {}
        self._given: dict[frozenset[str], set[str]] = {}

    def of(self, record: CellRecord) -> CellRecord:
        """The record itself."""
        for name, value in record.__dict__.items():
            if type(value) in (dict, list):
                record.__dict__[name] = self._shared(value)
        self._share_names([record])
        return record

    def _shared(self, value: Any) -> Any:
        try:
            return self._contents.setdefault(marshal.dumps(value), value)
        except ValueError:  # it has models in it
            return value

    def _share_names(self, parts: Iterable[Any]) -> None:
        """Each model keeps the set of the names that were given; of one kind they are mostly the same."""
        for part in parts:
            if isinstance(part, BaseModel):
                given = self._given.setdefault(frozenset(part.model_fields_set), part.model_fields_set)
                object.__setattr__(part, "__pydantic_fields_set__", given)
                self._share_names(part.__dict__.values())
            elif type(part) is dict:
                self._share_names(part.values())
