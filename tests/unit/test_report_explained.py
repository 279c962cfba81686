"""A report of a cell whose kernel events were recorded: why its releases were late, in words and pictures."""

from __future__ import annotations

import json
import os
from dataclasses import replace
from itertools import pairwise
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest
from report_page import HOSTILE, Page

from rtmeter import report
from rtmeter.explain.causes import Explained, Ranked, Release
from rtmeter.explain.segments import Key, Segment
from rtmeter.explain.timeline import Doing
from rtmeter.explain.words import words_of
from rtmeter.exports import perfetto
from rtmeter.judge.why import Class, Shown, Why, _classes, why, why_words
from rtmeter.plots.explained import figures
from rtmeter.results import store
from rtmeter.results.cells import StoredCell, find_cells
from rtmeter.trace.table import FILE
from traced_cells import DEADLINE_NS, LATE_NS, THIEF, TRACED, USUAL_NS, write_traced
from vega_lite import check_vega_lite


@pytest.fixture(scope="module")
def pages(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Page]:
    found = {}
    for name in ("driver", HOSTILE):
        cell = write_traced(tmp_path_factory.mktemp("r") / "cell", name)
        found[name] = Page(report.write([cell], tmp_path_factory.mktemp("p") / "report.html").read_text())
    return found


def test_the_first_screen_says_why(pages: dict[str, Page]) -> None:
    said = "Of 8 late releases 8: waited for the CPU: driver ran, more urgent than it (100 % of all"
    assert said in pages["driver"].text
    assert "Why were they late?" in pages["driver"].text and "Release 0: 400.0 us" in pages["driver"].text


