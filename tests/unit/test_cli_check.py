"""rtmeter check: its words, its JSON and its exit codes."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest
from planted_machine import CONFIG, TUNED, PlantedMachine, task

from rtmeter import cli
from rtmeter.cli import exit_codes
from rtmeter.machine import KINDS

DOCS = Path(__file__).resolve().parent.parent.parent / "docs"


@pytest.fixture
def machine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> PlantedMachine:
    """The machine that the command looks at."""
    planted = PlantedMachine(tmp_path)
    monkeypatch.setattr("rtmeter.host.root.Root", lambda: planted.root)
    return planted


def test_a_tuned_machine_passes(machine: PlantedMachine, capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.invoke(["check", "--cpus", "1"]) == exit_codes.PASS
    assert "cyclic workload at fifo:80 on CPU 1: 1 info" in capsys.readouterr().out


def test_what_is_medium_passes(machine: PlantedMachine) -> None:
    machine.plant({"/proc/sys/kernel/timer_migration": "1"})
    assert cli.invoke(["check", "--cpus", "1"]) == exit_codes.PASS


def test_what_is_high_fails(machine: PlantedMachine, capsys: pytest.CaptureFixture[str]) -> None:
    machine.plant(task(700, "rogue", "fifo", 99))
    assert cli.invoke(["check", "--cpus", "1"]) == exit_codes.FAIL
    out = capsys.readouterr().out
    assert "high  task_at_or_above" in out
    assert "rogue (700, fifo:99)" in out
    assert "mend: chrt --other --pid 0 700" in out


def test_what_may_be_high_is_inconclusive(
    machine: PlantedMachine, capsys: pytest.CaptureFixture[str]
) -> None:
    machine.plant({CONFIG: None})
    assert cli.invoke(["check", "--cpus", "1"]) == exit_codes.INCONCLUSIVE
    assert "unknown  kernel_config" in capsys.readouterr().out
    machine.plant({CONFIG: TUNED[CONFIG], "/proc/pressure/cpu": None})
    assert cli.invoke(["check", "--cpus", "1"]) == exit_codes.PASS


def test_json_tells_intent_counts_and_findings(
    machine: PlantedMachine, capsys: pytest.CaptureFixture[str]
) -> None:
    machine.plant({"/proc/irq/36/effective_affinity_list": "1"})
    options = ["--cpus", "0-1", "--scheduling", "rr:40", "--workload", "roundtrip"]
    assert cli.invoke(["check", *options, "--json"]) == exit_codes.PASS
    said = json.loads(capsys.readouterr().out)
    assert (said["workload"], said["cpus"], said["scheduling"]) == ("roundtrip", [0, 1], "rr:40")
    found = {finding["id"]: finding for finding in said["findings"]}
    assert {"irq": 36, "name": "eth0", "cpus": "1", "count": 12} in found["irq_on_cpu"]["items"]
    assert sum(said["counts"].values()) == len(found)
    for finding in found.values():
        assert {*finding} == {"id", "grade", "value", "why", "source", "fix", "at_worst", "items"}


def test_a_measured_cell_keeps_the_findings(
    fake_probe: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    out = tmp_path / "cell"
    options = ["--adapter", "fake", "--samples", "97", "--warm-up", "3ms", "--out", str(out)]
    assert cli.invoke(["measure", "wakeup", *options]) == exit_codes.PASS
    assert re.search("^high for punctuality: .*normal_policy", capsys.readouterr().out, re.MULTILINE)
    found = {finding["id"]: finding for finding in json.loads((out / "cell.json").read_text())["findings"]}
    assert found["normal_policy"]["grade"] == "high"
    assert found["no_cpu_chosen"]["grade"] == "info"
    assert found.keys() <= {kind.id for kind in KINDS}


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--cpus", "x"], "--cpus = 'x': is not a list of CPU numbers; write CPU numbers like 1 or 0,2-3"),
        (["--scheduling", "fifo"], "--scheduling = 'fifo': lacks a priority; write fifo:80"),
        (["--workload", "idle"], "--workload = 'idle': is no choice; choose cyclic or roundtrip"),
    ],
)
def test_a_wrong_option_is_an_error(
    options: list[str], message: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert cli.invoke(["check", *options]) == exit_codes.ERROR
    assert message in capsys.readouterr().err


def test_lines_fit_a_terminal_of_80_columns(
    machine: PlantedMachine, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("rtmeter.cli.output._NARROWEST", 80)
    monkeypatch.setenv("COLUMNS", "80")
    machine.plant({name: None for name in TUNED if name.startswith(("/proc/sys", "/sys/fs", "/boot"))})
    cli.invoke(["check", "--cpus", "1"])
    lines = capsys.readouterr().out.splitlines()
    assert len(lines) > 20
    assert max(map(len, lines)) <= 80


def test_every_finding_is_on_its_page() -> None:
    page = (DOCS / "check.md").read_text()
    rows = [line.split("|")[1:3] for line in page.splitlines() if line.startswith("| `")]
    documented = {name.strip(" `"): grade.strip() for names, grade in rows for name in names.split(",")}
    assert documented == {kind.id: kind.grade for kind in KINDS}
