"""The checks of `check-adapter echo`, over runs that are made up."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from types import SimpleNamespace
from typing import Any

import pytest

from rtmeter.selftest.adapter import echo
from rtmeter.selftest.adapter.running import SAMPLES

PASSED_OVER = (SAMPLES, 1, SAMPLES - 1, 0)
MOSTLY_LOST = (SAMPLES, 8, SAMPLES - 9, 1)
OPEN_LOST = (SAMPLES, 0, 0, SAMPLES)
THIRD_LOST = (SAMPLES, SAMPLES - SAMPLES // 3, 0, SAMPLES // 3)
LAST_LOST = (SAMPLES, SAMPLES - 1, 0, 1)
SERVED = (SAMPLES, SAMPLES, 0, 0)
FRAME: dict[str, Any] = {
    "counters": {"corrupted": 0, "duplicate": 0, "extra_callbacks": 0, "refused_calls": 0},
    "warnings": [],
    "effective": {"drive": None},
    "threads": [],
}


class Runs:
    """An adapter whose runs end like this: released, served, skipped and lost of each."""

    def __init__(self, *ends: tuple[int, int, int, int]) -> None:
        self.ends, self.made = ends, 0

    def complete(self, config: dict[str, Any]) -> tuple[dict[str, Any], tuple[int, int, int, int]]:
        self.made += 1
        return FRAME, self.ends[self.made - 1]


class Pairs:
    """The same of one that is asked for payloads: a run for each end."""

    facts: Mapping[str, Any] = {"measures": ["roundtrip"]}

    def __init__(self, *ends: tuple[int, int, int, int]) -> None:
        self.ends = list(ends)

    @contextmanager
    def pair(self, _: dict[str, Any]) -> Iterator[tuple[Any, None]]:
        run = SimpleNamespace(ends=self.ends.pop(0), end=lambda _: 0, error=lambda: None, frame=lambda: FRAME)
        yield run, None


@pytest.mark.parametrize(
    ("ends", "made", "outcome"),
    [
        ([PASSED_OVER, MOSTLY_LOST, MOSTLY_LOST], 3, "fail"),
        ([MOSTLY_LOST, MOSTLY_LOST, MOSTLY_LOST], 3, "fail"),
        ([OPEN_LOST, OPEN_LOST, OPEN_LOST], 3, "fail"),
        ([THIRD_LOST, THIRD_LOST, THIRD_LOST], 3, "fail"),
        ([LAST_LOST, THIRD_LOST, LAST_LOST], 3, "fail"),
        ([MOSTLY_LOST, SERVED], 2, "pass"),
        ([LAST_LOST, LAST_LOST, SERVED], 3, "pass"),
        ([OPEN_LOST, SERVED], 2, "pass"),
        ([SERVED], 1, "pass"),
        ([(SAMPLES, SAMPLES // 2, SAMPLES - SAMPLES // 2, 0)], 1, "pass"),
        ([PASSED_OVER, PASSED_OVER, PASSED_OVER], 3, "pass"),  # a machine that is never free
    ],
)
def test_a_run_that_lost_or_of_which_most_was_passed_over_is_repeated(
    monkeypatch: pytest.MonkeyPatch, ends: list[tuple[int, int, int, int]], made: int, outcome: str
) -> None:
    monkeypatch.setattr(echo, "_ends", lambda run: run)
    monkeypatch.setattr(echo, "stamped", lambda *_: None)
    runs: Any = Runs(*ends)
    assert echo._runs(runs, {})[0] == outcome
    assert runs.made == made


@pytest.mark.parametrize(
    ("ends", "outcome"), [([MOSTLY_LOST, SERVED, SERVED, SERVED], "pass"), ([MOSTLY_LOST] * 3, "fail")]
)
def test_a_payload_is_tried_again_likewise(
    monkeypatch: pytest.MonkeyPatch, ends: list[tuple[int, int, int, int]], outcome: str
) -> None:
    monkeypatch.setattr(echo, "_ends", lambda run: run.ends)
    monkeypatch.setattr(echo, "stamped", lambda *_: None)
    subject: Any = Pairs(*ends)
    assert echo._payloads(subject)[0] == outcome
    assert not subject.ends
