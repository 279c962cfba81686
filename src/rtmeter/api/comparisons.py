"""Cells of A against those of B."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass, field, replace
from typing import Any, Self

from rtmeter.api.verdicts import Reading
from rtmeter.errors import RtmeterError
from rtmeter.judge.compared import Compared, ComparisonOptions, compare_cells
from rtmeter.judge.pairs import Pairing, pair_up
from rtmeter.results.cells import StoredCell, by_name
from rtmeter.statistics.compare import Shift
from rtmeter.statistics.effects import Effect


@dataclass(frozen=True, slots=True)
class Pairs:
    """Which cells belong together, and with which confidence each is compared so that all hold together."""

    pairings: Sequence[Pairing]
    only_in_a: list[str]
    only_in_b: list[str]
    options: ComparisonOptions

    @classmethod
    def of(
        cls,
        a: Sequence[StoredCell],
        b: Sequence[StoredCell],
        options: ComparisonOptions,
        b_is: str | None = None,
    ) -> Self:
        """Raises RtmeterError if no cell of A belongs to one of B."""
        pairings, only_in_a, only_in_b = pair_up(by_name(a), by_name(b))
        if not pairings:
            message = "has no cell of the same id or axes as one of A"
            remedy = "name two cells to compare them anyway"
            raise RtmeterError(message, field="B", value=b_is, remedy=remedy)
        shared = 1 - (1 - options.confidence) / len(pairings)
        return cls(pairings, only_in_a, only_in_b, replace(options, confidence=shared))

    def compared(self, reading: Reading) -> Iterator[Compared]:
        """Each pair of cells, compared."""
        for pairing in self.pairings:
            with reading() as read:
                yield compare_cells(pairing, self.options, read)


@dataclass(frozen=True, slots=True)
class Comparisons:
    """What shifted from A to B, cell by cell; the names of cells that only one side has."""

    cells: list[Compared]
    only_in_a: list[str] = field(default_factory=list)
    only_in_b: list[str] = field(default_factory=list)

    def to_json(self) -> dict[str, Any]:
        """As ``rtmeter compare --json`` prints it: times in nanoseconds."""
        only = {"only_in_a": self.only_in_a, "only_in_b": self.only_in_b}
        return {"cells": [compared_json(one) for one in self.cells]} | only


def compared_json(compared: Compared) -> dict[str, Any]:
    """One comparison, in ns; null where a run is too short, ``lost`` where a quantile is a lost release."""
    pairing, found = compared.pairing, compared.found
    sides = zip("ab", zip(*pairing.pairs, strict=True), strict=False)
    return {
        "id": pairing.name,
        "outcome": compared.outcome,
        "refusal": compared.refusal,
        "quantity": compared.quantity or None,
        "deadline_ns": compared.deadline_ns,
        "confidence": found.confidence if found else None,
        "pairs": len(pairing.pairs),
        "interleaved": pairing.interleaved,
        "shifts": [_shift(shift) | {"outcome": shift.outcome} for shift in found.shifts] if found else [],
        "gates": [
            {"gate": r.gate.text, "outcome": r.outcome, "excess": _shift(r.excess)} for r in compared.gates
        ],
        "differs": [{"name": d.name, "a": d.a, "b": d.b} for d in compared.differs],
        "doubts": [asdict(doubt) for doubt in compared.doubts],
    } | {side: [str(cell.folder) for cell in cells] for side, cells in sides}


def _shift(shift: Shift) -> dict[str, Any]:
    values = {name: number(getattr(shift, name)) for name in ("a", "b")}
    apart = {name: apart_by(getattr(shift, name)) for name in ("difference", "lower", "upper")}
    relative = shift.relative if math.isfinite(shift.relative) else None
    return {"quantity": shift.quantity} | values | apart | {"relative": relative} | _over_pairs(shift.effect)


def _over_pairs(effect: Effect | None) -> dict[str, Any]:
    """What pairs of runs say besides, as of a factor; null of one run each."""
    if effect is None:
        return dict.fromkeys(
            ("times", "times_lower", "times_upper", "repeats_needed", "repeats_for_seen", "words")
        )
    ends = {"times": effect.times, "times_lower": effect.lower, "times_upper": effect.upper}
    needed = {"repeats_needed": effect.repeats, "repeats_for_seen": effect.repeats_seen}
    return {name: finite(end) for name, end in ends.items()} | needed | {"words": effect.words}


def finite(value: float) -> float | None:
    """A number as JSON has it, null for none."""
    return value if math.isfinite(value) else None


def number(value: float) -> float | str | None:
    """As JSON has it: null for none, ``lost`` for what is infinite."""
    return value if math.isfinite(value) else None if math.isnan(value) else "lost"


def apart_by(difference: float) -> float | str | None:
    """B - A as JSON has it: null for none; which of the two is lost where it has no size."""
    if math.isinf(difference):
        return "B lost" if difference > 0 else "A lost"
    return number(difference)
