"""check-adapter: the threads that a middleware brings are declared."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from rtmeter.selftest.adapter.threads import checks


@pytest.mark.parametrize(
    ("runs", "outcome"),
    [
        ([["io"]], "pass"),
        ([["io", "rtmeter-probe-z"], ["io", "worker"]], "pass"),
        ([["rtmeter-probe-z"], ["rtmeter-probe-z"], ["io"]], "pass"),
        ([["rtmeter-probe-z"]] * 3, "fail"),
        ([["rtmeter-probe-z"], ["other"]], "fail"),
        ([["other"]], "fail"),
    ],
)
def test_a_thread_that_has_not_named_itself_yet_is_looked_at_again(
    runs: list[list[str]], outcome: str
) -> None:
    left = iter(runs)

    def complete(_: Any) -> tuple[dict[str, Any], None]:
        return {"threads": [{"name": name, "role": "middleware"} for name in next(left)]}, None

    facts = {"measures": ["wakeup"], "brings": ["io: sends", "wor*: works"]}
    probe = SimpleNamespace(path=Path("/opt/rtmeter-probe-zeromq"))
    subject: Any = SimpleNamespace(facts=facts, probe=probe, complete=complete)
    (check,) = checks(subject)
    assert check.run()[0] == outcome
    assert next(left, None) is None
