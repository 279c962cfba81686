"""ARM boards behind sshd, emulated by qemu-user: what is measured there, refused, and put back.

`make cross` runs it. What is asserted is that things are there, run, agree with what runs here, and end: how
long anything took on an emulated processor says nothing.
"""

from __future__ import annotations

import json
import shutil
import signal
import tarfile
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest
from board import MACHINES, ROOT, Board

from front import rows_of, running
from rtmeter import cli
from rtmeter.cli import exit_codes
from rtmeter.host.ssh import PROGRAM
from rtmeter.measure.probe import probes
from rtmeter.results import store
from stored import cell_json
from waiting import until

ONE = pytest.mark.parametrize("board", ["armhf"], indirect=True)

pytestmark = pytest.mark.full_only("emulates ARM; make cross runs it")

SCRIPT = """wake_delay_ns,fire_delay_ns,reply_delay_ns,request_delay_ns,respond_delay_ns,fate
1000,1000,250000,2000,3000,
-500,700,4000000,1000,9000000,
3000000,2500000,,500,100,
12,34,56,78,90,duplicate
"""
CELLS = """
name: board
defaults: {period: 1ms, samples: 60, warm_up: 0s, deadline: 2ms, on: %s}
cells:
"""


def ran(folder: Path, text: str, *arguments: str) -> dict[str, dict[str, Any]]:
    """The cells of a campaign, by id."""
    (folder / "campaign.yaml").write_text(text)
    cli.invoke(["run", str(folder / "campaign.yaml"), "--out", str(folder / "out"), *arguments])
    return {path.name: cell_json(path) | {"at": path} for path in store.cell_folders(folder / "out")}


