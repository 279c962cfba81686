"""Misses come in clusters: how many clusters, how large, and what n is worth because of it.

Indices are release indices k of exceedances (misses, or values above a threshold), ascending. The extremal
index theta is the reciprocal of the mean cluster size in the limit of high thresholds: 1 means that
exceedances come singly.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import scipy

Indices = npt.NDArray[np.int64]
"""Ascending release indices, shape (exceedances,)."""

FEWEST_FOR_INDEX = 20
"""Exceedances below which no extremal index is estimated."""

INDEX_NOISE = 2.3
"""Of m independent exceedances the estimated index is below 1 - 2.3 / sqrt(m) in one case of a hundred
(tests/statistics/test_clusters.py): above that, independence is believed and bounds are exact."""

LONGEST_BURST = 0.25
"""All exceedances within this share of the run are one burst: of FEWEST_FOR_INDEX independent ones, one case
in ten billion."""

CHANCE = 0.05
"""The risk that few independent exceedances are grouped, divided among their gaps as these are alike
(tests/statistics/test_clusters.py)."""

MOST_EXCEEDANCES = 400
"""Exceedances at which the dependence near the deadline is looked at when there are fewer misses."""


@dataclass(frozen=True, slots=True)
class Clusters:
    """Exceedances grouped: first release and number of exceedances of each cluster, shape (clusters,);
    ``run_length``: exceedances no further apart than this many releases belong together."""

    first: Indices
    sizes: Indices
    run_length: int

    @property
    def count(self) -> int:
        """Number of clusters."""
        return len(self.sizes)

    @property
    def design_effect(self) -> float:
        """Variance of the number of exceedances over that of as many single ones; 1 without exceedances.

        That of a compound Poisson count, sum S^2 / sum S; its excess over 1 is raised by 2 / clusters,
        because few clusters show too little of how large they can be (tests/statistics/test_coverage.py).
        """
        if not self.count:
            return 1.0
        sizes = self.sizes.astype(np.float64)
        return 1 + (float(sizes @ sizes / sizes.sum()) - 1) * (1 + 2 / self.count)


@dataclass(frozen=True, slots=True)
class Dependence:
    """How exceedances near the deadline hang together.

    ``threshold_ns`` and ``exceedances``: where it was looked at; ``extremal_index`` there (None: too few);
    ``clusters`` of the misses themselves; ``design_effect``: n counts as n / design_effect.
    """

    threshold_ns: int
    exceedances: int
    extremal_index: float | None
    clusters: Clusters
    design_effect: float


def extremal_index(at: Indices) -> float | None:
    """Intervals estimator of the extremal index, in (0, 1] (Ferro and Segers, JRSS B 65, 2003, eq. 5).

    None with fewer than FEWEST_FOR_INDEX exceedances.
    """
    if len(at) < FEWEST_FOR_INDEX:
        return None
    gaps = np.diff(at).astype(np.float64)
    if gaps.max() <= 2:
        theta = 2 * gaps.sum() ** 2 / (len(gaps) * np.square(gaps).sum())
    else:
        theta = 2 * (gaps - 1).sum() ** 2 / (len(gaps) * ((gaps - 1) * (gaps - 2)).sum())
    return min(1.0, float(theta))


def decluster(at: Indices, run_length: int) -> Clusters:
    """Runs declustering: a gap of more than ``run_length`` releases starts a new cluster."""
    if not len(at):
        return Clusters(at, np.empty(0, np.int64), run_length)
    starts = np.concatenate(([0], np.flatnonzero(np.diff(at) > run_length) + 1))
    return Clusters(at[starts], np.diff(np.append(starts, len(at))), run_length)


def run_length_of(at: Indices, theta: float) -> int:
    """The run length that goes with an extremal index: of the gaps between exceedances the largest
    theta * (their number) separate clusters (Ferro and Segers 2003, section 4); at least 1."""
    gaps = np.sort(np.diff(at))
    within = len(gaps) - int(theta * len(gaps))
    return max(1, int(gaps[within - 1])) if within else 1


def longest_run(at: Indices) -> int:
    """The most exceedances in consecutive releases."""
    return int(decluster(at, 1).sizes.max(initial=0))


def chance_run_length(at: Indices, n: int) -> int:
    """A gap so short that independent exceedances, of n releases, would show so many no longer in one run of
    20 only; 0 if none is, or there are MOST_EXCEEDANCES: of so many, what clusters is seen otherwise.

    Of m independent ones a gap is no longer than r with probability 1 - (1 - r / n)^m; how many are, is tried
    for the gaps that occur up to the median of independent ones, each at a share of the risk: of longer ones
    chance makes clusters.
    """
    exceedances = len(at)
    if not 2 <= exceedances < MOST_EXCEEDANCES:
        return 0
    gaps = np.sort(np.diff(at))
    shorter = -np.expm1(exceedances * np.log1p(-gaps / n))
    chance = scipy.special.bdtrc(np.arange(len(gaps)), len(gaps), shorter)
    chance[shorter > 0.5] = 1.0
    least = int(chance.argmin())
    return int(gaps[least]) if chance[least] < CHANCE / (1 + math.log(exceedances)) else 0


def dependence(misses: Indices, near: Indices, threshold_ns: int, n: int) -> Dependence:
    """What n releases are worth for the ratio of ``misses``.

    ``near``: exceedances of ``threshold_ns``, the misses themselves if they are many, else of a lower
    threshold: few misses say little about how they cluster. The design effect is the largest of
    (2 - theta) / theta, that of geometric cluster sizes, and that of the clusters found, where either of
    the two is dependent; and that of the clusters of misses, however few; at most n.
    """
    run_length, effects = chance_run_length(misses, n), [1.0]
    for at in (near, misses):
        theta, apart = _clustering(at, n)
        if theta is not None and theta < 1 - INDEX_NOISE / math.sqrt(len(at)):
            run_length = max(run_length, apart)
            effects += [(2 - theta) / theta, decluster(at, apart).design_effect]
    clusters = decluster(misses, run_length)
    effect = min(max(*effects, clusters.design_effect), float(n))
    return Dependence(threshold_ns, len(near), _clustering(near, n)[0], clusters, effect)


def _clustering(at: Indices, n: int) -> tuple[float | None, int]:
    """The extremal index of exceedances of n releases and the run length that goes with it; (None, 0) if
    they are too few. A single burst is one cluster: its gaps, all alike, are no more to the estimator than
    independent exceedances of a shorter run."""
    theta = extremal_index(at)
    if theta is None:
        return None, 0
    span = int(at[-1] - at[0])
    if span < LONGEST_BURST * n:
        return 1 / len(at), span
    return theta, run_length_of(at, theta)
