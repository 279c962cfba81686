"""Cells that cyclictest measures: a baseline by the tool that everybody knows, under the same conditions.

A wake-up cell with ``adapter: cyclictest``. What it writes becomes the cell as ``rtmeter import`` has it.
"""

from __future__ import annotations

import shutil
import time
from collections.abc import Callable
from pathlib import Path

from rtmeter.conditions import Standing
from rtmeter.errors import RtmeterError
from rtmeter.host.remote_root import RemoteRoot
from rtmeter.host.root import Root
from rtmeter.importers import cells as imported
from rtmeter.judge.verdict import refuse
from rtmeter.measure.cyclictest_tool import CYCLICTEST, FILE, PACKAGE, here, there
from rtmeter.measure.probe.probes import NotBuiltError
from rtmeter.measure.probe.supervise import OnProgress, Stop
from rtmeter.measure.source import Ran
from rtmeter.measure.source.record import Logs, record_cell
from rtmeter.model import TARGET, Cell, Outcome
from rtmeter.results import store
from rtmeter.results.record import CellRecord, Failure, RigOfCell
from rtmeter.values import format_duration

_LOOK_EVERY_S = 0.25
_GRACE_S = 10
_SLOWEST, _SILENCE_S = 10, 60
"""It is given ten times as long as planned, and a minute: cycles that are late make it slower."""


class ByCyclictest:
    """The source (source.py) of a cell with ``adapter: cyclictest``."""

    programs, real_time = [CYCLICTEST], True

    def __init__(self, cell: Cell) -> None:
        self._cell = cell

    def check(self) -> None:
        check(self._cell)

    prepare = check

    def run(self, folder: Path, stop: Stop, on_progress: OnProgress, standing: Standing) -> Outcome:
        del on_progress  # it does not say how far it is
        through, root = standing.launchers.client(None), standing.root
        return run(self._cell, folder, lambda: stop.asked > 0, standing.check, through, root)

    def record(self, outcome: Outcome, folder: Path, ran: Ran) -> CellRecord:
        if (folder / FILE).is_file():
            try:
                return record(self._cell, outcome, folder, ran)
            except RtmeterError as error:  # it wrote no whole file
                outcome = Outcome("failed", outcome.error or error)
        return record_cell(self._cell, outcome, Logs.of(folder), folder, ran)


def check(cell: Cell) -> None:
    """Raises RtmeterError for what cyclictest does not do, NotBuiltError if it is not there."""
    if cell.config["measurement"] != "wakeup":
        message = f"does not measure {cell.config['measurement']}"
        raise RtmeterError(message, field="adapter", value=CYCLICTEST, remedy="it measures wakeup")
    config = cell.config
    scheduling, period_ns = config["scheduling"], config["period_ns"]
    for field, value, refused in (
        ("before", config.get("before"), config.get("before") != "none"),
        ("apply", config.get("apply"), config.get("apply") != "before_init"),
        ("child_threads", config.get("child_threads"), "child_threads" in config),
        ("child_cpus", config.get("child_cpus"), "child_cpus" in config),
        ("prefault_stack", config.get("prefault_stack_bytes"), config.get("prefault_stack_bytes")),
        ("prefault_heap", config.get("prefault_heap_bytes"), config.get("prefault_heap_bytes")),
        ("timer_slack", config.get("timer_slack_ns"), "timer_slack_ns" in config),
        ("overrun", "catch_up", config.get("overrun") == "catch_up"),
        ("break_on_late", "true", config.get("break_on_late")),
        ("options", config.get("options"), config.get("options")),
        ("period", format_duration(period_ns), period_ns % 1000),
        ("scheduling", "deadline", scheduling["policy"] == "deadline"),
    ):
        if refused:
            remedy = "leave it out: it has whole microseconds, other, fifo and rr, and skips overruns"
            raise RtmeterError(f"is not for {CYCLICTEST}", field=field, value=value, remedy=remedy)
    if cell.conditions.get("explain"):
        message = f"is not for {CYCLICTEST}, which does not say when its cycles were: none could be explained"
        remedy = "leave it out; or measure the same with posix, or cyclictest as it runs by rtmeter attach"
        raise RtmeterError(message, field="explain", value=True, remedy=remedy)
    if TARGET not in cell.hosts and shutil.which(CYCLICTEST) is None:
        remedy = f"install it: {PACKAGE}"
        raise NotBuiltError("is not installed here", field="adapter", value=CYCLICTEST, remedy=remedy)


def run(
    cell: Cell,
    folder: Path,
    asked: Callable[[], bool],
    heed: Callable[[], None],
    through: list[str],
    root: Root = Root(),  # noqa: B008
) -> Outcome:
    """Runs it to its end, or until ``asked`` to stop; ``heed`` raises where a condition fails the cell;
    ``through``: what its command is put behind. What it wrote is then in ``folder``."""
    interrupted, late = False, False
    limit_s = _SLOWEST * cell.planned_ns / 1e9 + _SILENCE_S  # it does not say how far it is
    limit = time.monotonic() + limit_s
    elsewhere = there(cell, folder, through, root) if isinstance(root, RemoteRoot) else None
    with elsewhere or here(cell, folder, through) as tool:
        while tool.exit_code is None:
            heed()
            late = late or time.monotonic() > limit
            interrupted = interrupted or asked()
            if interrupted or late:
                tool.interrupt()
            tool.wait(_GRACE_S if interrupted or late else _LOOK_EVERY_S)
            if interrupted or late:
                break
        code = tool.exit_code
    if late:
        message = f"did not end within {limit_s:.0f} s, and was ended"
        remedy = "see whether it gets a CPU: what has a higher priority, and how long do its cycles take?"
        return Outcome("failed", RtmeterError(message, field="adapter", value=CYCLICTEST, remedy=remedy))
    if code != 0 or not (folder / FILE).is_file():
        said = (folder / store.STDERR).read_text(errors="replace").strip().splitlines()[-1:]
        ended = "did not end when it was asked to" if code is None else f"ended with exit code {code}"
        message = f"{ended}: {said[0] if said else 'it said nothing'}"
        remedy = "see what it printed in the cell's probe.stderr"
        return Outcome("failed", RtmeterError(message, field="adapter", value=CYCLICTEST, remedy=remedy))
    return Outcome("interrupted" if interrupted else "complete")


def record(cell: Cell, outcome: Outcome, folder: Path, ran: Ran) -> CellRecord:
    """The cell.json of what is in ``folder`` after a run that did not fail; writes its data there.

    Raises RtmeterError if cyclictest's file cannot be read.
    """
    [one] = imported.read_files([folder / FILE], None, None)
    found = imported.content_of(one, folder, cell.requirement)
    effective = {"cpu_dma_latency": 0 if cell.config.get("cpu_dma_latency") else None}
    found = found.changed(
        id=cell.id,
        status=outcome.status,
        axes=cell.axes,
        factors=cell.factors,
        hosts=cell.hosts,
        rig=RigOfCell.of(cell.rig),
        published=cell.published,
        effective=effective,
        conditions=ran.conditions,
        findings=ran.findings,
        warnings=[*found.warnings, *outcome.warnings],
        started=store.stamp(ran.started),
        ended=store.stamp(ran.ended) if ran.ended else None,
    )
    if outcome.error is None:
        return found
    verdict = None
    if cell.requirement is not None:
        verdict = refuse(found.meta, cell.requirement, f"the run failed: {outcome.error.message}")
    return found.changed(status="failed", error=Failure.of(outcome.error), verdict=verdict)
