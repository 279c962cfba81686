"""What `rtmeter attach` says of a wrong line: in the words of its own options."""

from __future__ import annotations

import os
from typing import Any

import pytest

from rtmeter import cli
from rtmeter.campaign import matrix
from rtmeter.campaign.rules import settle
from rtmeter.errors import RtmeterError
from rtmeter.measure.programs.attached import ByAttaching

WRONG = [
    (
        "--duration 1s",
        "--pid: is missing; give that of the program, or, after all options, -- and the command",
    ),
    ("--pid {pid} --cpus 0-2,5 --duration 1s", "--cpus = '0-2,5': is not for a program that is attached to"),
    ("--pid x", "--pid = 'x': should be a valid integer"),
    ("--pid {pid} --duration 1s -- true", "--pid = {pid}: contradicts command"),
]


@pytest.mark.parametrize(("line", "said"), WRONG)
def test_an_error_names_option_and_value_as_they_are_written(
    line: str, said: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert cli.invoke(["attach", *line.format(pid=os.getpid()).split()]) == 1
    assert capsys.readouterr().err.startswith(f"rtmeter: {said.format(pid=os.getpid())}")


@pytest.mark.parametrize("condition", [{"isolate": "1"}, {"rt_runtime": "900ms"}, {"net_prio": {"lo": 6}}])
def test_no_group_is_made_for_a_program_that_runs_already(condition: dict[str, Any]) -> None:
    """It would stay outside."""
    loop = {"measurement": "loop", "adapter": "attached", "duration": "1s", "pid": str(os.getpid())}
    options = settle(loop | {"conditions": condition})
    source = ByAttaching(matrix.cell_from(options, matrix.cell_id(options, None, {}), {}))
    with pytest.raises(RtmeterError, match="is not for a program that is attached to") as caught:
        source.check()
    [name] = condition
    assert caught.value.field == f"conditions.{name}"
