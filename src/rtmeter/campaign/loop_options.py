"""The keys of a cell that measures the loop of a program as it is (docs/attach.md)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from pydantic import Field

from rtmeter.campaign.option_types import For

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


def attached(given: Mapping[str, Any], tick_ns: int) -> dict[str, Any]:
    """What a program that is attached to is measured by, beside what a probe has, of the values of its cell's
    options."""
    asked = {name: given[name] for name in ("command", "pid", "thread") if given[name] is not None}
    asked |= {"period_given": given["period"] is not None, "warm_up_ns": given["warm_up"]}
    asked["duration_ns"] = given["samples"] * tick_ns
    return {"period_ns": tick_ns, "judge": given["judge"], "attach": asked}
