"""Campaign files: the matrix they make, and how what is wrong in them is reported."""

from __future__ import annotations

from pathlib import Path

import pytest

from rtmeter.campaign.file import read_campaign
from rtmeter.errors import RtmeterError
from rtmeter.model import Campaign, Requirement


def read(tmp_path: Path, text: str, **arguments: object) -> Campaign:
    path = tmp_path / "c.yaml"
    path.write_text(text)
    return read_campaign(path, **arguments)  # type: ignore[arg-type]


W = "cells:\n- measurement: wakeup\n  adapter: posix\n"


def ids(campaign: Campaign) -> list[str]:
    return [cell.id for cell in campaign.cells]


def test_scalars_make_one_cell(tmp_path: Path) -> None:
    campaign = read(tmp_path, "cells:\n- {measurement: wakeup, adapter: posix}\n")
    assert campaign.name == "c"
    assert ids(campaign) == ["wakeup-posix"]
    assert campaign.cells[0].axes == {}
    assert campaign.cells[0].requirement is None
    assert campaign.source.startswith("cells:")


def test_lists_make_the_matrix_the_first_axis_varies_slowest(tmp_path: Path) -> None:
    campaign = read(
        tmp_path,
        """
        name: matrix
        cells:
        - measurement: wakeup
          adapter: [posix, "null"]
          period: [1ms, 500us]
        """,
    )
    assert ids(campaign) == [
        "wakeup-posix-period-1ms",
        "wakeup-posix-period-500us",
        "wakeup-null-period-1ms",
        "wakeup-null-period-500us",
    ]
    assert campaign.cells[1].axes == {"adapter": "posix", "period": "500us"}
    assert campaign.cells[1].config["period_ns"] == 500_000


def test_an_adapters_own_options_can_vary(tmp_path: Path) -> None:
    campaign = read(
        tmp_path,
        """
        cells:
        - {name: E, measurement: roundtrip, adapter: posix, options: {transport: [udp, unix], domain: 3}}
        """,
    )
    assert ids(campaign) == ["E-udp", "E-unix"]
    assert campaign.cells[1].config["options"] == {"transport": "unix", "domain": "3"}
    assert campaign.cells[1].axes == {"options.transport": "unix"}


def test_variants_vary_together(tmp_path: Path) -> None:
    campaign = read(
        tmp_path,
        """
        cells:
        - name: t1
          measurement: wakeup
          adapter: posix
          lock_memory: false
          variants:
            A:
            C: {scheduling: ["fifo:80", "rr:80"], lock_memory: true}
        """,
    )
    assert ids(campaign) == ["t1-A", "t1-C-fifo-80", "t1-C-rr-80"]
    assert [cell.config["lock_memory"] for cell in campaign.cells] == [False, True, True]
    assert campaign.cells[2].axes == {"variant": "C", "scheduling": "rr:80"}


def test_defaults_apply_where_they_mean_something(tmp_path: Path) -> None:
    campaign = read(
        tmp_path,
        """
        defaults: {adapter: posix, period: 2ms, payload: [100, 200], samples: 10, deadline: 1ms,
                   miss_ratio: 1e-3}
        cells:
        - {measurement: wakeup}
        - {measurement: roundtrip, duration: 1s}
        - {measurement: timer, mode: one_shot, timeout: 5ms, deadline: null}
        """,
    )
    wakeup, small, large, shot = campaign.cells
    assert "payload_bytes" not in wakeup.config
    assert (wakeup.config["samples"], small.config["samples"]) == (10, 500)
    assert [small.config["payload_bytes"], large.config["payload_bytes"]] == [100, 200]
    assert large.id == "roundtrip-posix-payload-200"
    assert shot.config["period_ns"] == 5_000_000
    assert wakeup.requirement == Requirement(1_000_000, 1e-3)
    assert shot.requirement is None


