"""What each middleware adds to a floor: middleware = floor + X, X being the shift of each quantile."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path

from rtmeter.errors import RtmeterError
from rtmeter.judge.compared import Compared, ComparisonOptions, compare_cells
from rtmeter.judge.environment import SHAPE, differences
from rtmeter.judge.pairs import Repeats, pairing
from rtmeter.results import store
from rtmeter.results.cells import StoredCell, by_name

BARE = "posix"
"""The adapter that is the floor of all others: nothing but system calls."""

_NO_MIDDLEWARE = {BARE, "null", "template", "import"}

_OWN = {
    *("options", "server_options", "drive", "receive", "components", "before", "script", "deadline_ns"),
    *("apply", "child_threads", "child_cpus"),
}
"""Settings in which a middleware may differ from its floor; drive and threads must be the same in effect."""


def layers(
    cells: Mapping[str, Repeats], floor: str, asked: ComparisonOptions, read: store.ReadSamples = store.chunks
) -> tuple[list[Compared], list[str]]:
    """Every cell against the cell that is its floor, and the cells that have none.

    ``floor``: an adapter, whose cell of the same measurement and settings is the floor of each; or the
    name of one cell, the floor of all of its measurement. Raises RtmeterError if there is none, or if
    several fit alike.
    """
    firsts = {name: next(iter(repeats.values())) for name, repeats in cells.items()}
    of_adapter = {name: cell for name, cell in firsts.items() if cell.record.adapter == floor}
    floors = of_adapter or {name: cell for name, cell in firsts.items() if name == floor}
    if not floors:
        known = sorted({cell.record.adapter for cell in firsts.values()})
        remedy = f"give an adapter of the cells ({', '.join(known)}), or the name of a cell"
        raise RtmeterError(
            "is neither an adapter of the cells nor one of them", field="--floor", value=floor, remedy=remedy
        )
    found, without, asked = [], [], replace(asked, added=True)
    for name, repeats in cells.items():
        if name in floors:
            continue
        chosen = _floor_of(name, firsts[name], floors, any_settings=not of_adapter)
        if chosen is None:
            without.append(name)
        else:
            found.append(compare_cells(pairing(chosen, cells[chosen], name, repeats), asked, read))
    return found, without


@dataclass(frozen=True, slots=True)
class Floors:
    """A run's cells over bare system calls, the cells of a middleware that have no floor there, and those
    whose floor cannot be told, with the reason."""

    over: tuple[Compared, ...]
    without: tuple[str, ...]
    refused: tuple[tuple[str, str], ...]


def floors(path: Path, asked: ComparisonOptions, read: store.ReadSamples = store.chunks) -> Iterator[Floors]:
    """Of each run under the path that measured a middleware; cells that cannot be read are left out."""
    for stored in measured_runs(path):
        try:
            cells = by_name(stored)
        except RtmeterError as error:  # cells of one name that are no repeats
            named = [cell.record.id for cell in stored if cell.record.adapter not in _NO_MIDDLEWARE]
            if named:
                yield Floors((), (), ((named[0], str(error)),))
            continue
        above = [n for n, repeats in cells.items() if _adapter(repeats) not in _NO_MIDDLEWARE]
        bare = {n: repeats for n, repeats in cells.items() if _adapter(repeats) == BARE}
        if above:
            yield _floors(cells, above, bare, asked, read)


def measured_runs(path: Path) -> Iterator[list[StoredCell]]:
    """The cells of each run under the path that can be compared; what another tool measured is none."""
    runs: dict[Path, list[StoredCell]] = {}
    for cell in _readable(path):
        if cell.record.usable and cell.record.measurement != "imported":
            runs.setdefault(cell.folder.parent, []).append(cell)
    yield from runs.values()


def _readable(path: Path) -> Iterator[StoredCell]:
    with suppress(RtmeterError):  # there is no cell, or none any more
        for folder in store.cell_folders(path):
            with suppress(RtmeterError):
                yield StoredCell(folder, store.read_cell(folder))


def _floors(
    cells: Mapping[str, Repeats],
    above: list[str],
    bare: Mapping[str, Repeats],
    asked: ComparisonOptions,
    read: store.ReadSamples,
) -> Floors:
    over, without, refused = [], [], []
    for name in above:
        if not bare:
            without.append(name)
            continue
        try:
            found, lacking = layers({**bare, name: cells[name]}, BARE, asked, read)
        except RtmeterError as error:
            refused.append((name, str(error)))
        else:
            over += found
            without += lacking
    return Floors(tuple(over), tuple(without), tuple(refused))


def _adapter(repeats: Repeats) -> str:
    return next(iter(repeats.values())).record.adapter


def transport(cell: StoredCell) -> str | None:
    """How the cell's messages travelled, where its adapter says."""
    transport = cell.record.adapter_facts.get("transport")
    return None if transport is None else str(transport)


def _floor_of(
    name: str, cell: StoredCell, floors: Mapping[str, StoredCell], *, any_settings: bool
) -> str | None:
    """The floor over the same transport, and of these the one whose settings are the most like the cell's;
    None if it differs in what it must share: a floor has the drive and the threads of what stands on it."""
    fitting: dict[tuple[bool, int], list[str]] = {}
    for floor, stored in floors.items():
        differs = differences(stored.record, cell.record)
        unlike = [d.name.partition(".") for d in differs]
        asked = (key for section, _, key in unlike if section == "config" or key.startswith("asked."))
        settings = [key.rpartition(".")[2] for key in asked]
        same_shape = not any(d.refusal for d in differs if d.name in SHAPE)
        alike = any_settings or (same_shape and all(setting in _OWN for setting in settings))
        if alike and stored.record.measurement == cell.record.measurement:
            other_way = transport(stored) != transport(cell)
            fitting.setdefault((other_way, len(settings)), []).append(floor)
    if not fitting:
        return None
    best = fitting[min(fitting)]
    if len(best) > 1:
        message = f"fits {name} in {len(best)} cells: {', '.join(best)}"
        adapter = floors[best[0]].record.adapter
        raise RtmeterError(message, field="--floor", value=adapter, remedy="name one of these cells")
    return best[0]
