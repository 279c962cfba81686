"""The report says what each factor of a campaign does."""

from __future__ import annotations

import itertools
import json
import math
import re
import shutil
from dataclasses import asdict
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from report_page import page_of

from rtmeter.judge import compared, factors, run_factors
from rtmeter.judge.factors import FactorEffects, LevelEffects
from rtmeter.judge.run_factors import effects_of_runs
from rtmeter.model import GateFinding, Requirement
from rtmeter.report.factors import below, doubts, in_lines, rows
from rtmeter.results import store
from rtmeter.results.cells import StoredCell
from rtmeter.statistics.effects import Effect, Interaction, Said
from wakeups import write_wakeups


@pytest.fixture
def run(tmp_path: Path) -> Path:
    """Two named cells over two loads, three times in turn: fifo takes half as long, load changes nothing."""
    generator, order = np.random.default_rng(3), itertools.count()
    for repeat, block, load in itertools.product((1, 2, 3), ("normal", "fifo"), ("idle", "cpu80")):
        ns = 50_000 * (0.5 if block == "fifo" else 1.0) * np.exp(generator.normal(0, 0.05))
        policy = "fifo:80" if block == "fifo" else "other"
        factors = {"block": block, "load": load, "scheduling": policy}
        write_wakeups(
            tmp_path / "run" / f"{block}-{load}-r{repeat}",
            np.rint(generator.exponential(ns, 2_000)).astype(np.int64),
            repeat=repeat,
            axes={"load": load},
            requirement=Requirement(300_000, 0.01),
            adapter="null",
            changes={"started": f"2026-11-21T05:00:{next(order):02d}Z", "factors": factors},
        )
    return tmp_path / "run"


def test_factors_that_change_together_are_told_once(run: Path) -> None:
    found = list(effects_of_runs([run], store.chunks))
    assert [one.factor for one in found] == ["block", "load"], "scheduling is what the blocks set"
    (fifo,) = found[0].levels
    assert (fifo.level, fifo.said, fifo.pairs) == ("fifo", "better", 6)
    assert {one.said for one in found[1].levels[0].effects} <= {"no difference", "not told"}


def test_the_page_has_a_table_of_them(run: Path) -> None:
    page = page_of(run, list(effects_of_runs([run], store.chunks)))
    (filters,) = (attributes for name, attributes in page.elements if name == "form")
    assert (filters["data-total"], filters["data-things"]) == ("4", "conditions")
    text = page.text
    assert "What each factor does" in text
    assert "block fifo against normal; 6 pairs of runs; matched over load" in text
    assert "reference and level are means of the runs" in text
    assert "better" in text
    head = text[: text.index("What was asked")]
    assert re.search(r"block fifo against normal: better, 0 % missed, where it was 0\.2\d+ %", head)
    assert "load cpu80 against idle: no" in head, "the first screen says whether a factor is worth it"


@pytest.mark.parametrize(
    ("idle", "cpu80", "said"),
    [
        ((3.7, 4.3), (0.2, 0.3), "worse; it depends on load: worse at idle, better at cpu80"),
        ((0.6, 1.1), (0.2, 0.3), "better, p99 80.00 us, where it was 100.0 us"),
        ((0.6, 1.1), (0.6, 1.6), "better, p99 80.00 us, where it was 100.0 us"),
    ],
)
def test_the_first_screen_says_on_what_it_depends(
    idle: tuple[float, float], cpu80: tuple[float, float], said: str
) -> None:
    """What is worse at one level of another factor only is no better, whatever the mean."""
    depends = tuple(
        Interaction("p99", "load", at, math.sqrt(ends[0] * ends[1]), *ends, 0.8)
        for at, ends in (("idle", idle), ("cpu80", cpu80))
    )
    level = LevelEffects("fifo", 2, 6, (Effect("p99", 1e5, 8e4, 0.8, 0.7, 0.9, "better"),), depends)
    of_block = FactorEffects("block", "normal", "latency", None, 0.95, (level,), ("load",), (), ())
    assert in_lines([of_block], 3) == [f"block fifo against normal: {said}"]


