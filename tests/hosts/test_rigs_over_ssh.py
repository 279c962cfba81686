"""Many targets at once, over a real sshd: one that is there, one where nobody listens."""

from __future__ import annotations

import json
import signal
from pathlib import Path

from two_hosts import ADDRESS, DEVICE, Hosts

from front import ended, rows_of, rtmeter, running
from rtmeter.results.store import CELL, CLIENT_LOG
from waiting import until

CAMPAIGN = f"""
name: fleet
defaults: {{adapter: posix, period: 2ms, warm_up: "0", conditions: {{qdisc: {{{DEVICE}: pfifo limit 77}}}}}}
cells:
  - {{measurement: wakeup, samples: 20}}
  - {{measurement: timer, samples: 100000}}
"""


def test_rigs_over_ssh_end_cleanly_and_are_put_back(hosts: Hosts, tmp_path: Path) -> None:
    file, rigs, before = tmp_path / "fleet.yaml", tmp_path / "rigs.yaml", hosts.qdiscs()
    file.write_text(CAMPAIGN)
    gone = f"{{address: 'ssh://root@{ADDRESS}:2223', patience: '0'}}"
    rigs.write_text(f"rigs:\n  there: {{address: '{hosts.url}', labels: {{site: far}}}}\n  gone: {gone}\n")
    asked = ["run", file, "--rigs", rigs, "--out", tmp_path / "out"]
    left = set(hosts.temporary.iterdir())

    def logs() -> list[Path]:
        return [log for log in hosts.temporary.glob(f"*/{CLIENT_LOG}") if log.parent not in left]

    with running(*asked, **hosts.near_end()) as process:
        until(lambda: any(rows_of(log) > 100 for log in logs()), of=process)
        assert "limit 77p" in hosts.qdiscs()[1]
        process.send_signal(signal.SIGTERM)
        done = ended(process)
    assert done.code == 1
    (run,) = (tmp_path / "out").glob("*/fleet/*")
    cells = {path.parent.name: json.loads(path.read_text()) for path in run.glob(f"*/{CELL}")}
    status = {name: cell["status"] for name, cell in cells.items()}
    assert status == {
        "wakeup-posix-there": "complete",
        "wakeup-posix-gone": "failed",
        "timer-posix-there": "interrupted",
        "timer-posix-gone": "failed",
    }
    assert cells["wakeup-posix-there"]["rig"] == {"name": "there", "labels": {"site": "far"}}
    assert cells["timer-posix-there"]["summary"]["counts"]["served"] > 100
    assert "Connection refused" in cells["timer-posix-gone"]["error"]["message"]
    assert hosts.qdiscs() == before and not (hosts.state / "journal").exists()
    assert set(hosts.temporary.iterdir()) == left
    hosts.wait_until_ended()

    rigs.write_text(rigs.read_text().replace(f"{ADDRESS}:2223", f"{ADDRESS}:2222/"))
    twice = rtmeter(*asked, "--resume", **hosts.near_end())
    assert (twice.code, "rigs.gone.address" in twice.err) == (1, True), twice.err
