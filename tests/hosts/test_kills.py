"""kill -9 at random moments of a run on two hosts: `rtmeter restore` leaves both as they were."""

from __future__ import annotations

import contextlib
import os
import random
import time
from collections.abc import Callable
from pathlib import Path

import pytest
from runs import MEASURE, restore
from two_hosts import DEVICE, Hosts

from front import running
from real_settings import one_at_a_time
from rtmeter.conditions import journal
from rtmeter.host.root import Root
from rtmeter.host.threads import read_tasks
from rtmeter.results import store
from waiting import until

HERE = {f"qdisc.{DEVICE}": "pfifo limit 77", "timer_migration": "off"}
THERE = {f"qdisc.{DEVICE}": "pfifo limit 5", "workqueue_cpus": "0", "ksoftirqd_priority": "2"}
ASKED = [word for key, value in HERE.items() for word in ("--condition", f"{key}={value}")]
ASKED += [word for key, value in THERE.items() for word in ("--server-condition", f"{key}={value}")]
FILES = ("/proc/sys/kernel/timer_migration", "/sys/devices/virtual/workqueue/cpumask")


def snapshot(hosts: Hosts) -> dict[str, object]:
    """What the settings change: of the two hosts, which here share a kernel."""
    threads = {task.name: task.scheduling for task in read_tasks(Root()) if task.name.startswith("ksoftirqd")}
    return {"qdiscs": hosts.qdiscs(), "threads": threads} | {name: Root().read(name) for name in FILES}


@pytest.mark.timeout(3600)  # of a busy machine
def test_killed_at_random_then_restored(
    hosts: Hosts, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, sized: Callable[..., int]
) -> None:
    """As it sets the first host, the second, as it measures, and as it undoes all of it."""
    monkeypatch.setenv("RTMETER_STATE_DIR", str(tmp_path / "state"))
    if len(os.sched_getaffinity(0)) < 2:
        pytest.skip("needs two CPUs")
    chance = random.Random(20261121)
    near, far = journal.path_of("local"), journal.path_of(hosts.url)
    kills, left_here, left_there = sized("kills of a run on two hosts", reduced=3, full=25), 0, 0
    with one_at_a_time(), contextlib.ExitStack() as stack:
        stack.callback(restore, hosts)  # where it failed
        before = snapshot(hosts)
        for n in range(kills):
            cell = tmp_path / str(n)
            logs = [cell.with_suffix(store.PARTIAL) / name for name in (store.CLIENT_LOG, store.SERVER_LOG)]
            moments = [far, *logs, near]  # the server's log comes home before all is undone
            samples = 50 if n else 100_000  # the first is killed while it measures, however slow this process
            asked = [
                *MEASURE,
                "--samples",
                samples,
                "--host",
                f"component={hosts.url}",
                *ASKED,
                "--out",
                cell,
            ]
            with running(*asked, **hosts.near_end()) as front:
                until(lambda moment=moments[n % 4], front=front: moment.exists() or front.poll() is not None)
                time.sleep(chance.uniform(0, 0.5))
                front.kill()
                front.wait()
            hosts.wait_until_ended()
            left_here += near.exists()
            left_there += far.exists()
            code, said = restore(hosts)
            assert (code, snapshot(hosts)) == (0, before), said
        assert restore(hosts) == (0, "nothing was to be put back\n")
    print(f"{kills} kills: {left_here} left settings on the first host, {left_there} on the second")
    assert min(left_here, left_there) > 0
