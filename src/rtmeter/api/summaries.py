"""A cell's counts and quantiles as they are told to programs."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from rtmeter.results.record import CellRecord


def cell_summary(record: CellRecord, path: Path) -> dict[str, Any]:
    """A cell as ``rtmeter summary --json`` prints it, and ``Results.summary()`` returns it."""
    keys = ("id", "measurement", "mode", "adapter", "status", "valid", "warnings", "error", "axes")
    fields = record.model_dump(mode="json", include={*keys, "verdict", "summary"})
    summary = fields["summary"] or {"counts": {}, "identity": None, "quantities": {}}
    return {key: fields[key] for key in keys} | {"path": str(path), "verdict": fields["verdict"]} | summary
