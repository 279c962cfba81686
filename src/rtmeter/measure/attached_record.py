"""What the kernel told of a thread → the rows of its cell, and what is to be said of them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from rtmeter.attach.callbacks import Callback
from rtmeter.attach.grid import AttachedLoop, loop_of
from rtmeter.attach.jobs import Job, jobs_of
from rtmeter.attach.releases import columns_of
from rtmeter.attach.sleeps import ThreadSleeps as Sleeps
from rtmeter.attach.sleeps import sleeps_of
from rtmeter.errors import RtmeterError
from rtmeter.explain.events import SWITCH, Trace
from rtmeter.host.root import Root
from rtmeter.host.threads import Task, allowed_cpus, read_task
from rtmeter.machine.facts import facts_of
from rtmeter.measure.attaching import Attached
from rtmeter.measure.program import Program
from rtmeter.model import SERVED, WARM_UP_FLAG, Cell, Doubt
from rtmeter.results import store
from rtmeter.samples import write_columns
from rtmeter.samples.meta import LogMeta
from rtmeter.values import format_duration


@dataclass(frozen=True, slots=True)
class MeasuredLoop:
    """The config and the meta of the cell, as measured; ``rows`` of samples.parquet; ``error``: why there is
    none."""

    config: dict[str, Any]
    meta: LogMeta
    rows: int
    doubts: tuple[Doubt, ...]
    error: RtmeterError | None


def measured_loop(
    attached: Attached,
    program: Program,
    task: Task,
    cell: Cell,
    folder: Path,
    warm_up_ns: int,
    callback: Callback | None = None,
) -> MeasuredLoop:
    """Writes samples.parquet into ``folder``: of the thread, or of a callback that it calls. Raises
    RtmeterError if the trace or that cannot be written."""
    trace = attached.trace()
    sleeps = sleeps_of(trace, task.tid)
    jobs = list(jobs_of(sleeps.sleeps) if callback is None else callback.jobs)
    asked = cell.config["attach"]
    told_ns = callback.period_ns if callback is not None else None
    loop = loop_of(jobs, cell.config["period_ns"] if asked["period_given"] else told_ns)
    columns = columns_of(jobs, loop)
    rows = len(columns["status"])
    warm_up = int(np.searchsorted(columns["release_ns"], sleeps.first_ns + warm_up_ns)) if warm_up_ns else 0
    columns["status"][:warm_up] |= WARM_UP_FLAG
    config = cell.config | {"warm_up": warm_up, "samples": rows - warm_up}
    config["period_ns"] = loop.period_ns or cell.config["period_ns"]
    meta = _meta(attached, program, task, loop, jobs, trace, config)
    if callback is not None:
        _name(meta, callback, attached)
    error = None if (columns["status"] == SERVED).any() else _nothing(task, sleeps, callback)
    if rows:
        about = {"measurement": "loop", "mode": None} | {k: config[k] for k in ("period_ns", "warm_up")}
        write_columns(columns, about, folder / store.SAMPLES)
    doubts = tuple(_doubts(attached, program, task, loop, jobs, sleeps, trace, config))
    return MeasuredLoop(config, meta, rows, doubts, error)


def _name(meta: LogMeta, callback: Callback, attached: Attached) -> None:
    """What is told of a callback beside its thread; the events of a job are those of any of that thread."""
    about = {"callback": callback.name, "node": callback.node, "topic": callback.topic}
    meta.adapter.update({name: value for name, value in about.items() if value is not None})
    if callback.period_ns is not None and meta.grid is not None and meta.grid["period_from"] == "mode":
        meta.grid["period_from"] = "timer"
    marks = [mark for mark in attached.marks if mark.tid == callback.tid]
    jobs = sum(mark.what in ("call", "took") for mark in marks)
    if jobs and meta.instrument["events_per_job"] is not None:
        events = meta.instrument["events_per_job"] * len(callback.jobs) / jobs
        meta.instrument.update({"events_per_job": events, "probes_per_job": len(marks) / jobs})
        if attached.event_ns is not None:
            meta.instrument["traced_ns_per_job"] = events * attached.event_ns


def _nothing(task: Task, sleeps: Sleeps, callback: Callback | None) -> RtmeterError:
    """Why no job was seen whole."""
    if callback is not None:
        message, remedy = "was not called in that time", "measure for longer"
        return RtmeterError(message, field="callback", value=callback.name, remedy=remedy)
    if sleeps.sleeps:
        message, remedy = "did one job at most in that time", "measure for longer"
    elif sleeps.switches or task.state == "R":
        message, remedy = (
            "never slept: it has no loop that could be measured",
            "see what it waits for: top -H",
        )
    else:
        message, remedy = "never woke in that time", "measure for longer, or choose another thread"
    return RtmeterError(message, field="thread", value=f"{task.name} ({task.tid})", remedy=remedy)


def _meta(
    attached: Attached,
    program: Program,
    task: Task,
    loop: AttachedLoop,
    jobs: list[Job],
    trace: Trace,
    config: dict[str, Any],
) -> LogMeta:
    root = Root()
    scheduling: dict[str, Any] = {"policy": task.policy}
    if task.policy in ("fifo", "rr"):
        scheduling["priority"] = task.priority
    cpus = sorted(allowed_cpus(root, task) or ())
    thread = {
        "tid": task.tid,
        "name": task.name,
        "role": "measured",
        "stamps": True,
        "cpus": cpus,
    } | scheduling
    own = int((np.asarray(trace.tid) == task.tid).sum() + (np.asarray(trace.target) == task.tid).sum())
    per_job = own / len(jobs) if jobs else None
    cost = {"event_ns": attached.event_ns, "events_per_job": per_job}
    if per_job is not None and attached.event_ns is not None:
        cost["traced_ns_per_job"] = per_job * attached.event_ns
    tally = attached.tally
    return LogMeta(
        measurement="loop",
        effective={"scheduling": scheduling, "cpus": cpus, "overrun": "skip"},
        threads=[thread],
        instrument=cost,
        counters={
            "unknown": loop.unknown,
            "events": tally.events,
            "events_lost": tally.lost,
            "waits": loop.waits,
        },
        grid={
            "t0_ns": jobs[0].release_ns if loop.on_grid and jobs else None,
            "period_ns": loop.period_ns,
            "t0_from": "timer" if loop.on_grid else None,
            "period_from": "given" if config["attach"]["period_given"] else "mode",
            "kinds": loop.kinds,
            "drift_ns": loop.drift_ns,
        },
        adapter={"middleware": "attached", "program": program.exe, "pid": program.pid, "thread": task.name},
        machine=facts_of(root),
        clock={"id": "CLOCK_MONOTONIC"},
    )


def _doubts(
    attached: Attached,
    program: Program,
    task: Task,
    loop: AttachedLoop,
    jobs: list[Job],
    sleeps: Sleeps,
    trace: Trace,
    config: dict[str, Any],
) -> Iterator[Doubt]:
    tally = attached.tally
    if tally.lost:
        message = f"{tally.lost:,} events were lost: {loop.unknown:,} jobs are unknown, and never in time"
        yield Doubt("trace_lost", message, "leave a CPU to the front, or measure with less load")
    if tally.cut:
        yield Doubt("trace_incomplete", "the recording broke off: it grew too long", "measure for less long")
    if program.debugged:
        yield Doubt("program_debugged", "another process traces it: a debugger, or strace", "end that first")
    for change in loop.changes:
        at_s = (change.release_ns - jobs[0].release_ns) / 1e9
        message = f"from {at_s:.3f} s on its period is {format_duration(change.period_ns)}"
        remedy = "if releases were passed over instead, give --period"
        yield Doubt("period_changed", message, remedy)
    if loop.drift_ns is not None and jobs:
        per_job = loop.drift_ns / max(len(jobs) - 1, 1)
        message = (
            f"its sleeps are relative ({loop.kind}): armed anew each time, the loop falls "
            f"{per_job / 1e3:,.1f} us behind with each job, {loop.drift_ns / 1e6:,.1f} ms in all"
        )
        yield Doubt("relative_sleeps", message, "sleep until a time: clock_nanosleep with TIMER_ABSTIME")
    if len(loop.kinds) > 1:
        kinds = ", ".join(f"{count:,} {kind}" for kind, count in Counter(loop.kinds).most_common())
        yield Doubt("several_wakers", f"its jobs are released by: {kinds}", "")
    after = read_task(Root(), task.tid)
    priorities = _priorities(trace, task.tid)
    changed = after is not None and after.start == task.start and after.scheduling != task.scheduling
    if changed or len(priorities) > 1:
        now = after.scheduling if after is not None else "another"
        message = f"its policy was {task.scheduling} at first, {now} at last"
        if not changed:
            message = "its priority changed meanwhile, or others lent it theirs"
        yield Doubt("policy_changed", message, "measure again, with one policy")


def _priorities(trace: Trace, tid: int) -> set[int]:
    """As the scheduler had it each time that it came on a CPU."""
    came = (np.asarray(trace.event) == SWITCH) & (np.asarray(trace.target) == tid)
    return set(np.asarray(trace.priority)[came].tolist())
