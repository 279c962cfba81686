"""A built probe → does its adapter keep the contract? One named check after the other, each with its reason.

Nothing is judged by how fast it is: counts, identities, contents, and limits that no stall of a machine
reaches.
"""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path

from rtmeter.errors import RtmeterError, did_you_mean
from rtmeter.measure.probe.probes import Probe
from rtmeter.selftest.adapter import beside, calls, description, discovery, echo, ends, errors, threads
from rtmeter.selftest.adapter.check import Check, Result, failed
from rtmeter.selftest.adapter.running import CheckedProbe, UnexpectedError

__all__ = ["Check", "Result", "check_adapter"]

_ROOMS = (description, echo, beside, discovery, calls, ends, errors, threads)


def check_adapter(
    probe: Probe, only: str = "", began: Callable[[str], None] = lambda name: None
) -> Iterator[Result]:
    """Runs every check whose name contains ``only``; ``began`` is told of each as it begins. Raises
    RtmeterError if none does."""
    names = []
    with tempfile.TemporaryDirectory(prefix="rtmeter-") as folder:
        subject = CheckedProbe(probe, Path(folder))
        for room in _ROOMS:
            for check in room.checks(subject):
                names.append(check.name)
                if only in check.name:
                    began(check.name)
                    yield _result(check)
    if not any(only in name for name in names):
        words = dict.fromkeys(word for name in names for word in (*name.split("."), name))
        remedy = did_you_mean(only, words) or "leave it out to see them all"
        raise RtmeterError("is in the name of no check", field="--only", value=only, remedy=remedy)


def _result(check: Check) -> Result:
    try:
        outcome, reason, remedy = check.run()
    except UnexpectedError as error:
        outcome, reason, remedy = failed(error.reason, error.remedy)
    return Result(check.name, outcome, reason, remedy)
