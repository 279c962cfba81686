"""What the record of a cell that cyclictest measured has besides its values, of a file as it writes it."""

from __future__ import annotations

import json
from contextlib import nullcontext
from datetime import UTC, datetime
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from rigs_here import file_of
from rtmeter.campaign.file import read_campaign
from rtmeter.campaign.rigs import read_rigs
from rtmeter.measure import cyclictest as measured
from rtmeter.measure.cyclictest import record
from rtmeter.measure.cyclictest_tool import FILE
from rtmeter.measure.source import Ran
from rtmeter.model import Outcome
from tool_files import cyclictest

CAMPAIGN = """
name: both
defaults: {measurement: wakeup, samples: 9, warm_up: "0"}
cells:
  - adapter: cyclictest
    variants:
      plain: {scheduling: other}
      first: {scheduling: "fifo:80"}
"""


def test_it_is_given_ten_times_as_long_as_planned_and_a_minute(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """By a clock that goes on as it is waited for; it does not end."""
    now, said = [0.0], []

    def wait(limit_s: float) -> None:
        now[0] += limit_s

    tool = SimpleNamespace(exit_code=None, wait=wait, interrupt=lambda: said.append(now[0]))
    monkeypatch.setattr(measured, "here", lambda *_: nullcontext(tool))
    monkeypatch.setattr(measured, "time", SimpleNamespace(monotonic=lambda: now[0]))
    cell: Any = SimpleNamespace(planned_ns=2_000_000_000)
    found = measured.run(cell, tmp_path, lambda: False, lambda: None, [])
    assert found.status == "failed" and found.error is not None
    assert found.error.message == "did not end within 80 s, and was ended"
    assert said == [80.25]


def test_it_keeps_its_factors_and_its_rig(tmp_path: Path) -> None:
    (tmp_path / "c.yaml").write_text(CAMPAIGN)
    rigs = read_rigs(file_of(tmp_path, {"a": "labels: {site: north}"}))
    now = datetime.now(UTC)
    found = []
    for cell in read_campaign(tmp_path / "c.yaml", rigs=rigs).cells:
        folder = tmp_path / cell.id
        folder.mkdir()
        (folder / FILE).write_text(json.dumps(cyclictest()))
        one = record(cell, Outcome("complete"), folder, Ran(now, now))
        assert one.rig is not None and (one.rig.name, one.rig.labels) == ("a", {"site": "north"})
        assert one.factors == cell.factors
        found.append((one.layout["variant"], one.factors["scheduling"]))
    assert found == [("plain", "other"), ("first", "fifo:80")]
