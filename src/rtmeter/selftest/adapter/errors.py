"""Is what cannot be refused with field, value and remedy?"""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from typing import Any

from rtmeter.model import TWO_ENDS
from rtmeter.selftest.adapter.check import Check, CheckOutcome, failed, not_applicable, passed
from rtmeter.selftest.adapter.running import RUN_S, CheckedProbe, RunConfig, counted, ways

_NONSENSE = "rtmeter-no-such"
_REMEDY = 'throw SetupError("option KEY", value, what is wrong, what to do) for a value that is none'


def checks(subject: CheckedProbe) -> Iterator[Check]:
    """One for every option that has choices, and for what no adapter has."""
    yield Check("errors.unknown_option", partial(_unknown, subject))
    for name, about in subject.facts.get("option", {}).items():
        choices = [choice for choice in str(about).partition(":")[0].split("|") if " " not in choice]
        if "|" in str(about).partition(":")[0] and len(choices) > 1:
            yield Check(f"errors.option.{name}", partial(_bad_value, subject, name))


def _refusal(subject: CheckedProbe, config: RunConfig) -> tuple[int, dict[str, Any] | None, str]:
    """Of a run that must not begin: exit code, error, last words."""
    role = "single"
    if config["measurement"] in TWO_ENDS:
        role = "client" if subject.one_process else "server"
    with subject.run(counted(config) | {"role": role}) as one:
        if role == "server" and one.until_either("ready", "error")["event"] == "ready":
            return 0, None, "it started"  # and would wait for ever
        return one.end(RUN_S), one.error(), one.last_words()


def _unknown(subject: CheckedProbe) -> CheckOutcome:
    option = f"option {_NONSENSE}"
    way = ways(subject.facts)[-1]
    code, error, words = _refusal(subject, way.config | {"options": {_NONSENSE: "1"}})
    if code != 1 or error is None or error["field"] != option or not error["remedy"]:
        return failed(f"{option} was not refused by its name: {words}", "read only options that you have")
    return passed(error["message"])


def _bad_value(subject: CheckedProbe, name: str) -> CheckOutcome:
    """In the first measurement in which the option means something."""
    field, answer = f"option {name}", "no measurement reads it"
    for way in _one_of_each(subject):
        code, error, words = _refusal(subject, way | {"options": {name: _NONSENSE}})
        if code != 1 or error is None:
            return failed(f"{field} = {_NONSENSE!r} is taken ({way['measurement']}): {words}", _REMEDY)
        answer = words
        if error["field"] != field:
            continue
        if any(word in error["message"] for word in ("no such option", "means nothing in this run")):
            continue
        if _NONSENSE not in error["value"] or not error["remedy"]:
            return failed(f"the error does not name value and remedy: {error}", _REMEDY)
        return passed(f"{error['message']}; {error['remedy']}"[:100])
    if subject.probe.scripted:
        return not_applicable("its options need a script")
    return failed(f"{field} is described, and nothing refuses {_NONSENSE!r} by its name: {answer}", _REMEDY)


def _one_of_each(subject: CheckedProbe) -> list[RunConfig]:
    """A way of every measurement, every drive of a timer and cycle: an option may belong to one."""
    return [way.config for way in ways(subject.facts) if way.config.get("before") != "none"]