def test_a_requirement_groups_the_flat_keys_and_merges_with_those_of_the_defaults(tmp_path: Path) -> None:
    campaign = read(
        tmp_path,
        """
        defaults: {measurement: wakeup, adapter: posix, requirement: {deadline: 1ms, miss_ratio: 1e-3}}
        cells:
        - {name: default}
        - {name: own, requirement: {deadline: [2ms, 3ms], criticality: soft, confidence: 99%}}
        - {name: flat, deadline: 4ms, criticality: hard}
        - {name: none, requirement: null}
        - {name: variants, variants: {A: {requirement: {deadline: 5ms}}, B: }}
        """,
    )
    assert {cell.id: cell.requirement for cell in campaign.cells} == {
        "default": Requirement(1_000_000, 1e-3),
        "own-deadline-2ms": Requirement(2_000_000, 1e-3, 0.99, "soft"),
        "own-deadline-3ms": Requirement(3_000_000, 1e-3, 0.99, "soft"),
        "flat": Requirement(4_000_000, 1e-3, 0.95, "hard"),
        "none": None,
        "variants-A": Requirement(5_000_000, 1e-3),
        "variants-B": Requirement(1_000_000, 1e-3),
    }
    assert campaign.cells[1].config["deadline_ns"] == 2_000_000


def test_cells_can_be_chosen_by_their_class(tmp_path: Path) -> None:
    text = W + "  deadline: 1ms\n  criticality: [hard, firm]\n"
    assert ids(read(tmp_path, text)) == ["wakeup-posix-hard", "wakeup-posix-firm"]
    assert ids(read(tmp_path, text, only="criticality==hard")) == ["wakeup-posix-hard"]


def test_repeats_are_interleaved_unless_they_shall_not(tmp_path: Path) -> None:
    text = """
    repeat: 2
    cells:
    - {name: a, measurement: wakeup, adapter: posix}
    - {name: b, measurement: wakeup, adapter: posix, repeat: 1}
    - {name: c, measurement: wakeup, adapter: posix}
    """
    assert ids(read(tmp_path, text)) == ["a-r1", "b", "c-r1", "a-r2", "c-r2"]
    assert ids(read(tmp_path, "    interleave: false" + text)) == ["a-r1", "a-r2", "b", "c-r1", "c-r2"]


def test_only_chooses_in_the_block_and_from_outside(tmp_path: Path) -> None:
    text = """
    cells:
    - measurement: [wakeup, cycle]
      adapter: posix
      scheduling: [other, "fifo:80"]
      only: not (measurement == cycle and scheduling == other)
    """
    assert ids(read(tmp_path, text)) == ["wakeup-posix-other", "wakeup-posix-fifo-80", "cycle-posix-fifo-80"]
    chosen = read(tmp_path, text, only="scheduling==fifo:80 and measurement==wakeup")
    assert ids(chosen) == ["wakeup-posix-fifo-80"]


def test_a_block_that_takes_over_itself_ends(tmp_path: Path) -> None:
    with pytest.raises(RtmeterError, match="nested too deeply"):
        read(tmp_path, "cells:\n- &a\n  <<: *a")


def test_a_block_takes_over_what_another_says(tmp_path: Path) -> None:
    text = """
    cells:
    - &slow
      {name: a, measurement: wakeup, adapter: posix, period: 10ms, samples: 5}
    - &fast {<<: *slow, name: b, period: 1ms}
    - {<<: [*fast, *slow], name: c}
    - {name: d, <<: {measurement: wakeup, adapter: posix}}
    """
    cells = read(tmp_path, text).cells
    assert [(cell.id, cell.config["period_ns"]) for cell in cells[:3]] == [
        ("a", 10_000_000), ("b", 1_000_000), ("c", 1_000_000),
    ]  # fmt: skip
    assert [cell.config["samples"] for cell in cells[:3]] == [5, 5, 5]
    assert cells[3].id == "d"


def test_scale_is_applied_to_every_cell(tmp_path: Path) -> None:
    campaign = read(tmp_path, "cells:\n- {measurement: wakeup, adapter: posix, samples: [100, 1]}", scale=0.1)
    assert [cell.config["samples"] for cell in campaign.cells] == [10, 1]


def test_a_script_is_looked_for_beside_the_campaign(tmp_path: Path) -> None:
    (tmp_path / "delays.csv").write_text("wake_delay_ns\n1\n")
    text = 'cells:\n- {measurement: wakeup, adapter: "null", script: delays.csv}'
    assert read(tmp_path, text).cells[0].config["options"]["script"] == str(tmp_path / "delays.csv")


