"""``rtmeter compare LINE`` in this process, and what it prints."""

from __future__ import annotations

import json
from typing import Any

import pytest

from rtmeter import cli

Captured = pytest.CaptureFixture[str]
DIED = {"message": "the probe died", "field": None, "value": None, "remedy": None}


def compare(line: str, capsys: Captured) -> tuple[int, str]:
    code = cli.invoke(["compare", *line.split()])
    said = capsys.readouterr()
    return code, said.out + said.err


def as_json(line: str, capsys: Captured) -> Any:
    cli.invoke(["compare", *line.split(), "--json"])
    return json.loads(capsys.readouterr().out, parse_constant=pytest.fail)
