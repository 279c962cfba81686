"""Runs the processes of a chain or a discovery: starts them, lets them begin together, ends those that do not
end by themselves when the others have."""

from __future__ import annotations

import contextlib
import json
import os
import secrets
import selectors
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from rtmeter.conditions import Standing
from rtmeter.conditions.target import monotonic_ns, target_of
from rtmeter.errors import RtmeterError
from rtmeter.measure.probe.guard import Guard
from rtmeter.measure.probe.places import Here, Place, There
from rtmeter.measure.probe.probe_process import ProbeProcess
from rtmeter.measure.probe.probes import Probe
from rtmeter.measure.probe.supervise import (
    OnProgress,
    Stop,
    exit_error,
    out_of_the_way,
    supervised,
)
from rtmeter.model import Cell, Outcome
from rtmeter.results.store import STAGES, STDERR, TEAM

_START_S, _SILENCE_S, _STALL_S, _MORE_S, _GRACE_S, _SLOWEST = 60, 60, 60, 60, 20, 10
_LEAD_NS, _LEAD_THERE_NS = 200_000_000, 1_000_000_000  # until the first release: time to tell every process
_REMEDY = "see what it printed in the cell's probe.stderr"


@dataclass(frozen=True, slots=True)
class Member:
    """One of the processes: its probe config without log and session; whether it ends by itself, and whether
    its progress is the cell's."""

    name: str
    config: dict[str, Any]
    ends: bool = True
    shows: bool = False


@dataclass(frozen=True, slots=True)
class Team:
    """All of them; how long one that ends by itself may settle no release, and how long they are to take.

    ``drain_ns``: of a chain, how long all go on once the last of them has sent its last.
    """

    members: Sequence[Member]
    quiet_ns: int
    planned_ns: int
    drain_ns: int | None = None


def log_of(folder: Path, name: str) -> Path:
    """The sample log of a process."""
    return folder / STAGES / f"{name}.rtlog"


def _has_measured(one: ProbeProcess) -> bool:
    """Whether it has ended, or will by itself: it may hold what the others still need (a ROS master)."""
    return one.exit_code is not None or one.event("end") is not None


def run_together(
    cell: Cell,
    probe: Probe,
    team: Team,
    folder: Path,
    stop: Stop,
    on_progress: OnProgress,
    standing: Standing,
) -> Outcome:
    """Measures the cell; the logs of its processes are then in ``folder``. Nothing is left running."""
    return supervised(
        cell, stop, lambda guard: _Run(cell, probe, team, folder, stop, on_progress, standing, guard)
    )