@pytest.mark.parametrize(
    ("text", "line", "field", "message"),
    [
        ("cells: [", 1, None, "is not YAML"),
        ("a:\n  - b\n c: 1", 3, None, "is not YAML"),
        ("name: x\ndescription: 2026-13-45", 2, "description", "is neither a date nor a number"),
        (f"cells:\n- samples: {'9' * 6000}", 2, "cells.0.samples", "is neither a date nor a number"),
        (f"cells:\n- samples: 0x{'9' * 6000}", 2, "cells.0.samples", "is neither a date nor a number"),
        ("- 1", 1, "campaign", "is no mapping"),
        ("", 1, "campaign", "is no mapping"),
        ("name: x", 1, "cells", "is no list of blocks"),
        ("name: x\ncells: {}", 2, "cells", "is no list of blocks"),
        ("nam: x\ncells: []", 1, "campaign", "did you mean name"),
        ("cells:\n- 3", 2, "cells.0", "is no mapping"),
        (W + "  perod: 1ms", 4, "cells.0", "did you mean period"),
        (W + "  rate: 500", 4, "cells.0", "give the period instead: that of 500 Hz is 2ms"),
        (W + "  server_affinity: 1", 4, "cells.0", "it is called server_cpus now"),
        (W + "  conditions: {irq_affinity: 1}", 4, "conditions", "it is called irq_cpus now"),
        (W + "  period: 10", 4, "period", "has no unit"),
        (W + "  period: []", 4, "period", "empty list"),
        (W + "  period: [1ms, 2ms, 1000us]", 4, "period", "1000us': is the same as '1ms' before it"),
        (W + "  period: [1ms, 1ms]", 4, "period", "is the same as '1ms'"),
        (W + "  period: -1ms", 4, "period", "is below zero"),
        (W + "  only: period==x", 4, "only period", "is not a number with a unit"),
        (W + "  explain: {events: yes}", 4, "explain.events", "is no list of events"),
        (W + "  payload: 500", 4, "payload", "means nothing"),
        (W + "  options: 3", 4, "cells.0.options", "no mapping"),
        (W + "  options:\n    a: {}", 5, "options.a", "neither"),
        ("cells:\n- measurement: wakeup\n  period: 1ms", 2, "adapter", "is missing"),
        ("cells:\n- measurement: wakeup\n  measurement: cycle", 3, "measurement", "is there twice"),
        ("defaults:\n  perod: 1ms\ncells:\n- {}", 2, "defaults", "did you mean period"),
        ("defaults:\n  period: x\n" + W, 2, "period", "not a number"),
        (W + "- {measurement: wakeup, adapter: posix}", 4, "cells.1", "is also the id of a cell of"),
        (W + "  conditions: {qdisc.eth0: pfifo}", 4, "conditions", "write qdisc: {eth0: …}"),
        (W + "  conditions: {qdisk: pfifo}", 4, "conditions", "did you mean qdisc"),
        (W + "  repeat: 0", 4, "cells.0.repeat", "from 1 to"),
        ("interleave: 3\ncells: [{}]", 1, "interleave", "neither true nor false"),
        (W + "  only: adapter=x", 4, "only", "cannot be read"),
        (W + "  only: adapter==x", 4, "cells.0.only", "no cell"),
        (W + "  variants:\n    A: {repeat: 2}", 5,
         "cells.0.variants.A", "is not known"),
        (W + "  variants:\n    A: {period: x}", 5, "period",
         "not a number"),
        ("cells:\n- name: '//'\n  measurement: wakeup", 2, "cells.0.name", "is no name"),
        ('cells:\n- measurement: wakeup\n  adapter: "null"\n  script: none.csv', 4, "script", "is no file"),
        ("cells:\n- measurement: wakeup\n  adapter: [posix, null]", 3, "adapter", "YAML's null"),
        ("a: &a [*a]\ncells: []", 1, None, "nested too deeply"),
        ("cells:\n- &a {measurement: wakeup}\n- <<: *a\n  <<: *a", 4, "<<", "first in line 3"),
        ("cells:\n- &a posix\n- <<: *a", 2, "<<", "is no mapping"),
        ("cells:\n- &a {measurement: wakeup, perod: 1}\n- <<: *a", 2, "cells.0", "did you mean period"),
        (W + "  samples: [[1]]", 4, "samples", "valid integer"),
        (W + "  requirement: 1ms", 4, "cells.0.requirement", "is no mapping"),
        (W + "  requirement:\n    dedline: 1ms", 5, "cells.0.requirement", "did you mean deadline"),
        (W + "  requirement:\n    deadline: 1", 5, "deadline", "has no unit"),
        (W + "  requirement: {deadline: []}", 4, "deadline", "empty list"),
        (W + "  requirement:\n    criticality: firm", 5, "criticality", "says nothing without a deadline"),
        (W + "  requirement:\n    deadline: 1ms\n    criticality: safe", 6, "criticality", "is no choice"),
        (W + "  deadline: 1ms\n  requirement:\n    deadline: 2ms", 6, "cells.0.requirement.deadline",
         "is given twice"),
    ],
)  # fmt: skip
def test_what_is_wrong_is_reported_with_its_line(
    tmp_path: Path, text: str, line: int, field: str | None, message: str
) -> None:
    with pytest.raises(RtmeterError, match=message) as caught:
        read(tmp_path, text)
    assert caught.value.where == f"{tmp_path / 'c.yaml'}:{line}"
    assert caught.value.field == field
    assert caught.value.remedy


