"""What is changed of a source file: mutmut's operators on all that is said and done, and three of our own.

Decorated methods are mutated too, which mutmut by itself leaves out. Annotations, decorators, imports and
sentences for people (strings with a space in them) are not: no test compares those word by word.
"""

from __future__ import annotations

import hashlib
import random
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

import libcst as cst
from libcst.metadata import MetadataWrapper, ParentNodeProvider, PositionProvider
from mutmut.mutation import mutators

_LEFT_ALONE = (cst.Annotation, cst.Decorator, cst.Import, cst.ImportFrom, cst.ConcatenatedString)
_FUNCTIONS = {"len", "isinstance", "Literal", "TypeVar", "NewType"}
_WIDTH = 60


@dataclass(frozen=True, slots=True)
class Mutant:
    """A file with one change: in which function, at which line, what was there and is now, and the whole
    ``source`` then. ``lines``: the first and the last of the statement, whose tests are run."""

    path: Path
    where: str
    line: int
    lines: tuple[int, int]
    was: str
    now: str
    source: str

    @property
    def name(self) -> str:
        """As a survivor is named."""
        return f"{self.path}:{self.line} {self.where}: {self.was} → {self.now}"

    @property
    def key(self) -> str:
        """The same as long as the file is."""
        return f"{self.path} {hashlib.sha256(self.source.encode()).hexdigest()}"


def one_side(node: cst.BooleanOperation) -> Iterator[cst.BaseExpression]:
    """``a and b`` → ``a``, and ``b``."""
    yield node.left
    yield node.right


def left_out(node: cst.Expr) -> Iterator[cst.BaseSmallStatement]:
    """A statement that is a call is left out."""
    if isinstance(node.value, cst.Call):
        yield cst.Pass()


def otherwise(node: cst.If) -> Iterator[cst.If]:
    """``if a`` → ``if not a``."""
    test = node.test.with_changes(lpar=[cst.LeftParen()], rpar=[cst.RightParen()])
    space = cst.SimpleWhitespace(" ")
    negated = cst.UnaryOperation(cst.Not(), test)
    yield node.with_changes(test=negated, whitespace_before_test=space)


OPERATORS = (
    *mutators.mutation_operators,
    (cst.BooleanOperation, one_side),
    (cst.Expr, left_out),
    (cst.If, otherwise),
)


class _Visitor(cst.CSTVisitor):
    METADATA_DEPENDENCIES = (PositionProvider, ParentNodeProvider)

    def __init__(self) -> None:
        super().__init__()
        self.found: list[tuple[cst.CSTNode, cst.CSTNode, str, int, tuple[int, int]]] = []
        self._names: list[str] = []

    def on_visit(self, node: cst.CSTNode) -> bool:
        if isinstance(node, _LEFT_ALONE) or _called(node) in _FUNCTIONS or _names_a_type(node):
            return False
        if isinstance(node, cst.ClassDef | cst.FunctionDef):
            self._names.append(node.name.value)
        for kind, operator in OPERATORS:
            if isinstance(node, kind):
                for mutated in _tried(operator(node), node):
                    at = self.get_metadata(PositionProvider, node, None)
                    if at is not None:
                        where = ".".join(self._names) or "(module)"
                        self.found.append((node, mutated, where, at.start.line, self._statement(node)))
        return True

    def on_leave(self, node: cst.CSTNode) -> None:
        if isinstance(node, cst.ClassDef | cst.FunctionDef):
            self._names.pop()

    def _statement(self, node: cst.CSTNode) -> tuple[int, int]:
        while not isinstance(node, cst.SimpleStatementLine | cst.BaseCompoundStatement | cst.Module):
            node = self.get_metadata(ParentNodeProvider, node)
        at = self.get_metadata(PositionProvider, node)
        if isinstance(node, cst.BaseCompoundStatement):  # its head
            first = node.cases[0] if isinstance(node, cst.Match) else node.body
            body = self.get_metadata(PositionProvider, first)
            return at.start.line, max(at.start.line, body.start.line)
        return at.start.line, at.end.line


def _called(node: cst.CSTNode) -> str | None:
    named = (
        node.func if isinstance(node, cst.Call) else node.value if isinstance(node, cst.Subscript) else None
    )
    return named.value if isinstance(named, cst.Name) else None


def _names_a_type(node: cst.CSTNode) -> bool:
    """``Outcome = Literal[…]``, ``Unordered = Histogram | Intervals``: read by no one who runs."""
    return isinstance(node, cst.Assign) and (
        isinstance(node.value, cst.Subscript)
        or (isinstance(node.value, cst.BinaryOperation) and isinstance(node.value.operator, cst.BitOr))
    )


def _tried(mutated: Iterable[cst.CSTNode], node: cst.CSTNode) -> Iterator[cst.CSTNode]:
    """Of a string only its first change; of a sentence none."""
    if isinstance(node, cst.SimpleString):
        if " " not in node.value:
            yield from list(mutated)[:1]
    else:
        yield from mutated


def mutants_of(path: Path, share: float, at_least: int, seed: int) -> tuple[list[Mutant], int]:
    """So large a share of the file's mutants, and so many at least, drawn with the seed and the file's name,
    in their order; and how many there are."""
    wrapper = MetadataWrapper(cst.parse_module(path.read_text()), unsafe_skip_copy=True)
    visitor = _Visitor()
    wrapper.visit(visitor)
    total = len(visitor.found)
    drawn = random.Random(f"{seed} {path}").sample(
        range(total), min(total, max(at_least, round(share * total + 0.499)))
    )
    found = []
    for number in sorted(drawn):
        node, mutated, where, line, lines = visitor.found[number]
        source = wrapper.module.deep_replace(node, mutated).code
        found.append(Mutant(path, where, line, lines, _code(node), _code(mutated), source))
    return found, total


def _code(node: cst.CSTNode) -> str:
    text = " ".join(cst.Module([]).code_for_node(node).split())
    return text if len(text) <= _WIDTH else f"{text[: _WIDTH - 1]}…"
