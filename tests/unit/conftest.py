"""The fake probe, where the front finds it."""

from __future__ import annotations

import json
import shlex
import sys
from pathlib import Path

import pytest
from fake_probe import DESCRIPTION

FAKE = Path(__file__).parent / "fake_probe.py"


@pytest.fixture
def fake_probe(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The only probe that is found: ``rtmeter-probe-fake``."""
    folder = tmp_path / "probes"
    folder.mkdir()
    script = folder / "rtmeter-probe-fake"
    described = shlex.quote(json.dumps(DESCRIPTION))
    lines = [
        "#!/bin/sh",
        f'[ "$1" != --describe ] || {{ echo {described}; exit; }}',  # asked more often than it runs
        f'exec "{sys.executable}" "{FAKE}" "$@"',
    ]
    script.write_text("\n".join(lines) + "\n")
    script.chmod(0o755)
    monkeypatch.setattr("rtmeter.measure.probe.probes.search_path", lambda: iter([folder]))
    monkeypatch.setenv("PYTHONDONTWRITEBYTECODE", "1")
    return script
