"""The key ``published`` of a cell.json."""

from __future__ import annotations

from typing import Annotated, NotRequired

from pydantic import AfterValidator, WithJsonSchema
from typing_extensions import TypedDict

from rtmeter.campaign.published_key import CONDITIONS


def _known(condition: str) -> str:
    if condition not in CONDITIONS:
        raise ValueError(f"is no condition that a result can tell of: {condition}")
    return condition


class SourceCondition(TypedDict):
    """A condition of a published table's source (spec/campaign.md)."""

    condition: Annotated[str, AfterValidator(_known), WithJsonSchema({"enum": list(CONDITIONS)})]
    was: str
    where: dict[str, str]
    matches: NotRequired[str]
    least: NotRequired[int | float]


class KernelColumn(TypedDict):
    """The column of a published table that tells the kernel, and its values."""

    column: str
    preempt_rt: str
    ordinary: str


class PublishedRows(TypedDict):
    """Published values that the cell is to be set beside (spec/campaign.md)."""

    table: str
    where: dict[str, list[str]]
    kernel: NotRequired[KernelColumn]
    tables: list[str]
    values: dict[str, str]
    also: list[str]
    not_comparable: dict[str, str]
    note: NotRequired[str]
    conditions: list[SourceCondition]
    notes: list[str]
