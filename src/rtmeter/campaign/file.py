"""A campaign file (spec/campaign.md) → the cells of its matrix, in running order."""

from __future__ import annotations

import math
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Annotated, Any, get_args, get_origin

from rtmeter.campaign import matrix, ranges, yaml_lines
from rtmeter.campaign.factors import Chosen, factors
from rtmeter.campaign.filters import Predicate, compile_only, what_was_meant
from rtmeter.campaign.options import KNOWN, OPTIONS, CellOptions
from rtmeter.campaign.published_key import Published
from rtmeter.campaign.rules import settle
from rtmeter.campaign.wrong import unknown_key
from rtmeter.campaign.yaml_lines import Document, KeyPath
from rtmeter.errors import RtmeterError
from rtmeter.model import TARGET, Campaign, Cell, Rig
from rtmeter.values import slug

CAMPAIGN_KEYS = ("name", "description", "defaults", "repeat", "interleave", "published", "cells")
BLOCK_KEYS = ("name", "repeat", "only", "variants")
_OPTIONS = (*OPTIONS, "requirement")
_MOST_CELLS = 100_000
_LONGEST_NAME = 247
"""Of a cell's or a campaign's folder: with ``.partial`` as many bytes as a file system takes."""

_ONLY = "--only"
"""What chooses among the cells of the whole file, which has no such key."""


def read_campaign(
    path: Path,
    *,
    scale: float = 1.0,
    only: str | None = None,
    host: str | None = None,
    rigs: tuple[Rig, ...] = (),
) -> Campaign:
    """All cells of the file, or those that ``only`` chooses.

    ``scale`` multiplies the measured releases of every cell; ``host``: that of the servers of all round
    trips, whatever the file names; ``rigs``: the machines that each cell is measured on. Raises RtmeterError
    naming file, line, field, value and remedy.
    """
    if not (math.isfinite(scale) and scale > 0):
        raise RtmeterError("is not above zero", field="--scale", value=scale, remedy="give e.g. 0.01")
    reader = _Reader(yaml_lines.read(path), scale, host, rigs)
    planned = reader.cells()
    if only is not None:
        chosen = compile_only(only, matrix.parse_fact, field=_ONLY)
        every, planned = planned, [p for p in planned if chosen(p.facts)]
        if not planned:
            meant = what_was_meant(only, matrix.parse_fact, [p.facts for p in every])
            remedy = meant or f"no cell has all of that: see `rtmeter run {path} --dry-run`"
            raise RtmeterError("chooses no cell", field=_ONLY, value=only, remedy=remedy)
    cells = tuple(p.cell for p in planned)
    return Campaign(reader.name, cells, reader.description, reader.doc.text, host, rigs)


def resolve_script(given: dict[str, Any], folder: Path) -> dict[str, Any]:
    """The options with the absolute paths of script and graph, relative ones being taken from ``folder``.

    Raises RtmeterError if there is no such file.
    """
    for name in ("script", "graph"):
        if not isinstance(given.get(name), str):
            continue
        try:
            path = (folder / given[name]).resolve()
            there = path.is_file()
        except (OSError, ValueError):  # too long, or with a character that no name has
            remedy = "name a file, from the folder of the campaign"
            raise RtmeterError("is no path", field=name, value=given[name], remedy=remedy) from None
        if not there:
            raise RtmeterError("is no file", field=name, value=given[name], remedy=f"put it at {path}")
        given = given | {name: str(path)}
    return given


@dataclass(frozen=True, slots=True)
class _Planned:
    cell: Cell
    facts: dict[str, Any]
    given: dict[str, Any]
    repeat: int


def _with_factors(planned: list[_Planned]) -> list[_Planned]:
    """The cells, each with its level of every factor of the campaign."""
    found = factors([Chosen(one.cell, one.given, one.facts) for one in planned])
    return [replace(p, cell=replace(p.cell, factors=own)) for p, own in zip(planned, found, strict=True)]


