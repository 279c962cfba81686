"""From what a run shows to what the machine has wrong: which findings may be its cause."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from rtmeter.statistics.rhythm import KNOWN_WITHIN, cause_of
from rtmeter.values import format_duration

OF_PERIOD: dict[float, tuple[str, ...]] = {
    60.0: ("task_at_or_above", "kernel_thread_at_or_above", "cpu_shared"),
    10.0: ("task_at_or_above", "kernel_thread_at_or_above", "cpu_shared"),
    1.0: ("rt_throttling", "fair_server", "rt_group_limit", "task_at_or_above"),
    0.1: ("cpu_quota", "steal", "virtual_machine"),
}
"""Period of late releases in seconds (those of statistics.rhythm.KNOWN that are named) → ids of findings."""

OF_USAGE: dict[str, tuple[str, ...]] = {
    "major_faults": ("swap", "memlock_limit"),
    "minor_faults": ("memlock_limit", "transparent_hugepages", "numa_balancing", "same_page_merging"),
    "involuntary_switches": (
        "task_at_or_above",
        "kernel_thread_at_or_above",
        "middleware_thread_at_or_above",
        "rt_throttling",
        "fair_server",
        "normal_policy",
        "cpu_shared",
    ),
    "migrations": ("no_cpu_chosen", "normal_policy"),
}
"""What the measured thread suffered (cell.json, usage) → ids of findings."""


@dataclass(frozen=True, slots=True)
class Suspicion:
    """A sign in the data, in words, and the findings of the same cell that may explain it."""

    sign: str
    findings: tuple[Mapping[str, Any], ...]


def suspicions(
    findings: Sequence[Mapping[str, Any]], rhythm_s: float | None, usage: Mapping[str, Any]
) -> list[Suspicion]:
    """What the signs of a cell point to among its ``findings`` (as cell.json holds them).

    ``rhythm_s``: the period of late releases (Support.rhythm_s); ``usage``: as in cell.json. A sign that
    no finding explains is left out.
    """
    by_id = {finding["id"]: finding for finding in findings}
    found = [
        Suspicion(sign, tuple(by_id[name] for name in names if name in by_id))
        for sign, names in _signs(rhythm_s, usage)
    ]
    return [suspicion for suspicion in found if suspicion.findings]


def _signs(rhythm_s: float | None, usage: Mapping[str, Any]) -> Iterator[tuple[str, tuple[str, ...]]]:
    for known_s, names in OF_PERIOD.items():
        if rhythm_s is not None and abs(rhythm_s / known_s - 1) < KNOWN_WITHIN:
            period = format_duration(round(known_s * 1e9))
            yield f"the latest releases come every {period}, the period of {cause_of(rhythm_s)}", names
    for word, names in OF_USAGE.items():
        if count := usage.get(word):
            things = word.replace("_", " ")
            one = things.removesuffix("es" if things.endswith("ches") else "s")
            yield f"the measured thread saw {count:,} {one if count == 1 else things}", names
