"""Exports for other programs' time lines and pages: Perfetto, MCAP, Markdown, and the schema of the JSON."""

from __future__ import annotations

import json
import math
import zlib
from collections import Counter
from dataclasses import replace
from pathlib import Path
from typing import Any

import jsonschema
import numpy as np
import pyarrow.parquet as pq
import pytest
from mcap.data_stream import ReadDataStream
from mcap.reader import make_reader
from mcap.records import MessageIndex
from mcap_ros2.decoder import DecoderFactory
from perfetto.protos.perfetto.trace.perfetto_trace_pb2 import Trace, TrackDescriptor, TrackEvent

from rtmeter.cli import invoke
from rtmeter.explain.events import NO_VALUE, STATES, STOPPED, SWITCH, Event
from rtmeter.explain.events import Trace as KernelTrace
from rtmeter.exports import export, mcap_file, perfetto
from rtmeter.model import LOST, SERVED, SKIPPED, STATUS_NAMES, WARM_UP_FLAG
from rtmeter.results import store
from rtmeter.samples import rows as sample_rows
from rtmeter.statistics.quantities import Columns, judged_quantity, quantities
from rtmeter.statistics.views import OUTCOME_BITS
from rtmeter.trace.table import FILE, write_trace
from stored import cell_json
from synthetic import T0_NS, Made, usual, write_cell
from traced_cells import write_called

SCHEMA = Path(__file__).resolve().parent.parent.parent / "spec" / "export.schema.json"
DEADLINE_NS = 100_000


def stalling(k: int) -> list[float | None]:
    """Early, late beyond the next release, in time, or lost on the way."""
    return [
        -3_000 if k % 10 == 3 else 2_500_000 if k % 50 == 0 else 50_000,
        None if k % 25 == 7 else 20_000,
        20_000,
    ]


CELLS = {
    "wakeup": Made(id="wakeup", samples=400, delays=usual(1, 50), deadline_ns=DEADLINE_NS),
    "skipping": Made(id="skipping", samples=400, delays=stalling, skip=True, deadline_ns=DEADLINE_NS),
    "roundtrip": Made(
        id="roundtrip", measurement="roundtrip", samples=400, delays=stalling, deadline_ns=DEADLINE_NS
    ),
    "waiting": Made(
        id="waiting",
        measurement="roundtrip",
        skip=True,
        samples=400,
        delays=stalling,
        deadline_ns=30 * DEADLINE_NS,
        loss_timeout_ns=50 * DEADLINE_NS,
    ),
    "cycle": Made(id="cycle", measurement="cycle", samples=300, delays=stalling, deadline_ns=DEADLINE_NS),
    "just": Made(id="just", samples=50, delays=lambda k: [DEADLINE_NS + k % 2], deadline_ns=DEADLINE_NS),
}


@pytest.fixture(params=list(CELLS))
def cell(request: pytest.FixtureRequest, tmp_path: Path) -> Path:
    return write_cell(tmp_path / str(request.param), CELLS[str(request.param)])


def rows_of(folder: Path) -> Columns:
    chunks = list(store.chunks(folder)())
    return {name: np.concatenate([chunk[name] for chunk in chunks]) for name in chunks[0]}


def trace_of(path: Path, tmp_path: Path) -> Any:
    out = tmp_path / "trace.pftrace"
    export(path, out, "perfetto")
    trace = Trace()
    trace.ParseFromString(out.read_bytes())
    return trace


