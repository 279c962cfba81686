"""Do two participants find each other and leave, again and again, and are all told of it?"""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import ExitStack
from functools import partial
from typing import Any

from rtmeter.model import SERVED
from rtmeter.samples import read_log
from rtmeter.selftest.adapter.check import Check, CheckOutcome, failed, passed
from rtmeter.selftest.adapter.running import MS, RUN_S, CheckedProbe, RunConfig

_RELEASES = 4
_PERIODS_NS = (1_000 * MS, 6_000 * MS, 20_000 * MS)
"""A second will do for most; where ends are announced once a second they find each other within three, or on
a busy machine within ten."""
_REMEDY = (
    "call on_match whenever the middleware tells of a change, with how many ends of others are matched now, "
    "of each end that describe lists in matches; stop() leaves, and start() may follow it"
)


def checks(subject: CheckedProbe) -> Iterator[Check]:
    """Of an adapter that measures discoveries."""
    if "discovery" in subject.facts.get("measures", ()):
        for others in ("cold", "present"):
            yield Check(f"discovery.{others}", partial(_found, subject, others))


def _found(subject: CheckedProbe, others: str) -> CheckOutcome:
    for period_ns in _PERIODS_NS:
        outcome = _found_within(subject, others, period_ns)
        if outcome is not None:
            return outcome
    return failed(f"within {_PERIODS_NS[-1] // 2 // MS} ms nobody was found, or heard", _REMEDY)


def _found_within(subject: CheckedProbe, others: str, period_ns: int) -> CheckOutcome | None:
    """None: nobody was found, or heard, within half a period."""
    asked: dict[str, Any] = {"participants": 2, "others": others}
    config: RunConfig = {
        "measurement": "discovery",
        "session": f"check-{time.monotonic_ns():x}",
        "period_ns": period_ns,
        "samples": _RELEASES,
        "loss_timeout_ns": period_ns // 2,
        "connect_timeout_ns": 20_000 * MS,
    }
    each = [asked] if subject.probe.scripted else [asked | {"participant": number} for number in (0, 1)]
    with ExitStack() as stack:
        runs = [stack.enter_context(subject.run(config | {"discovery": one})) for one in each]
        for run in runs:
            run.until("ready")
        first_ns = time.monotonic_ns() + 200 * MS
        for run in () if subject.probe.scripted else runs:
            run.tell(f"go {first_ns}\n")
        if any(run.end(RUN_S) != 0 for run in runs):
            return failed(f"a participant failed: {runs[0].last_words()}; {runs[-1].last_words()}", _REMEDY)
        served = [int((read_log(run.log).columns["status"] == SERVED).sum()) for run in runs]
        warned = {warning["type"] for run in runs for warning in run.frame()["warnings"]}
    if "too_many_matches" in warned:
        return failed("more ends were matched than the other has", f"leave out the node's own; {_REMEDY}")
    if min(served) == 0:
        return None
    return passed(f"{min(served)} of {_RELEASES} times both were found and heard")
