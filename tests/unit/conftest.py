"""The fake probe, where the front finds it."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

FAKE = Path(__file__).parent / "fake_probe.py"


@pytest.fixture
def fake_probe(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The only probe that is found: ``rtmeter-probe-fake``."""
    folder = tmp_path / "probes"
    folder.mkdir()
    script = folder / "rtmeter-probe-fake"
    script.write_text(f'#!/bin/sh\nexec "{sys.executable}" "{FAKE}" "$@"\n')
    script.chmod(0o755)
    monkeypatch.setattr("rtmeter.measure.probes.search_path", lambda: iter([folder]))
    monkeypatch.setenv("PYTHONDONTWRITEBYTECODE", "1")
    return script
