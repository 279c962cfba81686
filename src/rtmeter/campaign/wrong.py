"""How a wrong option is reported: by its name, the value, and what to write instead."""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING

from rtmeter.errors import RtmeterError

if TYPE_CHECKING:
    from pydantic import ValidationError
    from pydantic.fields import FieldInfo


def unknown_key(field: str, key: str, known: Iterable[str]) -> RtmeterError:
    """The error for a key that is not known, with what was probably meant."""
    near = difflib.get_close_matches(key, list(known), n=1)
    remedy = f"did you mean {near[0]}?" if near else f"choose one of {', '.join(known)}"
    return RtmeterError("is not known", field=field, value=key, remedy=remedy)


def as_rtmeter_error(
    error: ValidationError, known: Mapping[str, FieldInfo], field: str | None = None
) -> RtmeterError:
    """The first thing pydantic found wrong, in our words.

    ``known`` are the fields there are; ``field`` the one at fault if pydantic does not say it.
    """
    first = error.errors()[0]
    field = field or ".".join(str(part) for part in first["loc"])
    kind, value, context = first["type"], first["input"], first.get("ctx", {})
    if kind == "missing":
        remedies = {"adapter": "choose one that `rtmeter adapters` lists"}
        return RtmeterError("is missing", field=field, remedy=remedies.get(field, f"give {field}"))
    if kind == "extra_forbidden":
        group, dot, key = field.rpartition(".")
        near = [name.removeprefix(group + dot) for name in known if name.rpartition(".")[0] == group]
        return unknown_key(group or "option", key, near)
    if kind == "value_error":  # ours: (message, remedy)
        message, remedy = context["error"].args
        return RtmeterError(message, field=field, value=value, remedy=remedy)
    if kind == "literal_error":
        return RtmeterError("is no choice", field=field, value=value, remedy=f"choose {context['expected']}")
    message = first["msg"].removeprefix("Input ").partition(",")[0]
    examples = known[field].examples if field in known else None
    remedy = f"write it like {examples[0]}" if examples else "correct it"
    return RtmeterError(message, field=field, value=value, remedy=remedy)


def inapplicable(field: str, value: object, measurement: str, meant_for: Sequence[str]) -> RtmeterError:
    """The error for an option that means nothing for the measurement."""
    return RtmeterError(
        f"means nothing for {measurement}",
        field=field,
        value=value,
        remedy=f"leave it out; it is for {' and '.join(meant_for)}",
    )
