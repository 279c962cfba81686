"""What the plots of a cell show, gathered from its samples in two passes of bounded memory.

The first pass counts values in log-linear bins, takes the extremes of every stretch of releases and keeps
the largest values; the second counts the equal bins of the histogram, whose range the first one found.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt

from rtmeter.errors import RtmeterError
from rtmeter.model import SERVED, TWO_ENDS
from rtmeter.plots.envelope import Envelope, Stretches
from rtmeter.samples.rows import Samples
from rtmeter.statistics import bins
from rtmeter.statistics.quantities import Ints, Quantity
from rtmeter.statistics.views import LATER, Block, all_served, as_served, per_release

LARGEST = 20
"""How many of the largest values are kept, each with its release."""

_BODY, _REACH = ("1", "99"), 6
"""The histogram reaches beyond the span between these quantiles, at most this many times as far."""


@dataclass(frozen=True, slots=True)
class Detail:
    """How much a plot may show: the most stretches of an envelope and bins of a histogram (0: none, which
    saves a pass), and points of a complementary CDF to a decade of its share."""

    stretches: int = 600
    steps: int = 240
    points_a_decade: int = 60


@dataclass(frozen=True, slots=True)
class PlottedView:
    """The distribution of one view of a quantity: ``n`` releases, ``lost`` of them later than anything.

    ``counts``: shape (bins.BINS,); ``steps``: counts of the series' grid, shape (size + 2,);
    ``largest_ns``: the largest values, descending, at the releases ``largest_k``; ``tail_n``: how many
    values are at least as large as the last of them, which may have equals. ``least_ns`` and ``mean_ns``
    are of the values; None without any, or where they are not known. ``largest_known``: whether the first of
    the largest is the maximum, not where all that is known of it begins.
    """

    n: int
    lost: int
    counts: Ints
    steps: Ints
    largest_ns: Ints
    largest_k: Ints
    tail_n: int
    least_ns: int | None = None
    mean_ns: float | None = None
    largest_known: bool = True

    def ccdf(self) -> tuple[Ints, npt.NDArray[np.float64]]:
        """(x, share of the releases at or above x), both exact, x ascending; shape (points,)."""
        occupied = np.flatnonzero(self.counts)
        x, at_or_above = bins.FIRST_NS[occupied], np.cumsum(self.counts[::-1])[::-1][occupied]
        tail, place = np.unique(self.largest_ns[::-1], return_index=True)
        tail_at_or_above = len(self.largest_ns) - place
        tail_at_or_above[:1] = self.tail_n
        body = x < tail.min(initial=LATER)
        x = np.concatenate((x[body], tail))
        return x, (np.concatenate((at_or_above[body], tail_at_or_above)) + self.lost) / self.n


def together(views: Sequence[PlottedView]) -> PlottedView:
    """The distribution of all releases of several runs, at least one, whose steps are of one grid."""
    if len(views) == 1:
        return views[0]
    k = np.concatenate([one.largest_k for one in views])
    largest_ns = np.concatenate([one.largest_ns for one in views])
    first = np.argsort(-largest_ns, kind="stable")[:LARGEST]
    floor_ns = largest_ns[first].min(initial=LATER)
    tail_n = sum(  # of each view all values above the last one that it keeps are kept
        one.tail_n
        if one.largest_ns.min(initial=LATER) >= floor_ns
        else int(np.count_nonzero(one.largest_ns >= floor_ns))
        for one in views
    )
    valued = [(one.n - one.lost, one) for one in views if one.least_ns is not None]
    n = sum(count for count, _ in valued)
    means = [count * one.mean_ns for count, one in valued if one.mean_ns is not None]
    return PlottedView(
        sum(one.n for one in views),
        sum(one.lost for one in views),
        np.sum([one.counts for one in views], axis=0),
        np.sum([one.steps for one in views], axis=0),
        largest_ns[first],
        k[first],
        tail_n,
        min((one.least_ns for _, one in valued if one.least_ns is not None), default=None),
        sum(means) / n if n and len(means) == len(valued) else None,
        all(one.largest_known for one in views),
    )


@dataclass(frozen=True, slots=True)
class Series:
    """One quantity of a cell: its envelope (None of data without order), the grid of its histograms, and its
    views by name (``per_release``, ``as_served``), first the one that the envelope shows.
    ``skipped_in_time``: how many releases are misses though their value is within the deadline."""

    quantity: Quantity
    envelope: Envelope | None
    grid: bins.BinGrid
    views: dict[str, PlottedView]
    skipped_in_time: int = 0


class _Group:
    """Releases of one kind: served, or passed over and lost."""

    def __init__(self) -> None:
        self.lost = 0
        self.least_ns, self.sum_ns = LATER, 0.0
        self.counts = np.zeros(bins.BINS, dtype=np.int64)
        self.largest_k = self.largest_ns = np.zeros(0, dtype=np.int64)

    @property
    def n(self) -> int:
        return int(self.counts.sum()) + self.lost

    def see(self, k: Ints, value_ns: Ints) -> None:
        if value_ns.max(initial=-LATER) == LATER:
            later = value_ns == LATER
            self.lost += int(later.sum())
            k, value_ns = k[~later], value_ns[~later]
        self.least_ns = min(self.least_ns, int(value_ns.min(initial=LATER)))
        self.sum_ns += float(value_ns.sum(dtype=np.float64))
        self.counts += bins.count(value_ns)
        if len(self.largest_ns) < LARGEST or value_ns.max(initial=-LATER) > self.largest_ns[-1]:
            self._keep_largest(k, value_ns)

    def joined(self, other: _Group) -> _Group:
        both = _Group()
        both.lost, both.counts = self.lost + other.lost, self.counts + other.counts
        both.least_ns, both.sum_ns = min(self.least_ns, other.least_ns), self.sum_ns + other.sum_ns
        for group in (self, other):
            both._keep_largest(group.largest_k, group.largest_ns)
        return both

    def _keep_largest(self, k: Ints, value_ns: Ints) -> None:
        if len(value_ns) > LARGEST:
            among = value_ns >= np.partition(value_ns, -LARGEST)[-LARGEST]
            k, value_ns = k[among], value_ns[among]
        k, value_ns = np.concatenate((self.largest_k, k)), np.concatenate((self.largest_ns, value_ns))
        first = np.lexsort((k, -value_ns))[:LARGEST]
        self.largest_k, self.largest_ns = k[first], value_ns[first]


class _SecondLook:
    """Counts what the first pass over a view tells to count."""

    def __init__(self, group: _Group, grid: bins.BinGrid) -> None:
        self._group, self._grid = group, grid
        self._floor = group.largest_ns.min(initial=LATER - 1)
        self._steps = np.zeros(grid.size + 2, dtype=np.int64)
        self._tail_n = 0

    def see(self, value_ns: Ints) -> None:
        if self._group.lost:
            value_ns = value_ns[value_ns != LATER]
        self._steps += self._grid.count(value_ns)
        self._tail_n += int(np.count_nonzero(value_ns >= self._floor))

    def view(self) -> PlottedView:
        group = self._group
        valued = group.n - group.lost
        return PlottedView(
            group.n,
            group.lost,
            group.counts,
            self._steps,
            group.largest_ns,
            group.largest_k,
            self._tail_n,
            group.least_ns if valued else None,
            group.sum_ns / valued if valued else None,
        )


def gather(
    samples: Samples, meta: Mapping[str, Any], quantity: Quantity, deadline_ns: int | None, detail: Detail
) -> Series | None:
    """The series of one quantity; None if no release has it.

    ``meta`` as for rtmeter.statistics; ``deadline_ns``: that of this quantity.
    """
    lacking = sorted(set(quantity.columns) - samples.columns)
    if lacking:
        raise RtmeterError(f"the samples have no column {lacking[0]}", remedy="measure the cell again")
    if samples.rows == 0:
        return None
    first_k, last_k = samples.k_range()
    first_k = max(first_k, meta["warm_up"])
    length = length_of(last_k - first_k + 1, detail.stretches)
    envelope = Stretches(first_k, last_k, length, deadline_ns, skips_miss=_skips_miss(meta))
    served, others = _Group(), _Group()
    for block in _blocks(samples, meta, quantity):
        envelope.see(block)
        if all_served(block.outcome):
            served.see(block.k, block.value)
        else:
            was_served = block.outcome == SERVED
            served.see(block.k[was_served], block.value[was_served])
            others.see(block.k[~was_served], block.value[~was_served])
    every = served.joined(others)
    grid = _grid(every, int(envelope.envelope().min_ns.min()), detail.steps or 3)
    looks = {"as_served": _SecondLook(served, grid)}
    if others.n:
        looks = {"per_release": _SecondLook(every, grid), **looks}
    for block in _blocks(samples, meta, quantity) if detail.steps else ():
        for name, look in looks.items():
            every_one = name == "per_release" or all_served(block.outcome)
            look.see(block.value if every_one else block.value[block.outcome == SERVED])
    views = {name: look.view() for name, look in looks.items()}
    if quantity.per_release:
        views = {"per_release": views["as_served"], **views}
    if not any(view.n for view in views.values()):
        return None
    in_time = envelope.skipped_in_time if quantity.per_release else 0
    return Series(quantity, envelope.envelope(), grid, views, in_time)


def recount(samples: Samples, meta: Mapping[str, Any], series: Series, grid: bins.BinGrid) -> Series:
    """The series with its steps counted on another grid, in a pass of its own."""
    steps = {name: np.zeros(grid.size + 2, dtype=np.int64) for name in series.views}
    for block in _blocks(samples, meta, series.quantity):
        there = block.value != LATER
        for name, counts in steps.items():
            counts += grid.count(block.value[there if name == "per_release" else block.outcome == SERVED])
    views = {name: replace(view, steps=steps[name]) for name, view in series.views.items()}
    return replace(series, grid=grid, views=views)


def length_of(releases: int, most_stretches: int) -> int:
    """The shortest stretches of which so many releases make no more than that many."""
    return max(1, -(-releases // most_stretches))


def envelope_of(
    samples: Samples,
    meta: Mapping[str, Any],
    quantity: Quantity,
    deadline_ns: int | None,
    within: tuple[int, int],
    length: int,
) -> Envelope:
    """The envelope of the releases from the first to the last of ``within``, in stretches of ``length``."""
    first_k, last_k = within
    stretches = Stretches(first_k, last_k, length, deadline_ns, skips_miss=_skips_miss(meta))
    for block in _blocks(samples, meta, quantity):
        inside = (block.k >= first_k) & (block.k <= last_k)
        if inside.all():
            stretches.see(block)
        elif inside.any():
            stretches.see(Block(block.k[inside], block.value[inside], block.outcome[inside]))
    return stretches.envelope()


def _skips_miss(meta: Mapping[str, Any]) -> bool:
    """Whether a release that was skipped is a miss by itself, not served by the next ping."""
    return meta["measurement"] not in TWO_ENDS


def _blocks(samples: Samples, meta: Mapping[str, Any], quantity: Quantity) -> Iterator[Block]:
    passed_over = sorted({"release_ns", "free_ns"} & samples.columns)
    chunks = samples.chunks(*quantity.columns, *passed_over)
    return (per_release if quantity.per_release else as_served)(meta, quantity, chunks)


def _grid(group: _Group, lowest_ns: int, most_steps: int) -> bins.BinGrid:
    """Over all values, unless a few of them would squeeze the rest into a corner."""
    if not group.counts.any():
        return bins.grid_over(0, 0, most_steps)
    low, high = bins.quantile_range_ns(group.counts, _BODY)
    reach, highest_ns = _REACH * (high - low), int(group.largest_ns[0])
    return bins.grid_over(max(lowest_ns, low - reach), min(highest_ns, high + reach), most_steps)
