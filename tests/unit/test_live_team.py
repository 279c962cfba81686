"""A cell that several processes measure while it goes on: what is seen of it is what its record will have."""

from __future__ import annotations

import itertools
import json
import random
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from log_frames import header
from sample_logs import FILE_HEAD, Piece, json_frame, row_frame

from chains import Spec, random_graph, simulate
from rtmeter.campaign.chain_option import graph_of
from rtmeter.campaign.rules import settle
from rtmeter.live.seen import RunningCell
from rtmeter.live.team import team_of
from rtmeter.measure.team.chain_processes import overdue_ns, processes_of, warm_ups
from rtmeter.measure.team.discovery_record import joined
from rtmeter.model import ABSENT, IN_FLIGHT, LOST, SERVED, STATUS_NAMES
from rtmeter.results.store import STAGES, TEAM
from rtmeter.statistics.chain import COLUMNS, analyse
from rtmeter.statistics.quantities import Columns, Ints
from rtmeter.statistics.views import OUTCOME_BITS

CODES = {name: code for code, name in enumerate(STATUS_NAMES)}
SEEN = ("release_ns", "before_ns", "output_ns", "status")


def pieces(measurement: str, names: Sequence[str], values: Ints, cuts: Sequence[int]) -> list[Piece]:
    """A log of the rows (columns x rows), a frame up to each cut."""
    columns = [{"name": name, "unit": "ns"} for name in names]
    head = json_frame(b"H", 0, header(measurement=measurement, mode=None, columns=columns))
    values = np.ascontiguousarray(values)
    edges = [0, *sorted({cut for cut in cuts if 0 < cut < values.shape[1]}), values.shape[1]]
    return [head, *(row_frame(a, values[:, a:b]) for a, b in itertools.pairwise(edges) if a < b)]


def growing(
    folder: Path, logs: Mapping[str, list[Piece]], config: Any, draw: random.Random
) -> Iterator[None]:
    """The folder of the logs while their processes write them, in whatever order."""
    (folder / STAGES).mkdir(parents=True)
    (folder / STAGES / TEAM).write_text(json.dumps({"config": config, "members": list(logs)}))
    yield
    for name in logs:
        (folder / STAGES / f"{name}.rtlog").write_bytes(FILE_HEAD)
    left = [(name, piece) for name, log in logs.items() for piece in log]
    waiting = {name: [piece for one, piece in left if one == name] for name in logs}
    for name in draw.sample([name for name, _ in left], len(left)):
        with (folder / STAGES / f"{name}.rtlog").open("ab") as file:
            file.write(waiting[name].pop(0).data)
        yield


def followed(
    folder: Path, logs: Mapping[str, list[Piece]], config: Any, draw: random.Random
) -> dict[str, Any]:
    """All rows that are seen while the logs grow, by column."""
    found: list[Columns] = []
    log = None
    for _ in growing(folder, logs, config, draw):
        log = log or team_of(folder)
        assert log is not None
        found += log.new()
    assert log is not None and log.header["config"] == config
    return {
        name: np.concatenate([[], *(rows[name] for rows in found)]).astype(int) for name in ("k", *found[0])
    }


def chain_logs(
    config: Any, specs: list[Spec], rows: Any, draw: random.Random, together: bool
) -> dict[str, list[Piece]]:
    names = ("stage", *COLUMNS)
    logs = {}
    for process in processes_of(config, together=together):
        table = [
            (number, *(ABSENT if value is None else value for value in row[:5]), CODES[row[5]])
            for number, stage in enumerate(process.stages)
            for row in rows[stage]
        ]
        table.sort(key=lambda row: max(row[4], row[5]))
        values = np.array(table, dtype=np.int64).reshape(-1, len(names)).T
        cuts = [draw.randint(1, len(table)) for _ in range(3)] if table else []
        logs[process.name] = pieces("chain", names, values, cuts)
    return logs


