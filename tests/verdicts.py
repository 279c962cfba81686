"""What `rtmeter verdict` says, as text and as JSON."""

from __future__ import annotations

import json
from typing import Any

import pytest

from rtmeter import cli

Captured = pytest.CaptureFixture[str]


def verdict(line: str, capsys: Captured) -> tuple[int, str]:
    code = cli.invoke(["verdict", *line.split()])
    said = capsys.readouterr()
    return code, said.out + said.err


def as_json(line: str, capsys: Captured) -> Any:
    cli.invoke(["verdict", *line.split(), "--json"])
    return json.loads(capsys.readouterr().out)
