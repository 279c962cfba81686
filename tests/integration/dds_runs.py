"""What the tests of the DDS adapters share."""

from __future__ import annotations

import itertools
import os
import re
import signal
from contextlib import suppress
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from probe_runs import SERVED, Columns, Config, Probe, accounts, client_and_server, has, read

from rtmeter.measure.probe.probes import find_probes

MS = 1_000_000
SECOND = 1_000 * MS
ADAPTERS = ("cyclonedds", "fastdds", "dustdds", "fastdds3")

built = {
    name: pytest.mark.skipif(name not in find_probes(), reason=f"the adapter {name} is not built here")
    for name in ADAPTERS
}
once_more = pytest.mark.full_only("the source of fastdds, over Fast DDS 3")
"""What its own test (test_fastdds3.py) and the check of its contract leave."""


def marks(*adapters: str) -> list[pytest.MarkDecorator]:
    """Of a test of these: they are built, and version 3 has its turn."""
    return [built[name] for name in adapters] + [once_more] * ("fastdds3" in adapters)


each_adapter = pytest.mark.parametrize("adapter", [pytest.param(n, marks=marks(n)) for n in ADAPTERS])

POLICIES = {os.SCHED_OTHER: "other", os.SCHED_FIFO: "fifo", os.SCHED_RR: "rr"}
AMONG_OTHERS: Config = {"options": {"interoperable": "yes"}}
"""What the front gives both ends where they are of different implementations."""

CYCLE: Config = {"measurement": "cycle", "loss_timeout_ns": 20 * SECOND}


def pairs(*chosen: tuple[str, str]) -> Any:
    """Parametrizes client and server by implementation."""
    return pytest.mark.parametrize(
        ("client_adapter", "server_adapter"),
        [pytest.param(c, s, marks=marks(c, s)) for c, s in chosen],
    )


def settled(client: Probe, server: Probe, *, interrupted: bool = False) -> dict[str, int]:
    """Ends a round trip; every release is accounted for, and the server heard what was answered."""
    assert client.end() == (4 if interrupted else 0), client.events
    assert server.end() == 0, server.events
    reader, columns = read(client.log)
    found = accounts(client)
    assert interrupted or found["in_flight"] == 0
    assert has(columns, SERVED)
    counters = reader.meta["counters"]
    assert counters["corrupted"] == counters["duplicate"] == counters["refused_calls"] == 0
    _, heard = read(server.log)
    answered = np.flatnonzero((columns["status"] & 15) == SERVED)
    where = np.searchsorted(heard["sequence"], answered)
    assert np.array_equal(heard["sequence"][where], answered)
    assert np.all(heard["server_received_ns"][where] >= columns["sent_ns"][answered])
    assert np.all(columns["received_ns"][answered] >= heard["server_sent_ns"][where])
    return found


def refuses_a_listener_that_comes_to_run_otherwise(folder: Path, config: Config) -> None:
    """Whatever the middleware, its listener's policy is read back at the end, too: here it was changed."""
    config = config | {"receive": "listener", "samples": 1_000_000}
    config |= {"scheduling": {"policy": "fifo", "priority": 20}, "apply": "before_init"}
    with client_and_server(folder, config) as (client, _):
        ready = client.until("ready")
        assert ready["event"] == "ready", ready
        [stamping] = (thread for thread in ready["threads"] if thread["stamps"])
        assert (stamping["role"], stamping["policy"], stamping["priority"]) == ("middleware", "fifo", 20)
        os.sched_setscheduler(stamping["tid"], os.SCHED_FIFO, os.sched_param(18))
        client.process.send_signal(signal.SIGTERM)
        assert client.end() == 1
    error = next(event for event in client.events if event["event"] == "error")
    assert (error["field"], error["value"]) == ("scheduling", "fifo:20")
    assert f"thread {stamping['name']} of the middleware's, which stamps, runs as fifo:18" in error["message"]


def threads_of(meta: dict[str, Any], role: str = "middleware") -> dict[int, dict[str, Any]]:
    return {thread["tid"]: thread for thread in meta["threads"] if thread["role"] == role}


def set_so(meta: dict[str, Any], how: str) -> tuple[list[str], list[str]]:
    """The threads set by ``set_by_middleware`` or ``set_by_system``: as a condition of the cell has them,
    and with what follows from the session alone."""
    names, with_ids = meta["adapter"]["threads"][how], meta["adapter"][f"threads_{how}"]
    return (names.split(", "), with_ids.split(", ")) if with_ids else ([], [])


def without_port(name: str) -> str:
    return re.sub(r"^(dds\.(udp|shm|tcp)\.)\d+$", r"\1PORT", name)


def audited(ready: dict[str, Any]) -> dict[int, tuple[str, str, int]]:
    """Every thread as the probe tells when it is ready: name, policy, real-time priority, by id."""
    return {t["tid"]: (t["name"], t["policy"], t["priority"]) for t in ready["threads"]}


def threads_in_proc(pid: int) -> dict[int, tuple[str, str, int]]:
    """The same as the system has it."""
    found = {}
    for task in Path(f"/proc/{pid}/task").iterdir():
        tid = int(task.name)
        with suppress(OSError):  # it has ended
            found[tid] = (
                (task / "comm").read_text().rstrip("\n"),
                POLICIES[os.sched_getscheduler(tid)],
                os.sched_getparam(tid).sched_priority,
            )
    return found


def in_order(columns: Columns) -> bool:
    """Whether each stamp of a cycle comes no earlier than the one before it."""
    order = ("release", "start", "request_sent", "request_received", "response_sent", "response_received")
    stamps = [columns[f"{name}_ns"] for name in order]
    return all(bool(np.all(later >= earlier)) for earlier, later in itertools.pairwise(stamps))
