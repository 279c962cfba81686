"""The callbacks of a ROS 2 program as a table."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from rtmeter.measure.programs.named import Called


def show_callbacks(called: Sequence[Called], lacking: Sequence[str], *, as_json: bool) -> None:
    """What was called in the seconds of a look, and what the program lacks to tell more."""
    from rtmeter.cli.columns import print_table
    from rtmeter.cli.output import console, print_json
    from rtmeter.measure.programs.looking import LOOK_S
    from rtmeter.results.words import us
    from rtmeter.trace.rcl import LACKING
    from rtmeter.values import visible

    if as_json:
        callbacks = [one.to_json() for one in called]
        print_json({"seconds": LOOK_S, "callbacks": callbacks, "lacking": list(lacking)})
        return
    from rich.table import Table

    table = Table()
    for head in ("callback", "node", "thread", "id", "calls", "period\nus"):
        table.add_column(head)
    for one in called:
        names = ", ".join(dict.fromkeys(task.name for task in one.tasks))
        ids = ", ".join(str(task.tid) for task in one.tasks)
        calls, period = str(len(one.callback.jobs)), us(one.callback.period_ns)
        named = map(visible, (one.callback.name, one.callback.node or "–", names))
        table.add_row(*named, ids, calls, period)
    print_table(console(), table)
    said = [f"this program has no {function}: {LACKING[function]}" for function in lacking]
    if any(one.callback.node is None for one in called):
        said.append(
            "a callback's node is told by the program's start alone: rtmeter attach --ros2 -- COMMAND"
        )
    said.append(f"In {LOOK_S:g} s. Measure them with --duration, a cell each.")
    for line in said:
        console().print(line, markup=False)
