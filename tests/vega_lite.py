"""Whether a plot's specification is Vega-Lite, by the schema that comes with altair, whose own check makes
objects of all that is in it and takes three times as long."""

from __future__ import annotations

import json
from functools import cache
from importlib.resources import files
from typing import Any

import jsonschema

SCHEMA = files("altair") / "vegalite" / "v6" / "schema" / "vega-lite-schema.json"


@cache
def _validator() -> jsonschema.Draft7Validator:
    return jsonschema.Draft7Validator(json.loads(SCHEMA.read_text()))


def check_vega_lite(spec: dict[str, Any]) -> None:
    """Raises jsonschema's ValidationError if it is none."""
    _validator().validate(spec)
