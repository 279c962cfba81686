"""What of a cell's record stands in its row of an archive."""

from __future__ import annotations

import json
from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any

import pytest

from rtmeter.archive.cells import rows_of
from rtmeter.archive.labels import parse_labels
from rtmeter.errors import RtmeterError
from rtmeter.results.cells import StoredCell
from rtmeter.results.record.parts import RigOfCell

NOW = datetime(2026, 11, 22, tzinfo=UTC)


def row_of(cell: StoredCell, labels: Mapping[str, str], **changes: Any) -> dict[str, Any]:
    return rows_of(StoredCell(cell.folder, cell.record.changed(**changes)), labels, NOW).cell


@pytest.mark.parametrize(
    ("given", "labels", "rig"),
    [
        ({}, {"site": "a", "row": "1"}, "north-1"),
        ({"site": "b"}, {"site": "b", "row": "1"}, "north-1"),
        ({"rig": "spare"}, {"site": "a", "row": "1", "rig": "spare"}, "spare"),
    ],
)
def test_labels_that_are_given_go_before_those_of_the_rig(
    given: dict[str, str], labels: dict[str, str], rig: str, cell: StoredCell
) -> None:
    of = RigOfCell(name="north-1", labels={"site": "a", "row": "1"})
    row = row_of(cell, given, rig=of)
    assert (dict(row["labels"]), row["rig"]) == (labels, rig)


def test_what_differs_from_run_to_run_is_no_setting(cell: StoredCell) -> None:
    settings = json.loads(row_of(cell, {}, config=cell.record.config | {"seed": 7})["settings"])
    assert settings["period_ns"] == cell.record.period_ns
    assert not {"seed", "samples", "warm_up", "measurement", "mode"} & settings.keys()


def test_a_cell_is_the_same_in_whatever_order_its_config_is_written(cell: StoredCell) -> None:
    turned = dict(reversed(cell.record.config.items()))
    assert list(turned) != list(cell.record.config)
    assert row_of(cell, {}, config=turned)["cell"] == row_of(cell, {})["cell"]
    assert row_of(cell, {}, config=turned | {"seed": 7})["cell"] != row_of(cell, {})["cell"]


@pytest.mark.parametrize(
    ("theirs", "told"),
    [
        (None, [None, None]),
        (("Fast DDS", "2.9.1"), [None, None]),
        (("Fast DDS", "3.2.2"), ["Fast DDS", "3.2.2"]),
    ],
)
def test_what_answered_is_told_if_it_is_another_than_what_asked(
    theirs: tuple[str, str] | None, told: list[str | None], cell: StoredCell
) -> None:
    names = ("middleware", "middleware_version")
    own = dict(zip(names, ("Fast DDS", "2.9.1"), strict=True))
    server = None if theirs is None else dict(zip(names, theirs, strict=True))
    row = row_of(cell, {}, adapter_facts=own, server_adapter_facts=server)
    assert [row.get(f"server_{name}") for name in names] == told


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("note", "is no label; write NAME=VALUE, the name of letters"),
        ("a b=c", "is no label; write NAME=VALUE, the name of letters"),
        ("note=", "has no value; write NAME=VALUE, the value of 1 to 200 characters"),
        ("note=" + "y" * 201, "has a value of 201 characters; write NAME=VALUE, the value of 1 to 200"),
    ],
)
def test_what_is_no_label_is_told(text: str, said: str) -> None:
    with pytest.raises(RtmeterError) as error:
        parse_labels([text])
    assert said in str(error.value) and len(str(error.value.value)) <= 200
    assert parse_labels(["note=" + "y" * 200]) == {"note": "y" * 200}
