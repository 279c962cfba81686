"""`rtmeter archive merge`: the distribution of a group is that of all its samples in one heap."""

from __future__ import annotations

import importlib.util
import json
import shutil
from datetime import timedelta
from pathlib import Path

import numpy as np
import pytest
from archives import FIRST, rows

from rtmeter import cli
from rtmeter.archive.add import add_rows
from rtmeter.archive.engine import answering
from rtmeter.archive.groups import ArchiveGroup, GroupsAsked, merged
from rtmeter.archive.tables import Archive, archive_at
from rtmeter.archive.trend import trend
from rtmeter.statistics.fixed_bins import binned
from rtmeter.statistics.views import LATER

SPARK = importlib.util.find_spec("pyspark") is not None and shutil.which("java") is not None
JUDGED = {"deadline_ns": 10**6, "miss_ratio": 0.1, "confidence": 0.95, "criticality": "firm", "horizon": 10.0}
ASKED = GroupsAsked(by=["kernel", "label:site"])


def samples_of(number: int) -> list[int]:
    drawn = np.random.default_rng(number)
    values = [*(drawn.gamma(2, 10_000, 500).astype(np.int64) - 5_000).tolist(), 10**12 + number]
    return [*values, LATER] if number % 5 == 0 else values


def kernel_of(number: int) -> str:
    return f"6.{number % 2}"


@pytest.fixture(scope="module")
def archive(tmp_path_factory: pytest.TempPathFactory) -> Archive:
    """24 cells of four rigs and two kernels in three batches."""
    made = archive_at(tmp_path_factory.mktemp("groups") / "archive")
    made.make()
    for first in (0, 8, 16):
        group = {}
        for number in range(first, first + 8):
            values = samples_of(number)
            late = sum(value > 10**6 for value in values)
            changes = {"kernel": kernel_of(number), "outcome": "pass", "misses": late, "design_effect": 1.0}
            changes |= {"max_ns": None if LATER in values else max(values), "max_at_k": number, **JUDGED}
            one = rows(number, values, labels=[("site", f"s{number % 3}")], **changes)
            group[one.cell["cell"]] = one
        add_rows(made, group)
    return made


def plain(groups: list[ArchiveGroup]) -> list[tuple[object, ...]]:
    """Everything of the groups as text: what two engines must have the same of."""
    found: list[tuple[object, ...]] = []
    for g in groups:
        counts = g.distribution.bins.tolist(), g.distribution.counts.tolist(), g.distribution.lost
        found.append((g.key, g.cells, g.rigs, g.without, counts, g.maximum, repr(g.verdict)))
    return found


def test_a_group_is_all_its_samples_in_one_heap_bit_for_bit(archive: Archive) -> None:
    with answering(archive) as backend:
        found = merged(backend, ASKED)
    assert [group.key for group in found] == [(f"6.{k}", f"s{s}") for k in (0, 1) for s in (0, 1, 2)]
    for group in found:
        numbers = [n for n in range(24) if (kernel_of(n), f"s{n % 3}") == group.key]
        heap = [value for number in numbers for value in samples_of(number)]
        whole = binned(np.array(heap, dtype=np.int64))
        assert group.distribution.bins.tobytes() == whole.bins.tobytes()
        assert group.distribution.counts.tobytes() == whole.counts.tobytes()
        assert group.distribution.lost == whole.lost == heap.count(LATER)
        assert (group.cells, group.rigs, group.without) == (4, len({n % 4 for n in numbers}), 0)
        latest = max(n for n in numbers if LATER not in samples_of(n))
        assert group.maximum == (10**12 + latest, f"rig-{latest % 4}", latest, f"{latest:032x}")
        assert group.verdict is not None
        late = sum(value > 10**6 for value in heap)
        assert (group.verdict.n, group.verdict.misses) == (len(heap), late)


def test_what_is_asked_for_is_all_that_is_merged(archive: Archive) -> None:
    with answering(archive) as backend:
        assert backend.con.execute("SELECT current_setting('enable_progress_bar')").fetchall() == [(False,)]
        (all_of_it,) = merged(backend, GroupsAsked())
        (north,) = merged(backend, GroupsAsked(where={"label:site": "s1", "kernel": "6.1"}))
        times = [FIRST + timedelta(seconds=second) for second in (12, 20)]
        (between,) = merged(backend, GroupsAsked(since=times[0], until=times[1]))
    assert (all_of_it.cells, north.cells, between.cells) == (24, 4, 8)
    assert between.distribution.n == sum(len(samples_of(number)) for number in range(12, 20))
    assert all_of_it.distribution.n == sum(len(samples_of(number)) for number in range(24))


UNJUDGED = [
    ({}, 2000, None),
    ({"refused": "clusters"}, 2000, "of 1 runs no bound holds"),
    ({"outcome": "error"}, 1000, "1 cells could not be judged"),
    ({"n": None}, 1000, "1 cells could not be judged"),
]


@pytest.mark.parametrize(("changes", "n", "left"), UNJUDGED)
def test_no_group_passes_with_a_cell_that_is_not_judged(
    tmp_path: Path, changes: dict[str, object], n: int, left: str | None
) -> None:
    made = archive_at(tmp_path / "archive")
    made.make()
    judged = {"outcome": "pass", "misses": 0, "design_effect": 1.0, **JUDGED}
    for number, more in enumerate(({}, changes)):
        add_rows(made, {str(number): rows(number, [1] * 1000, **(judged | more))})
    with answering(made) as backend:
        (group,) = merged(backend, GroupsAsked())
    assert group.verdict is not None and group.verdict.n == n
    assert group.verdict.outcome == ("pass" if left is None else "inconclusive")
    assert left is None or left in group.verdict.reason


@pytest.mark.full_only("Spark, which takes half a minute to start")
@pytest.mark.skipif(not SPARK, reason="needs PySpark and Java")
def test_spark_finds_the_same_to_the_last_count(archive: Archive) -> None:
    with answering(archive) as backend:
        expected = plain(merged(backend, ASKED))
    with answering(archive, "spark") as backend:
        assert plain(merged(backend, ASKED)) == expected
        spark = trend(backend, GroupsAsked())
    with answering(archive) as backend:
        assert spark == trend(backend, GroupsAsked())


def test_without_spark_the_error_says_so(
    archive: Archive, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setitem(__import__("sys").modules, "pyspark", None)
    assert cli.invoke(["archive", "merge", archive.url, "--engine", "spark"]) == 1
    said = capsys.readouterr().err
    assert "Spark is not installed" in said and "rtmeter[spark]" in said


def test_the_command(archive: Archive, capsys: pytest.CaptureFixture[str]) -> None:
    command = ["archive", "merge", archive.url, "--by", "kernel", "--where", "label:site=s1"]
    assert cli.invoke([*command, "--json"]) == 0
    groups = json.loads(capsys.readouterr().out)["groups"]
    assert [(group["key"], group["cells"]) for group in groups] == [
        ({"kernel": "6.0"}, 4),
        ({"kernel": "6.1"}, 4),
    ]
    assert all(low <= high for group in groups for low, high in [group["quantiles"]["p50"]])
    assert cli.invoke(command) == 0
    assert "6.1" in capsys.readouterr().out
    assert cli.invoke([*command, "--by", "no_column"]) == 1
    assert "is no column of cells" in capsys.readouterr().err


def test_the_extra_is_named_where_its_packages_are_not(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setitem(__import__("sys").modules, "deltalake", None)
    assert cli.invoke(["archive", "ls", str(tmp_path)]) == 1
    assert "rtmeter[archive]" in capsys.readouterr().err
