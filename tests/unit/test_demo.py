"""tools/demo.sh where something of it cannot be had: it says what, and shows the rest."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

REPOSITORY = Path(__file__).resolve().parent.parent.parent
CAMPAIGN = (REPOSITORY / "campaigns/demo.yaml").read_text()

STUB = """#!/bin/sh
case "$*" in
  *--explain*) {explain} ;;
  "measure "*) exit 0 ;;
  "run "*) echo "$*" >>{said}; cat "$2" >>{said}; mkdir -p results/vm/demo/1 ;;
  "report "*) echo report.html ;;
esac
"""


def demo(folder: Path, stub: str) -> subprocess.CompletedProcess[str]:
    """The demo in a folder with the campaign, by this ``rtmeter``."""
    (folder / "rtmeter").write_text(stub)
    (folder / "rtmeter").chmod(0o755)
    (folder / "campaigns").mkdir()
    (folder / "campaigns/demo.yaml").write_text(CAMPAIGN)
    command = [REPOSITORY / "tools/demo.sh", folder / "rtmeter"]
    return subprocess.run(command, cwd=folder, text=True, capture_output=True, timeout=60, check=False)


@pytest.mark.parametrize("earlier", [True, False])
def test_where_it_did_not_begin_no_earlier_report_is_shown(tmp_path: Path, earlier: bool) -> None:
    """As where another measurement holds the machine; rtmeter says so itself."""
    if earlier:
        (tmp_path / "results/vm/demo/0").mkdir(parents=True)
    refused = 'case "$1" in run) echo "error: another measurement runs" >&2; exit 1 ;; esac'
    done = demo(tmp_path, f"#!/bin/sh\n{refused}\n")
    assert (done.returncode, done.stdout, done.stderr) == (1, "", "error: another measurement runs\n")


@pytest.mark.parametrize("traceable", [True, False])
def test_the_demo_explains_where_it_can_and_says_where_it_cannot(tmp_path: Path, traceable: bool) -> None:
    said = tmp_path / "said"
    (tmp_path / "results/vm/demo/0").mkdir(parents=True)
    refuse = "echo 'explain = yes: needs root' >&2; exit 1"
    done = demo(tmp_path, STUB.format(explain="exit 0" if traceable else refuse, said=said))
    assert done.returncode == 0, done.stderr
    command, _, ran = said.read_text().partition("\n")
    assert command.startswith("run ") and "--only" not in command
    assert ("explain = yes: needs root" in done.stdout) != traceable
    assert (f"{tmp_path}/rtmeter explain results/vm/demo/1\n" in done.stdout) == traceable
    expected = CAMPAIGN.replace("defaults:\n", "defaults:\n  explain: true\n", 1) if traceable else CAMPAIGN
    assert ran == expected