class _Run:
    def __init__(
        self,
        cell: Cell,
        probe: Probe,
        team: Team,
        folder: Path,
        stop: Stop,
        on_progress: OnProgress,
        standing: Standing,
        guard: Guard,
    ) -> None:
        self.failure: RtmeterError | None = None
        self._cell, self._probe, self._members = cell, probe, team.members
        self._folder, self._stop = folder, stop
        self._on_progress, self._standing, self._guard = on_progress, standing, guard
        self._target = target_of(cell)
        self._running: list[tuple[Member, ProbeProcess]] = []
        self._kill_at: float | None = None
        self._stall_s = _STALL_S + team.quiet_ns / 1e9
        self._begun_at: float | None = None
        self._drain_ns, self._told_end = team.drain_ns, False
        self._lasts_s = _MORE_S + _SLOWEST * team.planned_ns / 1e9

    def measure(self) -> None:
        """Raises RtmeterError for what fails."""
        session = f"rtm{os.getpid():x}{secrets.token_hex(3)}"
        (self._folder / STAGES).mkdir()
        team = {"config": self._cell.config, "members": [member.name for member in self._members]}
        (self._folder / STAGES / TEAM).write_text(json.dumps(team), encoding="utf-8")
        for member in self._members:
            own = self._folder / STAGES / member.name
            own.mkdir()
            config = member.config | {"session": session, "log": str(log_of(self._folder, member.name))}
            started = ProbeProcess(self._probe, config, own, self._place())
            self._running.append((member, started))
            self._guard.watch(started.pid)
        with out_of_the_way(None if self._target else self._cell.config.get("cpus")):
            self._see_to_its_end()

    def _place(self) -> Place:
        through = self._standing.launchers.client(None)
        return Here(through) if self._target is None else There(self._target, through, told=True)

    def _see_to_its_end(self) -> None:
        start_s = _START_S + self._cell.config.get("connect_timeout_ns", 0) / 1e9
        limit, late = time.monotonic() + start_s, False
        while unready := [member.name for member, one in self._running if not one.event("ready")]:
            if late:
                raise self._error(f"process {unready[0]} did not get ready")
            late = time.monotonic() > limit  # this process may have stood still: what was said is heard first
            self._listen()
            if self._kill_at is not None:
                self._until_all_ended()
                return
        self._begin()
        limit, late = time.monotonic() + self._lasts_s, False
        while any(member.ends and not _has_measured(one) for member, one in self._running):
            if late:
                raise self._error(f"goes on beyond its end: it has not ended after {self._lasts_s:.0f} s")
            self._listen()
            self._tell_end()
            late = self._kill_at is None and time.monotonic() > limit
        self._ask_to_end()
        self._until_all_ended()

    def _begin(self) -> None:
        lead_ns = _LEAD_NS if self._target is None else _LEAD_THERE_NS
        first_ns = monotonic_ns(self._standing.root) + lead_ns
        for _, one in self._running:
            one.tell(f"go {first_ns}\n")
        self._begun_at = time.monotonic()

    def _tell_end(self) -> None:
        """When the last source of all has sent its last; who has a source waits for it."""
        ending = [one for member, one in self._running if member.ends]
        since = [silent["since_ns"] for one in ending if (silent := one.event("silent"))]
        if self._drain_ns is None or self._told_end or len(since) < len(ending):
            return
        self._told_end = True
        for one in ending:
            one.tell(f"go {max(since) + self._drain_ns}\n")

    def _until_all_ended(self) -> None:
        while any(one.exit_code is None for _, one in self._running):
            self._listen()

    def _listen(self) -> None:
        """Waits a little for what happens next, and sees to it; what ended ones have said is heard, too."""
        alive = [(member, one) for member, one in self._running if one.exit_code is None]
        heard = [(member, one) for member, one in self._running if not one.silent]
        with selectors.DefaultSelector() as selector:
            for _, one in heard:
                selector.register(one.status_fd, selectors.EVENT_READ)
            for _, one in alive:
                selector.register(one.exited_fd, selectors.EVENT_READ)
            if not self._stop.asked:
                selector.register(self._stop.fd, selectors.EVENT_READ)
            selector.select(timeout=0.25)
        self._guard.beat()
        for member, one in heard:
            for event in [event for event in one.read_events() if event["event"] == "progress"][-1:]:
                if member.shows:
                    released = min(int(event.get("released", 0)), int(event.get("of", 0)))
                    self._on_progress({**event, "released": released})
        for member, one in alive:
            if time.monotonic() - one.heard_at > _SILENCE_S:
                raise self._error(f"process {member.name} has not been heard of for {_SILENCE_S} s")
            if self._begun_at is None or self._kill_at is not None or not member.ends:
                continue
            if one.event("silent"):  # it waits for the others, and then for its end
                continue
            if time.monotonic() - max(one.advanced_at, self._begun_at) > self._stall_s:
                raise self._error(f"process {member.name} has settled no release for {self._stall_s:.0f} s")
        self._heed_the_dead()
        if self._stop.asked and self._kill_at is None:
            self._ask_to_end()
        if self._stop.asked > 1 or (self._kill_at is not None and time.monotonic() > self._kill_at):
            raise self._error("did not end when it was asked to")

    def _heed_the_dead(self) -> None:
        """A process that ends before it should ends the run."""
        for member, one in self._running:
            code = one.exit_code
            early = code is not None and self._kill_at is None and not (member.ends and code == 0)
            if early and self.failure is None:
                one.read_events()
                self.failure = exit_error(one) or self._error(f"process {member.name} ended in mid-run")
                self._ask_to_end()

    def _ask_to_end(self) -> None:
        if self._kill_at is None:
            self._kill_at = time.monotonic() + _GRACE_S + self._cell.config["loss_timeout_ns"] / 1e9
        for _, one in self._running:
            if not _has_measured(one):
                one.ask_to_end()

    def _error(self, message: str) -> RtmeterError:
        return RtmeterError(message, field="probe", value=self._probe.name, remedy=_REMEDY)

    def outcome(self) -> Outcome:
        """How it ended; only once it is closed."""
        warnings = tuple(doubt for _, one in self._running for doubt in one.doubts())
        failure = self.failure or next((e for _, one in self._running if (e := exit_error(one))), None)
        if failure is not None:
            return Outcome("failed", failure, warnings)
        complete = all(one.exit_code == 0 for member, one in self._running if member.ends)
        return Outcome("complete" if complete else "interrupted", None, warnings)

    def close(self) -> None:
        """Leaves nothing running; what they printed is then in one file."""
        (self._folder / STAGES / TEAM).unlink(missing_ok=True)
        for _, one in self._running:
            one.kill()
        for member, one in self._running:
            try:
                one.close()
            except RtmeterError as error:
                self.failure = self.failure or error
            own = self._folder / STAGES / member.name
            with contextlib.suppress(OSError):
                printed = (own / STDERR).read_bytes()
                with (self._folder / STDERR).open("ab") as all_of_them:
                    all_of_them.write(printed)
                (own / STDERR).unlink()
                own.rmdir()
