"""The gates before a bound: does the run look like what the bound assumes?

Each gate decides on exceedances and block maxima of a fixed number (blocks.py), and on the size of an
effect: a change matters if it makes exceedances MATERIAL times as likely. What it sees is a typed finding.
"""

from __future__ import annotations

import math

import numpy as np

from rtmeter.model import Consequence, GateFinding
from rtmeter.statistics.blocks import Blocks
from rtmeter.statistics.changes import change_points
from rtmeter.statistics.clusters import decluster, extremal_index, run_length_of
from rtmeter.statistics.drift import Drift
from rtmeter.statistics.modes import Mode
from rtmeter.statistics.quantities import Floats, Ints
from rtmeter.statistics.rhythm import Rhythm
from rtmeter.statistics.serial import KPSS_LIMIT, autocorrelation, kpss
from rtmeter.statistics.trend import inflation
from rtmeter.statistics.words import about, moment, times

MATERIAL = 1.5
"""A factor in the rate of exceedances that matters."""

SMALLEST_WINDOW = 64
"""Releases at the start that are compared with the rest."""

TAIL_RATIO, BODY_RATIO = 2.0, 1.6
"""How many times as many exceedances, and values above the median, make a start later than the rest."""

START_PROBABILITY = 1e-5
"""Of as many by chance, at one length of the start."""

OVERDISPERSED = 1.4
"""Variance of the exceedances a block, over that of the clusters known, that chance does not explain:
the ratio of 200 independent blocks has a standard deviation of a tenth."""


def dependence_between_blocks(blocks: Blocks, design_effect: float) -> tuple[float, list[GateFinding]]:
    """A factor on the design effect for what clusters do not explain, and the findings that raise it.

    Exceedances a block vary more than their clusters make them (modulation), or blocks resemble their
    neighbours (Ljung-Box, with the autocorrelation as the effect); or both of what the exceedances leave out.
    """
    findings = []
    factor = 1.0
    dispersion = _dispersion(blocks.counts)
    if dispersion > OVERDISPERSED * design_effect:
        factor = dispersion / design_effect
        findings.append(
            GateFinding(
                "dependence",
                "dispersion of exceedances a block",
                dispersion,
                "deflate",
                "the latest releases crowd into parts of the run: their number a block varies "
                f"{dispersion:.1f} times as much as that of independent ones",
            )
        )
    neighbours = max(
        (autocorrelation(series) for series in (blocks.counts, blocks.maxima)), key=lambda a: a.q
    )
    alike = max(inflation(blocks.counts), inflation(blocks.maxima))
    if neighbours.probability < 1e-3 and alike > MATERIAL:
        factor *= alike
        findings.append(
            GateFinding(
                "dependence",
                "Ljung-Box Q of blocks",
                neighbours.q,
                "deflate",
                f"blocks resemble their neighbours (autocorrelation {neighbours.largest:.2f}): "
                f"{alike:.1f} of them count as one",
            )
        )
    others = max((_of_others(counts, blocks.edges[-1]) for counts in blocks.others), default=1.0)
    if others > OVERDISPERSED * design_effect * factor:
        factor = others / design_effect
        findings.append(
            GateFinding(
                "dependence",
                "dispersion of misses a block",
                others,
                "deflate",
                "misses, or what is as late as all of the latest, crowd into parts of the run: "
                f"{others:.1f} of them count as one",
            )
        )
    return factor, findings


def _dispersion(counts: Floats) -> float:
    """Variance of the numbers a block over that of independent rare ones; 1 if there are none."""
    mean = float(counts.mean())
    return float(counts.var(ddof=1)) / mean if mean else 1.0


def _of_others(counts: Floats, n: int) -> float:
    """By how much the variance of their number is above that of independent ones, by how it varies from block
    to block and how blocks resemble each other: all that hangs together, so that no clusters are known."""
    rest = 1 - float(counts.sum()) / n
    alike = inflation(counts) if autocorrelation(counts).probability < 1e-3 else 1.0
    return _dispersion(counts) / rest * alike if rest else 1.0


