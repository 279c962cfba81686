"""What each middleware adds to a floor: middleware = floor + X, X being the shift of each quantile."""

from __future__ import annotations

from collections.abc import Mapping

from rtmeter import store
from rtmeter.comparison.compared import Asked, Compared, compare_cells
from rtmeter.comparison.environment import differences
from rtmeter.comparison.pairs import Repeats, pairing
from rtmeter.errors import RtmeterError
from rtmeter.repeats import Stored

_OWN = {"options", "server_options", "drive", "before", "apply", "child_threads", "script", "deadline_ns"}
"""Settings in which a middleware may differ from its floor."""


def layers(
    cells: Mapping[str, Repeats], floor: str, asked: Asked, read: store.Read = store.chunks
) -> tuple[list[Compared], list[str]]:
    """Every cell against the cell that is its floor, and the cells that have none.

    ``floor``: an adapter, whose cell of the same measurement and settings is the floor of each; or the
    name of one cell, the floor of all of its measurement. Raises RtmeterError if there is none, or if
    several fit alike.
    """
    firsts = {name: next(iter(repeats.values())) for name, repeats in cells.items()}
    of_adapter = {name: cell for name, cell in firsts.items() if cell.record["adapter"] == floor}
    floors = of_adapter or {name: cell for name, cell in firsts.items() if name == floor}
    if not floors:
        known = sorted({str(cell.record["adapter"]) for cell in firsts.values()})
        remedy = f"give an adapter of the cells ({', '.join(known)}), or the name of a cell"
        raise RtmeterError(
            "is neither an adapter of the cells nor one of them", field="--floor", value=floor, remedy=remedy
        )
    found, without = [], []
    for name, repeats in cells.items():
        if name in floors:
            continue
        chosen = _floor_of(name, firsts[name], floors, any_settings=not of_adapter)
        if chosen is None:
            without.append(name)
        else:
            found.append(compare_cells(pairing(chosen, cells[chosen], name, repeats), asked, read))
    return found, without


def _floor_of(name: str, cell: Stored, floors: Mapping[str, Stored], *, any_settings: bool) -> str | None:
    """The floor whose settings are the most like the cell's; None if it differs in what it must share."""
    fitting: dict[int, list[str]] = {}
    for floor, stored in floors.items():
        unlike = [d.name.partition(".") for d in differences(stored.record, cell.record)]
        asked = (key for section, _, key in unlike if section == "config" or key.startswith("asked."))
        settings = [key.rpartition(".")[2] for key in asked]
        alike = any_settings or all(setting in _OWN for setting in settings)
        if alike and stored.record["measurement"] == cell.record["measurement"]:
            fitting.setdefault(len(settings), []).append(floor)
    if not fitting:
        return None
    best = fitting[min(fitting)]
    if len(best) > 1:
        message = f"fits {name} in {len(best)} cells: {', '.join(best)}"
        adapter = floors[best[0]].record["adapter"]
        raise RtmeterError(message, field="--floor", value=adapter, remedy="name one of these cells")
    return best[0]
