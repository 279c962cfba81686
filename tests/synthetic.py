"""Result folders made up for tests: samples simulated by the definitions, judged by the real statistics.

``Made`` says what a cell is like; ``write_cell`` writes it as spec/results.md has it. The simulations walk
release by release, so that they are slow, plain and right.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from rtmeter.judge.verdict import judge, refuse
from rtmeter.model import ABSENT, SERVED, STATUS_NAMES, TWO_ENDS, WARM_UP_FLAG, Requirement
from rtmeter.statistics.summary import summarise

T0_NS = 1_000_000_000_000
IN_FLIGHT, _, SKIPPED, LOST = range(4)

Row = dict[str, int]
Delays = Callable[[int], Sequence[float | None]]
"""What happens at release k, nanoseconds, one number a step of the measurement; None: never."""

COLUMNS = {
    "wakeup": ["release_ns", "wake_ns", "free_ns"],
    "periodic": ["release_ns", "callback_ns", "reported_expected_ns", "reported_actual_ns", "free_ns"],
    "one_shot": [
        "armed_before_ns",
        "armed_after_ns",
        "callback_ns",
        "reported_expected_ns",
        "reported_actual_ns",
    ],
    "roundtrip": ["release_ns", "sent_ns", "received_ns", "free_ns", "server_received_ns", "server_sent_ns"],
    "request": [
        *("release_ns", "sent_ns", "accepted_ns", "first_feedback_ns", "received_ns", "free_ns"),
        *("server_received_ns", "server_sent_ns"),
    ],
    "cycle": [
        "release_ns",
        "start_ns",
        "request_sent_ns",
        "request_received_ns",
        "response_sent_ns",
        "response_received_ns",
        "free_ns",
    ],
}


@dataclass
class Made:
    """A cell to make up. ``delays`` of each step: wake; wake; fire; wake, there, back; start, request,
    respond. ``changes`` are put over cell.json last, whatever they are."""

    id: str = "cell"
    measurement: str = "wakeup"
    mode: str | None = None
    adapter: str = "posix"
    samples: int = 2_000
    warm_up: int = 100
    period_ns: int = 1_000_000
    deadline_ns: int | None = 1_000_000
    miss_ratio: float | None = None
    loss_timeout_ns: int = 500_000_000
    skip: bool = False
    delays: Delays = lambda k: (50_000, 20_000, 20_000)
    axes: dict[str, Any] = field(default_factory=dict)
    changes: dict[str, Any] = field(default_factory=dict)

    @property
    def kind(self) -> str:
        return self.mode or self.measurement


def usual(seed: int, body_us: float, spikes: float = 0.002, spike_us: float = 150) -> Delays:
    """Delays like those of a real machine: a skewed body and rare, heavy-tailed spikes."""

    def at(k: int) -> list[float]:
        random = np.random.default_rng([seed, k])
        spike = random.pareto(2.5, 3) * spike_us * (random.random(3) < spikes)
        return list(1e3 * (body_us * (0.7 + 0.3 * random.gamma(2, 0.5, 3)) + spike))

    return at


def rows_of(made: Made) -> list[Row]:
    """The rows, warm-up included."""
    simulate = _one_shots if made.kind == "one_shot" else _releases
    return list(simulate(made, made.samples + made.warm_up))


def _one_shots(made: Made, count: int) -> Iterator[Row]:
    now = T0_NS
    for k in range(count):
        fire = made.delays(k)[0]
        row = {"k": k, "armed_before_ns": now, "armed_after_ns": now + 300, "status": LOST}
        if fire is None:
            now += 11 * made.period_ns + 1_000_000_000
        else:
            callback = now + made.period_ns + int(fire)
            row |= {"callback_ns": callback, "status": SERVED}
            row |= {"reported_expected_ns": now + made.period_ns + 200, "reported_actual_ns": callback - 900}
            now = callback + 2_000
        yield row


def _releases(made: Made, count: int) -> Iterator[Row]:
    free = T0_NS
    for k in range(count):
        release = T0_NS + k * made.period_ns
        if made.skip and release < free:
            yield {"k": k, "release_ns": release, "free_ns": free, "status": SKIPPED}
            continue
        delays = [None if delay is None else int(delay) for delay in made.delays(k)]
        row = {"k": k, "release_ns": release, "status": SERVED}
        start = max(release + (delays[0] or 0), free)
        if made.measurement in ("wakeup", "timer"):
            stamp = "wake_ns" if made.measurement == "wakeup" else "callback_ns"
            row[stamp] = free = start
        else:
            free = _exchange(made, row, start, delays)
        yield row


def _exchange(made: Made, row: Row, start: int, delays: list[int | None]) -> int:
    """Fills in a round trip, a request of an action or a cycle; returns when the thread is free again."""
    there, back = delays[1], delays[2]
    names = ["sent_ns", "server_received_ns", "server_sent_ns", "received_ns"]
    if made.measurement == "cycle":
        row["start_ns"] = start
        names = ["request_sent_ns", "request_received_ns", "response_sent_ns", "response_received_ns"]
    row[names[0]] = start
    if there is not None:
        row[names[1]], row[names[2]] = start + there, start + there + 400
    if there is None or back is None:
        row["status"] = LOST
        return start + made.loss_timeout_ns
    row[names[3]] = start + there + 400 + back
    if made.measurement == "request":
        row |= {"accepted_ns": start + there, "first_feedback_ns": start + there + 200}
    return row[names[3]]


def columns_of(made: Made, rows: list[Row]) -> dict[str, np.ndarray]:
    """The rows as int64 columns, ABSENT where there is no value, the warm-up flag in ``status``."""
    names = ["k", *COLUMNS[made.kind], "status"]
    columns = {name: np.array([row.get(name, ABSENT) for row in rows], dtype=np.int64) for name in names}
    columns["status"] |= np.where(columns["k"] < made.warm_up, WARM_UP_FLAG, 0)
    return columns


def write_samples(path: Path, columns: dict[str, np.ndarray], meta: dict[str, Any]) -> None:
    """samples.parquet as spec/results.md has it."""
    status = columns["status"]
    arrays = {
        name: pa.array(values, mask=values == ABSENT) for name, values in columns.items() if name != "status"
    }
    arrays["status"] = pa.DictionaryArray.from_arrays((status & 15).astype(np.int8), list(STATUS_NAMES))
    arrays["warm_up"] = pa.array((status & WARM_UP_FLAG) != 0)
    table = pa.table(arrays)
    about = {"format": "rtmeter-samples", "version": 1, **meta}
    pq.write_table(table.replace_schema_metadata({"rtmeter": json.dumps(about)}), path, compression="zstd")


def meta_of(made: Made) -> dict[str, Any]:
    """What rtmeter.statistics asks of a cell."""
    meta = {"measurement": made.measurement, "mode": made.mode, "period_ns": made.period_ns}
    if made.measurement == "request":
        meta["interface"] = "action"
    meta |= {"warm_up": made.warm_up, "deadline_ns": made.deadline_ns, "in_flight": "one"}
    return meta | {"timeout_ns": made.period_ns if made.mode == "one_shot" else None}


def write_cell(directory: Path, made: Made) -> Path:
    """Writes the cell into the directory, which is made, and returns it."""
    directory.mkdir(parents=True)
    columns, meta = columns_of(made, rows_of(made)), meta_of(made)
    write_samples(directory / "samples.parquet", columns, meta)
    summary = summarise(meta, lambda: [columns])
    assert summary.pop("problems") == []
    requirement = made.deadline_ns and Requirement(made.deadline_ns, made.miss_ratio)
    verdict = judge(meta, lambda: [columns], requirement) if requirement else None
    cell = cell_json(made, meta, summary, requirement and asdict(requirement), verdict and asdict(verdict))
    (directory / "cell.json").write_text(json.dumps(cell | made.changes, indent=1))
    return directory


def write_failed_cell(directory: Path, made: Made, error: dict[str, Any]) -> Path:
    """A cell whose probe did not get to measuring."""
    directory.mkdir(parents=True)
    requirement = made.deadline_ns and Requirement(made.deadline_ns, made.miss_ratio)
    verdict = requirement and asdict(refuse(meta_of(made), requirement, error["message"]))
    failed = {"status": "failed", "valid": False, "error": error, "threads": {}, "summary": None}
    cell = cell_json(made, meta_of(made), {}, requirement and asdict(requirement), verdict)
    (directory / "cell.json").write_text(json.dumps(cell | failed | made.changes))
    return directory


def cell_json(
    made: Made, meta: dict[str, Any], summary: dict[str, Any], requirement: Any, verdict: Any
) -> dict[str, Any]:
    """cell.json of a whole cell."""
    fifo = {"policy": "fifo", "priority": 80}
    config = {"version": 1, "samples": made.samples, "scheduling": fifo, "apply": "before_init"} | meta
    config |= {"overrun": "skip" if made.skip else "catch_up", "cpus": [1], "lock_memory": True}
    config |= {"prefault_stack_bytes": 524288, "prefault_heap_bytes": 8388608, "cpu_dma_latency": True}
    effective = {key: config[key] for key in ("scheduling", "apply", "cpus", "overrun", "deadline_ns")}
    effective |= {"memory_locked": True, "cpu_dma_latency": True, "timer_slack_ns": 50000}
    effective |= {"prefault_stack_bytes": 524288, "prefault_heap_bytes": 8388608, "drive": None}
    threads = [
        _thread(4211, "rtmeter-probe-p", "measured", "fifo", 80, [1]),
        _thread(4212, "rtm-writer", "service", "other", 0, [0]),
        _thread(4213, "recvUC", "middleware", "fifo", 80, [1]),
    ]
    machine = {"hostname": "robot-7", "kernel": "6.1.0-26-rt-amd64", "architecture": "x86_64"}
    machine |= {"kernel_version": "#1 SMP PREEMPT_RT", "cpu_model": "Intel(R) Xeon(R)", "cpus_online": 2}
    return {
        "format": "rtmeter-cell",
        "version": 1,
        "id": made.id,
        "status": "complete",
        "valid": True,
        "error": None,
        "measurement": made.measurement,
        "mode": made.mode,
        "adapter": made.adapter,
        "server_adapter": made.adapter if made.measurement in TWO_ENDS else None,
        "axes": made.axes,
        "config": config,
        "requirement": requirement,
        "effective": effective,
        "threads": {"client": threads, "server": []},
        "usage": {"minor_faults": 0, "major_faults": 0, "voluntary_switches": 2000, "migrations": 0}
        | {"involuntary_switches": 3},
        "instrument": {"stamp_ns": 21, "record_ns": 29, "ring_rows": 65536, "ring_high_water": 12},
        "counters": {"overflow": 0},
        "grid": {"t0_ns": T0_NS, "period_ns": made.period_ns, "t0_from": "core"},
        "adapter_facts": {"name": made.adapter, "version": "0.1.0", "middleware": "Linux"},
        "machine": machine | {"boot_id": "7b0c", "virtual_machine": "kvm"},
        "clock": {"id": "CLOCK_MONOTONIC"},
        "warnings": [],
        "missing": [],
        "summary": summary,
        "verdict": verdict,
        "started": "2026-11-21T05:00:00Z",
        "ended": "2026-11-21T05:01:00Z",
        "rtmeter": "0.1.0",
    }


def _thread(tid: int, name: str, role: str, policy: str, priority: int, cpus: list[int]) -> dict[str, Any]:
    thread = {"tid": tid, "name": name, "role": role, "policy": policy, "priority": priority}
    return thread | {"cpus": cpus, "timer_slack_ns": 50000}
