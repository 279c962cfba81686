"""What the kernel told of a thread → the rows of its cell, and what is to be said of them."""

from __future__ import annotations

import shutil
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from rtmeter.attach.callbacks import Callback, calls
from rtmeter.attach.follow import Followed
from rtmeter.attach.grid import LARGEST_GAP
from rtmeter.errors import RtmeterError
from rtmeter.host.root import Root
from rtmeter.host.threads import Task, allowed_cpus, read_task
from rtmeter.machine.facts import facts_of
from rtmeter.measure.programs.attaching import Attached
from rtmeter.measure.programs.following import Written
from rtmeter.measure.programs.program import CUT_SHORT, REPLACED, Program, ended_doubt, replaced_doubt
from rtmeter.model import Cell, Doubt
from rtmeter.results import store
from rtmeter.samples.meta import LogMeta
from rtmeter.values import format_duration


@dataclass(frozen=True, slots=True)
class MeasuredLoop:
    """The config and the meta of the cell, as measured; ``rows`` of samples.parquet; ``error``: why there is
    none; ``cut``: what ended the thread before the recording."""

    config: dict[str, Any]
    meta: LogMeta
    rows: int
    doubts: tuple[Doubt, ...]
    error: RtmeterError | None
    cut: Doubt | None


def measured_loop(
    attached: Attached,
    program: Program,
    task: Task,
    cell: Cell,
    folder: Path,
    written: Written,
    told: Sequence[Doubt],
    callback: Callback | None = None,
    others: Sequence[Task] = (),
) -> MeasuredLoop:
    """Of the thread, or of a callback that it calls, and ``others``, less often; its rows become
    samples.parquet in ``folder``. ``told``: what was seen of the program beside its recording."""
    followed, asked = written.followed, cell.config["attach"]
    loop = followed.loop
    config = cell.config | {"warm_up": followed.warm_up, "samples": written.rows - followed.warm_up}
    config["period_ns"] = loop.period_ns or cell.config["period_ns"]
    meta = _meta(attached, program, task, followed, given=asked["period_given"])
    if callback is not None:
        _name(meta, callback, attached, [task, *others])
    cut = _cut(program, task, followed) or next((one for one in told if one.type in CUT_SHORT), None)
    error = None if written.served else _nothing(task, followed, callback, cut)
    if written.rows:
        shutil.move(written.file, folder / store.SAMPLES)
    doubts = tuple(_doubts(attached, program, task, followed))
    return MeasuredLoop(config, meta, written.rows, doubts, error, cut)


def _name(meta: LogMeta, callback: Callback, attached: Attached, tasks: Sequence[Task]) -> None:
    """What is told of a callback beside its threads; the events of a job are those of any of the first."""
    about = {"callback": callback.name} | callback.about
    about["thread"] = ", ".join(dict.fromkeys(task.name for task in tasks))
    meta.threads.extend(_measured(attached.root, task) for task in tasks[1:])
    meta.adapter.update({name: value for name, value in about.items() if value is not None})
    if callback.period_ns is not None and meta.grid is not None and meta.grid["period_from"] == "mode":
        meta.grid["period_from"] = "timer"
    marks = [mark for mark in attached.marks if mark.tid == tasks[0].tid]
    jobs = calls(marks)
    if jobs and meta.instrument["events_per_job"] is not None:
        events = meta.instrument["events_per_job"] * len(callback.jobs) / jobs
        meta.instrument.update({"events_per_job": events, "probes_per_job": len(marks) / jobs})
        if attached.event_ns is not None:
            meta.instrument["traced_ns_per_job"] = events * attached.event_ns


def _nothing(
    task: Task, followed: Followed, callback: Callback | None, cut: Doubt | None = None
) -> RtmeterError:
    """Why no job was seen whole; ``cut``: what ended the thread."""
    if callback is not None:
        how = "ended no job" if callback.jobs else "was not called"
        message, remedy = f"{how} in that time", "measure for longer"
        return RtmeterError(message, field="callback", value=callback.name, remedy=remedy)
    if cut is not None:
        ended = "became another program" if cut.type == REPLACED else "ended"
        message, remedy = f"{ended} before it did a whole job", "attach to it while it works"
    elif followed.slept or followed.seen.left:
        message, remedy = "did one job at most in that time", "measure for longer"
    elif followed.seen.switches or task.state == "R":
        message, remedy = (
            "never slept: it has no loop that could be measured",
            "see what it waits for: top -H",
        )
    else:
        message, remedy = "never woke in that time", "measure for longer, or choose another thread"
    return RtmeterError(message, field="thread", value=f"{task.name} ({task.tid})", remedy=remedy)


def _meta(attached: Attached, program: Program, task: Task, followed: Followed, *, given: bool) -> LogMeta:
    loop, sleeps = followed.loop, followed.seen
    root = attached.root
    thread = _measured(root, task)
    scheduling = {key: thread[key] for key in ("policy", "priority") if key in thread}
    per_job = sleeps.events / followed.jobs if followed.jobs else None
    cost = {"by": attached.by, "event_ns": attached.event_ns, "events_per_job": per_job}
    if per_job is not None and attached.event_ns is not None:
        cost["traced_ns_per_job"] = per_job * attached.event_ns
    tally = attached.tally
    return LogMeta(
        measurement="loop",
        effective={"scheduling": scheduling, "cpus": thread["cpus"], "overrun": "skip"},
        threads=[thread],
        instrument=cost,
        counters={
            "unknown": loop.unknown,
            "events": tally.events,
            "events_lost": tally.lost,
            "waits": loop.waits,
            "inferred": sleeps.inferred,
        },
        grid={
            "t0_ns": followed.first_release_ns if loop.on_grid else None,
            "period_ns": loop.period_ns,
            "t0_from": "timer" if loop.on_grid else None,
            "period_from": "given" if given else "mode",
            "kinds": loop.kinds,
            "drift_ns": loop.drift_ns,
        },
        adapter={"middleware": "attached", "program": program.exe, "pid": program.pid, "thread": task.name},
        machine=facts_of(root),
        clock={"id": "CLOCK_MONOTONIC"} | ({"anchors": attached.anchors} if attached.anchors else {}),
    )


