"""Ranges on the command line → a campaign, whose file would measure the same."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any

import yaml

from rtmeter.campaign.ranges import SWEPT, in_words, is_range, option_of, value_of, values_of
from rtmeter.cli.cell_options import as_flag
from rtmeter.errors import RtmeterError

if TYPE_CHECKING:
    from rtmeter.model import Campaign


def at_rate(given: Mapping[str, Any], rate: str | None) -> dict[str, Any]:
    """The options with the rate as the period that it is. Raises RtmeterError."""
    if rate is None:
        return dict(given)
    _check_period(given)
    return dict(given) | dict([option_of("rate", value_of("rate", rate))])


def sweep(given: Mapping[str, Any], rate: str | None) -> Campaign:
    """The campaign of all combinations; says on standard error which values. Raises RtmeterError."""
    from rtmeter.campaign.file import read_campaign

    block, said = dict(given), []
    if rate is not None:
        _check_period(given)
        block |= at_rate(given, rate) if not is_range(rate) else {}
    for name, text in [(name, rate if name == "rate" else given.get(name)) for name in SWEPT]:
        if text is not None and is_range(text):
            values = values_of(name, text)
            block[option_of(name, 1)[0]] = [option_of(name, value)[1] for value in values]
            said.append((name, values))
    named = "-".join(str(block.get(key)) for key in ("measurement", "adapter"))
    name = f"{named}-by-{'-and-'.join(name for name, _ in said)}"
    text = yaml.safe_dump({"name": name, "cells": [block]}, sort_keys=False, allow_unicode=True)
    with TemporaryDirectory() as folder:
        path = Path(folder, "campaign.yaml")
        path.write_text(text, encoding="utf-8")
        try:
            planned = read_campaign(path)
        except RtmeterError as error:
            error.where = None  # the file is none of the user's
            raise as_flag(error, rate) from None
    for name, values in said:
        print(f"rtmeter: {name}: {', '.join(in_words(name, value) for value in values)}", file=sys.stderr)
    return planned


def _check_period(given: Mapping[str, Any]) -> None:
    if "period" in given:
        remedy = "give one of the two"
        raise RtmeterError("contradicts --rate", field="--period", value=given["period"], remedy=remedy)
