"""What the exit code of a self-test says of what was planted."""

from __future__ import annotations

import pytest

from rtmeter.cli import exit_codes


@pytest.mark.parametrize(
    ("outcomes", "code"),
    [
        (["seen", "named", "not blamed"], exit_codes.PASS),
        (["seen", "not planted"], exit_codes.INCONCLUSIVE),
        (["not planted", "not seen"], exit_codes.FAIL),
        (["not planted", "not named"], exit_codes.FAIL),
        (["named", "blamed"], exit_codes.FAIL),
    ],
)
def test_a_self_test_fails_before_it_is_inconclusive(outcomes: list[str], code: int) -> None:
    assert exit_codes.of_self_test(outcomes) == code
