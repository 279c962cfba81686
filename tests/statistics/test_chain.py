"""The ages, reactions and counts of chains: against closed forms, and plain loops on random graphs."""

from __future__ import annotations

import random
from collections import Counter
from typing import Any

import numpy as np
import pytest

from chains import Row, Spec, accounted, random_graph, simulate, ways_of
from rtmeter.errors import RtmeterError
from rtmeter.model import ABSENT, STATUS_NAMES
from rtmeter.statistics.chain import COLUMNS, ChainResult, analyse
from rtmeter.statistics.chain_graph import MOST_PATHS, Graph, Stage
from rtmeter.statistics.views import LATER

MS = 1_000_000
T0 = 1 << 40
FOREVER = 1 << 60
SWAPPED: dict[int, Any] = {5: lambda r: (6, r + 10 * MS), 6: lambda r: (5, r - 10 * MS)}


def graph_of(specs: list[Spec]) -> Graph:
    return Graph(tuple(Stage(s.name, s.kind, s.inputs, s.period_ns, s.offset_ns) for s in specs))  # type: ignore[arg-type]


def columns(rows: list[Row]) -> dict[str, Any]:
    table = [(*(ABSENT if v is None else v for v in row[:5]), STATUS_NAMES.index(row[5])) for row in rows]
    return dict(zip(COLUMNS, np.array(table, dtype=np.int64).reshape(-1, 6).T, strict=True))


def analysed(
    specs: list[Spec],
    rows: dict[str, list[Row]],
    warm_up: int = 0,
    loss: int = MS,
    ended: int = FOREVER,
    overdue: int = FOREVER,
    whole: dict[str, int] | None = None,
) -> ChainResult:
    graph = graph_of(specs)
    late = {tuple(stage.name for stage, _ in path): overdue for path in graph.paths()}
    warm = {stage.name: warm_up for stage in graph.sources}
    logs = {name: columns(found) for name, found in rows.items()}
    return analyse(
        graph,
        logs,
        warm_up=warm,
        loss_timeout_ns=loss,
        ended_ns=ended,
        overdue_ns=late,
        whole_until_ns=whole or {},
    )


def line(count: int, kind: str = "event", period_ns: int = 10 * MS) -> list[Spec]:
    specs = [Spec("s0", "sampled", (), period_ns)]
    return specs + [Spec(f"s{n}", kind, (f"s{n - 1}",)) for n in range(1, count)]


def test_an_event_chain_of_20_stages_ages_by_the_sum_of_its_delays() -> None:
    specs = line(20)
    rows = simulate(specs, lambda _a, b, k: int(b[1:]) * 1000 + k, T0, 50, FOREVER)
    (path,) = analysed(specs, rows).paths
    total = sum(range(1, 20)) * 1000
    assert path.age_ns.tolist() == [total + 19 * k for k in range(50)]
    assert path.reaction_ns.tolist() == [total + 19 * k + 10 * MS for k in range(50)]
    assert path.counts == {
        "warm_up": 0,
        "released": 50,
        "arrived": 50,
        "overtaken": 0,
        "lost": 0,
        "in_flight": 0,
    }
    assert path.identity == "released = arrived + overtaken + lost + in_flight: 50 = 50 + 0 + 0 + 0"
    assert path.name.startswith("s0 > s1 > s2")


def test_a_slower_sampled_stage_overtakes_in_closed_form() -> None:
    """T = 10 ms, sampled every 30 ms at 5 ms, delivered after 1 ms: samples 0, 3, 6, ... arrive, 5 ms old;
    sample k waits for the output of the next multiple of 3."""
    specs = [Spec("a", "sampled", (), 10 * MS), Spec("b", "sampled", ("a",), 30 * MS, 5 * MS)]
    rows = simulate(specs, lambda *_: MS, T0, 31, T0 + 310 * MS)
    (path,) = analysed(specs, rows).paths
    assert path.counts["arrived"] == 11 and path.counts["overtaken"] == 20
    assert path.age_k.tolist() == list(range(0, 31, 3))
    assert set(path.age_ns.tolist()) == {5 * MS}
    assert path.reaction_ns.tolist() == [(-k % 3) * 10 * MS + 15 * MS for k in range(31)]


