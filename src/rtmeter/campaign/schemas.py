"""The JSON schemas in spec/, from the options' declaration: ``python -m rtmeter.campaign.schemas spec``."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import Field

from rtmeter.campaign.file import BLOCK_KEYS, CAMPAIGN_KEYS
from rtmeter.campaign.matrix import REQUIREMENT
from rtmeter.campaign.options import OPTIONS, CellOptions
from rtmeter.campaign.published_key import Published
from rtmeter.campaign.ranges import SWEPT
from rtmeter.campaign.rigs import NOT_OF_A_RIG, RigsFile

DIALECT = "https://json-schema.org/draft/2020-12/schema"
_Schema = dict[str, Any]
_RANGE: _Schema = {"type": "string", "pattern": r"\.\.|,"}
_SCALAR: _Schema = {"type": ["string", "number", "boolean"]}


class ProbeConfig(CellOptions):
    """The whole probe config: a cell's options and what the front adds when it starts a probe."""

    version: Annotated[Literal[1], Field(description="Version of this format.")]
    log: Annotated[str, Field(description="Path of the sample log to write; must not exist.")]
    role: Annotated[
        Literal["single", "client", "server", "beside"],
        Field(description="Part in a round trip; else single."),
    ] = "single"
    session: Annotated[
        str, Field(description="Unique to the run: topics, sockets and ports derive from it.")
    ] = "rtmeter"
    chain: Annotated[
        dict[str, Any] | None, Field(description="Of a chain, the stages of this process (probe.md).")
    ] = None
    discovery: Annotated[
        dict[str, Any] | None, Field(description="Of a discovery, which participant this is (probe.md).")
    ] = None
    beside: Annotated[
        dict[str, Any] | None, Field(description="What is beside a round trip's ends (probe.md).")
    ] = None
    offered: Annotated[
        tuple[str, ...],
        Field(description="Names of `options` that nobody asked for: they may mean nothing."),
    ] = ()
    watch_stdin: Annotated[bool, Field(description="Stop when standard input closes.")] = False


def probe_config_schema() -> _Schema:
    """What a probe reads (spec/probe.md)."""
    schema = ProbeConfig.model_json_schema(mode="serialization", by_alias=True)
    schema |= {"$schema": DIALECT, "title": "rtmeter probe config, version 1"}
    schema["description"] = "The config of one probe: see probe.md. Times are nanoseconds, sizes bytes."
    schema["properties"]["samples"]["description"] = "Measured releases; required except for a server."
    schema["properties"]["warm_up"]["description"] = "Number of warm-up releases."
    del schema["properties"]["script"]  # an option of the null adapter's
    for field in schema["properties"].values():
        field.pop("examples", None)  # those are of what people write
    return tidy(schema)


def campaign_schema() -> _Schema:
    """What a person writes (spec/campaign.md)."""
    schema = CellOptions.model_json_schema()
    properties = {
        name: _in_place(about, schema.get("$defs", {})) for name, about in schema["properties"].items()
    }
    options = {name: _scalar_or_list(about) for name, about in properties.items() if "options" not in name}
    for name in options.keys() & SWEPT.keys():
        options[name]["anyOf"].append(_RANGE)
    for name in ("options", "server_options"):
        values = {"additionalProperties": _scalar_or_list(_SCALAR) if name == "options" else _SCALAR}
        options[name] = {"type": "object", "description": properties[name]["description"]} | values
    options["requirement"] = {
        "description": "What the cells are judged by: these options in one place.",
        "type": ["object", "null"],
        "properties": {name: {"$ref": f"#/$defs/options/properties/{name}"} for name in REQUIREMENT},
        "additionalProperties": False,
    }
    count: _Schema = {"type": "integer", "minimum": 1, "maximum": 10_000}
    word: _Schema = {"type": ["string", "integer"]}
    some: _Schema = {"$ref": "#/$defs/options", "unevaluatedProperties": False}
    block: _Schema = {
        "name": {"description": "Starts the ids of the block's cells."} | word,
        "repeat": {"description": "How often each cell is measured."} | count,
        "only": {"type": "string", "description": "Keeps the combinations for which it holds."},
        "variants": {
            "type": "object",
            "description": "Named sets of options that vary together: the axis `variant`.",
            "additionalProperties": {"anyOf": [some, {"type": "null"}]},
        },
    }
    top: _Schema = {
        "name": {"description": "Folder of the results (default: the file's name)."} | word,
        "description": {"type": "string", "description": "What it is for, in words."},
        "defaults": {"description": "Options for every cell for which they mean something."} | some,
        "repeat": {"description": "How often each cell is measured."} | count,
        "interleave": {
            "type": "boolean",
            "description": "Measure every cell once before any a second time (default: true).",
        },
        "published": _published(),
        "cells": {
            "type": "array",
            "description": "The blocks, each with a matrix of its own.",
            "minItems": 1,
            "items": {"$ref": "#/$defs/block"},
        },
    }
    assert tuple(block) == BLOCK_KEYS and tuple(top) == CAMPAIGN_KEYS
    return tidy(
        {
            "$schema": DIALECT,
            "title": "rtmeter campaign",
            "description": "A list of blocks; the lists in a block make its matrix: see campaign.md.",
            "type": "object",
            "properties": top,
            "required": ["cells"],
            "additionalProperties": False,
            "$defs": {
                "block": some | {"properties": block},
                "options": {"type": "object", "properties": options},
            },
        }
    )


