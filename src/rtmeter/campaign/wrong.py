"""How a wrong option is reported: by its name, the value, and what to write instead."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, get_args

from rtmeter.errors import RtmeterError, did_you_mean

if TYPE_CHECKING:
    from pydantic import ValidationError
    from pydantic.fields import FieldInfo


FORMER = {
    "affinity": "cpus",
    "server_affinity": "server_cpus",
    "child_affinity": "child_cpus",
    "irq_affinity": "irq_cpus",
    "class": "criticality",
}
"""What options were called before → their name."""


def unknown_key(field: str, key: str, known: Iterable[str]) -> RtmeterError:
    """The error for a key that is not known, with what was probably meant."""
    names = list(known)
    if (now := FORMER.get(key)) in names:
        return RtmeterError("is not known", field=field, value=key, remedy=f"it is called {now} now")
    if key == "rate" and "period" in names:
        remedy = "give the period instead: that of 500 Hz is 2ms"
        return RtmeterError("is not known", field=field, value=key, remedy=remedy)
    whole, dot, part = key.partition(".")
    if dot and whole in names and not any(name.startswith(f"{whole}.") for name in names):
        return RtmeterError("is not known", field=field, value=key, remedy=f"write {whole}: {{{part}: …}}")
    remedy = did_you_mean(key, names) or f"choose one of {', '.join(names)}"
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
        *groups, key = map(str, first["loc"]) if first["loc"] else [field]
        group = ".".join(groups)
        inside = [name.removeprefix(f"{group}.") for name in known if name.rpartition(".")[0] == group]
        inside = inside or list(_fields_at(known, groups))
        return unknown_key(group or "option", key, inside)
    if kind == "value_error":  # ours: (message, remedy)
        message, remedy = context["error"].args
        return RtmeterError(message, field=field, value=value, remedy=remedy)
    if kind == "literal_error":
        return RtmeterError("is no choice", field=field, value=value, remedy=f"choose {context['expected']}")
    message = first["msg"].removeprefix("Input ").partition(",")[0]
    of = known.get(field) or _fields_at(known, first["loc"][:-1]).get(str((first["loc"] or ("",))[-1]))
    examples = of.examples if of is not None else None
    remedy = f"write it like {examples[0]}" if examples else "correct it"
    return RtmeterError(message, field=field, value=value, remedy=remedy)


def _fields_at(known: Mapping[str, FieldInfo], place: Sequence[object]) -> Mapping[str, FieldInfo]:
    """The fields of the model at a place within others; its parts are names of fields, and keys and indices
    of what these hold. None where there is no model."""
    fields = known
    for part in map(str, place):
        if part in fields:
            fields = _model_fields(fields[part].annotation)
    return fields if place else {}


def _model_fields(kind: Any) -> Mapping[str, FieldInfo]:
    """Of the first model in a type."""
    found: Mapping[str, FieldInfo] | None = getattr(kind, "model_fields", None)
    return found or next(filter(None, map(_model_fields, get_args(kind))), {})


def inapplicable(field: str, value: object, measurement: str, meant_for: Sequence[str]) -> RtmeterError:
    """The error for an option that means nothing for the measurement."""
    return RtmeterError(
        f"means nothing for {measurement}",
        field=field,
        value=value,
        remedy=f"leave it out; it is for {' and '.join(meant_for)}",
    )
