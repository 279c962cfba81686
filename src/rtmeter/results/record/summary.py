"""The summary of a cell: counts, identity and quantities by name and view."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from typing import Annotated, Any, Literal

from pydantic import Field, SerializerFunctionWrapHandler, model_serializer

from rtmeter.results.record.parts import RecordPart
from rtmeter.statistics.order import QUANTILES, shown
from rtmeter.statistics.ranks import fewest

Whole = Annotated[int, Field(ge=-(2**63), lt=2**63)]
"""A number that the tables of cells hold in 64 bits."""

Time = Whole | Literal["lost"] | None
"""Nanoseconds; ``lost`` where a statistic falls on a lost release; None where there is none."""

MeanTime = int | float | Literal["lost"] | None
"""As Time, of what need be no value that was measured: a mean, a deviation."""

View = Literal["per_release", "as_served", "corrected"]

_OF_SOME = ("tau_min_ns", "resolution_ns")


class Statistics(RecordPart):
    """One view of a quantity, nanoseconds; quantiles as they are, also those that n is too small for."""

    n: Whole
    min_ns: Time
    mean_ns: MeanTime
    stddev_ns: MeanTime
    p50_ns: Time
    p90_ns: Time
    p99_ns: Time
    p99_9_ns: Time
    p99_99_ns: Time
    p99_999_ns: Time
    max_ns: Time
    max_at_k: Whole | None

    @property
    def shown(self) -> Statistics:
        """As people are shown them: without the quantiles that n is too small for."""
        return Statistics.model_construct(**shown(self.model_dump()))


def of_all_runs(runs: Sequence[Statistics]) -> Statistics | None:
    """What several runs, each of the same quantity and view, say together; None if there is none.

    Count, minimum, mean and maximum are those of all their releases. A quantile is the largest of theirs:
    what that of all releases together is never above, since in each run at least its share lies at or below
    it. So no sample is read. None, where no run is long enough for it by itself. No deviation, and no ``k``,
    which would be of one run.
    """
    measured = [one for one in runs if one.n]
    if len(measured) < 2:
        return next(iter([*measured, *runs]), None)
    n, longest = sum(one.n for one in measured), max(one.n for one in measured)
    means = [one.n * one.mean_ns for one in measured if isinstance(one.mean_ns, int | float)]
    told = [name for name, share in QUANTILES if longest >= fewest(share)]
    largest = {name: max((getattr(one, name) for one in measured), key=_lateness) for name in told}
    return Statistics.model_validate(
        dict.fromkeys(Statistics.model_fields)
        | largest
        | {
            "n": n,
            "min_ns": min((one.min_ns for one in measured), key=_lateness),
            "mean_ns": sum(means) / n if len(means) == len(measured) else None,
            "max_ns": max((one.max_ns for one in measured), key=_lateness),
        }
    )


def _lateness(time: MeanTime) -> float:
    """Orders times: a lost release is later than any, and what is not known is taken for none of them."""
    return math.inf if time == "lost" else -math.inf if time is None else time


class Views(RecordPart):
    """The views of a quantity; None where one does not apply or has nothing."""

    per_release: Statistics | None
    as_served: Statistics | None
    corrected: Statistics | None

    def items(self) -> Iterator[tuple[View, Statistics | None]]:
        """(view, its statistics)."""
        yield from (
            ("per_release", self.per_release),
            ("as_served", self.as_served),
            ("corrected", self.corrected),
        )


class Summary(RecordPart):
    """Counts, identity and quantities; of a cycle the least delay, of a histogram the width of its bins."""

    counts: dict[str, int]
    identity: str
    quantities: dict[str, Views]
    tau_min_ns: Time = None
    resolution_ns: int | None = None

    @model_serializer(mode="wrap")
    def _without_what_it_has_not(self, handler: SerializerFunctionWrapHandler) -> dict[str, Any]:
        fields: dict[str, Any] = handler(self)
        return {key: value for key, value in fields.items() if key not in _OF_SOME or value is not None}
