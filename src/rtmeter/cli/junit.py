"""Comparisons as JUnit XML, as continuous integration reads it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from xml.etree.ElementTree import Element, ElementTree, SubElement, indent

from rtmeter.cli.comparison_tables import WORDS, gate_words
from rtmeter.errors import RtmeterError
from rtmeter.judge.compared import Compared
from rtmeter.values import visible

_PASSED = ("pass", "better", "no difference")
_FAILED = ("fail", "worse")


def write_junit(path: Path, name: str, compared: Sequence[Compared], missing: Sequence[str]) -> None:
    """Writes a test suite: a case for each gate of each cell, or for each cell without gates; what is not
    known is an error, so that it is not taken for passed. ``missing``: cells that B lacks."""
    suite = Element("testsuite", name=visible(name))
    for one in compared:
        for case, kind, message in _cases(one):
            _add(suite, one.pairing.name, case, kind, message)
    for cell in missing:
        _add(suite, cell, "is measured", "error", "only A has this cell")
    for attribute, kind in (("failures", "failure"), ("errors", "error")):
        suite.set(attribute, str(len(suite.findall(f"*/{kind}"))))
    suite.set("tests", str(len(suite)))
    indent(suite)
    try:
        ElementTree(suite).write(path, encoding="utf-8", xml_declaration=True)
    except OSError as error:
        reason = (error.strerror or str(error)).lower()
        raise RtmeterError(
            f"cannot be written: {reason}", field="--junit", value=str(path), remedy="give another place"
        ) from None


def _cases(one: Compared) -> Iterator[tuple[str, str | None, str]]:
    """Name, element if it did not pass, and message of each test case."""
    if one.found is None or not one.gates:
        worst = ", ".join(s.quantity for s in one.found.shifts if s.outcome == "worse") if one.found else ""
        message = one.refusal or f"{WORDS.get(one.outcome, one.outcome)}{': ' if worst else ''}{worst}"
        yield "is not worse", _kind(one.outcome), message
        return
    for result in one.gates:
        yield result.gate.text, _kind(result.outcome), gate_words(result)


def _kind(outcome: str) -> str | None:
    """The element of an outcome, of a comparison or a gate; None if it passed."""
    if outcome in _PASSED:
        return None
    return "failure" if outcome in _FAILED else "error"


def _add(suite: Element, cell: str, name: str, kind: str | None, message: str) -> None:
    case = SubElement(suite, "testcase", classname=visible(cell), name=visible(name))
    if kind:
        SubElement(case, kind, message=visible(message))
    else:
        SubElement(case, "system-out").text = visible(message)
