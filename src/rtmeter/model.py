"""What the modules of the front pass to each other. Imports nothing of ours."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Annotated, Any, Literal

from annotated_types import Ge, Gt, Le, Lt

if TYPE_CHECKING:
    from rtmeter.errors import RtmeterError

ABSENT = -(2**63)
"""An absent value in a column of int64 nanoseconds."""

IN_FLIGHT, SERVED, SKIPPED, LOST = 0, 1, 2, 3
"""Codes of the status column (spec/sample-log.md), warm-up flag taken off."""

STATUS_NAMES = ("in_flight", "served", "skipped", "lost")
WARM_UP_FLAG = 128

TRACE_BYTES, TRACE_MARGIN_NS = 256 << 20, 20_000_000
"""Of the kernel's events, unless it is said: room for their pages, and what is kept around a late release."""

MONITOR_NS = 1_000_000_000
"""How often the machine is sampled while a cell is measured, unless it is said."""

Measurement = Literal["wakeup", "timer", "roundtrip", "request", "cycle", "chain", "discovery", "loop"]

Count = Annotated[int, Ge(0), Lt(2**63)]
"""How many; at most what tables hold."""

TWO_ENDS: tuple[Measurement, ...] = ("roundtrip", "request")
"""Measurements in which a client asks and a server answers, each release one reply or none."""


@dataclass(frozen=True, slots=True)
class Doubt:
    """A doubt about the data, stored with it: a type from a fixed set, what was seen, what helps."""

    type: str
    message: str
    hint: str = ""


@dataclass(frozen=True, slots=True)
class Outcome:
    """How the run of a cell ended; ``error`` says why it failed, or was skipped: its adapter is not here."""

    status: Literal["complete", "interrupted", "failed", "skipped"]
    error: RtmeterError | None = None
    warnings: tuple[Doubt, ...] = ()


Consequence = Literal["info", "deflate", "refuse"]
"""What a finding means for a bound: nothing, fewer effective releases, or that there is none."""


@dataclass(frozen=True, slots=True)
class GateFinding:
    """What a gate saw in the data: its type, the statistic it decided on and that one's value (None where
    it is infinite), what follows for a bound, and the same in words; ``at``: the releases, counted from the
    first measured one, from which on the tail is another."""

    type: str
    statistic: str
    value: float | None
    consequence: Consequence
    message: str
    at: tuple[int, ...] = ()


LOCAL = "local"
"""The host that is this machine."""

TARGET = "target"
"""Key of Cell.hosts: the machine that all of the cell runs on, where that is not this one."""

Criticality = Literal["hard", "firm", "soft"]
"""What a missed deadline means: the system has failed; the result is worthless; it is worth less."""


HORIZON = 10.0
"""Times the run over which what was missed must not by itself be more than allowed, unless it is said."""


@dataclass(frozen=True, slots=True)
class Requirement:
    """What a cell is judged by. ``deadline_ns`` on the judged quantity; ``miss_ratio`` is the allowed
    share of misses, or None: any miss fails; ``confidence`` of the one-sided bounds; ``horizon``: the times
    the run over which the misses seen alone must meet the ratio."""

    deadline_ns: Annotated[int, Gt(0), Lt(2**56)]
    miss_ratio: Annotated[float, Gt(0), Lt(1)] | None = None
    confidence: Annotated[float, Gt(0), Lt(1)] = 0.95
    criticality: Criticality = "firm"
    horizon: Annotated[float, Ge(1), Lt(1e6)] = HORIZON


@dataclass(frozen=True, slots=True)
class ReturnLevel:
    """The level that a run passes once in ``hours``, with its two-sided interval and the shape of the
    tail; the values are None where ``findings`` refuse them."""

    hours: float
    level_ns: float | None
    lower_ns: float | None
    upper_ns: float | None
    shape: float | None
    shape_interval: tuple[float, float] | None
    findings: tuple[GateFinding, ...]


@dataclass(frozen=True, slots=True)
class Support:
    """What a verdict rests on besides the number of misses.

    ``clusters`` of misses and the ``longest_run`` of consecutive ones, and by how much those that came
    were late; ``effective_n``: n over the ``design_effect`` of dependence, with the ``extremal_index``
    (None: not known); ``lower`` and ``upper``: the bounds of the miss ratio for that n (None: refused),
    and the same per hour; ``more_hours``: the shortest further run, all in time, that passes, and
    ``expected_hours``, if misses go on as seen; ``growth`` of the delay with its causes, its slope and
    what it came to over the run; the period of late releases; the return level; what the gates found.
    Of data without order all that needs it is None, ``growth`` is ``unknown`` and a finding says so.
    """

    clusters: int | None
    longest_run: int | None
    median_lateness_ns: float | None
    largest_lateness_ns: float | None
    extremal_index: float | None
    design_effect: Annotated[float, Ge(1)]
    effective_n: float
    lower: float | None
    upper: Annotated[float, Ge(0), Le(1)] | None
    lower_per_hour: float | None
    upper_per_hour: float | None
    more_hours: float | None
    expected_hours: float | None
    growth: str
    causes: tuple[str, ...]
    slope_ns_per_s: float | None
    slope_interval_ns_per_s: tuple[float, float] | None
    accumulated_ns: float | None
    rhythm_s: Annotated[float, Gt(0)] | None
    return_level: ReturnLevel | None
    findings: tuple[GateFinding, ...]


