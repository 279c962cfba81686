"""What keeps cells from being measured on this machine: looked for, with nothing changed and nothing run."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable
from functools import partial

from rtmeter.campaign.condition_options import SystemSettings
from rtmeter.conditions import tracing
from rtmeter.conditions.companion import require_program
from rtmeter.conditions.settings import changes
from rtmeter.errors import RtmeterError
from rtmeter.host.online import require_online
from rtmeter.host.root import Root
from rtmeter.measure.cell import source_of
from rtmeter.measure.probe.probes import NotBuiltError
from rtmeter.model import LOCAL, TARGET, Cell

_WHERE_GROUPS_ARE_MADE = ("isolate", "stray_tasks", "rt_runtime")
"""Settings that can be looked at only while they are made; whether there are such groups is told before."""


def lacking(cell: Cell, root: Root = Root()) -> list[RtmeterError]:  # noqa: B008
    """What the cell lacks here, with what would get it: its adapter, programs, settings of the machine.

    An adapter that is not here is a NotBuiltError: the cell would be skipped; of all else it would fail.
    Other hosts are not looked at.
    """
    looks: list[Callable[[], None]] = [partial(_look_at_source, cell)]
    if TARGET in cell.hosts:
        return [error for look in looks if (error := _of(look)) is not None]
    load, traffic = cell.conditions.get("load", {}), cell.conditions.get("traffic", {})
    if load and load != {"preset": "idle"}:
        looks.append(partial(require_program, "stress-ng", "load", root))
    if traffic:
        looks.append(partial(require_program, "iperf3", "traffic", root))
    named = {"cpus": cell.config.get("cpus"), "child_cpus": cell.config.get("child_cpus")}
    named |= {"load.cpus": load.get("cpus"), "traffic.cpus": traffic.get("cpus")}
    if cell.hosts.get("component", LOCAL) == LOCAL:
        named["server_cpus"] = cell.server_cpus
    looks += [partial(require_online, cpus or (), field, root) for field, cpus in named.items()]
    if cell.conditions.get("explain"):
        looks.append(partial(tracing.require, root))
    if "settings" in cell.conditions:
        asked = SystemSettings.model_validate(cell.conditions["settings"])
        if asked.unavailable is None:
            looks.append(partial(_look_at, asked, root))
    return [error for look in looks if (error := _of(look)) is not None]


def refused(cells: Iterable[Cell]) -> dict[str, RtmeterError]:
    """The cells, by id, that the source of each would refuse, such as for polling threads without a CPU of
    their own, or its adapter, for options that it does not have; not those whose adapter is elsewhere: their
    campaign may be planned here all the same."""
    found = {cell.id: _of(partial(_look_at_source, cell)) for cell in cells}
    return {name: e for name, e in found.items() if e is not None and not isinstance(e, NotBuiltError)}


def _look_at_source(cell: Cell) -> None:
    source_of(cell).check()


def _of(look: Callable[[], None]) -> RtmeterError | None:
    try:
        look()
    except RtmeterError as error:
        return error
    return None


def _look_at(asked: SystemSettings, root: Root) -> None:
    """Raises RtmeterError for a setting that cannot be had here."""
    alone = asked.model_copy(update=dict.fromkeys(_WHERE_GROUPS_ARE_MADE))
    for _ in changes(alone, root):
        pass
    for name in ("isolate", "rt_runtime"):
        one = SystemSettings.model_validate(asked.model_dump(mode="json", include={name}))
        next(changes(one, root), None)
    given = asked.model_dump(exclude_none=True)
    if os.geteuid() != 0 and given:
        remedy = "run it as root (sudo), or leave out what cannot be had: conditions.unavailable: leave_out"
        raise RtmeterError("needs root", field="conditions", value=", ".join(given), remedy=remedy)