def _truth_for_a_number(key: str, value: Any) -> bool | None:
    """What YAML reads ``yes``, ``on`` or ``true`` as, where a number is asked for: it would be 1."""
    if key not in KNOWN or not _is_number(KNOWN[key].annotation):
        return None
    return next(
        (one for one in (value if isinstance(value, list) else [value]) if isinstance(one, bool)), None
    )


def _is_number(annotation: Any) -> bool:
    kinds = {annotation, *get_args(annotation)}
    kinds |= {get_args(kind)[0] for kind in kinds if get_origin(kind) is Annotated}
    return bool(kinds & {int, float}) and bool not in kinds


def _of_rig(error: RtmeterError, rig: Rig) -> str | None:
    """The option at fault, or the mapping of such, if the rig sets it."""
    wrong = (error.field or "", f"{error.field}.{error.value}")  # a key that is not known is the value
    return next((error.field for name in wrong if name in rig.set), None)


class _Reader:
    """Checks the file's shape top-down and knows the line of everything it refuses."""

    def __init__(self, doc: Document, scale: float, host: str | None, rigs: tuple[Rig, ...]) -> None:
        self.doc, self._scale, self._rigs = doc, scale, rigs
        top = self._mapping((), doc.data, CAMPAIGN_KEYS)
        self.name = self._name(("name",), top.get("name", doc.path.stem))
        self.description = str(top.get("description") or "").strip()
        self._interleave = top.get("interleave", True)
        if not isinstance(self._interleave, bool):
            raise self._error(("interleave",), self._interleave, "is neither true nor false", "give one")
        self._repeat = self._count(("repeat",), top.get("repeat", 1))
        self._published = None
        if top.get("published") is not None:
            published = self._mapping(("published",), top["published"], None)
            with self._placing():
                self._published = Published.from_given(published)
        self._defaults = self._given(("defaults",), top.get("defaults") or {})
        self._said = {} if host is None else {"hosts.component": host}  # on the command line
        blocks = top.get("cells")
        if not isinstance(blocks, list) or not blocks:
            raise self._error(("cells",), blocks, "is no list of blocks", "see spec/campaign.md")
        self._blocks = blocks

    def cells(self) -> list[_Planned]:
        """The cells in running order."""
        planned: list[_Planned] = []
        origin: dict[str, int] = {}
        for index in range(len(self._blocks)):
            count, own = len(planned), set[str]()
            for cell in self._block(index):
                if (first := origin.setdefault(cell.cell.id, index)) != index or cell.cell.id in own:
                    several = "its variants or values" if first == index else "the blocks"
                    remedy = f"name {several} apart by letters, digits, . or _: all else is - in an id"
                    message = f"is also the id of a cell of {self.doc.where('cells', first)}"
                    raise self._error(("cells", index), cell.cell.id, message, remedy)
                own.add(cell.cell.id)
                planned.append(cell)
                if len(planned) > _MOST_CELLS:
                    raise self._error(("cells", index), None, "makes too many cells", "split the campaign")
            if len(planned) == count:
                raise self._error(("cells", index, "only"), self._blocks[index].get("only"), "leaves no cell",
                                  "correct it, or remove the block")  # fmt: skip
        planned = _with_factors(planned)
        if self._interleave:
            planned.sort(key=lambda p: p.repeat)  # stable: every cell once, then every cell again
        return planned

    def _block(self, index: int) -> Iterator[_Planned]:
        at: KeyPath = ("cells", index)
        block = self._mapping(at, self._blocks[index], (*BLOCK_KEYS, *_OPTIONS))
        name = self._name((*at, "name"), block["name"]) if "name" in block else None
        repeats = self._count((*at, "repeat"), block.get("repeat", self._repeat))
        only = self._only((*at, "only"), block.get("only"))
        for variant, choice, rig in self._choices(at, block):
            options = self._options(at, variant, choice, rig)
            label = {} if variant is None else {"variant": variant}
            of_rig = {} if rig is None else {"rig": rig.name}
            for repeat in range(1, repeats + 1):
                axes = label | choice.axes | of_rig | ({"repeat": repeat} if repeats > 1 else {})
                cell = matrix.cell_from(options, matrix.cell_id(options, name, axes), axes)
                if len(cell.id) > _LONGEST_NAME:
                    place = at if name is None else (*at, "name")
                    raise self._error(place, cell.id, "is an id too long for a folder's name",
                                      "give the block a shorter name, or split it")  # fmt: skip
                facts = matrix.facts(
                    options, id=cell.id, block=name, variant=variant, repeat=repeat, rig=rig and rig.name
                )
                if rig is not None:
                    cell = replace(cell, hosts=cell.hosts | {TARGET: rig.address}, rig=rig)
                if only(facts):
                    yield _Planned(self._beside(cell, facts), facts, choice.given, repeat)

    def _beside(self, cell: Cell, facts: dict[str, Any]) -> Cell:
        """The cell, with the published values that it is to be set beside."""
        if self._published is None:
            return cell
        with self._placing():
            return replace(cell, published=self._published.for_cell(facts, matrix.parse_fact))

    def _choices(
        self, at: KeyPath, block: dict[str, Any]
    ) -> Iterator[tuple[str | None, matrix.Choice, Rig | None]]:
        for variant, given in self._variants(at, block):
            for rig in self._rigs or (None,):
                changes = self._said if rig is None else self._said | rig.set
                ours = {k: v for k, v in matrix.overriding(given, changes).items() if k not in changes}
                defaults = matrix.overriding(self._defaults, changes)
                yield from ((variant, choice, rig) for choice in matrix.choices(ours, defaults))

    def _variants(self, at: KeyPath, block: dict[str, Any]) -> Iterator[tuple[str | None, dict[str, Any]]]:
        """What the block gives, or each of its variants."""
        given = self._given(at, {k: v for k, v in block.items() if k not in BLOCK_KEYS})
        if not block.get("variants"):
            yield None, given
            return
        for variant, changes in self._mapping((*at, "variants"), block["variants"], None).items():
            place: KeyPath = (*at, "variants", variant)
            self._name(place, variant)
            yield variant, matrix.overriding(given, self._given(place, changes or {}))

    def _given(self, at: KeyPath, mapping: Any) -> dict[str, Any]:
        """Options and lists of them, checked as far as can be told before the combinations are made."""
        self._mapping(at, mapping, _OPTIONS)
        if mapping.get("requirement") is not None:
            self._requirement((*at, "requirement"), mapping)
        if mapping.get("options"):
            self._mapping((*at, "options"), mapping["options"], None)
        for key, value in matrix.flat(mapping).items():
            if value == []:
                raise self._of_option(key, at, value, "is an empty list", "give it a value")
            if (truth := _truth_for_a_number(key, value)) is not None:
                raise self._of_option(key, at, truth, "is yes or no, not a number", "give a number")
            if isinstance(value, list) and (twice := matrix.alike(key, value)):
                first, again = twice
                message = f"is the same as {first!r} before it"
                raise self._of_option(key, at, again, message, "give each value once")
            if key in ("adapter", "server_adapter") and None in (
                value if isinstance(value, list) else [value]
            ):
                remedy = 'put the null adapter in quotes: "null"'
                raise self._of_option(key, at, None, "is YAML's null, which is no name", remedy)
        return {key: self._ranged(key, value, at) for key, value in matrix.flat(mapping).items()}

    def _ranged(self, key: str, value: Any, at: KeyPath) -> Any:
        """``1..16`` as the list that it stands for."""
        if key not in ranges.SWEPT or not ranges.is_range(value):
            return value
        try:
            return [ranges.option_of(key, one)[1] for one in ranges.values_of(key, value)]
        except RtmeterError as error:
            raise self._of_option(key, at, value, error.message, error.remedy or "") from None

    def _requirement(self, at: KeyPath, mapping: Any) -> None:
        required = self._mapping(at, mapping["requirement"], matrix.REQUIREMENT)
        for key in required:
            if key in mapping:
                remedy = f"leave out the {key} beside it: requirement only groups these keys"
                raise self._error((*at, key), required[key], "is given twice", remedy)

    def _options(
        self, at: KeyPath, variant: str | None, choice: matrix.Choice, rig: Rig | None
    ) -> CellOptions:
        try:
            given = resolve_script(choice.options(), self.doc.path.parent)
            if rig is not None:
                if (on := given.get("on")) is not None:
                    raise RtmeterError("contradicts --rigs", field="on", value=on, remedy="leave it out")
                return settle(
                    given | {"on": rig.address}, self._scale
                )  # what a target cannot have is refused
            return settle(given, self._scale)
        except RtmeterError as error:
            if rig is not None and (theirs := _of_rig(error, rig)):
                error.field = f"rigs.{rig.name}.set.{theirs}"
                raise
            if error.field in self._said:
                error.field = "--host component"
                raise
            around: tuple[KeyPath, ...] = ((*at, "variants", str(variant)), at, ("defaults",))
            error.where = self.doc.where(*self._place(error.field or "", *around) or at)
            raise

    def _place(self, option: str, *mappings: KeyPath) -> KeyPath:
        """The first place where one of the mappings gives the option; empty if none does."""
        keys = tuple(option.split("."))
        places = ((*at, *group, *keys) for at in mappings for group in ((), ("requirement",)))
        return next((place for place in places if place in self.doc.lines), ())

    def _mapping(self, at: KeyPath, value: Any, known: tuple[str, ...] | None) -> dict[str, Any]:
        if not isinstance(value, dict):
            raise self._error(at, value, "is no mapping of keys to values", "see spec/campaign.md")
        for key in value:
            if known is not None and key not in known:
                error = unknown_key(".".join(map(str, at)) or "campaign", key, known)
                error.where = self.doc.where(*at, key)
                raise error
        return value

    @contextmanager
    def _placing(self) -> Iterator[None]:
        """Adds the line to an error whose field is a path of keys."""
        try:
            yield
        except RtmeterError as error:
            keys = (int(key) if key.isdecimal() else key for key in (error.field or "").split("."))
            error.where = self.doc.where(*keys)
            raise

    def _name(self, at: KeyPath, value: Any) -> str:
        if isinstance(value, bool) or not isinstance(value, str | int) or not slug(str(value)):
            raise self._error(at, value, "is no name", "write a word of letters, digits, - or _")
        if len(slug(str(value))) > _LONGEST_NAME:
            raise self._error(at, value, "is too long for a folder's name", "give a shorter one")
        return str(value)

    def _count(self, at: KeyPath, value: Any) -> int:
        if isinstance(value, bool) or not isinstance(value, int) or not 1 <= value <= 10_000:
            raise self._error(at, value, "is no number from 1 to 10000", "say how often each cell runs")
        return value

    def _only(self, at: KeyPath, text: Any) -> Predicate:
        if text is None:
            return lambda facts: True
        try:
            return compile_only(str(text), matrix.parse_fact)
        except RtmeterError as error:
            error.where = self.doc.where(*at)
            raise

    def _of_option(self, name: str, at: KeyPath, value: Any, message: str, remedy: str) -> RtmeterError:
        error = self._error(self._place(name, at), value, message, remedy)
        error.field = name  # as in every other error of an option's value
        return error

    def _error(self, at: KeyPath, value: Any, message: str, remedy: str) -> RtmeterError:
        field = ".".join(map(str, at)) or "campaign"
        return RtmeterError(message, field=field, value=value, remedy=remedy, where=self.doc.where(*at))
