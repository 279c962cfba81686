"""Records, one after the other → the same, with what they have alike kept once: half the memory of many."""

from __future__ import annotations

import marshal
from collections.abc import Iterable
from typing import Any

from pydantic import BaseModel

from rtmeter.results.record.cell import CellRecord

_PLAIN = frozenset({str, int, float, bool, type(None), list, tuple})


class Alike:
    """What the records that it has seen consist of. None is ever written to, so that all may share it."""

    def __init__(self) -> None:
        self._contents: dict[bytes, Any] = {}
        self._given: dict[frozenset[str], set[str]] = {}

    def of(self, record: CellRecord) -> CellRecord:
        """The record itself."""
        parts = []
        for name, value in record.__dict__.items():
            if type(value) in (dict, list):
                try:
                    record.__dict__[name] = self._contents.setdefault(marshal.dumps(value), value)
                    continue
                except ValueError:  # it has models in it
                    pass
            parts.append(value)
        self._share_names([record])
        self._share_names_within(parts)
        return record

    def _share_names(self, models: Iterable[BaseModel]) -> None:
        """Each model keeps the set of the names that were given; of one kind they are mostly the same."""
        for model in models:
            given = self._given.setdefault(frozenset(model.model_fields_set), model.model_fields_set)
            object.__setattr__(model, "__pydantic_fields_set__", given)

    def _share_names_within(self, parts: Iterable[Any]) -> None:
        for part in parts:
            if type(part) in _PLAIN:
                continue
            if isinstance(part, BaseModel):
                self._share_names([part])
                self._share_names_within(part.__dict__.values())
            elif type(part) is dict:
                self._share_names_within(part.values())
