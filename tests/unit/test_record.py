"""cell.json and run.json: what is read is what was written, of every version; what is neither is refused."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import jsonschema
import pytest

from rtmeter.errors import RtmeterError
from rtmeter.results.record import CellRecord, read_cell_file, read_run_file, text_of
from rtmeter.results.schemas import FILES, schema_of
from rtmeter.results.schemas import text_of as schema_text
from stored import json_of, record

ROOT = Path(__file__).resolve().parent.parent.parent
GOLDEN = ROOT / "spec" / "golden"


def test_the_golden_records_are_read_and_written_as_they_are() -> None:
    cell, run = read_cell_file(GOLDEN / "cell-v2.json"), read_run_file(GOLDEN / "run-v2.json")
    assert text_of(cell) == (GOLDEN / "cell-v2.json").read_text()
    assert text_of(run) == (GOLDEN / "run-v2.json").read_text()


def test_version_1_is_read_as_version_2() -> None:
    assert read_cell_file(GOLDEN / "cell-v1.json") == read_cell_file(GOLDEN / "cell-v2.json")
    assert read_run_file(GOLDEN / "run-v1.json") == read_run_file(GOLDEN / "run-v2.json")


def test_what_version_1_did_not_have_on_its_first_day_is_empty() -> None:
    first, later = read_cell_file(GOLDEN / "cell-v1-first.json"), read_cell_file(GOLDEN / "cell-v1.json")
    assert (first.summary, first.config, first.id) == (later.summary, later.config, later.id)
    assert first.requirement == later.requirement and first.threads.server == []
    assert first.findings is None and first.conditions is None and first.hosts == {}
    assert first.warnings[0].hint == ""


def test_a_record_survives_being_written(tmp_path: Path) -> None:
    (tmp_path / "cell.json").write_text(text_of(record("one")))
    assert read_cell_file(tmp_path / "cell.json") == record("one")


@pytest.mark.parametrize("name", FILES)
def test_the_schemas_are_in_step_with_the_model(name: str) -> None:
    assert (ROOT / "spec" / name).read_text() == schema_text(name), (
        "run: python -m rtmeter.results.schemas spec"
    )


@pytest.mark.parametrize(("name", "golden"), list(zip(FILES, ("cell-v2.json", "run-v2.json"), strict=True)))
def test_the_golden_records_follow_the_schemas(name: str, golden: str) -> None:
    jsonschema.Draft202012Validator.check_schema(schema_of(name))
    jsonschema.Draft202012Validator(schema_of(name)).validate(json.loads((GOLDEN / golden).read_text()))


def test_every_key_is_described_in_its_document() -> None:
    text = (ROOT / "spec" / "results.md").read_text()
    assert [key for name in FILES for key in schema_of(name)["properties"] if f'"{key}"' not in text] == []


@pytest.mark.parametrize("version", [3, 0, "2", True, None])
def test_another_version_is_refused_by_name(tmp_path: Path, version: Any) -> None:
    (tmp_path / "cell.json").write_text(json.dumps(json_of(record()) | {"version": version}))
    said = f"has version {version}, this rtmeter reads versions 1 and 2"
    with pytest.raises(RtmeterError, match=said) as caught:
        read_cell_file(tmp_path / "cell.json")
    assert caught.value.where == str(tmp_path / "cell.json")


@pytest.mark.parametrize(
    ("changes", "field", "message"),
    [
        ({"id": 5}, "id", "valid string"),
        ({"verdct": None}, "verdct", "is not known"),
        ({"requirement": {"deadline_ns": 0}}, "requirement.deadline_ns", "greater than 0"),
        ({"config": {"period_ns": "1ms", "warm_up": 0}}, "config.period_ns", "valid integer"),
        ({"config": {"warm_up": 0}}, "config.period_ns", "neither period_ns nor timeout_ns"),
        ({"measurement": "timer"}, "mode", "a timer cell needs a mode"),
        ({"status": "failed"}, "error", "needs an error"),
        ({"axes": {"repeat": "x"}}, "axes.repeat", "is no number: x"),
        ({"axes": {"repeat": 10**30}}, "axes.repeat", "is no number: 1000"),
        ({"measurement": "sleep"}, "measurement", "'loop', 'imported' or 'own_loop'"),
    ],
)
def test_what_is_wrong_is_named(tmp_path: Path, changes: dict[str, Any], field: str, message: str) -> None:
    (tmp_path / "cell.json").write_text(json.dumps(json_of(record()) | changes))
    with pytest.raises(RtmeterError, match=message) as caught:
        read_cell_file(tmp_path / "cell.json")
    assert caught.value.field == field and caught.value.remedy


@pytest.mark.parametrize("number", [float("nan"), 1.5, 10**30, -(2**63) - 1, True, "x"])
@pytest.mark.parametrize("key", ["p99_ns", "max_ns", "max_at_k", "n"])
def test_what_no_table_of_cells_can_hold_is_refused(tmp_path: Path, key: str, number: Any) -> None:
    content = json.loads((GOLDEN / "cell-v2.json").read_text())
    place = "summary.quantities.round_trip.as_served"
    content["summary"]["quantities"]["round_trip"]["as_served"][key] = number
    (tmp_path / "cell.json").write_text(json.dumps(content))
    with pytest.raises(RtmeterError) as caught:
        read_cell_file(tmp_path / "cell.json")
    assert caught.value.field == f"{place}.{key}" and caught.value.where and caught.value.remedy


@pytest.mark.parametrize("key", ["id", "status", "verdict", "summary", "axes", "config", "warnings"])
def test_what_version_1_always_had_is_not_made_up(tmp_path: Path, key: str) -> None:
    old = json.loads((GOLDEN / "cell-v1.json").read_text())
    del old[key]
    (tmp_path / "cell.json").write_text(json.dumps(old))
    with pytest.raises(RtmeterError, match="is missing") as caught:
        read_cell_file(tmp_path / "cell.json")
    assert caught.value.field == key


def test_a_record_is_checked_when_it_is_made() -> None:
    with pytest.raises(ValueError, match="status"):
        record().changed(status="half")
    assert set(CellRecord.model_fields) == set(json_of(record()))
