"""Expressions that choose cells: ``adapter==posix and scheduling==fifo:80``.

Grammar: ``not``, ``and``, ``or``, parentheses, and comparisons ``NAME OP VALUE`` with OP one of
``== != < <= > >=``, or ``NAME in (VALUE, VALUE)``. A value is a word or in quotes. Nothing is executed.
"""

from __future__ import annotations

import operator
import re
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Any, NoReturn

from rtmeter.errors import RtmeterError, did_you_mean
from rtmeter.values import format_cpus, format_duration

CellFacts = Mapping[str, Any]
"""What is known of a cell, by name; a name that does not apply to it has the value None."""

ParseValue = Callable[[str, str], Any]
"""(name, text) → the value to compare with, of the same kind as the fact of that name."""

Predicate = Callable[[CellFacts], bool]

_TOKEN = re.compile(
    r"""\s*(?:(?P<op>==|!=|<=|>=|[<>(),])|"(?P<dq>[^"]*)"|'(?P<sq>[^']*)'|(?P<word>[^\s()=!<>,"']+))"""
)
_COMPARE: dict[str, Callable[[Any, Any], bool]] = {
    "==": operator.eq,
    "!=": operator.ne,
    "<": operator.lt,
    "<=": operator.le,
    ">": operator.gt,
    ">=": operator.ge,
}
_REMEDY = "write e.g. 'adapter==posix and scheduling in (other, fifo:80)'"
_DEEPEST = 50
_MOST_NAMED = 8


@dataclass(frozen=True, slots=True)
class _Token:
    kind: str  # op, word, quoted, end
    text: str


def compile_only(text: str, parse_value: ParseValue, *, field: str = "only") -> Predicate:
    """The expression as a function of a cell's facts.

    ``parse_value`` raises RtmeterError for a name that it does not know or a value that is none.
    """
    parser = _Parser(text, parse_value, field)
    predicate = parser.alternatives(0)
    if parser.next.kind != "end":
        parser.refuse(f"has {parser.next.text!r} where nothing more was expected")
    return predicate


def what_was_meant(text: str, parse_value: ParseValue, cells: Sequence[CellFacts]) -> str | None:
    """Why an expression that can be read chooses none of the cells, and what is near: a name that none of
    them has, or a value. None if each of its values is there, and only they together are not."""
    parser = _Parser(text, parse_value, "only")
    parser.alternatives(0)
    for name, written, value in parser.asked:
        there = [facts[name] for facts in cells if facts.get(name) is not None]
        if not there:
            names = sorted({key for facts in cells for key in facts if facts[key] is not None})
            return f"no cell has {name}" + _near(name, names, "")
        if value not in there:
            values = dict.fromkeys(_written(name, one, parse_value) for one in there)
            return f"no cell has {name} {written}" + _near(written, [*values], f"; {name} is ")
    return None


def _near(text: str, known: Sequence[str], otherwise: str) -> str:
    if meant := did_you_mean(text, known, most=3):
        return f"; {meant}"
    return otherwise and otherwise + " or ".join(known[:_MOST_NAMED]) + (" …" if known[_MOST_NAMED:] else "")


def _written(name: str, value: Any, parse_value: ParseValue) -> str:
    """A fact as the expression would have it: with its unit, if it takes one."""
    if isinstance(value, int) and not isinstance(value, bool):
        with suppress(RtmeterError):
            if parse_value(name, format_duration(value)) == value:
                return format_duration(value)
    return format_cpus(value) if isinstance(value, tuple) else str(value)


class _Parser:
    def __init__(self, text: str, parse_value: ParseValue, field: str) -> None:
        self._text, self._parse_value, self._field = text, parse_value, field
        self._tokens = list(self._split())
        self._at = 0
        self.asked: list[tuple[str, str, Any]] = []  # name, text and value of each == and in

    def _split(self) -> list[_Token]:
        tokens, at = [], 0
        text = self._text.rstrip()
        while at < len(text):
            match = _TOKEN.match(text, at)
            if match is None:
                self.refuse(f"cannot be read from {text[at:]!r} on")
            kind = match.lastgroup or ""
            tokens.append(_Token("quoted" if kind in ("dq", "sq") else kind, match[kind]))
            at = match.end()
        return [*tokens, _Token("end", "the end")]

    @property
    def next(self) -> _Token:
        return self._tokens[self._at]

    def refuse(self, message: str) -> NoReturn:
        raise RtmeterError(message, field=self._field, value=self._text, remedy=_REMEDY)

    def _take(self) -> _Token:
        token = self.next
        self._at += token.kind != "end"
        return token

    def _accept(self, kind: str, text: str) -> bool:
        found = self.next == _Token(kind, text)
        self._at += found
        return found

    def _expect(self, text: str) -> None:
        if not self._accept("op", text):
            self.refuse(f"has {self.next.text!r} where {text!r} was expected")

    def alternatives(self, depth: int) -> Predicate:
        parts = [self._conjunction(depth)]
        while self._accept("word", "or"):
            parts.append(self._conjunction(depth))
        return parts[0] if len(parts) == 1 else lambda facts: any(part(facts) for part in parts)

    def _conjunction(self, depth: int) -> Predicate:
        parts = [self._negation(depth)]
        while self._accept("word", "and"):
            parts.append(self._negation(depth))
        return parts[0] if len(parts) == 1 else lambda facts: all(part(facts) for part in parts)

    def _negation(self, depth: int) -> Predicate:
        if depth > _DEEPEST:
            self.refuse("is nested too deeply")
        if self._accept("word", "not"):
            inner = self._negation(depth + 1)
            return lambda facts: not inner(facts)
        if self._accept("op", "("):
            inner = self.alternatives(depth + 1)
            self._expect(")")
            return inner
        return self._comparison()

    def _comparison(self) -> Predicate:
        name = self._take()
        if name.kind != "word":
            self.refuse(f"has {name.text!r} where a name was expected")
        if self._accept("word", "in"):
            self._expect("(")
            wanted = [self._asked_value(name.text)]
            while self._accept("op", ","):
                wanted.append(self._asked_value(name.text))
            self._expect(")")
            return lambda facts: facts.get(name.text) in wanted
        token = self._take()
        compare = _COMPARE.get(token.text) if token.kind == "op" else None
        if compare is None:
            self.refuse(f"has {token.text!r} where a comparison was expected")
        value = self._asked_value(name.text) if token.text == "==" else self._value(name.text)
        if token.text in ("==", "!="):
            return lambda facts: compare(facts.get(name.text), value)
        if isinstance(value, bool) or not isinstance(value, int | float):
            self.refuse(f"compares {name.text} by size, which has none")
        return lambda facts: facts.get(name.text) is not None and compare(facts[name.text], value)

    def _asked_value(self, name: str) -> Any:
        written, value = self.next.text, self._value(name)
        self.asked.append((name, written, value))
        return value

    def _value(self, name: str) -> Any:
        token = self._take()
        if token.kind not in ("word", "quoted"):
            self.refuse(f"has {token.text!r} where a value for {name} was expected")
        try:
            return self._parse_value(name, token.text)
        except RtmeterError as error:
            value_is_wrong = error.field == name  # else the name is
            error.field = f"{self._field} {name}" if value_is_wrong else self._field
            raise
