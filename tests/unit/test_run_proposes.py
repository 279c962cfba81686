"""What `rtmeter run` proposes to ask next has an answer, whatever failed."""

from __future__ import annotations

from pathlib import Path

import pytest

from rtmeter import cli
from rtmeter.cli import exit_codes

Captured = pytest.CaptureFixture[str]
CAMPAIGN = """
name: small
defaults: {measurement: wakeup, adapter: fake, samples: 1097, warm_up: 3ms}
cells:
- {name: good}
- {name: bad, options: {behave: die}}
"""
LAST = "- {name: last, deadline: 1s}\n"

pytestmark = pytest.mark.usefixtures("fake_probe")


@pytest.fixture(autouse=True)
def _in_an_empty_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "here").mkdir()
    monkeypatch.chdir(tmp_path / "here")


def run(campaign: str, capsys: Captured) -> list[str]:
    """The comparisons that are proposed once it was measured."""
    Path("small.yaml").write_text(campaign)
    assert cli.invoke(["run", "small.yaml", "--out", "r"]) == exit_codes.ERROR
    lines = map(str.strip, capsys.readouterr().out.splitlines())
    return [line.removeprefix("rtmeter ") for line in lines if line.startswith("rtmeter compare")]


def test_a_factor_of_which_a_level_failed_is_not_proposed(capsys: Captured) -> None:
    """options.behave has two levels, and one of them died; two of the named cells were measured."""
    (proposed,) = run(CAMPAIGN + LAST, capsys)
    assert proposed.endswith("--factor block")
    assert cli.invoke(proposed.split()) == exit_codes.INCONCLUSIVE, "one run each"
    assert "left out: " in capsys.readouterr().out
    asked = [*proposed.split()[:-1], "options.behave"]
    assert cli.invoke(asked) == exit_codes.ERROR


def test_where_no_two_levels_were_measured_no_factor_is_proposed(capsys: Captured) -> None:
    assert run(CAMPAIGN, capsys) == []
