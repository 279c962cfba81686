"""A file of rigs (spec/rigs.schema.json) → the machines that a campaign is measured on, all at once."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Annotated, Any

from pydantic import AfterValidator, BaseModel, Field, ValidationError

from rtmeter.campaign import yaml_lines
from rtmeter.campaign.matrix import flat
from rtmeter.campaign.option_types import STRICT, DurationOrZero
from rtmeter.campaign.options import OPTIONS
from rtmeter.campaign.wrong import as_rtmeter_error, unknown_key
from rtmeter.errors import RtmeterError
from rtmeter.host import ssh
from rtmeter.model import Rig
from rtmeter.values import slug

_PATIENCE_NS = 120_000_000_000
_NAME = r"^[A-Za-z0-9_][A-Za-z0-9_.-]{0,63}$"
_LABEL = r"^[A-Za-z_][A-Za-z0-9_.-]{0,63}$"
NOT_OF_A_RIG = ("measurement", "adapter", "mode", "on", "hosts", "script", "graph", "requirement")
"""Options that a rig cannot set: they say what is measured, or where."""


def _address(text: str) -> str:
    try:
        return ssh.parse_target(text)
    except ValueError as error:
        remedy = "write ssh://user@host, with :port if it is not 22; this machine is no rig"
        raise ValueError(error.args[0], remedy) from None


class RigGiven(BaseModel):
    """A rig, as a person writes it."""

    model_config = STRICT

    address: Annotated[
        str,
        AfterValidator(_address),
        Field(description="Where sshd answers.", examples=["ssh://root@192.168.0.2"]),
    ]
    labels: Annotated[
        dict[Annotated[str, Field(pattern=_LABEL)], Annotated[str, Field(min_length=1, max_length=200)]],
        Field(description="Names by which results are grouped; they are stored with each cell."),
    ] = Field(default_factory=dict)
    set: Annotated[
        dict[str, Any],
        Field(description="Options of a campaign that this rig has in place of the campaign's."),
    ] = Field(default_factory=dict)
    place: Annotated[
        str | None,
        Field(
            description="The place of labgrid that it is: acquired before, and released after.",
            examples=["imx8-3"],
            pattern=_NAME,
        ),
    ] = None
    patience: Annotated[
        DurationOrZero | None,
        Field(
            description="How long it may not answer before its cells fail (default 2min).", examples=["2min"]
        ),
    ] = None


class RigsFile(BaseModel):
    """The whole file."""

    model_config = STRICT

    rigs: Annotated[
        dict[Annotated[str, Field(pattern=_NAME)], RigGiven],
        Field(description="Name → rig. The name ends the ids of its cells.", min_length=1),
    ]


def read_rigs(path: Path) -> tuple[Rig, ...]:
    """The rigs of the file, in its order. Raises RtmeterError naming file, line, field, value and remedy."""
    document = yaml_lines.read(path, "rigs")
    try:
        given = RigsFile.model_validate(document.data)
    except ValidationError as error:
        raise _at(document, error) from None
    found: dict[str, Rig] = {}
    for name, one in given.rigs.items():
        _check_set(document, name, one.set)
        patience_ns = _PATIENCE_NS if one.patience is None else one.patience
        rig = Rig(name, one.address, one.labels, flat(one.set), one.place, patience_ns)
        if (other := found.setdefault(slug(name), rig)) is not rig:
            message, remedy = f"makes the same ids as {other.name}", "give the two different names"
            where = document.where("rigs", name)
            raise RtmeterError(message, field="rigs", value=name, remedy=remedy, where=where)
    _check_apart(document, tuple(found.values()))
    return tuple(found.values())


def _at(document: yaml_lines.Document, error: ValidationError) -> RtmeterError:
    """What is wrong, with its line."""
    found = error.errors()
    first = next((one for one in found if one["type"] == "extra_forbidden"), found[0])  # a slip of the pen
    keys = tuple(key for key in first["loc"] if key != "[key]")
    field, above = ".".join(map(str, keys)) or "rigs", ".".join(map(str, keys[:-1])) or "rigs"
    if first["type"] in ("dict_type", "model_type"):
        message, remedy = "is no mapping of keys to values", "see docs/rigs.md"
        made = RtmeterError(message, field=field, value=first["input"], remedy=remedy)
    elif first["type"] == "string_pattern_mismatch":
        message, remedy = "is no name", "write letters, digits, and _ . - after the first"
        named = above if first["loc"][-1] == "[key]" else field
        made = RtmeterError(message, field=named, value=first["input"], remedy=remedy)
    elif first["type"] == "extra_forbidden":
        known = RigGiven.model_fields if len(keys) > 1 else RigsFile.model_fields
        made = unknown_key(above, str(keys[-1]), known)
    else:
        about = {f"{above}.{name}": info for name, info in RigGiven.model_fields.items()}
        made = as_rtmeter_error(error, about, field)
    made.where = document.where(*keys)
    return made


def _check_set(document: yaml_lines.Document, name: str, given: dict[str, Any]) -> None:
    for key in given:
        where = document.where("rigs", name, "set", key)
        if key in NOT_OF_A_RIG:
            message, remedy = "is not a rig's to set", "say it in the campaign"
            raise RtmeterError(message, field=f"rigs.{name}.set", value=key, remedy=remedy, where=where)
        if key not in OPTIONS:
            error = unknown_key(f"rigs.{name}.set", key, [o for o in OPTIONS if o not in NOT_OF_A_RIG])
            error.where = where
            raise error
        if not isinstance(given[key], Mapping) and key in ("options", "server_options"):
            message, remedy = "is no mapping of keys to values", f"write e.g. {key}: {{transport: udp}}"
            field = f"rigs.{name}.set.{key}"
            raise RtmeterError(message, field=field, value=given[key], remedy=remedy, where=where)
    for keys, value in _lists((), given):
        where = document.where("rigs", name, "set", *keys)
        message, remedy = "is a list: a rig has one value", "give one, or let the campaign have the list"
        field = ".".join(("rigs", name, "set", *keys))
        raise RtmeterError(message, field=field, value=value, remedy=remedy, where=where)


def _lists(keys: tuple[str, ...], given: Any) -> Iterator[tuple[tuple[str, ...], list[Any]]]:
    """Every list in it, and where it is."""
    if isinstance(given, list):
        yield keys, given
    elif isinstance(given, Mapping):
        for key, value in given.items():
            yield from _lists((*keys, str(key)), value)


def _check_apart(document: yaml_lines.Document, rigs: tuple[Rig, ...]) -> None:
    """Two names for one address would wait for each other's lock, and fail."""
    for key in ("address", "place"):
        seen: dict[str, str] = {}
        for rig in rigs:
            value = getattr(rig, key)
            if value is not None and seen.setdefault(value, rig.name) != rig.name:
                message, remedy = f"is also that of {seen[value]}", "name each rig once"
                where = document.where("rigs", rig.name, key)
                field = f"rigs.{rig.name}.{key}"
                raise RtmeterError(message, field=field, value=value, remedy=remedy, where=where)
