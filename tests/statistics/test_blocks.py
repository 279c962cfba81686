"""Blocks of a run, by hand."""

from __future__ import annotations

import numpy as np
import pytest

from rtmeter.statistics.blocks import A_BLOCK, Blocks, blocks_of

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


def test_so_many_values_are_greater_than_either_threshold_as_a_block_is_to_have() -> None:
    values = np.random.default_rng(1).permutation(60_000)
    blocks = blocks_of(values)
    assert blocks is not None and blocks.others == ()
    for counts, limit_ns, many in (
        (blocks.counts, blocks.threshold_ns, A_BLOCK * blocks.count),
        (blocks.rare_counts, blocks.rare_ns, A_BLOCK * blocks.count // 10),
    ):
        assert counts.sum() == np.count_nonzero(values > limit_ns) == many
