"""Where two things of a cell's record could be meant: which of them stands in its row of an archive."""

from __future__ import annotations

import json
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from archives import stamp

from rtmeter.archive.cells import AHEAD, BLOCK_NS, EARLIEST, CellRows, _maxima, rows_of
from rtmeter.archive.schema import FINDINGS
from rtmeter.results import store
from rtmeter.results.cells import StoredCell
from rtmeter.results.data import samples_of
from rtmeter.statistics.judged import judged_run

NOW = datetime(2026, 11, 22, tzinfo=UTC)


def all_of(cell: StoredCell, **changes: Any) -> CellRows:
    return rows_of(StoredCell(cell.folder, cell.record.changed(**changes)), {}, NOW)


def test_a_setting_is_what_was_in_effect_and_none_where_that_is_not_told(cell: StoredCell) -> None:
    config = cell.record.config | {"receive": "block", "domain": 7}
    effective = {"receive": "spin", "domain": None, "quality": "reliable"}
    conditions = {
        "asked": {"load": {"preset": "idle"}, "strict": False, "traffic": {}},
        "effective": {},
        "achieved": {},
    }
    row = all_of(cell, config=config, effective=effective, conditions=conditions).cell
    settings = json.loads(row["settings"])
    assert (settings["receive"], settings["domain"], settings["quality"]) == ("spin", 7, "reliable")
    assert settings["load"] == {"preset": "idle"} and not {"strict", "traffic"} & settings.keys()


@pytest.mark.parametrize("name", ["hostname", "machine_id", "boot_id"])
def test_what_another_machine_or_boot_measured_is_another_cell(cell: StoredCell, name: str) -> None:
    machine = dict(cell.record.machine)
    other = f"{int(machine[name], 16) + 1:032x}" if name == "machine_id" else f"{machine[name]}-other"
    assert all_of(cell, machine=machine | {name: other}).cell["cell"] != all_of(cell).cell["cell"]


@pytest.mark.parametrize(
    ("changed", "told"), [({}, None), ({"boot_id": "another"}, "5.10"), ({"hostname": "another"}, "5.10")]
)
def test_a_server_is_elsewhere_if_its_host_or_its_boot_is_another(
    cell: StoredCell, changed: dict[str, str], told: str | None
) -> None:
    server = dict(cell.record.machine) | {"kernel": "5.10"} | changed
    assert all_of(cell, server_machine=server).cell["server_kernel"] == told


@pytest.mark.parametrize(
    ("started", "clock"),
    [
        (EARLIEST - timedelta(seconds=1), "before 2020"),
        (EARLIEST, None),
        (NOW + AHEAD, None),
        (NOW + AHEAD + timedelta(seconds=1), "ahead"),
    ],
)
def test_a_clock_is_believed_from_2020_to_a_day_ahead(
    cell: StoredCell, started: datetime, clock: str | None
) -> None:
    row = all_of(cell, started=stamp(started), ended=stamp(started)).cell
    assert (row["started"], row["clock"]) == (started, clock)
    assert row["measured"] == (NOW if clock else started)


def test_a_finding_is_of_the_machine_or_of_the_servers(cell: StoredCell) -> None:
    facts = {"grade": "high", "value": "1", "why": "w", "source": "s", "fix": "", "at_worst": "high"}
    own, theirs = ([facts | {"id": name, "items": []}] for name in ("swap", "governor"))
    rows = all_of(cell, findings=own, server_findings=theirs).others[FINDINGS]
    found = [(row["source"], row["finding"]) for row in rows if row["source"] != "data"]
    assert found == [("machine", "swap"), ("server", "governor")]


def test_a_block_is_no_shorter_than_its_time(cell: StoredCell) -> None:
    """Of a period that does not go into it, too."""
    assert samples_of(cell.folder, cell.record) is not None
    values = judged_run(cell.record.meta, store.chunks(Path(cell.folder))).values
    assert values is not None
    period_ns = BLOCK_NS // 60 - 1
    config = cell.record.config | {"period_ns": period_ns}
    sizes = [row["n"] for row in _maxima(values, cell.record.changed(config=config))]
    assert sizes == [61, 61, 61, 17]