@dataclass(frozen=True, slots=True)
class Verdict:
    """The judgement of one cell.

    ``misses`` of ``n`` releases; ``lower`` and ``upper`` are one-sided Clopper-Pearson bounds of the
    miss ratio at ``requirement.confidence`` if misses are independent; ``more_samples`` is the fewest
    further samples, all in time, that would make an inconclusive verdict a pass, of several runs in
    ``more_runs`` runs of equal length that miss as often as these;
    ``unserved`` of the lost were skipped with no later ping to serve them; ``support``: what dependence and
    the gates make of it, which decides the outcome; None where there is no order of releases, or none were
    measured. ``misses_between``: the fewest and the most misses that data without single values allow,
    where these differ.
    """

    outcome: Literal["pass", "fail", "inconclusive", "error"]
    reason: str
    requirement: Requirement
    quantity: str
    n: Count
    misses: Count
    late: Count
    skipped: Count
    lost: Count
    lower: float | None
    upper: float | None
    more_samples: int | None = None
    support: Support | None = None
    misses_between: tuple[int, int] | None = None
    unserved: Count = 0
    more_runs: int | None = None

    @property
    def missed(self) -> str:
        """How many missed, in words; of data without single values between how many."""
        least, most = self.misses_between or (self.misses, self.misses)
        return f"{most:,}" if least == most else f"{least:,} to {most:,}"

    @property
    def bound(self) -> float | None:
        """The upper bound of the miss ratio that may be stated; None where there is none."""
        return self.support.upper if self.support else self.upper

    @property
    def design_effect(self) -> float:
        """How many releases count as one."""
        return self.support.design_effect if self.support else 1.0


@dataclass(frozen=True, slots=True)
class Rig:
    """One of many machines that a campaign is measured on at once: ``address`` (ssh://user@host), the labels
    of its results, what it has in place of the campaign's options (flat), the place of labgrid that it is,
    and how long it may not answer before its cells fail."""

    name: str
    address: str
    labels: dict[str, str] = field(default_factory=dict)
    set: dict[str, Any] = field(default_factory=dict)
    place: str | None = None
    patience_ns: int = 0


@dataclass(frozen=True, slots=True)
class Cell:
    """One point of a campaign's matrix: an id unique in the campaign, the factors that vary, and the
    probe config (spec/probe.md) without paths.

    ``server_cpus``, ``server_options``, ``server_receive`` and ``server_shared_clock`` replace the config's
    in the server process, unless None.
    ``published``: the published values that it is to be set beside (spec/results.md); None: its campaign
    names none. ``factors``: its level of each factor of its campaign (campaign/factors.py).
    ``conditions``: what was asked of the machine, of ``load``, ``traffic``, ``settings``, ``explain``,
    ``strict`` and, unless it is WATCH_NS, ``monitor_ns``. ``rig``: which of many machines it is measured on.
    """

    id: str
    adapter: str
    server_adapter: str | None
    axes: dict[str, Any]
    config: dict[str, Any]
    requirement: Requirement | None = None
    server_cpus: tuple[int, ...] | None = None
    server_options: dict[str, str] | None = None
    server_receive: str | None = None
    server_shared_clock: str | None = None
    keep_log: bool = False
    hosts: dict[str, str] = field(default_factory=dict)
    conditions: dict[str, Any] = field(default_factory=dict)
    published: list[dict[str, Any]] | None = None
    factors: dict[str, Any] = field(default_factory=dict)
    rig: Rig | None = None

    @property
    def planned_ns(self) -> int:
        """How long its releases take, warm-up included."""
        return int((self.config["warm_up"] + self.config["samples"]) * self.config["period_ns"])


@dataclass(frozen=True, slots=True)
class Campaign:
    """A named list of cells, in running order; ``source`` is the text of the file; ``host``: where the
    servers of round trips run if the file does not say it; ``rigs``: the machines that all of it is measured
    on; none: this one, or where the file says."""

    name: str
    cells: tuple[Cell, ...]
    description: str = ""
    source: str = ""
    host: str | None = None
    rigs: tuple[Rig, ...] = ()
