"""kill -9 at random moments: what is older than a second is readable, the cell says so, the run goes on."""

from __future__ import annotations

import os
import random
import signal
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest

from front import ended, probes_of, rows_of, running
from rtmeter.campaign.matrix import cell_from
from rtmeter.campaign.rules import settle
from rtmeter.measure import cell as runner
from rtmeter.measure.probe.supervise import Stop
from rtmeter.results import store
from stored import cell_json, json_of
from waiting import until

S = 1_000_000_000
LINES = 3
"""Of what a probe says, a quarter of a second of its own apart."""
CAMPAIGN = """
name: killed
defaults: {measurement: wakeup, adapter: posix, warm_up: 0s}
cells:
- {name: short, samples: 50}
- {name: long, duration: 12s}
"""


def test_the_probe_is_killed_at_random_moments(tmp_path: Path, sized: Callable[..., int]) -> None:
    """What the probe had said a second before its death, of its own too, that it had recorded must be
    readable."""
    rng = random.Random(20261121)
    written = owed_in_all = 0
    for number in range(sized("kills", reduced=4, full=100)):
        path = tmp_path / f"cell-{number}"
        # At 1 kHz frames are not full within the test: what is on the disk then is there by time alone.
        period, first_s = (("1ms", 1.5), ("100us", 0.2))[number % 2]
        record, said, killed_ns = measure_until_killed(path, rng.uniform(first_s, 3), period)
        written += record["missing"][0][0]
        assert (record["status"], record["valid"]) == ("failed", False)
        assert "killed by SIGKILL" in record["error"]["message"]
        (missing,) = record["missing"]
        own = said[:-LINES]  # it may have stood still since
        owed = max((rows for at_ns, rows in own if at_ns < killed_ns - S), default=0)
        owed_in_all += owed
        assert missing[1] is None
        assert missing[0] >= owed
        if record["summary"]:
            rows = pq.read_metadata(path / store.SAMPLES).num_rows
            assert rows == missing[0] == record["summary"]["counts"]["released"]
        assert rows_of(path / store.CLIENT_LOG) == missing[0]
    assert written >= owed_in_all > 0


def measure_until_killed(
    path: Path, kill_after_s: float, period: str
) -> tuple[dict[str, Any], list[tuple[int, int]], int]:
    """The cell's record, what the probe said when (time, rows), and when it was killed."""
    given = {"measurement": "wakeup", "adapter": "posix", "duration": "10min", "warm_up": "0s"}
    cell = cell_from(settle(given | {"period": period}), path.name, {})
    said: list[tuple[int, int]] = []
    killed_ns: list[int] = []

    def kill() -> None:
        (probe,) = probes_of(os.getpid())
        killed_ns.append(time.monotonic_ns())
        os.kill(probe, signal.SIGKILL)

    def hear(event: dict[str, Any]) -> None:
        if not said:
            threading.Timer(kill_after_s, kill).start()
        said.append((time.monotonic_ns(), event["released"]))

    record = json_of(runner.run_cell(cell, path, Stop(), hear))
    return record, said, killed_ns[0]


LOGS = "results/*/killed/*/long.partial/*.rtlog"
"""Of the second cell; looks into no folder that goes meanwhile, as that of the first does."""


def test_resume_goes_on_after_a_probe_was_killed(tmp_path: Path) -> None:
    (tmp_path / "killed.yaml").write_text(CAMPAIGN)
    command = ["run", tmp_path / "killed.yaml", "--out", tmp_path / "results"]
    with running(*command) as front:
        until(lambda: any(rows_of(log) > 100 for log in tmp_path.glob(LOGS)), of=front)
        (probe,) = probes_of(front.pid)
        os.kill(probe, signal.SIGKILL)
        assert ended(front).code == 1
    cells = store.cell_folders(tmp_path / "results")
    assert [cell_json(cell)["status"] for cell in cells] == ["complete", "failed"]
    check_resumed(tmp_path, command, cells)


def test_resume_goes_on_after_the_front_was_killed(tmp_path: Path) -> None:
    (tmp_path / "killed.yaml").write_text(CAMPAIGN)
    command = ["run", tmp_path / "killed.yaml", "--out", tmp_path / "results"]
    with running(*command) as front:
        until(lambda: any(rows_of(log) > 100 for log in tmp_path.glob(LOGS)), of=front)
        (probe,) = probes_of(front.pid)
        front.kill()
        until(lambda: not Path(f"/proc/{probe}").exists())  # it ends by itself
    (short,) = store.cell_folders(tmp_path / "results")
    check_resumed(tmp_path, command, [short, short.with_name("long")])


def check_resumed(folder: Path, command: list[object], cells: list[Path]) -> None:
    """The run goes on in its folder: what was complete stays as it was, the rest is measured."""
    before = (cells[0] / store.CELL).stat().st_mtime_ns
    with running(*command, "--resume") as front:
        done = ended(front)
    assert done.code == 0, done.err
    assert "short: done before" in done.err
    assert store.cell_folders(folder / "results") == cells
    assert [cell_json(cell)["status"] for cell in cells] == ["complete", "complete"]
    assert (cells[0] / store.CELL).stat().st_mtime_ns == before
    assert not list(folder.rglob("*.partial"))


@pytest.mark.parametrize("role", ["client", "server"])
def test_either_end_of_a_round_trip_may_die(tmp_path: Path, role: str) -> None:
    command = ["measure", "roundtrip", "--adapter", "posix", "--period", "1ms", "--duration", "10min"]
    with running(*command, "--warm-up", "0s", "--out", tmp_path / "cell") as front:
        until(lambda: rows_of(tmp_path / "cell.partial" / store.CLIENT_LOG) > 100, of=front)
        pids = probes_of(front.pid)
        (victim,) = probes_of(front.pid, role)
        os.kill(victim, signal.SIGKILL)
        assert ended(front).code == 1
    record = cell_json(tmp_path / "cell")
    assert record["status"] == "failed"
    assert record["summary"]["counts"]["released"] > 0
    assert len(pids) == 2
    assert not any(Path(f"/proc/{pid}").exists() for pid in pids)
