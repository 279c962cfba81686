"""What the modules of the front pass to each other. Imports nothing of ours."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Literal

if TYPE_CHECKING:
    from rtmeter.errors import RtmeterError

ABSENT = -(2**63)
"""An absent value in a column of int64 nanoseconds."""

IN_FLIGHT, SERVED, SKIPPED, LOST = 0, 1, 2, 3
"""Codes of the status column (spec/sample-log.md), warm-up flag taken off."""

STATUS_NAMES = ("in_flight", "served", "skipped", "lost")
WARM_UP_FLAG = 128

Measurement = Literal["wakeup", "timer", "roundtrip", "cycle"]


@dataclass(frozen=True, slots=True)
class Doubt:
    """A doubt about the data, stored with it: a type from a fixed set, what was seen, what helps."""

    type: str
    message: str
    hint: str = ""


@dataclass(frozen=True, slots=True)
class Outcome:
    """How the run of a cell ended; ``error`` says why it failed."""

    status: Literal["complete", "interrupted", "failed"]
    error: RtmeterError | None = None
    warnings: tuple[Doubt, ...] = ()


Consequence = Literal["info", "deflate", "refuse"]
"""What a finding means for a bound: nothing, fewer effective releases, or that there is none."""


@dataclass(frozen=True, slots=True)
class Finding:
    """What a gate saw in the data: its type, the statistic it decided on and that one's value, what
    follows for a bound, and the same in words."""

    type: str
    statistic: str
    value: float
    consequence: Consequence
    message: str


@dataclass(frozen=True, slots=True)
class Requirement:
    """What a cell is judged by. ``deadline_ns`` on the judged quantity; ``miss_ratio`` is the allowed
    share of misses, or None: any miss fails; ``confidence`` of the one-sided bounds."""

    deadline_ns: int
    miss_ratio: float | None = None
    confidence: float = 0.95


@dataclass(frozen=True, slots=True)
class Verdict:
    """The judgement of one cell.

    ``misses`` of ``n`` releases; ``lower`` and ``upper`` are one-sided Clopper-Pearson bounds of the
    miss ratio at ``requirement.confidence``; ``more_samples`` is the fewest further samples, all in
    time, that would make an inconclusive verdict a pass.
    """

    outcome: Literal["pass", "fail", "inconclusive", "error"]
    reason: str
    requirement: Requirement
    quantity: str
    n: int
    misses: int
    late: int
    skipped: int
    lost: int
    lower: float | None
    upper: float | None
    more_samples: int | None = None


@dataclass(frozen=True, slots=True)
class Cell:
    """One point of a campaign's matrix: an id unique in the campaign, the factors that vary, and the
    probe config (spec/probe.md) without paths.

    ``server_affinity`` and ``server_options`` replace the config's in the server process, unless None.
    """

    id: str
    adapter: str
    server_adapter: str | None
    axes: dict[str, Any]
    config: dict[str, Any]
    requirement: Requirement | None = None
    server_affinity: tuple[int, ...] | None = None
    server_options: dict[str, str] | None = None
    keep_log: bool = False


@dataclass(frozen=True, slots=True)
class Campaign:
    """A named list of cells, in running order; ``source`` is the text of the file."""

    name: str
    cells: tuple[Cell, ...]
    description: str = ""
    source: str = ""


@dataclass(frozen=True, slots=True)
class Run:
    """One execution of a campaign on one machine: where its cells are and what was said of them."""

    path: str
    campaign: str
    machine: str
    cells: tuple[str, ...] = field(default_factory=tuple)
