"""A campaign on many machines at once: a thread for each rig, which measures its own cells in order."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Mapping
from contextlib import ExitStack
from typing import Any, Protocol

from rtmeter.conditions.target import FIELD, held
from rtmeter.errors import RtmeterError
from rtmeter.host.labgrid import acquired
from rtmeter.host.remote_lock import NoLockError
from rtmeter.host.ssh import Ssh
from rtmeter.measure.probe.supervise import Stop
from rtmeter.measure.run import Run, Watcher
from rtmeter.model import Cell, Rig
from rtmeter.results.record import CellRecord
from rtmeter.values import format_duration

_ASK_EVERY_S = 5.0
_LOOK_EVERY_S = 0.1
_KILLED_WITHIN_S = 10.0


class RigWatcher(Watcher, Protocol):
    """Who is told how a rig's part of the run goes."""

    def says(self, words: str) -> None:
        """What the rig does, while it measures nothing."""


class Stops:
    """A Stop for each rig, asked all at once, as one."""

    def __init__(self, rigs: tuple[Rig, ...]) -> None:
        self.asked = 0
        self.of = {rig.name: Stop() for rig in rigs}
        self._over: set[str] = set()

    def ask(self) -> None:
        """May be called from a signal handler."""
        self.asked += 1
        for stop in self.of.values():
            stop.ask()

    def over(self, name: str) -> None:
        """Nothing more is done on that rig."""
        self._over.add(name)

    @property
    def heeded(self) -> bool:
        """Whether every rig that is not over yet looks at its own often."""
        return all(stop.heeded for stop in self._open())

    @property
    def keeping(self) -> bool:
        """Whether nothing is left but to keep what was measured."""
        return all(stop.keeping for stop in self._open())

    def _open(self) -> list[Stop]:
        return [stop for name, stop in self.of.items() if name not in self._over]


def measure_on_rigs(
    run: Run, rigs: tuple[Rig, ...], stops: Stops, watcher_of: Callable[[str], RigWatcher]
) -> list[str]:
    """Measures what is not there yet, each rig at its own pace, until all is done or ``stops`` is asked.

    Returns the id of every cell that is there then, in running order. A rig that does not answer, or whose
    place cannot be acquired, fails its own cells. Raises the first RtmeterError of a result that cannot be
    written, once the other rigs are done.
    """
    parts = [_Part(run, rig, stops.of[rig.name], watcher_of(rig.name)) for rig in rigs]
    with run.going_on():
        threads = [threading.Thread(target=part, args=(stops,), daemon=True) for part in parts]
        for thread in threads:
            thread.start()
        try:
            for thread in threads:
                thread.join()
        except BaseException:  # killed: what they wait for is, too
            limit = time.monotonic() + _KILLED_WITHIN_S
            for thread in threads:
                thread.join(max(0.0, limit - time.monotonic()))
            raise
    for part in parts:
        if part.error is not None:
            raise part.error
    there = {name for part in parts for name in part.there}
    return [cell.id for cell in run.cells if cell.id in there]


class _Part:
    """What one rig has of a run."""

    def __init__(self, run: Run, rig: Rig, stop: Stop, watcher: RigWatcher) -> None:
        self._run, self._rig, self._stop, self._watcher = run, rig, stop, watcher
        self._dead: RtmeterError | None = None
        self._seen = False  # whether it answered since a cell failed
        self.there: list[str] = []
        self.error: BaseException | None = None

    def __call__(self, stops: Stops) -> None:
        try:
            self._measure()
        except BaseException as error:
            self.error = error
        finally:
            stops.over(self._rig.name)

    def _measure(self) -> None:
        mine = [i for i, cell in enumerate(self._run.cells) if cell.rig and cell.rig.name == self._rig.name]
        with ExitStack() as stack:
            if self._rig.place is not None and any(not self._run.has(self._run.cells[i]) for i in mine):
                self._watcher.says(f"acquires the place {self._rig.place}")
                try:
                    stack.enter_context(acquired(self._rig.place, self._watcher.says))
                except RtmeterError as error:
                    self._dead = error
            self.there = self._run.measure_cells(mine, self._stop, self._watcher, self._refused)

    def _refused(self, cell: Cell, before: CellRecord | None) -> RtmeterError | None:
        """Why the cell is known to fail; ``before``: the one measured before it."""
        del cell
        failed = before is not None and before.status == "failed"
        if failed:
            self._seen = False
        if self._dead is None and not self._seen:
            self._dead = self._silent(failed)
            self._seen = self._dead is None
        return self._dead

    def _silent(self, failed: bool) -> RtmeterError | None:
        """Why the rig does not answer, once it has not for as long as it may, or nobody waits any more; after
        a cell that failed also why it is not free: a link that was cut may hold its lock for a while. What
        keeps it from ever being locked is told at once."""
        limit = time.monotonic() + self._rig.patience_ns / 1e9
        with self._stop.being_heeded():
            while True:
                words = "does not answer"
                try:
                    Ssh(self._rig.address, FIELD).run(":")
                    words = "is not free"
                    if failed:
                        with held(self._rig.address):
                            pass
                    return None
                except NoLockError as error:
                    return _named(error, self._rig, "cannot be locked")
                except RtmeterError as error:
                    if time.monotonic() >= limit or self._stop.asked:
                        waited = f" for {format_duration(ns)}" if (ns := self._rig.patience_ns) else ""
                        return _named(error, self._rig, f"has not answered{waited}")
                self._watcher.says(words)
                again = time.monotonic() + _ASK_EVERY_S
                while time.monotonic() < min(again, limit) and not self._stop.asked:
                    time.sleep(_LOOK_EVERY_S)


def _named(error: RtmeterError, rig: Rig, what: str) -> RtmeterError:
    message = f"{rig.name} {what}: {error.message}"
    return RtmeterError(message, field=error.field, value=error.value, remedy=error.remedy)


def one_machine_twice(records: Mapping[str, CellRecord]) -> list[str]:
    """What is to be said of rigs that are one machine, or have the id of one; ``records``: a cell of each."""
    seen: dict[Any, tuple[str, Any]] = {}
    found = []
    for name, record in sorted(records.items()):
        own, boot = record.machine.get("machine_id"), record.machine.get("boot_id")
        other, others_boot = seen.setdefault(own, (name, boot)) if own else (name, boot)
        if other == name:
            continue
        if boot == others_boot:
            found.append(f"the rigs {other} and {name} are one machine: name it once")
        else:
            found.append(
                f"the rigs {other} and {name} have one machine-id, as clones of one image do: only "
                "their names tell them apart (systemd-machine-id-setup gives one its own)"
            )
    return found
