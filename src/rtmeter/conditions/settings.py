"""System settings of a cell: journalled, made, read back, and undone in reverse."""

from __future__ import annotations

import errno
import shlex
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import Any, Self

from rtmeter.campaign.condition_options import SystemSettings
from rtmeter.conditions import interrupts, isolation, kernel_settings, network, rt_groups, tracing
from rtmeter.conditions.change import Change, refuse
from rtmeter.conditions.journal import Journal, JournalEntry, restoring
from rtmeter.conditions.resources import Affinity, Cgroup, Controller, Made, Resource, ThreadResource
from rtmeter.conditions.undo import Undone, undo
from rtmeter.errors import RtmeterError
from rtmeter.host.cgroups import find
from rtmeter.host.online import require_online
from rtmeter.host.root import Root
from rtmeter.model import Doubt

Launcher = Callable[[tuple[int, ...] | None], list[str]]
"""What a probe's command is put behind, by the CPUs that a server was given (None: none, or no server)."""


def no_launcher(server_cpus: tuple[int, ...] | None) -> list[str]:
    """Of a cell that has no groups."""
    return []


@dataclass(frozen=True, slots=True)
class Launchers:
    """That of the probe which measures, and that of its server."""

    client: Launcher = no_launcher
    server: Launcher = no_launcher


_TOGETHER = ("isolate", "stray_tasks", "rt_runtime")
"""Settings that build on each other's groups."""

OF_GROUPS = ("isolate", "rt_runtime", "net_prio")
"""Settings of the groups that a program is started in; one that runs already is in none of them."""

NOT_JOINED = 97
"""Exit code of a probe's process that could not be put into its group, before it became the probe."""


def changes(asked: SystemSettings, root: Root) -> Iterator[Change]:
    """What the settings change here, each to be made before the next is asked for.

    Raises RtmeterError for a setting that cannot be had here.
    """
    of_devices = {f"irq_cpus.{device}": cpus for device, cpus in (asked.irq_cpus or {}).items()}
    named = {"workqueue_cpus": asked.workqueue_cpus, "isolate": asked.isolate} | of_devices
    for setting, listed in named.items():
        require_online(listed or (), f"conditions.{setting}", root)
    single: tuple[tuple[Any, Any], ...] = (
        (kernel_settings.governor, asked.governor),
        (kernel_settings.rt_throttling, asked.rt_throttling),
        (kernel_settings.timer_migration, asked.timer_migration),
        (kernel_settings.workqueue_cpus, asked.workqueue_cpus),
        (interrupts.irq_cpus, asked.irq_cpus),
        (interrupts.irq_priority, asked.irq_priority),
        (interrupts.ksoftirqd_priority, asked.ksoftirqd_priority),
        (network.qdiscs, asked.qdisc),
        (network.net_prio, asked.net_prio),
    )
    for plan, value in single:
        if value is not None:
            yield from plan(value, root)
    cpus, cpusets = find("cpu", root), find("cpuset", root)  # before anything is moved
    isolated = ""
    if asked.isolate is not None:
        yield from isolation.isolate(asked.isolate, asked.stray_tasks == "move", cpusets, root)
        isolated = cpusets.group if cpusets else ""
    if asked.rt_runtime is not None:
        yield from rt_groups.rt_runtime(asked.rt_runtime, cpus, isolated, root)


def _given(asked: SystemSettings) -> dict[str, Any]:
    """The settings that are asked for, as they are stored."""
    return asked.model_dump(mode="json", exclude_none=True, exclude={"unavailable"})


