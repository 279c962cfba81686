"""A Perfetto trace (ui.perfetto.dev): spans and counters of each release on the threads they belong to."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np
from perfetto.protos.perfetto.trace.perfetto_trace_pb2 import CounterDescriptor, TrackEvent
from perfetto.trace_builder.proto_builder import StreamingTraceProtoBuilder

from rtmeter.exports import scheduler
from rtmeter.exports.distribution import name_of
from rtmeter.exports.phases import MEASURED, Phase, begins, has_releases, marks, phases, with_expected
from rtmeter.model import ABSENT, LOST, TWO_ENDS
from rtmeter.results import store
from rtmeter.results.record import CellRecord
from rtmeter.statistics.quantities import Columns, Ints, Quantity, judged_quantity, timeout_ns
from rtmeter.statistics.views import LATER, OUTCOME_BITS
from rtmeter.trace.table import FILE, open_trace

MOST = 2_000_000
"""Releases of a cell that a trace holds whole; of a longer one those around its largest values."""

WORST, AROUND = 1_000, 50
"""How many of the largest values, lost ones first, and how many releases on either side of each."""

_SEQUENCE = 1


def write(path: Path, out: Path) -> list[str]:
    """Writes a process a cell; returns what was left out."""
    notes = []
    with out.open("wb") as file:
        trace = _Trace(StreamingTraceProtoBuilder(file))
        cells = store.cell_folders(path)
        for number, folder in enumerate(cells, 1):
            record = store.read_cell(folder)
            name = name_of(folder, path, record)
            if not has_releases(folder, record):
                notes.append(f"{name}: has no single releases with their times, and is left out")
                continue
            left_out = _write_cell(trace, folder, record, name, number)
            if left_out:
                kept = f"those around the {WORST:,} largest values, lost ones first, are there"
                notes.append(f"{name}: {left_out:,} releases are left out; {kept}")
            if (folder / FILE).is_file():
                scheduler.write(open_trace(folder / FILE), trace.scheduling)
    return notes


class _Trace:
    """Packets of one sequence; tracks are numbered as they are made."""

    def __init__(self, builder: StreamingTraceProtoBuilder) -> None:
        self._builder = builder
        self._tracks = 0
        self._begun = False

    def packet(self) -> Any:
        packet = self._builder.create_packet()
        packet.trusted_packet_sequence_id = _SEQUENCE
        if not self._begun:
            packet.sequence_flags = 1  # SEQ_INCREMENTAL_STATE_CLEARED
            self._begun = True
        return packet

    def track(self, name: str, parent: int = 0, *, process: int = 0, thread: int = 0, unit: str = "") -> int:
        """A new track: of a process, of its thread, a counter if it has a unit, or one below ``parent``."""
        self._tracks += 1
        packet = self.packet()
        descriptor = packet.track_descriptor
        descriptor.uuid = self._tracks
        if thread:
            descriptor.thread.pid, descriptor.thread.tid = process, thread
            descriptor.thread.thread_name = name
        elif process:
            descriptor.process.pid, descriptor.process.process_name = process, name
        else:
            descriptor.name = name
        if parent:
            descriptor.parent_uuid = parent
        if unit:
            descriptor.counter.unit_name = unit
            descriptor.counter.unit = CounterDescriptor.UNIT_UNSPECIFIED
        self._builder.write_packet(packet)
        return self._tracks

    def event(self, track: int, at_ns: int, kind: int, name: str = "", **facts: int) -> None:
        packet = self.packet()
        packet.timestamp = at_ns
        packet.track_event.type, packet.track_event.track_uuid = kind, track
        if name:
            packet.track_event.name = name
        for key, value in facts.items():
            annotation = packet.track_event.debug_annotations.add()
            annotation.name, annotation.int_value = key, value
        self._builder.write_packet(packet)

    def scheduling(self, cpu: int, events: Callable[[Any], None]) -> None:
        """What the kernel did on a CPU: ``events`` fills the bundle (ftrace_event_bundle.proto)."""
        packet = self.packet()
        packet.ftrace_events.cpu = cpu
        events(packet.ftrace_events)
        self._builder.write_packet(packet)

    def count(self, track: int, at_ns: int, value: float) -> None:
        packet = self.packet()
        packet.timestamp = at_ns
        packet.track_event.type = TrackEvent.TYPE_COUNTER
        packet.track_event.track_uuid = track
        packet.track_event.double_counter_value = value
        self._builder.write_packet(packet)


class _Lanes:
    """Spans of one kind on as few tracks as hold them without two at once."""

    def __init__(self, trace: _Trace, name: str, parent: int) -> None:
        self._trace, self._name, self._parent = trace, name, parent
        self._ends: list[int] = []
        self._tracks: list[int] = []

    def span(self, begin_ns: int, end_ns: int, k: int) -> None:
        name, (first, last) = self._name, sorted((begin_ns, end_ns))
        lane = next((n for n, end in enumerate(self._ends) if end <= first), len(self._ends))
        if lane == len(self._ends):
            self._ends.append(last)
            self._tracks.append(self._trace.track(f"{name}{f' {lane + 1}' if lane else ''}", self._parent))
        self._ends[lane] = last
        name += " (early)" if end_ns < begin_ns else ""
        self._trace.event(self._tracks[lane], first, TrackEvent.TYPE_SLICE_BEGIN, name, k=k)
        self._trace.event(self._tracks[lane], last, TrackEvent.TYPE_SLICE_END)


def _write_cell(trace: _Trace, folder: Path, record: CellRecord, name: str, number: int) -> int:
    """Returns how many releases were left out."""
    meta = record.meta
    quantity = judged_quantity(meta)
    chosen, total = _chosen(meta, quantity, folder)
    process, threads = _threads(trace, record, name, number)
    lanes = {
        (phase, thread): _Lanes(trace, phase.name, track)
        for phase in phases(meta)
        for thread, track in threads.items()
        if thread == phase.thread or (phase.thread == MEASURED and isinstance(thread, int))
    }
    of_all = process if any(isinstance(thread, int) for thread in threads) else threads[MEASURED]
    releases, missed = trace.track("releases", of_all), trace.track("misses", of_all)
    counter = trace.track(f"{quantity.name} (us)", of_all, unit="us")
    deadline_ns = record.deadline_ns
    for rows in _picked(meta, folder, chosen):
        _write_rows(trace, meta, quantity, rows, lanes, (releases, missed, counter), deadline_ns)
    return total - len(chosen) if chosen is not None else 0


def _write_rows(
    trace: _Trace,
    meta: Mapping[str, Any],
    quantity: Quantity,
    rows: Columns,
    lanes: Mapping[tuple[Phase, str | int], _Lanes],
    tracks: tuple[int, int, int],
    deadline_ns: int | None,
) -> None:
    releases, missed, counter = tracks
    value = quantity.of(rows, timeout_ns(meta))
    begin = begins(meta, rows)
    for k, at in zip(rows["k"].tolist(), begin.tolist(), strict=True):
        if at != ABSENT:
            trace.event(releases, at, TrackEvent.TYPE_INSTANT, "release", k=k)
    ran = rows["tid"] if "tid" in rows else np.full(len(begin), ABSENT)
    others = [thread for _, thread in lanes if isinstance(thread, int)]
    for (phase, thread), lane in lanes.items():
        if phase.end is None or not {phase.begin, phase.end} <= rows.keys():
            continue
        first, last = rows[phase.begin], rows[phase.end]
        its = ran == thread if isinstance(thread, int) else ~np.isin(ran, others)
        there = (first != ABSENT) & (last != ABSENT) & its
        for k, a, b in zip(rows["k"][there], first[there], last[there], strict=True):
            lane.span(int(a), int(b), int(k))
    for at, ns in zip(begin[value != ABSENT], value[value != ABSENT], strict=True):
        trace.count(counter, int(at), float(ns) / 1000)
    missing = [
        (row, name) for name, which in marks(rows, value, deadline_ns).items() for row in which.tolist()
    ]
    for row, name in sorted(missing):
        if begin[row] != ABSENT:
            trace.event(missed, int(begin[row]), TrackEvent.TYPE_INSTANT, name, k=int(rows["k"][row]))


def _threads(trace: _Trace, record: CellRecord, name: str, number: int) -> tuple[int, dict[str | int, int]]:
    """The track of the process; those of the measured thread and of the server's, below their processes'; of
    a callback that several threads call those of the others besides, by their ids."""
    found: dict[str | int, int] = {}
    processes = []
    for thread, role, suffix in ((MEASURED, "client", ""), ("server", "server", ", server")):
        listed = record.threads.client if role == "client" else record.threads.server
        measured = [one for one in listed if one.get("role") == "measured"]
        pid = number * 10 + (role == "server")  # cells of several machines may have had the same number
        process = trace.track(f"{name}{suffix}", process=pid)
        processes.append(process)
        tid = measured[0].get("tid", pid) if measured else pid
        thread_name = measured[0].get("name", role) if measured else role
        found[thread] = trace.track(thread_name, process, process=pid, thread=tid)
        for one in measured[1:] if "callback" in record.adapter_facts else ():
            found[one["tid"]] = trace.track(one["name"], process, process=pid, thread=one["tid"])
        if record.measurement not in TWO_ENDS:
            found["server"] = found[MEASURED]
            break
    return processes[0], found


def _picked(meta: Mapping[str, Any], folder: Path, chosen: Ints | None) -> Iterator[Columns]:
    for rows in store.chunks(folder)():
        if chosen is not None:
            which = np.isin(rows["k"], chosen, assume_unique=True)
            rows = {name: column[which] for name, column in rows.items()}
        if len(rows["k"]):
            yield with_expected(meta, rows)


def _chosen(meta: Mapping[str, Any], quantity: Quantity, folder: Path) -> tuple[Ints | None, int]:
    """The releases of the trace, None for all of them; and how many there are."""
    total = 0
    worst_k = worst_ns = np.empty(0, dtype=np.int64)
    for rows in store.chunks(folder)():
        total += len(rows["k"])
        lost = (rows["status"] & OUTCOME_BITS) == LOST
        value = np.where(lost, LATER, quantity.of(rows, timeout_ns(meta)))
        k, ns = np.concatenate((worst_k, rows["k"])), np.concatenate((worst_ns, value))
        keep = np.argsort(ns, kind="stable")[-WORST:]
        worst_k, worst_ns = k[keep], ns[keep]
    if total <= MOST:
        return None, total
    around = np.unique((worst_k[:, None] + np.arange(-AROUND, AROUND + 1)).ravel())
    there = [rows["k"][np.isin(rows["k"], around)] for rows in store.chunks(folder)()]
    return np.concatenate(there), total