def test_a_faster_sampled_stage_repeats_its_newest_sample_and_its_age_grows() -> None:
    specs = [Spec("a", "sampled", (), 10 * MS), Spec("b", "sampled", ("a",), 5 * MS, 1 * MS)]
    rows = simulate(specs, lambda *_: MS, T0, 4, T0 + 36 * MS)
    (path,) = analysed(specs, rows).paths
    assert path.age_ns.tolist() == [1 * MS, 6 * MS] * 4
    rows = simulate(specs, lambda *_: MS, T0, 4, T0 + 1000 * MS)
    (path,) = analysed(specs, rows).paths
    assert path.age_ns.tolist() == [1 * MS, 6 * MS] * 4, (
        "what it repeats once its source has ended is left out"
    )
    assert path.counts["arrived"] == 4 and path.reaction_ns.tolist() == [11 * MS] * 4


def test_fan_in_and_out_has_a_result_for_each_path() -> None:
    specs = [
        Spec("a", "sampled", (), 10 * MS),
        Spec("b", "event", ("a",)),
        Spec("c", "event", ("a",)),
        Spec("d", "fusion", ("b", "c")),
        Spec("e", "event", ("d",)),
        Spec("f", "event", ("d",)),
    ]
    delays = {("a", "b"): 1, ("a", "c"): 2, ("b", "d"): 3, ("c", "d"): 4, ("d", "e"): 5, ("d", "f"): 6}
    rows = simulate(specs, lambda a, b, _k: delays[a, b] * MS, T0, 10, FOREVER)
    paths = {path.name: path for path in analysed(specs, rows).paths}
    assert sorted(paths) == ["a > b > d > e", "a > b > d > f", "a > c > d > e", "a > c > d > f"]
    for name, path in paths.items():  # the later input, by c after 6 ms, lets both through
        assert set(path.age_ns.tolist()) == {(11 if name.endswith("e") else 12) * MS}
        assert path.counts["arrived"] == 10


def test_what_never_comes_is_lost_and_what_may_still_come_in_flight() -> None:
    specs = line(3)
    rows = simulate(
        specs, lambda a, _b, k: None if k in ((2, 3) if a == "s0" else (1,)) else MS, T0, 8, FOREVER
    )
    # s1 sends what it got as its messages 0, 1, 2, ...: of samples 0, 1, 4, 5, 6, 7; the second is lost
    (path,) = analysed(specs, rows).paths
    assert path.counts["lost"] == 3 and path.counts["arrived"] == 5
    assert (
        path.reaction_ns.tolist()
        == [12 * MS] + [(4 - k) * 10 * MS + 12 * MS for k in (1, 2, 3)] + [12 * MS] * 4
    )
    cut = {name: [row for row in found if (row[4] or 0) < T0 + 71 * MS] for name, found in rows.items()}
    (path,) = analysed(specs, cut, loss=5 * MS, ended=T0 + 71 * MS).paths
    assert path.counts["in_flight"] == 1 and path.counts["lost"] == 3
    assert path.k.tolist() == list(range(7)), "a sample in flight has no reaction yet"
    (path,) = analysed(specs, cut, loss=MS, ended=T0 + 71 * MS).paths
    assert path.counts["lost"] == 4 and path.reaction_ns[-1] == LATER


@pytest.mark.parametrize(
    ("ended_ms", "overdue_ms", "lost"), [(3990, 500, 150), (3990, 10, 199), (4500, 500, 200)]
)
def test_what_was_overdue_at_the_end_is_lost_though_a_later_sample_is_in_flight(
    ended_ms: int, overdue_ms: int, lost: int
) -> None:
    """Of 400 samples, each 10 ms, the second stage hangs after 200. That of k was due from 10 (k - 1) on."""
    rows = simulate(line(2), lambda *_: MS, T0, 400, FOREVER)
    rows["s1"] = rows["s1"][:200]
    ended = T0 + ended_ms * MS
    (path,) = analysed(line(2), rows, loss=500 * MS, ended=ended, overdue=overdue_ms * MS).paths
    assert int(np.count_nonzero(path.reaction_ns == LATER)) == lost
    assert path.k.tolist() == list(range(200 + lost))
    status = [STATUS_NAMES[code] for code in path.samples["status"]]
    assert status == ["served"] * 200 + ["lost"] * lost + ["in_flight"] * (200 - lost)


