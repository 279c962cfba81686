"""Discoveries: their options, their processes, and how the participants' logs become one."""

from __future__ import annotations

import random
from collections.abc import Mapping
from typing import Any

import numpy as np
import pytest

from rtmeter.campaign.rules import settle
from rtmeter.errors import RtmeterError
from rtmeter.measure.team.by_discovery import members_of
from rtmeter.measure.team.discovery_record import before_start, joined
from rtmeter.model import ABSENT, IN_FLIGHT, LOST, SERVED, WARM_UP_FLAG

MS = 1_000_000
DISCOVERY = {"measurement": "discovery", "adapter": "null"}
NAMES = ("release_ns", "started_ns", "matched_ns", "first_ns", "status")


def test_what_is_not_given_has_defaults_that_leave_time_to_leave() -> None:
    config = settle(DISCOVERY).probe_config()
    assert (config["participants"], config["others"]) == (2, "cold")
    assert (config["period_ns"], config["loss_timeout_ns"]) == (2_000 * MS, 1_000 * MS)
    assert (config["samples"], config["warm_up"]) == (30, 1)
    longer = settle(DISCOVERY | {"deadline": "1500ms"}).probe_config()
    assert longer["loss_timeout_ns"] == 1_500 * MS


@pytest.mark.parametrize(
    ("given", "field"),
    [
        ({"participants": 1}, "participants"),
        ({"participants": "many"}, "participants"),
        ({"others": "some"}, "others"),
        ({"loss_timeout": "2s"}, "loss_timeout"),
        ({"deadline": "2s"}, "deadline"),
        ({"overrun": "skip"}, "overrun"),
        ({"child_threads": "rr:70"}, "child_threads"),
        ({"child_cpus": "0"}, "child_cpus"),
        ({"apply": "after_init"}, "apply"),
        ({"scheduling": "deadline:1ms/5ms/5ms"}, "scheduling"),
        ({"explain": True}, "explain"),
        ({"deadline": "1s", "break_on_late": True}, "break_on_late"),
        ({"receive": "spin"}, "receive"),
        ({"in_flight": "open"}, "in_flight"),
    ],
)
def test_what_a_discovery_cannot_have_is_refused_by_name(given: dict[str, Any], field: str) -> None:
    with pytest.raises(RtmeterError) as error:
        settle(DISCOVERY | given)
    assert error.value.field == field and error.value.remedy


@pytest.mark.parametrize("name", ["participants", "others"])
def test_its_keys_mean_nothing_elsewhere(name: str) -> None:
    with pytest.raises(RtmeterError) as error:
        settle({"measurement": "roundtrip", "adapter": "null", name: settle(DISCOVERY).model_dump()[name]})
    assert error.value.field == name


def test_each_participant_has_a_process_and_on_a_scripted_clock_all_have_one() -> None:
    config = settle(DISCOVERY | {"participants": 3, "others": "present"}).probe_config()
    members = members_of(config, together=False)
    assert [(m.name, m.ends, m.shows) for m in members] == [
        ("p0", True, False),
        ("p1", True, False),
        ("p2", True, True),
    ]
    for number, member in enumerate(members):
        asked = {"participants": 3, "others": "present", "participant": number}
        assert member.config["discovery"] == asked and member.config["role"] == "single"
        assert not {"participants", "others"} & member.config.keys()
    (alone,) = members_of(config, together=True)
    assert alone.shows and "participant" not in alone.config["discovery"]


def log_of(rows: Mapping[int, tuple[int | None, ...]]) -> Any:
    values = np.array([[ABSENT if v is None else v for v in row] for row in rows.values()], dtype=np.int64)
    return np.array([*rows], dtype=np.int64), dict(zip(NAMES, values.reshape(len(rows), 5).T, strict=True))


def by_loops(logs: list[dict[int, tuple[int | None, ...]]], warm_up: int) -> list[tuple[int | None, ...]]:
    found: list[tuple[int | None, ...]] = []
    for k in range(max((max(log, default=-1) for log in logs), default=-1) + 1):
        rows = [log.get(k) for log in logs]
        there = [row for row in rows if row is not None]
        outcomes = {IN_FLIGHT if row is None else int(row[4] or 0) & 15 for row in rows}
        status = next(code for code in (IN_FLIGHT, LOST, SERVED) if code in outcomes)
        times = []
        for column in (1, 2, 3):
            stamps = [None if row is None else row[column] for row in rows]
            known = [stamp for stamp in stamps if stamp is not None]
            times.append(max(known) if len(known) == len(rows) else None)
        release = there[-1][0] if there else None
        found.append((release, *times, status | (WARM_UP_FLAG if k < warm_up else 0)))
    return found


def test_the_last_of_all_participants_counts() -> None:
    draw = random.Random("participants")
    seen = set()
    for _ in range(300):
        warm_up, count = draw.randint(0, 2), draw.randint(0, 6)
        logs = []
        for _ in range(draw.randint(1, 4)):
            rows: dict[int, tuple[int | None, ...]] = {}
            for k in range(count):
                if draw.random() < 0.1:
                    continue  # what a log has lost
                status = draw.choice((SERVED, SERVED, SERVED, LOST, IN_FLIGHT))
                times = [draw.choice((None, k * 100 + draw.randint(0, 50))) for _ in range(3)]
                if status == SERVED:
                    times = [k * 100 + draw.randint(0, 50) for _ in range(3)]
                rows[k] = (k * 100, *times, status | (WARM_UP_FLAG if k < warm_up else 0))
            logs.append(rows)
        got = joined([log_of(rows) for rows in logs], warm_up)
        rows_got = zip(*(got[name].tolist() for name in NAMES), strict=True)
        listed = [tuple(None if v == ABSENT else v for v in row) for row in rows_got]
        assert listed == by_loops(logs, warm_up)
        seen |= {row[4] for row in listed}
    assert seen >= {SERVED, LOST, IN_FLIGHT, SERVED | WARM_UP_FLAG}


def test_what_was_over_before_the_last_had_started_is_counted() -> None:
    rows = {0: (0, 10, 20, 30, SERVED), 1: (100, 110, 109, 130, SERVED), 2: (200, 210, None, 205, LOST)}
    rows[3] = (300, 310, 320, 309, SERVED | WARM_UP_FLAG)
    assert before_start(joined([log_of(rows)], 0)) == 2


def test_where_nobody_tells_of_matches_only_first_messages_can_be_too_early() -> None:
    rows = {0: (0, 10, None, 30, SERVED), 1: (100, 110, None, 109, SERVED), 2: (200, 210, None, None, LOST)}
    assert before_start(joined([log_of(rows)], 0)) == 1


def test_what_is_heard_at_the_very_start_is_not_before_it() -> None:
    for first_ns, early in ((100, 0), (99, 1)):
        rows: dict[int, tuple[int | None, ...]] = {0: (0, 100, 200, first_ns, SERVED)}
        assert before_start(joined([log_of(rows)], 0)) == early
