"""rtmeter check-adapter, as the tests run it."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from pages import ROOT

from front import ended, running
from leftovers import remove_segments

BUILD = ROOT / "build" / "release"


def check_adapter(
    name: str, *more: str, folder: Path | None = None, inside: Sequence[str] = (), **environment: str
) -> tuple[int, dict[str, Any]]:
    """Exit code and what ``--json`` prints; ``inside``: a command that runs another."""
    path = {} if folder is None else {"RTMETER_PROBE_PATH": str(folder)}
    with running("check-adapter", name, "--json", *more, inside=inside, **path, **environment) as front:
        done = ended(front)
    remove_segments()  # some checks kill a participant
    assert done.out, done.err
    return done.code, json.loads(done.out)


def failures(report: dict[str, Any]) -> dict[str, str]:
    """Name and reason of the checks that failed."""
    return {c["name"]: c["reason"] for c in report["checks"] if c["outcome"] == "fail"}


def assert_kept(code: int, report: dict[str, Any], only: str = "") -> None:
    """The checks that were asked for were made, and none failed."""
    assert failures(report) == {}, failures(report)  # this module is no test: pytest tells nothing
    assert code == 0
    passed = [check["name"] for check in report["checks"] if check["outcome"] == "pass"]
    assert any(check.startswith(only or "echo.") for check in passed)
