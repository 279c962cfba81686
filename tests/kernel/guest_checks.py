"""Run inside the kernel guests (test_kernels.py starts them): what the test machine's kernel cannot show.

One process, so that Python starts once: an emulated processor takes its time.
"""

from __future__ import annotations

import json
import os
import platform
import re
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from rtmeter import cli
from rtmeter.campaign.condition_options import SystemSettings
from rtmeter.cli import exit_codes
from rtmeter.conditions.settings import Settings
from rtmeter.errors import RtmeterError
from rtmeter.host.root import Root
from rtmeter.results import store
from stored import cell_json

OUT = Path("/out")
RT = Path("/sys/kernel/realtime").exists()
Scheduling = tuple[int, int]


def scheduling_of(name: str) -> dict[str, Scheduling]:
    """Policy and priority of the tasks whose name matches."""
    found = {}
    for comm in Path("/proc").glob("[0-9]*/comm"):
        task, pid = comm.read_text().strip(), int(comm.parent.name)
        if re.fullmatch(name, task):
            found[task] = (os.sched_getscheduler(pid), os.sched_getparam(pid).sched_priority)
    return found


@contextmanager
def standing(**asked: Any) -> Iterator[Settings]:
    with Settings(SystemSettings.model_validate(asked), Root()) as settings:
        yield settings
    assert settings.doubts() == []


def findings(capsys: pytest.CaptureFixture[str]) -> dict[str, dict[str, Any]]:
    cli.invoke(["check", "--json"])
    return {finding["id"]: finding for finding in json.loads(capsys.readouterr().out)["findings"]}


def test_the_kernel_is_recognised(capsys: pytest.CaptureFixture[str]) -> None:
    assert platform.release().endswith("-rt-amd64") == RT
    found = findings(capsys)
    assert ("kernel_not_preempt_rt" in found) == (not RT)
    assert "emulated_processor" in found
    assert found["virtual_machine"]["grade"] == "high"
    (OUT / "findings.json").write_text(json.dumps(found))


def test_a_tracer_that_is_on_is_found(capsys: pytest.CaptureFixture[str]) -> None:
    tracer = Path("/sys/kernel/tracing/current_tracer")
    assert "tracer_on" not in findings(capsys)
    tracer.write_text("blk")
    try:
        assert "blk" in findings(capsys)["tracer_on"]["value"]
    finally:
        tracer.write_text("nop")


def test_ksoftirqd_gets_its_priority_and_its_own_back() -> None:
    before = scheduling_of(r"ksoftirqd/\d+")
    assert set(before.values()) == {(os.SCHED_OTHER, 0)}
    with standing(ksoftirqd_priority=60):
        assert set(scheduling_of(r"ksoftirqd/\d+").values()) == {(os.SCHED_FIFO, 60)}
    assert scheduling_of(r"ksoftirqd/\d+") == before


def test_irq_threads_get_their_priority_and_their_own_back() -> None:
    before = scheduling_of(r"irq/\d+-virtio.*")
    if not RT:
        assert before == {}
        with pytest.raises(RtmeterError, match="without threads"), standing(irq_priority={"virtio0": 90}):
            pass
        return
    device = sorted(before)[0].partition("-")[2]
    assert set(before.values()) == {(os.SCHED_FIFO, 50)}
    name = re.match(r"virtio\d+", device)
    assert name is not None
    own = {task for task in before if name[0] in task}
    with standing(irq_priority={name[0]: 90}):
        during = scheduling_of(r"irq/\d+-virtio.*")
    assert {task for task, now in during.items() if now == (os.SCHED_FIFO, 90)} == own
    assert scheduling_of(r"irq/\d+-virtio.*") == before


@pytest.mark.parametrize(
    "words",
    ["prio", "tbf rate 50mbit burst 32kbit latency 50ms", "mqprio num_tc 2 map 0 1 queues 1@0 1@1 hw 0"],
)
def test_qdiscs_are_set_and_taken_away(words: str) -> None:
    def shown() -> str:
        command = ["tc", "qdisc", "show", "dev", "dummy0"]
        return subprocess.run(command, check=True, capture_output=True, text=True).stdout

    subprocess.run(["ip", "link", "add", "dummy0", "numtxqueues", "2", "type", "dummy"], check=True)
    try:
        subprocess.run(["ip", "link", "set", "dummy0", "up"], check=True)
        before = shown()
        with standing(qdisc={"dummy0": words}):
            assert shown().startswith(f"qdisc {words.split()[0]} ")
        assert shown() == before
    finally:
        subprocess.run(["ip", "link", "del", "dummy0"], check=True)


@pytest.mark.parametrize("tool", ["timerlat", "osnoise"])
def test_what_rtla_writes_is_read(tool: str, tmp_path: Path) -> None:
    if tool not in Path("/sys/kernel/tracing/available_tracers").read_text().split():
        assert not RT
        pytest.skip(f"this kernel has no {tool} tracer")
    done = subprocess.run(["rtla", tool, "hist", "-d", "1s"], check=True, capture_output=True, text=True)
    file = OUT / f"rtla-{tool}.txt"
    file.write_text(done.stdout)
    assert cli.invoke(["import", str(file), "--out", str(tmp_path)]) == 0
    cells = [cell_json(folder) for folder in store.cell_folders(tmp_path)]
    counted = [int(n) for n in re.findall(r"^count:\s+(.*)$", done.stdout, re.MULTILINE)[0].split()]
    assert sum(cell["summary"]["counts"]["released"] for cell in cells) == sum(counted) > 0


def test_a_campaign_is_measured() -> None:
    campaign = Path(__file__).parent / "kernels.yaml"
    code = cli.invoke(["run", str(campaign), "--out", str(OUT / "results")])
    assert code == exit_codes.INCONCLUSIVE  # 100 releases are too few to pass
