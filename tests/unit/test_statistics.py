"""The summary against the definitions, over random outcome tables cut into random chunks."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from itertools import pairwise
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import definitions
from rtmeter.judge.verdict import misses
from rtmeter.model import ABSENT, STATUS_NAMES, WARM_UP_FLAG
from rtmeter.statistics.judged import judged_run
from rtmeter.statistics.summary import summarise

KINDS = ("wakeup", "one_shot", "periodic", "roundtrip", "cycle")
OUTCOMES = {
    "wakeup": ("served", "skipped"),
    "periodic": ("served", "skipped"),
    "one_shot": ("served", "lost", "in_flight"),
    "roundtrip": ("served", "skipped", "lost", "in_flight"),
    "cycle": ("served", "skipped", "lost", "in_flight"),
}
STAMPS = {
    "wakeup": ("release_ns", "wake_ns", "free_ns"),
    "one_shot": (
        "armed_before_ns",
        "armed_after_ns",
        "callback_ns",
        "reported_expected_ns",
        "reported_actual_ns",
    ),
    "periodic": ("release_ns", "callback_ns", "reported_expected_ns", "reported_actual_ns", "free_ns"),
    "roundtrip": ("release_ns", "sent_ns", "received_ns", "server_received_ns", "server_sent_ns", "free_ns"),
    "cycle": (
        *("release_ns", "start_ns", "request_sent_ns", "request_received_ns"),
        *("response_sent_ns", "response_received_ns", "free_ns"),
    ),
}
# A row of another outcome may hold some of a served row's stamps (a lost ping was sent); these it always has.
ALWAYS = ("release_ns", "armed_before_ns", "sent_ns")


def chunked(
    kind: str, rows: list[dict[str, Any]], borders: Sequence[int] = ()
) -> Callable[[], Iterator[dict[str, np.ndarray]]]:
    """The rows as the package reads them, cut at the borders."""
    names = [name for name in rows[0] if name not in ("status", "warm_up")] if rows else ["k", *STAMPS[kind]]
    table = {
        name: np.array([ABSENT if row[name] is None else row[name] for row in rows], dtype=np.int64)
        for name in names
    }
    table["status"] = np.array(
        [STATUS_NAMES.index(row["status"]) + (WARM_UP_FLAG if row["warm_up"] else 0) for row in rows],
        dtype=np.int64,
    )
    edges = [0, *sorted(border % (len(rows) + 1) for border in borders), len(rows)]

    def chunks() -> Iterator[dict[str, np.ndarray]]:
        for start, end in pairwise(edges):
            chunk = {name: column[start:end].copy() for name, column in table.items()}
            for column in chunk.values():
                column.flags.writeable = False  # a summary must not change its input
            yield chunk

    return chunks


@st.composite
def tables(draw: st.DrawFn, kind: str) -> tuple[dict[str, Any], list[dict[str, Any]]]:
    """A cell: its facts and rows. Short times make ties, long ones need all 64 bits."""
    longest = draw(st.sampled_from((30, 400, 10**12)))
    times = st.integers(-20, longest)
    period_ns = draw(st.integers(max(longest // 50, 1), longest))
    warm_up = draw(st.integers(0, 3))
    outcomes = draw(st.lists(st.sampled_from(OUTCOMES[kind]), min_size=warm_up, max_size=40))
    reports, joined = draw(st.booleans()), draw(st.booleans())
    rows = []
    for k, outcome in enumerate(outcomes):
        row: dict[str, Any] = {"k": k, "status": outcome, "warm_up": k < warm_up}
        for stamp in STAMPS[kind]:
            row[stamp] = draw(times) if outcome == "served" or stamp in ALWAYS else None
        if "free_ns" in row:
            row["free_ns"] = (
                row["release_ns"] + draw(st.integers(1, longest)) if outcome == "skipped" else None
            )
        if "reported_actual_ns" in row and not (reports and draw(st.booleans())):
            row["reported_actual_ns"] = None
        if kind == "roundtrip" and not joined:
            del row["server_received_ns"], row["server_sent_ns"]
        rows.append(row)
    timer = kind in ("one_shot", "periodic")
    meta = {
        "measurement": "timer" if timer else kind,
        "mode": kind if timer else None,
        "period_ns": None if kind == "one_shot" else period_ns,
        "timeout_ns": period_ns if kind == "one_shot" else None,
        "warm_up": warm_up,
        "deadline_ns": draw(st.none() | st.integers(0, 2 * longest)),
        "in_flight": draw(st.sampled_from(("one", "open"))),
        "counters": {"late_after_lost": 1, "duplicate": 2, "out_of_order": 3, "corrupted": 4},
    }
    return meta, rows


def assert_same_view(got: dict[str, Any] | None, wanted: dict[str, Any] | None, where: str) -> None:
    """Equal, but for the rounding that docs/method.md grants mean and deviation."""
    if wanted is None or got is None:
        assert got is wanted, where
        return
    assert got.keys() == wanted.keys(), where
    for name, value in wanted.items():
        if name in ("mean_ns", "stddev_ns") and value is not None:
            assert got[name] == pytest.approx(value, rel=1e-12, abs=1e-9), (where, name)
        else:
            assert got[name] == value and type(got[name]) is type(value), (where, name)


@pytest.mark.parametrize("kind", KINDS)
@settings(max_examples=300, deadline=None)
@given(data=st.data())
def test_follows_the_definitions(kind: str, data: st.DataObject) -> None:
    meta, rows = data.draw(tables(kind))
    borders = data.draw(st.lists(st.integers(0, 40), max_size=6))
    got = summarise(meta, chunked(kind, rows, borders))
    wanted = definitions.summary(meta, rows)
    assert got["problems"] == []
    assert got["counts"] == wanted["counts"]
    names = set(wanted["quantities"]) | ({"cycle_delay_normalised"} if kind == "cycle" else set())
    assert set(got["quantities"]) == names
    for name, views in wanted["quantities"].items():
        for view in ("per_release", "as_served", "corrected"):
            assert_same_view(got["quantities"][name][view], views[view], f"{name} {view}")


@pytest.mark.parametrize("kind", KINDS)
@settings(max_examples=150, deadline=None)
@given(data=st.data(), deadline_ns=st.integers(0, 100))
def test_misses_follow_the_definitions(kind: str, data: st.DataObject, deadline_ns: int) -> None:
    meta, rows = data.draw(tables(kind))
    borders = data.draw(st.lists(st.integers(0, 40), max_size=6))
    found = misses(judged_run(meta, chunked(kind, rows, borders)), deadline_ns)
    got = {"n": found.n, "late": found.late, "skipped": found.skipped, "lost": found.lost}
    assert got == definitions.misses(meta, rows, deadline_ns)
