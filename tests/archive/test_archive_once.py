"""Writers at one table: whoever comes second tries again, however often."""

from __future__ import annotations

import itertools
import random
import time

import pytest

from rtmeter.archive.once import until_first
from rtmeter.archive.tables import MovedError


def test_who_always_comes_second_tries_again_within_a_second(monkeypatch: pytest.MonkeyPatch) -> None:
    waited: list[float] = []
    monkeypatch.setattr(random, "uniform", lambda _least, most: most)
    monkeypatch.setattr(time, "sleep", waited.append)
    tries = itertools.count()

    def commit() -> str:
        if next(tries) < 2000:
            raise MovedError
        return "done"

    assert until_first(commit) == "done"
    assert waited[:7] == [0.02, 0.04, 0.08, 0.16, 0.32, 0.64, 1.0]
    assert set(waited[7:]) == {1.0} and len(waited) == 2000
