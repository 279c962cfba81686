"""The one error a user sees, and what it says of a word that is not known."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, Self


class RtmeterError(Exception):
    """What was wrong, where, and what to do about it; printed once, without a traceback.

    ``field`` is the option or setting at fault, ``value`` what it was, ``where`` a file (and line).
    """

    def __init__(
        self,
        message: str,
        *,
        field: str | None = None,
        value: object = None,
        remedy: str | None = None,
        where: str | None = None,
    ) -> None:
        super().__init__(message)
        self.message = message
        self.field = field
        self.value = value
        self.remedy = remedy
        self.where = where

    def __str__(self) -> str:
        at = f"{self.where}: " if self.where else ""
        field = f"{self.field}" if self.field else ""
        if field and self.value is not None:
            field += f" = {self.value!r}"
        text = f"{at}{field + ': ' if field else ''}{self.message}"
        return f"{text}; {self.remedy}" if self.remedy else text

    @property
    def about(self) -> dict[str, Any]:
        """All but the message, as the constructor takes it."""
        return {"field": self.field, "value": self.value, "remedy": self.remedy, "where": self.where}

    @classmethod
    def from_json(cls, kept: Mapping[str, Any]) -> Self:
        """The error that a cell.json has stored."""
        return cls(kept["message"], **{key: kept.get(key) for key in ("field", "value", "remedy", "where")})

    def to_json(self) -> dict[str, object]:
        """The error as stored in cell.json and printed by ``--json``."""
        return {
            "field": self.field,
            "value": None if self.value is None else str(self.value),
            "message": self.message,
            "remedy": self.remedy,
            "where": self.where,
        }


def did_you_mean(text: str, known: Iterable[str], most: int = 1) -> str | None:
    """``did you mean posix?``, a remedy that names what is near, at most so many; None if nothing is."""
    import difflib  # not at start: only a mistake needs it

    near = difflib.get_close_matches(text, list(known), n=most)
    return f"did you mean {' or '.join(near)}?" if near else None
