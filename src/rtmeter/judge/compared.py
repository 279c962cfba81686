"""A cell of A against one of B: what shifted, by how much, how sure that is, and what else differs."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Literal

from rtmeter.errors import RtmeterError
from rtmeter.judge.environment import Difference, differences, grid_of, other_findings
from rtmeter.judge.pairs import Pairing
from rtmeter.model import Doubt, GateFinding
from rtmeter.results import store
from rtmeter.results.cells import StoredCell
from rtmeter.results.condition_words import which_cells
from rtmeter.results.data import counted_of
from rtmeter.statistics import compare
from rtmeter.statistics.counted import estimates_counted, refusals_counted
from rtmeter.statistics.estimates import Estimates, estimates
from rtmeter.statistics.gate import Gate, GateResult, judge_gate
from rtmeter.statistics.halving import RATIO
from rtmeter.statistics.judged import judged_run
from rtmeter.statistics.quantiles import COMPARED, OVER_RUNS
from rtmeter.statistics.quantities import judged_quantity
from rtmeter.statistics.ranks import fewest, share_of
from rtmeter.statistics.views import LATER

ENOUGH_PAIRS = 5
"""Pairs below which Student's interval is twice that of many."""

ComparisonOutcome = Literal["better", "worse", "no difference", "not told", "not enough data", "error"]


@dataclass(frozen=True, slots=True)
class ComparisonOptions:
    """What is compared: gates that B must pass, the miss ratio at which deadline (None: that of the cells
    if they have one), with which confidence, and whether despite conditions that make it meaningless;
    ``added``: what B adds to A is asked, over pairs too."""

    gates: tuple[Gate, ...] = ()
    deadline_ns: int | None = None
    confidence: float = 0.95
    force: bool = False
    added: bool = False


@dataclass(frozen=True, slots=True)
class Compared:
    """What came of it; ``refusal`` says why there is no comparison, where there is none."""

    pairing: Pairing
    quantity: str
    deadline_ns: int | None
    found: compare.Comparison | None
    gates: tuple[GateResult, ...]
    differs: tuple[Difference, ...]
    doubts: tuple[Doubt, ...]
    refusal: str | None = None

    @property
    def shortest(self) -> int:
        """How many releases the shortest of the runs has."""
        return min(cell.record.n_of(self.quantity) for pair in self.pairing.pairs for cell in pair)

    def allows(self, quantity: str) -> bool:
        """Whether the shortest run tells that quantile from its maximum; the miss ratio always."""
        return quantity == RATIO or self.shortest >= fewest(share_of(quantity.removeprefix("p")))

    @property
    def outcome(self) -> ComparisonOutcome:
        """Of all quantities together; gates do not change it."""
        return "error" if self.found is None else self.found.outcome

    @property
    def where(self) -> str:
        """Of pairs at which quantities it is so, as of a factor; else empty."""
        return self.found.where if self.found else ""


def compare_cells(
    pairing: Pairing, asked: ComparisonOptions, read: store.ReadSamples = store.chunks
) -> Compared:
    """Compares the pairs of two cells. Raises RtmeterError if a gate asks for what they have not."""
    differs = differences_of(pairing)
    doubts = list(_doubts(pairing, differs))
    refusal = refusal_of(pairing, differs)
    if refusal is not None and not (asked.force and pairing.pairs):
        return Compared(pairing, "", None, None, (), differs, tuple(doubts), refusal)
    if refusal is not None:
        doubts.insert(0, Doubt("forced", f"compared although A and B are of {refusal}", ""))
    deadline = asked.deadline_ns or _common_deadline(pairing)
    if deadline is None:
        if any(gate.percent is None for gate in asked.gates):
            message = f"needs a deadline, and the cells of {pairing.name} have none in common"
            raise RtmeterError(message, field="--gate", value="miss_ratio", remedy="give --deadline")
        doubts.append(
            Doubt("no_deadline", "no deadline in common: miss ratios are not compared", "give --deadline")
        )
    looked_at = OVER_RUNS if len(pairing.pairs) > 1 else COMPARED
    percents = list(dict.fromkeys((*looked_at, *(gate.percent for gate in asked.gates if gate.percent))))
    pairs, refusals = [], list[tuple[StoredCell, GateFinding]]()
    for a, b in pairing.pairs:
        first, second = (estimates_of(cell, deadline, asked.confidence, percents, read) for cell in (a, b))
        pairs.append((first[0], second[0]))
        refusals += ((cell, one) for cell, (_, found) in ((a, first), (b, second)) for one in found)
    doubts += of_cells(refusals, 2 * len(pairs))
    quantity = judged_quantity(pairing.pairs[0][0].record.meta).name
    found = compare.compare(pairs, added=asked.added)
    gates = tuple(judge_gate(gate, pairs) for gate in asked.gates)
    return Compared(pairing, quantity, deadline, found, gates, differs, tuple(doubts))


