"""tools/demo.sh where something of it cannot be had: it says what, and shows the rest."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

REPOSITORY = Path(__file__).resolve().parent.parent.parent

STUB = """#!/bin/sh
case "$*" in
  *--explain*) {explain} ;;
  "measure "*) exit 0 ;;
  "run "*) echo "$*" >>{said}; cat "$2" >>{said}; mkdir -p results/vm/demo/1 ;;
  "report "*) echo report.html ;;
esac
"""


@pytest.mark.parametrize("traceable", [True, False])
def test_the_demo_explains_where_it_can_and_says_where_it_cannot(tmp_path: Path, traceable: bool) -> None:
    stub, said = tmp_path / "rtmeter", tmp_path / "said"
    refuse = "echo 'explain = yes: needs root' >&2; exit 1"
    stub.write_text(STUB.format(explain="exit 0" if traceable else refuse, said=said))
    stub.chmod(0o755)
    (tmp_path / "campaigns").mkdir()
    campaign = (REPOSITORY / "campaigns/demo.yaml").read_text()
    (tmp_path / "campaigns/demo.yaml").write_text(campaign)
    demo = subprocess.run(
        [REPOSITORY / "tools/demo.sh", stub], cwd=tmp_path, text=True, capture_output=True, timeout=60
    )
    assert demo.returncode == 0, demo.stderr
    command, _, ran = said.read_text().partition("\n")
    assert command.startswith("run ") and "--only" not in command
    assert ("explain = yes: needs root" in demo.stdout) != traceable
    assert (f"{stub} explain results/vm/demo/1\n" in demo.stdout) == traceable
    expected = campaign.replace("defaults:\n", "defaults:\n  explain: true\n", 1) if traceable else campaign
    assert ran == expected
