"""What `rtmeter attach` says of a wrong line: in the words of its own options."""

from __future__ import annotations

import os

import pytest

from rtmeter import cli

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