def test_a_trace_holds_every_release_on_its_thread(cell: Path, tmp_path: Path) -> None:
    trace, rows = trace_of(cell, tmp_path), rows_of(cell)
    tracks = tracks_of(trace)
    events = [p for p in trace.packet if p.HasField("track_event")]
    named = Counter(p.track_event.name for p in events)
    assert named["release"] == len(rows["k"])
    measured = (rows["status"] & WARM_UP_FLAG) == 0
    outcome = rows["status"] & OUTCOME_BITS
    value = judged_quantity({"measurement": rows_measurement(cell), "mode": None}).of(rows, 0)
    assert named["lost"] == np.count_nonzero(measured & (outcome == LOST))
    assert named["skipped"] == np.count_nonzero(measured & (outcome == SKIPPED))
    deadline_ns = CELLS[cell.name].deadline_ns or 0
    assert named["late"] == np.count_nonzero(measured & (outcome == SERVED) & (value > deadline_ns))
    counted = [
        p.track_event.double_counter_value for p in events if p.track_event.type == TrackEvent.TYPE_COUNTER
    ]
    assert sorted(counted) == pytest.approx(sorted(value[outcome == SERVED] / 1000))
    # Spans on one track follow one another, and each is closed.
    for uuid in tracks:
        own = [p for p in events if p.track_event.track_uuid == uuid]
        kinds = [p.track_event.type for p in own if p.track_event.type in (1, 2)]
        assert kinds == [TrackEvent.TYPE_SLICE_BEGIN, TrackEvent.TYPE_SLICE_END] * (len(kinds) // 2)
        assert [p.timestamp for p in own] == sorted(p.timestamp for p in own)
    threads = {t.thread.tid for t in tracks.values() if t.HasField("thread")}
    record = cell_json(cell)
    audited = {t["tid"] for role in record["threads"].values() for t in role if t["role"] == "measured"}
    assert audited & threads


def rows_measurement(cell: Path) -> str:
    return str(cell_json(cell)["measurement"])


def test_each_end_of_each_cell_is_a_process_of_its_own(tmp_path: Path) -> None:
    """Whatever numbers they had: cells may be of several machines."""
    for name in ("one", "two"):
        write_cell(tmp_path / "cells" / name, replace(CELLS["roundtrip"], id=name, samples=5))
    tracks = tracks_of(trace_of(tmp_path / "cells", tmp_path)).values()
    named = {t.process.pid: t.process.process_name for t in tracks if t.HasField("process")}
    assert sorted(named.values()) == ["one", "one, server", "two", "two, server"]
    assert {t.thread.pid for t in tracks if t.HasField("thread")} == set(named)


def test_a_thread_that_is_stopped_does_not_sleep(tmp_path: Path) -> None:
    """As the scheduler's tracks have it: who sleeps, waits for a disk, could go on, is stopped, or has
    ended."""
    cell = write_cell(tmp_path / "cell", Made(samples=20, delays=usual(1, 50)))
    left = [("sleeping", NO_VALUE), ("blocked", NO_VALUE), ("runnable", NO_VALUE)]
    left += [("sleeping", STOPPED), ("blocked", STOPPED), ("ended", NO_VALUE)]
    events = [
        Event(T0_NS + at, 0, SWITCH, 7, 8, STATES.index(state), 120, "next", value)
        for at, (state, value) in enumerate(left)
    ]
    write_trace([KernelTrace(events)], cell / FILE)
    bundles = [p.ftrace_events for p in trace_of(cell, tmp_path).packet if p.HasField("ftrace_events")]
    found = [event.sched_switch.prev_state for bundle in bundles for event in bundle.event]
    assert found == [1, 2, 0, 4, 4, 16]


def tracks_of(trace: Trace) -> dict[int, TrackDescriptor]:
    described = (p.track_descriptor for p in trace.packet if p.HasField("track_descriptor"))
    return {track.uuid: track for track in described}


def works_of(trace: Trace) -> dict[int, list[int]]:
    """Which releases each thread works for, by its id."""
    tracks = tracks_of(trace)
    found: dict[int, list[int]] = {}
    for event in (p.track_event for p in trace.packet if p.track_event.name == "works"):
        thread = tracks[tracks[event.track_uuid].parent_uuid].thread.tid
        found.setdefault(thread, []).append(event.debug_annotations[0].int_value)
    return found


def test_rows_that_do_not_tell_their_thread_are_drawn_once(tmp_path: Path) -> None:
    cell = write_called(tmp_path / "cell", (4211, 4214))
    pq.write_table(pq.read_table(cell / store.SAMPLES).drop_columns(["tid"]), cell / store.SAMPLES)
    assert works_of(trace_of(cell, tmp_path)) == {4211: rows_of(cell)["k"].tolist()}


@pytest.mark.parametrize("callers", [(4211,), (4211, 4214, 4215)])
def test_what_several_threads_call_is_on_the_track_of_the_one_that_did(
    callers: tuple[int, ...], tmp_path: Path
) -> None:
    cell = write_called(tmp_path / "cell", callers)
    trace, rows = trace_of(cell, tmp_path), rows_of(cell)
    tracks = tracks_of(trace)
    assert works_of(trace) == {tid: rows["k"][rows["tid"] == tid].tolist() for tid in callers}
    named = {tracks[uuid].thread.thread_name for uuid in tracks if tracks[uuid].HasField("thread")}
    assert named == {f"caller {tid}" for tid in callers}
    (releases,) = (track for track in tracks.values() if track.name == "releases")
    of_one = tracks[releases.parent_uuid].HasField("thread")
    assert of_one == (len(callers) == 1), "of the process where no one thread serves them"


def test_a_trace_of_a_long_cell_holds_what_surrounds_its_largest_values(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(perfetto, "MOST", 300)
    monkeypatch.setattr(perfetto, "WORST", 2)
    monkeypatch.setattr(perfetto, "AROUND", 3)
    write_cell(tmp_path / "cell", CELLS["wakeup"])
    out = tmp_path / "trace.pftrace"
    with monkeypatch.context() as just:
        just.setattr(perfetto, "MOST", len(rows_of(tmp_path / "cell")["k"]))
        assert export(tmp_path / "cell", out, "perfetto") == [], "so many are whole"
    notes = export(tmp_path / "cell", out, "perfetto")
    trace = Trace()
    trace.ParseFromString(out.read_bytes())
    found = {
        a.int_value
        for p in trace.packet
        if p.track_event.name == "release"
        for a in p.track_event.debug_annotations
    }
    rows = rows_of(tmp_path / "cell")
    worst = rows["k"][np.argsort(rows["wake_ns"] - rows["release_ns"])[-2:]]
    around = {int(k) + step for k in worst for step in range(-3, 4)}
    assert found == around & set(rows["k"].tolist())
    assert f"{len(rows['k']) - len(found):,} releases are left out" in notes[0]


def test_a_trace_of_a_long_cell_holds_lost_releases_before_all_others(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, value in (("MOST", 300), ("WORST", 3), ("AROUND", 0)):
        monkeypatch.setattr(perfetto, name, value)
    lost = {150, 250, 350}
    delays = usual(1, 50)
    write_cell(
        tmp_path / "cell",
        Made(
            measurement="roundtrip",
            samples=400,
            warm_up=0,
            delays=lambda k: [delays(k)[0], None if k in lost else 20_000, 20_000],
        ),
    )
    trace = trace_of(tmp_path / "cell", tmp_path)
    named = [p.track_event for p in trace.packet if p.HasField("track_event")]
    for name in ("release", "lost"):
        assert {e.debug_annotations[0].int_value for e in named if e.name == name} == lost


def test_mcap_is_decoded_by_its_own_schema(
    cell: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sample_rows, "_CHUNK_ROWS", 7)
    out = tmp_path / "cell.mcap"
    export(cell, out, "mcap")
    rows, record = rows_of(cell), cell_json(cell)
    with out.open("rb") as file:
        reader = make_reader(file, decoder_factories=[DecoderFactory()])
        decoded = reader.iter_decoded_messages(log_time_order=False)
        found = [(channel.topic, message) for _, channel, _, message in decoded]
    assert {topic for topic, _ in found} == {f"/{record['id']}"}
    messages = [message for _, message in found]
    assert [m.k for m in messages] == rows["k"].tolist()
    for name in (c for c in rows if c.endswith("_ns")):
        assert [getattr(m, name) for m in messages] == rows[name].tolist()
    assert [m.status for m in messages] == (rows["status"] & OUTCOME_BITS).tolist()
    for quantity in quantities(store.read_cell(cell).meta):
        if set(quantity.columns) <= rows.keys():
            values = quantity.of(rows, 0)
            exported = [getattr(m, f"{quantity.name}_us") for m in messages]
            assert [math.isnan(value) for value in exported] == (values == -(2**63)).tolist()
            there = values != -(2**63)
            assert np.array(exported)[there] == pytest.approx(values[there] / 1000)
    assert sum(m.missed for m in messages) == record["verdict"]["misses"]


@pytest.mark.parametrize("form", ["perfetto", "mcap"])
def test_imported_series_are_left_out_and_said_to_be(tmp_path: Path, form: str) -> None:
    root = tmp_path / "cells"
    write_cell(root / "made", CELLS["wakeup"])
    source = tmp_path / "log.csv"
    source.write_text("idx,latency\n" + "".join(f"{k},{50_000 + k}\n" for k in range(50)))
    assert invoke(["import", str(source), "--period", "1ms", "--out", str(root / "imported")]) == 0
    notes = export(root, tmp_path / "out", form)
    assert [note.partition(":")[0].split("/")[0] for note in notes] == ["imported"]
    assert (tmp_path / "out").stat().st_size > 1000


def test_markdown_says_the_answer_and_nothing_in_it_is_markup(tmp_path: Path) -> None:
    root = tmp_path / "cells"
    write_cell(root / "good", Made(id="good", samples=3000, delays=usual(1, 50), deadline_ns=10**9))
    write_cell(root / "bad", Made(id="b|ad<script>*", samples=300, delays=stalling, deadline_ns=DEADLINE_NS))
    export(root, tmp_path / "summary.md", "markdown")
    text = (tmp_path / "summary.md").read_text()
    lines = text.splitlines()
    assert lines[0].startswith("## ❌ Fail: Of 2 cells")
    rows = [line for line in lines if line.startswith("| ") and "verdict" not in line]
    assert [row.count("|") - row.count("\\|") for row in rows] == [9, 9]
    assert "b\\|ad&lt;script&gt;\\*" in rows[0] and "good" in rows[1]
    assert "<script>" not in text


def test_json_is_as_its_schema_says(cell: Path, tmp_path: Path) -> None:
    out = tmp_path / "cells.json"
    export(cell.parent, out, "json")
    document = json.loads(out.read_text())
    schema = json.loads(SCHEMA.read_text())
    jsonschema.Draft202012Validator.check_schema(schema)
    jsonschema.validate(document, schema)
    assert {row[document["cells"][0]["columns"].index("status")] for row in document["cells"][0]["rows"]} <= {
        *STATUS_NAMES
    }
    with pytest.raises(jsonschema.ValidationError):
        jsonschema.validate(document | {"version": 2}, schema)


def test_mcap_takes_rows_by_the_chunk_and_finds_them_by_their_time(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(mcap_file, "CHUNK_BYTES", 10_000)
    taken: list[int] = []
    chunk = mcap_file.McapFile._chunk
    monkeypatch.setattr(
        mcap_file.McapFile, "_chunk", lambda self, *a: (taken.append(len(a[2])), chunk(self, *a))[1]
    )
    write_cell(tmp_path / "cell", CELLS["wakeup"])
    out = tmp_path / "cell.mcap"
    export(tmp_path / "cell", out, "mcap")
    k = rows_of(tmp_path / "cell")["k"]
    assert len(taken) > 2 and len(set(taken[:-1])) == 1 and sum(taken) == len(k)
    with out.open("rb") as file:
        reader = make_reader(file, validate_crcs=True)
        summary = reader.get_summary()
        assert summary is not None and summary.statistics is not None
        assert summary.statistics.message_count == len(k) and summary.statistics.chunk_count == len(taken)
        every = [message for _, _, message in reader.iter_messages()]
        assert [message.sequence for message in every] == list(range(len(k)))
        first = every[taken[0] + 1].log_time
        later = [message.sequence for _, _, message in reader.iter_messages(starting_at=first)]
        assert later == list(range(taken[0] + 1, len(k)))
        for index in summary.chunk_indexes:
            (offset,) = index.message_index_offsets.values()
            file.seek(offset + 9)
            found = MessageIndex.read(ReadDataStream(file))
            times = [m.log_time for m in every if index.message_start_time <= m.log_time]
            assert [time for time, _ in found.records] == times[: len(found.records)]
            assert [place for _, place in found.records[:2]] == [0, 31 + len(every[0].data)]
    crc = zlib.crc32(out.read_bytes()[summary_start(out) : -8 - 4])
    assert crc == int.from_bytes(out.read_bytes()[-12:-8], "little")


def summary_start(file: Path) -> int:
    """Where the footer says that the summary begins."""
    return int.from_bytes(file.read_bytes()[-28:-20], "little")
