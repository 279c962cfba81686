"""A program beside the probes that ends before it is asked to."""

from __future__ import annotations

import os
from contextlib import closing

import pytest

from rtmeter.conditions.companion import Companion
from waiting import until


@pytest.mark.parametrize(
    ("script", "code", "said"),
    [
        ("exit 0", 0, "exit code 0 after"),
        ("echo no room >&2; exit 3", 3, "it said: no room"),
        ("kill -KILL $$", -9, "killed by SIGKILL after"),
    ],
)
def test_the_number_of_its_group_is_nobody_elses_before_it_is_ended(
    script: str, code: int, said: str
) -> None:
    """Else who has it by then would be killed."""
    with closing(Companion(["sh", "-c", script], field="load")) as companion:
        until(lambda: companion.exit_code is not None)
        companion.wait(0)
        assert companion.exit_code == code and said in companion.how_it_ended
        os.killpg(companion.pid, 0)
        ran_s = companion.ran_s
    with pytest.raises(ProcessLookupError):
        os.killpg(companion.pid, 0)
    assert (companion.exit_code, companion.ran_s) == (code, ran_s)


def test_one_that_is_asked_to_end_has_its_exit_code_then() -> None:
    script = "trap 'exit 7' TERM; echo ready; while :; do sleep 0.01; done"
    with closing(Companion(["sh", "-c", script], field="load")) as companion:
        until(lambda: companion.stdout() or companion.exit_code is not None)
        assert companion.exit_code is None
        companion.end()
        assert companion.exit_code == 7
