"""What most of a cell's late releases waited for; kept beside its trace, since finding it takes long."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from rtmeter.api.explained import explained
from rtmeter.errors import RtmeterError
from rtmeter.explain.causes import Explanation, Ranked
from rtmeter.explain.segments import Key
from rtmeter.results.cells import StoredCell
from rtmeter.results.store import CELL, SAMPLES
from rtmeter.trace.table import FILE

KEPT = "explanation.json"
_VERSION = 1

_URGENT = ("task_at_or_above", "kernel_thread_at_or_above", "middleware_thread_at_or_above", "normal_policy")
_NAMES_WHO = {*_URGENT[:3], "irq_on_cpu"}
"""Findings that list whom they are of."""

_POINTS_AT: dict[tuple[str, str | None], tuple[str, ...]] = {
    ("displaced", "above"): _URGENT,
    ("displaced", "equal"): _URGENT,
    ("displaced", "below"): ("preemption_model", "kernel_not_preempt_rt"),
    ("held_off", None): ("kernel_not_preempt_rt",),
    ("outside", None): ("virtual_machine", "emulated_processor", "steal"),
    ("timer_idle", None): ("deep_idle_states", "virtual_machine"),
    ("dispatch", None): ("deep_idle_states", "virtual_machine"),
    ("interrupt", None): ("irq_on_cpu",),
    ("armed_later", None): ("normal_policy",),
}
"""Category and relation → the findings of `rtmeter check` that explain it, the likeliest first."""

_SAY_NOTHING = ("info", "unknown")


@dataclass(frozen=True)
class Why:
    """``causes`` of the ``late`` releases, the one that carries most of their lateness first."""

    late: int
    lateness_ns: int
    unknown_ns: int
    causes: tuple[Ranked, ...]


def why(cell: StoredCell) -> Why | None:
    """None if nothing is late, the cell has no trace, or it cannot be explained."""
    state = _state_of(cell.folder)
    if state is None:
        return None
    kept = _read(cell.folder / KEPT, state)
    if kept is None:
        try:
            kept = of(explained(cell).found)
        except RtmeterError:
            return None
        with suppress(OSError):  # the next one finds it anew
            (cell.folder / KEPT).write_text(json.dumps(_to_json(kept, state)), encoding="utf-8")
    return kept if kept.late else None


def of(found: Explanation) -> Why:
    """In short."""
    late = [each.release.lateness_ns for each in found.releases if each.release.late]
    return Why(len(late), sum(late), found.unknown_ns, found.causes)


def finding_for(key: Key, findings: Iterable[Mapping[str, Any]]) -> Mapping[str, Any] | None:
    """The finding of a check of the machine that explains a cause; None if it found nothing of the kind, or
    found others of the kind."""
    found = {finding["id"]: finding for finding in findings if finding["grade"] not in _SAY_NOTHING}
    for one in _POINTS_AT.get((key.category, key.relation), ()):
        if one in found and (one not in _NAMES_WHO or _names(found[one], key.who)):
            return found[one]
    return None


def _names(finding: Mapping[str, Any], who: str | None) -> bool:
    """Whether the finding is of that thread or interrupt."""
    said = (str(finding.get("value")), *(str(value) for item in finding["items"] for value in item.values()))
    return any((who or "").strip("[]") in text.split() for text in said)


def _state_of(folder: Path) -> list[int] | None:
    """What an explanation rests on: sizes and times of the files; None if one is missing."""
    try:
        files = [(folder / name).stat() for name in (FILE, SAMPLES, CELL)]
    except OSError:
        return None
    return [number for file in files for number in (file.st_size, file.st_mtime_ns)]


def _read(path: Path, state: list[int]) -> Why | None:
    """What is kept, if it is of these files."""
    try:
        kept = json.loads(path.read_text(encoding="utf-8"))
        if kept["version"] != _VERSION or kept["of"] != state:
            return None
        causes = tuple(
            Ranked(Key(row["category"], row["who"], row["relation"]), row["releases"], row["lateness_ns"])
            for row in kept["causes"]
        )
        return Why(kept["late"], kept["lateness_ns"], kept["unknown_ns"], causes)
    except (OSError, ValueError, KeyError, TypeError):
        return None


def _to_json(kept: Why, state: list[int]) -> dict[str, Any]:
    causes = [
        {**row.key._asdict(), "releases": row.releases, "lateness_ns": row.lateness_ns} for row in kept.causes
    ]
    numbers = {"late": kept.late, "lateness_ns": kept.lateness_ns, "unknown_ns": kept.unknown_ns}
    return {"version": _VERSION, "of": state, **numbers, "causes": causes}
