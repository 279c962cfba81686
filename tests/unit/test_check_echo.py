"""The checks of `check-adapter echo`, over runs that are made up."""

from __future__ import annotations

from typing import Any

import pytest

from rtmeter.selftest.adapter import echo
from rtmeter.selftest.adapter.running import SAMPLES

PASSED_OVER = (SAMPLES, 1, SAMPLES - 1, 0)
MOSTLY_LOST = (SAMPLES, 8, SAMPLES - 9, 1)
FRAME: dict[str, Any] = {
    "counters": {"corrupted": 0, "duplicate": 0, "extra_callbacks": 0, "refused_calls": 0},
    "warnings": [{"type": "mostly_lost"}],
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


@pytest.mark.parametrize(
    ("ends", "made", "outcome"),
    [
        ([PASSED_OVER, MOSTLY_LOST], 2, "fail"),
        ([MOSTLY_LOST], 1, "fail"),
        ([(SAMPLES, SAMPLES // 2, SAMPLES - SAMPLES // 2, 0)], 1, "pass"),
        ([PASSED_OVER, PASSED_OVER, PASSED_OVER], 3, "pass"),  # a machine that is never free
    ],
)
def test_a_run_of_which_the_machine_passed_over_most_is_repeated(
    monkeypatch: pytest.MonkeyPatch, ends: list[tuple[int, int, int, int]], made: int, outcome: str
) -> None:
    monkeypatch.setattr(echo, "_ends", lambda run: run)
    monkeypatch.setattr(echo, "stamped", lambda *_: None)
    runs: Any = Runs(*ends)
    assert echo._runs(runs, {})[0] == outcome
    assert runs.made == made
