"""The requirement as the commands take it that judge what is there already."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Annotated, Any, get_args

import typer

from rtmeter.cli.choices import one_of
from rtmeter.model import Criticality

if TYPE_CHECKING:
    from rtmeter.judge.compared import ComparisonOptions
    from rtmeter.model import Requirement

MissRatio = Annotated[
    str | None, typer.Option(metavar="P", help="Share of releases allowed to miss it.", show_default=False)
]
Confidence = Annotated[
    str | None, typer.Option(metavar="C", help="Confidence of the bounds (default 95%).", show_default=False)
]
CriticalityText = Annotated[
    str | None,
    typer.Option(
        help="What a miss means (default firm).",
        show_default=False,
        **one_of("--criticality", get_args(Criticality)),
    ),
]

HorizonText = Annotated[
    str | None,
    typer.Option(
        metavar="H",
        help="Fail if not even H times the run without a further miss would meet P (default 10).",
        show_default=False,
    ),
]


def stated(
    deadline: str | None,
    miss_ratio: str | None,
    confidence: str | None,
    criticality: str | None,
    horizon: str | None = None,
) -> dict[str, Any]:
    """The fields of a ``Requirement`` that the options state. Raises RtmeterError naming the option."""
    from rtmeter.campaign import matrix
    from rtmeter.cli.cell_options import as_flag
    from rtmeter.errors import RtmeterError

    texts = (deadline, miss_ratio, confidence, criticality, horizon)
    given = {name: text for name, text in zip(matrix.REQUIREMENT, texts, strict=True) if text is not None}
    try:
        values = {name: matrix.parse_fact(name, text) for name, text in given.items()}
    except RtmeterError as error:
        raise as_flag(error) from None
    return {"deadline_ns" if name == "deadline" else name: value for name, value in values.items()}


def required(
    deadline: str | None,
    miss_ratio: str | None,
    confidence: str | None,
    criticality: str | None,
    horizon: str | None = None,
) -> Requirement | None:
    """The requirement that the options state; None without any. Raises RtmeterError naming the option."""
    from rtmeter.cli.cell_options import as_flag
    from rtmeter.errors import RtmeterError
    from rtmeter.model import Requirement

    parts = stated(deadline, miss_ratio, confidence, criticality, horizon)
    if parts and deadline is None:
        options = {"miss_ratio": miss_ratio, "confidence": confidence, "criticality": criticality}
        name, text = next(one for one in (options | {"horizon": horizon}).items() if one[1] is not None)
        message = "says nothing without a deadline"
        raise as_flag(RtmeterError(message, field=name, value=text, remedy="give --deadline"))
    return Requirement(**parts) if parts else None


def share(option: str, text: str) -> float:
    """A share above 0 and below 1, like ``10%``. Raises RtmeterError naming the option."""
    from rtmeter.campaign import matrix
    from rtmeter.errors import RtmeterError

    try:
        return float(matrix.parse_fact("miss_ratio", text))
    except RtmeterError as error:
        raise RtmeterError(
            error.message, field=option, value=text, remedy="write it like 0.1 or 10%"
        ) from None


def once_in_hours(text: str) -> float:
    """How long ``--once-in`` says, in hours. Raises RtmeterError naming the option."""
    from rtmeter.campaign import matrix
    from rtmeter.errors import RtmeterError
    from rtmeter.statistics.bounds import NS_PER_HOUR

    try:
        return float(matrix.parse_fact("duration", text) / NS_PER_HOUR)
    except RtmeterError as error:
        error.field = "--once-in"
        raise


def asked_of(
    gates: Sequence[str], deadline: str | None, confidence: str | None, force: bool
) -> ComparisonOptions:
    """What a comparison is asked for. Raises RtmeterError naming the option."""
    from rtmeter.campaign import matrix
    from rtmeter.cli.cell_options import as_flag
    from rtmeter.errors import RtmeterError
    from rtmeter.judge.compared import ComparisonOptions
    from rtmeter.statistics.gate import parse_gate

    try:
        return ComparisonOptions(
            gates=tuple(parse_gate(text) for text in gates),
            deadline_ns=None if deadline is None else matrix.parse_fact("deadline", deadline),
            confidence=0.95 if confidence is None else matrix.parse_fact("confidence", confidence),
            force=force,
        )
    except RtmeterError as error:
        if error.field == "gate":
            error.field = "--gate"
        raise as_flag(error) from None