@pytest.mark.parametrize(
    ("ratio", "p50", "said"),
    [
        ("better", "worse", "better, but worse at p50"),
        ("better", "better", "better"),
        ("worse", "better", "worse"),
        ("no difference", "worse", "worse at p50 (miss ratio: no difference)"),
        ("no difference", "better", "better at p50 (miss ratio: no difference)"),
        ("not told", "worse", "worse at p50 (miss ratio: not told)"),
        ("not told", "better", "not told"),
        ("no difference", "no difference", "no difference"),
    ],
)
def test_the_miss_ratio_decides_and_what_is_worse_besides_is_named(ratio: Said, p50: Said, said: str) -> None:
    """FIFO that takes the misses away, and 5 % longer in the middle, is better."""
    effects = tuple(
        Effect(name, 0.1, 0.01, 0.1, 0.05, 0.2, one) for name, one in (("p50", p50), ("miss_ratio", ratio))
    )
    apart = (Interaction("p50", "load", "idle", 2.0, 1.5, 3.0, 1.0),)
    level = LevelEffects("fifo", 2, 6, effects, () if ratio == "not told" else apart)
    assert f"{level.said}{level.where}" == said
    assert level.depends() == "", "what depends besides is in the lines below"


@pytest.mark.parametrize(
    ("decided", "said", "depends"),
    [
        ("not told", "worse", "it depends on LOAD: worse at idle, worse at cpu80; on CPUS: better at 0"),
        (
            "no difference",
            "worse",
            "it depends on LOAD: better at idle, worse at cpu80; on CPUS: better at 0",
        ),
        ("better", "worse", "it depends on LOAD: better at idle, worse at cpu80; on CPUS: better at 0"),
    ],
)
def test_what_it_depends_on_is_of_the_quantity_that_decides_or_of_all_where_that_is_not_told(
    decided: Said, said: str, depends: str
) -> None:
    """Of a level at which one quantity is worse and another better it is said that it is worse."""
    worse, better = (4.0, 3.7, 4.3, 0.8), (0.25, 0.2, 0.3, 0.8)
    apart = (
        *(Interaction("p50", "load", "idle", *worse), Interaction("p99", "load", "idle", *better)),
        *(Interaction("p50", "load", "cpu80", *better), Interaction("p99", "load", "cpu80", *worse)),
        Interaction("p99", "cpus", "0", *better),
    )
    effects = (
        Effect("p50", 1e5, 8e4, 0.8, 0.1, 9.0, "not told", repeats=9),
        Effect("p99", 1e5, 8e4, 0.8, 0.1, 9.0, decided, repeats=7),
    )
    level = LevelEffects("fifo", 2, 6, effects, apart)
    assert (level.said, level.depends(str.upper), level.repeats) == (said, depends, 9)


@pytest.mark.parametrize(("said", "depends"), [("no difference", "better at idle"), ("better", "")])
def test_where_it_is_better_is_told_unless_it_is_so_everywhere(said: Said, depends: str) -> None:
    apart = (Interaction("p99", "load", "idle", 0.25, 0.2, 0.3, 0.8),)
    level = LevelEffects("fifo", 2, 6, (Effect("p99", 1e5, 8e4, 0.8, 0.1, 9.0, said),), apart)
    assert level.depends() == (f"it depends on load: {depends}" if depends else "")


def test_the_first_screen_has_the_number_that_its_word_is_about() -> None:
    """Worse is p50; the misses are not told, and their share is no reason for the word."""
    effects = (
        Effect("p50", 2.4e5, 4.3e5, 1.8, 1.5, 2.1, "worse"),
        Effect("p99", 1.1e6, 1.3e6, 1.2, 0.5, 2.9, "not told"),
        Effect("miss_ratio", 0.00517, 0.00667, 1.3, 0.2, 8.0, "not told"),
    )
    level = LevelEffects("rclpy", 2, 6, effects, ())
    found = FactorEffects("adapter", "rcl", "response", None, 0.95, (level,), (), (), ())
    said = "worse at p50 (miss ratio: not told), p50 430.0 us, where it was 240.0 us"
    assert in_lines([found], 3) == [f"adapter rclpy against rcl: {said}"]


