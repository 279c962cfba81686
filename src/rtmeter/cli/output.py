"""Printing: results to standard output, everything else to standard error."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from rtmeter.values import as_json, harmless

if TYPE_CHECKING:
    from rich.console import Console

    from rtmeter.errors import RtmeterError
    from rtmeter.model import Doubt
    from rtmeter.results.record import Failure

_FEW = 5  # errors of many that are told
_NARROWEST = 140  # columns where standard output is no terminal: tables are not to be squeezed


def console(*, stderr: bool = False) -> Console:
    """A rich console that neither colours nor squeezes what goes into a file."""
    from rich.console import Console

    class _Console(Console):
        def on_broken_pipe(self) -> None:
            raise  # the error that it is called for: by itself rich ends the process with 1

    found = _Console(stderr=stderr, highlight=False)
    if not found.is_terminal:
        found.width = max(found.width, _NARROWEST)
    return found


def let_go(descriptor: int) -> None:
    """Whoever was at the other end of standard output (1) or error (2) has gone, or takes no more: what is
    still to be said goes nowhere, and nothing ends for it."""
    nowhere = os.open(os.devnull, os.O_WRONLY)
    os.dup2(nowhere, descriptor)
    os.close(nowhere)


@contextmanager
def whoever_looks() -> Iterator[None]:
    """A terminal, or a reader of standard error, that has gone is no reason to end a measurement."""
    try:
        yield
    except OSError:
        let_go(2)


@contextmanager
def heard() -> Iterator[None]:
    """Whoever reads standard output may have seen enough while the block prints: what is still to be said
    goes nowhere, and the command goes on, for the sake of its files and its exit code."""
    try:
        yield
    except BrokenPipeError:
        let_go(sys.stdout.fileno())


def print_json(value: Any) -> None:
    """The one JSON object of ``--json``; null for a number that is infinite or none."""
    print(json.dumps(as_json(value), indent=1, allow_nan=False))


def print_error(error: RtmeterError, *, as_json: bool) -> None:
    """The error, once: a line on standard error, and with ``--json`` the object on standard output."""
    print(harmless(f"rtmeter: {error}"), file=sys.stderr)
    if as_json:
        print_json({"error": error.to_json()})


def print_errors(errors: Sequence[RtmeterError], what: str) -> None:
    """The first of these errors, a line each on standard error, and how many more ``what`` there are."""
    for error in errors[:_FEW]:
        print(harmless(f"rtmeter: {error}"), file=sys.stderr)
    if len(errors) > _FEW:
        print(f"rtmeter: and {len(errors) - _FEW:,} more {what}; --json names all", file=sys.stderr)


def print_doubts(doubts: Iterable[Doubt], error: Failure) -> None:
    """The warnings of a cell that is not shown because it failed, a line each on standard error."""
    for doubt in besides(error, doubts):
        print(f"rtmeter: {doubt.type}: {doubt_words(doubt)}", file=sys.stderr)


def besides(error: Failure | None, doubts: Iterable[Doubt]) -> list[Doubt]:
    """The warnings that a cell's error does not say itself: with ``strict`` one of them is the error."""
    return [doubt for doubt in doubts if error is None or doubt.message != error.message]


def doubt_words(doubt: Doubt) -> str:
    """A warning and, in brackets, what helps."""
    return doubt.message + (f" ({doubt.hint})" if doubt.hint else "")


def microseconds(ns: float | str | None) -> str:
    """Nanoseconds as microseconds with one decimal; ``lost`` stays, None is a dash."""
    if ns is None:
        return "-"
    return ns if isinstance(ns, str) else f"{ns / 1000:,.1f}"