def _measured(root: Root, task: Task) -> dict[str, Any]:
    """A thread of the record."""
    cpus = sorted(allowed_cpus(root, task) or ())
    of_it = {"tid": task.tid, "name": task.name, "role": "measured", "stamps": True, "cpus": cpus}
    of_it["policy"] = task.policy
    return of_it | ({"priority": task.priority} if task.policy in ("fifo", "rr") else {})


def _cut(program: Program, task: Task, followed: Followed) -> Doubt | None:
    if followed.seen.replaced:
        return replaced_doubt(f"{program.exe} became another by exec")
    return ended_doubt(f"its thread {task.name} ({task.tid})") if followed.seen.ended else None


def _doubts(attached: Attached, program: Program, task: Task, followed: Followed) -> Iterator[Doubt]:
    loop = followed.loop
    tally = attached.tally
    if tally.lost:
        message = f"{tally.lost:,} events were lost: {loop.unknown:,} jobs are unknown, and never in time"
        yield Doubt("trace_lost", message, "leave a CPU to the front, or measure with less load")
    elif loop.unknown:
        message = f"of {loop.unknown:,} jobs an event is missing: they are unknown, and never in time"
        yield Doubt("trace_lost", message, "measure again")
    if followed.unended_ns is not None:
        due = format_duration(followed.unended_ns)
        came = "it is lost" if followed.unended_lost else "it had woken, and is no row"
        message = f"a job that was due {due} before the recording's end had not ended then: {came}"
        period_ns = loop.changes[-1].period_ns if loop.changes else loop.period_ns
        if loop.on_grid and period_ns is not None and followed.unended_ns // period_ns >= LARGEST_GAP:
            message += f"; of what passed since only the first {LARGEST_GAP - 1:,} releases are skipped"
        yield Doubt("job_unended", message, "see what the thread waits for, or computes: rtmeter explain")
    if tally.cut:
        yield Doubt("trace_incomplete", "the recording broke off: it grew too long", "measure for less long")
    if program.debugged:
        yield Doubt("program_debugged", "another process traces it: a debugger, or strace", "end that first")
    for change in loop.changes:
        at_s = (change.release_ns - (followed.first_release_ns or 0)) / 1e9
        message = f"from {at_s:.3f} s on its period is {format_duration(change.period_ns)}"
        remedy = "if releases were passed over instead, give --period"
        yield Doubt("period_changed", message, remedy)
    if not loop.given and 2 * followed.slept_over > followed.skipped:
        message = f"{followed.slept_over:,} of {followed.skipped:,} skipped releases passed while it slept"
        yield Doubt("slept_over", message, "if it sleeps more than once in a period, give that: --period")
    if loop.by_timer and not loop.steady and loop.period_ns is not None and followed.jobs > 2:
        period = format_duration(loop.period_ns)
        how = f"mostly not {period} apart" if loop.given else f"at several distances, most often {period}"
        message = f"its timers come {how}: no grid, so nothing is skipped"
        yield Doubt("no_grid", message, "" if loop.given else "if it has one, give its period: --period")
    if loop.drift_ns is not None:
        per_job = loop.drift_ns / max(followed.jobs - 1, 1)
        message = (
            f"its sleeps are relative ({loop.kind}): armed anew each time, the loop falls "
            f"{per_job / 1e3:,.1f} us behind with each job, {loop.drift_ns / 1e6:,.1f} ms in all"
        )
        yield Doubt("relative_sleeps", message, "sleep until a time: clock_nanosleep with TIMER_ABSTIME")
    if followed.passed_over:
        message = (
            f"it sleeps for what is left until a time of its own ({loop.kind}): "
            f"some {followed.passed_over:,} such times passed with no sleep until them; they are no "
            "releases, and in no count"
        )
        remedy = "sleep until the time itself (clock_nanosleep with TIMER_ABSTIME): then they are skipped"
        yield Doubt("passed_over", message, remedy)
    if 0.9 * followed.jobs <= loop.waits <= 1.1 * followed.jobs and loop.waits > 1:
        message = (
            f"it waited for other threads (futex) {loop.waits:,} times within {followed.jobs:,} jobs, as for "
            "locks: if that is how it waits for its next cycle, and it sleeps within one, its jobs are others"
        )
        yield Doubt("waits_once_a_job", message, "judge it by stamps of its own (librtmeter)")
    if followed.seen.others:
        message = (
            f"it has several timers of one kind ({loop.kind}): an expiry of one that came during work may be "
            "in no count, and lengthen the job before it"
        )
        yield Doubt("several_timers", message, "judge it by stamps of its own (librtmeter)")
    if len(loop.kinds) > 1:
        kinds = ", ".join(f"{count:,} {kind}" for kind, count in Counter(loop.kinds).most_common())
        yield Doubt("several_wakers", f"its jobs are released by: {kinds}", "")
    after = read_task(attached.root, task.tid)
    changed = after is not None and after.start == task.start and after.scheduling != task.scheduling
    if changed or len(followed.seen.priorities) > 1:
        now = after.scheduling if after is not None else "another"
        message = f"its policy was {task.scheduling} at first, {now} at last"
        if not changed:
            message = "its priority changed meanwhile, or others lent it theirs"
        yield Doubt("policy_changed", message, "measure again, with one policy")
