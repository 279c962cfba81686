"""What the table of a campaign's plan says below its rows, and of whom."""

from __future__ import annotations

import pytest

from rtmeter.campaign.plan import Assumed, CellPlan, plan_cell
from rtmeter.cli.plan_tables import show_cells
from rtmeter.model import Cell, Requirement

MS = 1_000_000


def planned(name: str, releases: int, assumed: Assumed = Assumed()) -> CellPlan:  # noqa: B008
    config = {"measurement": "wakeup", "samples": releases, "period_ns": MS}
    cell = Cell(name, "posix", None, {}, config, Requirement(MS, 1e-3))
    return plan_cell(name, [cell], assumed)


def test_who_cannot_pass_for_what_is_to_be_mended_is_not_said_to_be_too_short(
    capsys: pytest.CaptureFixture[str],
) -> None:
    refused = planned("refused", 10_000, Assumed(like="pilot", refusals=("it drifts",)))
    show_cells([refused, planned("short", 1_000)], [], 11 * 10**9, ())
    said = capsys.readouterr().out
    assert "no length helps before that is mended for which pilot is refused: it drifts" in said
    assert "1 of 2 cells is too short to pass whatever it measures" in said


def test_who_cannot_run_here_is_not_the_one_with_the_least_room(capsys: pytest.CaptureFixture[str]) -> None:
    least, more, most = (planned(f"of-{n}", n) for n in (4_000, 9_000, 12_000))
    show_cells([least, more, most], [], 25 * 10**9, {"of-4000"})
    said = capsys.readouterr().out
    assert "as planned of-9000 passes without a miss up to n / 3 (" in said
    assert said.count("cannot run") == 1
