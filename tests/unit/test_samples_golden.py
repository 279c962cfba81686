"""The reader finds in spec/golden/ what the writer says it put there."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

from rtmeter.errors import RtmeterError
from rtmeter.model import ABSENT
from rtmeter.samples import LogReader, read_log

GOLDEN = Path(__file__).parents[2] / "spec" / "golden"
OF_RESULTS = {"cell-v1", "cell-v1-first", "cell-v2", "run-v1", "run-v2"}
"""Records, not logs."""
NAMES = sorted({path.stem for path in GOLDEN.glob("*.json")} - OF_RESULTS)


def test_every_kind_of_log_is_there() -> None:
    measurements = {"wakeup", "one-shot", "periodic", "client", "server", "cycle", "discovery", "request"}
    assert set(NAMES) == measurements | {"stamped"} | {"extremes", "torn", "flipped", "future"}
    assert sorted(path.stem for path in GOLDEN.glob("*.rtlog")) == NAMES


@pytest.mark.parametrize("name", NAMES)
def test_golden(name: str) -> None:
    expected = json.loads((GOLDEN / f"{name}.json").read_text())
    path = GOLDEN / f"{name}.rtlog"
    if "error" in expected:
        with pytest.raises(RtmeterError, match=expected["error"]) as caught:
            LogReader(path)
        assert caught.value.where == str(path)
        return
    log = read_log(path)
    assert log.k.tolist() == expected["k"]
    columns = {
        name: [None if v == ABSENT else v for v in values.tolist()] for name, values in log.columns.items()
    }
    assert columns == expected["columns"]
    assert all(values.dtype == np.int64 for values in log.columns.values())
    assert log.meta == expected["meta"]
    assert log.missing == expected["missing"]
    assert bool(log.problems) == bool(expected["missing"])