def estimates_of(
    cell: StoredCell,
    deadline_ns: int | None,
    confidence: float,
    percents: Sequence[str],
    read: store.ReadSamples,
) -> tuple[Estimates, tuple[GateFinding, ...]]:
    """The estimates of a cell's judged quantity, from its samples or from what it has in their place; and
    what refuses bounds of it, where no verdict has looked for that."""
    counted = counted_of(cell.folder, cell.record)
    if counted is not None:
        refusals = refusals_counted(counted) if deadline_ns is not None else ()
        return estimates_counted(counted, deadline_ns, confidence, percents), refusals
    run = judged_run(cell.record.meta, read(cell.folder))
    missed = run.skipped if run.skips_miss else None
    found = estimates(run.values, deadline_ns, confidence, percents, missed)
    judged = cell.record.verdict is not None
    return found, () if judged else run.examine(deadline_ns or LATER - 1).refusals


def differences_of(pairing: Pairing) -> tuple[Difference, ...]:
    """Those of any pair, the first of each name."""
    found: dict[str, Difference] = {}
    for a, b in pairing.pairs:
        findings = other_findings(a.record, b.record)
        for difference in [*differences(a.record, b.record), *([findings] if findings else [])]:
            found.setdefault(difference.name, difference)
    return tuple(found.values())


def refusal_of(pairing: Pairing, differs: Sequence[Difference]) -> str | None:
    """Why there is no comparison; None if there is one."""
    if not pairing.pairs:
        return "; ".join(pairing.left_out) or "there is nothing to compare"
    refusing = [f"{d.refusal} ({d.name}: {d.a}, {d.b})" for d in differs if d.refusal]
    return "; ".join(refusing) or None


def _common_deadline(pairing: Pairing) -> int | None:
    """The deadline that all cells are judged by, or else count misses by."""
    deadlines = {cell.record.deadline_ns for pair in pairing.pairs for cell in pair}
    return next(iter(deadlines)) if len(deadlines) == 1 else None


def _doubts(pairing: Pairing, differs: Sequence[Difference]) -> Iterator[Doubt]:
    for words in pairing.left_out if pairing.pairs else ():
        yield Doubt("left_out", words)
    if len(pairing.pairs) == 1:
        hint = "repeat and interleave both in one campaign"
        yield Doubt("one_run_each", "one run each: how runs differ anyway is not seen", hint)
    elif pairing.pairs and not pairing.interleaved:
        message = (
            "A and B were not measured in turn: what changed between them in the machine is in the shift"
        )
        yield Doubt("not_interleaved", message, "measure both in one campaign with repeat")
    if 1 < len(pairing.pairs) < ENOUGH_PAIRS:
        message = f"{len(pairing.pairs)} pairs: the intervals of so few are wide"
        yield Doubt("few_pairs", message, f"repeat {ENOUGH_PAIRS} times or more")
    if pairing.pairs and all(grid_of(cell.record) == "inferred" for pair in pairing.pairs for cell in pair):
        message = "both grids are inferred from callbacks: what delays all of them alike is in no shift"
        yield Doubt("inferred_grids", message)
    for difference in differs:
        if difference.unknown:
            message = f"{difference.name} of A or B is not known: it may be {difference.unknown}"
            yield Doubt("unknown_condition", message)
        if difference.known and difference.name == "machine.hostname":
            yield Doubt("other_host", f"hosts differ: {difference.a}, {difference.b}", "")
        if difference.name == "machine.machine_id" and "machine.hostname" not in {d.name for d in differs}:
            message = f"two machines of one host name: {difference.a}, {difference.b}"
            yield Doubt("other_host", message, "")
    cells = [cell for pair in pairing.pairs for cell in pair]
    for cell in cells:
        if cell.record.status == "interrupted":
            yield Doubt("interrupted", f"{cell.folder} was interrupted", "")
    yield from of_cells([(cell, one) for cell in cells for one in refused(cell)], len(cells))


def refused(cell: StoredCell) -> Iterator[GateFinding]:
    """What refused a bound when the cell was judged."""
    support = cell.record.verdict.support if cell.record.verdict else None
    yield from (one for one in (support.findings if support else ()) if one.consequence == "refuse")


def of_cells(found: Iterable[tuple[StoredCell, GateFinding]], of: int) -> Iterator[Doubt]:
    """Each finding once as a doubt, with those of so many cells that have it."""
    having: dict[tuple[str, str], list[str]] = {}
    for cell, one in found:
        having.setdefault((one.type, one.message), []).append(str(cell.folder))
    for (kind, message), folders in having.items():
        yield Doubt(kind, f"{which_cells(list(dict.fromkeys(folders)), of)}: {message}", "")