def test_the_first_screen_says_why_whatever_comes_next(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As of a delay that grows, where no length of run helps."""
    monkeypatch.setattr("rtmeter.judge.answer.next_step", lambda *_: "mend that")
    cell = write_traced(tmp_path / "cell", "driver")
    text = Page(report.write([cell], tmp_path / "report.html").read_text()).text
    assert "Of 8 late releases 8: waited for the CPU: driver ran" in text and ". Mend that." in text


def test_a_hostile_threads_name_is_text_and_nothing_else(pages: dict[str, Page]) -> None:
    plain, hostile = pages["driver"], pages[HOSTILE]
    assert [(tag, sorted(at)) for tag, at in plain.elements] == [(t, sorted(a)) for t, a in hostile.elements]
    assert f"waited for the CPU: {HOSTILE} ran" in hostile.text


def test_the_bars_and_timelines_are_of_what_happened(tmp_path: Path) -> None:
    cell = write_traced(tmp_path / "cell", "driver")
    (stored,) = find_cells(cell)
    found = why(stored)
    assert found is not None and (found.late, found.lateness_ns) == (8, 8 * LATE_NS)
    (one,) = found.classes
    assert (one.from_ns, one.to_ns, one.releases) == (2 * DEADLINE_NS, 4 * DEADLINE_NS, 8)
    assert sum(ns for _, ns in one.times_ns) == 8 * LATE_NS
    assert [shown.k for shown in found.worst] == [0, 5, 10]
    for shown in found.worst:
        spans = [(one.start_ns, one.end_ns) for one in shown.segments]
        assert spans[0][0] == 0 and spans[-1][1] == LATE_NS
        assert all(a[1] == b[0] for a, b in pairwise(spans))
        doing = [(one.kind, one.name, one.start_ns, one.end_ns) for one in shown.doings if one.end_ns > 0]
        assert doing[0][:3] == ("thread", "driver", -1000)
        assert doing[1] == ("interrupt", "local_timer", 1000, 4000)
        assert doing[2] == ("thread", "driver", 4000, LATE_NS - 1000)
        assert doing[3][:3] == ("thread", "measured", LATE_NS - 1000)
    bars, *timelines = figures(found)
    assert sum(bars.spec["datasets"]["times"]["us"]) == pytest.approx(LATE_NS / 1000)
    assert len(timelines) == 3 and timelines[0].spec["layer"][0]["params"][0]["bind"] == "scales"
    spans = timelines[0].spec["datasets"]["spans"]
    assert set(spans["lane"]) == {"the release", "CPU 1"} and "driver" in spans["what"]
    for layer in timelines[0].spec["layer"]:
        assert [one["field"] for one in layer["encoding"]["tooltip"]] == ["what", "kind", "long"]


KEYS = [
    *(Key("displaced", name, "below") for name in ("driver", "logger", "camera")),
    *(
        Key("interrupt", "eth0"),
        Key("own"),
        Key("own_kernel", "futex"),
        Key("outside"),
        Key("blocked", "planner"),
    ),
    *(Key("held_off", "driver"), Key("softirq", "TIMER"), Key("dispatch"), Key("armed_later")),
    *(Key("timer_idle"), Key("unknown")),
]


def colours_of(keys: list[Key]) -> tuple[list[dict[str, str]], list[dict[str, Any]]]:
    """Of pictures with these parts in this order, the first the longest: the bars' and a timeline's colours
    by name, and their specifications."""
    times = tuple((key, 1000 * (len(keys) - place)) for place, key in enumerate(keys))
    parts = tuple(Segment(1000 * place, 1000 * (place + 1), key) for place, key in enumerate(keys))
    ran = (Doing(1, 0, 5000, "thread", "driver"), Doing(1, 5000, 6000, "interrupt", "eth0"))
    shown = Shown(3, 1000 * len(keys), keys[0], parts, ran)
    specs = [one.spec for one in figures(Why(1, 1, 0, (), (Class(1000, 2000, 1, times),), (shown,)))]
    scales = [spec["layer"][0]["encoding"]["color"]["scale"] for spec in specs]
    return [dict(zip(one["domain"], one["range"], strict=True)) for one in scales], specs


def test_a_category_has_one_colour_in_all_pictures_and_no_other_has_it() -> None:
    (_, whole), _ = colours_of(KEYS)
    assert len(set(whole.values())) == len(whole) == len({key.category for key in KEYS}) + 1  # thread
    for keys in (KEYS, KEYS[::-1], KEYS[3:8], KEYS[-1:]):
        (bars, timeline), _ = colours_of(keys)
        assert timeline.items() <= whole.items()
        assert len(set(bars.values())) == len(bars)
        firsts = {key.category: words_of(key) for key in keys[6::-1]}
        for category, name in firsts.items():
            assert bars[name] == whole[category.replace("_", " ")]
        for key in keys[:7]:
            assert whole[key.category.replace("_", " ")] in bars[words_of(key)], "paler, but the same"
        assert ("others" in bars) == (len(keys) > 7)


def test_pictures_can_be_read_on_paper() -> None:
    """The texts of the bars' legend are whole, in lines that fit; who ran on a CPU stands on its bar."""
    _, (bars, timeline) = colours_of(KEYS)
    for spec in (bars, timeline):
        check_vega_lite(spec)
    label = bars["layer"][0]["encoding"]["color"]["legend"]["labelExpr"]
    lines = json.loads(label.removesuffix("[datum.label]").strip("()"))
    assert {name: " ".join(of) for name, of in lines.items()} == {name: name for name in lines}
    assert max(len(line) for of in lines.values() for line in of) <= 34
    assert set(bars["datasets"]["times"]["what"]) == set(lines)
    _, names = timeline["layer"]
    assert names["mark"]["type"] == "text" and "datum.what" in names["encoding"]["text"]["value"]["expr"]
    assert names["transform"] == [{"filter": 'datum.lane != "the release"'}]


def test_whose_priority_was_lent_is_in_the_sentence_the_timeline_and_what_is_kept(tmp_path: Path) -> None:
    (stored,) = find_cells(write_traced(tmp_path / "cell", "driver", lender="loop"))
    lent = "more urgent than it; loop had lent driver its priority"
    for _ in ("found", "read again"):
        assert f"waited for the CPU: driver ran, {lent} (100 % of all" in (why_words(stored) or "")
        found = why(stored)
        assert found is not None and {row.lent_by for row in found.causes} == {"loop"}
        for timeline in figures(found)[1:]:
            assert any(what.endswith(lent) for what in timeline.spec["datasets"]["spans"]["what"])


def test_what_was_found_is_kept_and_read_again(tmp_path: Path) -> None:
    (stored,) = find_cells(write_traced(tmp_path / "cell", "driver", lender="loop"))
    first = why(stored)
    kept = stored.folder / "explanation.json"
    text = json.loads(kept.read_text())
    assert why(stored) == first
    text["late"] = 3
    kept.write_text(json.dumps(text))
    again = why(stored)
    assert again is not None and again.late == 3, "it is not found anew"
    assert first is not None and again.worst == first.worst and again.causes == first.causes
    assert any(one.lenders for each in again.worst for one in each.segments)
    text["version"] = 1
    kept.write_text(json.dumps(text))
    assert why(stored) == first, "an older one is"
    assert USUAL_NS < DEADLINE_NS and "driver" in (why_words(stored) or "")


@pytest.mark.parametrize("name", [FILE, store.SAMPLES, store.CELL])
def test_what_was_kept_of_other_files_is_found_anew(tmp_path: Path, name: str) -> None:
    (stored,) = find_cells(write_traced(tmp_path / "cell", "driver"))
    first = why(stored)
    kept = stored.folder / "explanation.json"
    kept.write_text(json.dumps(json.loads(kept.read_text()) | {"late": 3}))
    later = (stored.folder / name).stat().st_mtime_ns + 1
    os.utime(stored.folder / name, ns=(later, later))
    assert first is not None and why(stored) == first
    (stored.folder / name).unlink()
    assert why(stored) is None, "it is of no file that is there"


@pytest.mark.parametrize("broken", ["", "{", "[]", "{}", '{"version": 10}'])
def test_what_was_kept_and_is_damaged_is_found_anew(tmp_path: Path, broken: str) -> None:
    (stored,) = find_cells(write_traced(tmp_path / "cell", "driver"))
    first = why(stored)
    (stored.folder / "explanation.json").write_text(broken)
    assert first is not None and why(stored) == first


def test_of_a_cell_in_time_nothing_is_said(tmp_path: Path) -> None:
    made = replace(TRACED, delays=lambda k: (USUAL_NS,))
    (stored,) = find_cells(write_traced(tmp_path / "cell", "driver", made))
    for _ in ("found", "read again"):
        assert (why(stored), why_words(stored)) == (None, None)


@pytest.mark.parametrize(
    ("lateness_ns", "from_ns", "to_ns"),
    [
        *((1_001, 1_000, 2_000), (2_000, 1_000, 2_000), (2_001, 2_000, 4_000), (8_000, 4_000, 8_000)),
        *((8_001, 8_000, None), (10**9, 8_000, None)),
    ],
)
def test_a_class_of_lateness_ends_where_the_next_begins(
    lateness_ns: int, from_ns: int, to_ns: int | None
) -> None:
    late = Explained(Release(0, 0, lateness_ns, True), (Segment(0, lateness_ns, Key("own")),), (), None)
    assert list(_classes([late], 1_000)) == [Class(from_ns, to_ns, 1, ((Key("own"), lateness_ns),))]


@pytest.mark.parametrize(("unknown_ns", "said"), [(250, "(75 % of all lateness, 25 % unknown)"), (0, "")])
def test_how_much_of_the_lateness_is_unknown_is_said(
    unknown_ns: int, said: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    causes = (Ranked(Key("own"), 2, 750), Ranked(Key("outside"), 1, 250))
    found = Why(3, 1_000, unknown_ns, causes)
    monkeypatch.setattr("rtmeter.judge.why.why", lambda cell: found)
    record = SimpleNamespace(
        findings=None, machine={}, virtual_machine=False, measurement="loop", verdict=None
    )
    words = why_words(cast(StoredCell, SimpleNamespace(record=record))) or ""
    assert words.startswith("of 3 late releases 2: ") and ("% unknown" in words) == bool(said)
    assert (said or "(75 % of all lateness)") in words


def test_perfetto_has_the_schedulers_tracks(tmp_path: Path) -> None:
    from perfetto.protos.perfetto.trace.perfetto_trace_pb2 import Trace

    cell = write_traced(tmp_path / "cell", HOSTILE)
    perfetto.write(cell, tmp_path / "trace")
    trace = Trace()
    trace.ParseFromString((tmp_path / "trace").read_bytes())
    bundles = [packet.ftrace_events for packet in trace.packet if packet.HasField("ftrace_events")]
    assert {bundle.cpu for bundle in bundles} == {1}
    events = [event for bundle in bundles for event in bundle.event]
    switches = [event.sched_switch for event in events if event.HasField("sched_switch")]
    assert len(switches) == 40 * 2 + 8
    to_thief = next(one for one in switches if one.next_pid == THIEF)
    assert (to_thief.prev_pid, to_thief.prev_comm, to_thief.prev_state) == (0, "swapper", 0)
    assert (to_thief.next_comm, to_thief.next_prio) == (HOSTILE, 3)
    from_thief = next(one for one in switches if one.prev_pid == THIEF)
    assert (from_thief.prev_comm, from_thief.prev_prio, from_thief.prev_state) == (HOSTILE, 3, 1)
    assert from_thief.next_comm == "measured" and from_thief.next_prio == 19
    assert sum(event.HasField("sched_waking") for event in events) == 40
    entries = [event.irq_handler_entry for event in events if event.HasField("irq_handler_entry")]
    assert len(entries) == 40 and {one.name for one in entries} == {"local_timer"}
    ours = [packet.timestamp for packet in trace.packet if packet.HasField("track_event")]
    assert min(ours) - 1000 <= events[0].timestamp <= max(ours), "on one time line"
