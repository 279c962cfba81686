"""What the record of a cell says of the logs that a run left: damage, losses at either end, what is kept."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Literal

import numpy as np
import pytest
from log_frames import header
from sample_logs import headers, joined, json_frame, row_frame, wakeup_log

from rtmeter.campaign.matrix import cell_from
from rtmeter.campaign.rules import settle
from rtmeter.judge.conditions import in_one_line
from rtmeter.measure.source import Ran
from rtmeter.measure.source.record import Logs, record_cell, tidy
from rtmeter.model import ABSENT, LOST, SERVED, WARM_UP_FLAG, Outcome
from rtmeter.results import store
from rtmeter.results.record import CellRecord

MS = 1_000_000
NOW = datetime(2026, 1, 1, tzinfo=UTC)
CLIENT = ("release_ns", "sent_ns", "received_ns", "free_ns", "status")
SERVER = ("sequence", "server_received_ns", "server_sent_ns", "status")


def recorded(
    folder: Path,
    client: bytes,
    server: bytes | None = None,
    *,
    measurement: str = "wakeup",
    status: Literal["complete", "interrupted"] = "complete",
    conditions: dict[str, Any] | None = None,
    warm_up: str = "3ms",
) -> CellRecord:
    logs = Logs.of(folder)
    logs.client.write_bytes(client)
    if server is not None:
        logs.server.write_bytes(server)
    given = {"measurement": measurement, "adapter": "posix", "period": "1ms", "samples": 97}
    cell = cell_from(settle(given | {"warm_up": warm_up}), "cell", {})
    return record_cell(cell, Outcome(status), logs, folder, Ran(NOW, NOW, conditions))


def types(record: CellRecord) -> list[str]:
    return [doubt.type for doubt in record.warnings]


def log(role: str, names: tuple[str, ...], columns: tuple[Any, ...], end: dict[str, Any]) -> bytes:
    about: dict[str, Any] = {"measurement": "roundtrip", "role": role}
    about |= {"columns": [{"name": name, "unit": "ns"} for name in names]}
    about |= {"machine": {"boot_id": "here", "time_namespace": "1"}}
    rows = row_frame(0, np.stack(columns))
    last = json_frame(b"E", 100, {"outcome": "complete"} | end)
    return joined([*[json_frame(b"H", 0, header(**about))] * 2, rows, last])


def ends(lost: int = 0, **of_server: Any) -> tuple[bytes, bytes]:
    """The logs of 100 round trips, of which the last are lost; what the server's end says."""
    k = np.arange(100)
    sent, gone, one = 10**9 + k * MS, k >= 100 - lost, np.ones_like(k)
    received = np.where(gone, ABSENT, sent + 100_000)
    status = np.where(gone, LOST, SERVED) | np.where(k < 3, WARM_UP_FLAG, 0)
    client = (sent, sent, received, one * ABSENT, status)
    server = (k, sent + 40_000, sent + 60_000, one * SERVED)
    return log("client", CLIENT, client, {}), log("server", SERVER, server, of_server)


def test_a_run_whose_log_has_no_end_is_not_valid_however_it_ended(tmp_path: Path) -> None:
    record = recorded(tmp_path, joined(wakeup_log([10] * 5, ended=False)))
    assert (record.status, record.error, record.valid) == ("complete", None, False)
    assert record.missing == [(50, None)]
    assert record.summary is not None and record.summary.counts["released"] == 50 - 3


def test_a_run_without_a_row_is_not_valid(tmp_path: Path) -> None:
    record = recorded(tmp_path, joined([*headers(), json_frame(b"E", 0, {"outcome": "complete"})]))
    assert (record.status, record.valid, record.summary) == ("complete", False, None)
    assert not (tmp_path / store.SAMPLES).exists()


def test_a_run_whose_rows_do_not_add_up_is_not_valid(tmp_path: Path) -> None:
    record = recorded(tmp_path, joined(wakeup_log([10] * 10)), warm_up="5ms")
    assert (record.valid, types(record)) == (False, ["samples_do_not_add_up"])
    assert "3 rows are marked as warm-up, 5 were planned" in record.warnings[0].message
    assert recorded(tmp_path, joined(wakeup_log([10] * 10))).valid


def test_a_log_that_cannot_be_read_is_said_of_a_run_that_was_ended_too(tmp_path: Path) -> None:
    record = recorded(tmp_path, b"this is no log", status="interrupted")
    assert (record.error, record.valid, types(record)) == (None, False, ["damaged_log"])
    assert recorded(tmp_path, b"this is no log").status == "failed"


def test_what_the_server_lost_and_doubted_is_said_of_the_cell(tmp_path: Path) -> None:
    doubt = {"type": "its_own", "message": "the measured thread is slow", "hint": ""}
    logs = ends(counters={"overflow": 4}, warnings=[doubt])
    record = recorded(tmp_path, *logs, measurement="roundtrip")
    assert record.valid and types(record) == ["its_own", "server_overflow"]
    assert record.warnings[0].message == "server: the measured thread is slow"
    assert "4 rows of the server were lost" in record.warnings[1].message


def test_what_the_servers_adapter_says_of_itself_is_kept_and_told_beside_the_number(tmp_path: Path) -> None:
    theirs = {"middleware": "Fast DDS", "middleware_version": "2.9.1"}
    record = recorded(tmp_path, *ends(adapter=theirs), measurement="roundtrip")
    assert record.server_adapter_facts == theirs
    assert "server of Fast DDS 2.9.1" in in_one_line(record)
    assert "server fastdds (Fast DDS 2.9.1)" in in_one_line(record.changed(server_adapter="fastdds"))
    alike = record.changed(adapter_facts=theirs)
    assert not any(part.startswith("server") for part in in_one_line(alike))


def test_a_run_without_a_server_has_nothing_of_one(tmp_path: Path) -> None:
    assert recorded(tmp_path, ends()[0], measurement="roundtrip").server_adapter_facts is None


@pytest.mark.parametrize("lost", [0, 2])
def test_what_the_kernel_dropped_is_said_where_messages_were_lost(tmp_path: Path, lost: int) -> None:
    machine = {"seconds": 10.0, "udp_buffer_drops": 5}
    dropped = {"asked": {}, "effective": {}, "achieved": {"machine": machine}}
    record = recorded(tmp_path, *ends(lost), measurement="roundtrip", conditions=dropped)
    assert record.summary is not None and record.summary.counts["lost"] == lost
    assert types(record) == ["messages_dropped"] * (lost > 0)


def test_logs_stay_where_no_table_was_made_of_them(tmp_path: Path) -> None:
    logs = Logs.of(tmp_path)
    both = [logs.client, logs.server]
    for one in both:
        one.write_bytes(b"rows")
    tidy(tmp_path, keep_logs=False)
    (tmp_path / store.SAMPLES).write_bytes(b"")
    tidy(tmp_path, keep_logs=True)
    assert [one.exists() for one in both] == [True, True]
    tidy(tmp_path, keep_logs=False)
    assert [one.exists() for one in both] == [False, False]
