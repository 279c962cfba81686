"""The effect of each level of a factor, over cells that are alike in all other factors."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from rtmeter.campaign.options import MOST_RELEASES
from rtmeter.errors import RtmeterError
from rtmeter.judge.compared import differences_of, estimates_of, of_cells, refusal_of, refused
from rtmeter.judge.matching import Matching
from rtmeter.judge.pairs import Pairing
from rtmeter.model import Doubt, GateFinding
from rtmeter.results import store
from rtmeter.results.cells import StoredCell
from rtmeter.statistics import over_quantities
from rtmeter.statistics.effects import Effect, Interaction, Said, Stratum, confidences, effect, interactions
from rtmeter.statistics.estimates import Estimates
from rtmeter.statistics.halving import RATIO
from rtmeter.statistics.quantiles import OVER_RUNS
from rtmeter.statistics.quantities import judged_quantity
from rtmeter.statistics.ranks import fewest, share_of

Known = dict[str, tuple[Estimates, tuple[GateFinding, ...]]]
"""By the folder of a cell what was read of it, and what refuses bounds of it."""

_Alike = tuple[tuple[str, ...], Mapping[str, str]]
"""The levels of the factors that cells are alike in, and the cell of each level of the factor."""


@dataclass(frozen=True, slots=True)
class FactorOptions:
    """``reference``: the level that the others are compared with (None: the one measured first); the rest as
    in a comparison of cells."""

    factor: str
    reference: str | None = None
    deadline_ns: int | None = None
    confidence: float = 0.95
    force: bool = False


@dataclass(frozen=True, slots=True)
class LevelEffects:
    """A level against the reference: over how many matched cells and pairs of runs, the effects, and where
    they depend on another factor by more than they are large; ``confounded``: the factors that change with
    the level, so that what they do is in its effects."""

    level: str
    matched: int
    pairs: int
    effects: tuple[Effect, ...]
    interactions: tuple[Interaction, ...]
    confounded: tuple[str, ...] = ()

    @property
    def decides(self) -> Effect:
        """The quantity that decides."""
        return over_quantities.decides(self.effects)

    @property
    def said(self) -> Said:
        """What all quantities say together, worse if the one that decides is so at one level of another
        factor only."""
        worse_somewhere = any(one.said == "worse" for one in self._that_count)
        return over_quantities.together(self.effects, worse_somewhere=worse_somewhere)

    @property
    def _that_count(self) -> list[Interaction]:
        """The interactions of the quantity that decides, or of all where that is not told."""
        name = self.decides.quantity
        return [one for one in self.interactions if one.quantity == name or self.decides.said == "not told"]

    @property
    def where(self) -> str:
        """At which quantities it is so, where it is not by the one that decides, in words; else empty."""
        return over_quantities.where(self.effects, self.said)

    def depends(self, named: Callable[[str], str] = str) -> str:
        """On what it depends whether it is better or worse, in words, a factor as ``named`` has it; empty if
        on nothing, or if it is better wherever it is told."""
        found: dict[str, dict[str, Said]] = {}
        for one in self._that_count:
            if one.said == "worse" or (one.said == "better" and one.at not in found.get(one.factor, {})):
                found.setdefault(one.factor, {})[one.at] = one.said
        if {said for levels in found.values() for said in levels.values()} <= {"better"} == {self.said}:
            return ""
        each = (
            f"{named(factor)}: {', '.join(f'{said} at {at}' for at, said in levels.items())}"
            for factor, levels in found.items()
        )
        return f"it depends on {'; on '.join(each)}" if found else ""

    @property
    def repeats(self) -> int | None:
        """How many runs of each cell tell what is not told; None if all is, or it cannot be said."""
        return max((one.repeats for one in self.effects if one.repeats), default=None)


@dataclass(frozen=True, slots=True)
class FactorEffects:
    """What a factor does. ``deadline_ns``: the one of all cells that are compared; ``others``: the factors
    it is matched over; ``left_out``: cells of no pair."""

    factor: str
    reference: str
    quantity: str
    deadline_ns: int | None
    confidence: float
    levels: tuple[LevelEffects, ...]
    others: tuple[str, ...]
    left_out: tuple[str, ...]
    doubts: tuple[Doubt, ...]


def factor_effects(
    cells: Sequence[StoredCell],
    asked: FactorOptions,
    read: store.ReadSamples = store.chunks,
    known: Known | None = None,
) -> FactorEffects:
    """The effect of each level but the reference; ``known`` keeps what was read of each cell, for another
    factor of the same cells. Raises RtmeterError if the cells have no such factor, or none are alike in all
    others."""
    matching = Matching.of(cells, asked.factor)
    there = matching.levels_in_turn
    _check(asked, matching)
    reference = asked.reference or there[0]
    source = _Source(matching, asked, read, {} if known is None else known)
    strata = [
        (about, {matching.levels[name]: name for name in names})
        for about, group in matching.alike
        for names in source.one_of_each_level(group)
    ]
    source.agree_on_deadlines([at for _, at in strata if reference in at and len(at) > 1])
    source.left_out += (f"{name} has no partner" for name in _lone(strata, reference))
    effects = (len(OVER_RUNS) + source.ratios) * (len(there) - 1)
    levels_of_others = sum(
        len({about[place] for about, _ in strata}) for place in range(len(matching.others))
    )
    each = confidences(asked.confidence, effects, effects * levels_of_others)
    found = [
        one
        for level in there
        if level != reference and (one := source.level(level, reference, strata, matching.others, each))
    ]
    if not found:
        alike = ", ".join(matching.others) or "all else"
        message = f"has no cells that differ in {asked.factor} and are alike in {alike}"
        why = "; ".join(dict.fromkeys(source.left_out))
        remedy = (
            f"{why}; measure both levels in one campaign" if why else "measure both levels in one campaign"
        )
        raise RtmeterError(message, field="--factor", value=asked.factor, remedy=remedy)
    return FactorEffects(
        asked.factor,
        reference,
        source.quantity,
        source.deadline_ns,
        asked.confidence,
        tuple(found),
        matching.others,
        tuple(dict.fromkeys(source.left_out)),
        tuple(dict.fromkeys([*source.doubts, *of_cells(source.refusals, len(cells))])),
    )


def _lone(strata: Iterable[_Alike], reference: str) -> Iterator[str]:
    """The cells that are compared with none, neither as a level nor as the reference."""
    for _, at in strata:
        if reference not in at or len(at) == 1:
            yield from at.values()


def _check(asked: FactorOptions, matching: Matching) -> None:
    known, varying = matching.levels_in_turn, matching.varying
    if len(known) < 2:
        message = "is the same in all cells" if known else "is no factor of these cells"
        if asked.factor in varying:
            varying.remove(asked.factor)
            message = f"is {known[0]} or not stated"
        remedy = f"name one of {', '.join(varying)}" if varying else "measure cells that differ"
        raise RtmeterError(message, field="--factor", value=asked.factor, remedy=remedy)
    if asked.reference is not None and asked.reference not in known:
        remedy = f"name one of {', '.join(known)}"
        raise RtmeterError(
            f"is no level of {asked.factor}", field="--reference", value=asked.reference, remedy=remedy
        )


def can_be_told(cells: Sequence[StoredCell], factor: str) -> bool:
    """Whether any cells are compared if it is asked what the factor does; their samples are not read."""
    matching = Matching.of(cells, factor)
    reference, *others = matching.levels_in_turn or [""]
    for _, group in matching.alike:
        first = [name for name in group if matching.levels[name] == reference]
        matched = (matching.pairing(a, b) for a in first for b in group if matching.levels[b] in others)
        if any(refusal_of(both, differences_of(both)) is None for both in matched):
            return True
    return False


class _Source:
    """The estimates of cells, each read once, and what was left out."""

    def __init__(
        self,
        matching: Matching,
        asked: FactorOptions,
        read: store.ReadSamples,
        known: Known,
    ) -> None:
        self._matching, self._asked, self._read = matching, asked, read
        self._known = known
        self._shortest = MOST_RELEASES
        self._confounded: dict[str, None] = {}
        self.ratios, self.deadline_ns = True, asked.deadline_ns
        self.quantity = ""
        self.left_out = list(matching.left_out)
        self.doubts: list[Doubt] = []
        self.refusals: list[tuple[StoredCell, GateFinding]] = []

    def agree_on_deadlines(self, compared: Iterable[Mapping[str, str]]) -> None:
        """Miss ratios are compared where cells that are compared with one another have one deadline; others
        may have another."""
        if self._asked.deadline_ns is not None:
            return
        each = [
            {cell.record.deadline_ns for name in at.values() for cell in self._matching.usable(name)}
            for at in compared
        ]
        every = set[int | None]().union(*each)
        self.deadline_ns = next(iter(every)) if len(every) == 1 else None
        self.ratios = None not in every and all(len(deadlines) < 2 for deadlines in each)
        if not self.ratios:
            message = "no deadline in common: miss ratios are not compared"
            self.doubts.append(Doubt("no_deadline", message, "give --deadline"))

    def one_of_each_level(self, names: Sequence[str]) -> Iterator[Sequence[str]]:
        """Cells that are alike in all other factors, by named block where several are of one level; those of
        which several still are, are left out: which of them belongs to which is not known."""
        levels, layouts = self._matching.levels, self._matching.factors
        blocks: dict[str | None, list[str]] = {}
        for name in names:
            several = len({levels[one] for one in names}) < len(names)
            blocks.setdefault(layouts[name].get("block") if several else None, []).append(name)
        for group in blocks.values():
            if len({levels[one] for one in group}) == len(group):
                yield group
            else:
                self.left_out.append(f"{', '.join(group)}: no factor tells those of one level apart")

    def level(
        self,
        level: str,
        reference: str,
        strata: Sequence[_Alike],
        others: Sequence[str],
        each: tuple[float, float],
    ) -> LevelEffects | None:
        """The effects of one level; None if no cell of it has a partner. ``each``: the confidence of each
        effect, and of each interaction."""
        self._shortest, self._confounded = MOST_RELEASES, {}
        matched = list(self._strata(level, reference, strata, others))
        if not matched:
            return None
        of_each = matched[0].pairs[0][0].quantities
        quantities = self._that_runs_tell(name for name in of_each if self.ratios or name != RATIO)
        effects = tuple(effect(name, matched, each[0]) for name in quantities)
        depends = tuple(one for name in quantities for one in interactions(name, matched, each[1]))
        pairs = sum(len(one.pairs) for one in matched)
        return LevelEffects(level, len(matched), pairs, effects, depends, tuple(self._confounded))

    def _strata(
        self,
        level: str,
        reference: str,
        strata: Sequence[_Alike],
        others: Sequence[str],
    ) -> Iterator[Stratum]:
        for about, at in strata:
            if level not in at or reference not in at:
                continue
            both = self._matching.pairing(at[reference], at[level])
            self.left_out += both.left_out
            refusal = refusal_of(both, differences_of(both))
            if refusal is not None and not (self._asked.force and both.pairs):
                self.left_out.append(f"{both.name}: {refusal}")
                continue
            if refusal is not None:
                message = f"{both.name}: compared although they are of {refusal}"
                self.doubts.append(Doubt("forced", message))
            self._doubt(both)
            self._confounded |= dict.fromkeys(self._matching.changing(at[reference], at[level]))
            pairs = tuple((self._of(a), self._of(b)) for a, b in both.pairs)
            yield Stratum(dict(zip(others, about, strict=True)), pairs)

    def _that_runs_tell(self, quantities: Iterable[str]) -> list[str]:
        """The median, and those that the shortest run tells from its maximum."""
        judgeable: list[str] = []
        not_told: list[str] = []
        for name in quantities:
            few = name not in (RATIO, "p50") and self._shortest < fewest(share_of(name.removeprefix("p")))
            (not_told if few else judgeable).append(name)
        if not_told:
            message = (
                f"{' and '.join(not_told)}: of {self._shortest:,} releases the same as the maximum: left out"
            )
            self.doubts.append(Doubt("too_few_samples", message, "measure longer"))
        return judgeable

    def _doubt(self, both: Pairing) -> None:
        if len(both.pairs) > 1 and not both.interleaved:
            message = (
                f"{both.name}: not measured in turn: what changed in the machine between is in the effect"
            )
            self.doubts.append(Doubt("not_interleaved", message, "measure both in one campaign with repeat"))

    def _of(self, cell: StoredCell) -> Estimates:
        self._shortest = min(self._shortest, cell.record.n_of(judged_quantity(cell.record.meta).name))
        key = str(cell.folder)
        if key not in self._known:
            deadline = self._asked.deadline_ns or cell.record.deadline_ns
            found = estimates_of(cell, deadline, self._asked.confidence, OVER_RUNS, self._read)
            self._known[key] = found[0], (*refused(cell), *found[1])
        estimates, refusals = self._known[key]
        self.quantity = self.quantity or judged_quantity(cell.record.meta).name
        self.refusals += ((cell, one) for one in refusals)
        return estimates