def test_a_copy_of_the_last_sample_that_still_waits_was_not_overtaken_by_an_earlier_one() -> None:
    """b passes on the last sample of a again and again; the fusion waits with it for c, which has ended."""
    specs = [Spec("a", "sampled", (), 10 * MS), Spec("c", "sampled", (), 5 * MS)]
    specs += [Spec("b", "sampled", ("a",), 3 * MS, MS), Spec("d", "fusion", ("b", "c"))]
    rows = simulate(specs, lambda *_: 0, T0, 10, T0 + 150 * MS)
    of_all = analysed(specs, rows, ended=T0 + 150 * MS, overdue=45 * MS).paths
    path = next(one for one in of_all if one.name == "a > b > d")
    of_last = {row[5] for row in rows["d"] if row[:2] == (0, 9)}
    assert of_last == {"skipped", "in_flight"}
    assert path.counts["in_flight"] == 1 and path.counts["lost"] == 0
    assert LATER not in path.reaction_ns.tolist()


@pytest.mark.parametrize(("b_ms", "b_until", "known"), [(5, 99, 6), (10, 6, 9)])
def test_what_waits_in_a_fusion_is_overdue_only_by_when_its_other_source_ended(
    b_ms: int, b_until: int, known: int
) -> None:
    """a > f, a to 90 ms. Of b all arrive, and it ends at 50 ms; or of its ten the first six: those of a from
    6 on get no output, which for all but the last is more than 20 ms overdue when b ends, at 100 ms."""
    specs = [Spec("a", "sampled", (), 10 * MS), Spec("b", "sampled", (), b_ms * MS)]
    specs += [Spec("f", "fusion", ("a", "b"))]
    rows = simulate(specs, lambda a, _b, k: None if a == "b" and k >= b_until else MS, T0, 10, FOREVER)
    path = next(p for p in analysed(specs, rows, overdue=20 * MS).paths if p.name == "a > f")
    assert path.counts["in_flight"] == 1
    assert path.k.tolist() == list(range(known))


def test_warm_up_is_recorded_and_not_counted() -> None:
    specs = line(2)
    rows = simulate(specs, lambda *_: MS, T0, 10, FOREVER)
    (path,) = analysed(specs, rows, warm_up=4).paths
    assert path.counts["warm_up"] == 4 and path.counts["released"] == 6
    assert path.age_k.tolist() == path.k.tolist() == [4, 5, 6, 7, 8, 9]


def re_stamped(rows: dict[str, list[Row]], stage: str, change: Any) -> dict[str, list[Row]]:
    return rows | {stage: [(row[0], *change(row[1], row[2], row[4]), *row[3:]) for row in rows[stage]]}


def passed_on(rows: dict[str, list[Row]], at: int) -> dict[str, list[Row]]:
    """The rows of a line whose stage ``at`` changed what it passed on, as those behind it have them."""
    for before, name in ((f"s{n - 1}", f"s{n}") for n in range(at + 1, len(rows))):
        sent = [row[1:3] for row in rows[before]]
        rows[name] = [(row[0], *carried, *row[3:]) for row, carried in zip(rows[name], sent, strict=True)]
    return rows


