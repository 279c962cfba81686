"""What the machine is made to endure while a cell is measured: made, watched, recorded, taken back."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, ExitStack, contextmanager
from pathlib import Path
from typing import Any, Protocol

from rtmeter.condition_options import SystemSettings
from rtmeter.conditions.settings import NOT_JOINED, Launcher, Settings, no_launcher
from rtmeter.conditions.strain import Strain, strain_of
from rtmeter.errors import RtmeterError
from rtmeter.model import Cell, Doubt
from rtmeter.root import Root

__all__ = ["NOT_JOINED", "Launcher", "Part", "Standing", "applied", "no_launcher"]


class Part(Protocol):
    """One kind of condition: entered before the probes start, left when they have ended.

    Entering raises RtmeterError for what cannot be had, with everything of its own taken back. What it
    says may be asked while it stands and after.
    """

    def __enter__(self) -> object: ...

    def __exit__(self, *_: object) -> None: ...

    def facts(self) -> dict[str, Any]:
        """Of ``effective`` and ``achieved``, each a mapping: JSON-ready."""

    def doubts(self) -> list[Doubt]:
        """What was not as it was asked to be."""

    def failure(self) -> RtmeterError | None:
        """What fails the cell, if anything does."""


class Standing:
    """The conditions that hold while a cell is measured."""

    def __init__(self, asked: dict[str, Any]) -> None:
        self._asked = asked
        self._parts: list[Part] = []
        self.launcher: Launcher = no_launcher
        self.check: Callable[[], None] = lambda: None
        """Raises RtmeterError, while the probes run, once it is known that the cell will fail."""

    def add(self, part: Part) -> None:
        """Counts a part in: it was entered."""
        self._parts.append(part)
        if isinstance(part, Settings):
            self.launcher = part.launcher
        if isinstance(part, Strain):
            self.check = part.check

    def facts(self) -> dict[str, Any]:
        """``asked``, ``effective`` and ``achieved``: the key ``conditions`` of cell.json."""
        facts: dict[str, Any] = {"asked": self._asked, "effective": {}, "achieved": {}}
        for part in self._parts:
            for word, said in part.facts().items():
                facts[word] |= said
        return facts

    def doubts(self) -> list[Doubt]:
        """What was not as it was asked to be, of all parts."""
        return [doubt for part in self._parts for doubt in part.doubts()]

    def failure(self) -> RtmeterError | None:
        """What fails the cell, if anything does."""
        return next((error for part in self._parts if (error := part.failure()) is not None), None)


def parts_of(cell: Cell, folder: Path, root: Root) -> Iterator[Part]:
    """The parts that the cell asks for, in the order they are entered: settings, traffic, load, watch."""
    if "settings" in cell.conditions:
        asked = SystemSettings.model_validate(cell.conditions["settings"])
        yield Settings(asked, root, strict=bool(cell.conditions.get("strict")))
    yield strain_of(cell, folder, root)


@contextmanager
def applied(cell: Cell, folder: Path, root: Root = Root()) -> Iterator[Standing]:  # noqa: B008
    """The cell's conditions, from before its probes start until they have ended.

    ``folder`` is the cell's, for what a part stores. Raises RtmeterError for what cannot be had.
    """
    standing = Standing(cell.conditions)
    with ExitStack() as stack:
        for part in parts_of(cell, folder, root):
            entered: AbstractContextManager[object] = part
            stack.enter_context(entered)
            standing.add(part)
        yield standing
