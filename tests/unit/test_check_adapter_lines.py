"""What an adapter under test says on its standard output that is no status line."""

from __future__ import annotations

from pathlib import Path

import pytest

from rtmeter.measure.probe.probes import Probe
from rtmeter.selftest.adapter.running import ProbeRun, UnexpectedError


@pytest.mark.parametrize("line", ["hello", "[1]", '{"event": 5}', "[" * 100_000, "{}"])
def test_a_line_that_is_none_is_named(tmp_path: Path, line: str) -> None:
    said = tmp_path / "said"
    said.write_text(f'{{"event": "ready"}}\n{line}\n{{"event": "half')
    script = tmp_path / "rtmeter-probe-fake"
    script.write_text(f"#!/bin/sh\ncat {said}\n")
    script.chmod(0o755)
    run = ProbeRun(Probe("fake", script, {}), tmp_path, {})
    try:
        assert run.end(60) == 0
        with pytest.raises(UnexpectedError, match="is no status line") as raised:
            run.events()
        assert repr(line[:60]) in raised.value.reason
    finally:
        run.close()
