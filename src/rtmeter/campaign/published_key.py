"""The key ``published`` of a campaign, checked, and what of it goes with each cell."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Annotated, Any, Self

from pydantic import (
    AfterValidator,
    BaseModel,
    BeforeValidator,
    Field,
    ValidationError,
    WithJsonSchema,
)
from pydantic.fields import FieldInfo

from rtmeter.campaign.filters import CellFacts, ParseValue, compile_only
from rtmeter.campaign.option_types import STRICT
from rtmeter.campaign.published import PublishedTable, names, table
from rtmeter.campaign.wrong import as_rtmeter_error, unknown_key
from rtmeter.errors import RtmeterError
from rtmeter.statistics.quantities import KNOWN_QUANTITIES

STATISTICS = ("n", "min", "mean", "stddev", "p50", "p99", "p99.9", "p99.999", "max")
"""What of a quantity may stand beside a published column."""

CONDITIONS = (
    "hardware",
    "middleware",
    "preempt_rt",
    "second_host",
    "network",
    "load",
    "server_load",
    "traffic",
    "scheduling",
    "memory",
    "prefault",
    "allocator",
    "one_cpu",
    "isolated_cpu",
    "middleware_threads",
    "irq_priority",
    "ksoftirqd_priority",
    "drive",
    "components",
    "releases",
    "rt_throttling",
)
"""The conditions of a source that a result can tell of (rtmeter.judge.published)."""

GROWTH = "growth"
"""Instead of a quantity and its statistic: what the verdict found of a delay that grows."""

_COUNT = "count"
_REMEDY = "write a quantity and its statistic (measured max), count and the sum (count missed), or growth"


def _text(value: object) -> object:
    """What YAML made of a value as the CSV has it."""
    if isinstance(value, bool):
        return "yes" if value else "no"
    return str(value) if isinstance(value, int | float) else value


def _known_quantity(name: str) -> str:
    if name not in KNOWN_QUANTITIES:
        raise ValueError("is no quantity", f"choose one of {', '.join(KNOWN_QUANTITIES)}")
    return name


def _measured(text: str) -> str:
    """``measured_after max``, ``count replied_in_time + missed + lost``, ``growth``."""
    word, _, rest = text.partition(" ")
    if text == GROWTH or (word == _COUNT and re.fullmatch(r"\w+( \+ \w+)*", rest)):
        return text
    if rest not in STATISTICS:
        raise ValueError("is nothing that a cell has", _REMEDY)
    _known_quantity(word)
    return text


Text = Annotated[str, BeforeValidator(_text), WithJsonSchema({"type": ["string", "number", "boolean"]})]
QuantityName = Annotated[str, AfterValidator(_known_quantity)]
Measured = Annotated[str, AfterValidator(_measured)]


class _Part(BaseModel):
    model_config = STRICT


class Condition(_Part):
    """A condition of the source: whether it held here is told by ``condition``, a check by its name."""

    condition: Annotated[str, Field(description="What is looked at in the result (spec/campaign.md).")]
    was: Annotated[Text, Field(description="How it was at the source, in words.")]
    where: Annotated[
        dict[str, Text], Field(description="Column → value of the rows that it is of (default: all).")
    ] = {}
    matches: Annotated[
        str | None, Field(description="What the name here must contain to be the source's.")
    ] = None
    least: Annotated[float | None, Field(description="The least number that is as good as the source's.")] = (
        None
    )


class Kernel(_Part):
    """The column that tells the kernel, which is no part of the campaign, but of the result."""

    column: str
    preempt_rt: Annotated[Text, Field(description="Its value where the kernel is PREEMPT_RT.")]
    ordinary: Annotated[Text, Field(description="Its value elsewhere.")]


class Compare(_Part):
    """Which rows stand beside which cells, and which columns beside what of a cell."""

    cells: Annotated[str | None, Field(description="Expression: the cells that this is for.")] = None
    rows: Annotated[
        dict[str, Text | dict[str, str]],
        Field(description="Column → its value, or each value → expression that holds for its cells."),
    ]
    kernel: Kernel | None = None
    tables: Annotated[
        list[str], Field(description="Columns whose values make tables of their own, as in the source.")
    ] = []
    values: Annotated[
        dict[str, Measured], Field(description="Column → quantity and statistic of a cell.", min_length=1)
    ]
    also: Annotated[
        list[QuantityName], Field(description="Further quantities, with the same statistics.")
    ] = []
    not_comparable: Annotated[
        dict[str, str], Field(description="Column → why its published values say nothing here.")
    ] = {}
    note: Annotated[str | None, Field(description="What a reader of these rows has to know.")] = None


class Published(_Part):
    """The key ``published``."""

    table: Annotated[str, Field(description="The published table.", examples=names())]
    conditions: Annotated[list[Condition], Field(description="Under which the source measured.")] = []
    notes: Annotated[list[str], Field(description="What the source concluded, in words.")] = []
    compare: Annotated[list[Compare], Field(min_length=1)]

    @classmethod
    def from_given(cls, given: object) -> Self:
        """The key, checked against the table. Raises RtmeterError whose field is its path of keys."""
        try:
            asked = cls.model_validate(given)
        except ValidationError as error:
            raise _named(as_rtmeter_error(error, _keys_around(error))) from None
        asked._check(table(asked.table))
        return asked

    def for_cell(self, facts: CellFacts, parse_value: ParseValue) -> list[dict[str, Any]]:
        """What cell.json keeps for a cell with those facts, one for each comparison that it is in.

        Raises RtmeterError for an expression that cannot be read.
        """
        found = []
        shared = self.model_dump(mode="json", include={"table", "conditions", "notes"}, exclude_none=True)
        for index, one in enumerate(self.compare):

            def holds(text: str | None, *keys: str, at: int = index) -> bool:
                field = ".".join(("published.compare", str(at), *keys))
                try:
                    return text is None or compile_only(text, parse_value, field=field)(facts)
                except RtmeterError as error:
                    error.field = field
                    raise

            where = _where(one, holds)
            if where is not None and holds(one.cells, "cells"):
                compared = one.model_dump(mode="json", exclude={"cells", "rows"}, exclude_none=True)
                found.append(shared | {"where": where} | compared)
        return found

    def _check(self, published: PublishedTable) -> None:
        """Every column that is named is one of the table's, every value one of the column's."""
        for number, condition in enumerate(self.conditions):
            at = f"published.conditions.{number}"
            if condition.condition not in CONDITIONS:
                raise unknown_key(f"{at}.condition", condition.condition, CONDITIONS)
            for column, value in condition.where.items():
                _check_value(published, f"{at}.where", column, value)
        for number, one in enumerate(self.compare):
            at = f"published.compare.{number}"
            for column in (*one.tables, *one.values, *one.not_comparable):
                _check_column(published, at, column)
            for column, values in one.rows.items():
                for value in [values] if isinstance(values, str) else values:
                    _check_value(published, f"{at}.rows", column, value)
            if one.kernel is not None:
                for value in (one.kernel.preempt_rt, one.kernel.ordinary):
                    _check_value(published, f"{at}.kernel", one.kernel.column, value)


def _where(one: Compare, holds: Callable[..., bool]) -> dict[str, list[str]] | None:
    """Column → the values that the cell's rows have; None if it has none in some column."""
    where: dict[str, list[str]] = {}
    for column, values in one.rows.items():
        if isinstance(values, str):
            where[column] = [values]
        else:
            where[column] = [v for v, text in values.items() if holds(text, "rows", column, v)]
        if not where[column]:
            return None
    return where


