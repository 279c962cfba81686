"""The options of a cell as command-line options, made from their one declaration."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Collection, Iterator, Mapping
from typing import Annotated, Any, Literal, get_args, get_origin

import typer
from pydantic.fields import FieldInfo

from rtmeter.campaign.condition_options import GROUPS
from rtmeter.campaign.explain_option import EXPLAIN_WITH
from rtmeter.campaign.options import OPTIONS, CellOptions
from rtmeter.campaign.strain_options import PRESETS
from rtmeter.campaign.wrong import unknown_key
from rtmeter.cli.choices import Complete, adapters, completing
from rtmeter.errors import RtmeterError

_PAIRS = {"options": "--option", "server_options": "--server-option", "conditions": "--condition"}
_PAIRS |= {"hosts": "--host", "server_conditions": "--server-condition"}
_WITH = {"explain": "explain_with"}
"""Options of which the flag by itself is enough, and a second one says how."""


def flag(name: str) -> str:
    """The command-line option of a field: ``loss_timeout`` → ``--loss-timeout``, ``load.cpu`` →
    ``--load cpu``."""
    head, _, key = name.partition(".")
    head = _WITH.get(head, head) if key else head
    if head == "measurement":
        return name
    return f"{_PAIRS.get(head) or '--' + head.replace('_', '-')} {key}".rstrip()


def with_cell_options(
    function: Callable[..., int], names: Collection[str] | None = None
) -> Callable[..., int]:
    """Gives a command every option of a cell, or those of ``names``: its ``**given`` takes them; its own are
    keyword-only."""
    own = inspect.signature(function, eval_str=True).parameters.values()
    declared = CellOptions.model_fields.items()
    wanted = [(name, info) for name, info in declared if names is None or name in names]
    fields = [parameter for name, info in wanted for parameter in _parameters(name, info)]
    function.__signature__ = inspect.Signature([*fields, *(p for p in own if p.kind == p.KEYWORD_ONLY)])  # type: ignore[attr-defined]
    return function


def optional_measurement(default: str) -> Callable[[Callable[..., int]], Callable[..., int]]:
    """Gives the measurement of a command with_cell_options a default."""

    def change(function: Callable[..., int]) -> Callable[..., int]:
        parameters = inspect.signature(function).parameters.values()
        changed = [p.replace(default=default) if p.name == "measurement" else p for p in parameters]
        function.__signature__ = inspect.Signature(changed)  # type: ignore[attr-defined]
        return function

    return change


def collect(given: Mapping[str, Any]) -> dict[str, Any]:
    """What was given on the command line, as CellOptions takes it."""
    fields = CellOptions.model_fields
    given = dict(given)
    for name, how in _WITH.items():
        if (said := given.pop(how, None)) is not None:
            given[name] = said
    collected = {
        fields[name].alias or name: value for name, value in given.items() if value not in (None, False, [])
    }
    for name in _PAIRS:
        if name in collected:
            collected[name] = _pairs(_PAIRS[name], collected[name])
    for name in {"conditions", "server_conditions"} & collected.keys():
        collected[name] = _nested(collected[name])
    return collected


def component(hosts: list[str] | None) -> str | None:
    """The host of ``--host component=ssh://user@host``."""
    pairs = _pairs("--host", hosts or [])
    for key in pairs.keys() - {"component"}:
        raise unknown_key("--host", key, ["component"])
    return pairs.get("component")


def as_flag(error: RtmeterError, rate: str | None = None) -> RtmeterError:
    """The error with its field as the command-line option that it is; ``rate``: what gave the period."""
    if error.field == "period" and rate is not None:
        error.message = f"the period {error.value} {error.message}"
        error.field, error.value = "--rate", rate
    elif error.field is not None and error.field.partition(".")[0] in OPTIONS:
        error.field = flag(error.field)
    elif error.field is not None and error.field.startswith("option "):  # an adapter's own
        error.field = f"--{error.field}"
    return error


def _pairs(option: str, texts: list[str]) -> dict[str, str]:
    pairs: dict[str, str] = {}
    for text in texts:
        key, equals, value = text.partition("=")
        if not key or not equals:
            raise RtmeterError("is no key=value", field=option, value=text, remedy="write e.g. transport=udp")
        if key in pairs:
            raise RtmeterError("is given twice", field=f"{option} {key}", value=value, remedy="give it once")
        pairs[key] = value
    return pairs


def _nested(pairs: Mapping[str, str]) -> dict[str, Any]:
    """``irq_cpus.eth0=1`` as a mapping in a mapping; a device's name may have dots of its own."""
    nested: dict[str, Any] = {}
    for key, value in pairs.items():
        head, dot, device = key.partition(".")
        if dot and isinstance(nested.setdefault(head, {}), dict):
            nested[head][device] = value
        else:
            nested[head] = value
    return nested


def _parameters(name: str, info: FieldInfo) -> Iterator[inspect.Parameter]:
    if name not in _WITH:
        yield _parameter(name, info)
        return
    switch = typer.Option(flag(name), help=info.description, show_default=False)
    kind: Any = Annotated[bool, switch]
    yield inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY, default=False, annotation=kind)
    how, about = _WITH[name], EXPLAIN_WITH
    said = typer.Option(flag(how), help=about.description, metavar=_metavar(about), show_default=False)
    kind = Annotated[str | None, said]
    yield inspect.Parameter(how, inspect.Parameter.KEYWORD_ONLY, default=None, annotation=kind)


def _parameter(name: str, info: FieldInfo) -> inspect.Parameter:
    if name == "measurement":
        completion = _completion(name, info)
        argument = typer.Argument(help=info.description, metavar=_metavar(info), autocompletion=completion)
        kind: Any = Annotated[str, argument]
        return inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY, annotation=kind)
    option = info.alias or name
    meant_for = CellOptions.meant_for(option)
    settings: dict[str, Any] = {"help": info.description, "show_default": False}
    if meant_for:
        settings["rich_help_panel"] = f"Only for {', '.join(meant_for)}"
    if info.annotation is bool:
        kind, default = Annotated[bool, typer.Option(flag(option), **settings)], False
    elif name in _PAIRS:
        keys = completing([f"{key}=" for key in GROUPS[name].model_fields]) if name in GROUPS else None
        pairs = typer.Option(_PAIRS[name], metavar="KEY=VALUE", autocompletion=keys, **settings)
        kind, default = Annotated[list[str] | None, pairs], None
    else:
        settings |= {"metavar": _metavar(info), "autocompletion": _completion(name, info)}
        kind = Annotated[str | None, typer.Option(flag(option), **settings)]
        default = None
    return inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY, default=default, annotation=kind)


def _choices(info: FieldInfo) -> tuple[str, ...]:
    """Of a fixed set of values all, else none."""
    kinds = (info.annotation, *get_args(info.annotation))
    return next((get_args(kind) for kind in kinds if get_origin(kind) is Literal), ())


def _completion(name: str, info: FieldInfo) -> Complete | None:
    """What the shell is told of the option's values; None: nothing."""
    if name in ("adapter", "server_adapter"):
        return completing(adapters)
    if name in ("load", "server_load"):
        return completing(PRESETS)
    if name in ("scheduling", "child_threads"):
        return completing(("other", "fifo:", "rr:", "deadline:")[: 4 if name == "scheduling" else 3])
    return completing(_choices(info)) if _choices(info) else None


def _metavar(info: FieldInfo) -> str:
    """The choices, else the first example."""
    if choices := _choices(info):
        return "|".join(choices)
    return str(info.examples[0]) if info.examples else "NAME"