def stationarity(blocks: Blocks) -> list[GateFinding]:
    """Whether block maxima or the exceedances a block wander (KPSS)."""
    quarters = [blocks.count * part // 4 for part in (1, 2, 3)]
    worst, ratio = 0.0, 1.0
    for series, effect in blocks.series():
        statistic = kpss(series)
        if statistic > max(KPSS_LIMIT, worst) and effect(series, quarters) >= MATERIAL:
            worst, ratio = statistic, effect(series, quarters)
    if not worst:
        return []
    message = (
        f"the tail is not stationary: its releases are {times(ratio)} as likely in one quarter of the run "
        "as in another"
    )
    return [GateFinding("stationarity", "KPSS", worst, "refuse", message)]


def changes(blocks: Blocks, period_ns: int) -> list[GateFinding]:
    """Where block maxima or the exceedances a block change for good, and by how much any of them does."""
    all_series = blocks.series()
    for series, effect in all_series:
        starts = change_points(series)
        if not starts or effect(series, starts) < MATERIAL:
            continue
        ratio = max(effect_of(other, starts) for other, effect_of in all_series)
        at = tuple(int(blocks.edges[start]) for start in starts)
        moments = ", ".join(moment(release, period_ns) for release in at)
        message = (
            f"the tail changes at {moments}: its releases are {times(ratio)} as likely in one part of the "
            "run as in another"
        )
        return [GateFinding("change_point", "change points", float(len(starts)), "refuse", message, at)]
    return []


def growth(found: Drift, values: Ints, blocks: Blocks | None) -> list[GateFinding]:
    """Drift, overload and skips of the delay. A drift is refused if what it comes to over the run makes
    exceedances MATERIAL times as likely."""
    findings = [_skipping(found)] if found.growth == "skipping" else []
    trend = found.trend
    if trend is None or not (found.rises or found.growth in ("drifting", "overloaded")):
        return findings
    came_to = abs(trend.accumulated_ns)
    if blocks:
        material = blocks.raised(values, came_to) >= MATERIAL
    else:
        material = came_to >= math.log(MATERIAL) * trend.jitter_ns
    why = f" ({_causes(found)})" if found.causes else ""
    grows = "rises" if trend.accumulated_ns > 0 else "falls"
    state = f"{grows} steadily, though no timer drifts" if found.rises else f"is {found.growth}{why}"
    message = (
        f"the delay {state}: {trend.slope_ns_per_s / 1e3:+.4g} us/s "
        f"[{trend.lower_ns_per_s / 1e3:.4g}, {trend.upper_ns_per_s / 1e3:.4g}], "
        f"{about(trend.accumulated_ns)} over the run"
    )
    refused = material or found.growth == "overloaded"
    kind = "stationarity" if found.rises else "drift" if found.growth == "drifting" else "overload"
    consequence: Consequence = "refuse" if refused else "info"
    return [*findings, GateFinding(kind, "slope in ns/s", trend.slope_ns_per_s, consequence, message)]


def _causes(found: Drift) -> str:
    return ", ".join(cause.replace("_", " ") for cause in found.causes)


def _skipping(found: Drift) -> GateFinding:
    if not found.skipped:
        message = (
            f"no release was skipped, and the delay jumped by {found.periods_jumped:,} whole periods: "
            "releases are counted by executed cycles"
        )
        return GateFinding("skipping", "periods jumped", float(found.periods_jumped), "info", message)
    why = f" ({_causes(found)})" if found.causes else ""
    message = f"{found.skipped:,} {'release was' if found.skipped == 1 else 'releases were'} skipped{why}"
    if found.trend is not None and not found.rises:
        message += "; the delay of the others does not grow"
    return GateFinding("skipping", "releases skipped", float(found.skipped), "info", message)


def warm_up(values: Ints, blocks: Blocks, period_ns: int) -> list[GateFinding]:
    """Whether the start of the run is later than the rest: more exceedances, or a higher median.

    The bound is on the safe side with such a start in it, so this is for information; extremes are
    refused.
    """
    n = len(values)
    middle = int(np.median(values[:: n // 100_000 + 1]))
    settled = blocks.at[np.searchsorted(blocks.at, n // 4) :]
    design_effect = decluster(settled, run_length_of(settled, extremal_index(settled) or 1.0)).design_effect
    least, length = math.log(START_PROBABILITY), 0
    window = n // 8
    while window >= SMALLEST_WINDOW:
        tail = int(np.searchsorted(blocks.at, window))
        body = int(np.count_nonzero(values[:window] > middle))
        for seen, expected, ratio in (
            (tail, window * len(blocks.at) / n, TAIL_RATIO),
            (body, window * 0.5, BODY_RATIO),
        ):
            chance = _log_upper_tail(seen / design_effect, expected / design_effect)
            if seen >= ratio * expected and chance < least:
                least, length = chance, window
        window //= 2
    if not length:
        return []
    message = (
        f"the first {moment(length, period_ns)} are later than the rest: a longer warm-up is needed; the "
        "bound is on the safe side with them in it"
    )
    return [GateFinding("warm_up", "releases at the start", float(length), "info", message)]


def modes(found: Mode | None) -> list[GateFinding]:
    """A mode of its own in the tail: another cause than that of the rest."""
    if found is None:
        return []
    return [
        GateFinding(
            "mixture",
            "share of the tail in a mode of its own",
            found.share,
            "info",
            f"the tail is a mixture: of the {found.values:,} releases later than "
            f"{about(found.threshold_ns)}, {100 * found.share:.0f} % are in a mode of their own at "
            f"about {about(found.at_ns)}",
        )
    ]


def rhythms(found: Rhythm | None) -> list[GateFinding]:
    """A period that the latest releases keep."""
    if found is None:
        return []
    cause = f", the period of {found.cause}" if found.cause else ""
    return [
        GateFinding(
            "rhythm",
            "mean resultant length",
            found.strength,
            "info",
            f"the latest releases come every {about(found.period_s * 1e9)}{cause}",
        )
    ]


def quantisation(quantum_ns: int, scale_ns: float) -> list[GateFinding]:
    """Whether the resolution of the values is coarse against the tail."""
    if quantum_ns <= 0.1 * scale_ns or quantum_ns <= 1:
        return []
    held = f" (scale {about(scale_ns)})" if scale_ns > 0 else ", most of which is one step"
    return [
        GateFinding(
            "quantisation",
            "resolution over the tail's scale",
            quantum_ns / max(scale_ns, 1.0),
            "info",
            f"values come in steps of {about(quantum_ns)}, coarse against the tail{held}: "
            "a deadline between two steps is judged by the lower one",
        )
    ]


def _log_upper_tail(seen: float, expected: float) -> float:
    """Logarithm of Chernoff's bound of a Poisson count of at least ``seen``."""
    if seen <= expected or expected <= 0:
        return 0.0
    return seen - expected - seen * math.log(seen / expected)
