"""`rtmeter archive merge`: the distribution of a group is that of all its samples in one heap."""

from __future__ import annotations

import importlib.util
import json
import re
import shutil
from datetime import timedelta
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from archives import FIRST, plain, rows

from rtmeter import cli
from rtmeter.archive.add import add_rows
from rtmeter.archive.engine import answering
from rtmeter.archive.groups import GroupsAsked, between, merged
from rtmeter.archive.tables import Archive, archive_at
from rtmeter.archive.trend import trend
from rtmeter.statistics.fixed_bins import binned
from rtmeter.statistics.views import LATER
from tool_files import CSV, cyclictest

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
        lost = [n for n in numbers if LATER in samples_of(n)]  # later than all
        latest = lost[0] if lost else max(numbers)
        value, k = (None, None) if lost else (10**12 + latest, latest)
        assert group.maximum == (value, f"rig-{latest % 4}", k, f"{latest:032x}")
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
    ({"refused": "clusters"}, 2000, "of 1 run no bound holds"),
    ({"outcome": "error"}, 1000, "1 cell could not be judged"),
    ({"n": None}, 1000, "1 cell could not be judged"),
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


@pytest.mark.parametrize(
    ("allowed", "code", "said", "row"),
    [
        ("0", 3, "0 of 10,000 releases of 1 rig missed: of 1 run no bound holds", '0,"misses_not_told"'),
        ("5%", 0, "50 of 10,000 releases of 1 rig missed: at most 0.632 %, 5 % is allowed", "50,"),
    ],
)
def test_what_a_histogram_does_not_tell_to_be_missed_fails_no_group_and_holds_none_up_that_passes(
    allowed: str, code: int, said: str, row: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Fifty of 10,000 values lie in the deadline's own bin: all, some or none of them missed it."""
    file, results, place = tmp_path / "a.json", str(tmp_path / "results"), str(tmp_path / "archive")
    thread = {"histogram": {"2": 9950, "100": 50}, "cycles": 10_000, "min": 2, "max": 100, "avg": 3.0}
    file.write_text(json.dumps(cyclictest(thread={"0": thread})))
    asked = ["import", str(file), "--out", results, "--deadline", "100us", "--period", "1ms"]
    assert cli.invoke([*asked, *(["--miss-ratio", allowed] if allowed != "0" else [])]) == code
    assert cli.invoke(["archive", "add", results, "--to", place]) == 0
    capsys.readouterr()
    assert cli.invoke(["archive", "merge", place, "--json"]) == code
    (group,) = json.loads(capsys.readouterr().out)["groups"]
    assert group["verdict"]["reason"] == said
    assert cli.invoke(["archive", "sql", "SELECT misses, refused FROM cells", place, "--csv"]) == 0
    assert capsys.readouterr().out.split() == ['"misses","refused"', row]


def test_a_histograms_misses_are_of_as_many_releases_as_its_verdict_has(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Twenty of 1,000 values are 90 ms late: 1,800 releases were passed over, which are in no bin."""
    file, results, place = tmp_path / "a.json", str(tmp_path / "results"), str(tmp_path / "archive")
    thread = {"histogram": {"5": 980, "90000": 20}, "cycles": 1_000, "min": 5, "max": 90_000, "avg": 5.0}
    file.write_text(json.dumps(cyclictest(thread={"0": thread})))
    asked = ["--deadline", "5ms", "--period", "1ms", "--miss-ratio", "50%"]
    assert cli.invoke(["import", str(file), "--out", results, *asked]) == 2
    assert cli.invoke(["archive", "add", results, "--to", place]) == 0
    capsys.readouterr()
    assert cli.invoke(["archive", "sql", "SELECT n, misses, skipped FROM cells", place, "--csv"]) == 0
    assert capsys.readouterr().out.split() == ['"n","misses","skipped"', "2800,1820,1800"]
    cli.invoke(["archive", "merge", place, "--json"])
    (group,) = json.loads(capsys.readouterr().out)["groups"]
    assert group["verdict"]["reason"].startswith("1,820 of 2,800 releases of 1 rig missed")
    assert cli.invoke(["archive", "check", place]) == 0


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


def test_a_lost_release_is_the_maximum_of_the_rig_that_lost_it(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    made = archive_at(tmp_path / "archive")
    made.make()
    lost = rows(1, [5, LATER], max_ns=None, max_at_k=None)
    add_rows(made, {"whole": rows(0, [1, 10**9], max_at_k=1), "lost": lost})
    assert cli.invoke(["archive", "merge", made.url, "--json"]) == 0
    (group,) = json.loads(capsys.readouterr().out)["groups"]
    assert group["maximum"] == {"max_ns": "lost", "rig": "rig-1", "k": None, "cell": f"{1:032x}"}
    assert cli.invoke(["archive", "merge", made.url]) == 0
    out = capsys.readouterr().out
    assert "lost" in out and "rig-1" in out and "rig-0" not in out
    add_rows(made, {"also": rows(5, [1, 7], max_at_k=1)})  # of the rig that lost one before
    add_rows(made, {"empty": rows(4, [7], n=0, max_ns=None, max_at_k=None)})  # of the other one
    assert cli.invoke(["archive", "ls", made.url, "--json"]) == 0
    found = {
        row["rig"]: (row["max_ns"], row["losing"]) for row in json.loads(capsys.readouterr().out)["rows"]
    }
    assert found == {"rig-0": (10**9, 0), "rig-1": (7, 1)}
    assert cli.invoke(["site", "--archive", made.url, "-o", str(tmp_path / "site")]) == 0
    cells = re.findall(r'<td class="number">([^<]*)</td></tr>', (tmp_path / "site/index.html").read_text())
    assert sorted(cells[:2]) == ["1,000,000.0", "lost"]


@pytest.mark.parametrize("asked", [[], ["--deadline", "10ms"]])
def test_a_lost_message_of_a_log_of_intervals_is_the_maximum_whatever_is_required(
    asked: list[str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    place = str(tmp_path / "archive")
    for rig, log in (("losing", CSV), ("whole", CSV.replace("998", "1000").replace("\t2,\t", "\t0,\t"))):
        file, results = tmp_path / f"{rig}.csv", str(tmp_path / rig)
        file.write_text(log)
        cli.invoke(["import", str(file), "--out", results, *asked])
        assert cli.invoke(["archive", "add", results, "--to", place, "--label", f"rig={rig}"]) == 0
    capsys.readouterr()
    cli.invoke(["archive", "merge", place, "--json"])
    (group,) = json.loads(capsys.readouterr().out)["groups"]
    assert (group["maximum"]["max_ns"], group["maximum"]["rig"]) == ("lost", "losing")
    assert cli.invoke(["archive", "ls", place, "--json"]) == 0
    rigs = json.loads(capsys.readouterr().out)["rows"]
    found = {row["rig"]: (row["max_ns"], row["losing"]) for row in rigs}
    assert found == {"losing": (None, 1), "whole": (1_700_000, 0)}


def test_a_quantile_of_so_few_releases_that_it_is_the_maximum_is_left_empty(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert [between(binned(np.full(n, 64_000)), "99.9") for n in (1_000, 999)] == ["64.0–64.5", ""]
    made = archive_at(tmp_path / "archive")
    made.make()
    add_rows(made, {"few": rows(0, [1_000] * 160)})
    assert cli.invoke(["archive", "merge", made.url]) == 0
    assert " 160 1.0–1.0 1.0–1.0 - - " in " ".join(capsys.readouterr().out.split())
    assert cli.invoke(["archive", "merge", made.url, "--json"]) == 0
    (group,) = json.loads(capsys.readouterr().out)["groups"]
    assert group["quantiles"]["p99.999"] == group["quantiles"]["p50"]
    assert cli.invoke(["site", "--archive", made.url, "-o", str(tmp_path / "site")]) == 0
    shown = re.findall(
        r'<td class="number"[^>]*>(1.0–1.0|–)</td>', (tmp_path / "site/index.html").read_text()
    )
    assert shown[:4] == ["1.0–1.0", "1.0–1.0", "–", "–"]


ODD = [("miss_ratio", value, str(value)) for value in (1e-05, 0.0001, 1e16, 1 / 3)]
ODD += [("measured", FIRST + timedelta(microseconds=1), "2026-01-01T00:00:00.000001+00:00")]
ODD += [("period_ns", 10**18 + 1, str(10**18 + 1)), ("kernel", "a=b", "a=b"), ("horizon", None, None)]


def keys_of(backend: Any) -> list[object]:
    """The groups by each of these columns, and those that `where` finds by the key that it was given."""
    found: list[object] = []
    for column, _, key in ODD:
        groups = merged(backend, GroupsAsked(by=[column]))
        found.append([(group.key, group.cells) for group in groups])
        if key is not None:
            found.append([group.cells for group in merged(backend, GroupsAsked(where={column: key}))])
    return found


@pytest.fixture
def odd(tmp_path: Path) -> Archive:
    """Two cells, one with odd values and one without any."""
    made = archive_at(tmp_path / "archive")
    made.make()
    for place, (column, value, _) in enumerate(ODD):
        add_rows(made, {str(place): rows(place + 10, [1, 2], **{column: value})})
    return made


def test_a_key_is_the_shortest_text_of_a_value_and_finds_it_again(odd: Archive) -> None:
    with answering(odd) as backend:
        found = iter(keys_of(backend))
    for _, _, key in ODD:
        groups = next(found)
        assert (isinstance(groups, list) and ((key,), 1) in groups) or ((key,), len(ODD)) in groups
        assert key is None or next(found) == [1]


@pytest.mark.full_only("Spark, which takes half a minute to start")
@pytest.mark.skipif(not SPARK, reason="needs PySpark and Java")
def test_spark_has_the_same_keys(odd: Archive) -> None:
    with answering(odd) as backend:
        expected = keys_of(backend)
    with answering(odd, "spark") as backend:
        assert keys_of(backend) == expected


def test_a_group_of_several_requirements_does_not_pass(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    made = archive_at(tmp_path / "archive")
    made.make()
    for number, miss_ratio in enumerate((0.1, 0.2)):
        changes = {"outcome": "fail", "misses": 9, "design_effect": 1.0, "max_at_k": 0}
        one = rows(number, range(10), **changes | JUDGED | {"miss_ratio": miss_ratio})
        add_rows(made, {one.cell["cell"]: one})
    assert cli.invoke(["archive", "merge", made.url, "--by", "miss_ratio"]) == 2
    capsys.readouterr()
    assert cli.invoke(["archive", "merge", made.url, "--json"]) == 3
    (group,) = json.loads(capsys.readouterr().out)["groups"]
    said = {"outcome": "inconclusive", "reason": "several requirements", "n": 20, "misses": 18}
    assert group["verdict"] == said | {"lower": None, "upper": None}
    assert cli.invoke(["archive", "merge", made.url]) == 3
    assert "inconclusive: several requirements" in " ".join(capsys.readouterr().out.split())


def test_a_group_without_a_requirement_has_no_verdict(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    made = archive_at(tmp_path / "archive")
    made.make()
    for number, confidence in enumerate((0.95, 0.99)):
        judged = JUDGED | {"outcome": "pass", "misses": 0, "deadline_ns": None}
        one = rows(number, range(10), **judged | {"confidence": confidence, "max_at_k": 0})
        add_rows(made, {one.cell["cell"]: one})
    assert cli.invoke(["archive", "merge", made.url, "--json"]) == 0
    (group,) = json.loads(capsys.readouterr().out)["groups"]
    assert group["verdict"] is None


@pytest.mark.parametrize("command", ["merge", "regressions", "trend"])
def test_a_column_is_given_once(archive: Archive, command: str, capsys: pytest.CaptureFixture[str]) -> None:
    where = ["--where", "kernel=6.0", "--where", "kernel=6.1"]
    assert cli.invoke(["archive", command, archive.url, *where]) == 1
    assert "--where = 'kernel=6.1': is given twice; no cell has both '6.0' and" in capsys.readouterr().err


@pytest.mark.parametrize("command", ["merge", "regressions", "trend"])
def test_a_condition_that_is_wrong_passes_nothing(
    command: str, archive: Archive, capsys: pytest.CaptureFixture[str]
) -> None:
    for condition, said in (
        ("kernel=6.l", "holds no valid cell that is asked for"),
        ("kernl=6.1", "--where = 'kernl': is no column of cells"),
        ("miss_ratio=few", "--where = 'miss_ratio=few': is no such value"),
    ):
        assert cli.invoke(["archive", command, archive.url, "--where", condition]) == 1
        assert said in capsys.readouterr().err


def test_since_is_a_time_of_where_it_says(archive: Archive, capsys: pytest.CaptureFixture[str]) -> None:
    """The cells are a second apart."""
    command = ["archive", "merge", archive.url, "--json", "--since"]
    assert cli.invoke([*command, "2026-01-01T02:00:20+02:00"]) == 0
    (group,) = json.loads(capsys.readouterr().out)["groups"]
    assert group["cells"] == 4


def test_the_extra_is_named_where_its_packages_are_not(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setitem(__import__("sys").modules, "deltalake", None)
    assert cli.invoke(["archive", "ls", str(tmp_path)]) == 1
    assert "rtmeter[archive]" in capsys.readouterr().err
