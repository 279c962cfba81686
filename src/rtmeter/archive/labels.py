"""Labels of rigs, as they are given: ``NAME=VALUE``."""

from __future__ import annotations

import re
from collections.abc import Iterable

from rtmeter.errors import RtmeterError

_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_.-]{0,63}")
_LONGEST = 200


def parse_labels(given: Iterable[str]) -> dict[str, str]:
    """The labels by name. Raises RtmeterError for one that is none, or is given twice."""
    labels: dict[str, str] = {}
    for text in given:
        name, is_one, value = text.partition("=")
        if not is_one or not _NAME.fullmatch(name):
            remedy = "write NAME=VALUE, the name of letters, digits and _.-"
            raise RtmeterError("is no label", field="--label", value=text[:_LONGEST], remedy=remedy)
        if not value or len(value) > _LONGEST:
            message = f"has a value of {len(value):,} characters" if value else "has no value"
            remedy = f"write NAME=VALUE, the value of 1 to {_LONGEST} characters"
            raise RtmeterError(message, field="--label", value=text[:_LONGEST], remedy=remedy)
        if name in labels:
            raise RtmeterError("is given twice", field="--label", value=text, remedy="give it once")
        labels[name] = value
    return labels


def parse_conditions(given: Iterable[str]) -> dict[str, str]:
    """``COLUMN=VALUE`` by column. Raises RtmeterError for one that is none, or a column that is given
    twice."""
    found: dict[str, str] = {}
    for text in given:
        name, is_one, value = text.partition("=")
        if not is_one or not name:
            remedy = "write COLUMN=VALUE, or label:NAME=VALUE"
            raise RtmeterError("is no condition", field="--where", value=text, remedy=remedy)
        if name in found:
            remedy = f"no cell has both {found[name]!r} and another value: give one of them"
            raise RtmeterError("is given twice", field="--where", value=text, remedy=remedy)
        found[name] = value
    return found