def _published() -> _Schema:
    """The key ``published``, with every part where it is used."""
    schema = Published.model_json_schema()
    definitions = schema.pop("$defs")

    def whole(value: Any) -> Any:
        if isinstance(value, list):
            return [whole(item) for item in value]
        if not isinstance(value, dict):
            return value
        found = definitions[value["$ref"].rpartition("/")[2]] if "$ref" in value else {}
        return {key: whole(item) for key, item in {**found, **value}.items() if key != "$ref"}

    inlined: _Schema = whole(schema)
    return inlined | {"description": "Published values, and which cells they are to be set beside."}


def _in_place(schema: _Schema, definitions: _Schema) -> _Schema:
    """With every mapping of options where it is used; each of its keys may be a list too."""
    if "$ref" in schema:
        found = definitions[schema["$ref"].rpartition("/")[2]]
        keys = {
            name: _scalar_or_list(_in_place(one, definitions)) for name, one in found["properties"].items()
        }
        return {"type": "object", "properties": keys, "additionalProperties": False}
    if "anyOf" in schema:
        return schema | {"anyOf": [_in_place(choice, definitions) for choice in schema["anyOf"]]}
    return schema


def _scalar_or_list(schema: _Schema) -> _Schema:
    words = {key: schema[key] for key in ("description", "examples") if key in schema}
    bare = {key: value for key, value in schema.items() if key not in (*words, "default")}
    choices = bare["anyOf"] if set(bare) <= {"anyOf", "title"} and "anyOf" in bare else [bare]
    choices = [choice for choice in choices if choice != {"type": "null"}]
    items = choices[0] if len(choices) == 1 else {"anyOf": choices}
    as_list = {"type": "array", "items": items, "minItems": 1}
    return words | {"anyOf": [*choices, as_list, {"type": "null"}]}


_BOUNDS = {"ge": "minimum", "gt": "exclusiveMinimum", "le": "maximum", "lt": "exclusiveMaximum"}


def _bounded(schema: _Schema) -> _Schema:
    """With the bounds of a value that may also be text where it is a number; pydantic leaves them beside."""
    bounds = {_BOUNDS[key]: schema[key] for key in _BOUNDS.keys() & schema.keys()}
    if not bounds or "anyOf" not in schema:
        return schema
    kept = {key: value for key, value in schema.items() if key not in _BOUNDS}
    numbers = ("number", "integer")
    return kept | {"anyOf": [one | bounds if one.get("type") in numbers else one for one in kept["anyOf"]]}


def tidy(schema: _Schema) -> _Schema:
    """Without the titles that pydantic derives from the names, and with its bounds in JSON Schema's words."""

    def untitled(value: Any) -> Any:
        if isinstance(value, list):
            return [untitled(item) for item in value]
        if not isinstance(value, dict):
            return value
        return {
            key: untitled(item)
            for key, item in _bounded(value).items()
            if key != "title" or not isinstance(item, str)
        }

    return {key: untitled(value) for key, value in schema.items()}


def rigs_schema() -> _Schema:
    """What a person writes of many machines (docs/rigs.md)."""
    schema = RigsFile.model_json_schema()
    options = sorted({*OPTIONS} - {*NOT_OF_A_RIG})
    schema["$defs"]["RigGiven"]["properties"]["set"]["propertyNames"] = {"enum": options}
    about = "Machines that a campaign is measured on at once: see docs/rigs.md."
    return tidy(schema | {"$schema": DIALECT, "title": "rtmeter rigs", "description": about})


FILES = {"probe-config.schema.json": probe_config_schema, "campaign.schema.json": campaign_schema}
FILES["rigs.schema.json"] = rigs_schema


def text_of(name: str) -> str:
    """The content of the file of that name in spec/."""
    return json.dumps(FILES[name](), indent=2, ensure_ascii=False) + "\n"


if __name__ == "__main__":
    for file in FILES:
        (Path(sys.argv[1]) / file).write_text(text_of(file), encoding="utf-8")
