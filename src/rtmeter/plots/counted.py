"""What the plots of a cell show that has a histogram in the place of samples."""

from __future__ import annotations

import numpy as np

from rtmeter.plots.data import Detail, PlottedView, Series
from rtmeter.statistics import bins
from rtmeter.statistics.counted_data import CountedData, Histogram
from rtmeter.statistics.quantities import Quantity


def of_counted(
    data: CountedData, quantity: Quantity, detail: Detail, grid: bins.BinGrid | None = None
) -> Series | None:
    """The series of a histogram, its steps on ``grid`` (default: one that suits it); None of intervals,
    whose values are not known, and if there are none.

    Each value stands at the lower edge of its bin, of which there is no mean. Those beyond the last bin count
    as late as the largest one, so that the complementary CDF is never too low.
    """
    if not isinstance(data, Histogram) or not data.n:
        return None
    counts = np.zeros(bins.BINS, dtype=np.int64)
    np.add.at(counts, bins.bin_numbers(data.lower_ns), data.counts)
    largest = data.max_ns if data.max_ns is not None else max(data.over_from_ns, int(data.lower_ns[-1]))
    at_largest = data.over or int(data.counts[-1])
    grid = grid or _grid(data, detail.steps)
    steps = np.zeros(grid.size + 2, dtype=np.int64)
    np.add.at(
        steps, np.clip((data.lower_ns - grid.first_ns) // grid.width_ns, -1, grid.size) + 1, data.counts
    )
    steps[-1] += data.over
    counts[bins.bin_numbers(np.array([largest]))] += data.over
    least = int(data.lower_ns[0]) if len(data.lower_ns) else None
    tail = np.array([largest]), np.array([0]), at_largest
    known = data.max_ns is not None
    view = PlottedView(data.n, 0, counts, steps, *tail, least, largest_known=known)
    return Series(quantity, None, grid, {"per_release": view})


def _grid(data: Histogram, most_steps: int) -> bins.BinGrid:
    """Over all bins, none narrower than theirs."""
    if not len(data.lower_ns):
        return bins.grid_over(data.over_from_ns, data.over_from_ns, most_steps)
    lowest, highest = int(data.lower_ns[0]), int(data.lower_ns[-1])
    grid = bins.grid_over(lowest, highest, most_steps)
    if grid.width_ns >= data.width_ns:
        return grid
    first = lowest // data.width_ns * data.width_ns
    return bins.BinGrid(first, data.width_ns, (highest - first) // data.width_ns + 1)
