"""Scalars and lists of options → every combination, and the cell that each one makes."""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass
from functools import cache
from typing import Any

from pydantic import TypeAdapter, ValidationError

from rtmeter.campaign.condition_options import GROUPS
from rtmeter.campaign.options import KNOWN, CellOptions
from rtmeter.campaign.wrong import as_rtmeter_error, unknown_key
from rtmeter.errors import RtmeterError
from rtmeter.model import LOCAL, TARGET, Cell
from rtmeter.values import parse_count, slug

REQUIREMENT = ("deadline", "miss_ratio", "confidence", "criticality", "horizon")
"""The options that `requirement` in a campaign groups."""

_LABELS = ("id", "block", "variant", "repeat", "rig")  # names that `only` knows besides the options
_LENGTH = {"samples", "duration"}  # either says how long to measure
_LEADING = ("measurement", "adapter", "mode")  # these decide which other defaults apply


@dataclass(frozen=True, slots=True)
class Choice:
    """One combination: the options given (the keys of mappings as ``options.KEY``), and what varies."""

    given: dict[str, Any]
    axes: dict[str, Any]

    def options(self) -> dict[str, Any]:
        """The options as CellOptions takes them; None means not given."""
        options: dict[str, Any] = {}
        for name, value in self.given.items():
            group, dot, key = name.partition(".")
            if value is not None:
                into = options.setdefault(group, {}) if dot else options
                into[key if dot else name] = value
        return options


def choices(given: Mapping[str, Any], defaults: Mapping[str, Any]) -> Iterator[Choice]:
    """The product of all lists, earlier keys varying slower.

    ``defaults`` fill in what is not given, where they mean something for the combination.
    """
    leading = {k: defaults[k] for k in _LEADING if k in defaults and k not in given}
    for chosen, axes in _product(leading | dict(given)):
        for filled, more in _product(_where_they_apply(defaults, chosen)):
            yield Choice(filled | chosen, axes | more)


def flat(mapping: Mapping[str, Any]) -> dict[str, Any]:
    """``options: {transport: udp}`` as ``options.transport: udp``, ``requirement: {deadline: 1ms}`` as
    ``deadline: 1ms``; the requirement null takes all of it away."""
    flattened: dict[str, Any] = {}
    for key, value in mapping.items():
        if key == "requirement":
            flattened |= dict.fromkeys(REQUIREMENT) if value is None else value
        elif key == "options" or (key in GROUPS and isinstance(value, Mapping)):
            flattened |= {f"{key}.{k}": v for k, v in (value or {}).items()}
        else:
            flattened[key] = value
    return flattened


def overriding(given: Mapping[str, Any], changes: Mapping[str, Any]) -> dict[str, Any]:
    """Flat options, changed; a mapping given whole (``load: cpu80``) takes the place of its keys, and
    the other way round, and samples that of a duration."""
    whole = {name.partition(".")[0] for name in changes}
    gone = {*changes, *_LENGTH} if _LENGTH & changes.keys() else {*changes}
    kept = {
        name: value
        for name, value in given.items()
        if name not in gone and name.partition(".")[0] not in gone and name not in whole
    }
    return kept | dict(changes)


def cell_from(options: CellOptions, cell_id: str, axes: dict[str, Any]) -> Cell:
    """The cell that the options describe."""
    return Cell(
        id=cell_id,
        adapter=options.adapter,
        server_adapter=options.server_adapter,
        axes=axes,
        config=options.probe_config(),
        requirement=options.requirement,
        server_cpus=options.server_cpus,
        server_options=options.server_options,
        server_receive=options.server_receive,
        server_shared_clock=options.server_shared_clock,
        keep_log=options.keep_log,
        hosts=({} if options.hosts is None else options.hosts.model_dump())
        | ({} if options.on in (None, LOCAL) else {TARGET: str(options.on)}),
        conditions=options.conditions_asked,
    )


