"""The published tables that rtmeter ships: CSV files, each with its source in comments above the header."""

from __future__ import annotations

import csv
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from importlib.resources import files

from rtmeter.errors import RtmeterError, did_you_mean

_SOURCE = "Source: "


@dataclass(frozen=True, slots=True)
class PublishedTable:
    """What was published: ``about`` it, its ``source``, and its rows, column → text as it was printed.

    Columns that end in ``_us``, ``_ms`` and ``_s`` are times of that unit.
    """

    name: str
    about: str
    source: str
    columns: tuple[str, ...]
    rows: tuple[Mapping[str, str], ...]


def names() -> list[str]:
    """The tables there are."""
    found = (file.name for file in files("rtmeter.campaign.published").joinpath("data").iterdir())
    return sorted(name.removesuffix(".csv") for name in found if name.endswith(".csv"))


@cache
def table(name: str) -> PublishedTable:
    """The table of that name. Raises RtmeterError if there is none."""
    if name not in names():
        remedy = did_you_mean(name, names()) or f"choose one of {', '.join(names())}"
        raise RtmeterError("is no published table", field="published.table", value=name, remedy=remedy)
    text = files("rtmeter.campaign.published").joinpath("data", f"{name}.csv").read_text(encoding="utf-8")
    comments = [line[1:].strip() for line in text.splitlines() if line.startswith("#")]
    rows = list(csv.DictReader(line for line in text.splitlines() if not line.startswith("#")))
    source = next(line.removeprefix(_SOURCE) for line in comments if line.startswith(_SOURCE))
    about = " ".join(line for line in comments if not line.startswith(_SOURCE))
    return PublishedTable(name, about, source, tuple(rows[0]), tuple(rows))