def test_what_the_board_has_is_told(board: Board, url: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.invoke(["adapters", "posix", "--on", url, "--json"]) == exit_codes.PASS
    (posix,) = json.loads(capsys.readouterr().out)["adapters"]
    assert {"wakeup", "cycle"} <= set(posix["measures"])
    cli.invoke(["check", "--on", url, "--json"])
    assert "emulated_processor" in {one["id"] for one in json.loads(capsys.readouterr().out)["findings"]}


def test_the_null_adapter_gives_what_it_gives_here(board: Board, url: str, tmp_path: Path) -> None:
    (tmp_path / "script.csv").write_text(SCRIPT)
    kinds = ("wakeup", "roundtrip", "cycle")
    text = CELLS % f"[local, '{url}']"
    for kind in kinds:
        text += f"  - {{measurement: {kind}, adapter: 'null', script: script.csv}}\n"
    cells = ran(tmp_path, text)
    assert len(cells) == 2 * len(kinds)
    for kind in kinds:
        here, there = sorted(
            (one for name, one in cells.items() if kind in name), key=lambda one: len(one["hosts"])
        )
        assert (here["hosts"], there["hosts"]) == ({}, {"target": url})
        assert there["machine"]["architecture"] == MACHINES[board.arch] != here["machine"]["architecture"]
        one, other = (pq.read_table(cell["at"] / store.SAMPLES) for cell in (here, there))
        assert one.num_rows == 60 and one.equals(other), kind
        for key in ("status", "valid", "summary", "counters", "grid", "adapter", "missing"):
            assert here[key] == there[key], (kind, key)


@ONE
def test_a_32_bit_system_on_a_64_bit_kernel_gets_its_probe(
    board: Board, url: str, capsys: pytest.CaptureFixture[str]
) -> None:
    board.put("/usr/local/bin/uname", b"#!/bin/sh\necho aarch64\n")
    try:
        assert cli.invoke(["adapters", "null", "--on", url, "--json"]) == exit_codes.PASS
    finally:
        board.remove("/usr/local/bin/uname")
    (null,) = json.loads(capsys.readouterr().out)["adapters"]
    assert "wakeup" in null["measures"]


@ONE
def test_posix_measures_there_under_conditions_that_are_put_back(
    board: Board, url: str, tmp_path: Path
) -> None:
    text = CELLS % f"'{url}'"
    text += "  - {measurement: [wakeup, roundtrip, cycle], adapter: posix, scheduling: 'fifo:80', "
    text += "lock_memory: true, conditions: {rt_throttling: off}}\n"
    cells = ran(tmp_path, text)
    assert len(cells) == 3
    for cell in cells.values():
        assert (cell["status"], cell["valid"], cell["error"]) == ("complete", True, None), cell["error"]
        assert cell["summary"]["counts"]["released"] == 60
        assert cell["machine"]["architecture"] == MACHINES[board.arch]
        assert cell["machine"]["virtual_machine"] == "qemu-tcg"
        assert cell["effective"]["scheduling"] == {"policy": "fifo", "priority": 80}
        assert "rt_throttling" in cell["conditions"]["effective"]["settings"]
    assert board.rt_runtime.read_text() == "950000\n"
    assert not any(board.at("/tmp").iterdir()) and not board.at("/var/lib/rtmeter/journal").exists()


@ONE
def test_the_campaign_of_2014_is_measured_there(board: Board, url: str, tmp_path: Path) -> None:
    """Its floor: ROS 1 is not built for ARM."""
    rigs = tmp_path / "rigs.yaml"
    rigs.write_text(
        f"rigs:\n  board:\n    address: {url}\n    set: {{conditions: {{rt_throttling: 'off'}}}}\n"
    )
    text = (ROOT / "campaigns" / "ros1-timer-2014.yaml").read_text()
    only = "timeout == 10ms and load == idle and scheduling == fifo:95 and block in (floor, timer)"
    cells = ran(tmp_path, text, "--rigs", str(rigs), "--scale", "0.00001", "--only", only)
    assert len(cells) == 2
    for name, cell in cells.items():
        if cell["adapter"] == "posix":
            assert (cell["status"], cell["error"]) == ("complete", None)
            assert cell["summary"]["counts"]["fired"] == 20 and cell["effective"]["memory_locked"] is True
        else:
            assert cell["status"] in ("failed", "skipped") and "ros1" in str(cell["error"]), name


@ONE
def test_what_a_killed_front_left_is_put_back(
    board: Board, url: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    asked = ["measure", "wakeup", "--adapter", "posix", "--period", "2ms", "--samples", "100000", "--on", url]
    asked += ["--condition", "rt_throttling=off", "--out", str(tmp_path / "cell")]
    logs = board.at("/tmp")
    with running(*asked) as process:
        until(lambda: any(rows_of(log) > 20 for log in logs.glob(f"*/{store.CLIENT_LOG}")), of=process)
        assert board.rt_runtime.read_text().strip() == "-1"
        process.send_signal(signal.SIGKILL)
        process.wait()
    assert cli.invoke(["restore", "--on", url]) == 0
    assert "sched_rt_runtime_us: put back to '950000'" in capsys.readouterr().out
    assert board.rt_runtime.read_text().strip() == "950000"
    assert not board.at("/var/lib/rtmeter/journal").exists()
    for left in logs.iterdir():
        shutil.rmtree(left)


@ONE
def test_a_bundle_in_the_path_there_is_used_if_it_is_for_that_board(
    board: Board,
    url: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    def told(arch: str) -> dict[str, Any]:
        with monkeypatch.context() as patch:
            assert cli.invoke(["bundle", "--arch", arch, "-o", str(tmp_path / arch)]) == exit_codes.PASS
            with tarfile.open(tmp_path / arch) as tar:
                (probe,) = [tar.extractfile(name) for name in tar.getnames() if name.endswith("-null")]
                board.put("/usr/local/bin/rtmeter-probe-null", probe.read() if probe else b"")
            patch.setattr(probes, "cross_builds", lambda: iter(()))  # none that could be carried
            capsys.readouterr()
            cli.invoke(["adapters", "null", "--on", url, "--json"])
            (null,) = json.loads(capsys.readouterr().out)["adapters"]
        return dict(null)

    wrong = next(name for name in MACHINES if name != board.arch)
    for other in (wrong, "x86_64"):
        message = told(other)["error"]["message"]
        assert "has a /usr/local/bin/rtmeter-probe-null for another architecture (" in message
        assert message.endswith(f"and it is {MACHINES[board.arch]})")
    assert "wakeup" in told(board.arch)["measures"]


def test_a_board_of_busybox_alone_says_what_it_lacks(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    board = Board("armhf", "busybox", tmp_path)
    try:
        board.up()
        monkeypatch.setenv(PROGRAM, str(board.login))
        assert cli.invoke(["adapters", "posix", "--on", "ssh://board", "--json"]) == exit_codes.ERROR
        (posix,) = json.loads(capsys.readouterr().out)["adapters"]
        assert "has another libc: it lacks /lib/ld-linux-armhf.so.3," in posix["error"]["message"]
        asked = ["measure", "wakeup", "--adapter", "posix", "--on", "ssh://board", "--samples", "10"]
        assert cli.invoke([*asked, "--out", str(tmp_path / "cell")]) == exit_codes.ERROR
        assert "lacks the program flock; install util-linux there" in capsys.readouterr().err
    finally:
        board.down()