@pytest.mark.parametrize(
    ("what", "change"),
    [
        ("time", lambda k, _r, now: (k, now)),
        ("index", lambda k, r, _now: (k + 1, r)),
        ("both, to what is not sent yet", lambda k, r, _now: (k + 1, r + 10 * MS)),
        ("both, to an older one", lambda k, r, _now: (k, r) if k != 5 else (4, r - 10 * MS)),
        ("index beyond all", lambda k, r, _now: (k + 1000, r)),
        ("two swapped, one before it was sent", lambda k, r, _now: SWAPPED.get(k, lambda r: (k, r))(r)),
    ],
)
@pytest.mark.parametrize("stage", ["s1", "s2", "s3"])
def test_a_stage_that_re_stamps_is_named(what: str, change: Any, stage: str) -> None:
    rows = re_stamped(simulate(line(4), lambda *_: MS, T0, 10, FOREVER), stage, change)
    rows = passed_on(rows, int(stage[1]))
    result = analysed(line(4), rows)
    assert result.problems and all(f"stage {stage} re-stamps" in one for one in result.problems), what
    (path,) = result.paths
    assert path.counts["released"] == sum(
        path.counts[n] for n in ("arrived", "overtaken", "lost", "in_flight")
    )


def test_who_passes_on_what_was_re_stamped_before_is_not_named() -> None:
    rows = simulate(line(6), lambda *_: MS, T0, 10, FOREVER)
    rows = passed_on(re_stamped(rows, "s2", lambda k, _r, now: (k, now)), 2)
    (problem,) = analysed(line(6), rows).problems
    assert "stage s2 re-stamps: 10 of 10 rows" in problem
    rows = passed_on(re_stamped(rows, "s4", lambda k, _r, now: (k + 1, now)), 4)
    assert [problem.split(":")[0] for problem in analysed(line(6), rows).problems] == [
        "stage s2 re-stamps",
        "stage s4 re-stamps",
    ]


@pytest.mark.parametrize(("cut", "until_ms"), [("s0", 50), ("s1", 51), ("s2", 52)])
def test_what_came_of_a_stage_after_its_log_was_cut_is_not_called_re_stamped(cut: str, until_ms: int) -> None:
    """s1 passes on each of ten samples twice, that of 50 ms before and after its cut."""
    specs = line(4)
    specs[1] = Spec("s1", "sampled", ("s0",), 5 * MS, 1 * MS)
    rows = simulate(specs, lambda *_: MS, T0, 10, T0 + 101 * MS)
    until, behind = T0 + until_ms * MS, f"s{int(cut[1]) + 1}"
    rows[cut] = [row for row in rows[cut] if row[4] is not None and row[4] <= until]
    assert {one.split(":")[0] for one in analysed(specs, rows).problems} == {f"stage {behind} re-stamps"}
    assert analysed(specs, rows, whole={cut: until}).problems == ()
    rows = re_stamped(rows, behind, lambda k, r, _now: (k, r + (k == 3)))
    assert f"stage {behind} re-stamps: 2 of" in analysed(specs, rows, whole={cut: until}).problems[0]


def test_a_source_that_leaves_its_grid_or_misses_rows_is_told() -> None:
    rows = simulate(line(2), lambda *_: MS, T0, 10, FOREVER)
    assert analysed(line(2), rows).problems == ()
    moved = re_stamped(rows, "s0", lambda k, r, _now: (k, r + (k == 6)))
    assert "release of sample 6 lies 1 ns off its grid" in analysed(line(2), moved).problems[0]
    lacking = {name: [row for row in found if row[1] != 3] for name, found in rows.items()}
    assert "sample 3 should follow, 4 does" in analysed(line(2), lacking).problems[0]


@pytest.mark.parametrize("way", [-1, 1])
def test_rows_of_a_way_that_a_stage_has_not_are_told(way: int) -> None:
    rows = simulate(line(2), lambda *_: MS, T0, 10, FOREVER)
    rows["s1"] += [(way, *row[1:]) for row in rows["s1"][:3]]
    assert analysed(line(2), rows).problems == ("3 rows of stage s1 came a way that it has not",)


def random_delay(draw: random.Random, period_ns: int) -> Any:
    """Reproducible by message; now and then never, or so long that messages overtake each other."""
    seed = draw.randint(0, 1 << 30)

    def delay(a: str, b: str, sequence: int) -> int | None:
        of = random.Random(f"{seed} {a} {b} {sequence}")
        return None if of.random() < 0.05 else of.randint(0, period_ns * of.choice((1, 1, 1, 3)))

    return delay


