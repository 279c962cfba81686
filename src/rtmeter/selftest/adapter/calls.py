"""Do wait, spin, spin_some and interrupt do what the contract says? The probe tries them itself."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial

from rtmeter.model import TWO_ENDS
from rtmeter.selftest.adapter.check import Check, CheckOutcome, failed, not_applicable, passed
from rtmeter.selftest.adapter.running import CheckedProbe, RunConfig, UnexpectedError, Way, counted, ways

_SILENCE_S = 15.0
"""Without a word of one a trial hangs: each takes half a second, or five if the first interrupt() is lost."""
_REMEDY = (
    "wait and spin block until a callback ran, a timeout passed or interrupt() came, also if just before; a "
    "timeout of 0 returns at once, spin_some always does"
)


def checks(subject: CheckedProbe) -> Iterator[Check]:
    """One for every way but wakeup, which waits in the core."""
    for way in ways(subject.facts):
        if way.measurement != "wakeup":
            yield Check(f"timeouts.{way.name}", partial(_tried, subject, way))


def _tried(subject: CheckedProbe, way: Way) -> CheckOutcome:
    if subject.probe.scripted:
        return not_applicable("on a scripted clock no time passes while it waits")
    role: RunConfig = {}
    if way.measurement in TWO_ENDS:
        if subject.one_process:
            return not_applicable("its server is in the client, which answers while it waits")
        role = {"role": "server"}
    with subject.run(counted(way.config) | role, "--try") as one:
        try:
            code = one.end_unless_silent("trial", _SILENCE_S)
        except UnexpectedError:
            code = None
        trials = [event for event in one.events() if event["event"] == "trial"]
        ended = {trial["name"]: trial for trial in trials if trial["outcome"] != "begun"}
        wrong = [
            f"{name}: {trial['message']}" for name, trial in ended.items() if trial["outcome"] == "failed"
        ]
        hung = [trial["name"] for trial in trials if trial["name"] not in ended]
        if hung:
            return failed(f"{hung[0]}: the call never came back", _REMEDY)
        if wrong:
            return failed("; ".join(wrong), _REMEDY)
        if code != 0:
            return failed(f"{one.last_words()}", _REMEDY)
        if not trials:
            return not_applicable("nothing of the adapter's waits in it")
        return passed(", ".join(ended))