def test_how_many_repeats_it_takes_stands_beside_what_is_not_told() -> None:
    effects = (
        Effect("p50", 2e5, 1e5, 0.5, 0.4, 0.6, "better"),
        Effect("p99.9", 1e6, 2.5e4, 0.025, 1e-9, 1.1, "not told", repeats=66, repeats_seen=7),
        Effect("miss_ratio", 0.2, 0.1, 0.444, 0.1, 2.0, "not told", repeats=39),
    )
    level = LevelEffects("fifo", 2, 6, effects, ())
    assert list(below(level)) == [
        "Not told of p99.9, miss ratio: so few repeats do not show even a halving; it takes 66.",
        "As much as was seen of p99.9 (× 0.025): it takes 7 to tell.",
    ]
    assert [one.interval for one in rows(level)] == ["0.4 to 0.6", "< 2.5e-05 to 1.1", "0.1 to 2"]


def test_what_has_no_partner_is_named(run: Path) -> None:
    for repeat in (1, 2, 3):
        shutil.rmtree(run / f"normal-cpu80-r{repeat}")
    text = page_of(run, list(effects_of_runs([run], store.chunks))).text
    assert "left out: fifo-cpu80 has no partner" in text


def test_what_is_doubted_of_them_stands_below_the_table(run: Path) -> None:
    """Cells without a deadline have no misses that could be compared."""
    for folder in run.iterdir():
        cell = json.loads((folder / "cell.json").read_text())
        cell["config"]["deadline_ns"] = cell["requirement"] = cell["verdict"] = None
        (folder / "cell.json").write_text(json.dumps(cell))
    text = page_of(run, list(effects_of_runs([run], store.chunks))).text
    assert "block, load: no deadline in common: miss ratios are not compared" in text


def test_what_refuses_a_bound_of_a_cell_is_doubted_of_each_factor_that_it_is_compared_by(
    run: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whether its verdict found it, or the comparison: the cell is read once for all factors."""
    drifts, changes = (GateFinding(kind, "", 1.0, "refuse", f"it {kind}s") for kind in ("drift", "change"))
    cell = run / "fifo-idle-r1" / "cell.json"
    content = json.loads(cell.read_text())
    content["verdict"]["support"]["findings"].append(asdict(drifts))
    cell.write_text(json.dumps(content))

    def estimates_of(of: StoredCell, *asked: Any) -> Any:
        found, _ = compared.estimates_of(of, *asked)
        return found, (changes,) if of.folder.name == "normal-idle-r2" else ()

    monkeypatch.setattr(factors, "estimates_of", estimates_of)
    found = list(effects_of_runs([run], store.chunks))
    assert [one.quantity for one in found] == ["latency", "latency"]
    assert {
        f"block, load: {run}/fifo-idle-r1: it drifts",
        f"block, load: {run}/normal-idle-r2: it changes",
    } == {*doubts(found)}


def test_of_large_runs_it_is_left_to_compare(run: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(run_factors, "MOST_CELLS", 11)
    assert list(effects_of_runs([run], store.chunks)) == []
    monkeypatch.setattr(run_factors, "MOST_CELLS", 12)
    monkeypatch.setattr(run_factors, "MOST_RELEASES", 12 * 2_000 - 1)
    assert list(effects_of_runs([run], store.chunks)) == []
    monkeypatch.setattr(run_factors, "MOST_RELEASES", 12 * 2_000)
    assert len(list(effects_of_runs([run], store.chunks))) == 2


def test_one_cell_has_no_factor(run: Path) -> None:
    assert list(effects_of_runs([run / "fifo-idle-r1"], store.chunks)) == []
