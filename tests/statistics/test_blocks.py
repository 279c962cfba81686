"""Blocks of a run, by hand."""

from __future__ import annotations

import numpy as np
import pytest

from rtmeter.statistics.blocks import Blocks

NONE = np.empty(0)


@pytest.mark.parametrize(
    ("by_ns", "times"),
    [
        (0, 1.0),
        (10, 1.5),  # above 70 there are 2, above 60 3; above 90 none, above 80 1: none counts as one
        (30, 3.0),  # above 60 there are 3
        (100, 10.0),
    ],
)
def test_how_much_more_often_a_threshold_is_exceeded_if_all_are_later(by_ns: float, times: float) -> None:
    values = np.arange(0, 100, 10)
    blocks = Blocks(NONE, NONE, NONE, NONE, NONE, threshold_ns=70, rare_ns=90, scale_ns=1.0)
    assert blocks.raised(values, by_ns) == times
