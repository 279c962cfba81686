"""The command line: arguments, exit codes, what is printed where."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from front import ended, running
from rtmeter import cli
from rtmeter.cli import exit_codes
from rtmeter.conditions import Standing
from rtmeter.errors import RtmeterError
from rtmeter.model import Doubt
from rtmeter.results import store
from stored import cell_json, run_json
from synthetic import Made, write_cell, write_failed_cell
from waiting import until

MEASURE = ["measure", "wakeup", "--adapter", "fake", "--samples", "1097", "--warm-up", "3ms"]
CAMPAIGN = """
name: small
description: Does one failure spare the others?
defaults: {measurement: wakeup, adapter: fake, samples: 1097, warm_up: 3ms}
cells:
- {name: good}
- {name: bad, options: {behave: %s}}
- {name: last, deadline: 1s}
"""


@pytest.fixture(autouse=True)
def _in_an_empty_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "here").mkdir()
    monkeypatch.chdir(tmp_path / "here")


@pytest.fixture
def cells() -> Path:
    """``results/`` with a cell that meets 1 ms, one that misses it now and then, and one that failed."""
    root = Path("results")
    write_cell(root / "good", Made(id="good", samples=1000))
    write_cell(
        root / "late", Made(id="late", samples=1000, delays=lambda k: [2_000_000 if k == 150 else 1000])
    )
    error = {"field": "cpus", "value": "9", "message": "CPU 9 does not exist", "remedy": "choose 0-1"}
    write_failed_cell(root / "failed", Made(id="failed"), error)
    return root


WRONG = [
    ("", 1, "Usage: rtmeter", ""),
    ("--help", 0, "Measure every cell of a campaign file", ""),
    ("--version", 0, "", ""),
    ("--verion", 1, "", "No such option: --verion"),
    ("meassure", 1, "", "No such command 'meassure'"),
    ("measure", 1, "", "Missing argument"),
    ("measure --help", 0, "--loss-timeout", ""),
    ("measure wakeup", 1, "", "--adapter: is missing; choose one that `rtmeter adapters` lists"),
    ("measure swim --adapter fake", 1, "", "measurement = 'swim': is no choice"),
    ("measure wakeup --adapter fake --perod 1ms", 1, "", "No such option: --perod"),
    ("measure wakeup --adapter fake --period", 1, "", "--period' requires an argument"),
    ("measure wakeup --affinity 1", 1, "", "--affinity (Possible options: --cpus)"),
    ("measure wakeup --child-affinity 1", 1, "", "--child-affinity (Possible options: --child-cpus)"),
    ("verdict --class hard", 1, "", "--class (Possible options: --criticality)"),
    ("summary --affinity 1", 1, "", "No such option: --affinity; "),
    ("explain --self-test --only syscal", 1, "", "--only = 'syscal': is no plant; did you mean syscall?"),
    (
        "measure wakeup --adapter fake --period 1",
        1,
        "",
        "--period = '1': has no unit; write it with its unit",
    ),
    ("measure wakeup --adapter fake --samples 1 --duration 1s", 1, "", "--samples = 1: contradicts duration"),
    (
        "measure wakeup --adapter fake --loss-timeout 1s",
        1,
        "",
        "--loss-timeout = '1s': means nothing for wakeup",
    ),
    ("measure wakeup --adapter fake --option x", 1, "", "--option = 'x': is no key=value"),
    ("measure wakeup --adapter fake --option a=1 --option a=2", 1, "", "--option a = '2': is given twice"),
    ("measure wakeup --adapter null --script x.csv", 1, "", "--script = 'x.csv': is no file"),
    ("measure wakeup --adapter fkae", 1, "", "--adapter = 'fkae': is not built here; did you mean fake?"),
    (
        "measure wakeup --adapter ros2",
        1,
        "",
        "--adapter = 'ros2': is not built here; ",
    ),
    ("measure cycle --adapter fake", 1, "", "--adapter = 'fake': does not measure cycle; it measures wakeup"),
    ("run", 1, "", "Missing argument"),
    ("run none.yaml", 1, "", "campaign = 'none.yaml': cannot be read"),
    ("run --scale x none.yaml", 1, "", "--scale = 'x': should be a valid number; see `rtmeter run --help`"),
    ("summary none", 1, "", "path = 'none': is not there"),
    ("summary", 0, "late", ""),
    ("plot --kind histogram -o x.svg", 1, "", "cell = 'results/failed': CPU 9 does not exist"),
    ("verdict --deadline 10ms", 1, "failed: error", ""),
    ("export --format csv -o x.csv", 0, "x.csv", ""),
    ("summary results", 0, "late", ""),
    ("summary results", 0, "-   error", ""),
    ("summary results/good", 0, "released = served + skipped: 1000 = 1000 + 0", ""),
    ("summary results/failed", 0, "CPU 9 does not exist", ""),
    ("verdict results/good", 0, "missed the deadline of 1,000 us", ""),
    ("verdict results/good --miss-ratio 0.1", 0, "10 % allowed", ""),
    ("verdict results/good --deadline 1", 1, "", "--deadline = '1': has no unit"),
    (
        "verdict results/good --deadline 1ms --miss-ratio 2",
        1,
        "",
        "--miss-ratio = '2': should be less than 1",
    ),
    ("verdict results/good --deadline 1ms --confidence x", 1, "", "--confidence = 'x'"),
    ("verdict results/good --deadline 1ms", 0, "good: pass", ""),
    ("verdict results/late --deadline 1ms", 2, "late: fail", ""),
    ("verdict results/late --deadline 1ms --miss-ratio 0.5", 0, "late: pass", ""),
    ("verdict results/late --deadline 1ms --miss-ratio 0.002", 3, "late: inconclusive", ""),
    ("verdict results/failed --deadline 1ms", 1, "failed: error", ""),
    ("verdict results --deadline 10ms", 1, "failed: error", ""),
    (
        "export results/good --format xlsx -o x",
        1,
        "",
        "--format = 'xlsx': is no choice; choose csv or parquet or",
    ),
    ("export results/failed --format csv -o x", 1, "", "holds no samples"),
    ("export results/good --format csv -o x.csv", 0, "x.csv", ""),
    ("export results/good --format csv", 1, "", "Missing option '--out'"),
    ("recover none.rtlog", 1, "", "none.rtlog"),
    ("recover results", 1, "", "give a sample log in it"),
    ("recover results/good/cell.json -o x", 1, "", "is no sample log"),
    ("adapters", 0, "iceoryx", ""),
    ("adapters --jsn", 1, "", "No such option: --jsn"),
]


@pytest.mark.usefixtures("cells", "fake_probe")
@pytest.mark.parametrize(("line", "code", "out", "err"), WRONG, ids=[row[0] or "nothing" for row in WRONG])
def test_exit_codes(line: str, code: int, out: str, err: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.invoke(line.split()) == code
    said = capsys.readouterr()
    assert out in said.out
    assert err in said.err
    assert (said.err == "") == (err == "")
    assert "Traceback" not in said.err
    assert said.err.count("rtmeter:") <= 1  # once


@pytest.mark.usefixtures("cells", "fake_probe")
@pytest.mark.parametrize(
    ("line", "code"),
    [
        ("summary results --json", 0),
        ("summary results/good --json", 0),
        ("summary none --json", 1),
        ("verdict results --deadline 1ms --json", 1),
        ("verdict results/late --deadline 1ms --json", 2),
        ("adapters --json", 0),
        ("measure wakeup --adapter fake --json --perod 1", 1),
        ("measure wakeup --adapter fake --samples 1097 --warm-up 3ms --json", 0),
        ("measure wakeup --adapter fake --samples 1097 --option behave=refuse --json", 1),
        ("measure wakeup --adapter fake --samples 1097 --option behave=die --json", 1),
    ],
)
def test_json_is_all_there_is_on_standard_output(
    line: str, code: int, capsys: pytest.CaptureFixture[str]
) -> None:
    assert cli.invoke(line.split()) == code
    assert isinstance(json.loads(capsys.readouterr().out), dict)


def summary(line: str, capsys: pytest.CaptureFixture[str]) -> Any:
    cli.invoke([*line.split(), "--json"])
    return json.loads(capsys.readouterr().out)


def test_the_summary_of_a_cell(cells: Path, capsys: pytest.CaptureFixture[str]) -> None:
    found = summary("summary results/late", capsys)
    assert (found["measurement"], found["adapter"], found["valid"]) == ("wakeup", "posix", True)
    assert found["warnings"] == []
    assert found["counts"] == {"released": 1000, "served": 1000, "skipped": 0, "warm_up": 100}
    latency = found["quantities"]["latency"]
    assert latency["per_release"]["max_ns"] == 2_000_000
    assert latency["per_release"]["max_at_k"] == 150
    assert latency["corrected"] is None
    assert found["verdict"]["outcome"] == "fail"


def test_the_summary_of_a_folder(cells: Path, capsys: pytest.CaptureFixture[str]) -> None:
    found = summary("summary results", capsys)
    assert list(found) == ["cells"]
    assert [cell["id"] for cell in found["cells"]] == ["failed", "good", "late"]
    assert found["cells"][0]["error"]["message"] == "CPU 9 does not exist"
    assert (found["cells"][0]["counts"], found["cells"][0]["quantities"]) == ({}, {})


def test_an_error_is_an_object_too(capsys: pytest.CaptureFixture[str]) -> None:
    found = summary("summary none", capsys)
    assert found["error"]["field"] == "path"
    assert found["error"]["value"] == "none"
    assert found["error"]["remedy"]


@pytest.mark.usefixtures("fake_probe")
class TestMeasure:
    def test_the_exit_code_is_the_verdict(self, capsys: pytest.CaptureFixture[str]) -> None:
        assert cli.invoke([*MEASURE, "--out", "a"]) == exit_codes.PASS
        assert "wakeup-fake: wakeup on fake, every 1ms, complete" in capsys.readouterr().out
        assert cli.invoke([*MEASURE, "--out", "b", "--deadline", "1s"]) == exit_codes.PASS
        assert cli.invoke([*MEASURE, "--out", "c", "--deadline", "1ns"]) == exit_codes.FAIL
        assert cli.invoke([*MEASURE, "--out", "d", "--deadline", "1s", "--miss-ratio", "1e-6"]) == 3
        assert [path.name for path in store.cell_folders(Path())] == ["a", "b", "c", "d"]

    def test_without_out_it_is_stored_under_results(self, capsys: pytest.CaptureFixture[str]) -> None:
        assert cli.invoke(MEASURE) == exit_codes.PASS
        (cell,) = store.cell_folders(Path("results"))
        assert cell.parts[1:3] == (store.machine_name(), "measure")
        assert cell.name == "wakeup-fake"

    def test_what_is_there_is_not_overwritten(self, capsys: pytest.CaptureFixture[str]) -> None:
        assert cli.invoke([*MEASURE, "--out", "a"]) == exit_codes.PASS
        before = (Path("a") / store.CELL).read_bytes()
        assert cli.invoke([*MEASURE, "--out", "a"]) == exit_codes.ERROR
        assert "--out = 'a': holds something already" in capsys.readouterr().err
        assert (Path("a") / store.CELL).read_bytes() == before

    def test_a_refusal_leaves_nothing_and_names_the_option(self, capsys: pytest.CaptureFixture[str]) -> None:
        assert cli.invoke([*MEASURE, "--option", "behave=refuse", "--out", "a"]) == exit_codes.ERROR
        said = capsys.readouterr()
        assert "rtmeter: --cpus = '9': CPU 9 does not exist; choose 0-1\n" in said.err
        assert said.out == ""
        assert list(Path().iterdir()) == []

    def test_a_death_keeps_what_was_measured(self, capsys: pytest.CaptureFixture[str]) -> None:
        assert cli.invoke([*MEASURE, "--option", "behave=die", "--out", "a"]) == exit_codes.ERROR
        assert "rtmeter: a: probe = 'fake': died in mid-run (killed by SIGKILL)" in capsys.readouterr().err
        assert summary("summary a", capsys)["counts"]["released"] == 547

    def test_a_failure_tells_what_is_in_doubt_besides(
        self, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
    ) -> None:
        left = Doubt("setting_not_put_back", "timer_migration is left", "run `rtmeter restore`")
        monkeypatch.setattr(Standing, "doubts", lambda _: [left])
        assert cli.invoke([*MEASURE, "--option", "behave=refuse", "--out", "a"]) == exit_codes.ERROR
        said = capsys.readouterr().err
        warned = "rtmeter: setting_not_put_back: timer_migration is left (run `rtmeter restore`)\n"
        assert warned in said and "CPU 9 does not exist" in said

    def test_an_invalid_result_is_an_error(self, capsys: pytest.CaptureFixture[str]) -> None:
        arguments = [*MEASURE, "--option", "behave=overflow", "--out", "a", "--deadline", "1s"]
        assert cli.invoke(arguments) == exit_codes.ERROR
        said = capsys.readouterr()
        assert "7 rows were lost to a full ring" in said.out

    def test_an_export_of_what_was_measured(self, capsys: pytest.CaptureFixture[str]) -> None:
        assert cli.invoke([*MEASURE, "--out", "a"]) == exit_codes.PASS
        assert cli.invoke(["export", "a", "--format", "csv", "-o", "a.csv"]) == exit_codes.PASS
        lines = Path("a.csv").read_text().splitlines()
        assert lines[0] == "k,release_ns,wake_ns,free_ns,status,warm_up"
        assert len(lines) == 1101

    def test_a_log_that_was_left_alone(self, capsys: pytest.CaptureFixture[str]) -> None:
        assert cli.invoke([*MEASURE, "--option", "behave=die", "--out", "a"]) == exit_codes.ERROR
        assert cli.invoke(["recover", f"a/{store.CLIENT_LOG}", "-o", "b"]) == exit_codes.PASS
        said = capsys.readouterr().out
        assert "missing: releases 550 to the end, unknown" in said
        found = summary("summary b", capsys)
        assert (found["status"], found["valid"]) == ("failed", False)
        assert found["counts"]["released"] == 547
        assert cli.invoke(["export", "b", "--format", "csv", "-o", "b.csv"]) == exit_codes.PASS


@pytest.mark.usefixtures("fake_probe")
class TestRun:
    def write(self, behave: str) -> None:
        Path("small.yaml").write_text(CAMPAIGN % behave)

    def test_a_failed_cell_stays_and_the_others_run(self, capsys: pytest.CaptureFixture[str]) -> None:
        self.write("die")
        assert cli.invoke(["run", "small.yaml", "--out", "r"]) == exit_codes.ERROR
        said = capsys.readouterr()
        cells = store.cell_folders(Path("r"))
        assert [cell.name for cell in cells] == ["good", "bad", "last"]
        assert [cell_json(cell)["status"] for cell in cells] == ["complete", "failed", "complete"]
        assert "bad: failed: probe = 'fake': died in mid-run (killed by SIGKILL); it printed" in said.err
        assert "[3/3] last: complete: pass" in said.err
        run = cells[0].parent
        assert said.out.endswith(
            f"stored in {run}\n  rtmeter verdict {run}\n  rtmeter compare {run} --factor block\n"
            f"  rtmeter report {run}\n"
        ), "what to ask of it next"

    def test_resume_measures_what_is_missing_or_failed(self, capsys: pytest.CaptureFixture[str]) -> None:
        self.write("complete")
        assert cli.invoke(["run", "small.yaml", "--out", "r"]) == exit_codes.PASS
        good, bad, last = store.cell_folders(Path("r"))
        about = run_json(good.parent)
        assert (about["campaign"], about["description"]) == ("small", "Does one failure spare the others?")
        before = (good / store.CELL).stat()
        record = cell_json(bad)
        failed = {"status": "failed", "valid": False, "error": RtmeterError("it broke").to_json()}
        (bad / store.CELL).write_text(json.dumps(record | failed))
        (last / store.CELL).unlink()
        capsys.readouterr()
        assert cli.invoke(["run", "small.yaml", "--out", "r", "--resume"]) == exit_codes.PASS
        said = capsys.readouterr().err
        assert "[1/3] good: done before" in said
        assert "[2/3] bad: starts" in said
        assert "[3/3] last: starts" in said
        assert store.cell_folders(Path("r")) == [good, bad, last]
        assert (good / store.CELL).stat().st_mtime_ns == before.st_mtime_ns
        assert cell_json(bad)["status"] == "complete"

    def test_resume_needs_the_same_campaign(self, capsys: pytest.CaptureFixture[str]) -> None:
        self.write("complete")
        assert cli.invoke(["run", "small.yaml", "--out", "r", "--resume"]) == exit_codes.ERROR
        assert "--resume = 'r': finds no run of small" in capsys.readouterr().err
        assert cli.invoke(["run", "small.yaml", "--out", "r", "--only", "block==good"]) == exit_codes.PASS
        assert cli.invoke(["run", "small.yaml", "--out", "r", "--resume", "--scale", "2"]) == exit_codes.ERROR
        assert "finds a run with another scale" in capsys.readouterr().err
        self.write("die")
        assert cli.invoke(["run", "small.yaml", "--out", "r", "--resume"]) == exit_codes.ERROR
        assert "finds a run with another campaign" in capsys.readouterr().err

    def test_only_then_the_rest(self, capsys: pytest.CaptureFixture[str]) -> None:
        self.write("complete")
        assert cli.invoke(["run", "small.yaml", "--out", "r", "--only", "block==last"]) == exit_codes.PASS
        assert cli.invoke(["run", "small.yaml", "--out", "r", "--resume", "--json"]) == exit_codes.PASS
        found = json.loads(capsys.readouterr().out.partition("\n{")[2].join("{ "))
        assert [cell["id"] for cell in found["cells"]] == ["good", "bad", "last"]
        assert run_json(Path(found["run"]))["cells"] == [
            "last",
            "good",
            "bad",
        ]

    @pytest.mark.parametrize(
        ("adapter", "deadline", "code", "status"),
        [
            ("ros2", "", exit_codes.INCONCLUSIVE, "skipped"),
            ("ros2", ", deadline: 1s", exit_codes.INCONCLUSIVE, "skipped"),
            ("rso2", "", exit_codes.ERROR, "failed"),
        ],
    )
    def test_a_missing_adapter_keeps_no_other_cell_from_being_measured(
        self, adapter: str, deadline: str, code: int, status: str, capsys: pytest.CaptureFixture[str]
    ) -> None:
        cell = f"measurement: wakeup, adapter: [{adapter}, fake], samples: 1097, warm_up: 3ms{deadline}"
        Path("c.yaml").write_text(f"cells: [{{{cell}}}]")
        assert cli.invoke(["run", "c.yaml"]) == code
        records = [cell_json(cell) for cell in store.cell_folders(Path("results"))]
        assert [record["status"] for record in records] == [status, "complete"]
        printed = capsys.readouterr()
        assert f"{status}: adapter = '{adapter}': is not built here; " in printed.err
        assert f"{status}: adapter = '{adapter}': is not built here" in printed.out
        if deadline:
            assert cli.invoke(["verdict", "results"]) == code
            assert "inconclusive: not measured: the adapter ros2 is not built here" in capsys.readouterr().out

    @pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
    def test_a_signal_ends_it_cleanly(self, fake_probe: Path, number: signal.Signals) -> None:
        text = CAMPAIGN.replace("samples: 1097", "samples: 1000000") % "slow"
        Path("small.yaml").write_text(text.replace("{name: good}", "{name: good, samples: 1097}"))
        with running("run", "small.yaml", "--out", "r", RTMETER_PROBE_PATH=str(fake_probe.parent)) as run:
            logs = "*/small/*/bad.partial/*.rtlog"  # looks into no folder that goes meanwhile
            until(lambda: any(log.stat().st_size > 3000 for log in Path("r").glob(logs)), of=run)
            run.send_signal(number)
            done = ended(run)
        assert done.code == exit_codes.ERROR
        assert "stored in" in done.out
        assert "as far as it goes; 1 of 3 cells were not begun; --resume goes on\n" in done.err
        good, bad = store.cell_folders(Path("r"))
        assert cell_json(good)["status"] == "complete"
        record = cell_json(bad)
        assert (record["status"], record["valid"]) == ("interrupted", True)
        assert record["summary"]["counts"]["released"] > 0
        assert not list(Path("r").rglob("*.partial"))


def test_the_worst_of_many() -> None:
    assert exit_codes.worst([]) == 0
    assert exit_codes.worst([0, 3]) == 3
    assert exit_codes.worst([0, 3, 2]) == 2
    assert exit_codes.worst([3, 2, 1, 0]) == 1


def test_output_that_nobody_reads_is_no_error(cells: Path) -> None:
    command = f"{sys.executable} -m rtmeter summary results --json"
    done = subprocess.run(
        ["bash", "-c", f"{command} | true; echo ${{PIPESTATUS[0]}}"],
        capture_output=True,
        text=True,
        check=True,
    )
    assert done.stderr == ""