@pytest.mark.parametrize(
    ("arguments", "field"),
    [({"scale": 0.0}, "--scale"), ({"scale": float("nan")}, "--scale"),
     ({"scale": float("inf")}, "--scale"), ({"only": "adapter==ros2"}, "--only"),
     ({"only": "adapter=="}, "--only"), ({"only": "adaptr==posix"}, "--only"),
     ({"only": "period==abc"}, "--only period")],
)  # fmt: skip
def test_wrong_arguments_are_refused(tmp_path: Path, arguments: dict[str, object], field: str) -> None:
    with pytest.raises(RtmeterError) as caught:
        read(tmp_path, "cells:\n- {measurement: wakeup, adapter: posix}", **arguments)
    assert caught.value.field == field


def test_a_file_that_is_not_there_is_said(tmp_path: Path) -> None:
    with pytest.raises(RtmeterError, match="cannot be read: No such file"):
        read_campaign(tmp_path / "none.yaml")
    (tmp_path / "binary.yaml").write_bytes(b"\xff\xfe\x00")
    with pytest.raises(RtmeterError, match="not UTF-8"):
        read_campaign(tmp_path / "binary.yaml")


TWO_HOSTS = """\
defaults: {server_load: erle_device, server_conditions: {timer_migration: off}, samples: 5}
cells:
  - {measurement: roundtrip, adapter: posix, load: erle_pc}
  - {name: idle, measurement: roundtrip, adapter: posix, server_load: null}
  - {measurement: wakeup, adapter: posix}
"""


def test_defaults_of_the_server_s_host_mean_nothing_on_one_host(tmp_path: Path) -> None:
    path = tmp_path / "c.yaml"
    path.write_text(TWO_HOSTS)
    trip, idle, wakeup = read_campaign(path).cells
    assert "server" not in trip.conditions and idle.conditions == wakeup.conditions == {}
    campaign = read_campaign(path, host="ssh://robot@arm")
    trip, idle, wakeup = campaign.cells
    assert campaign.host == trip.hosts["component"] == "ssh://robot@arm" and not wakeup.hosts
    assert trip.conditions["server"]["load"]["preset"] == "erle_device"
    assert list(idle.conditions["server"]) == ["settings"] and wakeup.conditions == {}


NAMED_HOSTS = """\
defaults: {measurement: roundtrip, adapter: posix, samples: 5%s}
cells:
  - {name: plain}
  - {name: here, hosts: {component: local}, server_load: null}
  - {name: there, hosts: {component: "ssh://a@b"}}
  - {name: both, hosts: {component: [local, "ssh://a@b"]}}
  - {name: whole, hosts: [{component: local}, {component: "ssh://a@b"}]}
  - {name: varied, variants: {near: {}, far: {hosts: {component: "ssh://a@b"}}}}
  - {name: woken, measurement: wakeup}
"""


