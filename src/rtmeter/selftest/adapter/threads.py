"""Are the threads that the middleware brings declared, and found as they were declared?"""

from __future__ import annotations

from collections.abc import Iterator
from fnmatch import fnmatchcase
from functools import partial

from rtmeter.selftest.adapter.check import Check, CheckOutcome, failed, passed
from rtmeter.selftest.adapter.running import CheckedProbe, ways

_LONGEST_NAME = 15
_LOOKS = 3
"""A thread that has just begun has the probe's own name, until it gives itself another: one that keeps it is
seen each time."""


def checks(subject: CheckedProbe) -> Iterator[Check]:
    """One of every measurement."""
    for measurement in dict.fromkeys(way.measurement for way in ways(subject.facts)):
        yield Check(f"threads.{measurement}", partial(_declared, subject, measurement))


def _declared(subject: CheckedProbe, measurement: str) -> CheckOutcome:
    """describe's ``brings``: "NAME: what it does", where NAME may have ``*``."""
    config = next(w.config for w in reversed(ways(subject.facts)) if w.measurement == measurement)
    declared = [str(item).partition(":")[0] for item in subject.facts.get("brings", ())]
    for _ in range(_LOOKS):
        frame, _ = subject.complete(config)
        names = sorted({t["name"] for t in frame["threads"] if t["role"] == "middleware"})
        strange = [name for name in names if not any(fnmatchcase(name, pattern) for pattern in declared)]
        if strange != [subject.probe.path.name[:_LONGEST_NAME]]:
            break
    if strange:
        return failed(
            f"it brings threads that it does not declare: {', '.join(strange)}",
            'put brings in describe, before start: "NAME: what it does", repeated; NAME may have *',
        )
    return passed(", ".join(names) or "it brings none")
