"""The schemas in spec/ are those of the options' declaration, and hold for what is read and written."""

from __future__ import annotations

import re
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
from rtmeter.samples.meta import LogMeta

ROOT = Path(__file__).resolve().parent.parent.parent
CAMPAIGNS = sorted((ROOT / "campaigns").glob("*.yaml"))


@cache
def validator(schema: Callable[[], dict[str, Any]]) -> jsonschema.Draft202012Validator:
    jsonschema.Draft202012Validator.check_schema(schema())
    return jsonschema.Draft202012Validator(schema())


def test_the_keys_of_a_run_are_in_no_cell() -> None:
    page = (ROOT / "spec" / "results.md").read_text()
    listed = re.search(r"without the keys of the run \((.+?)\)", page)
    assert listed is not None
    of_run = re.findall(r"`(\w+)`", listed[1])
    assert "offered" in of_run
    config: dict[str, Any] = {key: {} for key in (*of_run, "options")}
    assert LogMeta(config=config).cell_config == {"options": {}}


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
        *(({"load": given}, True) for given in ("idle", "cpu=8, vm=2,vm_bytes=64 MiB", "stressors.timer=2")),
        *(({"load": given}, False) for given in ("cpu=x", "foo=1", "cpu=2,foo=1", "preset=none", "cpu=2,")),
        *(({"traffic": given}, True) for given in ("none", "40Mbit/s", "0", "to=10.0.0.1,rate=1kbit/s")),
        *(({"traffic": f"rate=1Mbit/s,{more}"}, True) for more in ("reverse_rate=0", "port=1,protocol=tcp")),
        *(({"traffic": given}, False) for given in ("x", "1ms", "to=10.0.0.1", "rate=x", "rate=1Mbit/s,b=1")),
        *(({"second_topic": given}, True) for given in ("same_node", "period=1ms,place=same_process")),
        *(
            ({"second_topic": given}, False)
            for given in ("x", "period=1ms", "place=x", "place=same_node,a=1")
        ),
        *(({"explain": given}, True) for given in ("yes", "off", "timers+softirqs", "size=1GiB,margin=1ms")),
        *(
            ({"explain": given}, False)
            for given in ("x", "timers+x", "size=1ms", "events=x", "size=1GiB,a=1")
        ),
        *(({"on": given}, True) for given in ("local", "ssh://a@b:22", "ssh://[::1]/")),
        *(({"on": given}, False) for given in ("robot", "ssh://", "a@b")),
        ({"hosts": {"component": "robot"}}, False),
        *(({"period": given}, False) for given in ("0ms", "0.0s")),
        ({"period": "0.5ms"}, True),
        *(({"scheduling": given}, given == "fifo:9") for given in ("fifo:0", "rr:00", "fifo:9")),
        *(({"deadline": "1ms", "miss_ratio": given}, False) for given in (0, 1)),
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