class Settings:
    """The part of a cell's conditions that is settings of the machine."""

    def __init__(
        self,
        asked: SystemSettings,
        root: Root,
        *,
        strict: bool = False,
        traced: bool = False,
        more: Iterable[Change] = (),
    ) -> None:
        """``traced``: the cell has a tracefs instance of its own, ``instance``, while this stands; ``more``:
        what else is changed, which no setting asks for."""
        self._asked, self._root, self._strict, self._traced = asked, root, strict, traced
        self._more = more
        self.instance = ""
        self._entries: list[JournalEntry] = []
        self._effective: dict[str, dict[str, str]] = {}
        self._refused: list[RtmeterError] = []
        self._undone: list[Undone] = []
        self._journal_stays: RtmeterError | None = None
        self._groups: list[str] = []
        self._left_out: dict[str, RtmeterError] = {}
        self._wanted: dict[Resource, Change] = {}

    def __enter__(self) -> Self:
        self._journal = Journal(self._root)
        try:
            for asked in self._in_turn():
                self._apply(asked)
            if self._traced:
                tracing.sweep(self._root)
            for change in tracing.own_instance(self._root) if self._traced else ():
                self._make(change)
                self.instance = change.resource.name
            for change in self._more:
                self._make(change)
        except BaseException as error:
            self._undo()
            if isinstance(error, RtmeterError):
                self._complete(error)
                if left := [str(undone) for undone in self._undone if not undone.settled]:
                    error.message += (
                        f"; and not all is as it was: {'; '.join(left)}; run `{restoring(self._root)}`"
                    )
            raise
        return self

    def __exit__(self, *_: object) -> None:
        self._undo()

    def launcher(self, server_cpus: tuple[int, ...] | None = None) -> list[str]:
        """What a probe's command is put behind so that it starts in the cell's groups; empty without any.

        ``server_cpus``: those that a server was given; one that has none of the isolated ones stays out.
        """
        if not self._groups or (
            server_cpus is not None and self._asked.isolate and not {*server_cpus} & {*self._asked.isolate}
        ):
            return []
        files = [shlex.quote(str(self._root.at(f"{group}/cgroup.procs"))) for group in self._groups]
        join = "".join(f"echo $$ > {file} && grep -qx $$ {file} || exit {NOT_JOINED}; " for file in files)
        return ["/bin/sh", "-c", join + 'exec "$0" "$@"']

    def check(self) -> None:
        """Settings are looked at when all is over."""

    def facts(self) -> dict[str, Any]:
        """Setting → what of the machine it changed → as it was read back; and why which were left out."""
        left_out = {name: error.message for name, error in self._left_out.items()}
        facts: dict[str, Any] = {"effective": {"settings": self._effective}}
        return facts | ({"left_out": left_out} if left_out else {})

    def doubts(self) -> list[Doubt]:
        """Settings that were refused where that is no error, that did not last, or could not be undone."""
        doubts = [
            Doubt("setting_left_out", f"{name}: {error.message}", error.remedy or "")
            for name, error in self._left_out.items()
        ]
        for field in dict.fromkeys(error.field for error in self._refused):
            first, *others = [error for error in self._refused if error.field == field]
            more = f" (and {len(others)} more)" if others else ""
            doubts.append(Doubt("setting_refused", f"{field}: {first.message}{more}", first.remedy or ""))
        for undone in self._undone:
            if undone in self._lost():
                hint = "what else sets it? it did not hold for the whole run"
                doubts.append(Doubt("setting_changed_meanwhile", f"{undone.entry.setting}: {undone}", hint))
            elif not undone.settled:
                hint = f"run `{restoring(self._root)}`"
                doubts.append(Doubt("setting_not_put_back", f"{undone.entry.setting}: {undone}", hint))
        if error := self._journal_stays:
            message = f"all is put back, but the journal {error.value} {error.message}"
            doubts.append(Doubt("journal_stays", message, error.remedy or ""))
        return doubts

    def failure(self) -> RtmeterError | None:
        """With ``strict``: a setting that was refused, or did not last."""
        if not self._strict:
            return None
        lost = [refuse(u.entry.setting, str(u), "find out what else sets it") for u in self._lost()]
        failure = next(iter([*self._left_out.values(), *self._refused, *lost]), None)
        return failure and self._complete(failure)

    def _lost(self) -> list[Undone]:
        """Settings that others have changed meanwhile; which CPUs a task chooses is its own affair, and that
        tracefs or a controller is used by others disturbs nobody."""
        shared = (tracing.Mount, Controller)
        changed = [
            undone
            for undone in self._undone
            if undone.ending == "changed_since" and not isinstance(undone.entry.resource, shared)
        ]
        return [
            u for u in changed if not (isinstance(u.entry.resource, Affinity) and u.entry.resource.widened)
        ]

    def _in_turn(self) -> Iterator[SystemSettings]:
        """All that is asked; one by one where what cannot be had is left out."""
        if self._asked.unavailable is None:
            yield self._asked
            return
        given = _given(self._asked)
        together = {name: given.pop(name) for name in _TOGETHER if name in given}
        for some in [*({name: value} for name, value in given.items()), together]:
            yield SystemSettings.model_validate(some)

    def _apply(self, asked: SystemSettings) -> None:
        """Makes what is asked. What cannot be had is left out, where that is allowed: nothing of it stays."""
        entries, groups, effective = len(self._entries), len(self._groups), set(self._effective)
        wanted = dict(self._wanted)
        try:
            for change in changes(asked, self._root):
                self._make(change)
        except RtmeterError as error:
            if self._asked.unavailable is None or not (error.field or "").startswith("conditions."):
                raise
            self._left_out[", ".join(_given(asked))] = self._complete(error)
            undone = undo(self._entries[entries:], self._root)
            self._entries[entries:] = [one.entry for one in reversed(undone) if not one.settled]
            del self._groups[groups:]
            self._wanted = wanted
            self._effective = {key: self._effective[key] for key in self._effective if key in effective}

    def _make(self, change: Change) -> None:
        resource, root = change.resource, self._root
        before = self._wanted.setdefault(resource, change)
        if before.setting != change.setting and not resource.same(before.value, change.value):
            message = f"makes {resource.name} {change.value}, which conditions.{before.setting} makes "
            raise change.error(
                f"{message}{before.value}", "the two share it: give both the same, or leave out one"
            )
        old = self._read(change)
        is_made = isinstance(resource, Made)
        if is_made and old is not None:
            remedy = f"remove it, with what is in it: rmdir {root.at(resource.name)}"
            raise change.error(f"there is a group {resource.name} already", remedy)
        if old is None and not is_made:
            if isinstance(resource, ThreadResource):
                return  # it has ended
            self._refuse(change, change.missing())
            return
        if change.remembered:
            self._entries.append(self._journal.intend(change.setting, resource, old, change.value))
            return
        if not resource.same(old, change.value):
            if not change.covered:
                self._entries.append(self._journal.intend(change.setting, resource, old, change.value))
            try:
                resource.write(root, change.value)
            except ProcessLookupError:
                return
            except OSError as error:
                self._refuse(change, change.refused(error, root), error.errno in (errno.EROFS, errno.EACCES))
                return
        if isinstance(resource, Cgroup) and change.setting != "stray_tasks":
            self._groups.append(resource.name)
        found = self._read(change)
        if found is None and isinstance(resource, ThreadResource):
            return
        self._effective.setdefault(change.setting, {})[resource.name] = str(found)
        if not resource.same(found, change.value):
            if found is not None and not change.covered and not resource.same(found, old):
                # what the kernel made of it is rtmeter's doing too, and not somebody else's
                self._entries.append(self._journal.intend(change.setting, resource, old, found))
            self._refuse(change, change.not_effective(found))

    def _read(self, change: Change) -> str | None:
        try:
            return change.resource.read(self._root)
        except OSError as error:
            raise change.unreadable(error) from None

    def _complete(self, error: RtmeterError) -> RtmeterError:
        """The error with the value of its setting as it was asked for."""
        option, _, setting = (error.field or "").partition(".")
        key, _, device = setting.partition(".")
        if setting == tracing.SETTING:
            error.field, error.value = setting, "yes"
        elif option == "conditions" and key in (given := self._asked.model_dump(mode="json")):
            value = given[key]
            value = value[device] if device else value
            error.value = ("on" if value else "off") if isinstance(value, bool) else value
        return error

    def _refuse(self, change: Change, error: RtmeterError, forbidden: bool = False) -> None:
        """Raises, unless the kernel may keep it as it is; what one may not do at all is no such thing."""
        if forbidden or not change.optional:
            raise error from None
        self._refused.append(error)

    def _undo(self) -> None:
        self._undone = undo(self._entries, self._root)
        self._journal_stays = self._journal.close(settled=all(undone.settled for undone in self._undone))
