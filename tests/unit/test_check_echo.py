"""The checks of `check-adapter echo`, over runs that are made up."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from rtmeter.model import LOST, SERVED, SKIPPED
from rtmeter.selftest.adapter import echo
from rtmeter.selftest.adapter.running import SAMPLES, WARM_UP, counted
from rtmeter.statistics.quantities import Ints


def ended(lost: Iterable[int] = (), skipped: int = 0) -> Ints:
    """How each release of a run ended: these were lost, the last ones skipped, all others served."""
    outcomes = np.full(SAMPLES, SERVED)
    outcomes[SAMPLES - skipped :] = SKIPPED
    outcomes[list(lost)] = LOST
    return outcomes


PASSED_OVER = ended(skipped=SAMPLES - 1)
MOSTLY_LOST = ended(lost=[8], skipped=SAMPLES - 9)
OPEN_LOST = ended(lost=range(SAMPLES))
THIRD_LOST = ended(lost=range(1, SAMPLES, 3))
LAST_LOST = ended(lost=[SAMPLES - 1])
ALL_SERVED = ended()
FRAME: dict[str, Any] = {
    "counters": {"corrupted": 0, "duplicate": 0, "extra_callbacks": 0, "refused_calls": 0},
    "warnings": [],
    "effective": {"drive": None},
    "threads": [],
}


class Runs:
    """An adapter whose runs end like this."""

    def __init__(self, *ends: Ints) -> None:
        self.ends, self.made = ends, 0

    def complete(self, config: dict[str, Any]) -> tuple[dict[str, Any], Ints]:
        self.made += 1
        return FRAME, self.ends[self.made - 1]


class Pairs:
    """The same of one that is asked for payloads: a run for each end."""

    facts: Mapping[str, Any] = {"measures": ["roundtrip"]}

    def __init__(self, *ends: Ints) -> None:
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
        ([LAST_LOST, LAST_LOST, LAST_LOST], 3, "fail"),
        ([LAST_LOST, THIRD_LOST, LAST_LOST], 3, "pass"),  # another one each time
        ([MOSTLY_LOST, ALL_SERVED], 2, "pass"),
        ([LAST_LOST, LAST_LOST, ALL_SERVED], 3, "pass"),
        ([OPEN_LOST, ALL_SERVED], 2, "pass"),
        ([ALL_SERVED], 1, "pass"),
        ([ended(skipped=SAMPLES // 2)], 1, "pass"),
        ([PASSED_OVER, PASSED_OVER, PASSED_OVER], 3, "pass"),  # a machine that is never free
    ],
)
def test_a_run_that_lost_or_of_which_most_was_passed_over_is_repeated(
    monkeypatch: pytest.MonkeyPatch, ends: list[Ints], made: int, outcome: str
) -> None:
    monkeypatch.setattr(echo, "_outcomes", lambda run: run)
    monkeypatch.setattr(echo, "stamped", lambda *_: None)
    runs: Any = Runs(*ends)
    assert echo._runs(runs, {})[0] == outcome
    assert runs.made == made


@pytest.mark.parametrize(
    ("ends", "outcome"),
    [
        ([MOSTLY_LOST, ALL_SERVED, ALL_SERVED, ALL_SERVED], "pass"),
        ([MOSTLY_LOST] * 3, "fail"),
        ([LAST_LOST] * 3, "fail"),
        ([LAST_LOST, THIRD_LOST, LAST_LOST, ALL_SERVED, ALL_SERVED], "pass"),
    ],
)
def test_a_payload_is_tried_again_likewise(
    monkeypatch: pytest.MonkeyPatch, ends: list[Ints], outcome: str
) -> None:
    monkeypatch.setattr(echo, "_outcomes", lambda run: run.ends)
    monkeypatch.setattr(echo, "stamped", lambda *_: None)
    subject: Any = Pairs(*ends)
    assert echo._payloads(subject)[0] == outcome
    assert not subject.ends


def test_a_cycle_has_room_for_all_of_its_messages_as_an_open_loop_has() -> None:
    """Where ticks are caught up, none replaces another; round trips one at a time need no more than one."""
    assert counted({"measurement": "cycle"})["history_depth"] == WARM_UP + SAMPLES
    assert echo._OPEN["history_depth"] == WARM_UP + SAMPLES
    assert "history_depth" not in counted({"measurement": "roundtrip"})