@pytest.mark.parametrize("default", ["", ', hosts: {component: "ssh://c@d"}, server_load: idle'])
def test_a_host_on_the_command_line_takes_the_place_of_every_one(tmp_path: Path, default: str) -> None:
    path = tmp_path / "c.yaml"
    path.write_text(NAMED_HOSTS % default)
    cells = {cell.id: cell for cell in read_campaign(path, host="ssh://robot@arm").cells}
    assert not cells.pop("woken").hosts
    names = {"plain", "here", "there", "both", "whole", "varied-near", "varied-far"}
    assert cells.keys() == names, "of a list of hosts one is left"
    assert {cell.hosts["component"] for cell in cells.values()} == {"ssh://robot@arm"}
    named = [cell.hosts.get("component") for cell in read_campaign(path).cells]
    assert set(named) >= {"local", "ssh://a@b"}, "without one the file is heeded"


def test_a_host_on_the_command_line_must_be_one(tmp_path: Path) -> None:
    path = tmp_path / "c.yaml"
    path.write_text(TWO_HOSTS)
    with pytest.raises(RtmeterError) as caught:
        read_campaign(path, host="robot arm")
    assert (caught.value.field, caught.value.where) == ("--host component", None)


@pytest.mark.parametrize(
    ("key", "value"),
    [("samples", "true"), ("subscribers", "[1, yes]"), ("history_depth", "on"), ("horizon", "no")],
)
def test_yes_is_no_number(tmp_path: Path, key: str, value: str) -> None:
    """YAML's yes would be 1: ``pid: yes`` would attach to the first process."""
    text = f"cells:\n- measurement: roundtrip\n  adapter: posix\n  deadline: 1ms\n  {key}: {value}\n"
    with pytest.raises(RtmeterError, match="is yes or no, not a number") as caught:
        read(tmp_path, text)
    assert (caught.value.field, caught.value.where) == (key, f"{tmp_path / 'c.yaml'}:5")
    assert read(tmp_path, text.replace(f"{key}: {value}", "lock_memory: yes")).cells[0].config["lock_memory"]


def test_a_server_elsewhere_has_its_load_however_its_host_is_given(tmp_path: Path) -> None:
    text = """
    defaults: {server_load: cpu80}
    cells:
    - measurement: roundtrip
      adapter: posix
      hosts: HOSTS
    """
    for hosts in ("[{component: local}, {component: ssh://u@h}]", "{component: [local, ssh://u@h]}"):
        here, there = read(tmp_path, text.replace("HOSTS", hosts)).cells
        assert "server" not in here.conditions
        assert there.conditions["server"]["load"]["preset"] == "cpu80"


@pytest.mark.parametrize("value", ["yes", "[]", "ros1_timer_2014"])
def test_published_values_are_a_mapping(tmp_path: Path, value: str) -> None:
    with pytest.raises(RtmeterError, match="is no mapping of keys to values") as caught:
        read(tmp_path, f"{W}published: {value}\n")
    assert (caught.value.field, caught.value.where) == ("published", f"{tmp_path / 'c.yaml'}:4")
    assert read(tmp_path, f"{W}published: null\n").cells[0].published is None


def test_one_value_written_in_two_ways_is_one_level(tmp_path: Path) -> None:
    text = """
    cells:
    - {name: a, measurement: roundtrip, adapter: posix, period: 10ms, payload: 500B}
    - {name: b, measurement: roundtrip, adapter: posix, scheduling: "fifo:80"}
    - {name: c, measurement: roundtrip, adapter: posix, period: 10000us, payload: [500, 1KiB]}
    """
    assert [cell.factors for cell in read(tmp_path, text).cells] == [
        {"block": "a", "payload": "500B", "scheduling": "other"},
        {"block": "b", "payload": "500B", "scheduling": "fifo:80"},
        {"block": "c", "payload": "500B", "scheduling": "other"},
        {"block": "c", "payload": "1KiB", "scheduling": "other"},
    ]