def test_random_graphs_are_told_as_plain_loops_tell_them(sized: Any) -> None:
    graphs = sized("random graphs of up to 20 stages", reduced=60, full=10_000)
    outcomes: Counter[str] = Counter()
    for number in range(graphs):
        draw = random.Random(f"chain {number}")
        period_ns = 1000
        specs = random_graph(draw, 20, period_ns)
        until = T0 + period_ns * draw.randint(5, 14)
        rows = simulate(specs, random_delay(draw, period_ns), T0, 10, until)
        result = analysed(specs, rows, 2, 700, until, 3000)
        wanted = accounted(specs, rows, 2, 700, until, 3000)
        assert result.problems == ()
        assert {path.stages for path in result.paths} == set(wanted)
        for path in result.paths:
            expected = wanted[path.stages]
            assert {k: v for k, v in path.counts.items() if k != "warm_up"} == expected["counts"]
            assert list(zip(path.age_k.tolist(), path.age_ns.tolist(), strict=True)) == expected["ages"]
            mine = zip(path.k.tolist(), path.reaction_ns.tolist(), strict=True)
            assert {k: None if v == LATER else v for k, v in mine} == expected["reactions"]
            outcomes.update(path.counts)
    assert min(outcomes[name] for name in ("arrived", "overtaken", "lost", "in_flight")) > 0


def test_ways_are_numbered_as_the_graph_says() -> None:
    for number in range(50):
        specs = random_graph(random.Random(number), 15, 1000)
        graph = graph_of(specs)
        for name, ways in ways_of(specs).items():
            stage = graph.by_name[name]
            names = [tuple(s.name for s, _ in graph.path_of(stage, way)) for way in range(graph.ways[name])]
            assert names == ways


@pytest.mark.parametrize(
    ("stages", "field", "said"),
    [
        ((), "graph", "no stages"),
        ((Stage("a", "sampled", (), 1), Stage("a", "sampled", (), 1)), "graph.a", "stands twice"),
        ((Stage("a", "event", ("b",)),), "graph.a.inputs", "is no stage of the graph"),
        ((Stage("s", "sampled", (), 1), Stage("a", "event", ("s", "s"))), "graph.a.inputs", "stands twice"),
        ((Stage("a", "event", ("b",)), Stage("b", "event", ("a",))), "graph.stages", "in a circle"),
        ((Stage("a", "event"),), "graph.a.kind", "needs inputs"),
        ((Stage("a", "sampled"),), "graph.a.period", "is missing"),
        (
            (Stage("s", "sampled", (), 1), Stage("a", "event", ("s",), 5)),
            "graph.a.period",
            "for kind event",
        ),
        (
            (Stage("s", "sampled", (), 1), Stage("a", "event", ("s",), None, 5)),
            "graph.a.offset",
            "no releases",
        ),
        ((Stage("s", "sampled", (), 1, -1),), "graph.s.offset", "before the chain's first release"),
        ((Stage("s", "sampled", (), 1), Stage("a", "fusion", ("s",))), "graph.a.kind", "has one input"),
    ],
)
def test_what_is_no_graph_is_refused_by_name(stages: tuple[Stage, ...], field: str, said: str) -> None:
    with pytest.raises(RtmeterError) as refused:
        Graph(stages)
    assert refused.value.field == field and refused.value.remedy
    assert said in refused.value.message


def test_more_paths_than_a_message_can_carry_are_refused() -> None:
    stages = [Stage("s", "sampled", (), 1)]
    last = "s"
    for layer in range(11):
        pair = [Stage(f"{side}{layer}", "event", (last,)) for side in "ab"]
        stages += [*pair, Stage(f"j{layer}", "fusion", tuple(stage.name for stage in pair))]
        last = f"j{layer}"
    with pytest.raises(RtmeterError, match=f"has 2048 paths .* more than {MOST_PATHS}") as refused:
        Graph(tuple(stages))
    assert (refused.value.field, refused.value.value) == ("graph", 2048) and refused.value.remedy
