"""The same cell in one run after the other: what was measured when, and where it changed."""

from __future__ import annotations

from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path

import numpy as np

from rtmeter.errors import RtmeterError
from rtmeter.judge.entries import by_condition
from rtmeter.results import store
from rtmeter.results.machines import SeenMachine, names_of
from rtmeter.results.overview import CellEntry, cell_entries
from rtmeter.statistics.changes import change_points
from rtmeter.values import slug

FEWEST_RUNS = 20
"""Of a series in which changes are looked for: how often they are found wrongly is known from there on
(rtmeter.statistics.changes)."""

_LONGEST_NAME = 200
"""Of a page's file: what is longer is cut, and told apart by its digest, as file systems take 255 bytes."""


@dataclass(frozen=True, slots=True)
class HistoryEntry:
    """The cell in one run: when the run began, and what is said of the cell."""

    run: Path
    started: str
    cell: CellEntry

    @property
    def reported(self) -> Path:
        """What its report is of: its run, or itself if it is in none."""
        return self.run if (self.run / store.RUN).is_file() else self.cell.folder

    @property
    def p99_9_ns(self) -> float | None:
        """Of the judged quantity per release; infinite if lost, None where nothing was measured."""
        return _number(self.cell.judged.p99_9_ns) if self.cell.judged else None

    @property
    def max_ns(self) -> float | None:
        return _number(self.cell.judged.max_ns) if self.cell.judged else None

    @property
    def tail_ns(self) -> float | None:
        """p99.9; of a run with too few releases for it, the maximum, which it would be."""
        judged = self.cell.judged
        return self.p99_9_ns if judged is None or self.p99_9_ns is not None else _number(judged.max_ns)

    @property
    def p50_ns(self) -> float | None:
        return _number(self.cell.judged.p50_ns) if self.cell.judged else None


@dataclass(frozen=True, slots=True)
class History:
    """A cell of a campaign on a machine, in the order of its runs, of which there is at least one; ``page``:
    the file of its page."""

    machine: str
    campaign: str
    cell: str
    page: str
    entries: tuple[HistoryEntry, ...]

    @property
    def latest(self) -> HistoryEntry:
        return self.entries[-1]

    @property
    def changes(self) -> list[HistoryEntry]:
        """The runs from which on the tail is another; none are looked for in fewer than FEWEST_RUNS."""
        known = [(entry, value) for entry in self.entries if (value := entry.tail_ns) is not None]
        if len(known) < FEWEST_RUNS:
            return []
        return [known[at][0] for at in change_points(np.array([value for _, value in known]))]


def file_name(*parts: str) -> str:
    """The name of a page of these parts; no part has the sign that joins them. A file can have it, however
    long they are."""
    name = "~".join(slug(part) for part in parts)
    if len(name) > _LONGEST_NAME:
        name = f"{name[:_LONGEST_NAME]}~{sha256(name.encode()).hexdigest()[:12]}"
    return f"{name}.html"


def histories(results: Path) -> list[History]:
    """Every cell under the folder, the worst of their latest first. Raises RtmeterError if there is none."""
    places = [(cell, *_place(cell.folder.parent, cell)) for cell in by_condition(cell_entries(results))]
    called = names_of(machine for _, machine, _, _ in places)
    groups: dict[tuple[str, str, str], list[HistoryEntry]] = {}
    for cell, machine, campaign, started in places:
        name = cell.record.id if cell.record else cell.folder.name.removesuffix(store.PARTIAL)
        entry = HistoryEntry(cell.folder.parent, started, cell)
        groups.setdefault((called[machine], campaign, name), []).append(entry)
    found, pages = [], set[str]()
    for key in sorted(groups):
        page = name = file_name(*key)
        number = 1
        while page in pages:  # names may differ in what a file's name cannot hold
            number += 1
            page = f"{name.removesuffix('.html')}~{number}.html"
        pages.add(page)
        entries = sorted(groups[key], key=lambda e: (e.started, str(e.run)))
        found.append(History(*key, page, tuple(entries)))
    return sorted(found, key=lambda h: (h.latest.cell.badness, h.machine, h.campaign, h.cell))


def _place(run: Path, cell: CellEntry) -> tuple[SeenMachine, str, str]:
    """Machine, campaign and start of a run; of a cell that is in none, what the cell says."""
    facts = cell.record.machine if cell.record else {}
    machine, own = facts.get("hostname") or "", facts.get("machine_id")
    started = (cell.record.started if cell.record else None) or ""
    try:
        about = store.read_run(run)
    except RtmeterError:
        return (machine or "machine", own), "measure", started
    return (run.parent.parent.name or machine, own or about.machine_id), about.campaign, about.started


def _number(value: int | float | str | None) -> float | None:
    if value is None:
        return None
    return float("inf") if isinstance(value, str) else float(value)
