"""The schemas in spec/ are those of the options' declaration, and hold for what is read and written."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import nullcontext
from functools import cache
from pathlib import Path
from typing import Any

import jsonschema
import pytest
import yaml

from rtmeter.campaign import keys_page
from rtmeter.campaign.file import BLOCK_KEYS, CAMPAIGN_KEYS, read_campaign
from rtmeter.campaign.options import OPTIONS
from rtmeter.campaign.schemas import FILES, campaign_schema, probe_config_schema, text_of
from rtmeter.errors import RtmeterError

ROOT = Path(__file__).resolve().parent.parent.parent
CAMPAIGNS = sorted((ROOT / "campaigns").glob("*.yaml"))


@cache
def validator(schema: Callable[[], dict[str, Any]]) -> jsonschema.Draft202012Validator:
    jsonschema.Draft202012Validator.check_schema(schema())
    return jsonschema.Draft202012Validator(schema())


@pytest.mark.parametrize("name", FILES)
def test_the_files_are_in_step_with_the_declaration(name: str) -> None:
    assert (ROOT / "spec" / name).read_text() == text_of(name), "run: python -m rtmeter.campaign.schemas spec"


def test_the_page_of_all_keys_is_in_step_with_the_declaration() -> None:
    page = ROOT / "docs" / "campaign-keys.md"
    assert page.read_text() == keys_page.page(), f"run: python -m rtmeter.campaign.keys_page docs/{page.name}"


def test_the_page_has_every_key_with_a_meaning_and_how_it_is_written() -> None:
    rows = [line.split(" | ") for line in keys_page.page().splitlines() if line.startswith("| `")]
    assert {row[0].strip("| `") for row in rows} >= {*CAMPAIGN_KEYS, *BLOCK_KEYS, *OPTIONS}
    assert [row for row in rows if not (row[-1].strip("| ") and row[-3].strip())] == []


@pytest.mark.parametrize("path", CAMPAIGNS, ids=lambda path: path.stem)
def test_campaigns_and_their_probe_configs_are_valid(path: Path) -> None:
    validator(campaign_schema).validate(yaml.safe_load(path.read_text()))
    for cell in read_campaign(path).cells:
        run = {"version": 1, "role": "single", "log": "probe.rtlog", "session": "s", "watch_stdin": True}
        validator(probe_config_schema).validate(cell.config | run)


def test_every_key_of_the_probe_config_is_described_in_its_document() -> None:
    text = (ROOT / "spec" / "probe.md").read_text()
    assert [key for key in probe_config_schema()["properties"] if f"`{key}`" not in text] == []


@pytest.mark.parametrize(
    "broken",
    [
        {"cells": []},
        {"cells": [{"perod": "1ms"}]},
        {"cells": [{"period": []}]},
        {"cells": [{"period": "10"}]},
        {"cells": [{"measurement": "swim"}]},
        {"cells": [{"repeat": 0}]},
        {"cells": [{"requirement": {"dedline": "1ms"}}]},
        {"cells": [{"requirement": {"criticality": "safe"}}]},
        {"cells": [{"variants": {"A": {"repeat": 2}}}]},
        {"defaults": {"name": "x"}, "cells": [{}]},
        {"cels": [{}]},
    ],
)
def test_broken_campaigns_are_invalid(broken: dict[str, Any]) -> None:
    assert not validator(campaign_schema).is_valid(broken)


def test_a_requirement_is_valid() -> None:
    required = {"deadline": ["1ms", "2ms"], "miss_ratio": "1e-6", "confidence": "95%", "criticality": "hard"}
    validator(campaign_schema).validate({"cells": [{"requirement": required}, {"requirement": None}]})


def test_ranges_are_valid_where_they_stand_for_values() -> None:
    ranges = {"payload": "16B..8MiB", "period": "1ms,2ms", "subscribers": "1..16", "participants": "2..5"}
    validator(campaign_schema).validate({"cells": [ranges]})
    assert not validator(campaign_schema).is_valid({"cells": [{"warm_up": "1s..2s"}]})


@pytest.mark.parametrize(
    ("given", "valid"),
    [
        ({"warm_up": 0, "monitor": 0, "traffic": {"rate": "40 Mbit/s", "reverse_rate": 0}}, True),
        ({"period": "1 ms", "payload": "64 KiB", "traffic": {"rate": "none"}}, True),
        ({"deadline": "1ms", "miss_ratio": "1e-6", "confidence": "99.9 %"}, True),
        ({"deadline": "1ms", "miss_ratio": 0.001, "load": "cpu=2,vm=1"}, True),
        ({"warm_up": 1}, False),
        ({"deadline": "1ms", "miss_ratio": "often"}, False),
        ({"deadline": "1ms", "confidence": 95}, False),
        ({"load": "cpu08"}, False),
        ({"server_options": {"transport": ["udp", "tcp"]}}, False),
    ],
)
def test_the_schema_takes_what_the_program_takes(tmp_path: Path, given: dict[str, Any], valid: bool) -> None:
    cell = {"measurement": "roundtrip", "adapter": "posix"} | given
    file = tmp_path / "c.yaml"
    file.write_text(yaml.safe_dump({"cells": [cell]}))
    with nullcontext() if valid else pytest.raises(RtmeterError):
        read_campaign(file)
    assert validator(campaign_schema).is_valid({"cells": [cell]}) == valid


def test_a_probe_config_is_closed() -> None:
    config = {"version": 1, "measurement": "wakeup", "log": "x", "warm_up": 0}
    assert validator(probe_config_schema).is_valid(config)
    assert not validator(probe_config_schema).is_valid(config | {"perod_ns": 1})
    assert not validator(probe_config_schema).is_valid(config | {"period_ns": 0})
