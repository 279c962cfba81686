"""The answer that a report opens with, for who knows none of it."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from report_page import HOSTILE, page_of

from rtmeter.judge.answer import answer
from rtmeter.judge.entries import by_condition
from rtmeter.model import Doubt, Requirement
from rtmeter.results import words
from rtmeter.results.overview import CellEntry, cell_entries
from stored import write_run
from synthetic import Made, usual, write_cell
from wakeups import MS, draw, write_wakeups


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return tmp_path / "results"


def test_a_pass_answers_first_and_names_the_next_step(folder):
    page = page_of(write_cell(folder, Made(id="idle loop", delays=usual(2, 40))))
    assert "Pass All 2,000 releases met the deadline of 1,000 us." in page.text
    assert "Is the wake-up latency of every release within 1,000 us?" in page.text
    assert "Virtual machine (kvm): unfit for absolute claims." in page.text
    assert (
        "To show that fewer than 1 in 1,000 miss, measure 2,995 releases without a miss (3 s)." in page.text
    )
    assert "0 of 2,000 releases missed the deadline of 1,000 us on latency" in page.text
    assert len(page.plots) == 3


def test_a_fail_states_its_misses_and_where_to_look(folder):
    stalls = lambda k: (2_500_000 if k == 700 else 50_000,)  # noqa: E731
    page = page_of(write_cell(folder, Made(delays=stalls, skip=True)))
    assert "Fail 3 of 2,000 releases missed the deadline of 1,000 us." in page.text
    assert "on latency (1 late, 2 skipped): 0.15 %, none allowed, worst 2,500.0 us." in page.text
    assert "The misses come in one cluster, at most 3 of them consecutive." in page.text
    assert "The maximum is 2,500.0 us of 1,000 us allowed, at k = 700." in page.text
    assert "Measure again with --explain (in a campaign explain: true), which says why" in page.text
    assert "see what kept the thread from being free" not in page.text and "Until then" not in page.text
    assert "released = served + skipped: 2000 = 1998 + 2" in page.text


def test_too_few_samples_say_how_many_more(folder):
    page = page_of(write_cell(folder, Made(miss_ratio=1e-4)))
    assert "Inconclusive All 2,000 releases met the deadline of 1,000 us: not enough evidence." in page.text
    assert "within 1,000 us, but for at most 1 in 10,000 releases, with 95 % confidence?" in page.text
    assert "Measure 27,956 more releases (28 s): if all are in time, it passes." in page.text


def test_no_deadline_is_described_not_judged(folder):
    page = page_of(write_cell(folder, Made(deadline_ns=None)))
    assert "Not judged 2,000 releases measured; no deadline was asked." in page.text
    assert "--deadline" in page.text


def test_all_cells_passing_names_the_one_nearest_to_its_deadline(folder):
    write_cell(folder / "a", Made(id="a", delays=lambda k: (100_000,)))
    write_cell(folder / "b", Made(id="b", delays=lambda k: (900_000,)))
    said = answer(sorted(cell_entries(folder), key=lambda cell: cell.badness))
    assert said.headline == "All 2 cells passed."
    assert "Nearest to its deadline: b . 0 of 2,000 releases missed" in page_of(folder).text
    assert said.limits[0].startswith("b comes nearest to its deadline: the maximum is 900.0 us of 1,000 us")


@pytest.mark.parametrize(
    ("share", "said"),
    [
        (1e-3, "1 in 1,000"),
        (5e-3, "1 in 200"),
        (3e-3, "3 in 1,000"),
        (0.9, "9 in 10"),
        (1e-9, "1 in 1,000,000,000"),
    ],
)
def test_shares_are_told_as_so_many_in_so_many(share, said):
    assert words.one_in(share) == said


def test_what_was_asked_begins_with_the_campaigns_own_words_and_explains_others(folder):
    """Of one run; where the cells of several are, none speaks for all."""
    write_cell(folder / "one" / "a", Made(id="a", samples=10))
    write_cell(folder / "one" / "b", Made(id="b", samples=10, measurement="roundtrip", skip=True))
    write_run(folder / "one", {"cells": ["a", "b"], "description": f"Is {HOSTILE} fit?"}, None)
    said = answer(cell_entries(folder))
    assert said.asked[0] == f"Is {HOSTILE} fit?"
    assert len(said.asked) == 3
    assert [term.partition(":")[0] for term in said.terms] == ["Release", "Cell"]
    page = page_of(folder)
    assert all(text in page.text for text in (*said.asked, *said.terms))
    assert page.text.index(said.asked[0]) < page.text.index(said.asked[1])
    assert [term.partition(":")[0] for term in answer(cell_entries(folder / "one" / "a")).terms] == [
        "Wake-up latency"
    ]
    write_cell(folder / "two" / "a", Made(id="a", samples=10))
    assert answer(cell_entries(folder)).asked[0].startswith("Is the wake-up latency")


def test_a_result_of_another_version_names_both_and_what_reads_it(folder):
    page = page_of(write_cell(folder, Made(changes={"version": 3})))
    assert "cell.json: version: has version 3, this rtmeter reads versions 1 and 2." in page.text
    assert "What to do next Read it with the rtmeter that wrote it, or a newer one." in page.text


def meanwhile(others: float, steal: float) -> dict[str, object]:
    machine = {"others": others, "steal": steal, "others_most": [{"name": "make", "share": others}]}
    return {"conditions": {"asked": {}, "effective": {}, "achieved": {"machine": machine}}}


def test_what_others_took_meanwhile_limits_it(folder):
    page = page_of(write_cell(folder, Made(changes=meanwhile(0.3, 0.37))))
    said = "others took 30% of the CPUs (make 30%) and the hypervisor took 37% of the CPUs"
    assert f"{said[0].upper()}{said[1:]} meanwhile." in page.text
    assert f"Meanwhile: {said.replace(' and ', '; ')}." in page.text
    quiet = page_of(write_cell(folder / "quiet", Made(changes=meanwhile(0.05, 0.05))))
    assert "of the CPUs meanwhile." not in quiet.text
    assert (
        "Meanwhile: others took 5% of the CPUs (make 5%); the hypervisor took 5% of the CPUs." in quiet.text
    )


def test_that_an_idle_machine_was_not_idle_limits_it_before_all_else(folder):
    idle = Doubt(
        "load_not_idle", "an idle machine was asked, but others took 30% of the CPUs", "end that work"
    )
    load = Doubt("load_not_reached", "its CPUs were 7% busy", "ask for more")
    changes = meanwhile(0.3, 0.0) | {"machine": {"virtual_machine": "kvm"}}
    write_cell(folder / "a", Made(id="a", changes=changes | {"warnings": doubts(load, idle)}))
    said = answer(cell_entries(folder)).limits
    assert said[0] == "An idle machine was asked, but others took 30% of the CPUs."
    assert (len(said), len(set(said))) == (3, 3)
    write_cell(folder / "b", Made(id="b", changes=changes | {"warnings": doubts(load)}))
    said = answer(cell_entries(folder)).limits
    assert said[0] == "a: an idle machine was asked, but others took 30% of the CPUs."


def doubts(*those: Doubt) -> list[dict[str, str]]:
    return [asdict(doubt) for doubt in those]


def test_of_a_scripted_run_nothing_is_said_of_the_machine(folder):
    changes = meanwhile(0.3, 0.37) | {"clock": {"id": "scripted"}}
    page = page_of(write_cell(folder, Made(changes=changes)))
    assert "Meanwhile" not in page.text
    assert "of the CPUs" not in page.text
    assert "Scripted clock" in page.text, "it is one"


def test_of_several_cells_the_busiest_is_named(folder):
    for name, others in (("a", 0.2), ("b", 0.6), ("c", 0.0)):
        write_cell(folder / name, Made(id=name, changes=meanwhile(others, 0.0)))
    most = "up to 60% of the CPUs were taken meanwhile, in b others took 60% of the CPUs (make 60%)."
    assert f"a, b: {most}" in page_of(folder).text
    few = [cell for cell in cell_entries(folder) if cell.id != "a"]
    assert "b: others took 60% of the CPUs (make 60%) meanwhile." in answer(few).limits


def to_come(name: str, state: Any, problem: str = "It has not ended.") -> CellEntry:
    return CellEntry(name, Path(name), state, problem=problem)


@pytest.mark.parametrize(
    ("cells", "said"),
    [
        ([to_come("a", "running")], ["Let the run end, or continue it with --resume."]),
        ([to_come("a", "not run")], ["Let the run end, or continue it with --resume."]),
        ([to_come("a", "damaged", "x = 3: is odd; Read it anew")], ["Read it anew."]),
        ([to_come("a", "damaged", "it is odd")], ["Measure the cell again."]),
        (
            [to_come("a", "damaged", "x; mend x"), to_come("b", "running"), to_come("c", "running")],
            ["a: Mend x.", "b, c: let the run end, or continue it with --resume."],
        ),
        ([to_come(name, "damaged", f"x; mend {name}") for name in "abcd"], 3),
    ],
)
def test_each_condition_that_did_not_pass_has_its_step_and_three_are_told(
    cells: list[CellEntry], said: list[str] | int
) -> None:
    found = answer(cells).next
    assert (len(found) if isinstance(said, int) else found) == said


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({}, ["Repeat it on the target itself"]),
        ({"machine": {"virtual_machine": None}}, ["Type rtmeter check on the machine"]),
        ({"clock": {"id": "scripted"}}, []),
    ],
)
def test_where_nothing_else_is_to_be_done_the_machine_is_looked_at(folder, changes, said):
    late = lambda k: (2_000_000 if k == 700 else 50_000,)  # noqa: E731
    write_cell(folder, Made(miss_ratio=0.1, delays=late, changes=changes))
    (found,) = cell_entries(folder)
    steps = answer([found]).next
    assert found.outcome == "pass" and len(steps) == len(said)
    assert all(step.startswith(begun) for step, begun in zip(steps, said, strict=True))


def test_repeats_that_need_more_are_told_how_many_more_runs(folder):
    for repeat in (1, 2, 3):
        made = Made(id=f"a-r{repeat}", delays=usual(repeat, 40), miss_ratio=6e-4, axes={"repeat": repeat})
        write_cell(folder / f"a-r{repeat}", made)
    (entry,) = by_condition(cell_entries(folder))
    said = answer([entry]).next[0]
    assert said == "Measure 1 more run such as these (2 s): if none of them misses, it passes."


HARD = Requirement(100 * MS, None, 0.95, "hard")
OUTLIER = np.where(np.arange(20_000) == 9, 90 * MS, draw(1))
CLIMBS = 10 * np.arange(20_000)
CHANGES = np.where(np.arange(20_000) < 10_000, 1, 3)


@pytest.mark.parametrize(
    ("values", "asked", "others", "said"),
    [
        (draw(2) * CHANGES, Requirement(10 * MS, 0.1), 0.0, "Find out what the machine did while releases"),
        (draw(2) + CLIMBS, Requirement(10 * MS, 0.1), 0.0, "Find out why the delay grows, and mend that"),
        (draw(2) + CLIMBS, Requirement(10 * MS, 0.1), 0.3, "Find out why the delay grows, and mend that"),
        (draw(2) - CLIMBS, Requirement(10 * MS, 0.1), 0.3, "Give it a longer warm-up: a delay that still"),
        (draw(2) * CHANGES, Requirement(10 * MS, 0.1), 0.3, "Free the machine of others' work"),
        (draw(1), Requirement(650_000, None, 0.95, "hard"), 0.0, "Look at the latest releases: their cause"),
        (OUTLIER, HARD, 0.0, "Look at the latest releases: they have a cause of their own"),
        (
            draw(1, 1500),
            Requirement(10 * MS, None, 0.95, "hard"),
            0.0,
            "Measure 1,000 more releases at least",
        ),
    ],
)
def test_where_no_length_helps_what_stands_in_the_way_is_the_next_step(folder, values, asked, others, said):
    write_wakeups(folder, values, requirement=asked, changes=meanwhile(others, 0.0))
    (found,) = cell_entries(folder)
    assert found.outcome == "inconclusive"
    first = answer([found]).next[0]
    assert first.startswith(said) and first.count(".") == 1
