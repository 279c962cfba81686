import numpy as np
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import rankdata

from rtmeter.statistics.ranks import mid_ranks


@given(st.lists(st.sampled_from([-np.inf, -0.0, 0.0, 0.5, np.inf]) | st.floats(allow_nan=False), min_size=1))
def test_mid_ranks_are_scipys(series: list[float]) -> None:
    assert np.array_equal(mid_ranks(np.array(series)), rankdata(series))