def _check_column(published: PublishedTable, at: str, column: str) -> None:
    if column not in published.columns:
        raise unknown_key(at, column, published.columns)


def _check_value(published: PublishedTable, at: str, column: str, value: str) -> None:
    _check_column(published, at, column)
    known = list(dict.fromkeys(row[column] for row in published.rows))
    if value not in known:
        remedy = f"choose one of {', '.join(known)}"
        message = f"is no value of this column of {published.name}"
        raise RtmeterError(message, field=f"{at}.{column}", value=value, remedy=remedy)


def _keys_around(error: ValidationError) -> dict[str, FieldInfo]:
    """The keys that are known where pydantic found one wrong, each by its path."""
    path = [str(part) for part in error.errors()[0]["loc"]]
    models: dict[str, type[BaseModel]] = {"conditions": Condition, "compare": Compare}
    model = Kernel if "kernel" in path[:-1] else models.get(path[0], Published)
    around = path[:-1] if model is not Published else []
    return {".".join([*around, name]): info for name, info in model.model_fields.items()}


def _named(error: RtmeterError) -> RtmeterError:
    """With the key itself in front of the path of keys."""
    parts = (error.field or "").split(".")
    error.field = ".".join(["published", *(part for part in parts if part and not part.endswith("]"))])
    return error
