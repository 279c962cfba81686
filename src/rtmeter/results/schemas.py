"""The JSON schemas of results in spec/, from the record: ``python -m rtmeter.results.schemas spec``."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

from rtmeter.campaign.schemas import DIALECT, tidy
from rtmeter.results.record import CellRecord, RunRecord

_MODELS: dict[str, tuple[type[CellRecord] | type[RunRecord], str]] = {
    "cell.schema.json": (CellRecord, "rtmeter cell, version 2"),
    "run.schema.json": (RunRecord, "rtmeter run, version 2"),
}
FILES = tuple(_MODELS)


def schema_of(name: str) -> dict[str, Any]:
    """What the file is of: cell.json or run.json as they are written (spec/results.md)."""
    model, title = _MODELS[name]
    schema = model.model_json_schema()
    needed = {"format", "version", *schema["required"]}  # a record has the first two by itself
    schema["required"] = [name for name in schema["properties"] if name in needed]
    schema |= {"$schema": DIALECT, "title": title, "description": f"{title}: see results.md."}
    return tidy(schema)


def text_of(name: str) -> str:
    """The content of the file of that name in spec/."""
    return json.dumps(schema_of(name), indent=2, ensure_ascii=False) + "\n"


if __name__ == "__main__":
    for file in FILES:
        (Path(sys.argv[1]) / file).write_text(text_of(file), encoding="utf-8")