@pytest.mark.parametrize("number", range(40))
def test_what_is_seen_of_a_chain_is_what_its_judged_path_comes_to(number: int, tmp_path: Path) -> None:
    draw = random.Random(f"seen chain {number}")
    specs = random_graph(draw, 8, 1000)
    stages = {
        s.name: {"inputs": list(s.inputs)}
        | ({"period": f"{s.period_ns}ns", "offset": f"{s.offset_ns}ns"} if s.period_ns else {})
        | ({"fusion": True} if s.kind == "fusion" else {})
        | draw.choice(({}, {"process": "some"}))
        for s in specs
    }
    asked = {"measurement": "chain", "adapter": "null", "graph": {"stages": stages}, "deadline": "3us"}
    config = settle(asked | {"samples": 20, "warm_up": "2us"}).probe_config()
    graph, judged = graph_of(config), config["graph"]["judged"]
    late = [None if draw.random() < 0.05 else draw.randint(0, 3000) for _ in range(50)]
    until_ns = (1 << 40) + 60_000
    rows = simulate(specs, lambda a, b, k: late[(k + len(a + b)) % 50], 1 << 40, 22, until_ns)
    table = {
        name: np.array([[ABSENT if v is None else v for v in row[:5]] + [CODES[row[5]]] for row in of_stage])
        for name, of_stage in rows.items()
    }
    columns = {name: dict(zip(COLUMNS, t.reshape(-1, 6).T, strict=True)) for name, t in table.items()}
    loss_ns = config["loss_timeout_ns"]
    warm_up, overdue = warm_ups(config, graph), overdue_ns(config, graph)
    paths = analyse(
        graph,
        columns,
        warm_up=warm_up,
        loss_timeout_ns=loss_ns,
        ended_ns=until_ns,
        overdue_ns=overdue,
        whole_until_ns={},
    ).paths
    wanted = next(path for path in paths if list(path.stages) == judged).samples
    served = (wanted["status"] & OUTCOME_BITS) == SERVED
    logs = chain_logs(config, specs, rows, draw, together=number % 2 == 0)
    found = followed(tmp_path / "followed", logs, config, draw)
    assert found["k"].tolist() == np.flatnonzero(served).tolist()
    for name in SEEN:
        assert found[name].tolist() == wanted[name][served].tolist(), name

    running = RunningCell(tmp_path / "seen")
    for _ in growing(tmp_path / "seen", logs, config, draw):
        running.look()
    seen = running.look()
    assert seen is not None and (seen.planned, seen.settled) == (20 + config["warm_up"], served.sum())
    reaction_ns = (wanted["output_ns"] - wanted["before_ns"])[wanted["status"] == SERVED]
    assert (seen.quantity, seen.served, seen.lost) == ("reaction", len(reaction_ns), 0)
    assert seen.late == (reaction_ns > 3000).sum()
    assert seen.max_ns == (max(reaction_ns) if len(reaction_ns) else None)


def test_samples_that_a_stage_re_stamped_are_passed_over(tmp_path: Path) -> None:
    asked = {"measurement": "chain", "adapter": "null", "graph": {"stages": {"a": {"period": "1us"}}}}
    config = settle(asked | {"samples": 4, "warm_up": 0}).probe_config()
    k, release_ns = np.array([0, 1 << 50, 1, 7, 2]), np.array([0, 1 << 50, 1000, 7000, 2001])
    zero = np.zeros(5, np.int64)
    values = np.stack([zero, zero, k, release_ns, zero, np.array([0, 6, 1005, 2000, 2005]), zero + SERVED])
    logs = {"all": pieces("chain", ("stage", *COLUMNS), values, [2])}
    found = followed(tmp_path, logs, config, random.Random(1))
    assert (found["k"].tolist(), found["output_ns"].tolist()) == ([0, 1], [0, 1005]), (
        "one may be sent at its very release"
    )


def test_what_is_seen_of_a_discovery_is_what_is_for_all_participants(tmp_path: Path) -> None:
    draw = random.Random(5)
    config = settle({"measurement": "discovery", "adapter": "null", "participants": 3}).probe_config()
    names, logs, whole = ("release_ns", "started_ns", "matched_ns", "first_ns", "status"), {}, []
    for member in ("p0", "p1", "p2"):
        n = draw.randint(20, 30)
        k = np.arange(n)
        times = [k * 1000 + draw.randint(0, 99) for _ in range(3)]
        status = np.array([draw.choice((SERVED, SERVED, LOST, IN_FLIGHT)) for _ in k])
        values = np.stack([k * 1000, *times, status])
        whole.append((k, dict(zip(names, values, strict=True))))
        logs[member] = pieces("discovery", names, values, [draw.randint(1, n) for _ in range(5)])
    wanted = joined(whole, config["warm_up"])
    found = followed(tmp_path, logs, config, draw)
    assert found["k"].tolist() == list(range(min(len(k) for k, _ in whole)))
    for name in names:
        assert found[name].tolist() == wanted[name][: len(found["k"])].tolist(), name