def cell_id(options: CellOptions, block: str | None, axes: Mapping[str, Any]) -> str:
    """The block's name, or measurement and adapter, and the values that vary: ``wakeup-posix-fifo-80``."""
    if block is None:
        head, rest = [options.measurement, options.adapter], {"measurement", "adapter"}
    else:
        head, rest = [block], set()
    varying = [_id_part(axis, value) for axis, value in axes.items() if axis not in rest]
    return "-".join(slug(part) for part in [*head, *varying])


def facts(options: CellOptions, **labels: Any) -> dict[str, Any]:
    """What ``only`` expressions go by: the options that apply, and id, block, variant, repeat."""
    applying = {
        name: getattr(options, field)
        for field, info in CellOptions.model_fields.items()
        if (name := info.alias or field) != "options" and CellOptions.applies(name, options.measurement)
    }
    own = {f"options.{key}": value for key, value in options.options.items()}
    for group in GROUPS:
        own |= {f"{group}.{key}": value for key, value in applying.get(group) or ()}
    return applying | own | labels


def parse_fact(name: str, text: str) -> Any:
    """A value in an ``only`` expression, of the kind of the fact of that name. Raises RtmeterError."""
    if name.startswith("options.") or name in ("id", "block", "variant", "rig"):
        return text
    if name == "repeat":
        try:
            return parse_count(text)
        except ValueError as error:
            raise RtmeterError(error.args[0], field=name, value=text, remedy="write it like 1") from None
    if name not in KNOWN or name == "options":
        raise unknown_key("only", name, [*KNOWN, *_LABELS])
    try:
        return _value_parser(name).validate_python(text)
    except ValidationError as error:
        raise as_rtmeter_error(error, KNOWN, name) from None


def alike(name: str, values: Iterable[Any]) -> tuple[Any, Any] | None:
    """Two of an option's values that are one, ``1ms`` and ``1000us``, as they are written; what is no value
    is like no other, and no more is a file, which lies in the campaign's folder."""
    written: dict[str, Any] = {}
    for value in values if name in KNOWN and name not in ("script", "graph") else ():
        with suppress(ValidationError, RtmeterError):
            parsed = repr(_value_parser(name).validate_python(value))
            if parsed in written:
                return written[parsed], value
            written[parsed] = value
    return None


@cache
def _value_parser(name: str) -> TypeAdapter[Any]:
    return TypeAdapter(KNOWN[name].rebuild_annotation())


def _id_part(axis: str, value: Any) -> str:
    """The value alone where it speaks for itself: ``fifo:80``, but ``period-1ms``."""
    if axis == "repeat":
        return f"r{value}"
    if isinstance(value, Mapping):
        return "-".join(_id_part(key, one) for key, one in value.items())
    speaks = isinstance(value, str) and value[:1].isalpha()
    return str(value) if speaks else f"{axis.partition('.')[2] or axis}-{value}"


def _product(given: Mapping[str, Any]) -> Iterator[tuple[dict[str, Any], dict[str, Any]]]:
    axes = [key for key, value in given.items() if isinstance(value, list)]
    for values in itertools.product(*(given[axis] for axis in axes)):
        varying = dict(zip(axes, values, strict=True))
        yield {**given, **varying}, varying


def _where_they_apply(defaults: Mapping[str, Any], chosen: Mapping[str, Any]) -> dict[str, Any]:
    meaningless = {"period", "overrun"} if chosen.get("mode") == "one_shot" else {"timeout"}
    if _LENGTH & chosen.keys():
        meaningless |= _LENGTH
    if chosen.get("adapter") != "null":
        meaningless.add("script")
    if {**defaults, **chosen}.get("deadline") is None:
        meaningless |= {*REQUIREMENT} - {"deadline"}

    both = overriding(defaults, chosen)
    whole = both.get("hosts")  # one of a list of mappings
    component = whole.get("component") if isinstance(whole, Mapping) else both.get("hosts.component")
    if component in (None, LOCAL):
        meaningless |= {"server_conditions", "server_load"}

    def applies(name: str) -> bool:
        group = name.partition(".")[0]
        return group not in meaningless and CellOptions.applies(group, str(chosen.get("measurement")))

    kept = (name for name in overriding(defaults, chosen) if name not in chosen)
    return {name: defaults[name] for name in kept if applies(name)}
