"""The keys of a cell that measures the loop of a program as it is (docs/attach.md)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from pydantic import Field

from rtmeter.campaign.option_types import For

if TYPE_CHECKING:
    from rtmeter.campaign.options import CellOptions

LOOP = For(("loop",))

UNTOLD_PERIOD_NS = 1_000_000
"""By which a loop is planned whose period is measured."""

COMMAND = Field(
    description="The program whose loop is measured: it is started, given the cell's conditions, and ended "
    "(docs/attach.md).",
    examples=["./controller --rate 1000"],
    min_length=1,
    exclude=True,
)
PID = Field(
    description="The process, which runs already, whose loop is measured.",
    examples=["4711"],
    ge=1,
    exclude=True,
)
THREAD = Field(
    description="Which of its threads, by name or id (default: its only one, or its only periodic one).",
    examples=["control_loop"],
    min_length=1,
    exclude=True,
)
JUDGE = Field(description="What the deadline is for: the work's end or its begin.", exclude=True)


def attached(options: CellOptions) -> dict[str, Any]:
    """What a program that is attached to is measured by, beside what a probe has; nothing in other cells."""
    if options.measurement != "loop":
        return {}
    given = {"command": options.command, "pid": options.pid, "thread": options.thread}
    asked: dict[str, Any] = {name: value for name, value in given.items() if value is not None}
    asked |= {"period_given": options.period is not None, "warm_up_ns": options.warm_up}
    assert options.samples is not None, "settle() fills it in"
    asked["duration_ns"] = options.samples * options.tick_ns
    return {"period_ns": options.tick_ns, "judge": options.judge, "attach": asked}
