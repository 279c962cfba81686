"""rtmeter plan: how long must a run be?"""

from __future__ import annotations

import sys
from dataclasses import asdict
from pathlib import Path
from typing import Annotated

import typer

from rtmeter.campaign.ranges import SEARCHED
from rtmeter.cli import exit_codes
from rtmeter.cli.choices import campaign_files, one_of
from rtmeter.cli.requirement_options import Confidence, CriticalityText, MissRatio

EXAMPLE = "rtmeter plan --deadline 1ms --miss-ratio 1e-6 --confidence 95% --period 1ms"
DETAILS = (
    "Says how many releases, and hours, a run needs to pass a requirement, before anything is run; with "
    "CAMPAIGN for each of its cells whether its planned length can pass at all. Exit codes: 0, 1 error, 3 if "
    "a cell can never pass, or what a run like it was refused for has to be mended first."
)


def command(
    campaign: Annotated[
        Path | None,
        typer.Argument(
            help="Campaign file with requirements.", show_default=False, autocompletion=campaign_files
        ),
    ] = None,
    deadline: Annotated[
        str | None,
        typer.Option(metavar="1ms", help="Deadline of the judged quantity.", show_default=False),
    ] = None,
    miss_ratio: MissRatio = None,
    confidence: Confidence = None,
    criticality: CriticalityText = None,
    period: Annotated[
        str | None,
        typer.Option(metavar="1ms", help="Period of the releases (--like: that one's).", show_default=False),
    ] = None,
    extremal_index: Annotated[
        float | None,
        typer.Option(metavar="T", help="Misses come in clusters of 1/T on average.", show_default=False),
    ] = None,
    like: Annotated[
        Path | None,
        typer.Option(help="Cells whose dependence, and spread of repeats, is assumed.", show_default=False),
    ] = None,
    scale: Annotated[float, typer.Option(help="Multiplies the campaign's releases.")] = 1.0,
    only: Annotated[
        str | None, typer.Option(metavar="EXPR", help="Cells of the campaign.", show_default=False)
    ] = None,
    find_max: Annotated[  # cli/__init__ makes it another command, before this one is asked
        str | None,
        typer.Option(
            help="Measure to find the largest that passes (see: rtmeter plan --find-max rate --help).",
            show_default=False,
            **one_of("--find-max", SEARCHED),
        ),
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print one JSON object.")] = False,
) -> int:
    """Plans one run, or checks the plan that a campaign is."""
    from rtmeter.campaign.file import read_campaign
    from rtmeter.campaign.plan import assumptions, plan_cells, plan_run
    from rtmeter.cli.assumed_dependence import Assume
    from rtmeter.cli.output import print_json
    from rtmeter.cli.pilot import factor_plans
    from rtmeter.cli.plan_tables import show_cells, show_plan
    from rtmeter.cli.refusals import refuse
    from rtmeter.cli.requirement_options import required
    from rtmeter.errors import RtmeterError
    from rtmeter.measure.can_run import refused
    from rtmeter.results.condition_words import which_cells
    from rtmeter.values import without_repeat

    assume = Assume(extremal_index, like)
    asked = required(deadline, miss_ratio, confidence, criticality)
    if campaign is not None:
        remedy = "leave it out: the campaign says what its cells need"
        refuse({"--deadline": deadline, "--period": period}, "contradicts CAMPAIGN", remedy)
        planned_cells = read_campaign(campaign, scale=scale, only=only).cells
        cannot_run = refused(planned_cells)
        cells = plan_cells(planned_cells, lambda cell: assume(cell.requirement, cell))
        factors, total_ns = factor_plans(planned_cells, cells, like), sum(c.planned_ns for c in planned_cells)
        if as_json:
            factors_json = [asdict(one) | {"needed": one.needed, "enough": one.enough} for one in factors]
            print_json(
                {"cells": [asdict(cell) for cell in cells], "factors": factors_json, "planned_ns": total_ns}
            )
        else:
            names = {without_repeat(cell.id, cell.axes) for cell in planned_cells if cell.id in cannot_run}
            show_cells(cells, factors, total_ns, names)
        alike: dict[str, list[str]] = {}
        for id_, error in cannot_run.items():
            alike.setdefault(str(error), []).append(id_)
        for error_text, ids in alike.items():
            which = which_cells(ids, len(planned_cells))
            print(f"{which} cannot run here: {error_text}", file=sys.stderr)
        if cannot_run:
            return exit_codes.ERROR
        never = any(cell.outcome == "never" for cell in cells)
        return exit_codes.INCONCLUSIVE if never else exit_codes.PASS
    scaled = None if scale == 1 else scale
    remedy = "leave it out, or give a campaign's file"
    refuse({"--scale": scaled, "--only": only}, "means nothing without CAMPAIGN", remedy)
    assumed = assume(asked, None)
    period_ns = assumed.period_ns if period is None else _period_ns(period)
    for field, value in (("--deadline", asked), ("--period", period_ns)):
        if value is None:
            raise RtmeterError("is missing", field=field, remedy=f"give it, e.g. {field} 1ms, or a CAMPAIGN")
    assert asked is not None and period_ns is not None, "checked above"
    planned = plan_run(asked, period_ns, assumed)
    said = assumptions(asked, planned.assumed)
    print_json(asdict(planned) | {"assumes": said}) if as_json else show_plan(planned, said)
    return exit_codes.INCONCLUSIVE if planned.never else exit_codes.PASS


def _period_ns(text: str) -> int:
    from rtmeter.campaign import matrix
    from rtmeter.cli.cell_options import as_flag
    from rtmeter.errors import RtmeterError

    try:
        return int(matrix.parse_fact("period", text))
    except RtmeterError as error:
        raise as_flag(error) from None
