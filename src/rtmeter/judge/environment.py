"""What differs between the conditions of two cells, and what makes comparing them meaningless."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from rtmeter.results import words
from rtmeter.results.record import CellRecord
from rtmeter.statistics.quantities import grid_inferred

_ADAPTER, _SERVERS = "adapter_facts", "server_adapter_facts"
_SECTIONS = (
    *("config", "effective", "server_config", "hosts", _ADAPTER, _SERVERS, "machine", "server_machine"),
)
_OF_THE_CELL = ("measurement", "mode", "adapter", "server_adapter", "rtmeter")

_UNTOLD = {
    *(
        f"{section}.{it_could}"
        for section in (_ADAPTER, _SERVERS)
        for it_could in (
            "measures",
            "drives",
            "receives",
            "components",
            "option",
            "second_topic",
            "beside",
            "poll",
            "background",
            "chosen",
            "wire",
        )
    ),
    *("config.measurement", "config.mode"),
}

_PASSING = {"boot_id", "time_namespace"}
"""Facts of a machine that are others after the next boot."""

_OWN = {"explain"}
"""Settings in effect that have another name each time: a tracefs instance."""

_IDS = ("machine.machine_id", "server_machine.machine_id")
"""Which machine of a host name it is, where that is known."""

_GRAVE = ("fatal", "high")

_VIRTUAL = "machine.virtual_machine"
"""None in a machine that is none."""

REFUSING = {
    "measurement": "another measurement",
    "mode": "another kind of timer",
    "config.quantity": "another quantity",
    "config.period_ns": "another period",
    "config.timeout_ns": "another timeout",
    "machine.architecture": "another machine",
    "machine.cpu_model": "another machine",
    "machine.cpus_online": "another machine",
    _VIRTUAL: "a virtual machine against another or none",
}
"""Differences that leave nothing to be said of the rest (docs/compare.md)."""


SHAPE = {
    "effective.drive": "another drive",
    "effective.components": "other threads of the components",
    "effective.cpu_dma_latency": "another limit of idle states",
}
"""Differences that refuse two middlewares: they would be taken for what a middleware adds. Of one
middleware they may be what is compared."""

GRID = "effective.grid"
"""Whose grid the releases are on: core, reported, inferred."""


@dataclass(frozen=True, slots=True)
class Difference:
    """A condition that differs: its name (``config.scheduling``), and A's and B's as people write them;
    ``known``: of both it is known, which of imported data it often is not; ``meaningless``: what it makes
    a comparison, None if it does not."""

    name: str
    a: str
    b: str
    known: bool = True
    meaningless: str | None = None

    @property
    def refusal(self) -> str | None:
        """Why it makes a comparison meaningless; None if it does not."""
        return self.meaningless if self.known else None

    @property
    def unknown(self) -> str | None:
        """What would make a comparison meaningless, if it were known; None if nothing."""
        return None if self.known else self.meaningless


def differences(a: CellRecord, b: CellRecord) -> list[Difference]:
    """The conditions in which two cells (their cell.json) differ.

    What either session chose by itself, a domain or a port that nobody asked for, is none of them. A setting
    in effect is told only where what was asked is the same; of drive, threads and idle states
    only what is in effect, where that is known. Facts of the server's adapter are told where they are known
    of both, and differ in another way than the client's.
    """
    first, second = dict(_conditions(a)), dict(_conditions(b))
    servers_known = None not in (a.server_adapter_facts, b.server_adapter_facts)
    for name in _IDS:
        if None in (first.get(name), second.get(name)):  # the host name decides
            first.pop(name, None), second.pop(name, None)
    for name in SHAPE:
        if first.get(name) is not None and second.get(name) is not None:
            for conditions in (first, second):
                conditions.pop(name.replace("effective", "config"), None)
    machines_known = bool(a.machine and b.machine)
    refusing = REFUSING | (SHAPE if _middleware(a) != _middleware(b) else {})
    inferred = [facts.get(GRID) == "inferred" for facts in (first, second)]
    if inferred[0] != inferred[1]:
        refusing |= {GRID: "a grid inferred from callbacks against a known one"}
    found = []
    chosen = {*_chosen(a), *_chosen(b)}
    for name in [*first, *(name for name in second if name not in first)]:
        mine, other = first.get(name), second.get(name)
        section, _, key = name.rpartition(".")
        if section == _SERVERS:
            of_client = tuple(facts.get(f"{_ADAPTER}.{key}") for facts in (first, second))
            if not servers_known or (mine, other) == of_client:
                continue
        asked = f"config.{key}"
        explained = name.startswith("effective.") and first.get(asked) != second.get(asked)
        if mine != other and not explained and name not in chosen:
            known = (mine is not None and other is not None) or (name == _VIRTUAL and machines_known)
            told_as = words.setting(key, mine), words.setting(key, other)
            found.append(Difference(name, *told_as, known, refusing.get(name)))
    return found


def _chosen(record: CellRecord) -> Iterator[str]:
    """Facts that follow from the session alone."""
    for section in (_ADAPTER, _SERVERS):
        for fact in (getattr(record, section) or {}).get("chosen", ()):
            yield f"{section}.{fact}"


def _middleware(record: CellRecord) -> tuple[Any, ...]:
    return record.adapter, record.adapter_facts.get("rmw")


def grid_of(record: CellRecord) -> str | None:
    """Whose grid a cell's releases are on; None where there is none, or it is not known."""
    t0_from = record.grid.get("t0_from")
    return "inferred" if grid_inferred({"t0_from": t0_from}) else t0_from


def other_findings(a: CellRecord, b: CellRecord) -> Difference | None:
    """What only the machine of A, and only that of B, had gravely wrong just before it was measured; None
    if nothing, or if it was not looked at."""
    if a.findings is None or b.findings is None:
        return None
    first, second = (
        {finding.id for finding in findings if finding.grade in _GRAVE}
        for findings in (a.findings, b.findings)
    )
    if first == second:
        return None
    of_a, of_b = (
        words.setting("findings", sorted(ids)) or words.NONE for ids in (first - second, second - first)
    )
    return Difference("findings", of_a, of_b)


def _conditions(record: CellRecord) -> Iterator[tuple[str, Any]]:
    for name in _OF_THE_CELL:
        yield name, getattr(record, name)
    for end, carried in (record.path or {}).items():
        yield f"path.{end}", carried["carried_by"]
    conditions: Mapping[str, Any] = record.conditions or {}
    sections: dict[str, Any] = {name: getattr(record, name) for name in _SECTIONS}
    effective = sections["effective"] = dict(sections["effective"] or {})
    if grid := grid_of(record):
        effective["grid"] = grid
    if "cpu_dma_latency" in effective:  # null: nobody holds it, which is known
        effective["cpu_dma_latency"] = "not held" if effective["cpu_dma_latency"] is None else "held at 0"
    sections |= {f"conditions.{name}": conditions.get(name) for name in ("asked", "effective")}
    if made := sections["conditions.effective"]:
        settings = {name: one for name, one in (made.get("settings") or {}).items() if name not in _OWN}
        sections["conditions.effective"] = {**made, "settings": settings or None}
    for section, facts in sections.items():
        for key, value in (facts or {}).items():
            if f"{section}.{key}" not in _UNTOLD and key not in _PASSING:
                yield f"{section}.{key}", value
