"""A state folder of its own for each test: no journal of another one is pending."""

from __future__ import annotations

from pathlib import Path

import pytest


@pytest.fixture(autouse=True)
def state_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    folder = tmp_path / "state"
    monkeypatch.setenv("RTMETER_STATE_DIR", str(folder))
    monkeypatch.setattr("rtmeter.conditions.undo.PATIENCE_S", 3)
    return folder
