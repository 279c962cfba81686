"""What is asked of a machine → a machine that endures it, monitored and recorded, and put back afterwards."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, ExitStack, contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any, Protocol

from rtmeter.campaign.condition_options import SystemSettings
from rtmeter.campaign.rules import ATTACHED
from rtmeter.conditions.component import Component
from rtmeter.conditions.recording import Recording
from rtmeter.conditions.releases import LoggedReleases, ToldReleases
from rtmeter.conditions.settings import NOT_JOINED, OF_GROUPS, Launchers, Settings
from rtmeter.conditions.shared_recording import SharedRecording
from rtmeter.conditions.spool_there import followed
from rtmeter.conditions.strain import measured_cpus, strain_of
from rtmeter.errors import RtmeterError
from rtmeter.host.root import Root
from rtmeter.model import LOCAL, Cell, Doubt
from rtmeter.results.store import CLIENT_LOG
from rtmeter.trace.choice import TraceChoice

__all__ = ["NOT_JOINED", "OF_GROUPS", "ConditionPart", "Launchers", "SharedRecording", "Standing", "applied"]


class ConditionPart(Protocol):
    """One kind of condition: entered before the probes start, left when they have ended.

    Entering raises RtmeterError for what cannot be had, with everything of its own taken back. What it
    says may be asked while it stands and after.
    """

    def __enter__(self) -> object: ...

    def __exit__(self, *_: object) -> None: ...

    def check(self) -> None:
        """Raises RtmeterError, while the probes run, once it is known that the cell will fail."""

    def facts(self) -> dict[str, Any]:
        """Of ``effective``, ``achieved`` and ``server``, each a mapping: JSON-ready."""

    def doubts(self) -> list[Doubt]:
        """What was not as it was asked to be."""

    def failure(self) -> RtmeterError | None:
        """What fails the cell, if anything does."""


class Standing:
    """The conditions that hold while a cell is measured."""

    def __init__(self, asked: dict[str, Any], root: Root = Root()) -> None:  # noqa: B008
        self._asked, self.root = asked, root
        self._parts: list[ConditionPart] = []
        self.launchers = Launchers()
        self.server_root: Root | None = None
        """The machine of the server, where that is not this one."""
        self.told: ToldReleases | None = None
        """What is to be told of releases while they are measured, if anything is."""

    def add(self, part: ConditionPart) -> None:
        """Counts a part in: it was entered."""
        self._parts.append(part)
        if isinstance(part, Component):
            self.launchers = replace(self.launchers, server=part.launcher)
            self.server_root = part.root
        if isinstance(part, Settings):
            server = self.launchers.server if self.server_root else part.launcher
            self.launchers = Launchers(part.launcher, server)
        if isinstance(part, Recording) and isinstance(part.releases, ToldReleases):
            self.told = part.releases

    def check(self) -> None:
        """Raises RtmeterError, while the probes run, once it is known that the cell will fail."""
        for part in self._parts:
            part.check()

    def checked_at(self, on_progress: Callable[[dict[str, Any]], None]) -> Callable[[dict[str, Any]], None]:
        """The same, which checks first."""

        def heed(event: dict[str, Any]) -> None:
            self.check()
            on_progress(event)

        return heed

    def facts(self) -> dict[str, Any]:
        """The key ``conditions`` of cell.json: asked, effective, achieved, and ``server`` of another host."""
        facts: dict[str, Any] = {"asked": self._asked, "effective": {}, "achieved": {}}
        for part in self._parts:
            for word, said in part.facts().items():
                facts[word] = facts.get(word, {}) | said
        return facts

    def doubts(self) -> list[Doubt]:
        """What was not as it was asked to be, of all parts."""
        return [doubt for part in self._parts for doubt in part.doubts()]

    def failure(self) -> RtmeterError | None:
        """What fails the cell, if anything does."""
        return next((error for part in self._parts if (error := part.failure()) is not None), None)


def parts_of(
    cell: Cell, folder: Path, root: Root, *, real_time: bool, recording: SharedRecording | None = None
) -> Iterator[ConditionPart]:
    """The parts that the cell asks for, in the order they are entered: what another host has (first, for it
    may be out of reach), settings; traffic, load, monitor; the kernel's events. Each is entered before the
    next is made. ``recording``: as in applied()."""
    if cell.hosts.get("component", LOCAL) != LOCAL:
        yield Component(cell, folder, root)
    traced, settings = recording is None and bool(cell.conditions.get("explain")), None
    if "settings" in cell.conditions or traced:
        asked = SystemSettings.model_validate(cell.conditions.get("settings", {}))
        settings = Settings(asked, root, strict=bool(cell.conditions.get("strict")), traced=traced)
        yield settings
    yield strain_of(cell, folder, root, real_time=real_time)
    if traced and settings is not None:
        choice = TraceChoice.of(cell.conditions["explain"])
        where = settings.instance, folder, measured_cpus(cell), root
        yield Recording(*where, releases_of(cell, folder, root, choice), choice)
    if recording is not None:
        yield recording.part(folder)


def releases_of(
    cell: Cell, folder: Path, root: Root, choice: TraceChoice
) -> LoggedReleases | ToldReleases | None:
    """What tells of a cell's releases while it is measured: of another machine's program nothing does."""
    asked = cell.requirement.deadline_ns if cell.requirement else None, choice.late_ns
    if cell.adapter != ATTACHED:
        return LoggedReleases([folder / CLIENT_LOG, followed(folder)], *asked)
    return ToldReleases(*asked) if root.host == LOCAL else None


@contextmanager
def applied(
    cell: Cell,
    folder: Path,
    root: Root = Root(),  # noqa: B008
    *,
    real_time: bool = True,
    recording: SharedRecording | None = None,
) -> Iterator[Standing]:
    """The cell's conditions, from before its probes start until they have ended.

    ``folder`` is the cell's, for what a part stores; ``real_time``: whether others on the machine can make it
    late, as on a scripted clock nobody can; ``recording``: of several cells together, which what measures
    them makes, instead of one of its own. Raises RtmeterError for what cannot be had.
    """
    standing = Standing(cell.conditions, root)
    with ExitStack() as stack:
        for part in parts_of(cell, folder, root, real_time=real_time, recording=recording):
            entered: AbstractContextManager[object] = part
            stack.enter_context(entered)
            standing.add(part)
        yield standing
